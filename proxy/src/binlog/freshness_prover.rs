//! A prover runs proofs of freshness, each shared by all calls of its threads that came before it began. It drives a [`FreshnessProof`]
//! over connections of the service account.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::control_connection::{ControlConnection, LATEST};
use super::error::BinlogError;
use super::proof_request::{ProofRequest, ProofRequestReceiver};
use super::row_decoding::{evidence_rows, log_end};
use super::server_facts::ServerFacts;
use super::{Binlog, commit_fence};
use crate::account::{AccountConnection, AccountError, ConnectionPurpose};
use crate::clock;
use crate::sync::MutexGuard;
use headwater_log::evidence::{ObservedRows, TableRowKey};
use headwater_log::proof::{FreshnessProof, ProbeResult, ProofInput, ProofStep};
use headwater_log::queue::RowProbe;
use headwater_log::replication_state::StreamGeneration;
use headwater_timeline::index::{BinlogPosition, TimelineId};

/// Concurrent proofs of a prover.
pub(super) const WORKERS: usize = 2;
/// How long a proof waits for the previous one: the more calls share one, the fewer queries are sent. Measured against two at a time
/// without waiting, 8 connections: MySQL 1.1 to 1.4 times as many calls a second, MariaDB as many.
const MAX_WAIT_FOR_PREVIOUS: Duration = Duration::from_millis(5);
/// While the server is written to, a proof that took long is followed by a pause. The pause grows with the square of that time (twice the
/// time after a millisecond), up to this; calls that come meanwhile share the next proof. Without it, 8 readers left 8 writers on two
/// processors 0.6 to 0.9 of the inserts that they had beside readers of the procedure; with it, 1.0 to 1.1.
const MAX_PROOF_PAUSE: Duration = Duration::from_millis(5);
/// Timers are not more exact than this.
const MIN_PROOF_PAUSE: Duration = Duration::from_micros(750);
/// Yields to runnable sessions before a proof begins. Measured against none, 8 connections that call and run the follow-up SELECT on
/// MariaDB: 0.40 in place of 0.60 proofs a call, 1.07 times as many calls a second.
const GATHERING_YIELDS: u32 = 4;
/// Pending transactions are probed this often, even without a request.
const PUMP_INTERVAL: Duration = Duration::from_millis(10);
/// After this time, and after half of the time that calls wait, row probes are given up: the list of open transactions is polled.
const ROW_EVIDENCE_LIMIT: Duration = Duration::from_millis(20);
/// Pause between further probes of one proof: a twentieth of its duration so far, within these bounds. Calls wait for tens of milliseconds;
/// what is undecided by then (a commit that waits for a replica, a list that cannot be read) may take minutes.
const MIN_PROBE_INTERVAL: Duration = Duration::from_millis(1);
const MAX_PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// Serves proof requests until the log is closed.
pub(super) async fn run(binlog: Arc<Binlog>, requests: ProofRequestReceiver) {
    let requests = Arc::new(tokio::sync::Mutex::new(requests));
    let pacing = Arc::new(ProofPacing {
        permit: Semaphore::new(1),
        binlog: Arc::clone(&binlog),
    });
    let workers = (0..WORKERS).map(|_| {
        work(
            Arc::clone(&binlog),
            Arc::clone(&requests),
            Arc::clone(&pacing),
        )
    });
    tokio::select! {
        biased;
        () = binlog.wait_until_closed() => {}
        _ = futures_util::future::join_all(workers) => {}
    }
}

/// Paces the proofs of a prover.
struct ProofPacing {
    permit: Semaphore,
    binlog: Arc<Binlog>,
}

/// When the next proof of all provers is due, and the position received at the last one.
#[derive(Debug, Default)]
pub(super) struct ProofPause(Option<Instant>, BinlogPosition);

impl ProofPacing {
    /// Waits up to a limit for the previous proof, then for the pause, then for calls that are ready to join.
    async fn wait(&self) -> Option<SemaphorePermit<'_>> {
        // No timer if there is nothing to wait for.
        let one = match self.permit.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let one = tokio::time::timeout(MAX_WAIT_FOR_PREVIOUS, self.permit.acquire()).await;
                one.ok().and_then(Result::ok)
            }
        };
        let due = self.proof_pause().0;
        let rest = due.map_or(Duration::ZERO, |due| {
            due.saturating_duration_since(clock::now())
        });
        if rest > MIN_PROOF_PAUSE {
            tokio::time::sleep(rest).await;
        }
        for _ in 0..GATHERING_YIELDS {
            tokio::task::yield_now().await;
        }
        one
    }

    /// Sets the pause after a proof that began at `begun`; `received`: the position received by now.
    fn pause_after(&self, begun: Instant, received: BinlogPosition) {
        let now = clock::now();
        let taken = now - begun;
        let mut rest = self.proof_pause();
        if rest.1 != received {
            let rests = MAX_PROOF_PAUSE.min(taken.mul_f64(taken.as_secs_f64() * 2_000.0));
            *rest = ProofPause(Some(now + rests), received);
        }
    }

    fn proof_pause(&self) -> MutexGuard<'_, ProofPause> {
        let resting = &self.binlog.proof_pause;
        resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests a proof regularly while transactions are pending.
pub(super) async fn pump(binlog: Arc<Binlog>) {
    loop {
        tokio::time::sleep(PUMP_INTERVAL).await;
        let progress = binlog.progress.notified();
        let due = binlog.state().replication.needs_probe();
        if due {
            binlog.prove().await;
        } else {
            progress.await;
        }
    }
}

async fn work(
    binlog: Arc<Binlog>,
    requests: Arc<tokio::sync::Mutex<ProofRequestReceiver>>,
    pacing: Arc<ProofPacing>,
) {
    let mut control = ControlConnection::new(ConnectionPurpose::Proofs);
    // One timer, reset each round: a new one each time would wake this thread.
    let mut late = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        let mut waiting = Vec::new();
        let permit;
        {
            let mut requests = requests.lock().await;
            match requests.recv().await {
                Some(request) => waiting.push(request),
                None => return,
            }
            permit = pacing.wait().await;
            while let Ok(request) = requests.try_recv() {
                waiting.push(request);
            }
            waiting.iter().for_each(ProofRequest::begin);
        }
        let begun = clock::now();
        let generation = binlog.state().replication.generation();
        let limit = Duration::from_millis(binlog.freshness.wait_ms);
        let mut proof = std::pin::pin!(prove(&binlog, generation, begun, &mut control));
        late.as_mut().reset((begun + limit).into());
        let in_time = tokio::select! {
            biased;
            proof = &mut proof => Some(proof),
            () = &mut late => None,
        };
        binlog.proofs.record(clock::since(begun));
        pacing.pause_after(begun, binlog.state().replication.received());
        drop(permit);
        report_proof(&binlog, generation, begun, in_time.as_ref(), waiting);
        if in_time.is_none() {
            // The server continues the query after its connection is gone, for as long as a lock blocks it: no other connection sends one
            // before that has ended.
            let late = tokio::time::timeout(LATEST, proof).await;
            report_proof(&binlog, generation, begun, late.as_ref().ok(), Vec::new());
        }
    }
}

/// Reports the outcome of a proof to its waiters and to the state; `None`: it has not ended.
fn report_proof(
    binlog: &Binlog,
    generation: StreamGeneration,
    begun: Instant,
    proof: Option<&Result<bool, BinlogError>>,
    waiting: Vec<ProofRequest>,
) {
    let proved = match proof {
        Some(Ok(proved)) => *proved,
        Some(Err(error)) => {
            tracing::debug!("no proof of freshness: {error}");
            false
        }
        None => false,
    };
    let changed = binlog
        .state()
        .replication
        .record_proof(generation, begun, proved);
    if changed {
        tracing::debug!("freshness can be proved: {proved}");
    }
    if !proved {
        // The pump retries.
        binlog.progress.notify_waiters();
    }
    for request in waiting {
        request.end(proved);
    }
}

/// True if every index has what was readable when this began, and nothing unreadable.
async fn prove(
    binlog: &Arc<Binlog>,
    generation: StreamGeneration,
    begun: Instant,
    control: &mut ControlConnection,
) -> Result<bool, BinlogError> {
    let untold = ROW_EVIDENCE_LIMIT.min(Duration::from_millis(binlog.freshness.wait_ms / 2));
    let mut proof = FreshnessProof::new(generation, begun + untold);
    let Some(server) = binlog.state().server.clone() else {
        return Ok(false);
    };
    let mut conn = control.take(binlog, generation, &server).await?;
    let mut input = ProofInput::Begin;
    loop {
        input = match binlog.step_proof(generation, &mut proof, input) {
            ProofStep::Probe(probe) => {
                let (rows, end) = probe_rows(binlog, &mut conn, &server, &probe).await?;
                binlog.state().lag.extend_log_end(end);
                ProofInput::Probed(ProbeResult::new(&probe, rows.as_ref(), end))
            }
            ProofStep::Receive(end) => {
                binlog.wait_until_received(generation, end).await;
                ProofInput::Completed
            }
            ProofStep::Release => {
                commit_fence::release(binlog, generation);
                ProofInput::Completed
            }
            ProofStep::Progress(end) => {
                binlog.wait_until_released(generation, end).await;
                ProofInput::Completed
            }
            ProofStep::Pause => {
                let pause = clock::since(begun) / 20;
                tokio::time::sleep(pause.clamp(MIN_PROBE_INTERVAL, MAX_PROBE_INTERVAL)).await;
                ProofInput::Completed
            }
            ProofStep::Done(proved) => {
                control.put_back(generation, conn);
                return Ok(proved);
            }
            ProofStep::Reset => {
                binlog.restart_stream(generation, BinlogError::LogReset);
                return Ok(false);
            }
        };
    }
}

impl Binlog {
    /// Advances a proof. What it has learned is applied before the state is unlocked.
    fn step_proof(
        &self,
        generation: StreamGeneration,
        proof: &mut FreshnessProof,
        input: ProofInput,
    ) -> ProofStep {
        let mut state = self.state();
        let (mut need, outcome) = proof.next(input, &mut state.replication, clock::now());
        let changed = outcome.release.is_some() || outcome.contradiction.is_some();
        let proved = matches!(need, ProofStep::Done(true));
        match outcome.release {
            Some(release) => self.apply(&mut state, &release),
            None if proved => self.catch_up(&mut state),
            None => {}
        }
        if let Some(key) = outcome.contradiction {
            self.report_contradiction(&mut state, key);
        }
        if proved {
            // The last change applied may have raised an alarm.
            need = ProofStep::Done(state.replication.is_proven(generation));
        }
        drop(state);
        if changed {
            self.progress.notify_waiters();
        }
        need
    }

    /// Waits until the stream has received everything up to a position, or is lost.
    async fn wait_until_received(&self, generation: StreamGeneration, end: BinlogPosition) {
        loop {
            let progress = self.progress.notified();
            {
                let state = self.state();
                let replication = &state.replication;
                if !replication.is_current(generation) || replication.received() >= end {
                    return;
                }
            }
            progress.await;
        }
    }

    /// Waits for progress where no rows can be probed.
    async fn wait_until_released(&self, generation: StreamGeneration, end: BinlogPosition) {
        let progress = self.progress.notified();
        if !self.state().replication.is_applied(generation, end) {
            progress.await;
        }
    }
}

/// Probes the rows, and reads the end of the log after that, in one round trip.
async fn probe_rows(
    binlog: &Binlog,
    conn: &mut AccountConnection,
    server: &ServerFacts,
    probe: &RowProbe,
) -> Result<(Option<ObservedRows>, BinlogPosition), BinlogError> {
    let failed = BinlogError::while_doing("freshness cannot be asked for");
    let mut selects = Vec::new();
    let timelines = binlog.cached_timelines();
    if !probe.is_empty() {
        for timeline in &timelines {
            let keys: Vec<TableRowKey> = probe
                .keys()
                .filter(|key| key.timeline_id == timeline.id())
                .copied()
                .collect();
            selects.extend(timeline.tables.evidence_query(&keys));
        }
    }
    // One SELECT has one read view.
    let mut queries = Vec::new();
    if !selects.is_empty() {
        queries.push(selects.join(" UNION ALL "));
    }
    queries.push(server.log_end());
    let mut answers = conn.rows_of(&queries).await.map_err(&failed)?;
    let log = answers.pop().ok_or(AccountError::Unexpected);
    let (_, end) = log_end(log.map_err(&failed)?.row(0))?;
    if selects.is_empty() {
        return Ok((None, end));
    }
    let kind = |timeline_id: TimelineId| {
        let key = timelines.get(timeline_id.0)?.tables.schema.key.as_ref();
        key.map(|key| key.kind)
    };
    Ok((
        answers.pop().and_then(|rows| evidence_rows(&rows, kind)),
        end,
    ))
}
