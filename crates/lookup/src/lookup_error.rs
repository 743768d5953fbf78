//! Why the answers to a lookup cannot be used.

/// The fault in the answers. The server's own procedure then runs instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// A row is not of the requested form.
    Malformed,
    /// More heads than the limit (`limits.pending_ids`), or more authors than a statement on data nodes names.
    TooManyIds,
    /// A temporary table hides one of the definition's, or has another form.
    TemporaryTables,
    /// Under the session's settings, Spider may have read rows of one data node at several moments.
    SeveralMoments,
    /// The reader's follow list is a different one at each query.
    FollowsChanging,
    /// A row occurs twice where no key forbids it: the procedure may fail.
    DuplicateRow,
}
