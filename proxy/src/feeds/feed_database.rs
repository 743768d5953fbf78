//! One database: its tables as last read, and which feeds can be served from them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::RegisteredFeed;
use super::relay_cause::in_one_line;
use crate::binlog::{Binlog, CachedTimeline, MemorySuspension};
use crate::catalogue::DefinitionEpoch;
use crate::clock;
use headwater_feed::FeedDefinition;
use headwater_feed::binding::FeedColumnTypes;
use headwater_feed::catalogue::DatabaseCatalogue;
use headwater_feed::table_check::{self, FeedObstacle};
use headwater_log::timeline_tables::{self, KeyColumnDefinition, TimelineSchema};
use headwater_timeline::definition::{FollowerTable, IdType, MessageTable};
use headwater_timeline::index::TimelineId;

/// The most tables read in one database.
const MOST_TABLES: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct FeedDatabase {
    tables: Arc<DatabaseCatalogue>,
    wanted: BTreeSet<String>,
    /// Counts changes of the tables.
    version: u64,
    checked: Option<(Instant, DefinitionEpoch)>,
    availability: Vec<FeedAvailability>,
    logged: Vec<Option<LoggedFeedStatus>>,
}

#[derive(Debug, PartialEq, Eq)]
enum LoggedFeedStatus {
    Served,
    Refused(String),
    /// It has no obstacle of its own.
    WaitsForLog,
}

/// Whether a feed can be served from a database.
#[derive(Clone, Debug)]
pub(super) enum FeedAvailability {
    Available {
        types: FeedColumnTypes,
        /// `None`: too many timelines are in memory already.
        timeline: Option<Arc<CachedTimeline>>,
    },
    Obstructed(Vec<FeedObstacle>),
    /// It belongs to another database.
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

    /// By the feed's index.
    pub(super) fn availability(&self, feed: usize) -> Option<&FeedAvailability> {
        self.availability.get(feed)
    }

    /// Adds tables to be read. True if one of them is new.
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

    /// Forgets each feed's check: the feeds have changed.
    pub(super) fn reset_checks(&mut self) {
        self.checked = None;
        self.availability.clear();
        self.logged.clear();
    }

    /// Records the tables read at a time, and checks the feeds if they have changed.
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

    /// Logs each feed's status if it has changed. Nothing is served while the log is not followed.
    pub(super) fn log_changes(
        &mut self,
        feeds: &[RegisteredFeed],
        suspension: Option<&MemorySuspension>,
    ) {
        let database = &self.tables.database;
        self.logged.resize_with(self.availability.len(), || None);
        let each = feeds.iter().zip(&self.availability).zip(&mut self.logged);
        for ((feed, served), said) in each {
            let name = &feed.definition.name;
            let timeline = match served {
                FeedAvailability::Available {
                    timeline: place, ..
                } => place.as_ref(),
                FeedAvailability::Obstructed(_) | FeedAvailability::Elsewhere => None,
            };
            let next = match (
                served,
                suspension,
                timeline.map(|place| place.block_reason()),
            ) {
                (FeedAvailability::Elsewhere, ..) => continue,
                (FeedAvailability::Obstructed(obstacles), ..) => {
                    LoggedFeedStatus::Refused(in_one_line(obstacles))
                }
                (_, _, None) => LoggedFeedStatus::Refused(
                    "as many timelines are in memory as can be".to_owned(),
                ),
                (_, _, Some(Some(blocked))) => LoggedFeedStatus::Refused(blocked.text),
                // An interruption of a served feed is logged for the log as a whole.
                (_, Some(_), _) if matches!(said, Some(LoggedFeedStatus::Served)) => continue,
                (_, Some(suspension), _) if suspension.is_startup() => continue,
                (_, Some(_), _) => LoggedFeedStatus::WaitsForLog,
                (_, None, _) if timeline.is_some_and(|place| place.has_known_columns()) => {
                    LoggedFeedStatus::Served
                }
                // It will be in a moment.
                (_, None, _) => continue,
            };
            if said.as_ref() == Some(&next) {
                continue;
            }
            match (&next, suspension) {
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
    pub(super) fn is_served(&self) -> bool {
        matches!(self, FeedAvailability::Available { .. }) && !self.is_blocked()
    }

    /// True if its tables fit, but their rows are kept out of memory.
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

    /// True if tables of its own are not visible, so that its statements cannot be recognised.
    pub(super) fn has_missing_tables(&self) -> bool {
        let is_missing = |obstacle: &FeedObstacle| matches!(obstacle, FeedObstacle::NoTable { .. });
        matches!(self, FeedAvailability::Obstructed(found) if found.iter().any(is_missing))
    }

    fn of(
        definition: &FeedDefinition,
        tables: &DatabaseCatalogue,
        binlog: &Binlog,
        was_here: bool,
    ) -> FeedAvailability {
        let database = &tables.database;
        let feed_database = definition.database.as_ref();
        let elsewhere = match feed_database {
            Some(feed_database) => feed_database != database,
            // A database without the feed's messages is none of its, unless they were there: a privilege may have been revoked.
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
            Err(obstacles) => FeedAvailability::Obstructed(obstacles),
        }
    }
}

/// Messages of a page that is preloaded.
const PAGE_SIZE: usize = 20;

/// The tables that a feed's rows are loaded from.
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
            has_follow_copies: types.has_follow_copies,
            has_mixed_signs: types.has_mixed_signs,
            id_type: int(types.id.signed),
            elsewhere: false,
            user_type: int(types.author.signed),
        },
        page_ids: PAGE_SIZE,
    }
}
