//! What is known of feeds and templates, for those who watch.

use std::sync::Arc;

use super::database::Served;
use super::{Entry, Feeds, Is, digest_of};
use crate::feed::FeedId;
use crate::feed::counted::Counted;

/// A feed.
#[derive(Clone, Debug)]
pub struct FeedSeen {
    /// Its name.
    pub name: String,
    /// Nobody named it: it was found.
    pub found: bool,
    /// Each database that was looked at and has its tables, with what is in the way there; empty: it is served.
    pub databases: Vec<(String, String)>,
    /// What became of its statements.
    pub counted: Vec<(&'static str, u64)>,
    /// Its section of the settings file.
    pub section: String,
}

/// A feed that was found, and that nobody has named.
#[derive(Clone, Debug)]
pub struct SuggestedSeen {
    /// Where its statements were sent.
    pub database: String,
    /// What stands in the way of serving it; empty: nothing does.
    pub obstacles: String,
    /// The section of the settings file that has it served.
    pub section: String,
}

/// A template.
#[derive(Clone, Debug)]
pub struct TemplateSeen {
    /// Its digest.
    pub digest: u64,
    /// Its first statement, without values.
    pub shown: String,
    /// Whose it is, where that is known.
    pub feed: Option<String>,
    /// The database that it was sent in.
    pub database: String,
    /// What became of its statements.
    pub counted: Vec<(&'static str, u64)>,
    /// Microseconds directly and narrowed.
    pub times: Option<(f64, f64)>,
}

impl TemplateSeen {
    /// How often this has become of one.
    #[must_use]
    pub fn times(&self, what: &str) -> u64 {
        let found = self.counted.iter().find(|(name, _)| *name == what);
        found.map_or(0, |(_, times)| *times)
    }

    /// How often one came.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counted.iter().map(|(_, times)| times).sum()
    }
}

impl Feeds {
    /// Every feed.
    #[must_use]
    pub fn overview(&self) -> Vec<FeedSeen> {
        let state = self.state();
        let feeds = state.feeds.iter().enumerate().map(|(number, feed)| {
            let databases = state.databases.iter().filter_map(|(name, known)| {
                let why_not = match known.served(number)? {
                    Served::Yes { place: Some(_), .. } => String::new(),
                    Served::Yes { place: None, .. } => {
                        "as many timelines are in memory as can be".to_owned()
                    }
                    Served::No(found) => {
                        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                        found.join("; ")
                    }
                    Served::Elsewhere => return None,
                };
                Some((String::from_utf8_lossy(name).into_owned(), why_not))
            });
            let mut databases: Vec<_> = databases.collect();
            databases.sort();
            FeedSeen {
                name: feed.definition.name.clone(),
                found: feed.found,
                databases,
                counted: feed.counted.all(),
                section: feed.definition.section(),
            }
        });
        feeds.collect()
    }

    /// What was found, and is not served.
    #[must_use]
    pub fn suggested(&self) -> Vec<SuggestedSeen> {
        let state = self.state();
        let all = state.suggested.iter().map(|own| SuggestedSeen {
            database: own.database.clone(),
            obstacles: own.obstacles.clone(),
            section: own.definition.section(),
        });
        all.collect()
    }

    /// A feed's name.
    #[must_use]
    pub fn name_of(&self, feed: FeedId) -> Option<String> {
        let state = self.state();
        Some(state.feed(feed, self.first)?.definition.name.clone())
    }

    /// Every template that is remembered.
    #[must_use]
    pub fn templates(&self) -> Vec<TemplateSeen> {
        // Counters are read once the lock is given back, on which sessions wait.
        let found: Vec<_> = {
            let state = self.state();
            let each = state.templates.iter().map(|(key, entry)| {
                let Entry { shown, counted, is } = entry;
                let template = match is {
                    Is::Known {
                        is: Ok(template), ..
                    } => Some(Arc::clone(template)),
                    Is::Known { .. } | Is::Asked => None,
                };
                let feed = template.as_ref();
                let feed = feed.and_then(|it| state.feed(it.feed, self.first));
                let feed = feed.map(|feed| feed.definition.name.clone());
                let database = key.split(|byte| *byte == 0).next().unwrap_or_default();
                let database = String::from_utf8_lossy(database).into_owned();
                let counted: Arc<Counted> = Arc::clone(counted);
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
        let seen = found
            .into_iter()
            .map(
                |(digest, shown, feed, database, counted, template)| TemplateSeen {
                    digest,
                    shown,
                    feed,
                    database,
                    counted: counted.all(),
                    times: template.and_then(|template| template.times()),
                },
            );
        seen.collect()
    }
}
