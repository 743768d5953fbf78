//! One round of filling an index: follow lists, then messages of the authors on them.
//!
//! A load and the stream meet without locks. The index notes every change that is applied from the moment a load is
//! begun; the rows are seen at some moment behind that one; and the position of the log is asked for behind the rows,
//! in the same round trip. Replaying what was noted over the rows makes them exact once everything up to that position
//! is applied: a row that changed meanwhile is as its last change left it, all others are as they were seen.

use std::collections::BTreeMap;

use crate::account::{AccountError, Conn};
use crate::binlog::Binlog;
use crate::binlog::comparisons::Entry;
use crate::binlog::error::BinlogError;
use crate::binlog::memory::{Lack, Memory};
use crate::binlog::place::Place;
use crate::binlog::rows::{all, lists, log_end};
use crate::index::{Comparison, Position, Ticket};
use crate::log::events::Lost;
use crate::log::following::Generation;
use crate::source::backlog::Want;
use crate::wire::resultset::Rows;

/// Authors in one statement.
pub(super) const AUTHORS: usize = 128;
/// Messages, or follows, in one answer. An answer that has so many proves nothing.
pub(super) const ROWS: usize = 20_000;

/// Where rows are loaded from, and into what.
pub(super) struct Source<'a> {
    pub(super) binlog: &'a Binlog,
    pub(super) generation: Generation,
    pub(super) place: &'a Place,
    pub(super) status: &'static str,
    pub(super) conn: &'a mut Conn,
}

impl Source<'_> {
    /// Begins loads, if everything that is committed from the index's position on is told by the stream. Nothing of that
    /// can change while they are begun; if it does behind that, the index is emptied and they are void.
    pub(super) fn begin<T>(&self, begin: impl FnOnce(&mut Memory) -> T) -> Option<T> {
        let state = self.binlog.state();
        let base = state
            .following
            .loads_from(self.generation, self.place.number())?;
        let mut index = self.place.index_mut();
        (index.position() >= base).then(|| begin(&mut index))
    }

    /// Loads the follow lists that are not resident, and returns them.
    pub(super) async fn follows(
        &mut self,
        wants: &[Want],
    ) -> Result<BTreeMap<u64, Vec<u64>>, BinlogError> {
        let tickets = self.begin(|index| {
            let readers = wants.iter().map(|want| want.reader);
            let begun = readers.filter_map(|reader| Some((reader, index.begin_reader(reader)?)));
            begun.collect::<Vec<(u64, Ticket)>>()
        });
        let mut tickets = tickets.unwrap_or_default();
        let mut loaded = BTreeMap::new();
        let mut done = self.lists_of(&mut tickets, &mut loaded).await;
        while done.is_ok()
            && let Some((reader, ticket)) = tickets.pop()
        {
            done = self.list_of(reader, ticket, &mut loaded).await;
        }
        let mut index = self.place.index_mut();
        for (_, ticket) in tickets {
            index.give_up(ticket);
        }
        drop(index);
        done.map(|()| loaded)
    }

    /// Several in one statement. Leaves the tickets where that is too much for one answer.
    async fn lists_of(
        &mut self,
        tickets: &mut Vec<(u64, Ticket)>,
        loaded: &mut BTreeMap<u64, Vec<u64>>,
    ) -> Result<(), BinlogError> {
        if tickets.is_empty() {
            return Ok(());
        }
        let readers: Vec<u64> = tickets.iter().map(|(reader, _)| *reader).collect();
        let Some(query) = self.place.tables.follows_query(&readers, ROWS) else {
            return Ok(());
        };
        let (rows, end) = self.ask(&query).await?;
        let Some(mut lists) = lists(&rows, ROWS).ok_or_else(no_number)? else {
            return Ok(());
        };
        let mut index = self.place.index_mut();
        for (reader, ticket) in tickets.drain(..) {
            let authors = lists.remove(&reader).unwrap_or_default();
            self.keep_list(&mut index, (reader, ticket), authors, end, loaded);
        }
        Ok(())
    }

    /// One by itself, whatever its length, if it is not too long to be kept.
    async fn list_of(
        &mut self,
        reader: u64,
        ticket: Ticket,
        loaded: &mut BTreeMap<u64, Vec<u64>>,
    ) -> Result<(), BinlogError> {
        let most = self.place.most_follows();
        let query = self
            .place
            .tables
            .follow_query(reader, most.saturating_add(1));
        let Some(query) = query else {
            self.place.index_mut().give_up(ticket);
            return Ok(());
        };
        let asked = self.ask(&query).await;
        let asked = asked.and_then(|(rows, end)| {
            let authors = all::<1>(&rows).ok_or_else(no_number)?;
            Ok((authors.into_iter().flatten().collect::<Vec<u64>>(), end))
        });
        let mut index = self.place.index_mut();
        match asked {
            Ok((authors, end)) => {
                self.keep_list(&mut index, (reader, ticket), authors, end, loaded);
                Ok(())
            }
            Err(error) => {
                index.give_up(ticket);
                Err(error)
            }
        }
    }

    /// Ends the load of a list, if it is not too long to be kept.
    fn keep_list(
        &self,
        index: &mut Memory,
        (reader, ticket): (u64, Ticket),
        authors: Vec<u64>,
        end: Position,
        loaded: &mut BTreeMap<u64, Vec<u64>>,
    ) {
        if authors.len() > self.place.most_follows() {
            index.give_up(ticket);
            self.place.leave_out(reader);
        } else {
            let compared = index.loaded_reader(ticket, authors.clone(), end);
            self.compared(Entry::Reader(reader), compared);
            loaded.insert(reader, authors);
        }
    }

    /// Counts how rows compare with what was known of them beside another server.
    pub(super) fn compared(&self, entry: Entry, compared: Comparison) {
        let database = self.place.database();
        self.binlog.comparisons.note(database, entry, compared);
    }

    /// Loads messages of authors, as far as they are not resident.
    pub(super) async fn messages(&mut self, lacks: &[Lack]) -> Result<(), BinlogError> {
        match &self.place.tables.names.key {
            None => self.ids(lacks).await,
            Some(key) => self.keyed(key.kind, lacks).await,
        }
    }

    /// Rows, and behind them the end of the log.
    pub(super) async fn ask(&mut self, query: &str) -> Result<(Rows, Position), BinlogError> {
        let failed = BinlogError::while_doing("rows cannot be loaded");
        let answers = self.conn.load(&[query, self.status]).await;
        let mut answers = answers.map_err(&failed)?.into_iter();
        let both = answers.next().zip(answers.next());
        let (rows, end) = both.ok_or_else(|| failed(AccountError::Unexpected))?;
        let (_, end) = log_end(end.row(0))?;
        Ok((rows, end))
    }
}

pub(super) fn no_number() -> BinlogError {
    Lost::Malformed("a row that should hold numbers from 0 on".into()).into()
}
