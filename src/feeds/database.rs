//! What is known of one database: its tables as they were seen last, and which feeds can be served from them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::binlog::{Binlog, Place};
use crate::catalogue::Epoch;
use crate::feed::FeedDefinition;
use crate::feed::bind::Types;
use crate::feed::check::{self, Obstacle};
use crate::feed::facts::Tables;
use crate::index::PlaceId;
use crate::log::tables::{self, KeyName, Names};
use crate::timeline::definition::{FollowerTable, IntType, MessageTable};

/// More tables are not looked at in one database.
const MOST_TABLES: usize = 1_000;

/// One database.
#[derive(Debug, Default)]
pub(super) struct Database {
    tables: Arc<Tables>,
    wanted: BTreeSet<String>,
    /// Counts how often they changed.
    version: u64,
    seen: Option<(Instant, Epoch)>,
    served: Vec<Served>,
}

/// Whether a feed is served from a database.
#[derive(Clone, Debug)]
pub(super) enum Served {
    /// It is.
    Yes {
        types: Types,
        /// `None`: too many timelines are in memory already.
        place: Option<Arc<Place>>,
    },
    /// It is not, and this is why.
    No(Vec<Obstacle>),
    /// It is another database's.
    Elsewhere,
}

impl Database {
    pub(super) fn is_fresh(&self, epoch: Epoch, lifetime: Duration) -> bool {
        self.seen
            .is_some_and(|(at, then)| then == epoch && at.elapsed() < lifetime)
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.tables)
    }

    /// By the feed's place among all.
    pub(super) fn served(&self, feed: usize) -> Option<&Served> {
        self.served.get(feed)
    }

    /// Adds tables that are to be looked at. True if one of them was not before.
    pub(super) fn want(&mut self, tables: impl IntoIterator<Item = String>) -> bool {
        let before = self.wanted.len();
        for table in tables {
            if self.wanted.len() < MOST_TABLES {
                self.wanted.insert(table);
            }
        }
        self.wanted.len() > before
    }

    pub(super) fn wanted(&self) -> Vec<String> {
        self.wanted.iter().cloned().collect()
    }

    /// Each feed is to be judged again: one has changed.
    pub(super) fn reconsider(&mut self) {
        self.seen = None;
        self.served.clear();
    }

    /// Takes in the tables as they were seen at a time. Tells what became of each feed, where that is new.
    pub(super) fn saw(
        &mut self,
        tables: Tables,
        definitions: &[Arc<FeedDefinition>],
        binlog: &Binlog,
        (at, epoch): (Instant, Epoch),
    ) {
        self.seen = Some((at, epoch));
        if *self.tables == tables && self.served.len() == definitions.len() {
            return;
        }
        self.version += 1;
        let before = std::mem::take(&mut self.served);
        for (number, definition) in definitions.iter().enumerate() {
            let served = Served::of(definition, &tables, binlog);
            let name = &definition.name;
            let database = &tables.database;
            match (&served, before.get(number)) {
                (Served::Yes { .. }, Some(Served::Yes { .. })) | (Served::Elsewhere, _) => {}
                (Served::Yes { place: Some(_), .. }, _) => {
                    tracing::info!("feed {name} in database {database}: served");
                }
                (Served::Yes { place: None, .. }, _) => {
                    tracing::warn!(
                        "feed {name} in database {database}: relayed, as many timelines are in memory as can be"
                    );
                }
                (Served::No(found), before) => {
                    let told = matches!(before, Some(Served::No(before)) if before == found);
                    if !told {
                        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                        let found = found.join("; ");
                        tracing::warn!("feed {name} in database {database}: relayed, {found}");
                    }
                }
            }
            self.served.push(served);
        }
        self.tables = Arc::new(tables);
    }
}

impl Served {
    fn of(definition: &FeedDefinition, tables: &Tables, binlog: &Binlog) -> Served {
        let database = &tables.database;
        let own = definition.database.as_ref();
        let elsewhere = match own {
            Some(own) => own != database,
            // One without the feed's messages is no place for it.
            None => tables.facts(&definition.message.table).is_none(),
        };
        if elsewhere {
            return Served::Elsewhere;
        }
        match check::check(definition, tables) {
            Ok(types) => Served::Yes {
                place: binlog.place(rows_of(definition, types, database)),
                types,
            },
            Err(found) => Served::No(found),
        }
    }
}

/// Pages that are loaded beforehand have so many messages.
const PAGE: usize = 20;

/// Where a feed's rows come from.
#[must_use]
pub fn rows_of(definition: &FeedDefinition, types: Types, database: &str) -> tables::Tables {
    let int = |signed| match signed {
        true => IntType::BigInt,
        false => IntType::BigIntUnsigned,
    };
    tables::Tables {
        place: PlaceId(0),
        database: database.to_owned(),
        names: Names {
            message: MessageTable {
                table: definition.message.table.clone(),
                id: definition.message.id.clone(),
                author: definition.message.author.clone(),
            },
            key: types
                .key
                .zip(definition.key())
                .map(|(kind, column)| KeyName {
                    column: column.to_owned(),
                    kind,
                }),
            follower: definition.follow.as_ref().map(|follow| FollowerTable {
                table: follow.table.clone(),
                reader: follow.reader.clone(),
                author: follow.author.clone(),
            }),
            id_type: int(types.id.signed),
            elsewhere: false,
            user_type: int(types.author.signed),
        },
        n: PAGE,
    }
}
