//! Feeds from statements: each once, checked, with its own name.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::check::ProposedFeedCheck;
use crate::config::ServeSettings;
use crate::feed::FeedDefinition;
use crate::feed::feed_proposal::FeedProposal;
use crate::feed::tally::StatementStats;

/// A feed, and its statements.
#[derive(Debug)]
pub(super) struct DiscoveredFeed {
    pub(super) definition: FeedDefinition,
    /// Where it was found.
    pub(super) databases: BTreeSet<String>,
    /// What its check says.
    pub(super) obstacles: Vec<String>,
    /// The feed of the settings that it is already.
    pub(super) existing_name: Option<String>,
    /// Each with its shape in words.
    pub(super) statements: Vec<(String, StatementStats)>,
}

/// Statements of one feed together: one that needs nobody who follows is served by a feed that has that, too.
pub(super) fn group_statements(
    mut found: Vec<(FeedProposal, StatementStats)>,
) -> Vec<DiscoveredFeed> {
    found.sort_by_key(|(proposal, seen)| {
        (proposal.definition.follow.is_none(), Reverse(seen.total))
    });
    let mut feeds: Vec<DiscoveredFeed> = Vec::new();
    for (proposal, seen) in found {
        let shape = proposal.to_string();
        let definition = proposal.definition;
        let same = |feed: &&mut DiscoveredFeed| {
            let own = &feed.definition;
            own.database == definition.database
                && own.message == definition.message
                && (definition.follow.is_none() || own.follow == definition.follow)
        };
        match feeds.iter_mut().find(same) {
            Some(feed) => feed.statements.push((shape, seen)),
            None => feeds.push(DiscoveredFeed {
                databases: definition.database.iter().cloned().collect(),
                definition,
                obstacles: Vec::new(),
                existing_name: None,
                statements: vec![(shape, seen)],
            }),
        }
    }
    feeds
}

/// Checks each, puts those together that stand in several databases, and gives each its own name.
pub(super) async fn check_feeds(
    server: &mut ProposedFeedCheck,
    settings: &ServeSettings,
    found: Vec<DiscoveredFeed>,
) -> Vec<DiscoveredFeed> {
    let mut feeds: Vec<DiscoveredFeed> = Vec::new();
    for mut feed in found {
        let database = feed.definition.database.take().unwrap_or_default();
        feed.obstacles = server.feed_obstacles(&feed.definition, &database).await;
        feed.existing_name = settings
            .feeds
            .iter()
            .find(|own| own.serves(&feed.definition, &database))
            .map(|own| own.name.clone());
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
            .map(|(_, seen)| seen.total)
            .sum::<Duration>()
    };
    feeds.sort_by_key(|feed| Reverse(total(feed)));
    let mut taken: BTreeSet<String> = settings
        .feeds
        .iter()
        .map(|feed| feed.name.clone())
        .collect();
    for feed in &mut feeds {
        feed.statements.sort_by_key(|(_, seen)| Reverse(seen.total));
        // In several it is served wherever its check passes.
        if feed.databases.len() == 1 {
            feed.definition.database = feed.databases.first().cloned();
        }
        feed.definition
            .assign_free_name(|name| !taken.contains(name));
        taken.insert(feed.definition.name.clone());
    }
    feeds
}
