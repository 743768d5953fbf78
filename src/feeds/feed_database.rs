//! What is known of one database: its tables as they were seen last, and which feeds can be served from them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::RegisteredFeed;
use super::relay_cause::in_one_line;
use crate::binlog::{Binlog, CachedTimeline, MemorySuspension};
use crate::catalogue::DefinitionEpoch;
use crate::clock;
use crate::feed::FeedDefinition;
use crate::feed::binding::FeedColumnTypes;
use crate::feed::catalogue::DatabaseCatalogue;
use crate::feed::table_check::{self, FeedObstacle};
use crate::index::TimelineId;
use crate::log::timeline_tables::{self, KeyColumnDefinition, TimelineSchema};
use crate::timeline::definition::{FollowerTable, IdType, MessageTable};

/// More tables are not looked at in one database.
const MOST_TABLES: usize = 1_000;

/// One database.
#[derive(Debug, Default)]
pub(super) struct FeedDatabase {
    tables: Arc<DatabaseCatalogue>,
    wanted: BTreeSet<String>,
    /// Counts how often they changed.
    version: u64,
    checked: Option<(Instant, DefinitionEpoch)>,
    availability: Vec<FeedAvailability>,
    /// What the log was told of each.
    logged: Vec<Option<LoggedFeedStatus>>,
}

/// What the log was told of a feed.
#[derive(Debug, PartialEq, Eq)]
enum LoggedFeedStatus {
    Served,
    Refused(String),
    /// Nothing is in its own way.
    WaitsForLog,
}

/// Whether a feed is served from a database.
#[derive(Clone, Debug)]
pub(super) enum FeedAvailability {
    /// It is.
    Available {
        types: FeedColumnTypes,
        /// `None`: too many timelines are in memory already.
        timeline: Option<Arc<CachedTimeline>>,
    },
    /// It is not, and this is why.
    Obstructed(Vec<FeedObstacle>),
    /// It is another database's.
    Elsewhere,
}

impl FeedDatabase {
    pub(super) fn is_fresh(&self, epoch: DefinitionEpoch, lifetime: Duration) -> bool {
        self.checked
            .is_some_and(|(at, then)| then == epoch && clock::since(at) < lifetime)
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn tables(&self) -> Arc<DatabaseCatalogue> {
        Arc::clone(&self.tables)
    }

    /// By the feed's place among all.
    pub(super) fn availability(&self, feed: usize) -> Option<&FeedAvailability> {
        self.availability.get(feed)
    }

    /// Adds tables that are to be looked at. True if one of them was not before.
    pub(super) fn add_wanted(&mut self, tables: impl IntoIterator<Item = String>) -> bool {
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
    pub(super) fn reset_checks(&mut self) {
        self.checked = None;
        self.availability.clear();
        self.logged.clear();
    }

    /// Takes in the tables as they were seen at a time.
    pub(super) fn record_tables(
        &mut self,
        tables: DatabaseCatalogue,
        definitions: &[Arc<FeedDefinition>],
        binlog: &Binlog,
        (at, epoch): (Instant, DefinitionEpoch),
    ) {
        self.checked = Some((at, epoch));
        if *self.tables == tables && self.availability.len() == definitions.len() {
            return;
        }
        self.version += 1;
        let before = std::mem::take(&mut self.availability);
        for (number, definition) in definitions.iter().enumerate() {
            let was_here = before.get(number).is_some_and(FeedAvailability::is_here);
            self.availability
                .push(FeedAvailability::of(definition, &tables, binlog, was_here));
        }
        self.tables = Arc::new(tables);
    }

    /// Says what became of each feed, where that was not said before. Nothing is served while the log is not followed.
    pub(super) fn log_changes(
        &mut self,
        feeds: &[RegisteredFeed],
        aside: Option<&MemorySuspension>,
    ) {
        let database = &self.tables.database;
        self.logged.resize_with(self.availability.len(), || None);
        let each = feeds.iter().zip(&self.availability).zip(&mut self.logged);
        for ((feed, served), said) in each {
            let name = &feed.definition.name;
            let place = match served {
                FeedAvailability::Available {
                    timeline: place, ..
                } => place.as_ref(),
                FeedAvailability::Obstructed(_) | FeedAvailability::Elsewhere => None,
            };
            let next = match (served, aside, place.map(|place| place.block_reason())) {
                (FeedAvailability::Elsewhere, ..) => continue,
                (FeedAvailability::Obstructed(found), ..) => {
                    LoggedFeedStatus::Refused(in_one_line(found))
                }
                (_, _, None) => LoggedFeedStatus::Refused(
                    "as many timelines are in memory as can be".to_owned(),
                ),
                (_, _, Some(Some(bar))) => LoggedFeedStatus::Refused(bar.text),
                // What interrupts it is said of the log.
                (_, Some(_), _) if matches!(said, Some(LoggedFeedStatus::Served)) => continue,
                (_, Some(aside), _) if aside.is_startup() => continue,
                (_, Some(_), _) => LoggedFeedStatus::WaitsForLog,
                (_, None, _) if place.is_some_and(|place| place.has_known_columns()) => {
                    LoggedFeedStatus::Served
                }
                // It will be in a moment.
                (_, None, _) => continue,
            };
            if said.as_ref() == Some(&next) {
                continue;
            }
            match (&next, aside) {
                (LoggedFeedStatus::Served, _) => {
                    tracing::info!("feed {name} in database {database}: served")
                }
                (LoggedFeedStatus::Refused(why), _) => {
                    tracing::warn!("feed {name} in database {database}: relayed, {why}");
                }
                (LoggedFeedStatus::WaitsForLog, aside) => tracing::warn!(
                    "feed {name} in database {database}: relayed until the server's log is followed, {}",
                    aside.map_or("", |aside| &aside.text)
                ),
            }
            *said = Some(next);
        }
    }
}

impl FeedAvailability {
    /// It is served, once the log is followed.
    pub(super) fn is_served(&self) -> bool {
        matches!(self, FeedAvailability::Available { .. }) && !self.is_blocked()
    }

    /// Its tables are fit, and their rows are kept out of memory all the same.
    pub(super) fn is_blocked(&self) -> bool {
        matches!(self, FeedAvailability::Available { timeline: Some(place), .. } if place.block_reason().is_some())
    }

    /// Its messages are, or were, in this database.
    fn is_here(&self) -> bool {
        matches!(
            self,
            FeedAvailability::Available { .. } | FeedAvailability::Obstructed(_)
        )
    }

    /// Tables of its own are not to be seen, so that nobody can say whether a statement would be its.
    pub(super) fn has_missing_tables(&self) -> bool {
        let lacks = |own: &FeedObstacle| matches!(own, FeedObstacle::NoTable { .. });
        matches!(self, FeedAvailability::Obstructed(found) if found.iter().any(lacks))
    }

    fn of(
        definition: &FeedDefinition,
        tables: &DatabaseCatalogue,
        binlog: &Binlog,
        was_here: bool,
    ) -> FeedAvailability {
        let database = &tables.database;
        let own = definition.database.as_ref();
        let elsewhere = match own {
            Some(own) => own != database,
            // One without the feed's messages is no place for it, unless they were there: a right may have been taken away.
            None => !was_here && tables.catalogue_table(&definition.message.table).is_none(),
        };
        if elsewhere {
            return FeedAvailability::Elsewhere;
        }
        match table_check::check(definition, tables) {
            Ok(types) => FeedAvailability::Available {
                timeline: binlog.cached_timeline(row_source(definition, types, database)),
                types,
            },
            Err(found) => FeedAvailability::Obstructed(found),
        }
    }
}

/// Pages that are loaded beforehand have so many messages.
const PAGE_SIZE: usize = 20;

/// Where a feed's rows come from.
#[must_use]
pub fn row_source(
    definition: &FeedDefinition,
    types: FeedColumnTypes,
    database: &str,
) -> timeline_tables::TimelineTables {
    let int = |signed| match signed {
        true => IdType::BigInt,
        false => IdType::BigIntUnsigned,
    };
    timeline_tables::TimelineTables {
        timeline_id: TimelineId(0),
        database: database.to_owned(),
        schema: TimelineSchema {
            message: MessageTable {
                table: definition.message.table.clone(),
                id: definition.message.id.clone(),
                author: definition.message.author.clone(),
            },
            key: types
                .key
                .zip(definition.key())
                .map(|(kind, column)| KeyColumnDefinition {
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
        page_ids: PAGE_SIZE,
    }
}
