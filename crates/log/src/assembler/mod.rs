//! Assembles events of the log into transactions.
//!
//! `query_event`, `table_map` and `row_event` parse the bodies of events, `mariadb_compression` decompresses those of MariaDB, and
//! `row_changes` derives changes from row images. Every length is checked: invalid events are [`LogStreamError::Malformed`].

mod mariadb_compression;
mod query_event;
mod row_changes;
mod row_event;
mod statement_location;
mod table_map;
#[cfg(test)]
pub(crate) mod tests;
mod xa;

use std::collections::HashMap;

use mysql_common::binlog::consts::EventType;

use self::query_event::QueryEvent;
use self::row_event::{RowEvent, RowEventFormat, RowEventProgress};
pub use self::statement_location::StatementLocation;
use self::table_map::MappedTable;
use self::xa::{UnchangedPreparedTransactions, XaVerb};
use super::edits::RowEdits;
use super::routes::TableRoutes;
use super::statement::{CreateSelectEffect, LoggedStatementClass, StatementText};
use crate::event_reader::{BodyRetention, EVENT_BYTES, LogEvent};
use crate::gtid::{CommittedGtid, Gtid, GtidSource};
use headwater_sql::word_search::contains_ignoring_case;
use headwater_timeline::index::{BinlogPosition, TimelineChange, TimelineId};
use headwater_wire::cursor::{self, PacketCursor};

/// Event types whose first bytes decide how much of them is retained.
const QUERY: u8 = EventType::QUERY_EVENT as u8;
const TABLE_MAP: u8 = EventType::TABLE_MAP_EVENT as u8;
/// MariaDB's own events; see `mysql_common` for those of both servers.
const MARIADB_GTID: u8 = 162;
/// A transaction's rows as a comment, and lists of positions: ignored.
const MARIADB_IGNORED: [u8; 3] = [160, 161, 163];
const MARIADB_START_ENCRYPTION: u8 = 164;
const MARIADB_COMPRESSED_QUERY: u8 = 165;
const HEARTBEAT_V2: u8 = 41;
const STANDALONE: u8 = 1;
/// Size of the checksum after the name of the first file.
const CHECKSUM_BYTES: usize = 4;
/// How many bytes of a statement are retained; what the rest may do is unknown. If it can be read in several ways, less of it is read.
const MAX_STATEMENT_BYTES: usize = 8 * 1024 * 1024;
/// Bytes before a statement: fixed fields, variables, the database name.
const MAX_STATEMENT_OFFSET: usize = 13 + 64 * 1024 + 256;
/// Limit for events of other types; what is read of them is shorter.
const MAX_OTHER_BYTES: usize = 4 * 1024;

/// Why the stream cannot be followed any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogStreamError {
    /// The event type is unknown.
    #[error("the server's log holds an event that is not known (type {0})")]
    UnknownEvent(u8),
    /// The event is invalid.
    #[error("an event of the server's log cannot be read: {0}")]
    Malformed(String),
    /// The log contains a statement in place of row changes.
    #[error("the server's log holds a statement in place of row changes (binlog_format): {0}")]
    Statement(StatementLocation),
    /// A two-phase transaction whose changes are not known.
    #[error(
        "a two-phase transaction (XA) changed the tables, or was prepared before the log was followed"
    )]
    Xa,
    /// A table's definition may have changed.
    #[error("a statement changed one of the tables themselves: {0}")]
    Schema(StatementLocation),
    /// It is not certain what a statement did.
    #[error(
        "a statement of the server's log cannot be read for certain, so it may have changed the tables: {0}"
    )]
    Unreadable(StatementLocation),
    /// A table's number of columns differs from the definition that was read.
    #[error("rows of {table} have {told} columns now")]
    Columns {
        /// The table.
        table: String,
        /// The number of columns in the log.
        told: usize,
    },
    /// The log's file name changed.
    #[error("the server's log goes on in a file of another name: {0}")]
    UnexpectedFile(String),
    /// An event decompresses to more bytes than allowed.
    #[error("an event of the server's log unpacks to more than {0} bytes (binlog.event_bytes)")]
    UnpackedTooLarge(usize),
    /// A transaction has more changes than allowed.
    #[error("a transaction changes more rows than binlog.transaction_rows = {0}")]
    TooLarge(usize),
    /// The server has lost a part of its log.
    #[error("the server says that its log has a gap (an incident)")]
    Incident,
}

impl LogStreamError {
    /// True if a definition may have changed.
    pub fn may_redefine(&self) -> bool {
        matches!(
            self,
            LogStreamError::Schema(_)
                | LogStreamError::Unreadable(_)
                | LogStreamError::Columns { .. }
        )
    }
}

/// The result of an event.
#[derive(Debug, PartialEq, Eq)]
pub enum EventOutcome {
    /// The event contains more than is read at a time: process it once more.
    Unfinished,
    /// In the middle of a transaction.
    Nothing,
    /// No relevant changes up to here.
    Passed(BinlogPosition),
    /// A transaction that changed rows of the tables ended here; with its edits, if they are recorded.
    Transaction(BinlogPosition, Vec<(TimelineId, TimelineChange)>, RowEdits),
}

impl EventOutcome {
    /// The position between two transactions up to which the log was processed; `None` in the middle of one.
    #[must_use]
    pub fn end(&self) -> Option<BinlogPosition> {
        match self {
            EventOutcome::Passed(end) | EventOutcome::Transaction(end, ..) => Some(*end),
            EventOutcome::Unfinished | EventOutcome::Nothing => None,
        }
    }
}

/// Assembles a stream of events from a position on.
#[derive(Clone, Debug)]
pub struct TransactionAssembler {
    position: BinlogPosition,
    file_base: String,
    /// The format description was received.
    described: bool,
    in_transaction: bool,
    /// Transactions begin with MariaDB's GTID events.
    mariadb: bool,
    /// The transaction continues until it is committed: a statement does not end it by itself.
    open_transaction: bool,
    /// The events of a compressed transaction have no positions of their own.
    unpacking: bool,
    tables: HashMap<u64, MappedTable>,
    changes: Vec<(TimelineId, TimelineChange)>,
    /// `None`: edits are not recorded.
    edits: Option<RowEdits>,
    prepared: UnchangedPreparedTransactions,
    /// The GTID of the last begun transaction, if it has one.
    gtid: Option<CommittedGtid>,
    /// The begin has not been reported yet.
    gtid_pending: bool,
    /// Since the last [`TransactionAssembler::take_redefined`], a statement has changed privileges, views or stored programs.
    redefined: bool,
    made_function: bool,
    max_changes: usize,
    event_bytes: usize,
    row_progress: RowEventProgress,
}

/// Splits a log file's name into base name and number.
pub fn file_number(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit_once('.')?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((base, number.parse().ok().filter(|_| digits)?))
}

impl TransactionAssembler {
    /// Starts at this position, in files named `base`, with at most `most` changes per transaction.
    pub fn starting_at(at: BinlogPosition, base: &str, most: usize) -> TransactionAssembler {
        TransactionAssembler {
            position: at,
            file_base: base.to_owned(),
            described: false,
            in_transaction: false,
            mariadb: false,
            open_transaction: false,
            unpacking: false,
            tables: HashMap::new(),
            changes: Vec::new(),
            edits: None,
            prepared: UnchangedPreparedTransactions::default(),
            gtid: None,
            gtid_pending: false,
            redefined: false,
            made_function: false,
            max_changes: most,
            event_bytes: EVENT_BYTES,
            row_progress: RowEventProgress::default(),
        }
    }

    /// True once after a statement that changed privileges, views or stored programs.
    pub fn take_redefined(&mut self) -> bool {
        std::mem::take(&mut self.redefined)
    }

    /// True once after a statement that may have created a stored function.
    pub fn take_made_function(&mut self) -> bool {
        std::mem::take(&mut self.made_function)
    }

    /// True once for each begun transaction: its GTID is in [`Self::gtid`].
    pub fn take_begun(&mut self) -> bool {
        std::mem::take(&mut self.gtid_pending)
    }

    /// The GTID of the last transaction that began or has just ended; `None` if it has none, or one with a tag.
    #[must_use]
    pub fn gtid(&self) -> Option<&CommittedGtid> {
        self.gtid.as_ref()
    }

    /// Sets whether row edits are recorded.
    pub fn with_edits(mut self, noted: bool) -> TransactionAssembler {
        self.edits = noted.then(RowEdits::default);
        self
    }

    /// Sets the limit for decompressed events.
    pub fn with_event_bytes(mut self, event_bytes: usize) -> TransactionAssembler {
        self.event_bytes = event_bytes;
        self
    }

    /// How much to retain of an event, by its type and the first bytes of its body.
    pub fn retention(&self, kind: u8, first: &[u8], routes: &TableRoutes) -> BodyRetention {
        let is_needed = match kind {
            _ if RowEventFormat::of(kind).is_some() => self.is_of_routed_table(first),
            TABLE_MAP => MappedTable::is_routed(first, routes),
            QUERY | MARIADB_COMPRESSED_QUERY => {
                return BodyRetention::First(MAX_STATEMENT_OFFSET + MAX_STATEMENT_BYTES);
            }
            _ => return BodyRetention::First(MAX_OTHER_BYTES),
        };
        if is_needed {
            BodyRetention::All
        } else {
            BodyRetention::First(first.len())
        }
    }

    fn is_of_routed_table(&self, first: &[u8]) -> bool {
        let number = table_map::table_number(&mut PacketCursor::new(first));
        let table = number.ok().and_then(|number| self.tables.get(&number));
        matches!(table, Some(MappedTable::Routed { .. }))
    }

    /// Processes an event; after [`EventOutcome::Unfinished`], pass the same one again.
    pub fn process(
        &mut self,
        event: &LogEvent,
        routes: &TableRoutes,
    ) -> Result<EventOutcome, LogStreamError> {
        let raw = event.event_type;
        if !self.unpacking && !event.is_artificial() {
            self.advance(event.log_pos);
        }
        let body = &event.body[..];
        if let Some(row_format) = RowEventFormat::of(raw) {
            return self.read_rows(row_format, event, routes);
        }
        let Ok(kind) = EventType::try_from(raw) else {
            return self.mariadb_event(event, routes);
        };
        match kind {
            EventType::TABLE_MAP_EVENT => {
                let (number, table) = MappedTable::read(body, routes)?;
                self.tables.insert(number, table);
                Ok(EventOutcome::Nothing)
            }
            EventType::XID_EVENT => Ok(self.commit()),
            EventType::QUERY_EVENT => {
                let query = QueryEvent::read(body)?;
                let text = StatementText {
                    bytes: query.text,
                    is_complete: !event.truncated,
                    create_select: self.create_select(&query),
                };
                self.statement(text, query.schema, routes)
            }
            EventType::GTID_EVENT
            | EventType::ANONYMOUS_GTID_EVENT
            | EventType::GTID_TAGGED_LOG_EVENT => {
                if self.unpacking {
                    return Err(unfinished_transaction());
                }
                self.begin_transaction(event)
            }
            EventType::TRANSACTION_PAYLOAD_EVENT => {
                self.unpacking = true;
                Ok(EventOutcome::Nothing)
            }
            EventType::ROTATE_EVENT => {
                let mut body = PacketCursor::new(body);
                let offset = body.u64()?;
                self.rotate(offset, body.rest())
            }
            EventType::XA_PREPARE_LOG_EVENT => self.prepare(body),
            EventType::HEARTBEAT_EVENT => {
                self.advance(event.log_pos);
                Ok(self.outcome_so_far())
            }
            EventType::FORMAT_DESCRIPTION_EVENT => {
                self.described = true;
                Ok(self.outcome_so_far())
            }
            EventType::PREVIOUS_GTIDS_EVENT
            | EventType::STOP_EVENT
            | EventType::IGNORABLE_EVENT
            | EventType::ROWS_QUERY_EVENT
            | EventType::INTVAR_EVENT
            | EventType::RAND_EVENT
            | EventType::USER_VAR_EVENT
            | EventType::TRANSACTION_CONTEXT_EVENT
            | EventType::VIEW_CHANGE_EVENT => Ok(self.outcome_so_far()),
            EventType::INCIDENT_EVENT => Err(LogStreamError::Incident),
            EventType::BEGIN_LOAD_QUERY_EVENT | EventType::EXECUTE_LOAD_QUERY_EVENT => {
                Err(LogStreamError::Statement(self.statement_location(b"LOAD")))
            }
            _ => Err(LogStreamError::UnknownEvent(raw)),
        }
    }

    fn mariadb_event(
        &mut self,
        event: &LogEvent,
        routes: &TableRoutes,
    ) -> Result<EventOutcome, LogStreamError> {
        let body = &event.body[..];
        match event.event_type {
            MARIADB_GTID => {
                let mut body = PacketCursor::new(body);
                // Sequence number and domain.
                body.take(8 + 4)?;
                let flags = body.u8()?;
                self.mariadb = true;
                let outcome = self.begin_transaction(event)?;
                self.open_transaction = flags & STANDALONE == 0;
                Ok(outcome)
            }
            MARIADB_COMPRESSED_QUERY => {
                let query = QueryEvent::read(body)?;
                let (text, is_truncated) = mariadb_compression::decompress_prefix(
                    query.text,
                    MAX_STATEMENT_BYTES,
                    event.truncated,
                )?;
                let text = StatementText {
                    bytes: &text,
                    is_complete: !is_truncated,
                    create_select: self.create_select(&query),
                };
                self.statement(text, query.schema, routes)
            }
            HEARTBEAT_V2 | MARIADB_START_ENCRYPTION => Ok(self.outcome_so_far()),
            raw if MARIADB_IGNORED.contains(&raw) => Ok(self.outcome_so_far()),
            raw => Err(LogStreamError::UnknownEvent(raw)),
        }
    }

    /// Adds the higher bits to a position: the log has only 32 bits of an offset. Earlier positions and 0 (not given) are ignored.
    fn advance(&mut self, log_pos: u32) {
        const FILE: u64 = 1 << 32;
        if log_pos == 0 {
            return;
        }
        let offset = self.position.offset & !(FILE - 1) | u64::from(log_pos);
        if offset > self.position.offset {
            self.position.offset = offset;
        } else if self.position.offset - offset > FILE / 2 {
            // One large transaction can take a file beyond 4 GiB.
            self.position.offset = offset + FILE;
        }
    }

    fn outcome_so_far(&self) -> EventOutcome {
        if self.in_transaction || self.unpacking {
            EventOutcome::Nothing
        } else {
            EventOutcome::Passed(self.position)
        }
    }

    fn begin_transaction(&mut self, event: &LogEvent) -> Result<EventOutcome, LogStreamError> {
        if !self.changes.is_empty() {
            return Err(unfinished_transaction());
        }
        self.gtid = transaction_start(event).flatten();
        self.gtid_pending = true;
        self.tables.clear();
        self.in_transaction = true;
        Ok(EventOutcome::Nothing)
    }

    fn commit(&mut self) -> EventOutcome {
        self.in_transaction = false;
        self.open_transaction = false;
        self.unpacking = false;
        self.tables.clear();
        let changes = std::mem::take(&mut self.changes);
        let edits = self.edits.as_mut().map(std::mem::take).unwrap_or_default();
        if changes.is_empty() && edits.is_empty() {
            EventOutcome::Passed(self.position)
        } else {
            EventOutcome::Transaction(self.position, changes, edits)
        }
    }

    /// Ends a transaction without its changes: they were rolled back, or are not readable before XA COMMIT.
    fn roll_back(&mut self) -> EventOutcome {
        self.changes.clear();
        if let Some(edits) = &mut self.edits {
            edits.clear();
        }
        self.commit()
    }

    fn prepare(&mut self, body: &[u8]) -> Result<EventOutcome, LogStreamError> {
        let (in_one_phase, transaction) = xa::read_prepare_event(body)?;
        if in_one_phase {
            return Ok(self.commit());
        }
        if self.changes.is_empty() && self.edits.as_ref().is_none_or(RowEdits::is_empty) {
            self.prepared.insert(transaction);
        }
        Ok(self.roll_back())
    }

    fn rotate(&mut self, offset: u64, name: &[u8]) -> Result<EventOutcome, LogStreamError> {
        let number = self.file_number_of(name);
        if number == Some(self.position.file + 1) {
            if self.in_transaction || self.unpacking {
                return Err(unfinished_transaction());
            }
            self.position = BinlogPosition {
                file: self.position.file + 1,
                offset,
            };
        } else if number != Some(self.position.file) {
            return Err(LogStreamError::UnexpectedFile(
                String::from_utf8_lossy(name).into_owned(),
            ));
        }
        Ok(self.outcome_so_far())
    }

    fn file_number_of(&self, name: &[u8]) -> Option<u64> {
        // Before the format description, MariaDB leaves a checksum after the name of the first file.
        let first = self.position.file_name(&self.file_base);
        let suffix = name.strip_prefix(first.as_bytes());
        if !self.described && suffix.is_some_and(|behind| behind.len() == CHECKSUM_BYTES) {
            return Some(self.position.file);
        }
        let (base, number) = file_number(str::from_utf8(name).ok()?)?;
        (base == self.file_base).then_some(number)
    }

    fn statement_location(&self, text: &[u8]) -> StatementLocation {
        StatementLocation::at(
            text,
            self.position.file_name(&self.file_base),
            self.position.offset,
        )
    }

    fn statement(
        &mut self,
        text: StatementText<'_>,
        schema: &[u8],
        routes: &TableRoutes,
    ) -> Result<EventOutcome, LogStreamError> {
        let class = LoggedStatementClass::classify(text, schema, routes);
        let text = text.bytes;
        if class == LoggedStatementClass::Redefines {
            self.redefined = true;
            self.made_function |= ["FUNCTION", "PACKAGE"]
                .iter()
                .any(|word| contains_ignoring_case(text, word));
        }
        match class {
            LoggedStatementClass::Begin => {
                self.in_transaction = true;
                self.open_transaction = true;
                Ok(EventOutcome::Nothing)
            }
            LoggedStatementClass::Commit => Ok(self.commit()),
            LoggedStatementClass::Rollback => Ok(self.roll_back()),
            // It can roll back only what was done.
            LoggedStatementClass::RollbackTo if self.changes.is_empty() => {
                Ok(EventOutcome::Nothing)
            }
            // CREATE TABLE ... SELECT is within a transaction.
            LoggedStatementClass::Harmless | LoggedStatementClass::Redefines
                if self.open_transaction =>
            {
                Ok(EventOutcome::Nothing)
            }
            LoggedStatementClass::Harmless | LoggedStatementClass::Redefines => Ok(self.commit()),
            LoggedStatementClass::Schema => {
                Err(LogStreamError::Schema(self.statement_location(text)))
            }
            LoggedStatementClass::Unreadable => {
                Err(LogStreamError::Unreadable(self.statement_location(text)))
            }
            LoggedStatementClass::RollbackTo => {
                Err(LogStreamError::Statement(self.statement_location(text)))
            }
            LoggedStatementClass::Unknown => match xa::parse_verb(text) {
                Some((XaVerb::Start | XaVerb::End, _)) => {
                    self.open_transaction = true;
                    Ok(EventOutcome::Nothing)
                }
                Some((XaVerb::Rollback, transaction)) => {
                    self.prepared.remove(transaction);
                    Ok(self.roll_back())
                }
                Some((XaVerb::Commit, transaction)) => {
                    if self.prepared.remove(transaction) {
                        Ok(self.commit())
                    } else {
                        // MariaDB commits it out of log order.
                        Err(LogStreamError::Xa)
                    }
                }
                None => Err(LogStreamError::Statement(self.statement_location(text))),
            },
        }
    }

    /// What the query of a CREATE TABLE ... SELECT may change. MySQL refuses other changes in it (error 1746). MariaDB writes a DDL number
    /// for pure definitions, and not for CREATE TABLE ... SELECT (verified on 10.11). If rows follow that, it is within a transaction; of
    /// those logged as statements, only temporary tables are.
    fn create_select(&self, query: &QueryEvent<'_>) -> CreateSelectEffect {
        if !self.mariadb || query.only_defines {
            CreateSelectEffect::Never
        } else if self.open_transaction {
            CreateSelectEffect::Temporary
        } else {
            CreateSelectEffect::Possible
        }
    }

    fn read_rows(
        &mut self,
        row_format: RowEventFormat,
        event: &LogEvent,
        routes: &TableRoutes,
    ) -> Result<EventOutcome, LogStreamError> {
        let number = table_map::table_number(&mut PacketCursor::new(&event.body))?;
        let table = match self.tables.get(&number) {
            None => return Err(malformed("rows of a table that was not described")),
            Some(MappedTable::Ignored) => return Ok(EventOutcome::Nothing),
            Some(MappedTable::Routed { .. }) if event.truncated => {
                return Err(malformed("rows cut off"));
            }
            Some(table) => table,
        };
        let rows = RowEvent::read(row_format, &event.body)?;
        let (changes, edits, most) = (&mut self.changes, &mut self.edits, self.max_changes);
        if !self.row_progress.decompress(&rows, self.event_bytes)? {
            return Ok(EventOutcome::Unfinished);
        }
        for (at, (route, columns)) in table.routes(routes).enumerate() {
            if at < self.row_progress.route_number {
                continue;
            }
            let column_count = rows.columns;
            match route.columns {
                Some(known) if known == column_count => {}
                Some(_) => {
                    return Err(LogStreamError::Columns {
                        table: format!("{}.{}", route.database, route.name),
                        told: column_count,
                    });
                }
                // The column positions are not known yet. That something changed must be proven readable all the same.
                None => {
                    if changes.len() > most {
                        return Err(LogStreamError::TooLarge(most));
                    }
                    let timeline = route.table_id.timeline();
                    let lost = timeline.zip(row_changes::table_lost(route));
                    changes.extend(lost.filter(|lost| changes.last() != Some(lost)));
                    if let Some(edits) = edits.as_mut().filter(|_| row_changes::is_cached(route)) {
                        row_changes::add_whole_table(route, edits);
                    }
                    continue;
                }
            }
            let all = rows.read_some(columns, route, at, &mut self.row_progress, |old, new| {
                row_changes::record_row_change(route, old, new, changes, edits.as_mut());
                if changes.len() > most {
                    return Err(LogStreamError::TooLarge(most));
                }
                Ok(())
            })?;
            if !all {
                return Ok(EventOutcome::Unfinished);
            }
        }
        self.row_progress = RowEventProgress::default();
        Ok(EventOutcome::Nothing)
    }
}

impl From<cursor::MalformedPacket> for LogStreamError {
    fn from(fault: cursor::MalformedPacket) -> LogStreamError {
        malformed(&fault.to_string())
    }
}

fn malformed(what: &str) -> LogStreamError {
    LogStreamError::Malformed(what.to_owned())
}

/// Whether an event begins a transaction, from its first 64 bytes; inside, its GTID, if it has one without a tag.
#[must_use]
pub fn transaction_start(event: &LogEvent) -> Option<Option<CommittedGtid>> {
    if event.event_type == MARIADB_GTID {
        return Some(mariadb_gtid(event).ok());
    }
    match EventType::try_from(event.event_type) {
        Ok(EventType::GTID_EVENT) => Some(mysql_gtid(&event.body).ok()),
        Ok(EventType::ANONYMOUS_GTID_EVENT | EventType::GTID_TAGGED_LOG_EVENT) => Some(None),
        _ => None,
    }
}

fn mariadb_gtid(event: &LogEvent) -> Result<CommittedGtid, LogStreamError> {
    let mut body = PacketCursor::new(&event.body);
    let (number, domain) = (body.u64()?, body.u32()?);
    let server = event.server_id;
    let source = GtidSource::Domain { domain, server };
    Ok(CommittedGtid {
        gtid: Gtid { source, number },
        committed_at: event.timestamp.into(),
    })
}

/// MySQL's untagged GTID. Commit times are there since MySQL 8.0.1: that of this server and, if the highest bit of its seven bytes is
/// set, then that of the originating server.
fn mysql_gtid(body: &[u8]) -> Result<CommittedGtid, LogStreamError> {
    const ORIGINAL: u64 = 1 << 55;
    let mut body = PacketCursor::new(body);
    let _flags = body.u8()?;
    let uuid = body.take(16)?.first_chunk().copied().unwrap_or_default();
    let source = GtidSource::Uuid(uuid, String::new());
    let number = body.u64()?;
    // A type, and two numbers of the commit order.
    body.take(1 + 8 + 8)?;
    let immediate = seven_byte_int(&mut body)?;
    let at = match immediate & ORIGINAL {
        0 => immediate,
        _ => seven_byte_int(&mut body)?,
    };
    Ok(CommittedGtid {
        gtid: Gtid { source, number },
        committed_at: at,
    })
}

fn seven_byte_int(body: &mut PacketCursor<'_>) -> Result<u64, LogStreamError> {
    let mut bytes = [0; 8];
    let (low, _) = bytes.split_at_mut(7);
    low.copy_from_slice(body.take(7)?);
    Ok(u64::from_le_bytes(bytes))
}

fn unfinished_transaction() -> LogStreamError {
    malformed("a transaction without an end")
}
