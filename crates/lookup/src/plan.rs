//! The order in which a lookup asks for its heads: a guess where hints allow one, else the way that
//! feels for them.

use std::sync::Arc;

use super::deep::{EachHead, HeadsSeen};
use super::guess::{Guess, GuessSeen};
use super::heads::Heads;
use super::hints::{Hints, Scope};
use super::lookup::Lookup;
use crate::Unusable;
use headwater_timeline::Form;
use headwater_timeline::check::Product;
use headwater_wire::resultset::Rows;

/// So often a follow list may turn out to be another one than was expected while a call is answered.
const MOST_CHANGES: u32 = 16;

/// One question on the way to the heads.
#[derive(Debug)]
pub enum Step {
    /// Whom the reader follows.
    Follows(String),
    /// The newest page at a guess.
    Guess(Guess),
    /// Each head by itself, far below the newest page.
    EachHead(EachHead),
    /// All heads in one correlated lookup.
    Heads(String),
}

/// What a step's answer leads to.
#[derive(Debug)]
pub enum Next {
    /// Another question.
    Ask(Step),
    /// The heads are known, and perhaps lists.
    Heads(Heads),
}

impl Step {
    /// The statement.
    #[must_use]
    pub fn query(&self) -> &str {
        match self {
            Step::Follows(query) | Step::Heads(query) => query,
            Step::EachHead(each) => each.query(),
            Step::Guess(guess) => guess.query(),
        }
    }
}

impl Lookup<'_> {
    /// Where the hints of this call lie.
    pub(super) fn scope(&self) -> Scope {
        Scope::new(self.call.definition, self.database)
    }

    /// The first step.
    #[must_use]
    pub fn begin(&self, hints: &mut Hints) -> Step {
        let by_follows = match self.call.form {
            // A correlated lookup waits for a data node once an author.
            _ if self.facts.are_spread() => true,
            // On MariaDB the heads cost no more than the condition that makes a guess exact.
            Form::Newest => self.facts.product == Product::Mysql,
            Form::Bounded | Form::Heads => self.is_deep(),
        };
        if !by_follows {
            return self.heads();
        }
        let seen = hints.follows.get(self.scope(), self.call.reader);
        let step = seen.map(|authors| self.by_follows(&authors, 0, hints));
        step.and_then(Result::ok)
            .unwrap_or_else(|| Step::Follows(self.follows_query()))
    }

    /// What to do about the answer to a step.
    ///
    /// # Errors
    /// When a row is no id, there are more heads than may be held, or the reader follows others each time.
    pub fn go_on(&self, step: &Step, rows: &Rows, hints: &mut Hints) -> Result<Next, Unusable> {
        let (scope, marks) = (self.scope(), &mut hints.marks);
        match step {
            Step::Follows(_) => {
                let authors: Option<Arc<[u64]>> = rows.iter().map(|row| row.u64(0)).collect();
                let authors = authors.ok_or(Unusable::Malformed)?;
                self.follows(&authors, 0, hints)
            }
            Step::Guess(guess) => match guess.read(self, rows, scope, marks)? {
                GuessSeen::Heads(heads) => Ok(Next::Heads(heads)),
                GuessSeen::Others(authors) => self.changed(&authors, guess.changes, hints),
                GuessSeen::But { known, missing } => {
                    let followed: Arc<[u64]> = guess.authors().into();
                    let each = self.each_head(followed, missing, known, guess.changes);
                    each.map(|each| Next::Ask(Step::EachHead(each)))
                        .ok_or(Unusable::TooManyIds)
                }
                GuessSeen::Nothing if self.facts.are_spread() => {
                    let authors = guess.authors();
                    let step = self.each_of(&authors, guess.changes);
                    step.map(Next::Ask).ok_or(Unusable::TooManyIds)
                }
                GuessSeen::Nothing => Ok(self.correlated(hints)),
            },
            Step::EachHead(each) => match self.read_each_head(each, rows, scope, marks)? {
                HeadsSeen::All(heads) => Ok(Next::Heads(heads)),
                HeadsSeen::Rest(each) => Ok(Next::Ask(Step::EachHead(each))),
                HeadsSeen::Others(authors) => self.changed(&authors, each.changes, hints),
            },
            Step::Heads(_) => Ok(Next::Heads(self.read_heads(rows, scope, marks)?)),
        }
    }

    /// The reader follows others than was expected.
    fn changed(&self, authors: &[u64], changes: u32, hints: &mut Hints) -> Result<Next, Unusable> {
        if !self.facts.are_spread() {
            return Ok(self.correlated(hints));
        }
        match changes < MOST_CHANGES {
            true => self.follows(authors, changes.saturating_add(1), hints),
            false => Err(Unusable::Changing),
        }
    }

    /// The reader follows these.
    fn follows(&self, authors: &[u64], changes: u32, hints: &mut Hints) -> Result<Next, Unusable> {
        if authors.is_empty() {
            hints.follows.forget(self.scope(), self.call.reader);
            return Ok(Next::Heads(Heads::default()));
        }
        hints
            .follows
            .remember(self.scope(), self.call.reader, authors.into());
        self.by_follows(authors, changes, hints).map(Next::Ask)
    }

    /// All heads in one statement, which needs no hints.
    fn correlated(&self, hints: &mut Hints) -> Next {
        hints.follows.forget(self.scope(), self.call.reader);
        Next::Ask(self.heads())
    }

    fn by_follows(
        &self,
        authors: &[u64],
        changes: u32,
        hints: &mut Hints,
    ) -> Result<Step, Unusable> {
        let spread = self.facts.are_spread();
        if spread && authors.len() > self.most_authors() {
            return Err(Unusable::TooManyIds);
        }
        let (scope, marks) = (self.scope(), &mut hints.marks);
        let guess = match self.call.form {
            Form::Newest => self.guess(authors, scope, marks),
            Form::Bounded | Form::Heads if spread => self.bounded_guess(authors, scope, marks),
            Form::Bounded | Form::Heads => None,
        };
        if let Some(guess) = guess {
            return Ok(Step::Guess(Guess { changes, ..guess }));
        }
        let each = match self.call.form {
            Form::Newest if !spread => None,
            _ => self.each_of(authors, changes),
        };
        Ok(each.unwrap_or_else(|| self.heads()))
    }

    /// Each head of these by itself.
    fn each_of(&self, authors: &[u64], changes: u32) -> Option<Step> {
        let mut followed = authors.to_vec();
        followed.sort_unstable();
        let each = self.each_head(followed.as_slice().into(), followed, Vec::new(), changes);
        each.map(Step::EachHead)
    }

    fn heads(&self) -> Step {
        Step::Heads(self.heads_query())
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::cast_possible_truncation
)]
mod tests;
