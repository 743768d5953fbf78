//! Finds a statement's template, and what bars it before any query.

use std::sync::Arc;

use headwater_feed::words::StatementWords;
use headwater_feed::{NarrowingRefusal, Template};
use headwater_wire::resultset::QueryReply;

use super::{
    FeedAction, FeedContext, FeedKnowledge, FeedRelayReason, FeedStage, FeedTransition,
    TemplateLookup, prepared, query_session,
};
use crate::call_relay_reason::CallRelayReason;
use crate::settings_probe;

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
        // The template comes first, since it counts the outcome. Of several reasons the most general is reported: for every statement, for
        // the feed, for the session.
        let lookup = self.find_template();
        if self.knowledge.are_suspended() {
            return self.relay_after_settings(FeedRelayReason::LogSuspended);
        }
        if let Err(why) = &lookup
            && why.is_of_feed()
        {
            return self.relay_after_settings(*why);
        }
        if let Some(reason) = self.session.state.feed_obstacle() {
            return Err(reason.into());
        }
        // No query precedes a statement that may read what the previous one left: a template never does.
        let (subject, database) = lookup?;
        let state = &self.session.state;
        // MySQL refuses some values before it clears what the previous statement left: a query first would clear it. After an error that
        // is likely to happen again.
        if self.executed.is_some() && state.must_probe_first() {
            return Err(FeedRelayReason::Execution);
        }
        let settings_known = state.are_settings_proven() && state.server().is_some();
        if settings_known && !state.must_probe_first() {
            self.is_in(&database)?;
            return self.prove(subject);
        }
        let query = self.query_settings();
        Ok((FeedStage::Settings(subject, database), query))
    }

    /// Relays an execution of a feed that is not served yet. Settings that are unknown since the PREPARE are queried before: behind the
    /// relayed statement, which may run stored code, nobody could tell what they were.
    fn relay_after_settings(&self, reason: FeedRelayReason) -> FeedTransition {
        let state = &self.session.state;
        let is_temporary = matches!(
            reason,
            FeedRelayReason::LogSuspended | FeedRelayReason::Unchecked | FeedRelayReason::Unseen
        );
        let feed = prepared(self.executed, self.named.as_deref());
        let is_unknown = feed.is_some_and(|feed| !feed.are_settings_known())
            && !state.are_settings_proven()
            && !state.must_probe_first()
            && state.feed_obstacle().is_none();
        match is_temporary && is_unknown {
            true => Ok((FeedStage::SettingsOfPrepare(reason), self.query_settings())),
            false => Err(reason),
        }
    }

    /// The settings of the PREPARE are those of now.
    pub(super) fn take_settings_of_prepare(
        &mut self,
        answer: Option<&QueryReply>,
    ) -> Result<(), FeedRelayReason> {
        self.take_settings(answer)?;
        if let Some(feed) = prepared(self.executed, self.named.as_deref()) {
            feed.learn_settings(self.session.state.current());
        }
        Ok(())
    }

    fn query_settings(&self) -> FeedAction {
        let server = self.session.probed_server(self.knowledge.is_galera());
        query_session(vec![settings_probe::settings_query(server)])
    }

    /// Checks that the session is in the template's database.
    pub(super) fn is_in(&self, database: &[u8]) -> Result<(), FeedRelayReason> {
        match self.session.state.database() == Some(database) {
            true => Ok(()),
            false => Err(CallRelayReason::OtherDatabase.into()),
        }
    }

    /// Finds the template in the last known database, or in that of the PREPARE.
    fn find_template(&mut self) -> Result<(ServedStatement, Vec<u8>), FeedRelayReason> {
        let state = &self.session.state;
        let database = state.database().ok_or(CallRelayReason::OtherDatabase)?;
        let changes = state.database_changes();
        let database = match prepared(self.executed, self.named.as_deref()) {
            None => database,
            Some(feed) => {
                let prepared_in = feed.database(database, changes);
                prepared_in.ok_or(CallRelayReason::OtherDatabase)?
            }
        };
        let text = self.text().ok_or(NarrowingRefusal::NotUnderstood)?;
        let words = match (self.executed, self.named.as_deref()) {
            (Some(executed), _) => self.executed_words(executed)?,
            (None, Some(named)) => named.words()?,
            // The server rejects a parameter in a text.
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
