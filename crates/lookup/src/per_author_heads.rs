//! Queries the heads of a page far below the newest, one author at a time.
//!
//! A correlated lookup of a head below a bound reads every message above the bound first. With constants the server
//! descends the index straight to the bound, so page 500 costs what page 2 costs. But the authors must be known
//! beforehand, which costs more than it saves near the top.

use std::sync::Arc;

use super::heads::{LookupHeads, TopAuthor};
use super::hints::{AuthorRangeHints, HintScope};
use super::lookup::{CallLookup, MAX_AUTHORS};
use super::spider::{FOLLOW, SETTINGS};
use crate::LookupError;
use headwater_sql::quoted;
use headwater_timeline::{AuthorHead, ProcedureForm};
use headwater_wire::resultset::ResultSet;

/// With this many messages of an author above the bound, a correlated lookup is slower than one by one.
const MAX_MESSAGES_ABOVE: u128 = 20;

/// A statement for authors' heads, one by one.
#[derive(Debug)]
pub struct PerAuthorHeads {
    query: String,
    /// The authors that the reader is expected to follow, in ascending order.
    followed: Arc<[u64]>,
    /// The authors of this statement.
    queried: Vec<u64>,
    /// The authors of later statements.
    remaining: Vec<u64>,
    /// Heads and lists known already.
    known: Vec<TopAuthor>,
    /// How often the follow list differed from the expected one.
    pub(super) follow_changes: u32,
}

/// What the answer proves.
#[derive(Debug)]
pub(super) enum PerAuthorHeadsResult {
    /// All heads are known.
    Complete(LookupHeads),
    /// Further heads are to be queried.
    Remaining(PerAuthorHeads),
    /// The reader now follows these authors, in ascending order.
    FollowsChanged(Arc<[u64]>),
}

impl PerAuthorHeads {
    /// The statement.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }
}

impl CallLookup<'_> {
    /// True when a correlated lookup of heads would be slow: it reads every message above the bound.
    ///
    /// Measured: below about 20 messages an author it wins against looking up each head by itself.
    pub(super) fn is_deep(&self) -> bool {
        let (Some(bound), Some(newest), Some(each)) = (
            self.call.bound,
            self.facts.newest_id,
            self.facts.messages_per_author,
        ) else {
            return false;
        };
        let above = u128::from(newest.saturating_sub(bound)) * u128::from(each);
        above > u128::from(newest) * MAX_MESSAGES_ABOVE
    }

    /// The statement for the followed authors, limited to one more than may be named.
    pub(super) fn follows_query(&self) -> String {
        format!(
            "SELECT {} {} LIMIT {}",
            self.author_column(),
            self.follow_list_clause(),
            self.max_authors().saturating_add(1)
        )
    }

    /// Builds the statement for the heads of `queried`. The reader is expected to follow `followed`, in ascending order; other authors are
    /// `known`. Where messages are spread, further statements follow if there are too many authors; otherwise the result is then `None`.
    pub(super) fn per_author_heads(
        &self,
        followed: Arc<[u64]>,
        mut queried: Vec<u64>,
        known: Vec<TopAuthor>,
        changes: u32,
    ) -> Option<PerAuthorHeads> {
        if queried.len() > MAX_AUTHORS && !self.facts.is_spread() {
            return None;
        }
        let remaining = queried.split_off(queried.len().min(MAX_AUTHORS));
        Some(PerAuthorHeads {
            query: self.per_author_heads_query(&queried),
            followed,
            queried,
            remaining,
            known,
            follow_changes: changes,
        })
    }

    /// The statement: each head from one descent of the index, and the follow list at that moment.
    fn per_author_heads_query(&self, authors: &[u64]) -> String {
        let message = &self.definition.message;
        let (id, by, table) = (
            quoted(&message.id),
            quoted(&message.author),
            self.table_name(&message.table),
        );
        let bound = self.call.bound.unwrap_or(u64::MAX);
        let follows = self.follow_branch();
        let heads = authors.iter().map(|author| {
            format!(
                "SELECT {author},MAX(hw_m.{id}),0 FROM {table} hw_m \
                 WHERE hw_m.{by}={author} AND hw_m.{id}<={bound}"
            )
        });
        let parts: Vec<String> = std::iter::once(follows).chain(heads).collect();
        parts.join(" UNION ALL ")
    }

    pub(super) fn author_column(&self) -> String {
        format!("hw_f.{}", quoted(&self.definition.follower.author))
    }

    pub(super) fn follow_list_clause(&self) -> String {
        let follower = &self.definition.follower;
        format!(
            "FROM {} hw_f WHERE hw_f.{}={}",
            self.table_name(&follower.table),
            quoted(&follower.reader),
            self.call.reader,
        )
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// When a row is malformed or occurs twice, Spider's reads may be of several moments, or there are too many heads.
    pub(super) fn read_per_author_heads(
        &self,
        step: &PerAuthorHeads,
        rows: &ResultSet,
        scope: HintScope,
        range_hints: &mut AuthorRangeHints,
    ) -> Result<PerAuthorHeadsResult, LookupError> {
        let (mut followed, mut queried) = (Vec::new(), Vec::new());
        let mut known = step.known.clone();
        let mut of_one_moment = false;
        for row in rows.iter() {
            let number = |column| row.u64(column).ok_or(LookupError::Malformed);
            let author = number(0)?;
            match number(2)? {
                SETTINGS => {
                    of_one_moment = row.u64(1) == Some(1);
                    continue;
                }
                FOLLOW => {
                    followed.push(author);
                    continue;
                }
                _ => {}
            }
            queried.push(author);
            if row.cell(1).is_some() {
                let id = number(1)?;
                known.push(TopAuthor {
                    head: AuthorHead { author, id },
                    list: None,
                });
            } else if self.call.form == ProcedureForm::Newest {
                range_hints.remember_empty(scope, author);
            }
        }
        self.require_one_moment(of_one_moment)?;
        followed.sort_unstable();
        self.require_unique(&followed)?;
        if *followed != *step.followed {
            return Ok(PerAuthorHeadsResult::FollowsChanged(followed.into()));
        }
        queried.sort_unstable();
        let mut expected = step.queried.clone();
        expected.sort_unstable();
        if queried != expected {
            return Err(LookupError::Malformed);
        }
        if step.remaining.is_empty() {
            return Ok(PerAuthorHeadsResult::Complete(self.rank(known)?));
        }
        let next = self.per_author_heads(
            Arc::clone(&step.followed),
            step.remaining.clone(),
            known,
            step.follow_changes,
        );
        next.map(PerAuthorHeadsResult::Remaining)
            .ok_or(LookupError::TooManyIds)
    }
}
