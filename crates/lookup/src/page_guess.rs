//! Reads the newest page in one statement, with hints on the reader and its authors.
//!
//! The statement reads ranges that probably hold all n lists, on condition that the reader follows exactly the
//! expected authors: follow list and messages are of one moment. The answer proves itself. Each author's ids are
//! known from its range's bound upwards. So the n authors with the greatest heads are known when no other one can
//! have a head among them, and an author's list is known when its range held n ids or began at 0.

use std::sync::Arc;

use super::author_grouping;
use super::heads::{LookupHeads, TopAuthor};
use super::hints::{AuthorRangeHints, HintScope};
use super::lookup::CallLookup;
use super::spider::GuessRows;
use crate::LookupError;
use headwater_sql::quoted;
use headwater_timeline::{AuthorHead, ProcedureForm};
use headwater_wire::resultset::ResultSet;

/// A statement that may return the whole page.
#[derive(Debug)]
pub struct PageGuess {
    pub(super) query: String,
    /// Each followed author, and the bound from which on its ids are queried; sorted by author.
    pub(super) lower_bounds: Vec<(u64, u64)>,
    /// Followed authors whose heads are queried one by one.
    pub(super) single_authors: Vec<u64>,
    pub(super) max_rows: usize,
    /// How often the follow list differed from the expected one.
    pub(super) follow_changes: u32,
}

/// What the answer to a guess proves.
#[derive(Debug)]
pub(super) enum GuessResult {
    /// The heads are known, and perhaps lists.
    Heads(LookupHeads),
    /// All is known but the heads of `missing`, in ascending order.
    MissingHeads {
        known: Vec<TopAuthor>,
        missing: Vec<u64>,
    },
    /// Nothing.
    Unproven,
    /// The reader now follows these authors, in ascending order.
    FollowsChanged(Arc<[u64]>),
}

impl CallLookup<'_> {
    /// The guess for a reader who follows `authors`; `None` where the hints do not suffice.
    pub(super) fn newest_guess(
        &self,
        authors: &[u64],
        scope: HintScope,
        range_hints: &mut AuthorRangeHints,
    ) -> Option<PageGuess> {
        if authors.is_empty() || authors.len() > self.max_authors() {
            return None;
        }
        let mut known = Vec::with_capacity(authors.len());
        let mut unknown = Vec::new();
        for author in authors {
            match range_hints.get(scope, *author) {
                Some(hint) => known.push((hint, *author)),
                None => unknown.push(*author),
            }
        }
        known.sort_unstable_by_key(|(hint, _)| std::cmp::Reverse(hint.head));
        let newest_known = known.first().map(|(hint, _)| hint.head);
        // Of authors after the n-th, only ids that would put them before it matter.
        let nth = known
            .get(self.n().checked_sub(1)?)
            .map(|(hint, _)| hint.head);
        let floor = match nth {
            Some(nth) => nth,
            None if unknown.is_empty() => 0,
            None => self.page_floor(authors.len())?,
        };
        let newest = newest_known.unwrap_or(floor);
        let top = known
            .iter()
            .take(self.n())
            .map(|(hint, author)| (*author, hint.lower_bound));
        let others = known.iter().skip(self.n()).map(|(_, author)| *author);
        let others = others.chain(unknown).map(|author| (author, floor));
        let mut lows: Vec<(u64, u64)> = top.chain(others).collect();
        let most_rows = self.max_list_rows().saturating_add(authors.len());
        if self.facts.is_spread() {
            return Some(self.spread_guess(lows, Vec::new(), newest, most_rows));
        }
        let ranges = self.ranges_condition(lows.clone(), newest, false);
        let query = self.guarded_query(authors, &ranges, most_rows);
        lows.sort_unstable();
        Some(PageGuess {
            query,
            lower_bounds: lows,
            single_authors: Vec::new(),
            max_rows: most_rows,
            follow_changes: 0,
        })
    }

    /// The statement for ids that meet the condition, if the reader follows exactly these authors. (A reader follows an
    /// author once: the definition's check demands a unique key.)
    fn guarded_query(&self, authors: &[u64], condition: &str, most: usize) -> String {
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
            messages = self.table_name(&message.table),
            index = quoted(&self.facts.message_index),
            count = list.len(),
            list = list.join(","),
            follows = self.table_name(&follower.table),
            reader = quoted(&follower.reader),
            uid = self.call.reader,
        )
    }
}

impl PageGuess {
    /// The statement; its rows are author and id.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// The authors that the reader is expected to follow, in ascending order.
    pub(super) fn authors(&self) -> Vec<u64> {
        let range_authors = self.lower_bounds.iter().map(|(author, _)| *author);
        let mut authors: Vec<u64> = range_authors
            .chain(self.single_authors.iter().copied())
            .collect();
        authors.sort_unstable();
        authors
    }

    /// Reads the rows, and updates the hints: those that led to too short a list are forgotten; authors without messages are remembered.
    ///
    /// # Errors
    /// When a row is malformed, or an id occurs twice (spread messages).
    pub(super) fn read_rows(
        &self,
        lookup: &CallLookup<'_>,
        rows: &ResultSet,
        scope: HintScope,
        range_hints: &mut AuthorRangeHints,
    ) -> Result<GuessResult, LookupError> {
        let GuessRows {
            range_ids,
            single_heads,
        } = match lookup.facts.is_spread() {
            true => match lookup.split_guess_rows(self, rows)? {
                Ok(guess_rows) => guess_rows,
                Err(result) => return Ok(result),
            },
            // No rows: no messages, or another follow list. Too many rows: the result is cut off.
            false if rows.is_empty() || rows.len() >= self.max_rows => {
                return Ok(GuessResult::Unproven);
            }
            false => GuessRows {
                range_ids: author_grouping::group_rows_by_author(
                    &self.authors(),
                    std::slice::from_ref(rows),
                )?,
                single_heads: Vec::new(),
            },
        };
        let mut authors = Vec::with_capacity(range_ids.len());
        let mut without_ids = Vec::new();
        let without_list = |head| TopAuthor { head, list: None };
        authors.extend(single_heads.into_iter().map(without_list));
        for ((author, low), ids) in self.lower_bounds.iter().zip(range_ids) {
            let ids = lookup.newest_unique(ids)?;
            let Some(id) = ids.first().copied() else {
                match (*low, lookup.call.form) {
                    (0, ProcedureForm::Newest) => range_hints.remember_empty(scope, *author),
                    (0, _) => {}
                    _ => without_ids.push((*author, *low)),
                }
                continue;
            };
            let whole = ids.len() == lookup.n() || *low == 0;
            authors.push(TopAuthor {
                head: AuthorHead {
                    author: *author,
                    id,
                },
                list: whole.then_some(ids),
            });
        }
        let known = match without_ids.is_empty() {
            true => Vec::new(),
            false => authors.clone(),
        };
        let heads = lookup.rank(authors)?;
        // An author without rows has its head, if any, below the bound it was queried from.
        let last = match heads.top.get(lookup.n() - 1) {
            Some(author) => author.head.id,
            None => 0,
        };
        // A bounded call needs the head of each author.
        let wants_all = lookup.call.form != ProcedureForm::Newest;
        let missing = without_ids
            .iter()
            .filter(|(_, low)| wants_all || *low > last);
        let missing: Vec<u64> = missing.map(|(author, _)| *author).collect();
        if !missing.is_empty() {
            return Ok(match lookup.facts.is_spread() {
                true => GuessResult::MissingHeads { known, missing },
                false => GuessResult::Unproven,
            });
        }
        for author in heads.top.iter().filter(|author| author.list.is_none()) {
            range_hints.forget(scope, author.head.author);
        }
        Ok(GuessResult::Heads(heads))
    }
}
