//! Why the answers to a lookup cannot be used.

/// What is wrong with them. Then the server's own procedure runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// A row is not what was asked for.
    Malformed,
    /// There are more heads than may be held (`limits.pending_ids`), or more authors than a statement on data nodes names.
    TooManyIds,
    /// A temporary table hides one of the definition's, or has another form.
    TemporaryTables,
    /// Rows that Spider read on one data node may be of several moments, by the session's settings.
    SeveralMoments,
    /// The reader follows others each time that is asked.
    FollowsChanging,
    /// A row is there twice, where no key says that it is not: the procedure may fail.
    DuplicateRow,
}
