//! The server's tables, and its transactions in progress: first written to the log, then readable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use crate::log::ModelLog;
use crate::rights::AccountRight;
use crate::sql::{CellValue, SelectResult};

/// A table. Rows: of messages id, author, version; of follows and blocks reader, author; of profiles author, version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ModelTable {
    Message,
    Follower,
    Statuses,
    Followers,
    Profiles,
    Blocks,
}

pub(crate) type WorldRow = (u64, u64, u64);

/// An insert, a delete or an update of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowEdit {
    pub(crate) table: ModelTable,
    pub(crate) before: Option<WorldRow>,
    pub(crate) after: Option<WorldRow>,
}

/// A change by a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableChange {
    Row(RowEdit),
    /// TRUNCATE.
    Empty(ModelTable),
    /// ALTER: adds one column, if it was not added yet.
    Widen(ModelTable),
}

impl TableChange {
    fn table(&self) -> ModelTable {
        match *self {
            TableChange::Row(edit) => edit.table,
            TableChange::Empty(table) | TableChange::Widen(table) => table,
        }
    }

    /// True if one has to wait for the other's locks: on its rows, or on its table.
    fn conflicts_with(&self, other: &TableChange) -> bool {
        self.table() == other.table()
            && match (self, other) {
                (TableChange::Row(one), TableChange::Row(other)) => {
                    let mut keys = one.keys();
                    keys.any(|key| other.keys().any(|other| other == key))
                }
                _ => true,
            }
    }
}

impl RowEdit {
    /// The keys of the changed rows.
    fn keys(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let has_ids = self.table.has_ids();
        let rows = [self.before, self.after].into_iter().flatten();
        rows.map(move |(first, second, _)| (first, if has_ids { 0 } else { second }))
    }

    /// An insert.
    pub(crate) fn insert(table: ModelTable, row: WorldRow) -> RowEdit {
        RowEdit {
            table,
            before: None,
            after: Some(row),
        }
    }
}

impl ModelTable {
    pub(crate) const ALL: [ModelTable; 6] = [
        ModelTable::Message,
        ModelTable::Follower,
        ModelTable::Statuses,
        ModelTable::Followers,
        ModelTable::Profiles,
        ModelTable::Blocks,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            ModelTable::Message => "message",
            ModelTable::Follower => "follower",
            ModelTable::Statuses => "statuses",
            ModelTable::Followers => "followers",
            ModelTable::Profiles => "profiles",
            ModelTable::Blocks => "blocks",
        }
    }

    pub(crate) fn named(name: &str) -> Option<ModelTable> {
        ModelTable::ALL.into_iter().find(|it| it.name() == name)
    }

    /// True if rows have a single id; in the other tables two columns are the key.
    fn has_ids(self) -> bool {
        matches!(
            self,
            ModelTable::Message | ModelTable::Statuses | ModelTable::Profiles
        )
    }

    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            ModelTable::Message => &["id", "user_id", "body"],
            ModelTable::Follower => &["user_id", "follower_id"],
            ModelTable::Statuses => &["id", "profile_id", "caption"],
            ModelTable::Followers => &["id", "profile_id", "following_id"],
            ModelTable::Profiles => &["id", "name"],
            ModelTable::Blocks => &["profile_id", "blocked_id"],
        }
    }

    /// All cells of a row.
    pub(crate) fn cells(self, row: WorldRow) -> Vec<CellValue> {
        let (first, second, _) = row;
        let [one, two] = [first, second].map(|number| CellValue::Number(number.into()));
        match self {
            ModelTable::Message | ModelTable::Statuses => {
                vec![one, two, CellValue::Text(text(row))]
            }
            ModelTable::Follower | ModelTable::Blocks => vec![one, two],
            ModelTable::Followers => vec![CellValue::Number(key(row).into()), one, two],
            ModelTable::Profiles => vec![one, CellValue::Text(name(row))],
        }
    }
}

/// The body of a message.
pub(crate) fn text((id, author, version): WorldRow) -> String {
    format!("of {author}: {id}.{version}")
}

/// The name of an author.
pub(crate) fn name((author, _, version): WorldRow) -> String {
    format!("author {author}.{version}")
}

/// The primary key of a row of `followers`.
pub(crate) fn key((reader, author, _): WorldRow) -> u64 {
    reader * 1000 + author
}

/// The rows after one transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelState {
    tables: [Arc<TableRows>; 6],
    /// The tables with the added column.
    wide: [bool; 6],
}

#[derive(Debug, Default)]
struct TableRows {
    rows: BTreeSet<WorldRow>,
    /// All cells, computed on first use.
    relation: OnceLock<Arc<SelectResult>>,
}

impl ModelState {
    pub(crate) fn relation(&self, table: &str) -> Option<Arc<SelectResult>> {
        let table = ModelTable::named(table)?;
        let relation = self.tables[table as usize].relation.get_or_init(|| {
            let columns = table.columns().iter().map(|&it| it.to_owned());
            Arc::new(SelectResult {
                columns: columns.collect(),
                rows: self.rows(table).map(|row| table.cells(row)).collect(),
            })
        });
        Some(Arc::clone(relation))
    }

    pub(crate) fn rows(&self, table: ModelTable) -> impl DoubleEndedIterator<Item = WorldRow> + '_ {
        self.tables[table as usize].rows.iter().copied()
    }

    pub(crate) fn is_wide(&self, table: ModelTable) -> bool {
        self.wide[table as usize]
    }

    /// The row with the key of this one.
    pub(crate) fn like(&self, table: ModelTable, (first, second, _): WorldRow) -> Option<WorldRow> {
        let (from, to) = match table.has_ids() {
            true => ((first, 0, 0), (first, u64::MAX, u64::MAX)),
            false => ((first, second, 0), (first, second, u64::MAX)),
        };
        let mut alike = self.tables[table as usize].rows.range(from..=to);
        alike.next().copied()
    }

    pub(crate) fn newest(&self, table: ModelTable) -> u64 {
        self.rows(table).next_back().map_or(0, |(id, _, _)| id)
    }

    /// The rows after these edits, as far as they are possible.
    pub(crate) fn with(&self, edits: &[RowEdit]) -> ModelState {
        let mut state = self.clone();
        for edit in edits {
            state.apply(*edit);
        }
        state
    }

    /// Applies the part of a change that is still possible, and returns it: other transactions may have been first.
    fn change(&mut self, change: TableChange) -> Option<TableChange> {
        match change {
            TableChange::Row(edit) => self.apply(edit).map(TableChange::Row),
            TableChange::Empty(table) => {
                self.tables[table as usize] = Arc::default();
                Some(change)
            }
            TableChange::Widen(table) => {
                let is_wide = &mut self.wide[table as usize];
                (!std::mem::replace(is_wide, true)).then_some(change)
            }
        }
    }

    /// The same for an edit.
    pub(crate) fn apply(&mut self, edit: RowEdit) -> Option<RowEdit> {
        let RowEdit {
            table,
            before,
            after,
        } = edit;
        let before = match before {
            Some(row) => Some(self.like(table, row)?),
            None => None,
        };
        let takes = |row| match self.like(table, row) {
            None => true,
            // The row keeps its own key.
            own => own == before,
        };
        if !after.is_none_or(takes) {
            return None;
        }
        let old = &self.tables[table as usize].rows;
        let mut rows = old.clone();
        if let Some(before) = before {
            rows.remove(&before);
        }
        rows.extend(after);
        self.tables[table as usize] = Arc::new(TableRows {
            rows,
            relation: OnceLock::new(),
        });
        Some(RowEdit { before, ..edit })
    }
}

/// A server's data.
#[derive(Debug)]
pub(crate) struct WorldModel {
    /// The state after each transaction; the first is the initial state.
    states: Vec<Arc<ModelState>>,
    /// The index of the last readable state.
    readable: usize,
    /// The changes of later transactions, by index.
    hidden: BTreeMap<usize, Vec<TableChange>>,
    pub(crate) log: ModelLog,
    /// Open transactions by number, with their sessions.
    pub(crate) open: BTreeMap<u64, u64>,
    /// Sessions whose transactions are in the log and not yet readable: other sessions wait for them.
    pub(crate) committing: BTreeSet<u64>,
    /// Rights that the service account lacks now.
    pub(crate) denied: BTreeSet<AccountRight>,
    connections: u64,
    transactions: u64,
    started: Instant,
    /// The number of restarts.
    pub(crate) run: u64,
}

impl WorldModel {
    pub(crate) fn new(state: ModelState) -> WorldModel {
        WorldModel {
            states: vec![Arc::new(state)],
            readable: 0,
            hidden: BTreeMap::new(),
            log: ModelLog::new(),
            open: BTreeMap::new(),
            committing: BTreeSet::new(),
            denied: BTreeSet::new(),
            connections: 10,
            transactions: 1000,
            started: Instant::now(),
            run: 0,
        }
    }

    pub(crate) fn connect(&mut self) -> u64 {
        self.connections += 1;
        self.connections
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections
    }

    pub(crate) fn readable(&self) -> usize {
        self.readable
    }

    pub(crate) fn state(&self, number: usize) -> Arc<ModelState> {
        Arc::clone(&self.states[number])
    }

    /// The last state, readable or not.
    pub(crate) fn newest(&self) -> &ModelState {
        self.states.last().expect("there is a first one")
    }

    /// Gives a number to a transaction that has changed something.
    pub(crate) fn begin(&mut self, thread: u64) {
        if !self.open.values().any(|whose| *whose == thread) {
            self.transactions += 1;
            self.open.insert(self.transactions, thread);
        }
    }

    /// Ends a session's transaction.
    pub(crate) fn end(&mut self, thread: u64) {
        self.open.retain(|_, whose| *whose != thread);
    }

    /// True if these changes have to wait: a transaction that is not yet readable still holds its locks.
    pub(crate) fn is_locked(&self, changes: &[TableChange]) -> bool {
        let mut held = self.hidden.values().flatten();
        held.any(|held| changes.iter().any(|change| held.conflicts_with(change)))
    }

    /// Begins to commit a transaction: it is in the log. Returns its number and its changes.
    pub(crate) fn write(
        &mut self,
        thread: u64,
        changes: &[TableChange],
    ) -> Option<(usize, Vec<TableChange>)> {
        let mut state = self.newest().clone();
        let changes: Vec<TableChange> = changes.iter().filter_map(|it| state.change(*it)).collect();
        if changes.is_empty() {
            return None;
        }
        let number = self.states.len();
        self.log.transaction(number, &changes, &state);
        self.states.push(Arc::new(state));
        self.begin(thread);
        self.committing.insert(thread);
        self.hidden.insert(number, changes.clone());
        Some((number, changes))
    }

    /// Makes a transaction of the log readable, unless a restart has done so.
    pub(crate) fn commit(&mut self, thread: u64, number: usize) {
        self.end(thread);
        self.committing.remove(&thread);
        self.readable = self.readable.max(number);
        self.hidden.retain(|number, _| *number > self.readable);
    }

    /// An orderly restart: the whole log is readable.
    pub(crate) fn restart(&mut self) {
        self.readable = self.states.len() - 1;
        self.log.stop();
        self.start();
    }

    /// A kill and restart of a durable server: the whole log is readable.
    pub(crate) fn crash(&mut self) {
        self.readable = self.states.len() - 1;
        self.log.crash(self.readable);
        self.start();
    }

    /// The same of a server that is not durable: it loses its last transactions, in the log as well or in the tables alone.
    pub(crate) fn lose(&mut self, count: usize, logged: bool) {
        let remaining = self.readable.saturating_sub(count);
        self.log.crash(match logged {
            true => self.states.len(),
            false => remaining,
        });
        let state = self.state(remaining);
        self.states.push(state);
        self.readable = self.states.len() - 1;
        self.start();
    }

    /// A replica replaces the server: without the last transactions, and with rows that were changed on it alone.
    pub(crate) fn promote(&mut self, lost: usize, drift: &[RowEdit]) {
        let remaining = (self.states.len() - 1).saturating_sub(lost);
        self.log = self.log.replicated(remaining);
        let state = self.state(remaining).with(drift);
        self.states.push(Arc::new(state));
        self.readable = self.states.len() - 1;
        self.start();
    }

    fn start(&mut self) {
        self.open.clear();
        self.committing.clear();
        self.hidden.clear();
        self.connections = 10;
        self.started = Instant::now();
        self.run += 1;
    }

    /// The uptime in seconds.
    pub(crate) fn uptime(&self) -> u64 {
        let before = if self.run == 0 { 1000 } else { 0 };
        before + self.started.elapsed().as_secs()
    }
}
