//! Definitions of columns, for sessions whose client keeps them: MariaDB tells such a client each of them once.

use crate::capability::Capabilities;
use crate::command::Command;

/// Definitions of one statement that take more bytes are not kept.
const MOST_BYTES: usize = 64 * 1024;

/// What a reply has told of its columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToldColumns {
    /// Nothing: the client has what it was told before.
    #[default]
    Nothing,
    /// The payload of each definition.
    Each(Vec<Vec<u8>>),
    /// More than is kept.
    TooLong,
}

/// What is kept of a reply.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    keeps: bool,
    told: ToldColumns,
    packet: Vec<u8>,
    bytes: usize,
}

impl Kept {
    pub(super) fn new(command: Command, capabilities: Capabilities) -> Kept {
        let prepared = matches!(command, Command::StmtPrepare | Command::StmtExecute);
        Kept {
            keeps: prepared && capabilities.contains(Capabilities::MARIADB_CACHE_METADATA),
            told: ToldColumns::Nothing,
            packet: Vec::new(),
            bytes: 0,
        }
    }

    /// Definitions follow.
    pub(super) fn begin(&mut self) {
        if self.keeps {
            (self.told, self.bytes) = (ToldColumns::Each(Vec::new()), 0);
        }
    }

    /// A piece of one.
    pub(super) fn take(&mut self, piece: &[u8], end: bool) {
        let ToldColumns::Each(each) = &mut self.told else {
            return;
        };
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > MOST_BYTES {
            (self.told, self.packet) = (ToldColumns::TooLong, Vec::new());
            return;
        }
        self.packet.extend_from_slice(piece);
        if end {
            each.push(std::mem::take(&mut self.packet));
        }
    }

    pub(super) fn take_all(&mut self) -> ToldColumns {
        std::mem::take(&mut self.told)
    }
}
