//! The newest message of an author.

/// An author and the newest of its message ids at or below the page's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorHead {
    /// The followed author.
    pub author: u64,
    /// Its newest message id.
    pub id: u64,
}
