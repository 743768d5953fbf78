//! What was told last of a statement's columns, in sessions whose client keeps that: MariaDB does not tell it again.

use headwater_feed::variants::Columns;
use headwater_wire::capability::Capabilities;
use headwater_wire::command::Command;
use headwater_wire::reply::{Reply, ToldColumns};

/// Of one statement.
#[derive(Clone, Debug, Default)]
pub struct KeptColumns(Option<Columns>);

impl KeptColumns {
    /// What the whole reply to a COM_STMT_PREPARE has told.
    #[must_use]
    pub fn of_prepared(reply: &[u8], capabilities: Capabilities) -> KeptColumns {
        let mut walk = Reply::new(Command::StmtPrepare, capabilities);
        walk.feed(reply);
        let mut kept = KeptColumns::default();
        kept.hear(walk.take_columns());
        kept
    }

    /// Something was told, or nothing.
    pub fn hear(&mut self, told: ToldColumns) {
        match told {
            ToldColumns::Nothing => {}
            ToldColumns::Each(each) => self.0 = Columns::read(each.iter().map(Vec::as_slice)),
            ToldColumns::TooLong => self.0 = None,
        }
    }

    /// These were told.
    pub fn put(&mut self, columns: Columns) {
        self.0 = Some(columns);
    }

    /// What was told last, if that is known.
    #[must_use]
    pub fn get(&self) -> Option<&Columns> {
        self.0.as_ref()
    }
}
