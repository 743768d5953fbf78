//! What was told last of a statement's columns, in sessions whose client keeps that: MariaDB does not tell it again.

use headwater_feed::result_metadata::ColumnFingerprint;
use headwater_wire::capability::Capabilities;
use headwater_wire::command::Command;
use headwater_wire::reply::{ReplyFollower, SentColumnDefinitions};

/// Of one statement.
#[derive(Clone, Debug, Default)]
pub struct CachedColumns(Option<ColumnFingerprint>);

impl CachedColumns {
    /// What the whole reply to a COM_STMT_PREPARE has told.
    #[must_use]
    pub fn of_prepared(reply: &[u8], capabilities: Capabilities) -> CachedColumns {
        let mut walk = ReplyFollower::new(Command::StmtPrepare, capabilities);
        walk.feed(reply);
        let mut kept = CachedColumns::default();
        kept.receive(walk.take_columns());
        kept
    }

    /// Something was told, or nothing.
    pub fn receive(&mut self, told: SentColumnDefinitions) {
        match told {
            SentColumnDefinitions::Nothing => {}
            SentColumnDefinitions::Each(each) => {
                self.0 = ColumnFingerprint::read(each.iter().map(Vec::as_slice))
            }
            SentColumnDefinitions::TooLong => self.0 = None,
        }
    }

    /// These were told.
    pub fn put(&mut self, columns: ColumnFingerprint) {
        self.0 = Some(columns);
    }

    /// What was told last, if that is known.
    #[must_use]
    pub fn get(&self) -> Option<&ColumnFingerprint> {
        self.0.as_ref()
    }
}
