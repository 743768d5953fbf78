//! Overviews of feeds and templates, for monitoring.

use std::sync::Arc;

use super::feed_database::FeedAvailability;
use super::refusal::TemplateRefusal;
use super::relay_cause::RelayCause;
use super::{
    FeedDiscoveryMode, FeedRegistry, TemplateEntry, TemplateStatus, UnmatchedTextKind, digest_of,
    template_key,
};
use headwater_feed::FeedId;
use headwater_feed::outcome_counts::OutcomeCounts;
use headwater_feed::words::StatementWords;
use headwater_session::feed_decision::FeedRelayReason;

/// A feed's overview.
#[derive(Clone, Debug)]
pub struct FeedOverview {
    /// Its name.
    pub name: String,
    /// It was discovered; the settings do not name it.
    pub is_discovered: bool,
    /// Each checked database with its tables, and the obstacle there; `None`: it is served.
    pub databases: Vec<(String, Option<RelayCause>)>,
    /// Outcomes of its statements.
    pub counted: Vec<(&'static str, u64)>,
    /// Its settings section.
    pub section: String,
}

/// A discovered feed that is not served.
#[derive(Clone, Debug)]
pub struct SuggestedFeedOverview {
    /// The database in which its statements were sent.
    pub database: String,
    /// What prevents serving it; empty: nothing.
    pub obstacles: String,
    /// The settings section that serves it.
    pub section: String,
}

/// A template's overview.
#[derive(Clone, Debug)]
pub struct TemplateOverview {
    /// Its digest.
    pub digest: u64,
    /// Its first statement, without values.
    pub shown: String,
    /// Its feed, if known.
    pub feed: Option<String>,
    /// The database that it was sent in.
    pub database: String,
    /// Outcomes of its statements.
    pub counted: Vec<(&'static str, u64)>,
    /// Microseconds of a direct and of a narrowed statement.
    pub times: Option<(f64, f64)>,
    /// Microseconds that the server has spent on them; `None`: unknown.
    pub spent: Option<u64>,
}

impl TemplateOverview {
    /// How many of its statements had this outcome.
    #[must_use]
    pub fn times(&self, what: &str) -> u64 {
        let entry = self.counted.iter().find(|(name, _)| *name == what);
        entry.map_or(0, |(_, times)| *times)
    }

    /// How many of its statements came.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counted.iter().map(|(_, times)| times).sum()
    }
}

impl FeedRegistry {
    /// Every feed.
    #[must_use]
    pub fn overview(&self) -> Vec<FeedOverview> {
        let of_log = self.binlog.suspension().map(RelayCause::log_suspended);
        let state = self.state();
        let feeds = state.feeds.iter().enumerate().map(|(number, feed)| {
            let databases = state.databases.iter().filter_map(|(name, known)| {
                let name = String::from_utf8_lossy(name).into_owned();
                let served = known.availability(number)?;
                let cause = match (served, &of_log) {
                    (FeedAvailability::Elsewhere, _) => return None,
                    (_, Some(of_log)) => Some(of_log.clone()),
                    (served, None) => RelayCause::of_check(served, &name, self.binlog.user()),
                };
                Some((name, cause))
            });
            let mut databases: Vec<_> = databases.collect();
            databases.sort_by(|(one, _), (other, _)| one.cmp(other));
            FeedOverview {
                name: feed.definition.name.clone(),
                is_discovered: feed.is_discovered,
                databases,
                counted: feed.counted.all(),
                section: feed.definition.section(),
            }
        });
        feeds.collect()
    }

    /// Feeds that were suggested and are not served.
    #[must_use]
    pub fn suggested_feeds(&self) -> Vec<SuggestedFeedOverview> {
        let state = self.state();
        let all = state
            .suggested
            .iter()
            .map(|suggestion| SuggestedFeedOverview {
                database: suggestion.database.clone(),
                obstacles: suggestion.obstacles.clone(),
                section: suggestion.definition.section(),
            });
        all.collect()
    }

    /// The most specific cause known for relaying a statement of a database; and its feed, if known.
    #[must_use]
    pub fn cause(
        &self,
        database: &[u8],
        words: &StatementWords,
        why: FeedRelayReason,
    ) -> (RelayCause, Option<String>) {
        let mut cause = match (why, self.binlog.suspension()) {
            (FeedRelayReason::LogSuspended, Some(suspension)) => {
                RelayCause::log_suspended(suspension)
            }
            _ => RelayCause::of_explanation(why),
        };
        let state = self.state();
        if let (FeedRelayReason::Unchecked, Some(error)) = (why, &state.last_failure) {
            cause = RelayCause::of_account(error);
        }
        let key = template_key(database, words);
        let Some(TemplateStatus::Known { outcome: is, .. }) =
            state.templates.peek(&*key).map(|entry| &entry.status)
        else {
            return (cause, None);
        };
        let feed = match is {
            Ok(template) => state.feed(template.feed, self.first_number),
            Err(refusal) => refusal.feed().and_then(|at| state.feeds.get(at)),
        };
        let feed = feed.map(|feed| feed.definition.name.clone());
        let (name, user) = (String::from_utf8_lossy(database), self.binlog.user());
        match (why, is) {
            (FeedRelayReason::Refused, is) => {
                let at = match is {
                    Ok(template) => template.feed.0.checked_sub(self.first_number),
                    Err(refusal) => refusal.feed(),
                };
                let known = state.databases.get(database);
                let served = known.zip(at).and_then(|(known, at)| known.availability(at));
                let of_check = served.and_then(|served| RelayCause::of_check(served, &name, user));
                cause = of_check.unwrap_or(cause);
            }
            (FeedRelayReason::Unseen, Err(TemplateRefusal::Unseen(_, unseen))) => {
                cause = RelayCause::unseen_tables(&name, unseen, user);
            }
            _ => {}
        }
        (cause, feed)
    }

    /// Why a statement is relayed that names no feed's messages but belongs to a feed not named in the settings.
    #[must_use]
    pub fn unmatched_cause(&self, database: &[u8], kind: &UnmatchedTextKind) -> Option<RelayCause> {
        let of_log = self.binlog.suspension().map(RelayCause::log_suspended);
        match kind {
            UnmatchedTextKind::Unknown => None,
            UnmatchedTextKind::Suggested if of_log.is_some() => of_log,
            UnmatchedTextKind::Suggested => Some(self.suggested_cause(database)),
            UnmatchedTextKind::Unseen(unseen) => {
                let database = String::from_utf8_lossy(database);
                Some(RelayCause::unseen_tables(
                    &database,
                    unseen,
                    self.binlog.user(),
                ))
            }
        }
    }

    /// Discovered feeds are served by default in mode `on`, so there the cause is what must be fixed first.
    fn suggested_cause(&self, database: &[u8]) -> RelayCause {
        let cause = RelayCause::of_explanation(FeedRelayReason::Suggested);
        let database = String::from_utf8_lossy(database);
        let state = self.state();
        let mut suggested = state.suggested.iter();
        let suggestion =
            suggested.find(|own| own.database == database && !own.obstacles.is_empty());
        match suggestion.filter(|_| self.discovery_mode == FeedDiscoveryMode::On) {
            Some(suggestion) => RelayCause {
                text: format!(
                    "it is one of a feed that was found, and cannot be served: {}",
                    suggestion.obstacles
                ),
                cure: "mend that: it is looked at again within ten minutes".to_owned(),
                ..cause
            },
            None => cause,
        }
    }

    /// A feed's name.
    #[must_use]
    pub fn name_of(&self, feed: FeedId) -> Option<String> {
        let state = self.state();
        Some(state.feed(feed, self.first_number)?.definition.name.clone())
    }

    /// Every known template.
    #[must_use]
    pub fn templates(&self) -> Vec<TemplateOverview> {
        // Counters are read after the lock is released: sessions wait for it.
        let entries: Vec<_> = {
            let state = self.state();
            let each = state.templates.iter().map(|(key, entry)| {
                let TemplateEntry {
                    shown,
                    counted,
                    status: is,
                } = entry;
                let template = match is {
                    TemplateStatus::Known {
                        outcome: Ok(template),
                        ..
                    } => Some(Arc::clone(template)),
                    TemplateStatus::Known { .. } | TemplateStatus::Pending => None,
                };
                let feed = match is {
                    TemplateStatus::Known {
                        outcome: Ok(own), ..
                    } => state.feed(own.feed, self.first_number),
                    TemplateStatus::Known {
                        outcome: Err(own), ..
                    } => own.feed().and_then(|at| state.feeds.get(at)),
                    TemplateStatus::Pending => None,
                };
                let feed = feed.map(|feed| feed.definition.name.clone());
                let database = key.split(|byte| *byte == 0).next().unwrap_or_default();
                let database = String::from_utf8_lossy(database).into_owned();
                let counted: Arc<OutcomeCounts> = Arc::clone(counted);
                (
                    digest_of(key),
                    shown.clone(),
                    feed,
                    database,
                    counted,
                    template,
                )
            });
            each.collect()
        };
        let overviews =
            entries
                .into_iter()
                .map(|(digest, shown, feed, database, counted, template)| {
                    let times = template.and_then(|template| template.times());
                    let spent = Some(counted.server_micros());
                    TemplateOverview {
                        digest,
                        shown,
                        feed,
                        database,
                        counted: counted.all(),
                        times,
                        spent: spent.filter(|spent| *spent > 0 || times.is_some()),
                    }
                });
        overviews.collect()
    }
}
