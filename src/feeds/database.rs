//! What is known of one database: its tables as they were seen last, and which feeds can be served from them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Feed;
use super::cause::in_one_line;
use crate::binlog::{Aside, Binlog, Place};
use crate::catalogue::Epoch;
use crate::clock;
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
    /// What the log was told of each.
    said: Vec<Option<Said>>,
}

/// What the log was told of a feed.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Served,
    Refused(String),
    /// Nothing is in its own way.
    Waits,
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
            .is_some_and(|(at, then)| then == epoch && clock::since(at) < lifetime)
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
        self.said.clear();
    }

    /// Takes in the tables as they were seen at a time.
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
            let was_here = before.get(number).is_some_and(Served::is_here);
            self.served
                .push(Served::of(definition, &tables, binlog, was_here));
        }
        self.tables = Arc::new(tables);
    }

    /// Says what became of each feed, where that was not said before. Nothing is served while the log is not followed.
    pub(super) fn announce(&mut self, feeds: &[Feed], aside: Option<&Aside>) {
        let database = &self.tables.database;
        self.said.resize_with(self.served.len(), || None);
        let each = feeds.iter().zip(&self.served).zip(&mut self.said);
        for ((feed, served), said) in each {
            let name = &feed.definition.name;
            let place = match served {
                Served::Yes { place, .. } => place.as_ref(),
                Served::No(_) | Served::Elsewhere => None,
            };
            let next = match (served, aside, place.map(|place| place.bar())) {
                (Served::Elsewhere, ..) => continue,
                (Served::No(found), ..) => Said::Refused(in_one_line(found)),
                (_, _, None) => {
                    Said::Refused("as many timelines are in memory as can be".to_owned())
                }
                (_, _, Some(Some(bar))) => Said::Refused(bar.text),
                // What interrupts it is said of the log.
                (_, Some(_), _) if matches!(said, Some(Said::Served)) => continue,
                (_, Some(aside), _) if aside.is_a_beginning() => continue,
                (_, Some(_), _) => Said::Waits,
                (_, None, _) if place.is_some_and(|place| place.was_learned()) => Said::Served,
                // It will be in a moment.
                (_, None, _) => continue,
            };
            if said.as_ref() == Some(&next) {
                continue;
            }
            match (&next, aside) {
                (Said::Served, _) => tracing::info!("feed {name} in database {database}: served"),
                (Said::Refused(why), _) => {
                    tracing::warn!("feed {name} in database {database}: relayed, {why}");
                }
                (Said::Waits, aside) => tracing::warn!(
                    "feed {name} in database {database}: relayed until the server's log is followed, {}",
                    aside.map_or("", |aside| &aside.text)
                ),
            }
            *said = Some(next);
        }
    }
}

impl Served {
    /// It is served, once the log is followed.
    pub(super) fn is_served(&self) -> bool {
        matches!(self, Served::Yes { .. }) && !self.is_barred()
    }

    /// Its tables are fit, and their rows are kept out of memory all the same.
    pub(super) fn is_barred(&self) -> bool {
        matches!(self, Served::Yes { place: Some(place), .. } if place.bar().is_some())
    }

    /// Its messages are, or were, in this database.
    fn is_here(&self) -> bool {
        matches!(self, Served::Yes { .. } | Served::No(_))
    }

    /// Tables of its own are not to be seen, so that nobody can say whether a statement would be its.
    pub(super) fn lacks_tables(&self) -> bool {
        let lacks = |own: &Obstacle| matches!(own, Obstacle::NoTable { .. });
        matches!(self, Served::No(found) if found.iter().any(lacks))
    }

    fn of(definition: &FeedDefinition, tables: &Tables, binlog: &Binlog, was_here: bool) -> Served {
        let database = &tables.database;
        let own = definition.database.as_ref();
        let elsewhere = match own {
            Some(own) => own != database,
            // One without the feed's messages is no place for it, unless they were there: a right may have been taken away.
            None => !was_here && tables.facts(&definition.message.table).is_none(),
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
