//! Feeds that nobody named: found in statements that are relayed, and told of, or served.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::relay_cause::in_one_line;
use super::{FeedRegistry, FeedRegistryState, RegisteredFeed, SuggestedFeed, table_of};
use crate::feed::FeedDefinition;
use crate::feed::feed_proposal::FeedProposal;

/// More feeds are not found.
const MAX_DISCOVERED_FEEDS: usize = 32;

/// What is done about feeds that the settings do not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "DiscoveryModeInput")]
pub enum FeedDiscoveryMode {
    /// The log names each once.
    #[default]
    Suggest,
    /// They are served.
    On,
    /// Nothing.
    Off,
}

/// As it is written: by its word, or by the like of an answer to a question.
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

/// What became of a feed that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DiscoveryOutcome {
    /// There is one already that serves the same, or there is no room.
    Ignored,
    /// The log has named it.
    Suggested,
    /// These of its tables cannot be seen.
    UnseenTables(Arc<[String]>),
    /// It is a feed now, whose tables are to be looked at.
    Adopted,
}

impl FeedRegistry {
    /// Takes in what a statement of a database was found to be.
    pub(super) fn record_discovery(
        &self,
        proposal: &FeedProposal,
        database: &str,
    ) -> DiscoveryOutcome {
        let definition = &proposal.definition;
        let mut state = self.state();
        let mut feeds = state.feeds.iter();
        if feeds.any(|own| own.definition.serves(definition, database)) {
            return DiscoveryOutcome::Ignored;
        }
        if self.discovery_mode == FeedDiscoveryMode::On && proposal.obstacles.is_empty() {
            return match self.adopt(&mut state, definition, database) {
                true => DiscoveryOutcome::Adopted,
                false => DiscoveryOutcome::Ignored,
            };
        }
        let mut suggested = state.suggested.iter();
        if !suggested.any(|own| own.definition.serves(definition, database)) {
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

    /// Makes a feed of it: in the place of one that was found before and has nobody who follows.
    fn adopt(
        &self,
        state: &mut FeedRegistryState,
        definition: &FeedDefinition,
        database: &str,
    ) -> bool {
        let narrower = |own: &&mut RegisteredFeed| {
            own.is_discovered && definition.serves(&own.definition, database)
        };
        let mut own = definition.clone();
        match state.feeds.iter_mut().find(narrower) {
            Some(narrower) => {
                own.name.clone_from(&narrower.definition.name);
                narrower.definition = Arc::new(own);
            }
            None => {
                if state.feeds.iter().filter(|feed| feed.is_discovered).count()
                    == MAX_DISCOVERED_FEEDS
                {
                    return false;
                }
                let feeds = state.feeds.iter();
                own.assign_free_name(|name| feeds.clone().all(|feed| feed.definition.name != name));
                let (messages, feed) = (table_of(&own), RegisteredFeed::from_settings(own));
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

/// Names it in the log, with the section to paste.
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
