//! Reads the packets that decide how a reply continues.

use super::{ReplyPhase, ReplyScanner, ScannedPiece};
use crate::capability::Capabilities;
use crate::command::{Command, ReplyKind};
use crate::cursor::{MalformedPacket, PacketCursor};
use crate::reply::{PrepareOkPacket, ReplyEvent, ReplyOutcome};
use crate::response::{EOF, ERR, ErrPacket, LOCAL_INFILE, OK, OkPacket};
use crate::status;

/// The code that makes an ERR packet of MariaDB a progress report.
const PROGRESS_REPORT_CODE: [u8; 2] = [0xFF, 0xFF];

impl ReplyScanner {
    /// Reads a complete packet, or as much of it as is held.
    pub(super) fn read<'a>(&mut self, payload: &[u8]) -> ScannedPiece<'a> {
        let event = match payload {
            [ERR, a, b, ..] if [*a, *b] == PROGRESS_REPORT_CODE && self.reports_progress() => None,
            [ERR, ..] if self.phase != ReplyPhase::SinglePacket => Some(self.error(payload)),
            _ => match self.phase {
                ReplyPhase::SinglePacket => Some(self.single_packet(payload)),
                ReplyPhase::Response => self.response(payload),
                ReplyPhase::ColumnsEnd => self.columns_ended(payload),
                ReplyPhase::Rows | ReplyPhase::Fields => self.list_ended(payload),
                ReplyPhase::PreparedHead => self.prepared(payload),
                ReplyPhase::Login if payload == [0x01, 0x03] => return ScannedPiece::AwaitServer,
                ReplyPhase::Login => Some(self.login(payload)),
                _ => Some(self.give_up()),
            },
        };
        event.map_or(ScannedPiece::Nothing, ScannedPiece::Event)
    }

    fn reports_progress(&self) -> bool {
        self.capabilities.contains(Capabilities::MARIADB_PROGRESS)
    }

    fn error(&mut self, payload: &[u8]) -> ReplyEvent {
        match ErrPacket::parse(payload) {
            Ok(packet) => self.done(ReplyOutcome::Err(packet)),
            Err(_) => self.give_up(),
        }
    }

    /// The end is certain here, whatever the packet contains.
    fn single_packet(&mut self, payload: &[u8]) -> ReplyEvent {
        let outcome = match payload.first() {
            Some(&OK) => OkPacket::parse(payload, self.capabilities).map(ReplyOutcome::Ok),
            Some(&EOF) => OkPacket::parse_end(payload, self.capabilities).map(ReplyOutcome::Ok),
            Some(&ERR) => ErrPacket::parse(payload).map(ReplyOutcome::Err),
            _ => Ok(ReplyOutcome::Text),
        };
        self.done(outcome.unwrap_or(ReplyOutcome::Text))
    }

    fn response(&mut self, payload: &[u8]) -> Option<ReplyEvent> {
        self.responses = self.responses.saturating_add(1);
        let ended = match payload.first() {
            Some(&OK) => OkPacket::parse(payload, self.capabilities),
            // The reply to SHUTDOWN as a statement.
            Some(&EOF) => OkPacket::parse_end(payload, self.capabilities),
            Some(&LOCAL_INFILE) => return Some(ReplyEvent::ClientData),
            _ => return self.result_set(payload).err().map(|_| self.give_up()),
        };
        match ended {
            Ok(packet) => self.response_ended(packet),
            Err(_) => Some(self.give_up()),
        }
    }

    /// The last packet of a chain represents them all: `use a; select 1` names its database in the first.
    fn response_ended(&mut self, mut packet: OkPacket) -> Option<ReplyEvent> {
        if packet.truncated || packet.schema.is_some() {
            self.schema_unknown = packet.truncated;
            self.schema.clone_from(&packet.schema);
        } else {
            packet.truncated = self.schema_unknown;
            packet.schema.clone_from(&self.schema);
        }
        if packet.more_results() && self.command.reply_kind() == ReplyKind::Results {
            self.phase = ReplyPhase::Response;
            return None;
        }
        Some(self.done(ReplyOutcome::Ok(packet)))
    }

    /// Reads the column count, and whether definitions follow it.
    fn result_set(&mut self, payload: &[u8]) -> Result<(), MalformedPacket> {
        let mut cursor = PacketCursor::new(payload);
        self.columns = cursor.lenenc_int()?;
        let optional =
            Capabilities::OPTIONAL_RESULTSET_METADATA.union(Capabilities::MARIADB_CACHE_METADATA);
        let defined = !self.capabilities.intersects(optional) || cursor.u8()? != 0;
        self.results = self.results.saturating_add(1);
        self.phase = ReplyPhase::Columns {
            left: if defined { self.columns } else { 0 },
        };
        if defined {
            self.column_capture.begin();
        } else {
            self.columns_complete();
        }
        Ok(())
    }

    pub(super) fn column_ended(&mut self) {
        if let ReplyPhase::Columns { left } = self.phase {
            let left = left.saturating_sub(1);
            self.phase = ReplyPhase::Columns { left };
            if left == 0 {
                self.columns_complete();
            }
        }
    }

    /// Without DEPRECATE_EOF an EOF follows, even if there are no definitions.
    fn columns_complete(&mut self) {
        self.phase = if self.deprecate_eof() {
            ReplyPhase::Rows
        } else {
            ReplyPhase::ColumnsEnd
        };
    }

    fn columns_ended(&mut self, payload: &[u8]) -> Option<ReplyEvent> {
        let Ok(packet) = OkPacket::parse_end(payload, Capabilities::NONE) else {
            return Some(self.give_up());
        };
        self.status_after_columns = packet.status;
        // Both servers leak CURSOR_EXISTS of a procedure's own cursor into the result sets of its CALL. Those announce
        // more results, which one whose rows wait for COM_STMT_FETCH never does.
        let cursor = packet.status & status::CURSOR_EXISTS != 0 && !packet.more_results();
        if cursor && self.command == Command::StmtExecute {
            return self.response_ended(packet);
        }
        self.phase = ReplyPhase::Rows;
        None
    }

    fn list_ended(&mut self, payload: &[u8]) -> Option<ReplyEvent> {
        match OkPacket::parse_end(payload, self.capabilities) {
            Ok(packet) => self.response_ended(packet),
            Err(_) => Some(self.give_up()),
        }
    }

    fn prepared(&mut self, payload: &[u8]) -> Option<ReplyEvent> {
        let Ok((head, defined)) = self.prepared_head(payload) else {
            return Some(self.give_up());
        };
        let mut left = 0;
        for count in [head.parameters, head.columns] {
            if count > 0 {
                left += if defined { u64::from(count) } else { 0 };
                left += u64::from(!self.deprecate_eof());
            }
        }
        if left == 0 {
            return Some(self.done(ReplyOutcome::Prepared(head)));
        }
        self.column_capture.begin();
        self.phase = ReplyPhase::Definitions { left, head };
        None
    }

    /// True if the current packet of a prepared statement's reply defines a column. Columns come after all parameters, and before an EOF.
    pub(super) fn defines_column(&self) -> bool {
        let ReplyPhase::Definitions { left, head } = self.phase else {
            return false;
        };
        let eof_packets = u64::from(!self.deprecate_eof());
        left > eof_packets && left <= u64::from(head.columns) + eof_packets
    }

    fn prepared_head(&self, payload: &[u8]) -> Result<(PrepareOkPacket, bool), MalformedPacket> {
        let mut cursor = PacketCursor::new(payload);
        let header = cursor.u8()?;
        if header != OK {
            return Err(MalformedPacket::Unexpected {
                at: 0,
                value: header.into(),
            });
        }
        let (statement, columns, parameters) = (cursor.u32()?, cursor.u16()?, cursor.u16()?);
        // A reserved byte.
        cursor.take(1)?;
        let head = PrepareOkPacket {
            statement_id: statement,
            columns,
            parameters,
            warnings: cursor.u16()?,
        };
        let optional = self
            .capabilities
            .contains(Capabilities::OPTIONAL_RESULTSET_METADATA);
        let defined = !optional || cursor.is_empty() || cursor.u8()? != 0;
        Ok((head, defined))
    }

    /// Handles the end of a packet that is not read.
    pub(super) fn packet_skipped<'a>(&mut self) -> ScannedPiece<'a> {
        match self.phase {
            ReplyPhase::Text => ScannedPiece::Event(self.done(ReplyOutcome::Text)),
            ReplyPhase::Definitions { left, head } if left <= 1 => {
                ScannedPiece::Event(self.done(ReplyOutcome::Prepared(head)))
            }
            ReplyPhase::Definitions { left, head } => {
                self.phase = ReplyPhase::Definitions {
                    left: left - 1,
                    head,
                };
                ScannedPiece::Nothing
            }
            _ => ScannedPiece::Nothing,
        }
    }

    /// Every packet of the dialogue except OK and ERR expects an answer of the client: an AuthSwitchRequest, AuthMoreData, the
    /// next factor, or the bare packets of MariaDB's plugins.
    fn login(&mut self, payload: &[u8]) -> ReplyEvent {
        match payload.first() {
            Some(&OK) => match OkPacket::parse(payload, self.capabilities) {
                Ok(packet) => self.done(ReplyOutcome::Ok(packet)),
                Err(_) => self.give_up(),
            },
            _ => ReplyEvent::ClientAuth,
        }
    }

    fn done(&mut self, outcome: ReplyOutcome) -> ReplyEvent {
        self.phase = ReplyPhase::Ended;
        ReplyEvent::Done(outcome)
    }

    pub(super) fn give_up(&mut self) -> ReplyEvent {
        self.phase = ReplyPhase::Unfollowable { reported: true };
        ReplyEvent::Unfollowable
    }
}
