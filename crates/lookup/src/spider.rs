//! What is asked otherwise where Spider keeps the messages on data nodes.
//!
//! Read without an index of its own, a table of Spider's has each data node sent one statement with the whole condition, and the node
//! uses its index; by an index, Spider sends one for each range, one after the other. On a node all of a statement's reads are of one
//! moment as long as Spider opens a transaction there that repeats reads: the session's settings are asked for in the same statement.
//! No key says that an id is there once, so what comes is looked over: where the procedure might fail, it runs.

use super::author_grouping;
use super::hints::{AuthorRangeHints, HintScope};
use super::lookup::CallLookup;
use super::page_guess::{GuessResult, PageGuess};
use crate::LookupError;
use headwater_sql::{hex_literal, quoted};
use headwater_timeline::{AuthorHead, ProcedureForm};
use headwater_wire::resultset::ResultSet;

/// Authors of whom nothing is known whose heads are asked for by themselves beside the ranges of the others: each waits for a data node.
const MAX_UNKNOWN_HEADS: usize = 8;
/// As many ids as make it likely that a head is among them.
const MIN_RANGE_IDS: u32 = 3;
/// So many times the page is asked for where nothing says how its authors write: some write much, and are there more than once.
const FLOOR_PAGES: u128 = 8;
/// Messages of an author where the server does not say how many there are.
const DEFAULT_MESSAGES_PER_AUTHOR: u64 = 100;
/// What a row is of: the follow list, a range, a head that was asked for by itself, the session's settings.
pub(super) const FOLLOW: u64 = 1;
pub(super) const SETTINGS: u64 = 3;
const RANGE: u64 = 0;
const HEAD: u64 = 2;

/// What the rows of a guess hold beside the follow list.
#[derive(Debug)]
pub(super) struct GuessRows {
    /// The ids of each author in the ranges, in the order of [`PageGuess::lower_bounds`].
    pub(super) range_ids: Vec<Vec<u64>>,
    /// The heads that were asked for by themselves.
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

    /// The follow list, with its kind behind each author; and where messages are spread, a row that says whether Spider's reads on a node are
    /// of one moment.
    ///
    /// By default it opens a transaction of the session's isolation level on each node that a statement reads. That is asked for without a
    /// table: of a table of Spider's, a data node would say it of itself.
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

    /// The guess at a page with a bound: the ids that authors probably have right below it, and the heads of authors of whom nothing is known.
    pub(super) fn bounded_guess(
        &self,
        authors: &[u64],
        scope: HintScope,
        marks: &mut AuthorRangeHints,
    ) -> Option<PageGuess> {
        let bound = self.call.bound?;
        let n = self.definition.n;
        let most = self.max_list_rows();
        // Lists are wanted of n authors alone; where there are too many for all lists, heads are enough.
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
        let mut seen = Vec::with_capacity(authors.len());
        let mut unknown = Vec::new();
        for author in authors {
            match marks.get(scope, *author) {
                Some(mark) => seen.push((*author, mark)),
                None => unknown.push(*author),
            }
        }
        // Of many, ranges are asked for as the average author's ids lie: who has none there is asked for by itself.
        let supposed = match unknown.len() > MAX_UNKNOWN_HEADS {
            true => Some(self.default_lower_bound(bound)?),
            false if seen.is_empty() => return None,
            false => None,
        };
        // Behind everything that was seen, ranges are as wide as from there on.
        let newest = seen.iter().map(|(_, mark)| mark.head).max();
        let newest = newest.unwrap_or(bound).min(bound);
        let mut lows: Vec<(u64, u64)> = seen
            .into_iter()
            .map(|(author, mark)| {
                let low = match mark.head <= bound {
                    true if wanted == n => Some(mark.lower_bound),
                    // All of a few is little.
                    true if mark.lower_bound == 0 => Some(0),
                    true => marks
                        .lower_bound(scope, author, mark.head.saturating_sub(1), wanted)
                        .map(|low| low.max(mark.lower_bound)),
                    false => marks.lower_bound(scope, author, bound, wanted),
                };
                (author, low.unwrap_or(0))
            })
            .collect();
        if let Some(low) = supposed {
            lows.extend(unknown.drain(..).map(|author| (author, low)));
        }
        let most_rows = most.saturating_add(authors.len().saturating_mul(8));
        Some(self.spread_guess(lows, unknown, newest, most_rows))
    }

    /// The id from which on these many authors probably have a page together, as far as that can be reckoned.
    pub(super) fn page_floor(&self, authors: usize) -> Option<u64> {
        let newest = u128::from(self.spread_newest_id()?);
        let all = u128::from(self.messages_per_author()).saturating_mul(authors as u128);
        let wanted = u128::from(self.definition.n).saturating_mul(FLOOR_PAGES);
        let width = newest.saturating_mul(wanted).checked_div(all)?;
        u64::try_from(newest.saturating_sub(width)).ok()
    }

    /// The id from which on an author of whom nothing is known probably has its head at or below a bound.
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

    /// The guess: the follow list, then the ids of these authors from a bound on, then the heads of others. Rows are author, id and which of
    /// the three.
    pub(super) fn spread_guess(
        &self,
        mut lows: Vec<(u64, u64)>,
        alone: Vec<u64>,
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
        let heads = alone.iter().map(|author| {
            format!(
                "(SELECT {author},MAX(hw_m.{id}),{HEAD} FROM {table} hw_m WHERE hw_m.{by}={author} AND hw_m.{id}<={bound})"
            )
        });
        let parts: Vec<String> = [follows, ranges].into_iter().chain(heads).collect();
        lows.sort_unstable();
        PageGuess {
            query: parts.join(" UNION ALL "),
            lower_bounds: lows,
            single_authors: alone,
            max_rows: most_rows,
            follow_changes: 0,
        }
    }

    /// Takes apart the rows of a guess; or what they come to where the reader follows others, or there are too many.
    ///
    /// # Errors
    /// When a row is not of numbers, Spider's reads may be of several moments, or a row is there twice.
    pub(super) fn split_guess_rows(
        &self,
        guess: &PageGuess,
        rows: &ResultSet,
    ) -> Result<Result<GuessRows, GuessResult>, LookupError> {
        let (mut followed, mut messages, mut alone) = (Vec::new(), Vec::new(), Vec::new());
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
                        alone.push(AuthorHead { author, id });
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
        // Some are missing.
        if messages.len() >= guess.max_rows {
            return Ok(Err(GuessResult::Unproven));
        }
        if answered != guess.single_authors {
            return Err(LookupError::Malformed);
        }
        let asked: Vec<u64> = guess
            .lower_bounds
            .iter()
            .map(|(author, _)| *author)
            .collect();
        let found = author_grouping::group_by_author(&asked, messages.into_iter())?;
        Ok(Ok(GuessRows {
            range_ids: found,
            single_heads: alone,
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
    /// When one of these, which are sorted, is there twice, and no key says that it is not.
    pub(super) fn require_unique(&self, sorted: &[u64]) -> Result<(), LookupError> {
        let twice = |pair: &[u64]| pair.first() == pair.last();
        match self.facts.is_spread() && sorted.windows(2).any(twice) {
            true => Err(LookupError::DuplicateRow),
            false => Ok(()),
        }
    }
}
