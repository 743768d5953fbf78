//! The server's tables, and its transactions on their way: written to the log first, readable after that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::log::Log;
use crate::sql::{Relation, Value};

/// The rows as they are behind one transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    tables: BTreeMap<Table, BTreeSet<(u64, u64)>>,
    /// All cells of a table, once somebody has asked.
    relations: [OnceLock<Arc<Relation>>; 4],
}

/// A table. Of messages an entry is an id and its author, of follows a reader and an author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    Message,
    Follower,
    Statuses,
    Followers,
}

/// A row that comes or goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) table: Table,
    pub(crate) row: (u64, u64),
    pub(crate) comes: bool,
}

impl Table {
    pub(crate) const ALL: [Table; 4] = [
        Table::Message,
        Table::Follower,
        Table::Statuses,
        Table::Followers,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Message => "message",
            Table::Follower => "follower",
            Table::Statuses => "statuses",
            Table::Followers => "followers",
        }
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            Table::Message => &["id", "user_id", "body"],
            Table::Follower => &["user_id", "follower_id"],
            Table::Statuses => &["id", "profile_id", "caption"],
            Table::Followers => &["id", "profile_id", "following_id"],
        }
    }

    /// All cells of an entry.
    pub(crate) fn cells(self, (first, second): (u64, u64)) -> Vec<Value> {
        let [one, two] = [first, second].map(|number| Value::Number(number.into()));
        match self {
            Table::Message | Table::Statuses => {
                vec![one, two, Value::Text(format!("of {second}: {first}"))]
            }
            Table::Follower => vec![one, two],
            Table::Followers => vec![Value::Number((first * 1000 + second).into()), one, two],
        }
    }
}

impl State {
    pub(crate) fn relation(&self, table: &str) -> Option<Arc<Relation>> {
        let table = Table::ALL.into_iter().find(|it| it.name() == table)?;
        let relation = self.relations[table as usize].get_or_init(|| {
            let columns = table.columns().iter().map(|&it| it.to_owned());
            Arc::new(Relation {
                columns: columns.collect(),
                rows: self.entries(table).map(|row| table.cells(row)).collect(),
            })
        });
        Some(Arc::clone(relation))
    }

    pub(crate) fn entries(&self, table: Table) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.tables.get(&table).into_iter().flatten().copied()
    }

    pub(crate) fn apply(&mut self, change: &Change) {
        self.relations[change.table as usize] = OnceLock::new();
        let rows = self.tables.entry(change.table).or_default();
        match change.comes {
            true => rows.insert(change.row),
            false => rows.remove(&change.row),
        };
    }
}

/// A server's data.
#[derive(Debug)]
pub(crate) struct Model {
    /// Behind each transaction: the first is what was there at the beginning.
    states: Vec<Arc<State>>,
    /// The last that can be read.
    readable: usize,
    pub(crate) log: Log,
    /// Transactions that are open: their numbers, and whose they are.
    pub(crate) open: BTreeMap<u64, u64>,
    connections: u64,
    transactions: u64,
}

impl Model {
    pub(crate) fn new(state: State) -> Model {
        Model {
            states: vec![Arc::new(state)],
            readable: 0,
            log: Log::new(),
            open: BTreeMap::new(),
            connections: 10,
            transactions: 1000,
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

    pub(crate) fn state(&self, number: usize) -> Arc<State> {
        Arc::clone(&self.states[number])
    }

    /// The last state, whether it can be read or not.
    pub(crate) fn newest(&self) -> &State {
        self.states.last().expect("there is a first one")
    }

    /// A transaction begins to commit: it is in the log. Returns its number.
    pub(crate) fn write(&mut self, thread: u64, changes: &[Change]) -> usize {
        let mut state = self.newest().clone();
        for change in changes {
            state.apply(change);
        }
        self.states.push(Arc::new(state));
        self.log.transaction(changes);
        self.transactions += 1;
        self.open.insert(self.transactions, thread);
        self.states.len() - 1
    }

    /// The next transaction in the log becomes readable.
    pub(crate) fn commit(&mut self, thread: u64) {
        self.open.retain(|_, whose| *whose != thread);
        self.readable += 1;
    }
}
