//! Which statement it is: its template, and what bars it before anything is asked.

use std::sync::Arc;

use headwater_feed::words::StatementWords;
use headwater_feed::{NarrowingRefusal, Template};

use super::{
    FeedContext, FeedKnowledge, FeedRelayReason, FeedStage, FeedTransition, TemplateLookup,
    prepared, query_session,
};
use crate::call_relay_reason::CallRelayReason;
use crate::settings_probe;

/// A statement whose template is served.
#[derive(Debug)]
pub(super) struct ServedStatement {
    pub(super) template: Arc<Template>,
    pub(super) words: StatementWords,
}

impl<K: FeedKnowledge> FeedContext<'_, K> {
    pub(super) fn begin(&mut self) -> FeedTransition {
        if !self.policy.accelerate {
            return Err(CallRelayReason::SwitchedOff.into());
        }
        // The template first, of which it is counted. Of several causes the nearest is told: what holds for every statement, for every one
        // of the feed, in the session.
        let found = self.find_template();
        if self.knowledge.are_suspended() {
            return Err(FeedRelayReason::LogSuspended);
        }
        if let Err(why) = &found
            && why.is_of_feed()
        {
            return Err(*why);
        }
        if let Some(reason) = self.session.state.feed_obstacle() {
            return Err(reason.into());
        }
        // Nothing is asked in front of a statement that may ask what was left by the one before it: a template never does.
        let (subject, database) = found?;
        let standing = &self.session.state;
        // MySQL refuses some values before anything of the statement before has ended: a question in front would end it. Behind an error
        // that is likely the case again.
        if self.executed.is_some() && standing.must_probe_first() {
            return Err(FeedRelayReason::Execution);
        }
        let known = standing.are_settings_proven() && standing.server().is_some();
        if known && !standing.must_probe_first() {
            self.is_in(&database)?;
            return self.prove(subject);
        }
        let query =
            settings_probe::settings_query(self.session.probed_server(self.knowledge.is_galera()));
        Ok((
            FeedStage::Settings(subject, database),
            query_session(vec![query]),
        ))
    }

    /// The session is in the database where the template was found.
    pub(super) fn is_in(&self, database: &[u8]) -> Result<(), FeedRelayReason> {
        match self.session.state.database() == Some(database) {
            true => Ok(()),
            false => Err(CallRelayReason::OtherDatabase.into()),
        }
    }

    /// Finds the template, in the database that was the current one last, or where the statement was prepared.
    fn find_template(&mut self) -> Result<(ServedStatement, Vec<u8>), FeedRelayReason> {
        let standing = &self.session.state;
        let database = standing.database().ok_or(CallRelayReason::OtherDatabase)?;
        let changes = standing.database_changes();
        let database = match prepared(self.executed, self.named.as_deref()) {
            None => database,
            Some(feed) => {
                let place = feed.database(database, changes);
                place.ok_or(CallRelayReason::OtherDatabase)?
            }
        };
        let text = self.text().ok_or(NarrowingRefusal::NotUnderstood)?;
        let words = match (self.executed, self.named.as_deref()) {
            (Some(executed), _) => self.executed_words(executed)?,
            (None, Some(named)) => named.words()?,
            // To the server a parameter in a text is an error.
            (None, None) => StatementWords::read(text).filter(|words| words.parameters == 0),
        };
        let words = words.ok_or(NarrowingRefusal::NotUnderstood)?;
        let template = match self.knowledge.template(database, &words, text) {
            TemplateLookup::Ready(template) => template,
            TemplateLookup::Unserved(why, tallies) => {
                *self.tallies = tallies;
                return Err(why);
            }
        };
        let database = database.to_vec();
        *self.template = Some(Arc::clone(&template));
        Ok((ServedStatement { template, words }, database))
    }
}
