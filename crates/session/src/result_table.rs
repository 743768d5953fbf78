//! A session's result tables: on the server, in memory only, or both.

use std::sync::Arc;

use headwater_timeline::check::TemporaryTableOptions;
use headwater_timeline::{AuthorHead, DefinitionId, ProcedureForm};

/// Ids of a served call that the server's temporary tables may not hold yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingIds {
    /// The call's definition (its index in the catalogue).
    pub definition: DefinitionId,
    /// The options of the procedures' CREATE TEMPORARY TABLE.
    pub options: Arc<TemporaryTableOptions>,
    /// Which procedure was called.
    pub form: ProcedureForm,
    /// The client's payload of the call, to run the real procedure if all else fails.
    pub call: Vec<u8>,
    /// The result set, descending; `None`: the server's result table is current.
    pub ids: Option<Vec<u64>>,
    /// The heads table's rows, by author; `None`: the server's table is current.
    pub heads: Option<Vec<AuthorHead>>,
    /// Earlier calls that the server has not run either: run before this call, they leave the tables as it found them. At most two: the
    /// last one to fill each table.
    pub earlier_calls: Vec<(ProcedureForm, Vec<u8>)>,
    /// The packet of the follow-up SELECT that was served since: the session's row counts are from it.
    pub follow_up: Option<Vec<u8>>,
    /// The last statements since that do not use the tables: then the row counts are theirs.
    pub replayable: Vec<ReplayableStatement>,
    /// How many parse warnings the call reported.
    pub warnings: u16,
    /// The packet of the last command since that is no statement and resets the row count.
    pub count_reset: Option<Vec<u8>>,
}

/// Longer statements are not held to run again, when their counts or warnings are read.
pub const MAX_REPLAY_BYTES: usize = 4 * 1024;
/// The limit on held statements, when each fails, keeps counts, or is pipelined.
const MAX_REPLAYABLE: usize = 4;

/// A statement that was relayed while the tables were pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayableStatement {
    /// Its packet.
    pub packet: Vec<u8>,
    /// Its counts and warnings are all its own; none are from the statement before it.
    pub whole: bool,
}

impl ReplayableStatement {
    fn reads_variables(&self) -> bool {
        self.whole && self.packet.contains(&b'@')
    }
}

impl PendingIds {
    /// The follow-up SELECT was served: the session's row counts are from it.
    pub fn follow_up_answered(&mut self, packet: Vec<u8>) {
        self.follow_up = Some(packet);
        self.replayable = Vec::new();
        self.count_reset = None;
    }

    /// Holds a statement that is relayed now; false where it cannot run again with the same result.
    ///
    /// `overrules`: the last of those before it has succeeded, and left no earlier counts or warnings.
    pub fn record_replayable(&mut self, packet: &[u8], whole: bool, overrules: bool) -> bool {
        if overrules {
            self.forget_overruled();
        }
        if !whole {
            // It may change a variable that the held statements depend on.
            if self
                .replayable
                .iter()
                .any(ReplayableStatement::reads_variables)
            {
                return false;
            }
            // It leaves what the one before it left.
            if overrules && self.count_reset.is_none() {
                self.replayable.pop_if(|last| !last.whole);
            }
        }
        let spared = packet.len() <= MAX_REPLAY_BYTES && self.replayable.len() < MAX_REPLAYABLE;
        if spared {
            let packet = packet.to_vec();
            self.replayable.push(ReplayableStatement { packet, whole });
            self.count_reset = None;
        }
        spared
    }

    /// The last of the held statements has succeeded: what those before it left may be gone now.
    ///
    /// What a failed statement leaves depends on the one before it.
    pub fn forget_overruled(&mut self) {
        // A command that is no statement succeeds even after a failed one.
        if self.count_reset.is_none()
            && let [before @ .., ReplayableStatement { whole: true, .. }] = &self.replayable[..]
        {
            self.replayable.drain(..before.len());
        }
    }

    /// The calls that must run before the one that replaces this one, if the procedures themselves run.
    #[must_use]
    pub fn history(self) -> Vec<(ProcedureForm, Vec<u8>)> {
        let (mut result, mut heads) = (false, false);
        let calls = self
            .earlier_calls
            .into_iter()
            .chain([(self.form, self.call)]);
        let mut history: Vec<_> = calls.rev().collect();
        // Whatever filled a table before does not matter once a later call fills it anew.
        history.retain(|(form, _)| {
            let last = (form.fills_result() && !result) || (form.fills_heads() && !heads);
            result |= form.fills_result();
            heads |= form.fills_heads();
            last
        });
        history.reverse();
        history
    }
}

/// The row count of one of the server's temporary tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRowCount {
    /// The table does not exist in this session.
    Absent,
    /// It exists with this many rows.
    Counted(u64),
    /// It may exist; its row count is unknown.
    Unknown,
}

impl TableRowCount {
    /// The count, if known.
    #[must_use]
    pub fn known_count(self) -> Option<u64> {
        match self {
            TableRowCount::Absent => Some(0),
            TableRowCount::Counted(rows) => Some(rows),
            TableRowCount::Unknown => None,
        }
    }
}

/// A session's two result tables on the server, and the pending ids that replace them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultTables {
    /// `fetch_timeline_tt` on the server.
    pub result: TableRowCount,
    /// `max_ids_of_followers` on the server.
    pub heads: TableRowCount,
    /// The pending ids of a served call, to be written before another statement reads the tables.
    pub pending: Option<Box<PendingIds>>,
    /// The definition and database of these tables; `None` while there are none.
    owner: Option<(DefinitionId, Vec<u8>)>,
}

impl ResultTables {
    /// A new or reset session: it has no temporary tables.
    #[must_use]
    pub fn none() -> Self {
        ResultTables {
            result: TableRowCount::Absent,
            heads: TableRowCount::Absent,
            pending: None,
            owner: None,
        }
    }

    /// Switches to a definition's tables in a database. True when those may be others than before.
    pub fn switch_to(&mut self, definition: DefinitionId, database: &[u8]) -> bool {
        let same =
            |(number, name): &(DefinitionId, Vec<u8>)| *number == definition && name == database;
        let moved = self.owner.as_ref().is_some_and(|owner| !same(owner));
        if moved {
            self.invalidate();
        }
        if moved || self.owner.is_none() {
            self.owner = Some((definition, database.to_vec()));
        }
        moved
    }

    /// A command may have created, filled or dropped the tables.
    pub fn invalidate(&mut self) {
        self.result = TableRowCount::Unknown;
        self.heads = TableRowCount::Unknown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle_session;
    use headwater_timeline::ProcedureForm::{Bounded, Heads, Newest};

    /// The calls that must run before the next one, after these calls without a write in between.
    fn history(calls: &[ProcedureForm]) -> Vec<ProcedureForm> {
        let mut before = Vec::new();
        for form in calls {
            let pending = PendingIds {
                form: *form,
                earlier_calls: before,
                ..idle_session::pending(DefinitionId(0), Vec::new())
            };
            before = pending.history();
        }
        before.into_iter().map(|(form, _)| form).collect()
    }

    #[test]
    fn the_last_call_to_fill_each_table_is_history_and_no_other() {
        assert_eq!(history(&[]), []);
        assert_eq!(history(&[Newest, Bounded]), [Bounded]);
        assert_eq!(history(&[Bounded, Newest]), [Bounded, Newest]);
        assert_eq!(history(&[Bounded, Newest, Newest]), [Bounded, Newest]);
        assert_eq!(history(&[Bounded, Newest, Heads]), [Newest, Heads]);
        assert_eq!(history(&[Bounded, Heads]), [Bounded, Heads]);
        assert_eq!(history(&[Heads, Newest, Heads, Newest]), [Heads, Newest]);
        assert_eq!(history(&[Bounded, Heads, Newest, Bounded]), [Bounded]);
    }
}
