//! The state machine of every follower: which packet comes next, and whether it has to be read.
//!
//! Source of the rules: the manual's chapter "Text Resultset" and those of the commands, and the packets of MySQL 9.7,
//! MariaDB 10.11 and 11.8. It is as lenient as clients are: an ERR packet ends a reply at any point.

mod columns;
mod packet_reader;

use std::mem;

use columns::ColumnCapture;
pub use columns::SentColumnDefinitions;

use super::{PrepareOkPacket, ReplyEvent, ReplyOutcome};
use crate::capability::Capabilities;
use crate::command::{Command, ReplyKind};
use crate::packet::{HEADER_BYTES, MAX_BODY, PacketHeader, PacketSplitter};
use crate::response::{EOF, ERR};

/// Maximum bytes held of a packet that has to be read and arrives in pieces.
///
/// Flags and counts are in the first 23 bytes. Longer packets have text (messages, session trackers), and an OK
/// packet shows whether some of it is missing.
pub const MAX_HELD_BYTES: usize = 8 * 1024;

/// A classic EOF packet is shorter than this; a longer packet that starts with its byte is a row.
const EOF_LIMIT: usize = 9;

/// Follows the packets of one reply and classifies each. [`super::ReplyFollower`] uses only the end, a reader of rows more.
#[derive(Debug, Clone)]
pub struct ReplyScanner {
    command: Command,
    capabilities: Capabilities,
    phase: ReplyPhase,
    splitter: PacketSplitter,
    treatment: PacketTreatment,
    /// Length of the first physical packet of the current logical one.
    first_len: usize,
    held: Vec<u8>,
    /// The database that the last packet with trackers named.
    schema: Option<Vec<u8>>,
    /// The trackers of that packet were cut off.
    schema_unknown: bool,
    column_capture: ColumnCapture,
    /// Status flags after the columns.
    status_after_columns: u16,
    columns: u64,
    rows: u64,
    results: u32,
    responses: u32,
}

/// What the next packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyPhase {
    /// One packet that ends the reply, read.
    SinglePacket,
    /// One packet that ends the reply, not read.
    Text,
    /// The start of a response: OK, ERR, LOCAL INFILE request or the column count.
    Response,
    /// Column definitions of a result set.
    Columns { left: u64 },
    /// The EOF between columns and rows.
    ColumnsEnd,
    /// Rows and what ends them.
    Rows,
    /// Column definitions without a count, and what ends them.
    Fields,
    /// The head of a prepared statement.
    PreparedHead,
    /// Definitions and EOFs of a prepared statement.
    Definitions { left: u64, head: PrepareOkPacket },
    /// A step of the authentication dialogue.
    Login,
    /// A reply that cannot be followed.
    Unfollowable { reported: bool },
    /// The command has no reply.
    Silent,
    /// After the end.
    Ended,
}

/// How the current packet is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketTreatment {
    /// Its first byte has not arrived.
    Undecided,
    /// Read when it is complete.
    Hold,
    /// A column definition of a result set.
    Column,
    /// A row.
    Row,
    /// Not read.
    Skip,
}

/// The result of [`ReplyScanner::next`].
#[derive(Debug)]
pub struct ScanStep<'a> {
    /// Number of bytes consumed.
    pub consumed: usize,
    /// What they are.
    pub piece: ScannedPiece<'a>,
}

/// A classified piece. `body` is a piece of the packet; `end` is true for its last piece.
#[derive(Debug)]
pub enum ScannedPiece<'a> {
    /// Nothing that a reader of rows needs.
    Nothing,
    /// A column's definition.
    Column {
        /// A piece of it.
        body: &'a [u8],
        /// The last one.
        end: bool,
    },
    /// A row.
    Row {
        /// A piece of it.
        body: &'a [u8],
        /// The last one.
        end: bool,
    },
    /// The server sends another packet of the authentication dialogue.
    AwaitServer,
    /// See [`ReplyEvent`].
    Event(ReplyEvent),
}

impl ReplyScanner {
    /// Follows the reply to this command.
    #[must_use]
    pub fn new(command: Command, capabilities: Capabilities) -> Self {
        let phase = match command.reply_kind() {
            ReplyKind::Silent => ReplyPhase::Silent,
            ReplyKind::OnePacket => ReplyPhase::SinglePacket,
            ReplyKind::Text => ReplyPhase::Text,
            ReplyKind::Results => ReplyPhase::Response,
            ReplyKind::Fields => ReplyPhase::Fields,
            ReplyKind::Prepared => ReplyPhase::PreparedHead,
            ReplyKind::Rows => ReplyPhase::Rows,
            ReplyKind::Login => ReplyPhase::Login,
            ReplyKind::Stream => ReplyPhase::Unfollowable { reported: false },
        };
        Self {
            command,
            capabilities,
            phase,
            splitter: PacketSplitter::new(),
            treatment: PacketTreatment::Undecided,
            first_len: 0,
            held: Vec::new(),
            schema: None,
            schema_unknown: false,
            column_capture: ColumnCapture::new(command, capabilities),
            status_after_columns: 0,
            columns: 0,
            rows: 0,
            results: 0,
            responses: 0,
        }
    }

    /// Sequence number of the last packet that was not skipped with others.
    pub fn seq(&self) -> u8 {
        self.splitter.seq()
    }

    /// Columns of the last result set.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// Rows of the current result set so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Result sets so far.
    pub fn results(&self) -> u32 {
        self.results
    }

    /// The last database a packet of the reply named.
    pub fn schema(&self) -> Option<&[u8]> {
        self.schema.as_deref()
    }

    /// Takes the column definitions received so far, for a session whose client caches them.
    pub fn take_columns(&mut self) -> SentColumnDefinitions {
        self.column_capture.take_definitions()
    }

    /// Status flags after the columns of the last result set, where there is an EOF.
    pub fn status_after_columns(&self) -> u16 {
        self.status_after_columns
    }

    /// Responses of the chain so far, including the current one.
    pub fn responses(&self) -> u32 {
        self.responses
    }

    /// Skips rows that are complete at the front of `bytes`, and returns their length. A large result set spends its time
    /// here: of each row, only the header and one byte are read.
    pub fn skip_rows(&mut self, bytes: &[u8]) -> usize {
        if self.phase != ReplyPhase::Rows || !self.splitter.at_boundary() {
            return 0;
        }
        let mut ahead = bytes;
        while let [a, b, c, _, first, ..] = *ahead {
            let PacketHeader { len, .. } = PacketHeader::parse(&[a, b, c, 0]).unwrap_or_default();
            if first >= EOF || len == MAX_BODY {
                break;
            }
            let Some(following) = ahead.get(HEADER_BYTES + len..) else {
                break;
            };
            ahead = following;
            self.rows += 1;
        }
        bytes.len() - ahead.len()
    }

    /// How many bytes of the current row may be skipped: all except the last one of its packet.
    pub fn skippable_row_bytes(&self) -> usize {
        match self.treatment {
            PacketTreatment::Row => self.splitter.skippable(),
            _ => 0,
        }
    }

    /// Counts `bytes` of the skippable bytes as passed.
    pub fn skip_row_bytes(&mut self, bytes: usize) {
        self.splitter.skip(bytes);
    }

    /// Takes a piece of one packet, at most up to its end, from the front of `bytes`.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> ScanStep<'a> {
        match self.phase {
            ReplyPhase::Silent => {
                self.phase = ReplyPhase::Ended;
                return ScanStep {
                    consumed: 0,
                    piece: ScannedPiece::Event(ReplyEvent::Done(ReplyOutcome::Silent)),
                };
            }
            ReplyPhase::Unfollowable { reported: false } => {
                return ScanStep {
                    consumed: 0,
                    piece: ScannedPiece::Event(self.give_up()),
                };
            }
            ReplyPhase::Unfollowable { reported: true } => {
                return ScanStep {
                    consumed: bytes.len(),
                    piece: ScannedPiece::Nothing,
                };
            }
            ReplyPhase::Ended => {
                return ScanStep {
                    consumed: 0,
                    piece: ScannedPiece::Nothing,
                };
            }
            _ => {}
        }
        let part = self.splitter.next(bytes);
        if let Some(header) = part.start {
            self.treatment = PacketTreatment::Undecided;
            self.first_len = header.len;
        }
        if self.treatment == PacketTreatment::Undecided && (part.end || !part.body.is_empty()) {
            self.treatment = self.choose_treatment(part.body.first().copied());
        }
        let (body, end) = (part.body, part.end);
        let piece = match self.treatment {
            PacketTreatment::Undecided => ScannedPiece::Nothing,
            PacketTreatment::Hold => self.hold(body, end),
            PacketTreatment::Column => {
                self.column_capture.push_piece(body, end);
                if end {
                    self.column_ended();
                }
                ScannedPiece::Column { body, end }
            }
            PacketTreatment::Row => {
                self.rows += u64::from(end);
                ScannedPiece::Row { body, end }
            }
            PacketTreatment::Skip => {
                if self.defines_column() {
                    self.column_capture.push_piece(body, end);
                }
                match end {
                    true => self.packet_skipped(),
                    false => ScannedPiece::Nothing,
                }
            }
        };
        ScanStep {
            consumed: part.consumed,
            piece,
        }
    }

    /// Chooses by phase, first byte and length. `None`: the packet is empty.
    fn choose_treatment(&self, first: Option<u8>) -> PacketTreatment {
        match self.phase {
            ReplyPhase::Text => PacketTreatment::Skip,
            ReplyPhase::Columns { .. } if first != Some(ERR) => PacketTreatment::Column,
            ReplyPhase::Rows if !self.ends_list(first) => PacketTreatment::Row,
            ReplyPhase::Fields if !self.ends_list(first) => PacketTreatment::Skip,
            ReplyPhase::Definitions { .. } if first != Some(ERR) => PacketTreatment::Skip,
            _ => PacketTreatment::Hold,
        }
    }

    /// True for a packet that is no row: an ERR packet, which no row can look like, or the end. A row whose first column is 16
    /// MiB or longer starts with the byte of an EOF, too, but fills its first physical packet.
    fn ends_list(&self, first: Option<u8>) -> bool {
        let limit = if self.deprecate_eof() {
            MAX_BODY
        } else {
            EOF_LIMIT
        };
        match first {
            Some(ERR) => true,
            Some(EOF) => self.first_len < limit,
            _ => false,
        }
    }

    fn deprecate_eof(&self) -> bool {
        self.capabilities.contains(Capabilities::DEPRECATE_EOF)
    }

    /// Holds the pieces of a packet that has to be read, and reads it when it is complete.
    fn hold<'a>(&mut self, body: &[u8], end: bool) -> ScannedPiece<'a> {
        if end && self.held.is_empty() {
            return self.read(body);
        }
        let room = MAX_HELD_BYTES.saturating_sub(self.held.len());
        self.held
            .extend_from_slice(body.get(..room).unwrap_or(body));
        if !end {
            return ScannedPiece::Nothing;
        }
        let held = mem::take(&mut self.held);
        self.read(&held)
    }
}
