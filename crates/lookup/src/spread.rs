//! What is asked otherwise where Spider keeps the messages on data nodes.
//!
//! Read without an index of its own, a table of Spider's has each data node sent one statement with the whole condition, and the node
//! uses its index; by an index, Spider sends one for each range, one after the other. On a node all of a statement's reads are of one
//! moment as long as Spider opens a transaction there that repeats reads: the session's settings are asked for in the same statement.
//! No key says that an id is there once, so what comes is looked over: where the procedure might fail, it runs.

use super::by_author;
use super::guess::{Guess, GuessSeen};
use super::hints::{Marks, Scope};
use super::lookup::Lookup;
use crate::Unusable;
use headwater_sql::{hex, quoted};
use headwater_timeline::{Form, Head};
use headwater_wire::resultset::Rows;

/// Authors of whom nothing is known whose heads are asked for by themselves beside the ranges of the others: each waits for a data node.
const MOST_UNKNOWN: usize = 8;
/// As many ids as make it likely that a head is among them.
const FEW: u32 = 3;
/// So many times the page is asked for where nothing says how its authors write: some write much, and are there more than once.
const PAGES: u128 = 8;
/// Messages of an author where the server does not say how many there are.
const USUAL: u64 = 100;
/// What a row is of: the follow list, a range, a head that was asked for by itself, the session's settings.
pub(super) const FOLLOW: u64 = 1;
pub(super) const SETTINGS: u64 = 3;
const RANGE: u64 = 0;
const HEAD: u64 = 2;

/// What the rows of a guess hold beside the follow list.
#[derive(Debug)]
pub(super) struct Apart {
    /// The ids of each author in the ranges, in the order of [`Guess::lows`].
    pub(super) found: Vec<Vec<u64>>,
    /// The heads that were asked for by themselves.
    pub(super) alone: Vec<Head>,
}

impl Lookup<'_> {
    /// How the message table is read by ranges.
    pub(super) fn index_hint(&self) -> String {
        match self.facts.are_spread() {
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
        let settings = match self.facts.are_spread() {
            true => format!(
                "(SELECT 0,@@tx_isolation IN ({},{}) AND @@spider_sync_trx_isolation AND @@spider_sync_autocommit AND @@spider_semi_trx \
                 AND @@spider_semi_trx_isolation=-1,{SETTINGS}) UNION ALL ",
                hex("REPEATABLE-READ"),
                hex("SERIALIZABLE"),
            ),
            false => String::new(),
        };
        format!(
            "{settings}(SELECT {},NULL,{FOLLOW} {} LIMIT {})",
            self.author_column(),
            self.follow_list(),
            self.most_authors().saturating_add(1),
        )
    }

    /// The guess at a page with a bound: the ids that authors probably have right below it, and the heads of authors of whom nothing is known.
    pub(super) fn bounded_guess(
        &self,
        authors: &[u64],
        scope: Scope,
        marks: &mut Marks,
    ) -> Option<Guess> {
        let bound = self.call.bound?;
        let n = self.definition.n;
        let most = self.most_list_rows();
        // Lists are wanted of n authors alone; where there are too many for all lists, heads are enough.
        let each = most.checked_div(authors.len().saturating_mul(2))?;
        let wanted = match self.call.form {
            Form::Heads => FEW,
            Form::Newest | Form::Bounded => n.min(u32::try_from(each).unwrap_or(n)).max(FEW.min(n)),
        };
        if authors.len() > self.most_authors() {
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
        let supposed = match unknown.len() > MOST_UNKNOWN {
            true => Some(self.usual_low(bound)?),
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
                    true if wanted == n => Some(mark.low),
                    // All of a few is little.
                    true if mark.low == 0 => Some(0),
                    true => marks
                        .low(scope, author, mark.head.saturating_sub(1), wanted)
                        .map(|low| low.max(mark.low)),
                    false => marks.low(scope, author, bound, wanted),
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
    pub(super) fn floor(&self, authors: usize) -> Option<u64> {
        let newest = u128::from(self.spread_newest()?);
        let all = u128::from(self.usual_messages()).saturating_mul(authors as u128);
        let wanted = u128::from(self.definition.n).saturating_mul(PAGES);
        let width = newest.saturating_mul(wanted).checked_div(all)?;
        u64::try_from(newest.saturating_sub(width)).ok()
    }

    /// The id from which on an author of whom nothing is known probably has its head at or below a bound.
    fn usual_low(&self, bound: u64) -> Option<u64> {
        let newest = self.spread_newest()?;
        let gap = newest.checked_div(self.usual_messages())?;
        let width = gap.saturating_mul(u64::from(2 * FEW));
        Some(bound.min(newest).saturating_sub(width))
    }

    fn spread_newest(&self) -> Option<u64> {
        let spread = self.facts.are_spread();
        self.facts.newest_id.filter(|_| spread)
    }

    fn usual_messages(&self) -> u64 {
        self.facts.messages_per_author.unwrap_or(USUAL).max(1)
    }

    /// The guess: the follow list, then the ids of these authors from a bound on, then the heads of others. Rows are author, id and which of
    /// the three.
    pub(super) fn spread_guess(
        &self,
        mut lows: Vec<(u64, u64)>,
        alone: Vec<u64>,
        newest: u64,
        most_rows: usize,
    ) -> Guess {
        let message = &self.definition.message;
        let (by, id) = (quoted(&message.author), quoted(&message.id));
        let table = self.name(&message.table);
        let follows = self.follow_branch();
        let ranges = format!(
            "(SELECT hw_m.{by},hw_m.{id},{RANGE} FROM {table} hw_m {} WHERE ({}){within} LIMIT {most_rows})",
            self.index_hint(),
            self.ranges(lows.clone(), newest, false),
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
        Guess {
            query: parts.join(" UNION ALL "),
            lows,
            alone,
            most_rows,
            changes: 0,
        }
    }

    /// Takes apart the rows of a guess; or what they come to where the reader follows others, or there are too many.
    ///
    /// # Errors
    /// When a row is not of numbers, Spider's reads may be of several moments, or a row is there twice.
    pub(super) fn take_apart(
        &self,
        guess: &Guess,
        rows: &Rows,
    ) -> Result<Result<Apart, GuessSeen>, Unusable> {
        let (mut followed, mut messages, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        let mut answered = Vec::new();
        let mut of_one_moment = false;
        for row in rows.iter() {
            let number = |column| row.u64(column).ok_or(Unusable::Malformed);
            let author = number(0)?;
            match number(2)? {
                SETTINGS => of_one_moment = row.u64(1) == Some(1),
                FOLLOW => followed.push(author),
                HEAD => {
                    answered.push(author);
                    if row.cell(1).is_some() {
                        let id = number(1)?;
                        alone.push(Head { author, id });
                    }
                }
                _ => messages.push((author, number(1)?)),
            }
        }
        self.heed(of_one_moment)?;
        followed.sort_unstable();
        self.once(&followed)?;
        if followed != guess.authors() {
            return Ok(Err(GuessSeen::Others(followed.into())));
        }
        // Some are missing.
        if messages.len() >= guess.most_rows {
            return Ok(Err(GuessSeen::Nothing));
        }
        if answered != guess.alone {
            return Err(Unusable::Malformed);
        }
        let asked: Vec<u64> = guess.lows.iter().map(|(author, _)| *author).collect();
        let found = by_author::gathered(&asked, messages.into_iter())?;
        Ok(Ok(Apart { found, alone }))
    }

    /// # Errors
    /// When Spider's reads may be of several moments.
    pub(super) fn heed(&self, of_one_moment: bool) -> Result<(), Unusable> {
        match self.facts.are_spread() && !of_one_moment {
            true => Err(Unusable::Moments),
            false => Ok(()),
        }
    }

    /// # Errors
    /// When one of these, which are sorted, is there twice, and no key says that it is not.
    pub(super) fn once(&self, sorted: &[u64]) -> Result<(), Unusable> {
        let twice = |pair: &[u64]| pair.first() == pair.last();
        match self.facts.are_spread() && sorted.windows(2).any(twice) {
            true => Err(Unusable::Twice),
            false => Ok(()),
        }
    }
}
