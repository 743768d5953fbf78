//! How much binary log the users' writes produce, and how fast the log reader parses it: on one thread, on events laid out as MariaDB's.
//!
//! A transaction is that of a one-row INSERT: GTID, query text, table map, row event and XID, each with a checksum, as in `fixtures/log`.

use std::time::{Duration, Instant};

use flate2::Crc;
use serde::Serialize;

use headwater_log::assembler::{EventOutcome, TransactionAssembler};
use headwater_log::event_reader::EventReader;
use headwater_log::evidence::TableRole;
use headwater_log::routes::{ColumnPosition, TableRoute, TableRoutes};
use headwater_timeline::definition::IdType;
use headwater_timeline::index::{BinlogPosition, TimelineId};

/// Events of a transaction.
const EVENTS_PER_TRANSACTION: u64 = 5;
/// Transactions that are laid out; they are read repeatedly.
const TRANSACTION_COUNT: u32 = 2_000;
/// Limit of row changes of a transaction, and of bytes of an event.
const MAX_EVENT_BYTES: usize = 1 << 20;
/// The average body length in the classic data set.
const BODY_BYTES: usize = 140;
/// The header before each event's body.
const HEADER_BYTES: usize = 19;
const CHECKSUM_BYTES: usize = 4;
const MAP_ID: [u8; 6] = [18, 0, 0, 0, 0, 0];

/// The log reader's throughput.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LogReadRates {
    /// Transactions a second.
    pub transactions_per_s: f64,
    /// Events a second.
    pub events_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Bytes of a message's transaction.
    pub message_bytes: u64,
    /// Bytes of a follow's transaction.
    pub follow_bytes: u64,
}

/// A log under construction.
#[derive(Debug, Default)]
struct SyntheticLog {
    bytes: Vec<u8>,
    end_position: u32,
}

impl SyntheticLog {
    fn push_event(&mut self, kind: u8, flags: u16, body: &[u8]) {
        let length = u32::try_from(HEADER_BYTES + body.len() + CHECKSUM_BYTES).unwrap_or(0);
        self.end_position = self.end_position.wrapping_add(length);
        let start = self.bytes.len();
        self.bytes
            .extend([0xc9, 0x94, 0x01, 0x6b, kind, 1, 0, 0, 0]);
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(self.end_position.to_le_bytes());
        self.bytes.extend(flags.to_le_bytes());
        self.bytes.extend(body);
        let mut crc = Crc::new();
        crc.update(self.bytes.get(start..).unwrap_or_default());
        self.bytes.extend(crc.sum().to_le_bytes());
    }

    fn push_transaction(&mut self, number: u32, statement: &str, map: &[u8], row: &[u8]) {
        let mut gtid = u64::from(number).to_le_bytes().to_vec();
        gtid.extend([0, 0, 0, 0, 0x0c]);
        gtid.resize(19, 0);
        self.push_event(0xa2, 8, &gtid);
        self.push_event(0xa0, 0, statement.as_bytes());
        self.push_event(0x13, 0, map);
        self.push_event(0x17, 0, row);
        self.push_event(0x10, 0, &u64::from(number).to_le_bytes());
    }

    fn push_message(&mut self, number: u32, author: u32) {
        let body = "x".repeat(BODY_BYTES);
        let mut map = [&MAP_ID[..], &[1, 0, 2], b"tl\0\x07message\0"].concat();
        map.extend([3, 3, 3, 15, 2, 255, 0, 0]);
        let mut row = [&MAP_ID[..], &[1, 0, 3, 7, 0xf8]].concat();
        row.extend(number.to_le_bytes());
        row.extend(author.to_le_bytes());
        row.push(u8::try_from(BODY_BYTES).unwrap_or(0));
        row.extend(body.as_bytes());
        let statement = format!("INSERT INTO message (user_id, body) VALUES ({author}, '{body}')");
        self.push_transaction(number, &statement, &map, &row);
    }

    fn push_follow(&mut self, number: u32, reader: u32, author: u32) {
        let map = [
            &MAP_ID[..],
            &[1, 0, 2],
            b"tl\0\x08follower\0",
            &[2, 3, 3, 0, 0],
        ]
        .concat();
        let mut row = [&MAP_ID[..], &[1, 0, 2, 3, 0xfc]].concat();
        row.extend(reader.to_le_bytes());
        row.extend(author.to_le_bytes());
        let statement =
            format!("INSERT INTO follower (user_id, follower_id) VALUES ({reader}, {author})");
        self.push_transaction(number, &statement, &map, &row);
    }
}

fn routes() -> TableRoutes {
    let kind = IdType::IntUnsigned;
    let route = |table, name: &str, columns| TableRoute {
        table_id: TimelineId(0).into(),
        table,
        database: "tl".into(),
        name: name.into(),
        columns: Some(columns),
        first: ColumnPosition { at: 0, kind },
        second: ColumnPosition { at: 1, kind },
        has_copies: false,
        has_mixed_signs: false,
        key: None,
    };
    TableRoutes {
        routes: vec![
            route(TableRole::Message, "message", 3),
            route(TableRole::Follower, "follower", 2),
        ],
        caseless: false,
    }
}

/// Reads a log to its end; returns the number of transactions with changes, or `None` if one cannot be parsed.
fn count_transactions(bytes: &[u8], routes: &TableRoutes) -> Option<u64> {
    let mut reader = EventReader::with_checksums(MAX_EVENT_BYTES, true);
    let start = BinlogPosition { file: 1, offset: 4 };
    let mut events = TransactionAssembler::starting_at(start, "binlog", MAX_EVENT_BYTES);
    let mut rest = bytes;
    let mut transactions = 0;
    while !rest.is_empty() {
        let step = reader
            .step(rest, &|kind: u8, first: &[u8]| {
                events.retention(kind, first, routes)
            })
            .ok()?;
        rest = rest.get(step.taken..).unwrap_or_default();
        let Some(event) = step.event else {
            continue;
        };
        loop {
            match events.process(&event, routes).ok()? {
                EventOutcome::Unfinished => {}
                EventOutcome::Transaction(..) => {
                    transactions += 1;
                    break;
                }
                EventOutcome::Nothing | EventOutcome::Passed(_) => break,
            }
        }
    }
    Some(transactions)
}

/// Runs the reader for so long on transactions of both kinds, `follows` of them for each message; `None` if it cannot parse them.
#[must_use]
pub fn measure(follows: f64, length: Duration) -> Option<LogReadRates> {
    let mut log = SyntheticLog::default();
    let (mut message_bytes, mut follow_bytes) = (0, 0);
    let mut due = 0.0;
    for number in 0..TRANSACTION_COUNT {
        let before = log.bytes.len();
        if due >= 1.0 {
            due -= 1.0;
            log.push_follow(number, number, number / 2);
            follow_bytes = log.bytes.len() - before;
        } else {
            due += follows;
            log.push_message(number, number / 3);
            message_bytes = log.bytes.len() - before;
        }
    }
    let routes = routes();
    let begun = Instant::now();
    let mut rounds = 0_u32;
    while rounds == 0 || begun.elapsed() < length {
        if count_transactions(&log.bytes, &routes)? != u64::from(TRANSACTION_COUNT) {
            return None;
        }
        rounds += 1;
    }
    let seconds = begun.elapsed().as_secs_f64().max(1e-9);
    let transactions = f64::from(rounds) * f64::from(TRANSACTION_COUNT) / seconds;
    Some(LogReadRates {
        transactions_per_s: transactions,
        events_per_s: transactions * EVENTS_PER_TRANSACTION as f64,
        bytes_per_s: f64::from(rounds) * log.bytes.len() as f64 / seconds,
        message_bytes: message_bytes as u64,
        follow_bytes: follow_bytes as u64,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_laid_out_is_read_as_what_it_is() {
        let mut log = SyntheticLog::default();
        log.push_message(7, 3);
        log.push_follow(8, 1, 3);
        assert_eq!(count_transactions(&log.bytes, &routes()), Some(2));
        // A log with a flipped bit is rejected.
        let last = log.bytes.len() - 40;
        *log.bytes.get_mut(last).unwrap() ^= 1;
        assert_ne!(count_transactions(&log.bytes, &routes()), Some(2));
        let parsed = measure(10.0, Duration::ZERO).unwrap();
        assert!(parsed.message_bytes > parsed.follow_bytes && parsed.follow_bytes > 150);
    }
}
