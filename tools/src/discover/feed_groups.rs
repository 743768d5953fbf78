//! Groups statements by feed: each feed once, checked, with a name of its own.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::check::ProposedFeedCheck;
use headwater_feed::FeedDefinition;
use headwater_feed::feed_proposal::FeedProposal;
use headwater_feed::tally::StatementStats;
use headwater_server::config::ServeSettings;

#[derive(Debug)]
pub(super) struct DiscoveredFeed {
    pub(super) definition: FeedDefinition,
    pub(super) databases: BTreeSet<String>,
    pub(super) obstacles: Vec<String>,
    /// The feed of the settings that serves it already.
    pub(super) existing_name: Option<String>,
    /// Each with its shape in words.
    pub(super) statements: Vec<(String, StatementStats)>,
}

/// Groups statements by feed: one that needs no follow table joins a feed that has one.
pub(super) fn group_statements(
    mut proposals: Vec<(FeedProposal, StatementStats)>,
) -> Vec<DiscoveredFeed> {
    proposals.sort_by_key(|(proposal, stats)| {
        (proposal.definition.follow.is_none(), Reverse(stats.total))
    });
    let mut feeds: Vec<DiscoveredFeed> = Vec::new();
    for (proposal, stats) in proposals {
        let shape = proposal.to_string();
        let definition = proposal.definition;
        let same = |feed: &&mut DiscoveredFeed| {
            let existing = &feed.definition;
            existing.database == definition.database
                && existing.message == definition.message
                && (definition.follow.is_none() || existing.follow == definition.follow)
        };
        match feeds.iter_mut().find(same) {
            Some(feed) => {
                // What one of its statements needs, all get.
                feed.definition.ties = feed.definition.ties.max(definition.ties);
                feed.statements.push((shape, stats));
            }
            None => feeds.push(DiscoveredFeed {
                databases: definition.database.iter().cloned().collect(),
                definition,
                obstacles: Vec::new(),
                existing_name: None,
                statements: vec![(shape, stats)],
            }),
        }
    }
    feeds
}

/// Checks each feed, merges those of several databases, and gives each its own name.
pub(super) async fn check_feeds(
    server: &mut ProposedFeedCheck,
    settings: &ServeSettings,
    candidates: Vec<DiscoveredFeed>,
) -> Vec<DiscoveredFeed> {
    let mut feeds: Vec<DiscoveredFeed> = Vec::new();
    for mut feed in candidates {
        let database = feed.definition.database.take().unwrap_or_default();
        feed.obstacles = server.feed_obstacles(&feed.definition, &database).await;
        feed.existing_name = settings
            .feeds
            .iter()
            .find(|configured| configured.serves(&feed.definition, &database))
            .map(|configured| {
                if configured.ties < feed.definition.ties {
                    let name = &configured.name;
                    feed.obstacles.push(format!(
                        "some of its statements need ties = \"id\" in the section of feed {name}"
                    ));
                }
                configured.name.clone()
            });
        let same = |other: &&mut DiscoveredFeed| {
            other.definition == feed.definition
                && other.obstacles == feed.obstacles
                && other.existing_name == feed.existing_name
        };
        match feeds.iter_mut().find(same) {
            Some(other) => {
                other.databases.append(&mut feed.databases);
                other.statements.append(&mut feed.statements);
            }
            None => feeds.push(feed),
        }
    }
    let total = |feed: &DiscoveredFeed| {
        feed.statements
            .iter()
            .map(|(_, stats)| stats.total)
            .sum::<Duration>()
    };
    feeds.sort_by_key(|feed| Reverse(total(feed)));
    let mut taken: BTreeSet<String> = settings
        .feeds
        .iter()
        .map(|feed| feed.name.clone())
        .collect();
    for feed in &mut feeds {
        feed.statements
            .sort_by_key(|(_, stats)| Reverse(stats.total));
        // Without a database it is served wherever its check passes.
        if feed.databases.len() == 1 {
            feed.definition.database = feed.databases.first().cloned();
        }
        feed.definition
            .assign_free_name(|name| !taken.contains(name));
        taken.insert(feed.definition.name.clone());
    }
    feeds
}
