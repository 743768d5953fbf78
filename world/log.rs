//! The binary log as MariaDB writes it, with the full image of rows.

use std::sync::Arc;

use flate2::Crc;
use tokio::sync::Notify;

use crate::model::{ModelState, ModelTable, RowEdit, TableChange, WorldRow};
use crate::sql::CellValue;

const BASE: &str = "binlog.";
const MAGIC: usize = 4;
/// Events that a server wrote: the first is the format description at the start of a file.
const WRITTEN: &str = include_str!("../fixtures/log/mariadb-10.11.19/full.txt");
/// The time when the world begins.
const BEGINNING: u32 = 1_795_000_000;
/// The first server's id; its replacements have the next ids.
const FIRST_SERVER: u32 = 1;
/// Transactions in each log file of a replacement server.
const IN_A_FILE: u64 = 30;

/// The column that ALTER adds to a table.
pub(crate) const EXTRA: &str = "extra";

const QUERY: u8 = 2;
const STOP: u8 = 3;
const ROTATE: u8 = 4;
const XID: u8 = 16;
const TABLE_MAP: u8 = 19;
const WRITE_ROWS: u8 = 23;
const UPDATE_ROWS: u8 = 24;
const DELETE_ROWS: u8 = 25;
const HEARTBEAT: u8 = 27;
const GTID: u8 = 162;
const GTID_LIST: u8 = 163;
const ARTIFICIAL: u16 = 0x20;
const END_OF_STATEMENT: u16 = 1;
/// Flags of a GTID event whose transaction has no end event (DDL).
const STANDALONE: u8 = 1 | 32;

/// All log files. The last one is written to.
#[derive(Debug)]
pub(crate) struct ModelLog {
    files: Vec<LogFile>,
    /// The number of purged files; streams that have begun continue in them.
    purged: usize,
    /// The last GTID of each server; the very last one is at the end.
    last: LastGtids,
    /// The server that writes the log.
    server: u32,
    changed: Arc<Notify>,
}

/// Server ids and sequence numbers.
type LastGtids = Vec<(u32, u64)>;

#[derive(Debug, Default)]
struct LogFile {
    /// Each event's start offset, and the state that its transaction leads to; 0: no transaction.
    events: Vec<(u64, usize, Vec<u8>)>,
    end: u64,
    /// The last GTIDs before the file.
    before: LastGtids,
}

impl ModelLog {
    pub(crate) fn new() -> ModelLog {
        ModelLog::for_server(FIRST_SERVER, Arc::default())
    }

    /// An empty log of this server.
    fn for_server(server: u32, changed: Arc<Notify>) -> ModelLog {
        let mut log = ModelLog {
            files: Vec::new(),
            purged: 0,
            last: Vec::new(),
            server,
            changed,
        };
        log.begin();
        log
    }

    /// The log of a replica that has applied all up to this state, in its own files, and replaces the server.
    pub(crate) fn replicated(&self, last_state: usize) -> ModelLog {
        let mut log = ModelLog::for_server(self.server + 1, Arc::clone(&self.changed));
        let mut logged = 0;
        for (_, state, event) in self.files.iter().flat_map(|file| &file.events) {
            if *state == 0 || *state > last_state {
                continue;
            }
            if event[4] == GTID {
                logged += 1;
                if logged % IN_A_FILE == 0 {
                    log.flush();
                }
                log.advance_to(gtid_of(event));
            }
            let mut event = event.clone();
            let end = log.last().end as u32 + event.len() as u32;
            event[13..17].copy_from_slice(&end.to_le_bytes());
            sealed(&mut event);
            log.push(*state, event);
        }
        log
    }

    /// Sets the GTID of the last transaction.
    fn advance_to(&mut self, gtid: (u32, u64)) {
        self.last.retain(|(server, _)| *server != gtid.0);
        self.last.push(gtid);
    }

    /// The next transaction's sequence number.
    fn next(&mut self) -> u64 {
        let number = self.last.last().map_or(0, |(_, number)| *number) + 1;
        self.advance_to((self.server, number));
        number
    }

    pub(crate) fn server(&self) -> u32 {
        self.server
    }

    fn begin(&mut self) {
        self.files.push(LogFile {
            end: MAGIC as u64,
            before: self.last.clone(),
            ..LogFile::default()
        });
        self.push(0, written_description());
        let event = self.sized(GTID_LIST, 0, &gtids(&self.last));
        self.push(0, event);
    }

    fn last(&self) -> &LogFile {
        self.files.last().expect("there is a first one")
    }

    /// The name of the current file, and its end.
    pub(crate) fn end(&self) -> (String, u64) {
        (name(self.files.len()), self.last().end)
    }

    pub(crate) fn files(&self) -> Vec<(String, u64)> {
        let files = self.files.iter().enumerate().skip(self.purged);
        files
            .map(|(index, file)| (name(index + 1), file.end))
            .collect()
    }

    /// The list of GTIDs before a file, and the offset and end of the event with that list.
    pub(crate) fn before(&self, name: &str) -> Option<(String, u64, u64)> {
        let number = number(name)?;
        let file = self.files.get(number.checked_sub(1)?)?;
        if number <= self.purged {
            return None;
        }
        let gtids = file.before.iter();
        let list: Vec<String> = gtids
            .map(|(server, number)| format!("0-{server}-{number}"))
            .collect();
        let list = format!("[{}]", list.join(","));
        let (at, _, event) = &file.events[1];
        Some((list, *at, at + event.len() as u64))
    }

    /// Notifies of every change.
    pub(crate) fn changes(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// The event at this offset of a file. `None`: the end of the file.
    pub(crate) fn at(&self, file: usize, offset: u64) -> Option<&[u8]> {
        let events = &self.files.get(file.checked_sub(1)?)?.events;
        let index = events.binary_search_by_key(&offset, |(at, ..)| *at);
        index.ok().map(|place| &events[place].2[..])
    }

    pub(crate) fn has(&self, file: usize) -> bool {
        (1..=self.files.len()).contains(&file)
    }

    fn sized(&self, kind: u8, flags: u16, body: &[u8]) -> Vec<u8> {
        event(kind, flags, self.server, body, |length| {
            self.last().end + length
        })
    }

    fn push(&mut self, state: usize, event: Vec<u8>) {
        let file = self.files.last_mut().expect("there is a first one");
        let length = event.len() as u64;
        file.events.push((file.end, state, event));
        file.end += length;
        self.changed.notify_waiters();
    }

    /// Appends a transaction that leads to this state.
    pub(crate) fn transaction(
        &mut self,
        number: usize,
        changes: &[TableChange],
        state: &ModelState,
    ) {
        let mut rows = Vec::new();
        for change in changes {
            let text = match change {
                TableChange::Row(edit) => {
                    rows.push(edit);
                    continue;
                }
                TableChange::Empty(table) => format!("TRUNCATE TABLE {}", table.name()),
                TableChange::Widen(table) => {
                    format!("ALTER TABLE {} ADD COLUMN {EXTRA} INT", table.name())
                }
            };
            let next = self.next();
            let events = [(GTID, gtid(next, STANDALONE)), (QUERY, definition(&text))];
            self.write(number, events);
        }
        if rows.is_empty() {
            return;
        }
        let next = self.next();
        let mut events = vec![(GTID, gtid(next, 0b1000))];
        for edit in rows {
            let is_wide = state.is_wide(edit.table);
            events.push((TABLE_MAP, described(edit.table, is_wide)));
            events.push(rows_event(edit, is_wide));
        }
        events.push((XID, next.to_le_bytes().to_vec()));
        self.write(number, events);
    }

    fn write(&mut self, state: usize, events: impl IntoIterator<Item = (u8, Vec<u8>)>) {
        for (kind, body) in events {
            let event = self.sized(kind, 0, &body);
            self.push(state, event);
        }
    }

    /// Begins another file.
    pub(crate) fn flush(&mut self) {
        let next = name(self.files.len() + 1);
        let body = [&(MAGIC as u64).to_le_bytes()[..], next.as_bytes()].concat();
        let event = self.sized(ROTATE, 0, &body);
        self.push(0, event);
        self.begin();
    }

    /// Removes all files but the current one.
    pub(crate) fn purge(&mut self) {
        self.purged = self.files.len() - 1;
    }

    /// True if a stream may begin in this file.
    pub(crate) fn begins_in(&self, file: usize) -> bool {
        file > self.purged && self.has(file)
    }

    /// The server stopped in order, and started again.
    pub(crate) fn stop(&mut self) {
        let event = self.sized(STOP, 0, &[]);
        self.push(0, event);
        self.begin();
    }

    /// The server was killed, and started again. Transactions after this state are not in the log.
    pub(crate) fn crash(&mut self, left: usize) {
        let file = self.files.last_mut().expect("there is a first one");
        let first_lost = file.events.iter().position(|(_, state, _)| *state > left);
        if let Some(index) = first_lost {
            file.end = file.events[index].0;
            file.events.truncate(index);
            let left = file.events.iter().filter(|(_, _, event)| event[4] == GTID);
            let left: Vec<_> = left.map(|(_, _, event)| gtid_of(event)).collect();
            self.last = file.before.clone();
            for gtid in left {
                self.advance_to(gtid);
            }
        }
        self.begin();
    }

    /// The rotate event at the start of a stream and between two files: it names the next file.
    pub(crate) fn rotation(&self, file: usize, offset: u64) -> Vec<u8> {
        let body = [&offset.to_le_bytes()[..], name(file).as_bytes()].concat();
        event(ROTATE, ARTIFICIAL, self.server, &body, |_| 0)
    }

    /// A heartbeat event.
    pub(crate) fn heartbeat(&self, file: usize, end: u64) -> Vec<u8> {
        event(HEARTBEAT, 0, self.server, name(file).as_bytes(), |_| end)
    }

    /// The format description for a stream that does not begin at the start of a file.
    pub(crate) fn description(&self) -> Vec<u8> {
        let written = written_description();
        let body = &written[19..written.len() - 4];
        let mut event_bytes = event(15, 0, self.server, body, |_| 0);
        event_bytes[..4].copy_from_slice(&[0; 4]);
        sealed(&mut event_bytes);
        event_bytes
    }
}

fn name(number: usize) -> String {
    format!("{BASE}{number:06}")
}

/// A file's number, by its name.
pub(crate) fn number(name: &str) -> Option<usize> {
    name.strip_prefix(BASE)?.parse().ok()
}

fn event(kind: u8, flags: u16, server: u32, body: &[u8], end: impl FnOnce(u64) -> u64) -> Vec<u8> {
    let length = 19 + body.len() + 4;
    let seconds = if flags & ARTIFICIAL != 0 { 0 } else { time() };
    let mut bytes = seconds.to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(server.to_le_bytes());
    bytes.extend((length as u32).to_le_bytes());
    bytes.extend((end(length as u64) as u32).to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend(body);
    bytes.extend([0; 4]);
    sealed(&mut bytes);
    bytes
}

thread_local! {
    static BEGUN: tokio::time::Instant = tokio::time::Instant::now();
}

/// Each world has its own thread.
fn time() -> u32 {
    BEGINNING + BEGUN.with(|begun| begun.elapsed().as_secs()) as u32
}

fn sealed(event: &mut [u8]) {
    let (body, checksum) = event.split_at_mut(event.len() - 4);
    let mut crc = Crc::new();
    crc.update(body);
    checksum.copy_from_slice(&crc.sum().to_le_bytes());
}

fn gtid(number: u64, flags: u8) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend([0, 0, 0, 0, flags]);
    body.extend([0; 6]);
    body
}

/// Server id and sequence number of a GTID event.
fn gtid_of(event: &[u8]) -> (u32, u64) {
    let (mut server, mut number) = ([0; 4], [0; 8]);
    server.copy_from_slice(&event[5..9]);
    number.copy_from_slice(&event[19..27]);
    (u32::from_le_bytes(server), u64::from_le_bytes(number))
}

fn gtids(last: &LastGtids) -> Vec<u8> {
    let mut body = (last.len() as u32).to_le_bytes().to_vec();
    // An empty list is padded.
    if last.is_empty() {
        body.extend([0; 2]);
    }
    for (server, number) in last {
        body.extend(0u32.to_le_bytes());
        body.extend(server.to_le_bytes());
        body.extend(number.to_le_bytes());
    }
    body
}

/// A query event of session 7, with duration 0 and without variables.
fn definition(text: &str) -> Vec<u8> {
    let mut body = 7u32.to_le_bytes().to_vec();
    body.extend([0; 4]);
    body.push(5);
    body.extend([0; 4]);
    body.extend(b"world\0");
    body.extend(text.as_bytes());
    body
}

/// An altered table has another table id.
fn number_of(table: ModelTable, is_wide: bool) -> u64 {
    20 + table as u64 + if is_wide { 50 } else { 0 }
}

fn described(table: ModelTable, is_wide: bool) -> Vec<u8> {
    let mut body = number_of(table, is_wide).to_le_bytes()[..6].to_vec();
    body.extend(1u16.to_le_bytes());
    for name in ["world", table.name()] {
        body.push(name.len() as u8);
        body.extend(name.as_bytes());
        body.push(0);
    }
    let (int, bigint, varchar) = (3, 8, 15);
    let types: &[u8] = match table {
        ModelTable::Message => &[int, int, varchar],
        ModelTable::Follower | ModelTable::Blocks => &[int, int],
        ModelTable::Statuses => &[bigint, int, varchar],
        ModelTable::Followers => &[bigint, int, int],
        ModelTable::Profiles => &[int, varchar],
    };
    let extra = is_wide.then_some(int);
    body.push((types.len() + usize::from(is_wide)) as u8);
    body.extend(types.iter().copied().chain(extra));
    let details: &[u8] = match table {
        // In bytes: utf8mb4 has up to four for a character.
        ModelTable::Message => &[2, 0xfc, 0x03],
        ModelTable::Statuses | ModelTable::Profiles => &[2, 0x90, 0x01],
        _ => &[0],
    };
    body.extend(details);
    let nullable = match table {
        ModelTable::Statuses => 0b100,
        ModelTable::Profiles => 0b10,
        _ => 0,
    };
    body.push(nullable | u8::from(is_wide) << types.len());
    body
}

fn rows_event(edit: &RowEdit, is_wide: bool) -> (u8, Vec<u8>) {
    let RowEdit {
        table,
        before,
        after,
    } = *edit;
    let kind = match (before, after) {
        (None, _) => WRITE_ROWS,
        (_, None) => DELETE_ROWS,
        _ => UPDATE_ROWS,
    };
    let width = table.columns().len() + usize::from(is_wide);
    let mut body = number_of(table, is_wide).to_le_bytes()[..6].to_vec();
    body.extend(END_OF_STATEMENT.to_le_bytes());
    body.push(width as u8);
    let images = [before, after].into_iter().flatten();
    for _ in images.clone() {
        body.push((1 << width) - 1);
    }
    for row in images {
        image(table, row, &mut body);
    }
    (kind, body)
}

fn image(table: ModelTable, row: WorldRow, body: &mut Vec<u8>) {
    let cells = table.cells(row);
    // Only the added column is NULL.
    body.push(0xff << cells.len());
    let wide = matches!(table, ModelTable::Statuses | ModelTable::Followers);
    for (index, cell) in cells.iter().enumerate() {
        match cell {
            CellValue::Number(number) if index == 0 && wide => {
                body.extend((*number as i64).to_le_bytes());
            }
            CellValue::Number(number) => body.extend((*number as i32).to_le_bytes()),
            CellValue::Text(text) => {
                body.extend((text.len() as u16).to_le_bytes());
                body.extend(text.as_bytes());
            }
            CellValue::Null => {}
        }
    }
}

fn written_description() -> Vec<u8> {
    let first = WRITTEN.lines().find_map(|line| line.strip_prefix("event "));
    unhex(first.expect("there is one"))
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
