//! Reads the packets that decide how a reply goes on.

use super::{Phase, Walk, What};
use crate::capability::Capabilities;
use crate::command::{Command, ReplyKind};
use crate::cursor::{Cursor, Malformed};
use crate::reply::{Event, Outcome, Prepared};
use crate::response::{EOF, ERR, ErrPacket, LOCAL_INFILE, OK, OkPacket};
use crate::status;

/// The code that makes an ERR packet of MariaDB a progress report.
const PROGRESS: [u8; 2] = [0xFF, 0xFF];

impl Walk {
    /// Reads a whole packet, or as much of it as is held.
    pub(super) fn read<'a>(&mut self, payload: &[u8]) -> What<'a> {
        let event = match payload {
            [ERR, a, b, ..] if [*a, *b] == PROGRESS && self.reports_progress() => None,
            [ERR, ..] if self.phase != Phase::One => Some(self.error(payload)),
            _ => match self.phase {
                Phase::One => Some(self.one(payload)),
                Phase::Response => self.response(payload),
                Phase::ColumnsEnd => self.columns_ended(payload),
                Phase::Rows | Phase::Fields => self.list_ended(payload),
                Phase::PreparedHead => self.prepared(payload),
                Phase::Login if payload == [0x01, 0x03] => return What::ServerAgain,
                Phase::Login => Some(self.login(payload)),
                _ => Some(self.give_up()),
            },
        };
        event.map_or(What::Nothing, What::Event)
    }

    fn reports_progress(&self) -> bool {
        self.capabilities.contains(Capabilities::MARIADB_PROGRESS)
    }

    fn error(&mut self, payload: &[u8]) -> Event {
        match ErrPacket::parse(payload) {
            Ok(packet) => self.done(Outcome::Err(packet)),
            Err(_) => self.give_up(),
        }
    }

    /// The end is certain here, whatever the packet says.
    fn one(&mut self, payload: &[u8]) -> Event {
        let outcome = match payload.first() {
            Some(&OK) => OkPacket::parse(payload, self.capabilities).map(Outcome::Ok),
            Some(&EOF) => OkPacket::parse_end(payload, self.capabilities).map(Outcome::Ok),
            Some(&ERR) => ErrPacket::parse(payload).map(Outcome::Err),
            _ => Ok(Outcome::Text),
        };
        self.done(outcome.unwrap_or(Outcome::Text))
    }

    fn response(&mut self, payload: &[u8]) -> Option<Event> {
        self.responses = self.responses.saturating_add(1);
        let ended = match payload.first() {
            Some(&OK) => OkPacket::parse(payload, self.capabilities),
            // SHUTDOWN as a statement is answered so.
            Some(&EOF) => OkPacket::parse_end(payload, self.capabilities),
            Some(&LOCAL_INFILE) => return Some(Event::ClientData),
            _ => return self.result_set(payload).err().map(|_| self.give_up()),
        };
        match ended {
            Ok(packet) => self.response_ended(packet),
            Err(_) => Some(self.give_up()),
        }
    }

    /// The last packet of a chain speaks for all of them: `use a; select 1` names its database in the first.
    fn response_ended(&mut self, mut packet: OkPacket) -> Option<Event> {
        if packet.truncated || packet.schema.is_some() {
            self.schema_unknown = packet.truncated;
            self.schema.clone_from(&packet.schema);
        } else {
            packet.truncated = self.schema_unknown;
            packet.schema.clone_from(&self.schema);
        }
        if packet.more_results() && self.command.reply_kind() == ReplyKind::Results {
            self.phase = Phase::Response;
            return None;
        }
        Some(self.done(Outcome::Ok(packet)))
    }

    /// Reads the column count, and whether definitions follow it.
    fn result_set(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let mut cursor = Cursor::new(payload);
        self.columns = cursor.lenenc_int()?;
        let optional =
            Capabilities::OPTIONAL_RESULTSET_METADATA.union(Capabilities::MARIADB_CACHE_METADATA);
        let defined = !self.capabilities.intersects(optional) || cursor.u8()? != 0;
        self.results = self.results.saturating_add(1);
        self.phase = Phase::Columns {
            left: if defined { self.columns } else { 0 },
        };
        if defined {
            self.kept.begin();
        } else {
            self.columns_complete();
        }
        Ok(())
    }

    pub(super) fn column_ended(&mut self) {
        if let Phase::Columns { left } = self.phase {
            let left = left.saturating_sub(1);
            self.phase = Phase::Columns { left };
            if left == 0 {
                self.columns_complete();
            }
        }
    }

    /// Without DEPRECATE_EOF an EOF follows, even behind no definitions at all.
    fn columns_complete(&mut self) {
        self.phase = if self.deprecate_eof() {
            Phase::Rows
        } else {
            Phase::ColumnsEnd
        };
    }

    fn columns_ended(&mut self, payload: &[u8]) -> Option<Event> {
        let Ok(packet) = OkPacket::parse_end(payload, Capabilities::NONE) else {
            return Some(self.give_up());
        };
        self.behind_columns = packet.status;
        // Both servers leak CURSOR_EXISTS of a procedure's own cursor into the result sets of its CALL. Those announce
        // more results, which one whose rows wait for COM_STMT_FETCH never does.
        let cursor = packet.status & status::CURSOR_EXISTS != 0 && !packet.more_results();
        if cursor && self.command == Command::StmtExecute {
            return self.response_ended(packet);
        }
        self.phase = Phase::Rows;
        None
    }

    fn list_ended(&mut self, payload: &[u8]) -> Option<Event> {
        match OkPacket::parse_end(payload, self.capabilities) {
            Ok(packet) => self.response_ended(packet),
            Err(_) => Some(self.give_up()),
        }
    }

    fn prepared(&mut self, payload: &[u8]) -> Option<Event> {
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
            return Some(self.done(Outcome::Prepared(head)));
        }
        self.kept.begin();
        self.phase = Phase::Definitions { left, head };
        None
    }

    /// The current packet of a prepared statement's reply defines a column: they come behind all of its parameters, and in front of an
    /// EOF.
    pub(super) fn defines_column(&self) -> bool {
        let Phase::Definitions { left, head } = self.phase else {
            return false;
        };
        let behind = u64::from(!self.deprecate_eof());
        left > behind && left <= u64::from(head.columns) + behind
    }

    fn prepared_head(&self, payload: &[u8]) -> Result<(Prepared, bool), Malformed> {
        let mut cursor = Cursor::new(payload);
        let header = cursor.u8()?;
        if header != OK {
            return Err(Malformed::Unexpected {
                at: 0,
                value: header.into(),
            });
        }
        let (statement, columns, parameters) = (cursor.u32()?, cursor.u16()?, cursor.u16()?);
        // A reserved byte.
        cursor.take(1)?;
        let head = Prepared {
            statement,
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

    /// The end of a packet that nobody reads.
    pub(super) fn skipped<'a>(&mut self) -> What<'a> {
        match self.phase {
            Phase::Text => What::Event(self.done(Outcome::Text)),
            Phase::Definitions { left, head } if left <= 1 => {
                What::Event(self.done(Outcome::Prepared(head)))
            }
            Phase::Definitions { left, head } => {
                self.phase = Phase::Definitions {
                    left: left - 1,
                    head,
                };
                What::Nothing
            }
            _ => What::Nothing,
        }
    }

    /// Every packet of the dialogue but OK and ERR asks the client: an AuthSwitchRequest, AuthMoreData, the next
    /// factor, or what MariaDB's plugins send bare.
    fn login(&mut self, payload: &[u8]) -> Event {
        match payload.first() {
            Some(&OK) => match OkPacket::parse(payload, self.capabilities) {
                Ok(packet) => self.done(Outcome::Ok(packet)),
                Err(_) => self.give_up(),
            },
            _ => Event::ClientAuth,
        }
    }

    fn done(&mut self, outcome: Outcome) -> Event {
        self.phase = Phase::Ended;
        Event::Done(outcome)
    }

    pub(super) fn give_up(&mut self) -> Event {
        self.phase = Phase::Pump { told: true };
        Event::Unfollowable
    }
}
