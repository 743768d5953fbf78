//! The order in which a lookup asks for its heads: a guess where hints allow one, else the way that
//! feels for them.

use std::sync::Arc;

use super::guess::Guess;
use super::heads::Heads;
use super::hints::{Hints, Scope};
use super::lookup::Lookup;
use crate::Unusable;
use headwater_timeline::Form;
use headwater_timeline::check::Product;
use headwater_wire::resultset::Rows;

/// One question on the way to the heads.
#[derive(Debug)]
pub enum Step {
    /// Whom the reader follows.
    Follows(String),
    /// The newest page at a guess.
    Guess(Guess),
    /// Each head by itself, far below the newest page.
    EachHead(String),
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
            Step::Follows(query) | Step::EachHead(query) | Step::Heads(query) => query,
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
        match hints.follows.get(self.scope(), self.call.reader) {
            Some(authors) => self.by_follows(&authors, hints),
            None => Step::Follows(self.follows_query()),
        }
    }

    /// What to do about the answer to a step.
    ///
    /// # Errors
    /// When a row is no id, or there are more heads than may be held.
    pub fn go_on(&self, step: &Step, rows: &Rows, hints: &mut Hints) -> Result<Next, Unusable> {
        let scope = self.scope();
        let heads = match step {
            Step::Follows(_) => {
                let authors: Option<Arc<[u64]>> = rows.iter().map(|row| row.u64(0)).collect();
                let authors = authors.ok_or(Unusable::Malformed)?;
                if authors.is_empty() {
                    return Ok(Next::Heads(Heads::default()));
                }
                hints
                    .follows
                    .remember(scope, self.call.reader, Arc::clone(&authors));
                return Ok(Next::Ask(self.by_follows(&authors, hints)));
            }
            Step::Guess(guess) => guess.read(self, rows, scope, hints)?,
            Step::EachHead(_) => self.read_each_head(rows)?,
            // With a bound, Spider finds no head at all now and then.
            Step::Heads(_) if self.facts.are_spread() => return Err(Unusable::Malformed),
            Step::Heads(_) => Some(self.read_heads(rows, scope, &mut hints.marks)?),
        };
        Ok(match (heads, step) {
            (Some(heads), _) => Next::Heads(heads),
            (None, Step::Guess(guess)) if self.facts.are_spread() => {
                Next::Ask(self.behind_guess(guess, hints))
            }
            (None, _) if self.facts.are_spread() => {
                hints.follows.forget(scope, self.call.reader);
                Next::Ask(Step::Follows(self.follows_query()))
            }
            (None, _) => {
                hints.follows.forget(scope, self.call.reader);
                Next::Ask(self.heads())
            }
        })
    }

    fn by_follows(&self, authors: &[u64], hints: &mut Hints) -> Step {
        let each = || self.each_head_query(authors).map(Step::EachHead);
        let step = match self.call.form {
            Form::Newest => {
                let guess = self.guess(authors, self.scope(), &mut hints.marks);
                let guess = guess.map(Step::Guess);
                guess.or_else(|| self.facts.are_spread().then(each).flatten())
            }
            Form::Bounded | Form::Heads => {
                let spread = self.facts.are_spread();
                let guess = || self.bounded_guess(authors, self.scope(), &mut hints.marks);
                let guess = spread.then(guess).flatten().map(Step::Guess);
                guess.or_else(each)
            }
        };
        step.unwrap_or_else(|| self.heads())
    }

    pub(super) fn heads(&self) -> Step {
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
