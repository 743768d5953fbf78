//! The binary log as MariaDB writes it, with the full image of rows.

use flate2::Crc;
use tokio::sync::watch;

use crate::model::{Change, Table};
use crate::sql::Value;

/// The first file; it begins with the format's description, as a server wrote it.
pub(crate) const FILE: &str = "binlog.000001";
const MAGIC: usize = 4;
const DESCRIPTION: &str = "c994016b0f01000000fc000000000100000100040031302e31312e31392d4d6172696144422d302b646562313275312d6c6f670000000000000000000000000000000000000000c994016b13380d000800120004040404120000e400041a08000000080808020000000a0a0a0000000000000a0a0a0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000041304000d0808080a0a0a01af12bf40";
const SECONDS: u32 = 1_795_000_000;
const SERVER: u32 = 1;

const ROTATE: u8 = 4;
const XID: u8 = 16;
const TABLE_MAP: u8 = 19;
const WRITE_ROWS: u8 = 23;
const DELETE_ROWS: u8 = 25;
const HEARTBEAT: u8 = 27;
const GTID: u8 = 162;
const ARTIFICIAL: u16 = 0x20;
const END_OF_STATEMENT: u16 = 1;

/// Events, and where each begins.
#[derive(Debug)]
pub(crate) struct Log {
    events: Vec<(u64, Vec<u8>)>,
    end: watch::Sender<u64>,
    number: u64,
}

impl Log {
    pub(crate) fn new() -> Log {
        let description = unhex(DESCRIPTION);
        let end = MAGIC as u64 + description.len() as u64;
        Log {
            events: vec![(MAGIC as u64, description)],
            end: watch::Sender::new(end),
            number: 0,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        *self.end.borrow()
    }

    pub(crate) fn ends(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }

    /// The format's description, as it stands at the beginning.
    pub(crate) fn description(&self) -> &[u8] {
        &self.events[0].1
    }

    /// The event at this offset. `None`: the log ends there.
    pub(crate) fn at(&self, offset: u64) -> Option<&[u8]> {
        let place = self.events.binary_search_by_key(&offset, |(at, _)| *at);
        place.ok().map(|place| &self.events[place].1[..])
    }

    pub(crate) fn transaction(&mut self, changes: &[Change]) {
        self.number += 1;
        let mut end = self.end();
        let mut gtid = self.number.to_le_bytes().to_vec();
        gtid.extend([0, 0, 0, 0, 0b1000]);
        gtid.extend([0; 6]);
        let mut all = vec![(GTID, 0, gtid)];
        for change in changes {
            all.push((TABLE_MAP, 0, described(change.table)));
            let kind = match change.comes {
                true => WRITE_ROWS,
                false => DELETE_ROWS,
            };
            all.push((kind, 0, row(change)));
        }
        all.push((XID, 0, self.number.to_le_bytes().to_vec()));
        for (kind, flags, body) in all {
            let event = event(kind, flags, &body, |length| end + length);
            self.events.push((end, event.clone()));
            end += event.len() as u64;
        }
        self.end.send_replace(end);
    }
}

/// What a stream begins with: which file comes.
pub(crate) fn rotation(offset: u64) -> Vec<u8> {
    let body = [&offset.to_le_bytes()[..], FILE.as_bytes()].concat();
    event(ROTATE, ARTIFICIAL, &body, |_| 0)
}

/// A stream in which nothing happens.
pub(crate) fn heartbeat(end: u64) -> Vec<u8> {
    event(HEARTBEAT, 0, FILE.as_bytes(), |_| end)
}

/// The format's description where a stream does not begin at the file's beginning.
pub(crate) fn again(description: &[u8]) -> Vec<u8> {
    let body = &description[19..description.len() - 4];
    let mut made = event(15, 0, body, |_| 0);
    made[..4].copy_from_slice(&[0; 4]);
    sealed(&mut made);
    made
}

fn event(kind: u8, flags: u16, body: &[u8], end: impl FnOnce(u64) -> u64) -> Vec<u8> {
    let length = 19 + body.len() + 4;
    let seconds = if flags & ARTIFICIAL != 0 { 0 } else { SECONDS };
    let mut bytes = seconds.to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(SERVER.to_le_bytes());
    bytes.extend((length as u32).to_le_bytes());
    bytes.extend((end(length as u64) as u32).to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend(body);
    bytes.extend([0; 4]);
    sealed(&mut bytes);
    bytes
}

fn sealed(event: &mut [u8]) {
    let (body, checksum) = event.split_at_mut(event.len() - 4);
    let mut crc = Crc::new();
    crc.update(body);
    checksum.copy_from_slice(&crc.sum().to_le_bytes());
}

fn number_of(table: Table) -> u64 {
    20 + table as u64
}

fn described(table: Table) -> Vec<u8> {
    let mut body = number_of(table).to_le_bytes()[..6].to_vec();
    body.extend(1u16.to_le_bytes());
    for name in ["world", table.name()] {
        body.push(name.len() as u8);
        body.extend(name.as_bytes());
        body.push(0);
    }
    let (int, bigint, varchar) = (3, 8, 15);
    let types: &[u8] = match table {
        Table::Message => &[int, int, varchar],
        Table::Follower => &[int, int],
        Table::Statuses => &[bigint, int, varchar],
        Table::Followers => &[bigint, int, int],
    };
    body.push(types.len() as u8);
    body.extend(types);
    let details: &[u8] = match table {
        // In bytes: utf8mb4 has four to a letter.
        Table::Message => &[2, 0xfc, 0x03],
        Table::Statuses => &[2, 0x90, 0x01],
        _ => &[0],
    };
    body.extend(details);
    body.push(match table {
        Table::Statuses => 0b100,
        _ => 0,
    });
    body
}

fn row(change: &Change) -> Vec<u8> {
    let cells = change.table.cells(change.row);
    let mut body = number_of(change.table).to_le_bytes()[..6].to_vec();
    body.extend(END_OF_STATEMENT.to_le_bytes());
    body.push(cells.len() as u8);
    body.push((1 << cells.len()) - 1);
    // None is NULL.
    body.push(0xff << cells.len());
    let wide = matches!(change.table, Table::Statuses | Table::Followers);
    for (place, cell) in cells.iter().enumerate() {
        match cell {
            Value::Number(number) if place == 0 && wide => {
                body.extend((*number as i64).to_le_bytes());
            }
            Value::Number(number) => body.extend((*number as i32).to_le_bytes()),
            Value::Text(text) => {
                body.extend((text.len() as u16).to_le_bytes());
                body.extend(text.as_bytes());
            }
            Value::Null => {}
        }
    }
    body
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
