//! Where an author's messages begin.

/// An author and the newest of its message ids, at or below the page's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorHead {
    /// The author followed.
    pub author: u64,
    /// Its newest message id.
    pub id: u64,
}
