//! The newest page in one statement, by what hints say of the reader and of the authors it follows.
//!
//! The statement reads ranges of ids that probably hold all n lists, on the condition that the reader
//! follows exactly the authors expected: follow list and messages are of one moment. What comes back
//! proves itself. Every author's ids are known from its range's bound upwards; so the n authors with the
//! greatest heads are known when no other one could have a head among them, and an author's list is
//! known when its range held n ids or began at 0.

use super::by_author;
use super::heads::{Heads, TopAuthor};
use super::hints::{Hints, Marks, Scope};
use super::lookup::{Lookup, MOST_AUTHORS};
use super::spread::Apart;
use crate::Unusable;
use headwater_sql::quoted;
use headwater_timeline::{Form, Head};
use headwater_wire::resultset::Rows;

/// A statement that may bring the whole newest page.
#[derive(Debug)]
pub struct Guess {
    pub(super) query: String,
    /// Each author followed, and the bound from which on its ids are asked for; by author.
    pub(super) lows: Vec<(u64, u64)>,
    /// Authors followed whose heads are asked for by themselves.
    pub(super) alone: Vec<u64>,
    pub(super) most_rows: usize,
}

impl Lookup<'_> {
    /// The guess for a reader who follows these authors; `None` where the hints are too few.
    pub(super) fn guess(&self, authors: &[u64], scope: Scope, marks: &mut Marks) -> Option<Guess> {
        if authors.is_empty() || authors.len() > MOST_AUTHORS {
            return None;
        }
        let mut known = Vec::with_capacity(authors.len());
        let mut unknown = Vec::new();
        for author in authors {
            match marks.get(scope, *author) {
                Some(mark) => known.push((mark, *author)),
                None => unknown.push(*author),
            }
        }
        known.sort_unstable_by_key(|(mark, _)| std::cmp::Reverse(mark.head));
        let newest = known.first()?.0.head;
        // Of authors behind the n-th, only ids that would put them before it are of interest.
        let nth = known
            .get(self.n().checked_sub(1)?)
            .map(|(mark, _)| mark.head);
        if nth.is_none() && !unknown.is_empty() {
            return None;
        }
        let top = known
            .iter()
            .take(self.n())
            .map(|(mark, author)| (*author, mark.low));
        let behind = known.iter().skip(self.n()).map(|(_, author)| *author);
        let behind = behind
            .chain(unknown)
            .map(|author| (author, nth.unwrap_or(0)));
        let mut lows: Vec<(u64, u64)> = top.chain(behind).collect();
        let most_rows = self.most_list_rows().saturating_add(authors.len());
        if self.facts.are_spread() {
            return Some(self.spread_guess(lows, Vec::new(), newest, most_rows));
        }
        let ranges = self.ranges(lows.clone(), newest, false);
        let query = self.guarded(authors, &ranges, most_rows);
        lows.sort_unstable();
        Some(Guess {
            query,
            lows,
            alone: Vec::new(),
            most_rows,
        })
    }

    /// The ids that meet the condition, if the reader follows exactly these authors. (A reader follows
    /// an author once: the definition's check demands a unique key.)
    fn guarded(&self, authors: &[u64], condition: &str, most: usize) -> String {
        let follower = &self.definition.follower;
        let message = &self.definition.message;
        let author = quoted(&follower.author);
        let list: Vec<String> = authors.iter().map(u64::to_string).collect();
        format!(
            "SELECT hw_m.{by},hw_m.{id} FROM {messages} hw_m FORCE INDEX ({index}) WHERE \
             (SELECT COUNT(*)={count} AND SUM(hw_f.{author} IN ({list}))={count} \
             FROM {follows} hw_f WHERE hw_f.{reader}={uid}) AND ({condition}) LIMIT {most}",
            by = quoted(&message.author),
            id = quoted(&message.id),
            messages = self.name(&message.table),
            index = quoted(&self.facts.message_index),
            count = list.len(),
            list = list.join(","),
            follows = self.name(&follower.table),
            reader = quoted(&follower.reader),
            uid = self.call.reader,
        )
    }
}

impl Guess {
    /// The statement; its rows are author and id.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Whom it expected the reader to follow, in ascending order.
    pub(super) fn authors(&self) -> Vec<u64> {
        let asked = self.lows.iter().map(|(author, _)| *author);
        let mut authors: Vec<u64> = asked.chain(self.alone.iter().copied()).collect();
        authors.sort_unstable();
        authors
    }

    /// Takes in the rows; `None` when they do not prove which authors have the greatest heads. Marks
    /// that led to too short a list are forgotten.
    ///
    /// # Errors
    /// When a row is no id.
    pub(super) fn read(
        &self,
        lookup: &Lookup<'_>,
        rows: &Rows,
        scope: Scope,
        hints: &mut Hints,
    ) -> Result<Option<Heads>, Unusable> {
        // No rows: no messages, or another follow list. Too many: some are missing.
        if rows.is_empty() || rows.len() >= self.most_rows {
            return Ok(None);
        }
        let Apart { found, alone } = match lookup.facts.are_spread() {
            true => match lookup.take_apart(self, rows, hints)? {
                Some(apart) => apart,
                None => return Ok(None),
            },
            false => Apart {
                found: by_author::gather(&self.authors(), std::slice::from_ref(rows))?,
                alone: Vec::new(),
            },
        };
        let mut authors = Vec::with_capacity(found.len());
        let mut unseen = 0;
        let by_itself = |head| TopAuthor { head, list: None };
        authors.extend(alone.into_iter().map(by_itself));
        for ((author, low), ids) in self.lows.iter().zip(found) {
            let ids = lookup.newest(ids)?;
            let Some(id) = ids.first().copied() else {
                unseen = unseen.max(*low);
                continue;
            };
            let whole = ids.len() == lookup.n() || *low == 0;
            authors.push(TopAuthor {
                head: Head {
                    author: *author,
                    id,
                },
                list: whole.then_some(ids),
            });
        }
        let heads = lookup.rank(authors)?;
        // An author without rows has its head, if any, below the bound it was asked from.
        let last = match heads.top.get(lookup.n() - 1) {
            Some(author) => author.head.id,
            None => 0,
        };
        // A call with a bound leaves the head of each author.
        let wants_all = lookup.call.form != Form::Newest;
        if unseen > last || (wants_all && unseen > 0) {
            return Ok(None);
        }
        for author in heads.top.iter().filter(|author| author.list.is_none()) {
            hints.marks.forget(scope, author.head.author);
        }
        Ok(Some(heads))
    }
}
