//! Last step of a lookup: each top author's newest n ids at or below its head.
//!
//! One scan of ranges reads the authors whose hints say where those ids lie; the others are read one by one.
//! A range proves itself: n ids in it are the newest n, and fewer are all if it began at 0. Where it proves
//! neither, the author is queried once more, by itself.

use super::author_grouping;
use super::heads::{LookupHeads, TopAuthor};
use super::hints::AuthorRangeHints;
use super::lookup::{CallLookup, LookupResult, MAX_AUTHORS};
use crate::LookupError;
use headwater_sql::quoted;
use headwater_timeline::AuthorHead;
use headwater_timeline::definition::ProcedureForm;
use headwater_timeline::merge;
use headwater_wire::resultset::ResultSet;

/// Ranges of one class share the lowest bound among them, at most this many times as far down as the narrowest.
const CLASS_WIDTHS: u64 = 2;

/// The lists of one call's top authors, while they are read.
#[derive(Debug)]
pub struct TopAuthorLists {
    heads: Vec<AuthorHead>,
    authors: Vec<TopAuthorList>,
}

#[derive(Debug)]
struct TopAuthorList {
    head: AuthorHead,
    /// The range's lower bound; `None` where the author is queried by itself.
    lower_bound: Option<u64>,
    /// Its newest n ids, descending, once known.
    list: Option<Vec<u64>>,
}

impl TopAuthorLists {
    /// Takes the lists that came with the heads; hints give ranges for the others.
    #[must_use]
    pub fn new(
        lookup: &CallLookup<'_>,
        heads: LookupHeads,
        range_hints: &mut AuthorRangeHints,
    ) -> Self {
        let scope = lookup.scope();
        let authors = heads
            .top
            .into_iter()
            .map(|TopAuthor { head, list }| TopAuthorList {
                lower_bound: match list {
                    Some(_) => None,
                    None => {
                        range_hints.lower_bound(scope, head.author, head.id, lookup.definition.n)
                    }
                },
                head,
                list,
            });
        let authors = authors.collect();
        TopAuthorLists {
            heads: heads.heads,
            authors,
        }
    }

    /// The statements for the missing lists; each returns rows of author and id. Empty when all are known.
    #[must_use]
    pub fn queries(&self, lookup: &CallLookup<'_>) -> Vec<String> {
        let missing = || self.authors.iter().filter(|author| author.list.is_none());
        let ranges: Vec<(u64, u64)> = missing()
            .filter_map(|author| Some((author.head.author, author.lower_bound?)))
            .collect();
        let newest = missing().map(|author| author.head.id).max().unwrap_or(0);
        let single: Vec<AuthorHead> = missing()
            .filter(|author| author.lower_bound.is_none())
            .map(|author| author.head)
            .collect();
        [
            lookup.ranges_query(ranges, newest),
            lookup.per_author_lists_query(&single),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Reads the answers to [`Self::queries`]. Lists that they do not prove stay missing.
    ///
    /// # Errors
    /// When a row is malformed.
    pub fn read_replies(
        &mut self,
        lookup: &CallLookup<'_>,
        answers: &[ResultSet],
    ) -> Result<(), LookupError> {
        let truncated = answers
            .iter()
            .any(|rows| rows.len() >= lookup.max_list_rows());
        let missing = self
            .authors
            .iter_mut()
            .filter(|author| author.list.is_none());
        let mut missing: Vec<&mut TopAuthorList> = missing.collect();
        missing.sort_unstable_by_key(|author| author.head.author);
        let missing_authors: Vec<u64> = missing.iter().map(|author| author.head.author).collect();
        let ids_by_author = author_grouping::group_rows_by_author(&missing_authors, answers)?;
        for (author, mut ids) in missing.into_iter().zip(ids_by_author) {
            ids.retain(|id| *id <= author.head.id);
            let ids = lookup.newest_unique(ids)?;
            let proven = match author.lower_bound {
                None => true,
                // With fewer than n ids above a bound, older ones may follow.
                Some(low) => !truncated && (ids.len() == lookup.n() || low == 0),
            };
            author.lower_bound = None;
            author.list = proven.then_some(ids);
        }
        Ok(())
    }

    /// Builds the result once no list is missing, and updates the hints.
    ///
    /// # Errors
    /// When two authors have the same id (spread messages).
    pub fn into_result(
        self,
        lookup: &CallLookup<'_>,
        range_hints: &mut AuthorRangeHints,
    ) -> Result<LookupResult, LookupError> {
        let CallLookup {
            definition, call, ..
        } = *lookup;
        let scope = lookup.scope();
        let mut lists = Vec::with_capacity(self.authors.len());
        for author in self.authors {
            let ids = author.list.unwrap_or_default();
            range_hints.remember(scope, author.head.author, &ids, definition.n, call.form);
            lists.push(ids);
        }
        let all: usize = lists.iter().map(Vec::len).sum();
        let ids = merge::result_set(lists);
        if lookup.facts.is_spread() && ids.len() < all {
            return Err(LookupError::DuplicateRow);
        }
        Ok(LookupResult {
            ids,
            heads: match call.form {
                ProcedureForm::Newest => Vec::new(),
                ProcedureForm::Bounded | ProcedureForm::Heads => self.heads,
            },
        })
    }
}

impl CallLookup<'_> {
    /// An author's newest n ids, descending.
    ///
    /// # Errors
    /// When an id occurs twice (spread messages).
    pub(super) fn newest_unique(&self, mut ids: Vec<u64>) -> Result<Vec<u64>, LookupError> {
        if self.facts.is_spread() {
            ids.sort_unstable();
            self.require_unique(&ids)?;
        }
        Ok(merge::newest(ids, self.n()))
    }

    /// Maximum rows of a statement for lists.
    pub(super) fn max_list_rows(&self) -> usize {
        let n = self.n();
        n.saturating_mul(n).saturating_mul(4)
    }

    /// One scan for all ids in these ranges (see [`Self::ranges_condition`]).
    fn ranges_query(&self, ranges: Vec<(u64, u64)>, newest: u64) -> Option<String> {
        if ranges.is_empty() {
            return None;
        }
        let message = &self.definition.message;
        Some(format!(
            "SELECT hw_m.{},hw_m.{} FROM {} hw_m {} WHERE {} LIMIT {}",
            quoted(&message.author),
            quoted(&message.id),
            self.table_name(&message.table),
            self.index_hint(),
            self.ranges_condition(ranges, newest, true),
            self.max_list_rows(),
        ))
    }

    /// The condition that an id lies in one of these ranges, each an author's from a bound on; if `closed`, up to `newest`.
    ///
    /// Authors with ranges of similar width share one part: the server checks each row against the parts one after the other.
    pub(super) fn ranges_condition(
        &self,
        mut ranges: Vec<(u64, u64)>,
        newest: u64,
        closed: bool,
    ) -> String {
        let message = &self.definition.message;
        let (id, by) = (quoted(&message.id), quoted(&message.author));
        ranges.sort_unstable_by_key(|(_, low)| std::cmp::Reverse(*low));
        let width = |low: u64| newest.saturating_sub(low);
        let classes = ranges.chunk_by({
            let mut first = None;
            move |(_, before), (_, low)| {
                let first = first.get_or_insert(*before);
                let same = width(*low) <= width(*first).saturating_mul(CLASS_WIDTHS);
                if !same {
                    *first = *low;
                }
                same
            }
        });
        // For a longer list the server builds a table, which it does not pass to a data node.
        let listed = classes.flat_map(|class| {
            let low = class.last().map_or(0, |(_, low)| *low);
            class.chunks(MAX_AUTHORS).map(move |part| (part, low))
        });
        let parts: Vec<String> = listed
            .map(|(part, low)| {
                let authors: Vec<String> =
                    part.iter().map(|(author, _)| author.to_string()).collect();
                // The range is open below zero too, so that an invalid id is found, and refused.
                let within = match (low, closed) {
                    (0, false) => String::new(),
                    (0, true) => format!(" AND hw_m.{id}<={newest}"),
                    (_, false) => format!(" AND hw_m.{id}>={low}"),
                    (_, true) => format!(" AND hw_m.{id} BETWEEN {low} AND {newest}"),
                };
                format!("hw_m.{by} IN ({}){within}", authors.join(","))
            })
            .collect();
        parts.join(" OR ")
    }

    /// The statement for each author's newest n ids, one by one.
    fn per_author_lists_query(&self, authors: &[AuthorHead]) -> Option<String> {
        let message = &self.definition.message;
        let (id, by, table) = (
            quoted(&message.id),
            quoted(&message.author),
            self.table_name(&message.table),
        );
        let n = self.definition.n;
        let lists: Vec<String> = authors
            .iter()
            .map(|AuthorHead { author, id: head }| {
                format!(
                    "(SELECT {author},hw_m.{id} FROM {table} hw_m WHERE hw_m.{by}={author} \
                     AND hw_m.{id}<={head} ORDER BY hw_m.{id} DESC LIMIT {n})"
                )
            })
            .collect();
        (!lists.is_empty()).then(|| lists.join(" UNION ALL "))
    }
}
