//! Runs threads in orders drawn by a checker. They share the stream's state, an index and cached rows.
//!
//! Each transaction posts a message and changes the text of another one, so both show the number of transactions: a page in which they
//! differ mixes two moments.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use headwater_rows::CachedRow;
use headwater_rows::template::{CacheKeyTable, ResultEnvelope};
use headwater_session::cached_rows::{CacheFill, MessageObservation, RowOutcome};
use headwater_timeline::index::{RowKey, TableId};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::{future, thread};

use super::cached_timeline::CachedTimeline;
use super::server_facts::ServerFacts;
use super::*;
use crate::tls::{TlsConnector, UpstreamTlsSection};
use headwater_log::applied_gtids::AppliedGtids;
use headwater_log::edits::RowEdits;
use headwater_log::queue::CommitWatermark;
use headwater_log::routes::TableRoutes;
use headwater_timeline::index::{BinlogPosition, TimelineChange};

const IDENTITY: &str = "the server";
const PLACE: TimelineId = TimelineId(0);
/// The message whose text changes.
const CHANGED: RowKey = RowKey {
    table: TableId::Messages(PLACE),
    id: 1,
};
const TRANSACTIONS: u64 = 3;
const FILLS: u64 = 3;
const PAGES: u64 = 3;
/// Orders drawn of each kind.
const ORDERS: usize = 20_000;
/// The first offset of the log.
const START: u64 = 100;

/// Shared by all threads.
struct InterleavingScenario {
    binlog: Arc<Binlog>,
    place: Arc<CachedTimeline>,
    generation: StreamGeneration,
    kept: Arc<CacheKeyTable>,
    /// How many transactions are readable on the server.
    committed: AtomicU64,
}

/// The end of the log after this many transactions.
fn end(transactions: u64) -> BinlogPosition {
    BinlogPosition {
        file: 1,
        offset: START + transactions,
    }
}

impl InterleavingScenario {
    fn new() -> InterleavingScenario {
        let connector = TlsConnector::new(&UpstreamTlsSection::default(), "127.0.0.1");
        let account = UpstreamAccount::new("127.0.0.1:1", "nobody", "", &connector.unwrap());
        let limits = BinlogLimits {
            memory_bytes: 1 << 20,
            index_bytes: 1 << 20,
            preload: false,
            wait_ms: 0,
            rows_bytes: 1 << 20,
            load_bytes: 1 << 20,
            transaction_rows: 1_000,
            event_bytes: 1 << 20,
            data_nodes: false,
        };
        let (binlog, _) = Binlog::new(account, FreshnessSection::default(), limits);
        let tables = TimelineTables::of(PLACE, &TimelineDefinition::classic(), "world");
        let timeline = Arc::new(CachedTimeline::new(tables, limits.memory_bytes));
        binlog
            .timelines
            .write()
            .unwrap()
            .push(Arc::clone(&timeline));
        let mut state = binlog.state();
        state.server = Some(Arc::new(ServerFacts::named(IDENTITY)));
        let replication = &mut state.replication;
        let told_from = (&[PLACE.into()][..], end(0));
        let routes = TableRoutes::clone(&replication.routes());
        let generation = replication.resume(end(0), routes, told_from, AppliedGtids::default());
        assert!(replication.confirm_start(generation));
        binlog.catch_up(&mut state);
        drop(state);
        InterleavingScenario {
            binlog,
            place: timeline,
            generation,
            kept: Arc::default(),
            committed: AtomicU64::new(0),
        }
    }

    /// The stream receives the transactions. Each becomes readable before or after that, and is applied once that is known.
    fn follow(&self) {
        for number in 1..=TRANSACTIONS {
            let is_readable_first = number % 2 == 0;
            if is_readable_first {
                self.committed.store(number, Ordering::SeqCst);
            }
            let mut edits = RowEdits::default();
            edits.add(CHANGED);
            let posted = TimelineChange::Posted {
                author: 1,
                key: 0,
                id: 10 + number,
            };
            let mut state = self.binlog.state();
            let changes = vec![(PLACE, posted)];
            self.binlog
                .receive(&mut state, end(number), changes, &edits);
            let waiting = state.replication.begin_release(self.generation).unwrap();
            drop(state);
            if !is_readable_first {
                self.committed.store(number, Ordering::SeqCst);
            }
            self.binlog
                .receive_watermark(self.generation, CommitWatermark::readable(waiting));
            self.binlog.state().replication.end_release(self.generation);
        }
    }

    /// A proof: all that was readable when it began is applied. Returns the number of those transactions.
    fn prove(&self) -> u64 {
        let begun = self.committed.load(Ordering::SeqCst);
        while self.binlog.state().replication.floor() < Some(end(begun)) {
            thread::yield_now();
        }
        begun
    }

    /// Caches the text from the server's reply.
    fn fill(&self) {
        for _ in 0..FILLS {
            let mark = self.binlog.mark_of(&self.place, IDENTITY.as_bytes());
            let text = self.committed.load(Ordering::SeqCst).to_string();
            self.prove();
            let row = MessageObservation {
                id: CHANGED.id,
                outcome: RowOutcome::Row(0..text.len()),
                joined_rows: Vec::new(),
            };
            let fill = CacheFill {
                cache: Arc::clone(&self.kept),
                key: Vec::new(),
                envelope_kind: 0,
                envelope: frame(),
                rows: vec![row],
                lists: Vec::new(),
            };
            let identity = IDENTITY.as_bytes();
            self.binlog
                .cache_rows(&self.place, identity, mark.unwrap(), &fill, text.as_bytes());
        }
    }

    /// Reads pages; returns how many were served from memory.
    fn read(&self) -> usize {
        let variant = self.kept.record_envelope(&[], 0, frame());
        let rows = self.binlog.row_cache().unwrap();
        let make = || {
            let posted = self.place.index().position().offset - START;
            let text = rows.lookup(CHANGED, variant, |kept, _| match kept {
                CachedRow::Row(text) => String::from_utf8(text.to_vec()).unwrap(),
                other => panic!("{other:?}"),
            })?;
            Some((posted, text.parse::<u64>().unwrap()))
        };
        let mut told = 0;
        for _ in 0..PAGES {
            let begun = self.prove();
            let identity = IDENTITY.as_bytes();
            let page = self
                .binlog
                .read_consistently(&self.place, identity, false, make);
            if let Some((posted, text)) = future::block_on(page) {
                told += 1;
                assert_eq!(posted, text, "of two moments");
                assert!(posted >= begun, "stale: {posted} of {begun}");
                assert!(posted <= self.committed.load(Ordering::SeqCst), "ahead");
            }
        }
        told
    }
}

fn frame() -> ResultEnvelope {
    ResultEnvelope {
        columns: 1,
        head_packets: Vec::new(),
        sequence: 0,
        last_payload: Vec::new(),
        status: 0,
    }
}

/// Pages served from memory, in all orders.
static TOLD: AtomicUsize = AtomicUsize::new(0);

fn order() {
    let scene = Arc::new(InterleavingScenario::new());
    let run = |work: fn(&InterleavingScenario)| {
        let scene = Arc::clone(&scene);
        thread::spawn(move || work(&scene))
    };
    let threads = [
        run(InterleavingScenario::follow),
        run(InterleavingScenario::fill),
        run(|scene| {
            TOLD.fetch_add(scene.read(), std::sync::atomic::Ordering::Relaxed);
        }),
    ];
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_page_of_cached_rows_is_of_one_moment_in_any_thread_order() {
    shuttle::check_random(order, ORDERS);
    shuttle::check_pct(order, ORDERS, 3);
    let told = TOLD.load(std::sync::atomic::Ordering::Relaxed);
    println!("{} orders, {told} pages from memory", 2 * ORDERS);
    assert!(told > ORDERS / 10, "{told} pages were told from memory");
}
