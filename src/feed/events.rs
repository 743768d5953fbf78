//! Events of the log, one after the other, become transactions.

use mysql_common::Value;
use mysql_common::binlog::consts::{BinlogChecksumAlg, EventType};
use mysql_common::binlog::events::{
    Event, EventData, QueryEvent, RotateEvent, RowsEventData, TableMapEvent,
};
use mysql_common::binlog::row::BinlogRow;
use mysql_common::binlog::value::BinlogValue;

use super::evidence::Table;
use super::routes::{Column, Route, Routes, Statement};
use crate::index::{Change, Position};
use crate::timeline::definition::IntType;

/// MariaDB's own events; see `mysql_common` for those of both servers.
const MARIADB_GTID: u8 = 162;
/// A transaction's rows as a comment, and lists of positions: nothing for us.
const MARIADB_HARMLESS: [u8; 3] = [160, 161, 163];
const MARIADB_START_ENCRYPTION: u8 = 164;
const HEARTBEAT_V2: u8 = 41;
/// The server made it for this stream: it does not stand in the file.
const ARTIFICIAL: u16 = 0x20;
const STANDALONE: u8 = 1;

/// Why the stream cannot be followed any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Lost {
    #[error("the server's log holds an event that is not known (type {0})")]
    UnknownEvent(u8),
    #[error(
        "the server's log is compressed (log_bin_compress), which is not read yet: event type {0}"
    )]
    Compressed(u8),
    #[error("an event of the server's log cannot be read: {0}")]
    Malformed(String),
    #[error("an event of the server's log does not have its checksum")]
    Checksum,
    #[error("the server's log holds a statement in place of row changes (binlog_format): {0}")]
    Statement(String),
    #[error("a two-phase transaction (XA) changed the tables")]
    Xa,
    #[error("a statement changed one of the tables themselves: {0}")]
    Schema(String),
    #[error("the server's log goes on in a file of another name: {0}")]
    File(String),
    #[error("a transaction changes more rows than feed.transaction_rows = {0}")]
    TooLarge(usize),
    #[error("the server says that its log has a gap (an incident)")]
    Incident,
}

/// What an event amounts to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// In the middle of something.
    Nothing,
    /// Nothing that matters, up to here.
    Passed(Position),
    /// A transaction that changed rows of the tables ended here.
    Transaction(Position, Vec<(usize, Change)>),
}

/// Follows a stream of events from a position on.
#[derive(Debug)]
pub(super) struct Events {
    at: Position,
    base: String,
    inside: bool,
    /// The transaction goes on until it is committed: a statement does not end it by itself.
    begun: bool,
    /// The events of a compressed transaction come without positions of their own.
    unpacking: bool,
    changes: Vec<(usize, Change)>,
    most: usize,
}

/// The number of a log file, and the name before it.
pub(super) fn file_number(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit_once('.')?;
    Some((base, number.parse().ok()?))
}

impl Events {
    /// From this position on, in files of this name, with at most so many changes a transaction.
    pub(super) fn starting_at(at: Position, base: &str, most: usize) -> Events {
        Events {
            at,
            base: base.to_owned(),
            inside: false,
            begun: false,
            unpacking: false,
            changes: Vec::new(),
            most,
        }
    }

    /// Takes in the next event; `table_map` finds the description of a table by its number.
    pub(super) fn take<'a>(
        &mut self,
        event: &Event,
        table_map: impl Fn(u64) -> Option<&'a TableMapEvent<'static>>,
        routes: &Routes,
    ) -> Result<Heard, Lost> {
        let header = event.header();
        let raw = header.event_type_raw();
        if !self.unpacking {
            verify(event)?;
        }
        if !self.unpacking && header.flags_raw() & ARTIFICIAL == 0 {
            self.advance(header.log_pos());
        }
        let Ok(kind) = header.event_type() else {
            return self.other(raw, event);
        };
        match kind {
            EventType::TABLE_MAP_EVENT => Ok(Heard::Nothing),
            EventType::WRITE_ROWS_EVENT
            | EventType::WRITE_ROWS_EVENT_V1
            | EventType::UPDATE_ROWS_EVENT
            | EventType::UPDATE_ROWS_EVENT_V1
            | EventType::DELETE_ROWS_EVENT
            | EventType::DELETE_ROWS_EVENT_V1
            | EventType::PARTIAL_UPDATE_ROWS_EVENT => {
                let Some(EventData::RowsEvent(rows)) = event.read_data().map_err(malformed)? else {
                    return Err(Lost::Malformed("rows".into()));
                };
                let map = table_map(rows.table_id()).ok_or_else(|| {
                    Lost::Malformed("rows of a table that was not described".into())
                })?;
                if let Some(route) = routes.find(map.database_name_raw(), map.table_name_raw()) {
                    self.rows(&rows, map, route)?;
                }
                Ok(Heard::Nothing)
            }
            EventType::XID_EVENT => Ok(self.commit()),
            EventType::QUERY_EVENT => {
                let query: QueryEvent<'_> = event.read_event().map_err(malformed)?;
                self.statement(query.query_raw(), query.schema_raw(), routes)
            }
            EventType::GTID_EVENT
            | EventType::ANONYMOUS_GTID_EVENT
            | EventType::GTID_TAGGED_LOG_EVENT => {
                if self.unpacking || !self.changes.is_empty() {
                    return Err(Lost::Malformed("a transaction without an end".into()));
                }
                self.inside = true;
                Ok(Heard::Nothing)
            }
            EventType::TRANSACTION_PAYLOAD_EVENT => {
                self.unpacking = true;
                Ok(Heard::Nothing)
            }
            EventType::ROTATE_EVENT => self.rotate(&event.read_event().map_err(malformed)?),
            EventType::XA_PREPARE_LOG_EVENT => {
                if self.changes.is_empty() {
                    Ok(self.commit())
                } else {
                    Err(Lost::Xa)
                }
            }
            EventType::HEARTBEAT_EVENT => {
                self.advance(header.log_pos());
                Ok(self.passed())
            }
            EventType::FORMAT_DESCRIPTION_EVENT
            | EventType::PREVIOUS_GTIDS_EVENT
            | EventType::STOP_EVENT
            | EventType::IGNORABLE_EVENT
            | EventType::ROWS_QUERY_EVENT
            | EventType::INTVAR_EVENT
            | EventType::RAND_EVENT
            | EventType::USER_VAR_EVENT
            | EventType::TRANSACTION_CONTEXT_EVENT
            | EventType::VIEW_CHANGE_EVENT => Ok(self.passed()),
            EventType::INCIDENT_EVENT => Err(Lost::Incident),
            EventType::BEGIN_LOAD_QUERY_EVENT | EventType::EXECUTE_LOAD_QUERY_EVENT => {
                Err(Lost::Statement("LOAD DATA".into()))
            }
            _ => Err(Lost::UnknownEvent(raw)),
        }
    }

    fn other(&mut self, raw: u8, event: &Event) -> Result<Heard, Lost> {
        match raw {
            MARIADB_GTID => {
                if !self.changes.is_empty() {
                    return Err(Lost::Malformed("a transaction without an end".into()));
                }
                // Sequence number (8 bytes), domain (4), flags.
                let flags = event.data().get(12).copied().unwrap_or_default();
                self.inside = true;
                self.begun = flags & STANDALONE == 0;
                Ok(Heard::Nothing)
            }
            HEARTBEAT_V2 | MARIADB_START_ENCRYPTION => Ok(self.passed()),
            _ if MARIADB_HARMLESS.contains(&raw) => Ok(self.passed()),
            165..=171 => Err(Lost::Compressed(raw)),
            _ => Err(Lost::UnknownEvent(raw)),
        }
    }

    /// The log holds 32 bits of an offset.
    fn advance(&mut self, log_pos: u32) {
        if log_pos == 0 {
            return;
        }
        let mut offset = self.at.offset & !u64::from(u32::MAX) | u64::from(log_pos);
        // A file grows beyond 4 GiB by one large transaction.
        if offset < self.at.offset {
            offset += 1 << 32;
        }
        self.at.offset = offset;
    }

    fn passed(&self) -> Heard {
        if self.inside || self.unpacking {
            Heard::Nothing
        } else {
            Heard::Passed(self.at)
        }
    }

    fn commit(&mut self) -> Heard {
        self.inside = false;
        self.begun = false;
        self.unpacking = false;
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            Heard::Passed(self.at)
        } else {
            Heard::Transaction(self.at, changes)
        }
    }

    fn rotate(&mut self, rotate: &RotateEvent<'_>) -> Result<Heard, Lost> {
        let name = rotate.name().into_owned();
        // Before it has described its format, MariaDB leaves a checksum behind the name.
        let end = name
            .find(|letter: char| !letter.is_ascii_graphic())
            .unwrap_or(name.len());
        let name = name.get(..end).unwrap_or_default();
        let own = format!("{}.", self.base);
        let digits = name.strip_prefix(&own).unwrap_or_default();
        let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
        let number = digits
            .get(..digits.len().min(18))
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| Lost::File(name.to_owned()))?;
        if number < self.at.file {
            return Err(Lost::File(name.to_owned()));
        }
        if number > self.at.file {
            if self.inside || self.unpacking {
                return Err(Lost::Malformed("a transaction without an end".into()));
            }
            self.at = Position {
                file: number,
                offset: rotate.position(),
            };
        }
        Ok(self.passed())
    }

    fn statement(&mut self, text: &[u8], schema: &[u8], routes: &Routes) -> Result<Heard, Lost> {
        let shown = || String::from_utf8_lossy(text.get(..80).unwrap_or(text)).into_owned();
        let judged = Statement::judge(text, schema, routes);
        match judged {
            Statement::Begin => {
                self.inside = true;
                self.begun = true;
                Ok(Heard::Nothing)
            }
            Statement::Commit => Ok(self.commit()),
            Statement::Rollback => {
                self.changes.clear();
                Ok(self.commit())
            }
            // CREATE TABLE ... SELECT stands within a transaction.
            Statement::Harmless if self.begun => Ok(Heard::Nothing),
            Statement::Harmless => Ok(self.commit()),
            Statement::Schema => Err(Lost::Schema(shown())),
            Statement::Unknown => {
                let words = text.to_ascii_uppercase();
                if words.starts_with(b"XA START") || words.starts_with(b"XA END") {
                    self.begun = true;
                    return Ok(Heard::Nothing);
                }
                // Which rows become readable now was told with XA PREPARE, perhaps long ago.
                if words.starts_with(b"XA ") {
                    return Err(Lost::Xa);
                }
                Err(Lost::Statement(shown()))
            }
        }
    }

    fn rows(
        &mut self,
        rows: &RowsEventData<'_>,
        map: &TableMapEvent<'static>,
        route: &Route,
    ) -> Result<(), Lost> {
        let columns = usize::try_from(rows.num_columns()).unwrap_or(usize::MAX);
        if route.columns.is_some_and(|known| known != columns) {
            return Err(Lost::Schema(format!(
                "{}.{} has {columns} columns",
                route.database, route.name
            )));
        }
        let bits = rows.columns_before_image();
        let before = Image::of(bits.map(|bits| bits.iter().by_vals().collect()));
        let bits = rows.columns_after_image();
        let after = Image::of(bits.map(|bits| bits.iter().by_vals().collect()));
        for row in rows.rows(map) {
            let (old, new) = row.map_err(malformed)?;
            let old = old.map(|row| before.read(&row, route)).transpose()?;
            let new = new.map(|row| after.read(&row, route)).transpose()?;
            change(route, old, new, &mut self.changes);
            if self.changes.len() > self.most {
                return Err(Lost::TooLarge(self.most));
            }
        }
        Ok(())
    }
}

/// A column's value in a row of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    /// The log leaves it out.
    Untold,
    Null,
    Number(u64),
}

/// Which columns a row image holds.
struct Image {
    /// For each column its place in the image.
    places: Vec<Option<usize>>,
}

impl Image {
    fn of(there: Option<Vec<bool>>) -> Image {
        let mut next = 0;
        let places = there
            .unwrap_or_default()
            .into_iter()
            .map(|there| {
                there.then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        Image { places }
    }

    fn read(&self, row: &BinlogRow, route: &Route) -> Result<[Cell; 2], Lost> {
        Ok([self.cell(row, route.first)?, self.cell(row, route.second)?])
    }

    fn cell(&self, row: &BinlogRow, column: Column) -> Result<Cell, Lost> {
        let Some(Some(place)) = self.places.get(column.at) else {
            return Ok(Cell::Untold);
        };
        match row.as_ref(*place) {
            Some(BinlogValue::Value(Value::NULL)) => Ok(Cell::Null),
            Some(BinlogValue::Value(value)) => number(value, column.kind)
                .map(Cell::Number)
                .ok_or_else(|| Lost::Malformed(format!("{value:?} is no {}", column.kind.sql()))),
            _ => Err(Lost::Malformed("a column that should hold a number".into())),
        }
    }
}

/// A number as the column's type has it. The log may not say whether it is signed.
fn number(value: &Value, kind: IntType) -> Option<u64> {
    match (value, kind) {
        (Value::UInt(number), _) => Some(*number),
        (Value::Int(number), IntType::BigIntUnsigned) => Some(number.cast_unsigned()),
        (Value::Int(number), IntType::IntUnsigned) => i32::try_from(*number)
            .map(|number| u64::from(number.cast_unsigned()))
            .ok()
            .or_else(|| u32::try_from(*number).ok().map(u64::from)),
        (Value::Int(number), _) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// What a row event did, from the row before (an update's, or a deleted one) and the row after.
fn change(
    route: &Route,
    old: Option<[Cell; 2]>,
    new: Option<[Cell; 2]>,
    changes: &mut Vec<(usize, Change)>,
) {
    // In an update, what the after-image leaves out has not changed.
    let new = match (old, new) {
        (Some(old), Some(new)) => Some([merged(old[0], new[0]), merged(old[1], new[1])]),
        (_, new) => new,
    };
    if old == new {
        return;
    }
    let mut add = |change| changes.push((route.place, change));
    match route.table {
        Table::Message => {
            match old {
                Some([Cell::Number(id), author]) => match author {
                    Cell::Number(author) => add(Change::Removed {
                        author: Some(author),
                        id,
                    }),
                    Cell::Untold => add(Change::Removed { author: None, id }),
                    Cell::Null => {}
                },
                Some(_) => add(Change::MessagesLost),
                None => {}
            }
            match new {
                Some([Cell::Number(id), Cell::Number(author)]) => {
                    add(Change::Posted { author, id })
                }
                // A message without an author is on nobody's page.
                Some([_, Cell::Null]) | None => {}
                Some(_) => add(Change::MessagesLost),
            }
        }
        Table::Follower => {
            match old {
                Some([Cell::Number(reader), Cell::Number(author)]) => {
                    add(Change::Unfollowed { reader, author });
                }
                Some([Cell::Null, _] | [_, Cell::Null]) | None => {}
                Some(_) => add(Change::FollowsLost),
            }
            match new {
                Some([Cell::Number(reader), Cell::Number(author)]) => {
                    add(Change::Followed { reader, author });
                }
                Some([Cell::Null, _] | [_, Cell::Null]) | None => {}
                Some(_) => add(Change::FollowsLost),
            }
        }
    }
}

fn merged(old: Cell, new: Cell) -> Cell {
    if new == Cell::Untold { old } else { new }
}

fn malformed(error: std::io::Error) -> Lost {
    Lost::Malformed(error.to_string())
}

fn verify(event: &Event) -> Result<(), Lost> {
    let Some(written) = event.checksum() else {
        return Ok(());
    };
    match event.footer().get_checksum_alg() {
        Ok(Some(BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_CRC32)) => {
            let own = event.calc_checksum(BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_CRC32);
            if own.to_le_bytes() == written {
                Ok(())
            } else {
                Err(Lost::Checksum)
            }
        }
        _ => Ok(()),
    }
}
