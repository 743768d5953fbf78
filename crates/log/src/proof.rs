//! A proof of freshness: that the index holds everything that could be read when the proof was begun, and nothing that cannot.
//!
//! It asks the server where its log ends: everything that anyone can have read by then stands before that position. Then it waits
//! until the stream has told all of it, and looks at rows until it is known which of the told transactions can be read: those are
//! applied. If a transaction that was told could not be read at a moment after the proof was begun, neither could any behind it,
//! and the index without them is exact.

use std::time::Instant;

use headwater_timeline::index::BinlogPosition;

use super::evidence::{ObservedRows, TableRowKey};
use super::queue::{CommitWatermark, RowProbe};
use super::replication_state::{
    ProofState, ReplicationState, StreamGeneration, TransactionRelease,
};

/// Rows are looked at so often without a pause: what cannot be read yet is readable within microseconds as a rule.
const PROBES_WITHOUT_PAUSE: u32 = 3;

/// A stream that lacks more bytes than that needs milliseconds for them: those who wait are told at once that there is no proof.
const MAX_LAG_BYTES: u64 = 1 << 20;

/// What a proof needs next.
#[derive(Debug)]
pub enum ProofStep {
    /// A look at these rows, and behind it the end of the log: [`ProofInput::Probed`].
    Probe(RowProbe),
    /// Everything up to here has to be received: [`ProofInput::Completed`].
    Receive(BinlogPosition),
    /// What waits has to be released in another way than by its rows; as a help, and this goes on: [`ProofInput::Completed`].
    Release,
    /// There are no rows to look at: it is released up to here by others: [`ProofInput::Completed`].
    Progress(BinlogPosition),
    /// A moment: [`ProofInput::Completed`].
    Pause,
    /// Nothing: the index is exact, or that cannot be proved.
    Done(bool),
    /// Nothing: the log ends before what it has told already, so it was begun anew.
    Reset,
}

/// What came of it.
#[derive(Debug)]
pub enum ProofInput {
    /// Nothing yet.
    Begin,
    /// What was asked was seen.
    Probed(ProbeResult),
    /// It is done, or time has passed.
    Completed,
}

/// What a look at rows tells, by itself.
#[derive(Clone, Copy, Debug)]
pub struct ProbeResult {
    /// Everything up to here had been received when the question was put.
    received: BinlogPosition,
    /// Where the log ended behind the look.
    end: BinlogPosition,
    watermark: Option<CommitWatermark>,
    contradiction: Option<TableRowKey>,
}

impl ProbeResult {
    /// Judges the rows that were found, if they could be read, and the end of the log behind them.
    #[must_use]
    pub fn new(
        question: &RowProbe,
        found: Option<&ObservedRows>,
        end: BinlogPosition,
    ) -> ProbeResult {
        let cut = found.and_then(|found| question.evaluate(found, end));
        let contradiction = match (cut, found) {
            (None, Some(found)) => question.contradiction(found, end),
            _ => None,
        };
        ProbeResult {
            received: question.received(),
            end,
            watermark: cut,
            contradiction,
        }
    }
}

/// What is to be done besides.
#[derive(Debug, Default)]
pub struct ProofFindings {
    /// This is to be applied, and those who wait for progress are to be told.
    pub release: Option<TransactionRelease>,
    /// A row is as it cannot be.
    pub contradiction: Option<TableRowKey>,
}

/// One proof.
#[derive(Debug)]
pub struct FreshnessProof {
    generation: StreamGeneration,
    /// After that the rows are not expected to tell any more.
    rows_deadline: Instant,
    /// Where the log ended when this was begun.
    end: Option<BinlogPosition>,
    hidden: Option<u64>,
    probes: u32,
    /// The rows that are looked at next, once the release is begun.
    release_probe: Option<RowProbe>,
}

impl FreshnessProof {
    /// A proof about this stream.
    #[must_use]
    pub fn new(generation: StreamGeneration, untold: Instant) -> FreshnessProof {
        FreshnessProof {
            generation,
            rows_deadline: untold,
            end: None,
            hidden: None,
            probes: 0,
            release_probe: None,
        }
    }

    /// Takes in what was needed, and says what is needed next.
    pub fn next(
        &mut self,
        input: ProofInput,
        following: &mut ReplicationState,
        now: Instant,
    ) -> (ProofStep, ProofFindings) {
        let mut learned = ProofFindings::default();
        match input {
            // Rows that wait already are looked at in the same round trip as the log's end.
            ProofInput::Begin => {
                let question = following.row_probe(self.generation);
                return (ProofStep::Probe(question), learned);
            }
            ProofInput::Probed(seen) => {
                if self.end.is_none() && seen.end < seen.received {
                    return (ProofStep::Reset, learned);
                }
                self.end.get_or_insert(seen.end);
                learned = self.apply_result(seen, following);
                self.probes += 1;
                let unknown = self.state(following) == ProofState::Unknown;
                if self.probes >= PROBES_WITHOUT_PAUSE && unknown {
                    return (ProofStep::Pause, learned);
                }
            }
            ProofInput::Completed => {}
        }
        (self.next_step(following, now), learned)
    }

    fn apply_result(
        &mut self,
        seen: ProbeResult,
        following: &mut ReplicationState,
    ) -> ProofFindings {
        self.hidden = seen.watermark.and_then(|cut| cut.hidden_from);
        match seen.watermark {
            Some(cut) => ProofFindings {
                release: following.apply_watermark(self.generation, cut),
                contradiction: None,
            },
            // What is not known to be readable from before, or is another stream's, contradicts nothing.
            None => ProofFindings {
                release: None,
                contradiction: seen
                    .contradiction
                    .filter(|_| following.is_proven(self.generation)),
            },
        }
    }

    fn state(&self, following: &ReplicationState) -> ProofState {
        following.proof_state(self.generation, self.end.unwrap_or_default(), self.hidden)
    }

    fn next_step(&mut self, following: &ReplicationState, now: Instant) -> ProofStep {
        let end = self.end.unwrap_or_default();
        if let Some(question) = self.release_probe.take() {
            return if question.is_empty() {
                ProofStep::Progress(end)
            } else {
                ProofStep::Probe(question)
            };
        }
        match self.state(following) {
            ProofState::Proved => ProofStep::Done(true),
            ProofState::Void => ProofStep::Done(false),
            ProofState::Lagging(bytes) if bytes > MAX_LAG_BYTES => ProofStep::Done(false),
            ProofState::Lagging(_) => ProofStep::Receive(end),
            ProofState::Unknown => {
                let question = following.row_probe(self.generation);
                if question.is_empty() || now > self.rows_deadline {
                    self.release_probe = Some(question);
                    return ProofStep::Release;
                }
                ProofStep::Probe(question)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
