//! The heads of a page far below the newest: each looked up by itself.
//!
//! A correlated lookup of an author's head below a bound reads every message above the bound first.
//! With constants, the server descends the index straight to the bound, so page 500 costs what
//! page 2 costs; but the authors must be known beforehand, which loses near the top.

use super::heads::{Heads, TopAuthor};
use super::lookup::{Lookup, MOST_AUTHORS};
use crate::Unusable;
use headwater_sql::quoted;
use headwater_timeline::Head;
use headwater_wire::resultset::Rows;

/// So many messages of an author above the bound make a correlated lookup slower than one by one.
const MESSAGES_ABOVE: u128 = 20;

impl Lookup<'_> {
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
        above > u128::from(newest) * MESSAGES_ABOVE
    }

    /// The authors followed, more than `MOST_AUTHORS` at most by one.
    pub(super) fn follows_query(&self) -> String {
        format!(
            "SELECT {} {} LIMIT {}",
            self.author_column(),
            self.follow_list(),
            MOST_AUTHORS + 1
        )
    }

    /// Each author's head, answered from one descent of the index; and the follow list as it is at that
    /// moment. `None` when these are too many authors for one statement.
    pub(super) fn each_head_query(&self, authors: &[u64]) -> Option<String> {
        let message = &self.definition.message;
        let (id, by, table) = (
            quoted(&message.id),
            quoted(&message.author),
            self.name(&message.table),
        );
        let bound = self.call.bound.unwrap_or(u64::MAX);
        if authors.len() > MOST_AUTHORS {
            return None;
        }
        let follows = format!(
            "(SELECT {},{},1 {} LIMIT {})",
            self.author_column(),
            self.of_one_moment(),
            self.follow_list(),
            MOST_AUTHORS + 1
        );
        let heads = authors.iter().map(|author| {
            format!(
                "SELECT {author},MAX(hw_m.{id}),0 FROM {table} hw_m \
                 WHERE hw_m.{by}={author} AND hw_m.{id}<={bound}"
            )
        });
        let parts: Vec<String> = std::iter::once(follows).chain(heads).collect();
        Some(parts.join(" UNION ALL "))
    }

    pub(super) fn author_column(&self) -> String {
        format!("hw_f.{}", quoted(&self.definition.follower.author))
    }

    pub(super) fn follow_list(&self) -> String {
        let follower = &self.definition.follower;
        format!(
            "FROM {} hw_f WHERE hw_f.{}={}",
            self.name(&follower.table),
            quoted(&follower.reader),
            self.call.reader,
        )
    }

    /// Takes in the rows of [`Self::each_head_query`]; `None` when the reader follows others.
    ///
    /// # Errors
    /// As [`Self::read_heads`].
    pub(super) fn read_each_head(&self, rows: &Rows) -> Result<Option<Heads>, Unusable> {
        let (mut followed, mut asked) = (Vec::new(), Vec::new());
        let mut authors = Vec::new();
        for row in rows.iter() {
            let number = |column| row.u64(column).ok_or(Unusable::Malformed);
            let author = number(0)?;
            if number(2)? == 1 {
                self.heed(row, 1)?;
                followed.push(author);
                continue;
            }
            asked.push(author);
            if row.cell(1).is_some() {
                let id = number(1)?;
                authors.push(TopAuthor {
                    head: Head { author, id },
                    list: None,
                });
            }
        }
        followed.sort_unstable();
        asked.sort_unstable();
        self.once(&followed)?;
        (followed == asked).then(|| self.rank(authors)).transpose()
    }
}
