//! Which statement it is: its template, and what bars it before anything is asked.

use std::sync::Arc;

use headwater_feed::words::Words;
use headwater_feed::{Refused, Template};

use super::{Feeds, Known, Stage, Turn, Why, World, ask, prepared};
use crate::probe;
use crate::reason::Reason;

/// A statement whose template is served.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) template: Arc<Template>,
    pub(super) words: Words,
}

impl<K: Feeds> World<'_, K> {
    pub(super) fn begin(&mut self) -> Turn {
        if !self.policy.accelerate {
            return Err(Reason::SwitchedOff.into());
        }
        // The template first, of which it is counted. Of several causes the nearest is told: what holds for every statement, for every one
        // of the feed, in the session.
        let found = self.find();
        if self.known.are_aside() {
            return Err(Why::Aside);
        }
        if let Err(why) = &found
            && why.is_of_feed()
        {
            return Err(*why);
        }
        if let Some(reason) = self.session.standing.feed_obstacle() {
            return Err(reason.into());
        }
        // Nothing is asked in front of a statement that may ask what was left by the one before it: a template never does.
        let (subject, database) = found?;
        let standing = &self.session.standing;
        // MySQL refuses some values before anything of the statement before has ended: a question in front would end it. Behind an error
        // that is likely the case again.
        if self.executed.is_some() && standing.must_ask_first() {
            return Err(Why::Execution);
        }
        let known = standing.are_settings_proven() && standing.server().is_some();
        if known && !standing.must_ask_first() {
            self.is_in(&database)?;
            return self.prove(subject);
        }
        let query = probe::settings_query(self.session.asked(self.known.is_galera()));
        Ok((Stage::Settings(subject, database), ask(vec![query])))
    }

    /// The session is in the database where the template was found.
    pub(super) fn is_in(&self, database: &[u8]) -> Result<(), Why> {
        match self.session.standing.database() == Some(database) {
            true => Ok(()),
            false => Err(Reason::OtherDatabase.into()),
        }
    }

    /// Finds the template, in the database that was the current one last, or where the statement was prepared.
    fn find(&mut self) -> Result<(Subject, Vec<u8>), Why> {
        let standing = &self.session.standing;
        let database = standing.database().ok_or(Reason::OtherDatabase)?;
        let changes = standing.database_changes();
        let database = match prepared(self.executed, self.named.as_deref()) {
            None => database,
            Some(feed) => {
                let place = feed.database(database, changes);
                place.ok_or(Reason::OtherDatabase)?
            }
        };
        let text = self.text().ok_or(Refused::NotUnderstood)?;
        let words = match (self.executed, self.named.as_deref()) {
            (Some(executed), _) => self.executed_words(executed)?,
            (None, Some(named)) => named.words()?,
            // To the server a parameter in a text is an error.
            (None, None) => Words::read(text).filter(|words| words.parameters == 0),
        };
        let words = words.ok_or(Refused::NotUnderstood)?;
        let template = match self.known.template(database, &words, text) {
            Known::Ready(template) => template,
            Known::Not(why, tallies) => {
                *self.tallies = tallies;
                return Err(why);
            }
        };
        let database = database.to_vec();
        *self.template = Some(Arc::clone(&template));
        Ok((Subject { template, words }, database))
    }
}
