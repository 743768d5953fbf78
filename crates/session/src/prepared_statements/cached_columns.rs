//! The column definitions that were sent last for a statement, in sessions whose client caches them: MariaDB does not send them again.

use headwater_feed::result_metadata::ColumnFingerprint;
use headwater_wire::capability::Capabilities;
use headwater_wire::command::Command;
use headwater_wire::reply::{ReplyFollower, SentColumnDefinitions};

/// The columns of one statement.
#[derive(Clone, Debug, Default)]
pub struct CachedColumns(Option<ColumnFingerprint>);

impl CachedColumns {
    /// The definitions in the complete reply to a COM_STMT_PREPARE.
    #[must_use]
    pub fn of_prepared(reply: &[u8], capabilities: Capabilities) -> CachedColumns {
        let mut follower = ReplyFollower::new(Command::StmtPrepare, capabilities);
        follower.feed(reply);
        let mut columns = CachedColumns::default();
        columns.receive(follower.take_columns());
        columns
    }

    /// Takes the definitions of a reply, if it had any.
    pub fn receive(&mut self, sent: SentColumnDefinitions) {
        match sent {
            SentColumnDefinitions::Nothing => {}
            SentColumnDefinitions::Each(each) => {
                self.0 = ColumnFingerprint::read(each.iter().map(Vec::as_slice))
            }
            SentColumnDefinitions::TooLong => self.0 = None,
        }
    }

    /// Replaces the definitions.
    pub fn put(&mut self, columns: ColumnFingerprint) {
        self.0 = Some(columns);
    }

    /// The definitions that were sent last, if known.
    #[must_use]
    pub fn get(&self) -> Option<&ColumnFingerprint> {
        self.0.as_ref()
    }
}
