//! The result tables of a session: on the server, in memory only, or both.

use std::sync::Arc;

use headwater_timeline::check::Options;
use headwater_timeline::{DefinitionId, Form, Head};

/// Ids that an owned call produced, and that the server's temporary tables may not hold yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Which definition the call belongs to (its place in the catalogue).
    pub definition: DefinitionId,
    /// What the procedures create their tables with.
    pub options: Arc<Options>,
    /// Which of its procedures was called.
    pub form: Form,
    /// The call's packet payload as the client sent it, to run the real procedure if all else fails.
    pub call: Vec<u8>,
    /// The result set, descending; `None`: the result table is what it is on the server.
    pub ids: Option<Vec<u64>>,
    /// Rows of the heads table, by author; `None`: it is what it is on the server.
    pub heads: Option<Vec<Head>>,
    /// The calls before it that are on the server no more than it is: run before it, they leave the
    /// tables as it found them. At most two: the last one to fill each table.
    pub before: Vec<(Form, Vec<u8>)>,
    /// The packet of the tail that was answered since: what it left behind (row counts) is the session's.
    pub tail: Option<Vec<u8>>,
    /// The last statements since that have nothing to do with the tables: then it is theirs.
    pub spared: Vec<Spared>,
    /// How many warnings of the procedure's text the call was told.
    pub warnings: u16,
    /// The packet of the last command since that is no statement and sets the row count back.
    pub aside: Option<Vec<u8>>,
}

/// Longest statement that is kept to be run again, should what it left behind be asked for.
pub const SPARED_BYTES: usize = 4 * 1024;
/// So many are kept, when one after the other fails, leaves counts as they are, or does not wait for replies.
const SPARED_IN_ROW: usize = 4;

/// A statement that went on to the server while the tables were pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spared {
    /// Its packet.
    pub packet: Vec<u8>,
    /// What it left behind is its own, and not in part that of the statement before it.
    pub whole: bool,
}

impl Spared {
    fn reads_variables(&self) -> bool {
        self.whole && self.packet.contains(&b'@')
    }
}

impl Pending {
    /// The tail was answered: what it leaves behind is the session's.
    pub fn answered(&mut self, tail: Vec<u8>) {
        self.tail = Some(tail);
        self.spared = Vec::new();
        self.aside = None;
    }

    /// Keeps a statement that goes on now; false where it cannot be run once more as it runs now.
    ///
    /// `overrules`: the last of those before it has succeeded, and left nothing of what was there before it.
    pub fn spare(&mut self, packet: &[u8], whole: bool, overrules: bool) -> bool {
        if overrules {
            self.forget_overruled();
        }
        if !whole {
            // It may give a variable another value, by which what is kept would answer otherwise.
            if self.spared.iter().any(Spared::reads_variables) {
                return false;
            }
            // What the one before it left is what it leaves.
            if overrules && self.aside.is_none() {
                self.spared.pop_if(|last| !last.whole);
            }
        }
        let spared = packet.len() <= SPARED_BYTES && self.spared.len() < SPARED_IN_ROW;
        if spared {
            let packet = packet.to_vec();
            self.spared.push(Spared { packet, whole });
            self.aside = None;
        }
        spared
    }

    /// The last of the spared statements has succeeded: what those before it left behind may be nobody's now.
    ///
    /// What one that failed left behind depends on the one before it.
    pub fn forget_overruled(&mut self) {
        // A command that is no statement succeeds behind one that failed, too.
        if self.aside.is_none()
            && let [before @ .., Spared { whole: true, .. }] = &self.spared[..]
        {
            self.spared.drain(..before.len());
        }
    }

    /// What has to run before the call that replaces this one, if the procedures themselves run.
    #[must_use]
    pub fn history(self) -> Vec<(Form, Vec<u8>)> {
        let (mut result, mut heads) = (false, false);
        let calls = self.before.into_iter().chain([(self.form, self.call)]);
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
pub enum Rows {
    /// The table does not exist in this session.
    Absent,
    /// It exists with so many rows.
    Counted(u64),
    /// It may exist; how many rows it has is not known.
    Unknown,
}

impl Rows {
    /// The number, where it is known.
    #[must_use]
    pub fn known(self) -> Option<u64> {
        match self {
            Rows::Absent => Some(0),
            Rows::Counted(rows) => Some(rows),
            Rows::Unknown => None,
        }
    }
}

/// The two result tables of a session as the server holds them, and what is pending on top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultTables {
    /// `fetch_timeline_tt` on the server.
    pub result: Rows,
    /// `max_ids_of_followers` on the server.
    pub heads: Rows,
    /// What an owned call left, to be written before anything else may look.
    pub pending: Option<Box<Pending>>,
    /// The definition and the database whose tables these are; `None` while there are none.
    place: Option<(DefinitionId, Vec<u8>)>,
}

impl ResultTables {
    /// A session that has just begun, or was reset: temporary tables are gone.
    #[must_use]
    pub fn none() -> Self {
        ResultTables {
            result: Rows::Absent,
            heads: Rows::Absent,
            pending: None,
            place: None,
        }
    }

    /// Turns to a definition's tables in a database. True when those may be other ones than before.
    pub fn turn_to(&mut self, definition: DefinitionId, database: &[u8]) -> bool {
        let same =
            |(number, name): &(DefinitionId, Vec<u8>)| *number == definition && name == database;
        let moved = self.place.as_ref().is_some_and(|place| !same(place));
        if moved {
            self.disturb();
        }
        if moved || self.place.is_none() {
            self.place = Some((definition, database.to_vec()));
        }
        moved
    }

    /// A command ran that may have created, filled or dropped tables.
    pub fn disturb(&mut self) {
        self.result = Rows::Unknown;
        self.heads = Rows::Unknown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle;
    use headwater_timeline::Form::{Bounded, Heads, Newest};

    /// What has to run before the next call, behind these ones that nothing was written between.
    fn history(calls: &[Form]) -> Vec<Form> {
        let mut before = Vec::new();
        for form in calls {
            let pending = Pending {
                form: *form,
                before,
                ..idle::pending(DefinitionId(0), Vec::new())
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
