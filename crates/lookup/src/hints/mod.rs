//! What earlier lookups saw. Hints decide what is asked, never what is answered: an answer proves itself,
//! and a hint that is out of date costs one more question.

mod follows;
mod marks;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use headwater_timeline::DefinitionId;

pub use follows::Follows;
pub use marks::{Mark, Marks};

/// A definition in a database, as the hints tell it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope(u64);

impl Scope {
    /// Two places may get the same scope: then their hints mislead each other, which costs time.
    #[must_use]
    pub fn new(definition: DefinitionId, database: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (definition, database).hash(&mut hasher);
        Scope(hasher.finish())
    }
}

/// Hints of all sessions.
#[derive(Debug)]
pub struct Hints {
    /// Where authors' newest ids lie.
    pub marks: Marks,
    /// Whom readers follow.
    pub follows: Follows,
}

impl Hints {
    /// Room for so many authors' marks, and for follow lists of so many authors together.
    #[must_use]
    pub fn new(authors: usize, follow_edges: usize) -> Self {
        Hints {
            marks: Marks::new(NonZeroUsize::new(authors).unwrap_or(NonZeroUsize::MIN)),
            follows: Follows::new(follow_edges),
        }
    }
}
