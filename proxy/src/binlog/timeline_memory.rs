//! A timeline's index, ordered by ids or by keys and ids.

use headwater_lookup::backlog::BacklogRequest;
use headwater_timeline::index::{
    AuthorLoadRequest, BinlogPosition, KeyedMessage, LoadComparison, LoadTicket, MessageRange,
    MissingEntries, NewestMessages, TimelineChange, TimelineIndex, TimelinePage, WindowItem,
};

#[derive(Debug)]
pub(super) enum TimelineMemory {
    Ids(TimelineIndex),
    Keyed(TimelineIndex<KeyedMessage>),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MissingMessages {
    pub(super) author: u64,
    /// The newest at or below this one are requested.
    pub(super) bound: Option<KeyedMessage>,
    /// How many.
    pub(super) n: usize,
}

macro_rules! of_each {
    ($memory:expr, $index:ident => $result:expr) => {
        match $memory {
            TimelineMemory::Ids($index) => $result,
            TimelineMemory::Keyed($index) => $result,
        }
    };
}

impl TimelineMemory {
    pub(super) fn new(has_key: bool, memory_bytes: usize) -> TimelineMemory {
        match has_key {
            true => TimelineMemory::Keyed(TimelineIndex::new(memory_bytes)),
            false => TimelineMemory::Ids(TimelineIndex::new(memory_bytes)),
        }
    }

    pub(super) fn set_budget(&mut self, memory_bytes: usize) {
        of_each!(self, index => index.set_budget(memory_bytes));
    }

    pub(super) fn position(&self) -> BinlogPosition {
        of_each!(self, index => index.position())
    }

    pub(super) fn apply(&mut self, changes: &[TimelineChange], upto: BinlogPosition) {
        of_each!(self, index => index.apply(changes, upto));
    }

    pub(super) fn take_contradiction(&mut self) -> Option<TimelineChange> {
        of_each!(self, index => index.take_contradiction())
    }

    pub(super) fn clear(&mut self) {
        of_each!(self, index => index.clear());
    }

    pub(super) fn suspend(&mut self) {
        of_each!(self, index => index.suspend());
    }

    pub(super) fn resume(&mut self, position: BinlogPosition) {
        of_each!(self, index => index.resume(position));
    }

    pub(super) fn resume_unconfirmed(&mut self, position: BinlogPosition) {
        of_each!(self, index => index.resume_unconfirmed(position));
    }

    pub(super) fn begin_anew(&mut self) {
        of_each!(self, index => index.reset());
    }

    pub(super) fn has_reader(&self, reader: u64) -> bool {
        of_each!(self, index => index.has_reader(reader))
    }

    pub(super) fn follows(&self, reader: u64) -> Option<Vec<u64>> {
        of_each!(self, index => index.follow_list(reader))
    }

    pub(super) fn begin_reader(&mut self, reader: u64) -> Option<LoadTicket> {
        of_each!(self, index => index.begin_reader_load(reader))
    }

    pub(super) fn loaded_reader(
        &mut self,
        ticket: LoadTicket,
        authors: Vec<u64>,
        end: BinlogPosition,
    ) -> LoadComparison {
        of_each!(self, index => index.accept_reader_rows(ticket, authors, end))
    }

    pub(super) fn cancel_load(&mut self, ticket: LoadTicket) {
        of_each!(self, index => index.abandon_load(ticket));
    }

    pub(super) fn is_nearly_full(&self) -> bool {
        of_each!(self, index => index.is_nearly_full())
    }

    pub(super) fn evicted(&self) -> u64 {
        of_each!(self, index => index.evicted_count())
    }

    /// Bytes, follows, authors and messages.
    pub(super) fn sizes(&self) -> [usize; 4] {
        of_each!(self, index => [index.bytes(), index.follow_count(), index.author_count(), index.message_count()])
    }

    /// A page of a classic timeline; an error where a key orders.
    pub(super) fn page(
        &self,
        reader: u64,
        bound: Option<u64>,
        n: usize,
    ) -> Result<TimelinePage, MissingEntries> {
        match self {
            TimelineMemory::Ids(index) => index.page(reader, bound, n),
            TimelineMemory::Keyed(_) => Err(MissingEntries::default()),
        }
    }

    /// The page of a reader who follows these authors; an error where a key orders.
    pub(super) fn page_of(
        &self,
        authors: &[u64],
        bound: Option<u64>,
        n: usize,
    ) -> Result<TimelinePage, Vec<u64>> {
        match self {
            TimelineMemory::Ids(index) => index.page_of(authors, bound, n),
            TimelineMemory::Keyed(_) => Err(authors.to_vec()),
        }
    }

    /// The newest messages of these authors, or the missing authors. If the id alone orders, keys are 0.
    pub(super) fn newest(
        &self,
        authors: &[u64],
        range: MessageRange<KeyedMessage>,
    ) -> Result<NewestMessages<KeyedMessage>, Vec<u64>> {
        match self {
            TimelineMemory::Keyed(index) => index.newest_messages(authors, range),
            TimelineMemory::Ids(index) => {
                let found = index.newest_messages(authors, range_of_ids(range))?;
                let items = found
                    .items
                    .into_iter()
                    .map(|id| KeyedMessage::from_key_and_id(0, id));
                Ok(NewestMessages {
                    items: items.collect(),
                    authors: found.authors,
                    complete: found.complete,
                })
            }
        }
    }

    /// Authors of whom a reader's page lacks messages. `follows`: the reader's list, if it was just loaded.
    pub(super) fn missing_authors(
        &self,
        request: BacklogRequest,
        follows: Option<&[u64]>,
    ) -> Vec<u64> {
        let missing = match (self, follows) {
            (TimelineMemory::Ids(index), Some(list)) => {
                index.page_of(list, request.bound, request.n).err()
            }
            (TimelineMemory::Ids(index), None) => {
                let page = index.page(request.reader, request.bound, request.n);
                page.err().map(|missing| missing.authors)
            }
            (TimelineMemory::Keyed(index), Some(list)) => {
                index.newest_messages(list, newest_range(request.n)).err()
            }
            (TimelineMemory::Keyed(index), None) => {
                let list = index.follow_list(request.reader);
                list.and_then(|list| index.newest_messages(&list, newest_range(request.n)).err())
            }
        };
        missing.unwrap_or_default()
    }

    pub(super) fn has_page(&self, request: BacklogRequest) -> bool {
        match self {
            TimelineMemory::Ids(index) => {
                index.page(request.reader, request.bound, request.n).is_ok()
            }
            TimelineMemory::Keyed(index) => {
                let list = index.follow_list(request.reader);
                list.is_some_and(|list| {
                    index
                        .newest_messages(&list, newest_range(request.n))
                        .is_ok()
                })
            }
        }
    }

    /// Begins loads of ids. Each request comes with its bound.
    pub(super) fn begin_ids(
        &mut self,
        missing: &[MissingMessages],
    ) -> Vec<(AuthorLoadRequest, Option<u64>)> {
        let TimelineMemory::Ids(index) = self else {
            return Vec::new();
        };
        let requests = missing.iter().filter_map(|request| {
            let bound = request.bound.map(WindowItem::id);
            Some((
                index.begin_author_load(request.author, bound, request.n)?,
                bound,
            ))
        });
        requests.collect()
    }

    pub(super) fn begin_keyed(
        &mut self,
        missing: &[MissingMessages],
    ) -> Vec<AuthorLoadRequest<KeyedMessage>> {
        let TimelineMemory::Keyed(index) = self else {
            return Vec::new();
        };
        let requests = missing.iter().filter_map(|request| {
            index.begin_author_load(request.author, request.bound, request.n)
        });
        requests.collect()
    }

    /// Accepts loaded ids, as [`TimelineIndex::accept_author_rows`].
    pub(super) fn loaded_ids(
        &mut self,
        ticket: LoadTicket,
        ids: Vec<u64>,
        down_to: Option<u64>,
        end: BinlogPosition,
    ) -> LoadComparison {
        match self {
            TimelineMemory::Ids(index) => index.accept_author_rows(ticket, ids, down_to, end),
            TimelineMemory::Keyed(_) => LoadComparison::None,
        }
    }

    /// The same for messages with keys.
    pub(super) fn loaded_keyed(
        &mut self,
        ticket: LoadTicket,
        items: Vec<KeyedMessage>,
        down_to: Option<KeyedMessage>,
        end: BinlogPosition,
    ) -> LoadComparison {
        match self {
            TimelineMemory::Keyed(index) => index.accept_author_rows(ticket, items, down_to, end),
            TimelineMemory::Ids(_) => LoadComparison::None,
        }
    }
}

fn range_of_ids(range: MessageRange<KeyedMessage>) -> MessageRange {
    MessageRange {
        upper: range.upper.map(WindowItem::id),
        lower: range.lower.id(),
        limit: range.limit,
    }
}

fn newest_range(most: usize) -> MessageRange<KeyedMessage> {
    MessageRange {
        upper: None,
        lower: KeyedMessage::LEAST,
        limit: most,
    }
}
