//! Results of earlier lookups. Hints decide what is queried, never the answer: an answer proves itself, and an
//! outdated hint costs one more query.

mod author_ranges;
mod follow_lists;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use headwater_timeline::DefinitionId;

pub use author_ranges::{AuthorRangeHint, AuthorRangeHints};
pub use follow_lists::FollowListHints;

/// A definition in a database, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HintScope(u64);

impl HintScope {
    /// Two timelines may get the same scope. Then their hints mislead each other, which costs time.
    #[must_use]
    pub fn new(definition: DefinitionId, database: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (definition, database).hash(&mut hasher);
        HintScope(hasher.finish())
    }
}

/// The hints of all sessions.
#[derive(Debug)]
pub struct LookupHints {
    /// Ranges of authors' newest ids.
    pub author_ranges: AuthorRangeHints,
    /// Follow lists of readers.
    pub follow_lists: FollowListHints,
}

impl LookupHints {
    /// Holds hints on `authors` authors, and follow lists of `follow_edges` authors in total.
    #[must_use]
    pub fn new(authors: usize, follow_edges: usize) -> Self {
        LookupHints {
            author_ranges: AuthorRangeHints::new(
                NonZeroUsize::new(authors).unwrap_or(NonZeroUsize::MIN),
            ),
            follow_lists: FollowListHints::new(follow_edges),
        }
    }
}
