//! Names of the tables and rows that memory follows.

use super::TimelineId;

/// Identifies a table whose rows memory follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableId {
    /// The message table of a timeline.
    Messages(TimelineId),
    /// A table whose rows are joined to messages, or list authors: its number among those.
    Joined(usize),
}

impl TableId {
    /// The timeline, if it is the table of its messages.
    #[must_use]
    pub fn timeline(self) -> Option<TimelineId> {
        match self {
            TableId::Messages(timeline) => Some(timeline),
            TableId::Joined(_) => None,
        }
    }
}

impl From<TimelineId> for TableId {
    fn from(timeline: TimelineId) -> TableId {
        TableId::Messages(timeline)
    }
}

/// Identifies a row of such a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The table.
    pub table: TableId,
    /// The message's id, or the value of the joined table's key.
    pub id: u64,
}

impl RowKey {
    /// The row of a message.
    #[must_use]
    pub fn message(timeline: TimelineId, id: u64) -> RowKey {
        RowKey {
            table: TableId::Messages(timeline),
            id,
        }
    }
}
