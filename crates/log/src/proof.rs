//! A freshness proof: the index holds everything that was readable when the proof began, and nothing that is not readable.
//!
//! It reads the end of the server's log: everything that anyone can have read by then is before that position. It waits until the
//! stream has received all of it, and probes rows until it is known which of the received transactions are readable: those are
//! applied. If a received transaction was not readable at a moment after the proof began, no later one was either, and the index
//! without them is exact.

use std::time::Instant;

use headwater_timeline::index::BinlogPosition;

use super::evidence::{ObservedRows, TableRowKey};
use super::queue::{CommitWatermark, RowProbe};
use super::replication_state::{
    ProofState, ReplicationState, StreamGeneration, TransactionRelease,
};

/// Probes without a pause: what is not readable yet usually is within microseconds.
const PROBES_WITHOUT_PAUSE: u32 = 3;

/// A stream that lags more bytes needs milliseconds for them: waiting calls are answered at once that there is no proof.
const MAX_LAG_BYTES: u64 = 1 << 20;

/// What a proof needs next, and the [`ProofInput`] that continues it.
#[derive(Debug)]
pub enum ProofStep {
    /// Probe these rows, then read the end of the log: [`ProofInput::Probed`].
    Probe(RowProbe),
    /// Receive the log up to this position: [`ProofInput::Completed`].
    Receive(BinlogPosition),
    /// Start to release pending transactions without probes, in the background: [`ProofInput::Completed`].
    Release,
    /// There are no rows to probe. Wait for a release up to this position: [`ProofInput::Completed`].
    Progress(BinlogPosition),
    /// Wait a moment: [`ProofInput::Completed`].
    Pause,
    /// The proof has ended: true if the index is exact, false if that cannot be proved.
    Done(bool),
    /// The log ends before what was already received, so it was reset.
    Reset,
}

/// The result of a step.
#[derive(Debug)]
pub enum ProofInput {
    /// The proof begins.
    Begin,
    /// The result of a probe.
    Probed(ProbeResult),
    /// The step is complete, or time has passed.
    Completed,
}

/// The result of one probe.
#[derive(Clone, Copy, Debug)]
pub struct ProbeResult {
    /// Everything up to here had been received when the probe was sent.
    received: BinlogPosition,
    /// Where the log ended after the probe.
    end: BinlogPosition,
    watermark: Option<CommitWatermark>,
    contradiction: Option<TableRowKey>,
}

impl ProbeResult {
    /// Evaluates the observed rows, if they could be read, and the end of the log after the probe.
    #[must_use]
    pub fn new(probe: &RowProbe, rows: Option<&ObservedRows>, end: BinlogPosition) -> ProbeResult {
        let watermark = rows.and_then(|found| probe.evaluate(found, end));
        let contradiction = match (watermark, rows) {
            (None, Some(observed)) => probe.contradiction(observed, end),
            _ => None,
        };
        ProbeResult {
            received: probe.received(),
            end,
            watermark,
            contradiction,
        }
    }
}

/// Side results of a step.
#[derive(Debug, Default)]
pub struct ProofFindings {
    /// Transactions to apply; calls that wait for progress are to be notified.
    pub release: Option<TransactionRelease>,
    /// A row is in an impossible state.
    pub contradiction: Option<TableRowKey>,
}

/// The state of one proof.
#[derive(Debug)]
pub struct FreshnessProof {
    generation: StreamGeneration,
    /// After this instant rows are no longer expected to prove anything.
    rows_deadline: Instant,
    /// Where the log ended when the proof began.
    end: Option<BinlogPosition>,
    hidden: Option<u64>,
    probes: u32,
    /// The next probe, once the release has begun.
    release_probe: Option<RowProbe>,
}

impl FreshnessProof {
    /// A proof for this stream; after `rows_deadline`, pending transactions are released without probes.
    #[must_use]
    pub fn new(generation: StreamGeneration, rows_deadline: Instant) -> FreshnessProof {
        FreshnessProof {
            generation,
            rows_deadline,
            end: None,
            hidden: None,
            probes: 0,
            release_probe: None,
        }
    }

    /// Processes the result of the last step, and returns the next step.
    pub fn next(
        &mut self,
        input: ProofInput,
        replication: &mut ReplicationState,
        now: Instant,
    ) -> (ProofStep, ProofFindings) {
        let mut findings = ProofFindings::default();
        match input {
            // Rows that are already pending are probed in the same round trip as the log's end.
            ProofInput::Begin => {
                let probe = replication.row_probe(self.generation);
                return (ProofStep::Probe(probe), findings);
            }
            ProofInput::Probed(result) => {
                if self.end.is_none() && result.end < result.received {
                    return (ProofStep::Reset, findings);
                }
                self.end.get_or_insert(result.end);
                findings = self.apply_result(result, replication);
                self.probes += 1;
                let unknown = self.state(replication) == ProofState::Unknown;
                if self.probes >= PROBES_WITHOUT_PAUSE && unknown {
                    return (ProofStep::Pause, findings);
                }
            }
            ProofInput::Completed => {}
        }
        (self.next_step(replication, now), findings)
    }

    fn apply_result(
        &mut self,
        result: ProbeResult,
        replication: &mut ReplicationState,
    ) -> ProofFindings {
        self.hidden = result.watermark.and_then(|cut| cut.hidden_from);
        match result.watermark {
            Some(watermark) => ProofFindings {
                release: replication.apply_watermark(self.generation, watermark),
                contradiction: None,
            },
            // Rows of a start that is not proven yet, or of another stream, contradict nothing.
            None => ProofFindings {
                release: None,
                contradiction: result
                    .contradiction
                    .filter(|_| replication.is_proven(self.generation)),
            },
        }
    }

    fn state(&self, replication: &ReplicationState) -> ProofState {
        replication.proof_state(self.generation, self.end.unwrap_or_default(), self.hidden)
    }

    fn next_step(&mut self, replication: &ReplicationState, now: Instant) -> ProofStep {
        let end = self.end.unwrap_or_default();
        if let Some(probe) = self.release_probe.take() {
            return if probe.is_empty() {
                ProofStep::Progress(end)
            } else {
                ProofStep::Probe(probe)
            };
        }
        match self.state(replication) {
            ProofState::Proved => ProofStep::Done(true),
            ProofState::Void => ProofStep::Done(false),
            ProofState::Lagging(bytes) if bytes > MAX_LAG_BYTES => ProofStep::Done(false),
            ProofState::Lagging(_) => ProofStep::Receive(end),
            ProofState::Unknown => {
                let probe = replication.row_probe(self.generation);
                if probe.is_empty() || now > self.rows_deadline {
                    self.release_probe = Some(probe);
                    return ProofStep::Release;
                }
                ProofStep::Probe(probe)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
