//! The pull source far below the newest page: each head and each list looked up by itself.
//!
//! A correlated lookup of an author's head below a bound reads every message above the bound first.
//! With constants, the server descends the index straight to the bound, so page 500 costs what
//! page 2 costs; but it takes three statements one after the other, which loses near the top.

use super::pull::{Found, Heads, Known, Lookup};
use crate::session::reason::Reason;
use crate::session::result_table::Head;
use crate::timeline::definition::quoted;
use crate::timeline::merge;
use crate::wire::resultset::Rows;

/// So many messages of an author above the bound make a correlated lookup slower than one by one.
const MESSAGES_ABOVE: u128 = 20;
/// Most authors whose heads are looked up one by one in a single statement.
const DEEP_AUTHORS: usize = 500;

impl Lookup<'_> {
    /// True when a correlated lookup of heads would be slow: it reads every message above the bound.
    ///
    /// Measured: below about 20 messages an author it wins against looking up each head by itself.
    #[must_use]
    pub fn is_deep(&self) -> bool {
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

    /// Deep pages, step 1: the authors followed, at most `DEEP_AUTHORS` of them.
    #[must_use]
    pub fn authors_query(&self) -> String {
        let follower = &self.definition.follower;
        format!(
            "SELECT hw_f.{} FROM {} hw_f WHERE hw_f.{}={} LIMIT {}",
            quoted(&follower.author),
            self.name(&follower.table),
            quoted(&follower.reader),
            self.call.reader,
            DEEP_AUTHORS + 1,
        )
    }

    /// Deep pages, step 2: each author's head by itself; the server answers each from one descent of
    /// the index. `None` when there are no authors, or too many for one statement.
    ///
    /// # Errors
    /// When a row is no id.
    pub fn each_head_query(&self, authors: &Rows) -> Result<Option<String>, Reason> {
        let message = &self.definition.message;
        let (id, by, table) = (
            quoted(&message.id),
            quoted(&message.author),
            self.name(&message.table),
        );
        let bound = self.call.bound.unwrap_or(u64::MAX);
        if authors.is_empty() || authors.len() > DEEP_AUTHORS {
            return Ok(None);
        }
        let heads: Option<Vec<String>> = authors
            .iter()
            .map(|row| {
                let author = row.u64(0)?;
                Some(format!(
                    "SELECT {author},MAX(hw_m.{id}) FROM {table} hw_m \
                     WHERE hw_m.{by}={author} AND hw_m.{id}<={bound}"
                ))
            })
            .collect();
        Ok(Some(heads.ok_or(Reason::LookupFailed)?.join(" UNION ALL ")))
    }

    /// Deep pages, step 3: the newest n ids of each top author. `None` without authors.
    #[must_use]
    pub fn each_list_query(&self, heads: &Heads) -> Option<String> {
        let message = &self.definition.message;
        let (id, by, table) = (
            quoted(&message.id),
            quoted(&message.author),
            self.name(&message.table),
        );
        let n = self.definition.n;
        let lists: Vec<String> = heads
            .top
            .iter()
            .map(|(Head { author, id: head }, _)| {
                format!(
                    "(SELECT hw_m.{id} FROM {table} hw_m WHERE hw_m.{by}={author} \
                     AND hw_m.{id}<={head} ORDER BY hw_m.{id} DESC LIMIT {n})"
                )
            })
            .collect();
        (!lists.is_empty()).then(|| lists.join(" UNION ALL "))
    }

    /// Takes in the rows of deep step 2.
    ///
    /// # Errors
    /// As [`Self::read_heads`].
    pub fn read_each_head(&self, rows: &Rows) -> Result<Heads, Reason> {
        let mut authors = Vec::with_capacity(rows.len());
        for row in rows.iter().filter(|row| row.cell(1).is_some()) {
            let number = |column| row.u64(column).ok_or(Reason::LookupFailed);
            authors.push((
                Head {
                    author: number(0)?,
                    id: number(1)?,
                },
                Known::Nothing,
            ));
        }
        Ok(self.rank(authors))
    }

    /// The result of the deep way: the whole result set.
    ///
    /// # Errors
    /// When a row is no id.
    pub fn found_lists(&self, heads: Heads, lists: Option<&Rows>) -> Result<Found, Reason> {
        let ids: Option<Vec<u64>> = lists.map_or(Some(Vec::new()), |rows| {
            rows.iter().map(|row| row.u64(0)).collect()
        });
        let ids = merge::newest(ids.ok_or(Reason::LookupFailed)?, usize::MAX);
        let total = ids.len() as u64;
        Ok(Found {
            ids,
            rest: Vec::new(),
            total,
            heads: heads.heads,
        })
    }
}
