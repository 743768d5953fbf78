//! What earlier lookups saw. Hints decide what is asked, never what is answered: an answer proves itself,
//! and a hint that is out of date costs one more question.

mod author_ranges;
mod follow_lists;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use headwater_timeline::DefinitionId;

pub use author_ranges::{AuthorRangeHint, AuthorRangeHints};
pub use follow_lists::FollowListHints;

/// A definition in a database, as the hints tell it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HintScope(u64);

impl HintScope {
    /// Two places may get the same scope: then their hints mislead each other, which costs time.
    #[must_use]
    pub fn new(definition: DefinitionId, database: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (definition, database).hash(&mut hasher);
        HintScope(hasher.finish())
    }
}

/// Hints of all sessions.
#[derive(Debug)]
pub struct LookupHints {
    /// Where authors' newest ids lie.
    pub author_ranges: AuthorRangeHints,
    /// Whom readers follow.
    pub follow_lists: FollowListHints,
}

impl LookupHints {
    /// Room for so many authors' marks, and for follow lists of so many authors together.
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
