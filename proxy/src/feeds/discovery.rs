//! Feeds that the settings do not name: discovered in relayed statements, then suggested or served.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::relay_cause::in_one_line;
use super::{FeedRegistry, FeedRegistryState, RegisteredFeed, SuggestedFeed, table_of};
use headwater_feed::FeedDefinition;
use headwater_feed::feed_proposal::FeedProposal;

const MAX_DISCOVERED_FEEDS: usize = 32;

/// What to do about feeds that the settings do not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "DiscoveryModeInput")]
pub enum FeedDiscoveryMode {
    /// The log suggests each once.
    #[default]
    Suggest,
    /// They are served.
    On,
    /// They are ignored.
    Off,
}

/// The form in the file: a word, or a boolean.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"suggest\", \"on\" (or true) or \"off\" (or false)"
)]
enum DiscoveryModeInput {
    Boolean(bool),
    Word(DiscoveryModeWord),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum DiscoveryModeWord {
    Suggest,
    On,
    Off,
}

impl From<DiscoveryModeInput> for FeedDiscoveryMode {
    fn from(written: DiscoveryModeInput) -> FeedDiscoveryMode {
        match written {
            DiscoveryModeInput::Boolean(true) | DiscoveryModeInput::Word(DiscoveryModeWord::On) => {
                FeedDiscoveryMode::On
            }
            DiscoveryModeInput::Boolean(false)
            | DiscoveryModeInput::Word(DiscoveryModeWord::Off) => FeedDiscoveryMode::Off,
            DiscoveryModeInput::Word(DiscoveryModeWord::Suggest) => FeedDiscoveryMode::Suggest,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DiscoveryOutcome {
    /// Another feed serves the same statements, or there are too many.
    Ignored,
    Suggested,
    /// These of its tables are not visible.
    UnseenTables(Arc<[String]>),
    /// It is a feed now, whose tables must be checked.
    Adopted,
}

impl FeedRegistry {
    /// Records a proposal from a statement of a database.
    pub(super) fn record_discovery(
        &self,
        proposal: &FeedProposal,
        database: &str,
    ) -> DiscoveryOutcome {
        let definition = &proposal.definition;
        let mut state = self.state();
        let is_served = |feed: &RegisteredFeed| {
            // Who orders ties in a feed of the settings is the operator's choice.
            let orders_ties = !feed.is_discovered || feed.definition.ties >= definition.ties;
            orders_ties && feed.definition.serves(definition, database)
        };
        if state.feeds.iter().any(is_served) {
            return DiscoveryOutcome::Ignored;
        }
        if self.discovery_mode == FeedDiscoveryMode::On && proposal.obstacles.is_empty() {
            return match self.adopt(&mut state, definition, database) {
                true => DiscoveryOutcome::Adopted,
                false => DiscoveryOutcome::Ignored,
            };
        }
        let mut suggested = state.suggested.iter();
        let is_suggested = |suggestion: &SuggestedFeed| {
            suggestion.definition.ties >= definition.ties
                && suggestion.definition.serves(definition, database)
        };
        if !suggested.any(is_suggested) {
            if state.suggested.len() == MAX_DISCOVERED_FEEDS {
                return DiscoveryOutcome::Ignored;
            }
            let obstacles = in_one_line(&proposal.obstacles);
            suggest(proposal, &obstacles, database, self.discovery_mode);
            state.suggested.push(SuggestedFeed {
                definition: definition.clone(),
                database: database.to_owned(),
                obstacles,
            });
        }
        DiscoveryOutcome::Suggested
    }

    /// Adds it as a feed, or extends a discovered feed of the same messages to serve its statements.
    fn adopt(
        &self,
        state: &mut FeedRegistryState,
        definition: &FeedDefinition,
        database: &str,
    ) -> bool {
        let extends = |feed: &&mut RegisteredFeed| {
            let known = &feed.definition;
            feed.is_discovered
                && (definition.serves(known, database) || known.serves(definition, database))
        };
        let mut adopted = definition.clone();
        match state.feeds.iter_mut().find(extends) {
            Some(extended) => {
                let known = &extended.definition;
                adopted.name.clone_from(&known.name);
                adopted.ties = adopted.ties.max(known.ties);
                if adopted.follow.is_none() {
                    adopted.follow.clone_from(&known.follow);
                }
                extended.definition = Arc::new(adopted);
            }
            None => {
                if state.feeds.iter().filter(|feed| feed.is_discovered).count()
                    == MAX_DISCOVERED_FEEDS
                {
                    return false;
                }
                let feeds = state.feeds.iter();
                adopted.assign_free_name(|name| {
                    feeds.clone().all(|feed| feed.definition.name != name)
                });
                let (messages, feed) = (table_of(&adopted), RegisteredFeed::from_settings(adopted));
                state.feeds.push(RegisteredFeed {
                    is_discovered: true,
                    ..feed
                });
                let tables = self.messages.write();
                let mut tables = tables.unwrap_or_else(std::sync::PoisonError::into_inner);
                tables.push(messages);
            }
        }
        for known in state.databases.values_mut() {
            known.reset_checks();
        }
        true
    }
}

fn suggest(proposal: &FeedProposal, obstacles: &str, database: &str, auto: FeedDiscoveryMode) {
    let first = match (obstacles.is_empty(), auto) {
        (true, _) => "feeds.auto = \"on\" has them answered from memory, or this section of the settings file:".to_owned(),
        (false, FeedDiscoveryMode::On) => format!("they are relayed, {obstacles}. Once that is mended this is served:"),
        (false, _) => {
            format!("what stands in the way: {obstacles}. Once that is mended, paste this into the settings file:")
        }
    };
    let section = proposal.definition.section();
    tracing::info!(
        %section,
        "statements of database {database} look like a feed ({proposal}): {first}"
    );
}
