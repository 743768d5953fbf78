//! The order in which a lookup queries its heads: a guess where hints allow one, else a search.

use std::sync::Arc;

use super::heads::LookupHeads;
use super::hints::{HintScope, LookupHints};
use super::lookup::CallLookup;
use super::page_guess::{GuessResult, PageGuess};
use super::per_author_heads::{PerAuthorHeads, PerAuthorHeadsResult};
use crate::LookupError;
use headwater_timeline::ProcedureForm;
use headwater_timeline::check::ServerProduct;
use headwater_wire::resultset::ResultSet;

/// How often the follow list may differ from the expected one during one call.
const MAX_FOLLOW_CHANGES: u32 = 16;

/// One query of the search for the heads.
#[derive(Debug)]
pub enum LookupStep {
    /// The reader's follow list.
    Follows(String),
    /// A guess at the page.
    Guess(PageGuess),
    /// Each head by itself, far below the newest page.
    PerAuthorHeads(PerAuthorHeads),
    /// All heads in one correlated lookup.
    Heads(String),
}

/// What follows from a step's answer.
#[derive(Debug)]
pub enum LookupStepOutcome {
    /// Another query.
    Continue(LookupStep),
    /// The heads are known, and perhaps lists.
    Heads(LookupHeads),
}

impl LookupStep {
    /// The statement.
    #[must_use]
    pub fn query(&self) -> &str {
        match self {
            LookupStep::Follows(query) | LookupStep::Heads(query) => query,
            LookupStep::PerAuthorHeads(each) => each.query(),
            LookupStep::Guess(guess) => guess.query(),
        }
    }
}

impl CallLookup<'_> {
    /// The scope of this call's hints.
    pub(super) fn scope(&self) -> HintScope {
        HintScope::new(self.call.definition, self.database)
    }

    /// The first step.
    #[must_use]
    pub fn first_step(&self, hints: &mut LookupHints) -> LookupStep {
        let by_follows = match self.call.form {
            // A correlated lookup waits for a data node once for each author.
            _ if self.facts.is_spread() => true,
            // On MariaDB the heads cost no more than the condition that makes a guess exact.
            ProcedureForm::Newest => self.facts.product == ServerProduct::Mysql,
            ProcedureForm::Bounded | ProcedureForm::Heads => self.is_deep(),
        };
        if !by_follows {
            return self.heads_step();
        }
        let known_follows = hints.follow_lists.get(self.scope(), self.call.reader);
        let step = known_follows.map(|authors| self.step_for_follows(&authors, 0, hints));
        step.and_then(Result::ok)
            .unwrap_or_else(|| LookupStep::Follows(self.follows_query()))
    }

    /// Reads the answer to a step, and returns what follows.
    ///
    /// # Errors
    /// When a row is malformed, there are more heads than the limit, or the follow list differs each time.
    pub fn next_step(
        &self,
        step: &LookupStep,
        rows: &ResultSet,
        hints: &mut LookupHints,
    ) -> Result<LookupStepOutcome, LookupError> {
        let (scope, range_hints) = (self.scope(), &mut hints.author_ranges);
        match step {
            LookupStep::Follows(_) => {
                let authors: Option<Arc<[u64]>> = rows.iter().map(|row| row.u64(0)).collect();
                let authors = authors.ok_or(LookupError::Malformed)?;
                self.follows_known(&authors, 0, hints)
            }
            LookupStep::Guess(guess) => match guess.read_rows(self, rows, scope, range_hints)? {
                GuessResult::Heads(heads) => Ok(LookupStepOutcome::Heads(heads)),
                GuessResult::FollowsChanged(authors) => {
                    self.follows_changed(&authors, guess.follow_changes, hints)
                }
                GuessResult::MissingHeads { known, missing } => {
                    let followed: Arc<[u64]> = guess.authors().into();
                    let each =
                        self.per_author_heads(followed, missing, known, guess.follow_changes);
                    each.map(|each| LookupStepOutcome::Continue(LookupStep::PerAuthorHeads(each)))
                        .ok_or(LookupError::TooManyIds)
                }
                GuessResult::Unproven if self.facts.is_spread() => {
                    let authors = guess.authors();
                    let step = self.per_author_step(&authors, guess.follow_changes);
                    step.map(LookupStepOutcome::Continue)
                        .ok_or(LookupError::TooManyIds)
                }
                GuessResult::Unproven => Ok(self.correlated_step(hints)),
            },
            LookupStep::PerAuthorHeads(each) => {
                match self.read_per_author_heads(each, rows, scope, range_hints)? {
                    PerAuthorHeadsResult::Complete(heads) => Ok(LookupStepOutcome::Heads(heads)),
                    PerAuthorHeadsResult::Remaining(each) => Ok(LookupStepOutcome::Continue(
                        LookupStep::PerAuthorHeads(each),
                    )),
                    PerAuthorHeadsResult::FollowsChanged(authors) => {
                        self.follows_changed(&authors, each.follow_changes, hints)
                    }
                }
            }
            LookupStep::Heads(_) => Ok(LookupStepOutcome::Heads(self.read_heads(
                rows,
                scope,
                range_hints,
            )?)),
        }
    }

    /// The reader does not follow the expected authors.
    fn follows_changed(
        &self,
        authors: &[u64],
        changes: u32,
        hints: &mut LookupHints,
    ) -> Result<LookupStepOutcome, LookupError> {
        if !self.facts.is_spread() {
            return Ok(self.correlated_step(hints));
        }
        match changes < MAX_FOLLOW_CHANGES {
            true => self.follows_known(authors, changes.saturating_add(1), hints),
            false => Err(LookupError::FollowsChanging),
        }
    }

    /// Continues with the reader's follow list.
    fn follows_known(
        &self,
        authors: &[u64],
        changes: u32,
        hints: &mut LookupHints,
    ) -> Result<LookupStepOutcome, LookupError> {
        if authors.is_empty() {
            hints.follow_lists.forget(self.scope(), self.call.reader);
            return Ok(LookupStepOutcome::Heads(LookupHeads::default()));
        }
        hints
            .follow_lists
            .remember(self.scope(), self.call.reader, authors.into());
        self.step_for_follows(authors, changes, hints)
            .map(LookupStepOutcome::Continue)
    }

    /// Continues with one statement for all heads, which needs no hints.
    fn correlated_step(&self, hints: &mut LookupHints) -> LookupStepOutcome {
        hints.follow_lists.forget(self.scope(), self.call.reader);
        LookupStepOutcome::Continue(self.heads_step())
    }

    fn step_for_follows(
        &self,
        authors: &[u64],
        changes: u32,
        hints: &mut LookupHints,
    ) -> Result<LookupStep, LookupError> {
        let spread = self.facts.is_spread();
        if spread && authors.len() > self.max_authors() {
            return Err(LookupError::TooManyIds);
        }
        let (scope, range_hints) = (self.scope(), &mut hints.author_ranges);
        let guess = match self.call.form {
            ProcedureForm::Newest => self.newest_guess(authors, scope, range_hints),
            ProcedureForm::Bounded | ProcedureForm::Heads if spread => {
                self.bounded_guess(authors, scope, range_hints)
            }
            ProcedureForm::Bounded | ProcedureForm::Heads => None,
        };
        if let Some(guess) = guess {
            return Ok(LookupStep::Guess(PageGuess {
                follow_changes: changes,
                ..guess
            }));
        }
        let each = match self.call.form {
            ProcedureForm::Newest if !spread => None,
            _ => self.per_author_step(authors, changes),
        };
        Ok(each.unwrap_or_else(|| self.heads_step()))
    }

    /// The step that queries these authors' heads one by one.
    fn per_author_step(&self, authors: &[u64], changes: u32) -> Option<LookupStep> {
        let mut followed = authors.to_vec();
        followed.sort_unstable();
        let each = self.per_author_heads(followed.as_slice().into(), followed, Vec::new(), changes);
        each.map(LookupStep::PerAuthorHeads)
    }

    fn heads_step(&self) -> LookupStep {
        LookupStep::Heads(self.heads_query())
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
