//! Names of the tables and rows that memory follows.

use super::TimelineId;

/// Identifies a table whose rows memory follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableId {
    /// The message table of a timeline.
    Messages(TimelineId),
    /// The authors of a timeline's messages: a row is all messages of one author.
    Authors(TimelineId),
    /// A table whose rows are joined to messages, or list authors: its number among those.
    Joined(usize),
}

impl TableId {
    /// The timeline, if it is the table of its messages.
    #[must_use]
    pub fn timeline(self) -> Option<TimelineId> {
        match self {
            TableId::Messages(timeline) => Some(timeline),
            TableId::Authors(_) | TableId::Joined(_) => None,
        }
    }

    /// The table whose rows the log reports: that of the messages, for their authors.
    #[must_use]
    pub fn logged(self) -> TableId {
        match self {
            TableId::Authors(timeline) => TableId::Messages(timeline),
            TableId::Messages(_) | TableId::Joined(_) => self,
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
    /// The message's id, the author, or the value of the joined table's key.
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

    /// All messages of an author.
    #[must_use]
    pub fn author(timeline: TimelineId, author: u64) -> RowKey {
        RowKey {
            table: TableId::Authors(timeline),
            id: author,
        }
    }
}
