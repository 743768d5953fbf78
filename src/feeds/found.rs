//! Feeds that nobody named: found in statements that are relayed, and told of, or served.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cause::in_one_line;
use super::{Feed, Feeds, State, Suggested, table_of};
use crate::feed::FeedDefinition;
use crate::feed::propose::Proposal;

/// More feeds are not found.
const MOST: usize = 32;

/// What is done about feeds that the settings do not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "Written")]
pub enum Auto {
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
enum Written {
    Answer(bool),
    Word(Word),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Suggest,
    On,
    Off,
}

impl From<Written> for Auto {
    fn from(written: Written) -> Auto {
        match written {
            Written::Answer(true) | Written::Word(Word::On) => Auto::On,
            Written::Answer(false) | Written::Word(Word::Off) => Auto::Off,
            Written::Word(Word::Suggest) => Auto::Suggest,
        }
    }
}

/// What became of a feed that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is one already that serves the same, or there is no room.
    Nothing,
    /// The log has named it.
    Suggested,
    /// These of its tables cannot be seen.
    Unseen(Arc<[String]>),
    /// It is a feed now, whose tables are to be looked at.
    Taken,
}

impl Feeds {
    /// Takes in what a statement of a database was found to be.
    pub(super) fn found(&self, proposal: &Proposal, database: &str) -> Found {
        let definition = &proposal.definition;
        let mut state = self.state();
        let mut feeds = state.feeds.iter();
        if feeds.any(|own| own.definition.serves(definition, database)) {
            return Found::Nothing;
        }
        if self.auto == Auto::On && proposal.obstacles.is_empty() {
            return match self.take(&mut state, definition, database) {
                true => Found::Taken,
                false => Found::Nothing,
            };
        }
        let mut suggested = state.suggested.iter();
        if !suggested.any(|own| own.definition.serves(definition, database)) {
            if state.suggested.len() == MOST {
                return Found::Nothing;
            }
            let obstacles = in_one_line(&proposal.obstacles);
            suggest(proposal, &obstacles, database, self.auto);
            state.suggested.push(Suggested {
                definition: definition.clone(),
                database: database.to_owned(),
                obstacles,
            });
        }
        Found::Suggested
    }

    /// Makes a feed of it: in the place of one that was found before and has nobody who follows.
    fn take(&self, state: &mut State, definition: &FeedDefinition, database: &str) -> bool {
        let narrower = |own: &&mut Feed| own.found && definition.serves(&own.definition, database);
        let mut own = definition.clone();
        match state.feeds.iter_mut().find(narrower) {
            Some(narrower) => {
                own.name.clone_from(&narrower.definition.name);
                narrower.definition = Arc::new(own);
            }
            None => {
                if state.feeds.iter().filter(|feed| feed.found).count() == MOST {
                    return false;
                }
                let feeds = state.feeds.iter();
                own.call_free(|name| feeds.clone().all(|feed| feed.definition.name != name));
                let (messages, feed) = (table_of(&own), Feed::named(own));
                state.feeds.push(Feed {
                    found: true,
                    ..feed
                });
                let tables = self.messages.write();
                let mut tables = tables.unwrap_or_else(std::sync::PoisonError::into_inner);
                tables.push(messages);
            }
        }
        for known in state.databases.values_mut() {
            known.reconsider();
        }
        true
    }
}

/// Names it in the log, with the section to paste.
fn suggest(proposal: &Proposal, obstacles: &str, database: &str, auto: Auto) {
    let first = match (obstacles.is_empty(), auto) {
        (true, _) => "feeds.auto = \"on\" has them answered from memory, or this section of the settings file:".to_owned(),
        (false, Auto::On) => format!("they are relayed, {obstacles}. Once that is mended this is served:"),
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
