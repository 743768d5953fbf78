//! The result tables of a session: on the server, in memory only, or both.

use std::sync::Arc;

use headwater_timeline::check::TemporaryTableOptions;
use headwater_timeline::{AuthorHead, DefinitionId, ProcedureForm};

/// Ids that an owned call produced, and that the server's temporary tables may not hold yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingIds {
    /// Which definition the call belongs to (its place in the catalogue).
    pub definition: DefinitionId,
    /// What the procedures create their tables with.
    pub options: Arc<TemporaryTableOptions>,
    /// Which of its procedures was called.
    pub form: ProcedureForm,
    /// The call's packet payload as the client sent it, to run the real procedure if all else fails.
    pub call: Vec<u8>,
    /// The result set, descending; `None`: the result table is what it is on the server.
    pub ids: Option<Vec<u64>>,
    /// Rows of the heads table, by author; `None`: it is what it is on the server.
    pub heads: Option<Vec<AuthorHead>>,
    /// The calls before it that are on the server no more than it is: run before it, they leave the
    /// tables as it found them. At most two: the last one to fill each table.
    pub earlier_calls: Vec<(ProcedureForm, Vec<u8>)>,
    /// The packet of the tail that was answered since: what it left behind (row counts) is the session's.
    pub follow_up: Option<Vec<u8>>,
    /// The last statements since that have nothing to do with the tables: then it is theirs.
    pub replayable: Vec<ReplayableStatement>,
    /// How many warnings of the procedure's text the call was told.
    pub warnings: u16,
    /// The packet of the last command since that is no statement and sets the row count back.
    pub count_reset: Option<Vec<u8>>,
}

/// Longest statement that is kept to be run again, should what it left behind be asked for.
pub const MAX_REPLAY_BYTES: usize = 4 * 1024;
/// So many are kept, when one after the other fails, leaves counts as they are, or does not wait for replies.
const MAX_REPLAYABLE: usize = 4;

/// A statement that went on to the server while the tables were pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayableStatement {
    /// Its packet.
    pub packet: Vec<u8>,
    /// What it left behind is its own, and not in part that of the statement before it.
    pub whole: bool,
}

impl ReplayableStatement {
    fn reads_variables(&self) -> bool {
        self.whole && self.packet.contains(&b'@')
    }
}

impl PendingIds {
    /// The tail was answered: what it leaves behind is the session's.
    pub fn follow_up_answered(&mut self, tail: Vec<u8>) {
        self.follow_up = Some(tail);
        self.replayable = Vec::new();
        self.count_reset = None;
    }

    /// Keeps a statement that goes on now; false where it cannot be run once more as it runs now.
    ///
    /// `overrules`: the last of those before it has succeeded, and left nothing of what was there before it.
    pub fn record_replayable(&mut self, packet: &[u8], whole: bool, overrules: bool) -> bool {
        if overrules {
            self.forget_overruled();
        }
        if !whole {
            // It may give a variable another value, by which what is kept would answer otherwise.
            if self
                .replayable
                .iter()
                .any(ReplayableStatement::reads_variables)
            {
                return false;
            }
            // What the one before it left is what it leaves.
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

    /// The last of the spared statements has succeeded: what those before it left behind may be nobody's now.
    ///
    /// What one that failed left behind depends on the one before it.
    pub fn forget_overruled(&mut self) {
        // A command that is no statement succeeds behind one that failed, too.
        if self.count_reset.is_none()
            && let [before @ .., ReplayableStatement { whole: true, .. }] = &self.replayable[..]
        {
            self.replayable.drain(..before.len());
        }
    }

    /// What has to run before the call that replaces this one, if the procedures themselves run.
    #[must_use]
    pub fn history(self) -> Vec<(ProcedureForm, Vec<u8>)> {
        let (mut result, mut heads) = (false, false);
        let calls = self
            .earlier_calls
            .into_iter()
            .chain([(self.form, self.call)]);
        let mut history: Vec<_> = calls.rev().collect();
        // What a later one fills anew, it does not matter who had filled before.
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

/// Rows in one of the server's temporary tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRowCount {
    /// The table does not exist in this session.
    Absent,
    /// It exists with so many rows.
    Counted(u64),
    /// It may exist; how many rows it has is not known.
    Unknown,
}

impl TableRowCount {
    /// The number, where it is known.
    #[must_use]
    pub fn known_count(self) -> Option<u64> {
        match self {
            TableRowCount::Absent => Some(0),
            TableRowCount::Counted(rows) => Some(rows),
            TableRowCount::Unknown => None,
        }
    }
}

/// The two result tables of a session as the server holds them, and what is pending on top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultTables {
    /// `fetch_timeline_tt` on the server.
    pub result: TableRowCount,
    /// `max_ids_of_followers` on the server.
    pub heads: TableRowCount,
    /// What an owned call left, to be written before anything else may look.
    pub pending: Option<Box<PendingIds>>,
    /// The definition and the database whose tables these are; `None` while there are none.
    owner: Option<(DefinitionId, Vec<u8>)>,
}

impl ResultTables {
    /// A session that has just begun, or was reset: temporary tables are gone.
    #[must_use]
    pub fn none() -> Self {
        ResultTables {
            result: TableRowCount::Absent,
            heads: TableRowCount::Absent,
            pending: None,
            owner: None,
        }
    }

    /// Turns to a definition's tables in a database. True when those may be other ones than before.
    pub fn switch_to(&mut self, definition: DefinitionId, database: &[u8]) -> bool {
        let same =
            |(number, name): &(DefinitionId, Vec<u8>)| *number == definition && name == database;
        let moved = self.owner.as_ref().is_some_and(|place| !same(place));
        if moved {
            self.invalidate();
        }
        if moved || self.owner.is_none() {
            self.owner = Some((definition, database.to_vec()));
        }
        moved
    }

    /// A command ran that may have created, filled or dropped tables.
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

    /// What has to run before the next call, behind these ones that nothing was written between.
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
