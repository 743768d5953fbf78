//! A proposal: a section of the settings, its obstacles, and the statement's shape in words.

use std::fmt;

use crate::definition::{FeedDefinition, MessageDefinition, TieOrder};
use crate::table_check::FeedObstacle;

/// The feed that a statement would belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedProposal {
    /// Its section, named after the table of messages.
    pub definition: FeedDefinition,
    /// How the statement selects authors.
    pub author_clause: AuthorClause,
    /// It also requests one more author.
    pub or_single_author: bool,
    /// A message may have several rows, which `ties = "id"` orders.
    pub has_several_rows: bool,
    /// The author column of the other feed, which is needed as well.
    pub together_with: Option<String>,
    /// The obstacles, as the table check reports them.
    pub obstacles: Vec<FeedObstacle>,
}

/// How a statement selects authors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorClause {
    /// By a list.
    List,
    /// By a join with the follow table.
    Join,
    /// By a LEFT JOIN with the follow table, and a condition that requires a matching row.
    OuterJoin,
    /// By IN and a SELECT.
    Subquery,
    /// By EXISTS.
    Exists,
}

impl fmt::Display for FeedProposal {
    /// The statement's shape in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MessageDefinition { table, author, .. } = &self.definition.message;
        let follow = self.definition.follow.as_ref();
        let follow = follow.map_or("", |follow| follow.table.as_str());
        match self.author_clause {
            AuthorClause::List => write!(f, "{table} whose {author} is in a list")?,
            AuthorClause::Join => write!(f, "join of {table} with {follow}")?,
            AuthorClause::OuterJoin => write!(f, "LEFT JOIN of {table} with {follow}")?,
            AuthorClause::Subquery => {
                write!(f, "{table} whose {author} is IN (SELECT ... FROM {follow})")?
            }
            AuthorClause::Exists => write!(f, "{table} for which EXISTS finds a row of {follow}")?,
        }
        match (self.or_single_author, self.author_clause) {
            (true, AuthorClause::List) => write!(f, ", or is one more"),
            (true, _) => write!(f, ", or which one author wrote"),
            (false, _) => Ok(()),
        }?;
        if let Some(other) = &self.together_with {
            write!(f, ", together with the feed by {other}")?;
        }
        if self.definition.ties == TieOrder::Server {
            return Ok(());
        }
        match self.definition.key() {
            _ if self.has_several_rows => f.write_str(
                ", with several rows for a message: with ties = \"id\" every page comes from memory, its equal rows ordered by the ids of \
                 their tables; the server chooses that order anew for each page",
            ),
            Some(key) => write!(
                f,
                ", ordered by {key} alone: with ties = \"id\" every page comes from memory and has the larger id first where {key} is equal; \
                 the server chooses that order anew for each page"
            ),
            None => Ok(()),
        }
    }
}
