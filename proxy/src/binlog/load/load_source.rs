//! One round of filling an index: follow lists, then messages of the authors in them.
//!
//! A load and the stream meet without locks. The index records every change that is applied from the moment a load begins. The rows are
//! read at some later moment, and the position of the log after the rows, in the same round trip. Replaying the recorded changes over the
//! rows makes them exact once everything up to that position is applied: a row that changed meanwhile is as its last change left it, all
//! others are as they were read.

use std::collections::BTreeMap;

use crate::account::{AccountConnection, AccountError};
use crate::binlog::Binlog;
use crate::binlog::cached_timeline::CachedTimeline;
use crate::binlog::comparisons::ComparedIndexEntry;
use crate::binlog::error::BinlogError;
use crate::binlog::row_decoding::{all_numbers, log_end, number_lists};
use crate::binlog::timeline_memory::{MissingMessages, TimelineMemory};
use headwater_log::assembler::LogStreamError;
use headwater_log::replication_state::StreamGeneration;
use headwater_lookup::backlog::BacklogRequest;
use headwater_timeline::index::{BinlogPosition, LoadComparison, LoadTicket};
use headwater_wire::resultset::ResultSet;

pub(super) const AUTHORS_PER_QUERY: usize = 128;
/// The most messages or follows per reply. A reply that has this many proves nothing.
pub(super) const ROWS_PER_QUERY: usize = 20_000;

/// The source and the target of a load.
pub(super) struct LoadSource<'a> {
    pub(super) binlog: &'a Binlog,
    pub(super) generation: StreamGeneration,
    pub(super) timeline: &'a CachedTimeline,
    pub(super) status: &'static str,
    pub(super) conn: &'a mut AccountConnection,
    /// A load was cancelled since its list holds a number below 0: the next one would be as well.
    pub(super) met_negative: bool,
}

impl LoadSource<'_> {
    pub(super) fn note_negative(&mut self, entry: ComparedIndexEntry) {
        self.met_negative = true;
        self.timeline.warn_of_negative(entry);
    }

    /// Begins loads, if the stream reports everything committed from the index's position on. The locks keep that true meanwhile; if it
    /// ends later, the index is emptied and the loads are void.
    pub(super) fn begin<T>(&self, begin: impl FnOnce(&mut TimelineMemory) -> T) -> Option<T> {
        let state = self.binlog.state();
        let base = state
            .replication
            .loads_from(self.generation, self.timeline.id())?;
        let mut index = self.timeline.index_mut();
        (index.position() >= base).then(|| begin(&mut index))
    }

    /// Loads the follow lists that are not resident, and returns them.
    pub(super) async fn load_follows(
        &mut self,
        requests: &[BacklogRequest],
    ) -> Result<BTreeMap<u64, Vec<u64>>, BinlogError> {
        let tickets = self.begin(|index| {
            let readers = requests.iter().map(|request| request.reader);
            let begun = readers.filter_map(|reader| Some((reader, index.begin_reader(reader)?)));
            begun.collect::<Vec<(u64, LoadTicket)>>()
        });
        let mut tickets = tickets.unwrap_or_default();
        let mut loaded = BTreeMap::new();
        let mut done = self.load_lists(&mut tickets, &mut loaded).await;
        while done.is_ok()
            && let Some((reader, ticket)) = tickets.pop()
        {
            done = self.load_list(reader, ticket, &mut loaded).await;
        }
        let mut index = self.timeline.index_mut();
        for (_, ticket) in tickets {
            index.cancel_load(ticket);
        }
        drop(index);
        done.map(|()| loaded)
    }

    /// Loads several lists in one statement. Leaves the tickets if the reply would be too long.
    async fn load_lists(
        &mut self,
        tickets: &mut Vec<(u64, LoadTicket)>,
        loaded: &mut BTreeMap<u64, Vec<u64>>,
    ) -> Result<(), BinlogError> {
        if tickets.is_empty() {
            return Ok(());
        }
        let readers: Vec<u64> = tickets.iter().map(|(reader, _)| *reader).collect();
        let Some(query) = self.timeline.tables.follows_query(&readers, ROWS_PER_QUERY) else {
            return Ok(());
        };
        let (rows, end) = self.query(&query).await?;
        let Some(mut read) = number_lists(&rows, ROWS_PER_QUERY).ok_or_else(not_a_number)? else {
            return Ok(());
        };
        let mut index = self.timeline.index_mut();
        for (reader, ticket) in tickets.drain(..) {
            if read.negative.contains(&reader) {
                index.cancel_load(ticket);
                self.note_negative(ComparedIndexEntry::Reader(reader));
                continue;
            }
            let authors = read.lists.remove(&reader).unwrap_or_default();
            self.store_list(&mut index, (reader, ticket), authors, end, loaded);
        }
        Ok(())
    }

    /// Loads one list of any length, unless it is too long to be cached.
    async fn load_list(
        &mut self,
        reader: u64,
        ticket: LoadTicket,
        loaded: &mut BTreeMap<u64, Vec<u64>>,
    ) -> Result<(), BinlogError> {
        let most = self.timeline.max_follows();
        let query = self
            .timeline
            .tables
            .reader_follows_query(reader, most.saturating_add(1));
        let Some(query) = query else {
            self.timeline.index_mut().cancel_load(ticket);
            return Ok(());
        };
        let reply = self.query(&query).await;
        let mut index = self.timeline.index_mut();
        match reply {
            Ok((rows, end)) => {
                match all_numbers::<1>(&rows) {
                    Some(authors) => {
                        let authors = authors.into_iter().flatten().collect();
                        self.store_list(&mut index, (reader, ticket), authors, end, loaded);
                    }
                    None => {
                        index.cancel_load(ticket);
                        self.note_negative(ComparedIndexEntry::Reader(reader));
                    }
                }
                Ok(())
            }
            Err(error) => {
                index.cancel_load(ticket);
                Err(error)
            }
        }
    }

    /// Ends the load of a list, which is cached unless it is too long.
    fn store_list(
        &self,
        index: &mut TimelineMemory,
        (reader, ticket): (u64, LoadTicket),
        mut authors: Vec<u64>,
        end: BinlogPosition,
        loaded: &mut BTreeMap<u64, Vec<u64>>,
    ) {
        // A reply that is as long as its limit is cut off, whatever it repeats.
        let is_too_long = authors.len() > self.timeline.max_follows();
        // The table may hold a pair twice.
        authors.sort_unstable();
        authors.dedup();
        if is_too_long {
            index.cancel_load(ticket);
            self.timeline.mark_too_long(reader);
        } else {
            let compared = index.loaded_reader(ticket, authors.clone(), end);
            self.record_comparison(ComparedIndexEntry::Reader(reader), compared);
            loaded.insert(reader, authors);
        }
    }

    /// Counts how loaded rows compare with what memory had from another server.
    pub(super) fn record_comparison(&self, entry: ComparedIndexEntry, compared: LoadComparison) {
        let database = self.timeline.database();
        self.binlog.comparisons.record(database, entry, compared);
    }

    /// Loads messages of authors, as far as they are not resident.
    pub(super) async fn load_messages(
        &mut self,
        missing: &[MissingMessages],
    ) -> Result<(), BinlogError> {
        match &self.timeline.tables.schema.key {
            None => self.load_ids(missing).await,
            Some(key) => self.load_keyed(key.kind, missing).await,
        }
    }

    pub(super) async fn query(
        &mut self,
        query: &str,
    ) -> Result<(ResultSet, BinlogPosition), BinlogError> {
        let failed = BinlogError::while_doing("rows cannot be loaded");
        let answers = self.conn.load(&[query, self.status]).await;
        let mut answers = answers.map_err(&failed)?.into_iter();
        let both = answers.next().zip(answers.next());
        let (rows, end) = both.ok_or_else(|| failed(AccountError::Unexpected))?;
        let (_, end) = log_end(end.row(0))?;
        Ok((rows, end))
    }
}

pub(super) fn not_a_number() -> BinlogError {
    LogStreamError::Malformed("a row that should hold numbers from 0 on".into()).into()
}
