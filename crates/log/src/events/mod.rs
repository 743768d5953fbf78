//! Events of the log, one after the other, become transactions.
//!
//! `query`, `tables` and `rows` read the bodies of events, `compressed` those of MariaDB that are, `changes` says what a
//! row event did. Every length is checked: what is not as it should be is [`Lost::Malformed`].

mod changes;
mod compressed;
mod logged;
mod query;
mod rows;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod two_phase;

use std::collections::HashMap;

use mysql_common::binlog::consts::EventType;

pub use self::logged::Logged;
use self::query::Query;
use self::rows::{Form, Rows, Work};
use self::tables::Described;
use self::two_phase::{Prepared, Verb};
use super::edits::Edits;
use super::routes::Routes;
use super::statement::{Selects, Statement, Text};
use crate::event::{EVENT_BYTES, Event, Keep};
use crate::gtid::{Gtid, Source, Stamp};
use headwater_sql::words::holds;
use headwater_timeline::index::{Change, PlaceId, Position};
use headwater_wire::cursor::{self, Cursor};

/// Events of which the first bytes decide how much of them is kept.
const QUERY: u8 = EventType::QUERY_EVENT as u8;
const TABLE_MAP: u8 = EventType::TABLE_MAP_EVENT as u8;
/// MariaDB's own events; see `mysql_common` for those of both servers.
const MARIADB_GTID: u8 = 162;
/// A transaction's rows as a comment, and lists of positions: nothing for us.
const MARIADB_HARMLESS: [u8; 3] = [160, 161, 163];
const MARIADB_START_ENCRYPTION: u8 = 164;
const MARIADB_COMPRESSED_QUERY: u8 = 165;
const HEARTBEAT_V2: u8 = 41;
const STANDALONE: u8 = 1;
/// Bytes of a checksum behind the name of the first file.
const CHECKSUM: usize = 4;
/// Of a statement so many bytes are held: what it may do that is said behind them is not known. It is read less far where it may be read in
/// several ways.
const STATEMENT_BYTES: usize = 8 * 1024 * 1024;
/// In front of a statement: fixed fields, variables, the name of a database.
const BEFORE_STATEMENT: usize = 13 + 64 * 1024 + 256;
/// Events of other types are not read beyond that; what is read of them is shorter.
const OTHER_BYTES: usize = 4 * 1024;

/// Why the stream cannot be followed any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Of a type that is not known.
    #[error("the server's log holds an event that is not known (type {0})")]
    UnknownEvent(u8),
    /// Not as it should be.
    #[error("an event of the server's log cannot be read: {0}")]
    Malformed(String),
    /// Rows are not told, a statement is in their place.
    #[error("the server's log holds a statement in place of row changes (binlog_format): {0}")]
    Statement(Logged),
    /// A transaction in two phases whose changes are not known.
    #[error(
        "a two-phase transaction (XA) changed the tables, or was prepared before the log was followed"
    )]
    Xa,
    /// A table may be another one since.
    #[error("a statement changed one of the tables themselves: {0}")]
    Schema(Logged),
    /// Nobody can tell what a statement did.
    #[error(
        "a statement of the server's log cannot be read for certain, so it may have changed the tables: {0}"
    )]
    Unreadable(Logged),
    /// A table has other columns than its definition was read with.
    #[error("rows of {table} have {told} columns now")]
    Columns {
        /// The table.
        table: String,
        /// How many columns its rows have now.
        told: usize,
    },
    /// The log has another name.
    #[error("the server's log goes on in a file of another name: {0}")]
    File(String),
    /// An event unpacks to more than may be held.
    #[error("an event of the server's log unpacks to more than {0} bytes (binlog.event_bytes)")]
    Unpacked(usize),
    /// A transaction has more changes than may wait.
    #[error("a transaction changes more rows than binlog.transaction_rows = {0}")]
    TooLarge(usize),
    /// The server has lost a part of its log.
    #[error("the server says that its log has a gap (an incident)")]
    Incident,
}

impl Lost {
    /// True when a definition may be another one since.
    pub fn may_redefine(&self) -> bool {
        matches!(
            self,
            Lost::Schema(_) | Lost::Unreadable(_) | Lost::Columns { .. }
        )
    }
}

/// What an event amounts to.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// There is more in the event than is read at a time: it is to be given once more.
    Unfinished,
    /// In the middle of something.
    Nothing,
    /// Nothing that matters, up to here.
    Passed(Position),
    /// A transaction that changed rows of the tables ended here; the edits beside that, where they are noted.
    Transaction(Position, Vec<(PlaceId, Change)>, Edits),
}

impl Heard {
    /// The position between two transactions up to which the log has been told; `None` in the middle of something.
    #[must_use]
    pub fn end(&self) -> Option<Position> {
        match self {
            Heard::Passed(end) | Heard::Transaction(end, ..) => Some(*end),
            Heard::Unfinished | Heard::Nothing => None,
        }
    }
}

/// Follows a stream of events from a position on.
#[derive(Clone, Debug)]
pub struct Events {
    at: Position,
    base: String,
    /// The server has said how its events are laid out.
    described: bool,
    inside: bool,
    /// Its transactions begin with MariaDB's numbers.
    mariadb: bool,
    /// The transaction goes on until it is committed: a statement does not end it by itself.
    begun: bool,
    /// The events of a compressed transaction come without positions of their own.
    unpacking: bool,
    /// The tables that the transaction has described so far.
    tables: HashMap<u64, Described>,
    changes: Vec<(PlaceId, Change)>,
    /// `None`: nobody wants to know.
    edits: Option<Edits>,
    prepared: Prepared,
    /// The number of the transaction that was begun last, where it has one.
    stamp: Option<Stamp>,
    /// It has not been told that it was begun.
    begins: bool,
    /// Since this was asked last, a statement has changed rights, views or stored programs.
    redefined: bool,
    made_function: bool,
    most: usize,
    event_bytes: usize,
    /// How far the rows of an event have been read.
    work: Work,
}

/// The number of a log file, and the name before it.
pub fn file_number(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit_once('.')?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((base, number.parse().ok().filter(|_| digits)?))
}

impl Events {
    /// From this position on, in files of this name, with at most so many changes a transaction.
    pub fn starting_at(at: Position, base: &str, most: usize) -> Events {
        Events {
            at,
            base: base.to_owned(),
            described: false,
            inside: false,
            mariadb: false,
            begun: false,
            unpacking: false,
            tables: HashMap::new(),
            changes: Vec::new(),
            edits: None,
            prepared: Prepared::default(),
            stamp: None,
            begins: false,
            redefined: false,
            made_function: false,
            most,
            event_bytes: EVENT_BYTES,
            work: Work::default(),
        }
    }

    /// True once when a statement has changed rights, views or stored programs.
    pub fn has_redefined(&mut self) -> bool {
        std::mem::take(&mut self.redefined)
    }

    /// True once behind a statement that may have made a stored function.
    pub fn has_made_function(&mut self) -> bool {
        std::mem::take(&mut self.made_function)
    }

    /// True once for each transaction that was begun: its number is in [`Self::stamp`].
    pub fn has_begun(&mut self) -> bool {
        std::mem::take(&mut self.begins)
    }

    /// The number of the transaction that was begun last, or has just ended; `None` where it has none, or one with a tag.
    #[must_use]
    pub fn stamp(&self) -> Option<&Stamp> {
        self.stamp.as_ref()
    }

    /// The same where edits of rows are noted, or not.
    pub fn noting_edits(mut self, noted: bool) -> Events {
        self.edits = noted.then(Edits::default);
        self
    }

    /// The same where what is compressed may unpack to so many bytes.
    pub fn unpacking_at_most(mut self, event_bytes: usize) -> Events {
        self.event_bytes = event_bytes;
        self
    }

    /// How much is needed of an event, by its type and the first bytes of its body.
    pub fn keeps(&self, kind: u8, first: &[u8], routes: &Routes) -> Keep {
        let is_own = match kind {
            _ if Form::of(kind).is_some() => self.is_of_own_table(first),
            TABLE_MAP => Described::is_own(first, routes),
            QUERY | MARIADB_COMPRESSED_QUERY => {
                return Keep::First(BEFORE_STATEMENT + STATEMENT_BYTES);
            }
            _ => return Keep::First(OTHER_BYTES),
        };
        if is_own {
            Keep::All
        } else {
            Keep::First(first.len())
        }
    }

    fn is_of_own_table(&self, first: &[u8]) -> bool {
        let number = tables::table_number(&mut Cursor::new(first));
        let table = number.ok().and_then(|number| self.tables.get(&number));
        matches!(table, Some(Described::Own { .. }))
    }

    /// Takes in the next event; where that is [`Heard::Unfinished`], the same one once more.
    pub fn take(&mut self, event: &Event, routes: &Routes) -> Result<Heard, Lost> {
        let raw = event.kind;
        if !self.unpacking && !event.is_artificial() {
            self.advance(event.log_pos);
        }
        let body = &event.body[..];
        if let Some(form) = Form::of(raw) {
            return self.rows(form, event, routes);
        }
        let Ok(kind) = EventType::try_from(raw) else {
            return self.other(event, routes);
        };
        match kind {
            EventType::TABLE_MAP_EVENT => {
                let (number, table) = Described::read(body, routes)?;
                self.tables.insert(number, table);
                Ok(Heard::Nothing)
            }
            EventType::XID_EVENT => Ok(self.commit()),
            EventType::QUERY_EVENT => {
                let query = Query::read(body)?;
                let text = Text {
                    bytes: query.text,
                    whole: !event.cut,
                    selects: self.selects(&query),
                };
                self.statement(text, query.schema, routes)
            }
            EventType::GTID_EVENT
            | EventType::ANONYMOUS_GTID_EVENT
            | EventType::GTID_TAGGED_LOG_EVENT => {
                if self.unpacking {
                    return Err(unfinished());
                }
                self.begin(event)
            }
            EventType::TRANSACTION_PAYLOAD_EVENT => {
                self.unpacking = true;
                Ok(Heard::Nothing)
            }
            EventType::ROTATE_EVENT => {
                let mut body = Cursor::new(body);
                let offset = body.u64()?;
                self.rotate(offset, body.rest())
            }
            EventType::XA_PREPARE_LOG_EVENT => self.prepare(body),
            EventType::HEARTBEAT_EVENT => {
                self.advance(event.log_pos);
                Ok(self.passed())
            }
            EventType::FORMAT_DESCRIPTION_EVENT => {
                self.described = true;
                Ok(self.passed())
            }
            EventType::PREVIOUS_GTIDS_EVENT
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
                Err(Lost::Statement(self.logged(b"LOAD")))
            }
            _ => Err(Lost::UnknownEvent(raw)),
        }
    }

    fn other(&mut self, event: &Event, routes: &Routes) -> Result<Heard, Lost> {
        let body = &event.body[..];
        match event.kind {
            MARIADB_GTID => {
                let mut body = Cursor::new(body);
                // Number, and domain.
                body.take(8 + 4)?;
                let flags = body.u8()?;
                self.mariadb = true;
                let heard = self.begin(event)?;
                self.begun = flags & STANDALONE == 0;
                Ok(heard)
            }
            MARIADB_COMPRESSED_QUERY => {
                let query = Query::read(body)?;
                let (text, cut) = compressed::beginning(query.text, STATEMENT_BYTES, event.cut)?;
                let text = Text {
                    bytes: &text,
                    whole: !cut,
                    selects: self.selects(&query),
                };
                self.statement(text, query.schema, routes)
            }
            HEARTBEAT_V2 | MARIADB_START_ENCRYPTION => Ok(self.passed()),
            raw if MARIADB_HARMLESS.contains(&raw) => Ok(self.passed()),
            raw => Err(Lost::UnknownEvent(raw)),
        }
    }

    /// The log holds 32 bits of an offset. What would lie behind (0: not told) is no news.
    fn advance(&mut self, log_pos: u32) {
        const FILE: u64 = 1 << 32;
        if log_pos == 0 {
            return;
        }
        let offset = self.at.offset & !(FILE - 1) | u64::from(log_pos);
        if offset > self.at.offset {
            self.at.offset = offset;
        } else if self.at.offset - offset > FILE / 2 {
            // A file grows beyond 4 GiB by one large transaction.
            self.at.offset = offset + FILE;
        }
    }

    fn passed(&self) -> Heard {
        if self.inside || self.unpacking {
            Heard::Nothing
        } else {
            Heard::Passed(self.at)
        }
    }

    /// A transaction begins with this event.
    fn begin(&mut self, event: &Event) -> Result<Heard, Lost> {
        if !self.changes.is_empty() {
            return Err(unfinished());
        }
        self.stamp = begun(event).flatten();
        self.begins = true;
        self.tables.clear();
        self.inside = true;
        Ok(Heard::Nothing)
    }

    fn commit(&mut self) -> Heard {
        self.inside = false;
        self.begun = false;
        self.unpacking = false;
        self.tables.clear();
        let changes = std::mem::take(&mut self.changes);
        let edits = self.edits.as_mut().map(std::mem::take).unwrap_or_default();
        if changes.is_empty() && edits.is_empty() {
            Heard::Passed(self.at)
        } else {
            Heard::Transaction(self.at, changes, edits)
        }
    }

    /// What was done for nothing, or is not to be read before XA COMMIT.
    fn forget(&mut self) -> Heard {
        self.changes.clear();
        if let Some(edits) = &mut self.edits {
            edits.clear();
        }
        self.commit()
    }

    fn prepare(&mut self, body: &[u8]) -> Result<Heard, Lost> {
        let (in_one_phase, transaction) = two_phase::prepared(body)?;
        if in_one_phase {
            return Ok(self.commit());
        }
        if self.changes.is_empty() && self.edits.as_ref().is_none_or(Edits::is_empty) {
            self.prepared.without_changes(transaction);
        }
        Ok(self.forget())
    }

    fn rotate(&mut self, offset: u64, name: &[u8]) -> Result<Heard, Lost> {
        let number = self.number(name);
        if number == Some(self.at.file + 1) {
            if self.inside || self.unpacking {
                return Err(unfinished());
            }
            self.at = Position {
                file: self.at.file + 1,
                offset,
            };
        } else if number != Some(self.at.file) {
            return Err(Lost::File(String::from_utf8_lossy(name).into_owned()));
        }
        Ok(self.passed())
    }

    /// The number of the file of this name.
    fn number(&self, name: &[u8]) -> Option<u64> {
        // Before it has described its format, MariaDB leaves a checksum behind the name of the file that it begins with.
        let first = self.at.file_name(&self.base);
        let behind = name.strip_prefix(first.as_bytes());
        if !self.described && behind.is_some_and(|behind| behind.len() == CHECKSUM) {
            return Some(self.at.file);
        }
        let (base, number) = file_number(str::from_utf8(name).ok()?)?;
        (base == self.base).then_some(number)
    }

    /// Where the statement stands that is being read, and of what kind it is.
    fn logged(&self, text: &[u8]) -> Logged {
        Logged::at(text, self.at.file_name(&self.base), self.at.offset)
    }

    fn statement(&mut self, text: Text<'_>, schema: &[u8], routes: &Routes) -> Result<Heard, Lost> {
        let judged = Statement::judge(text, schema, routes);
        let text = text.bytes;
        if judged == Statement::Redefines {
            self.redefined = true;
            self.made_function |= ["FUNCTION", "PACKAGE"].iter().any(|word| holds(text, word));
        }
        match judged {
            Statement::Begin => {
                self.inside = true;
                self.begun = true;
                Ok(Heard::Nothing)
            }
            Statement::Commit => Ok(self.commit()),
            Statement::Rollback => Ok(self.forget()),
            // It can take back only what was done.
            Statement::RollbackTo if self.changes.is_empty() => Ok(Heard::Nothing),
            // CREATE TABLE ... SELECT stands within a transaction.
            Statement::Harmless | Statement::Redefines if self.begun => Ok(Heard::Nothing),
            Statement::Harmless | Statement::Redefines => Ok(self.commit()),
            Statement::Schema => Err(Lost::Schema(self.logged(text))),
            Statement::Unreadable => Err(Lost::Unreadable(self.logged(text))),
            Statement::RollbackTo => Err(Lost::Statement(self.logged(text))),
            Statement::Unknown => match two_phase::verb(text) {
                Some((Verb::Start | Verb::End, _)) => {
                    self.begun = true;
                    Ok(Heard::Nothing)
                }
                Some((Verb::Rollback, transaction)) => {
                    self.prepared.ended(transaction);
                    Ok(self.forget())
                }
                Some((Verb::Commit, transaction)) => {
                    if self.prepared.ended(transaction) {
                        Ok(self.commit())
                    } else {
                        // MariaDB commits it out of the log's order.
                        Err(Lost::Xa)
                    }
                }
                None => Err(Lost::Statement(self.logged(text))),
            },
        }
    }

    /// What a query may do beside making a table. MySQL refuses it other changes (error 1746). MariaDB numbers what only changes how
    /// tables are defined, and not CREATE TABLE ... SELECT (asked of 10.11); where rows follow that, it is within a transaction, as are of
    /// those that are logged as statements the temporary ones alone.
    fn selects(&self, query: &Query<'_>) -> Selects {
        if !self.mariadb || query.defines {
            Selects::Never
        } else if self.begun {
            Selects::Temporary
        } else {
            Selects::Perhaps
        }
    }

    /// Reads rows, so many at a time.
    fn rows(&mut self, form: Form, event: &Event, routes: &Routes) -> Result<Heard, Lost> {
        let number = tables::table_number(&mut Cursor::new(&event.body))?;
        let table = match self.tables.get(&number) {
            None => return Err(malformed("rows of a table that was not described")),
            Some(Described::Other) => return Ok(Heard::Nothing),
            Some(Described::Own { .. }) if event.cut => return Err(malformed("rows cut off")),
            Some(table) => table,
        };
        let rows = Rows::read(form, &event.body)?;
        let (changes, edits, most) = (&mut self.changes, &mut self.edits, self.most);
        if !self.work.unpacks(&rows, self.event_bytes)? {
            return Ok(Heard::Unfinished);
        }
        for (at, (route, columns)) in table.listened_to(routes).enumerate() {
            if at < self.work.route {
                continue;
            }
            let told = rows.columns;
            match route.columns {
                Some(known) if known == told => {}
                Some(_) => {
                    return Err(Lost::Columns {
                        table: format!("{}.{}", route.database, route.name),
                        told,
                    });
                }
                // Nobody knows yet where they stand. That something changed has to be proven readable all the same.
                None => {
                    if changes.len() > most {
                        return Err(Lost::TooLarge(most));
                    }
                    let lost = changes::lost(route).map(|lost| (route.place, lost));
                    changes.extend(lost.filter(|lost| changes.last() != Some(lost)));
                    if let Some(edits) = edits.as_mut().filter(|_| changes::is_kept(route)) {
                        edits.add_all(route.place);
                    }
                    continue;
                }
            }
            let all = rows.some(columns, route, at, &mut self.work, |old, new| {
                changes::note(route, old, new, changes, edits.as_mut());
                if changes.len() > most {
                    return Err(Lost::TooLarge(most));
                }
                Ok(())
            })?;
            if !all {
                return Ok(Heard::Unfinished);
            }
        }
        self.work = Work::default();
        Ok(Heard::Nothing)
    }
}

impl From<cursor::Malformed> for Lost {
    fn from(fault: cursor::Malformed) -> Lost {
        malformed(&fault.to_string())
    }
}

fn malformed(what: &str) -> Lost {
    Lost::Malformed(what.to_owned())
}

/// Whether a transaction begins with this event, of which the first 64 bytes are there; its number, where it has one without a tag.
#[must_use]
pub fn begun(event: &Event) -> Option<Option<Stamp>> {
    if event.kind == MARIADB_GTID {
        return Some(mariadb_stamp(event).ok());
    }
    match EventType::try_from(event.kind) {
        Ok(EventType::GTID_EVENT) => Some(stamp(&event.body).ok()),
        Ok(EventType::ANONYMOUS_GTID_EVENT | EventType::GTID_TAGGED_LOG_EVENT) => Some(None),
        _ => None,
    }
}

fn mariadb_stamp(event: &Event) -> Result<Stamp, Lost> {
    let mut body = Cursor::new(&event.body);
    let (number, domain) = (body.u64()?, body.u32()?);
    let server = event.server;
    let source = Source::Domain { domain, server };
    Ok(Stamp {
        gtid: Gtid { source, number },
        at: event.written.into(),
    })
}

/// The number of a transaction of MySQL's without a tag. Its times are there since MySQL 8.0.1: that of the commit on this server, and,
/// where the highest bit of its seven bytes says so, that of the commit on the first server behind it.
fn stamp(body: &[u8]) -> Result<Stamp, Lost> {
    const ORIGINAL: u64 = 1 << 55;
    let mut body = Cursor::new(body);
    let _flags = body.u8()?;
    let uuid = body.take(16)?.first_chunk().copied().unwrap_or_default();
    let source = Source::Uuid(uuid, String::new());
    let number = body.u64()?;
    // A type, and two numbers of the order of commits.
    body.take(1 + 8 + 8)?;
    let immediate = seven(&mut body)?;
    let at = match immediate & ORIGINAL {
        0 => immediate,
        _ => seven(&mut body)?,
    };
    Ok(Stamp {
        gtid: Gtid { source, number },
        at,
    })
}

fn seven(body: &mut Cursor<'_>) -> Result<u64, Lost> {
    let mut bytes = [0; 8];
    let (low, _) = bytes.split_at_mut(7);
    low.copy_from_slice(body.take(7)?);
    Ok(u64::from_le_bytes(bytes))
}

fn unfinished() -> Lost {
    malformed("a transaction without an end")
}
