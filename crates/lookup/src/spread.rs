//! What is asked otherwise where Spider keeps the messages on data nodes.
//!
//! Read without an index of its own, a table of Spider's has each data node sent one statement with the whole condition, and the node
//! uses its index; by an index, Spider sends one for each range, one after the other. On a node all of a statement's reads are of one
//! moment as long as Spider opens a transaction there that repeats reads: the session's settings are asked for in the same statement.
//! No key says that an id is there once, so what comes is looked over: where the procedure might fail, it runs.

use super::by_author;
use super::guess::Guess;
use super::hints::{Hints, Marks, Scope};
use super::lookup::{Lookup, MOST_AUTHORS};
use super::plan::Step;
use crate::Unusable;
use headwater_sql::{hex, quoted};
use headwater_timeline::{Form, Head};
use headwater_wire::resultset::{Row, Rows};

/// Authors of whom nothing is known whose heads are asked for by themselves beside the ranges of the others: each waits for a data node.
const MOST_UNKNOWN: usize = 8;
/// As many ids as make it likely that a head is among them.
const FEW: u32 = 3;
/// What a row of a guess is of: the follow list, a range, a head that was asked for by itself.
const FOLLOW: u64 = 1;
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

    /// What stands in a follow list's row beside the author: whether Spider's reads on a node are of one moment; else nothing.
    ///
    /// By default it opens a transaction of the session's isolation level on each node that a statement reads.
    pub(super) fn of_one_moment(&self) -> String {
        if !self.facts.are_spread() {
            return "NULL".into();
        }
        format!(
            "@@tx_isolation IN ({},{}) AND @@spider_sync_trx_isolation AND @@spider_sync_autocommit AND @@spider_semi_trx \
             AND @@spider_semi_trx_isolation=-1",
            hex("REPEATABLE-READ"),
            hex("SERIALIZABLE"),
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
        let mut known = Vec::with_capacity(authors.len());
        let mut unknown = Vec::new();
        for author in authors {
            match marks.get(scope, *author) {
                Some(mark) => known.push((*author, mark)),
                None => unknown.push(*author),
            }
        }
        if known.is_empty() || unknown.len() > MOST_UNKNOWN || authors.len() > MOST_AUTHORS {
            return None;
        }
        // Behind everything that was seen, ranges are as wide as from there on.
        let newest = known.iter().map(|(_, mark)| mark.head).max()?.min(bound);
        let lows = known
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
        let most_rows = most.saturating_add(authors.len().saturating_mul(8));
        Some(self.spread_guess(lows, unknown, newest, most_rows))
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
        let follows = format!(
            "(SELECT {},{},{FOLLOW} {} LIMIT {})",
            self.author_column(),
            self.of_one_moment(),
            self.follow_list(),
            MOST_AUTHORS + 1,
        );
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
        }
    }

    /// Takes apart the rows of a guess; `None`: the reader follows others, whom the hints learn of.
    ///
    /// # Errors
    /// When a row is not of numbers, Spider's reads may be of several moments, or a row is there twice.
    pub(super) fn take_apart(
        &self,
        guess: &Guess,
        rows: &Rows,
        hints: &mut Hints,
    ) -> Result<Option<Apart>, Unusable> {
        let (mut followed, mut messages, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows.iter() {
            let number = |column| row.u64(column).ok_or(Unusable::Malformed);
            let author = number(0)?;
            match number(2)? {
                FOLLOW => {
                    self.heed(row, 1)?;
                    followed.push(author);
                }
                HEAD if row.cell(1).is_none() => {}
                HEAD => alone.push(Head {
                    author,
                    id: number(1)?,
                }),
                _ => messages.push((author, number(1)?)),
            }
        }
        followed.sort_unstable();
        self.once(&followed)?;
        if followed != guess.authors() {
            let followed = followed.into();
            hints
                .follows
                .remember(self.scope(), self.call.reader, followed);
            return Ok(None);
        }
        let asked: Vec<u64> = guess.lows.iter().map(|(author, _)| *author).collect();
        let found = by_author::gathered(&asked, messages.into_iter())?;
        Ok(Some(Apart { found, alone }))
    }

    /// # Errors
    /// When this cell of a row says that Spider's reads may be of several moments.
    pub(super) fn heed(&self, row: Row<'_>, column: usize) -> Result<(), Unusable> {
        match self.facts.are_spread() && row.u64(column) != Some(1) {
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

    /// What is asked behind a guess that proved nothing: each head by itself, of whom the reader follows by now.
    pub(super) fn behind_guess(&self, guess: &Guess, hints: &mut Hints) -> Step {
        let followed = hints.follows.get(self.scope(), self.call.reader);
        let authors = followed.map_or_else(|| guess.authors(), |authors| authors.to_vec());
        let each = self.each_head_query(&authors);
        each.map_or_else(|| self.heads(), Step::EachHead)
    }
}
