//! Captures column definitions, for sessions whose client caches them: MariaDB sends such a client each of them once.

use crate::capability::Capabilities;
use crate::command::Command;

/// Longer definitions of a statement are not captured.
const MAX_CAPTURED_BYTES: usize = 64 * 1024;

/// The column definitions of a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SentColumnDefinitions {
    /// None were sent: the client's earlier ones apply.
    #[default]
    Nothing,
    /// The payload of each definition.
    Each(Vec<Vec<u8>>),
    /// More bytes than are captured.
    TooLong,
}

/// The definitions captured from one reply.
#[derive(Debug, Clone)]
pub(super) struct ColumnCapture {
    enabled: bool,
    definitions: SentColumnDefinitions,
    packet: Vec<u8>,
    bytes: usize,
}

impl ColumnCapture {
    pub(super) fn new(command: Command, capabilities: Capabilities) -> ColumnCapture {
        let prepared = matches!(command, Command::StmtPrepare | Command::StmtExecute);
        ColumnCapture {
            enabled: prepared && capabilities.contains(Capabilities::MARIADB_CACHE_METADATA),
            definitions: SentColumnDefinitions::Nothing,
            packet: Vec::new(),
            bytes: 0,
        }
    }

    /// Starts a new list: definitions follow.
    pub(super) fn begin(&mut self) {
        if self.enabled {
            (self.definitions, self.bytes) = (SentColumnDefinitions::Each(Vec::new()), 0);
        }
    }

    /// Adds a piece of a definition.
    pub(super) fn push_piece(&mut self, piece: &[u8], end: bool) {
        let SentColumnDefinitions::Each(each) = &mut self.definitions else {
            return;
        };
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > MAX_CAPTURED_BYTES {
            (self.definitions, self.packet) = (SentColumnDefinitions::TooLong, Vec::new());
            return;
        }
        self.packet.extend_from_slice(piece);
        if end {
            each.push(std::mem::take(&mut self.packet));
        }
    }

    pub(super) fn take_definitions(&mut self) -> SentColumnDefinitions {
        std::mem::take(&mut self.definitions)
    }
}
