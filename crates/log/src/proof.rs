//! A proof of freshness: that the index holds everything that could be read when the proof was begun, and nothing that cannot.
//!
//! It asks the server where its log ends: everything that anyone can have read by then stands before that position. Then it waits
//! until the stream has told all of it, and looks at rows until it is known which of the told transactions can be read: those are
//! applied. If a transaction that was told could not be read at a moment after the proof was begun, neither could any behind it,
//! and the index without them is exact.

use std::time::Instant;

use headwater_timeline::index::Position;

use super::evidence::{Found, Key};
use super::following::{Following, Generation, ProofState, Release};
use super::queue::{Cut, Question};

/// Rows are looked at so often without a pause: what cannot be read yet is readable within microseconds as a rule.
const LOOKS: u32 = 3;

/// A stream that lacks more bytes than that needs milliseconds for them: those who wait are told at once that there is no proof.
const FAR: u64 = 1 << 20;

/// What a proof needs next.
#[derive(Debug)]
pub enum Need {
    /// A look at these rows, and behind it the end of the log: [`Input::Seen`].
    Look(Question),
    /// Everything up to here has to be received: [`Input::Went`].
    Receive(Position),
    /// What waits has to be released in another way than by its rows; as a help, and this goes on: [`Input::Went`].
    Release,
    /// There are no rows to look at: it is released up to here by others: [`Input::Went`].
    Progress(Position),
    /// A moment: [`Input::Went`].
    Pause,
    /// Nothing: the index is exact, or that cannot be proved.
    Done(bool),
    /// Nothing: the log ends before what it has told already, so it was begun anew.
    Reset,
}

/// What came of it.
#[derive(Debug)]
pub enum Input {
    /// Nothing yet.
    Begin,
    /// What was asked was seen.
    Seen(Seen),
    /// It is done, or time has passed.
    Went,
}

/// What a look at rows tells, by itself.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Everything up to here had been received when the question was put.
    received: Position,
    /// Where the log ended behind the look.
    end: Position,
    cut: Option<Cut>,
    contradiction: Option<Key>,
}

impl Seen {
    /// Judges the rows that were found, if they could be read, and the end of the log behind them.
    #[must_use]
    pub fn new(question: &Question, found: Option<&Found>, end: Position) -> Seen {
        let cut = found.and_then(|found| question.judge(found, end));
        let contradiction = match (cut, found) {
            (None, Some(found)) => question.contradiction(found, end),
            _ => None,
        };
        Seen {
            received: question.received(),
            end,
            cut,
            contradiction,
        }
    }
}

/// What is to be done besides.
#[derive(Debug, Default)]
pub struct Learned {
    /// This is to be applied, and those who wait for progress are to be told.
    pub release: Option<Release>,
    /// A row is as it cannot be.
    pub contradiction: Option<Key>,
}

/// One proof.
#[derive(Debug)]
pub struct Proof {
    generation: Generation,
    /// After that the rows are not expected to tell any more.
    untold: Instant,
    /// Where the log ended when this was begun.
    end: Option<Position>,
    hidden: Option<u64>,
    looks: u32,
    /// The rows that are looked at next, once the release is begun.
    released: Option<Question>,
}

impl Proof {
    /// A proof about this stream.
    #[must_use]
    pub fn new(generation: Generation, untold: Instant) -> Proof {
        Proof {
            generation,
            untold,
            end: None,
            hidden: None,
            looks: 0,
            released: None,
        }
    }

    /// Takes in what was needed, and says what is needed next.
    pub fn next(
        &mut self,
        input: Input,
        following: &mut Following,
        now: Instant,
    ) -> (Need, Learned) {
        let mut learned = Learned::default();
        match input {
            // Rows that wait already are looked at in the same round trip as the log's end.
            Input::Begin => {
                let question = following.question(self.generation);
                return (Need::Look(question), learned);
            }
            Input::Seen(seen) => {
                if self.end.is_none() && seen.end < seen.received {
                    return (Need::Reset, learned);
                }
                self.end.get_or_insert(seen.end);
                learned = self.learn(seen, following);
                self.looks += 1;
                let unknown = self.stands(following) == ProofState::Unknown;
                if self.looks >= LOOKS && unknown {
                    return (Need::Pause, learned);
                }
            }
            Input::Went => {}
        }
        (self.go_on(following, now), learned)
    }

    fn learn(&mut self, seen: Seen, following: &mut Following) -> Learned {
        self.hidden = seen.cut.and_then(|cut| cut.hidden);
        match seen.cut {
            Some(cut) => Learned {
                release: following.learn(self.generation, cut),
                contradiction: None,
            },
            // What is not known to be readable from before, or is another stream's, contradicts nothing.
            None => Learned {
                release: None,
                contradiction: seen
                    .contradiction
                    .filter(|_| following.is_proven(self.generation)),
            },
        }
    }

    fn stands(&self, following: &Following) -> ProofState {
        following.stands(self.generation, self.end.unwrap_or_default(), self.hidden)
    }

    fn go_on(&mut self, following: &Following, now: Instant) -> Need {
        let end = self.end.unwrap_or_default();
        if let Some(question) = self.released.take() {
            return if question.is_empty() {
                Need::Progress(end)
            } else {
                Need::Look(question)
            };
        }
        match self.stands(following) {
            ProofState::Proved => Need::Done(true),
            ProofState::Void => Need::Done(false),
            ProofState::Behind(bytes) if bytes > FAR => Need::Done(false),
            ProofState::Behind(_) => Need::Receive(end),
            ProofState::Unknown => {
                let question = following.question(self.generation);
                if question.is_empty() || now > self.untold {
                    self.released = Some(question);
                    return Need::Release;
                }
                Need::Look(question)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
