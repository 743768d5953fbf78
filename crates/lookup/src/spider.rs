//! Lookups where Spider keeps the messages on data nodes.
//!
//! Read without an index, a Spider table sends each data node one statement with the whole condition, and the node uses its own index.
//! Read by an index, it sends one statement for each range, one after the other. A statement's reads on a node are of one moment as long as
//! Spider opens a transaction with repeatable reads there, so the same statement queries the session's settings.
//! No key makes an id unique, so the rows are checked: where the procedure might fail, it runs instead.

use super::author_grouping;
use super::hints::{AuthorRangeHints, HintScope};
use super::lookup::CallLookup;
use super::page_guess::{GuessResult, PageGuess};
use crate::LookupError;
use headwater_sql::{hex_literal, quoted};
use headwater_timeline::{AuthorHead, ProcedureForm};
use headwater_wire::resultset::ResultSet;

/// Maximum authors without hints whose heads are queried one by one beside the ranges; each waits for a data node.
const MAX_UNKNOWN_HEADS: usize = 8;
/// The number of ids among which a head is likely.
const MIN_RANGE_IDS: u32 = 3;
/// The size of a range in pages where there are no hints: some authors write much, and occur more than once.
const FLOOR_PAGES: u128 = 8;
/// Messages of an author where the server has no statistics.
const DEFAULT_MESSAGES_PER_AUTHOR: u64 = 100;
/// The kind of a row: follow list, range, single head, or the session's settings.
pub(super) const FOLLOW: u64 = 1;
pub(super) const SETTINGS: u64 = 3;
const RANGE: u64 = 0;
const HEAD: u64 = 2;

/// The rows of a guess, without the follow list.
#[derive(Debug)]
pub(super) struct GuessRows {
    /// The ids of each author in the ranges, in the order of [`PageGuess::lower_bounds`].
    pub(super) range_ids: Vec<Vec<u64>>,
    /// The heads that were queried one by one.
    pub(super) single_heads: Vec<AuthorHead>,
}

impl CallLookup<'_> {
    /// How the message table is read by ranges.
    pub(super) fn index_hint(&self) -> String {
        match self.facts.is_spread() {
            true => "USE INDEX ()".into(),
            false => format!("FORCE INDEX ({})", quoted(&self.facts.message_index)),
        }
    }

    /// The follow list, with its kind after each author; where messages are spread, also a row that shows whether Spider's reads on a node
    /// are of one moment.
    ///
    /// By default Spider opens a transaction of the session's isolation level on each node that a statement reads. The settings are queried
    /// without a table: with a Spider table, a data node would report its own.
    pub(super) fn follow_branch(&self) -> String {
        let settings = match self.facts.is_spread() {
            true => format!(
                "(SELECT 0,@@tx_isolation IN ({},{}) AND @@spider_sync_trx_isolation AND @@spider_sync_autocommit AND @@spider_semi_trx \
                 AND @@spider_semi_trx_isolation=-1,{SETTINGS}) UNION ALL ",
                hex_literal("REPEATABLE-READ"),
                hex_literal("SERIALIZABLE"),
            ),
            false => String::new(),
        };
        format!(
            "{settings}(SELECT {},NULL,{FOLLOW} {} LIMIT {})",
            self.author_column(),
            self.follow_list_clause(),
            self.max_authors().saturating_add(1),
        )
    }

    /// The guess at a page with a bound: the ids that authors probably have right below it, and the heads of authors without hints.
    pub(super) fn bounded_guess(
        &self,
        authors: &[u64],
        scope: HintScope,
        range_hints: &mut AuthorRangeHints,
    ) -> Option<PageGuess> {
        let bound = self.call.bound?;
        let n = self.definition.n;
        let most = self.max_list_rows();
        // Only n authors need lists. Where there are too many authors for all lists, heads are enough.
        let each = most.checked_div(authors.len().saturating_mul(2))?;
        let wanted = match self.call.form {
            ProcedureForm::Heads => MIN_RANGE_IDS,
            ProcedureForm::Newest | ProcedureForm::Bounded => n
                .min(u32::try_from(each).unwrap_or(n))
                .max(MIN_RANGE_IDS.min(n)),
        };
        if authors.len() > self.max_authors() {
            return None;
        }
        let mut hinted = Vec::with_capacity(authors.len());
        let mut unknown = Vec::new();
        for author in authors {
            match range_hints.get(scope, *author) {
                Some(hint) => hinted.push((*author, hint)),
                None => unknown.push(*author),
            }
        }
        // Many authors without hints get the average author's range; those without ids in it are then queried one by one.
        let default_low = match unknown.len() > MAX_UNKNOWN_HEADS {
            true => Some(self.default_lower_bound(bound)?),
            false if hinted.is_empty() => return None,
            false => None,
        };
        // Above everything known, ranges are as wide as from there on.
        let newest = hinted.iter().map(|(_, hint)| hint.head).max();
        let newest = newest.unwrap_or(bound).min(bound);
        let mut lows: Vec<(u64, u64)> = hinted
            .into_iter()
            .map(|(author, hint)| {
                let low = match hint.head <= bound {
                    true if wanted == n => Some(hint.lower_bound),
                    // All of its few ids are cheap to read.
                    true if hint.lower_bound == 0 => Some(0),
                    true => range_hints
                        .lower_bound(scope, author, hint.head.saturating_sub(1), wanted)
                        .map(|low| low.max(hint.lower_bound)),
                    false => range_hints.lower_bound(scope, author, bound, wanted),
                };
                (author, low.unwrap_or(0))
            })
            .collect();
        if let Some(low) = default_low {
            lows.extend(unknown.drain(..).map(|author| (author, low)));
        }
        let most_rows = most.saturating_add(authors.len().saturating_mul(8));
        Some(self.spread_guess(lows, unknown, newest, most_rows))
    }

    /// The id from which on this many authors probably have a page together, if that can be estimated.
    pub(super) fn page_floor(&self, authors: usize) -> Option<u64> {
        let newest = u128::from(self.spread_newest_id()?);
        let all = u128::from(self.messages_per_author()).saturating_mul(authors as u128);
        let wanted = u128::from(self.definition.n).saturating_mul(FLOOR_PAGES);
        let width = newest.saturating_mul(wanted).checked_div(all)?;
        u64::try_from(newest.saturating_sub(width)).ok()
    }

    /// The id from which on an author without hints probably has its head at or below a bound.
    fn default_lower_bound(&self, bound: u64) -> Option<u64> {
        let newest = self.spread_newest_id()?;
        let gap = newest.checked_div(self.messages_per_author())?;
        let width = gap.saturating_mul(u64::from(2 * MIN_RANGE_IDS));
        Some(bound.min(newest).saturating_sub(width))
    }

    fn spread_newest_id(&self) -> Option<u64> {
        let spread = self.facts.is_spread();
        self.facts.newest_id.filter(|_| spread)
    }

    fn messages_per_author(&self) -> u64 {
        self.facts
            .messages_per_author
            .unwrap_or(DEFAULT_MESSAGES_PER_AUTHOR)
            .max(1)
    }

    /// The guess: the follow list, then these authors' ids from a bound on, then the heads of others. A row is author, id and kind.
    pub(super) fn spread_guess(
        &self,
        mut lows: Vec<(u64, u64)>,
        single_authors: Vec<u64>,
        newest: u64,
        most_rows: usize,
    ) -> PageGuess {
        let message = &self.definition.message;
        let (by, id) = (quoted(&message.author), quoted(&message.id));
        let table = self.table_name(&message.table);
        let follows = self.follow_branch();
        let ranges = format!(
            "(SELECT hw_m.{by},hw_m.{id},{RANGE} FROM {table} hw_m {} WHERE ({}){within} LIMIT {most_rows})",
            self.index_hint(),
            self.ranges_condition(lows.clone(), newest, false),
            within = match self.call.bound {
                Some(bound) => format!(" AND hw_m.{id}<={bound}"),
                None => String::new(),
            },
        );
        let bound = self.call.bound.unwrap_or(u64::MAX);
        let heads = single_authors.iter().map(|author| {
            format!(
                "(SELECT {author},MAX(hw_m.{id}),{HEAD} FROM {table} hw_m WHERE hw_m.{by}={author} AND hw_m.{id}<={bound})"
            )
        });
        let parts: Vec<String> = [follows, ranges].into_iter().chain(heads).collect();
        lows.sort_unstable();
        PageGuess {
            query: parts.join(" UNION ALL "),
            lower_bounds: lows,
            single_authors,
            max_rows: most_rows,
            follow_changes: 0,
        }
    }

    /// Splits the rows of a guess by kind. The inner `Err` is the guess's result: the reader follows others, or there are too many rows.
    ///
    /// # Errors
    /// When a row is malformed or occurs twice, or Spider's reads may be of several moments.
    pub(super) fn split_guess_rows(
        &self,
        guess: &PageGuess,
        rows: &ResultSet,
    ) -> Result<Result<GuessRows, GuessResult>, LookupError> {
        let (mut followed, mut messages, mut single_heads) = (Vec::new(), Vec::new(), Vec::new());
        let mut answered = Vec::new();
        let mut of_one_moment = false;
        for row in rows.iter() {
            let number = |column| row.u64(column).ok_or(LookupError::Malformed);
            let author = number(0)?;
            match number(2)? {
                SETTINGS => of_one_moment = row.u64(1) == Some(1),
                FOLLOW => followed.push(author),
                HEAD => {
                    answered.push(author);
                    if row.cell(1).is_some() {
                        let id = number(1)?;
                        single_heads.push(AuthorHead { author, id });
                    }
                }
                _ => messages.push((author, number(1)?)),
            }
        }
        self.require_one_moment(of_one_moment)?;
        followed.sort_unstable();
        self.require_unique(&followed)?;
        if followed != guess.authors() {
            return Ok(Err(GuessResult::FollowsChanged(followed.into())));
        }
        // The rows are cut off.
        if messages.len() >= guess.max_rows {
            return Ok(Err(GuessResult::Unproven));
        }
        if answered != guess.single_authors {
            return Err(LookupError::Malformed);
        }
        let range_authors: Vec<u64> = guess
            .lower_bounds
            .iter()
            .map(|(author, _)| *author)
            .collect();
        let range_ids = author_grouping::group_by_author(&range_authors, messages.into_iter())?;
        Ok(Ok(GuessRows {
            range_ids,
            single_heads,
        }))
    }

    /// # Errors
    /// When Spider's reads may be of several moments.
    pub(super) fn require_one_moment(&self, of_one_moment: bool) -> Result<(), LookupError> {
        match self.facts.is_spread() && !of_one_moment {
            true => Err(LookupError::SeveralMoments),
            false => Ok(()),
        }
    }

    /// # Errors
    /// When one of these sorted ids occurs twice and no key forbids it.
    pub(super) fn require_unique(&self, sorted: &[u64]) -> Result<(), LookupError> {
        let twice = |pair: &[u64]| pair.first() == pair.last();
        match self.facts.is_spread() && sorted.windows(2).any(twice) {
            true => Err(LookupError::DuplicateRow),
            false => Ok(()),
        }
    }
}
