//! A prover: proofs of freshness, each shared by all calls of its threads that came before it was begun: has [`FreshnessProof`] what it needs, over connections of the
//! service account.

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
use crate::index::{BinlogPosition, TimelineId};
use crate::log::evidence::{ObservedRows, TableRowKey};
use crate::log::proof::{FreshnessProof, ProbeResult, ProofInput, ProofStep};
use crate::log::queue::RowProbe;
use crate::log::replication_state::StreamGeneration;
use crate::sync::MutexGuard;

/// Proofs of a prover that are under way at a time.
pub(super) const WORKERS: usize = 2;
/// So long a proof waits for the one before it: the more calls share one, the less is asked of the server. Measured beside
/// two at a time without waiting, 8 connections: MySQL 1.1 to 1.4 times as many calls a second, MariaDB as many.
const MAX_WAIT_FOR_PREVIOUS: Duration = Duration::from_millis(5);
/// While the server is written to, a proof that took long, because there is much to do, is followed by a rest that grows with
/// the square of the time (twice as long after a millisecond), up to this: calls that come meanwhile share the next one.
/// Without it, 8 readers took so much of two processors from 8 writers that these had 0.6 to 0.9 of the inserts that they had
/// beside readers of the procedure; with it, 1.0 to 1.1.
const MAX_PROOF_PAUSE: Duration = Duration::from_millis(5);
/// Timers are not more exact than that.
const MIN_PROOF_PAUSE: Duration = Duration::from_micros(750);
/// Before a proof is begun, all sessions that can go on do so, so many times over. Measured beside none, 8 connections that
/// call and read the tail on MariaDB: 0.40 in place of 0.60 proofs a call, 1.07 times as many calls a second.
const GATHERING_YIELDS: u32 = 4;
/// What waits is looked at so often, even if nobody asks.
const PUMP_INTERVAL: Duration = Duration::from_millis(10);
/// After so long, and after half of the time that calls wait, the rows are not expected to tell any more: the list of open
/// transactions is asked.
const ROW_EVIDENCE_LIMIT: Duration = Duration::from_millis(20);
/// Between two further looks of one proof: a twentieth of the time that it has taken, at least and at most so much. Calls wait for tens of
/// milliseconds, and what is not settled by then (a commit that waits for a replica, a list that nobody gives) may take minutes.
const MIN_PROBE_INTERVAL: Duration = Duration::from_millis(1);
const MAX_PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// Answers asks until the log is not followed any more.
pub(super) async fn run(binlog: Arc<Binlog>, asks: ProofRequestReceiver) {
    let asks = Arc::new(tokio::sync::Mutex::new(asks));
    let turn = Arc::new(ProofPacing {
        permit: Semaphore::new(1),
        binlog: Arc::clone(&binlog),
    });
    let workers =
        (0..WORKERS).map(|_| work(Arc::clone(&binlog), Arc::clone(&asks), Arc::clone(&turn)));
    tokio::select! {
        biased;
        () = binlog.wait_until_closed() => {}
        _ = futures_util::future::join_all(workers) => {}
    }
}

/// Whose turn it is.
struct ProofPacing {
    permit: Semaphore,
    binlog: Arc<Binlog>,
}

/// From when on the next proof of all provers is due, and how far the log had been received with the last one.
#[derive(Debug, Default)]
pub(super) struct ProofPause(Option<Instant>, BinlogPosition);

impl ProofPacing {
    /// Waits for the proof before this one, but not for ever, while it is too early for the next, and for calls that have
    /// come already and not been looked at.
    async fn wait(&self) -> Option<SemaphorePermit<'_>> {
        // Without a timer where there is nothing to wait for.
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

    /// A proof has ended that was begun then; the log has been received up to here.
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

/// Has what waits looked at now and then.
pub(super) async fn pump(binlog: Arc<Binlog>) {
    loop {
        tokio::time::sleep(PUMP_INTERVAL).await;
        let progress = binlog.progress.notified();
        let due = binlog.state().following.needs_probe();
        if due {
            binlog.prove().await;
        } else {
            progress.await;
        }
    }
}

async fn work(
    binlog: Arc<Binlog>,
    asks: Arc<tokio::sync::Mutex<ProofRequestReceiver>>,
    turn: Arc<ProofPacing>,
) {
    let mut control = ControlConnection::new(ConnectionPurpose::Proofs);
    // One that is put off again and again is set once; each new one would wake this thread.
    let mut late = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        let mut waiting = Vec::new();
        let permit;
        {
            let mut asks = asks.lock().await;
            match asks.recv().await {
                Some(ask) => waiting.push(ask),
                None => return,
            }
            permit = turn.wait().await;
            while let Ok(ask) = asks.try_recv() {
                waiting.push(ask);
            }
            waiting.iter().for_each(ProofRequest::begin);
        }
        let begun = clock::now();
        let generation = binlog.state().following.generation();
        let limit = Duration::from_millis(binlog.freshness.wait_ms);
        let mut proof = std::pin::pin!(prove(&binlog, generation, begun, &mut control));
        late.as_mut().reset((begun + limit).into());
        let in_time = tokio::select! {
            biased;
            proof = &mut proof => Some(proof),
            () = &mut late => None,
        };
        binlog.proofs.record(clock::since(begun));
        turn.pause_after(begun, binlog.state().following.received());
        drop(permit);
        report_proof(&binlog, generation, begun, in_time.as_ref(), waiting);
        if in_time.is_none() {
            // The server goes on with the question when its connection is gone, for as long as somebody's lock is in its way:
            // another one is not asked on another connection before that has ended.
            let late = tokio::time::timeout(LATEST, proof).await;
            report_proof(&binlog, generation, begun, late.as_ref().ok(), Vec::new());
        }
    }
}

/// Tells those who wait, and everybody, how a proof ended; `None`: it has not.
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
    let news = binlog
        .state()
        .following
        .record_proof(generation, begun, proved);
    if news {
        tracing::debug!("freshness can be proved: {proved}");
    }
    if !proved {
        // The pump tries again.
        binlog.progress.notify_waiters();
    }
    for ask in waiting {
        ask.end(proved);
    }
}

/// True when the index of every place has what could be read when this was begun, and nothing that cannot be read.
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
            ProofStep::Probe(question) => {
                let (found, end) = probe_rows(binlog, &mut conn, &server, &question).await?;
                binlog.state().lag.extend_log_end(end);
                ProofInput::Probed(ProbeResult::new(&question, found.as_ref(), end))
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
    /// What a proof needs next. What it has learned is applied before anybody else looks.
    fn step_proof(
        &self,
        generation: StreamGeneration,
        proof: &mut FreshnessProof,
        input: ProofInput,
    ) -> ProofStep {
        let mut state = self.state();
        let (mut need, learned) = proof.next(input, &mut state.following, clock::now());
        let news = learned.release.is_some() || learned.contradiction.is_some();
        let proved = matches!(need, ProofStep::Done(true));
        match learned.release {
            Some(release) => self.apply(&mut state, &release),
            None if proved => self.catch_up(&mut state),
            None => {}
        }
        if let Some(key) = learned.contradiction {
            self.report_contradiction(&mut state, key);
        }
        if proved {
            // What was applied last may have been an alarm.
            need = ProofStep::Done(state.following.is_proven(generation));
        }
        drop(state);
        if news {
            self.progress.notify_waiters();
        }
        need
    }

    /// Waits until the stream has told everything up to a position, or is lost.
    async fn wait_until_received(&self, generation: StreamGeneration, end: BinlogPosition) {
        loop {
            let progress = self.progress.notified();
            {
                let state = self.state();
                let following = &state.following;
                if !following.is_current(generation) || following.received() >= end {
                    return;
                }
            }
            progress.await;
        }
    }

    /// Waits for progress where there are no rows to look at.
    async fn wait_until_released(&self, generation: StreamGeneration, end: BinlogPosition) {
        let progress = self.progress.notified();
        if !self.state().following.is_applied(generation, end) {
            progress.await;
        }
    }
}

/// Looks at the rows in question, and asks for the end of the log behind that: in one round trip.
async fn probe_rows(
    binlog: &Binlog,
    conn: &mut AccountConnection,
    server: &ServerFacts,
    question: &RowProbe,
) -> Result<(Option<ObservedRows>, BinlogPosition), BinlogError> {
    let failed = BinlogError::while_doing("freshness cannot be asked for");
    let mut selects = Vec::new();
    let places = binlog.cached_timelines();
    if !question.is_empty() {
        for place in &places {
            let own: Vec<TableRowKey> = question
                .keys()
                .filter(|key| key.timeline_id == place.id())
                .copied()
                .collect();
            selects.extend(place.tables.evidence_query(&own));
        }
    }
    // One SELECT, so one read view.
    let mut questions = Vec::new();
    if !selects.is_empty() {
        questions.push(selects.join(" UNION ALL "));
    }
    questions.push(server.log_end());
    let mut answers = conn.rows_of(&questions).await.map_err(&failed)?;
    let log = answers.pop().ok_or(AccountError::Unexpected);
    let (_, end) = log_end(log.map_err(&failed)?.row(0))?;
    if selects.is_empty() {
        return Ok((None, end));
    }
    let kind = |place: TimelineId| {
        let key = places.get(place.0)?.tables.schema.key.as_ref();
        key.map(|key| key.kind)
    };
    Ok((
        answers.pop().and_then(|rows| evidence_rows(&rows, kind)),
        end,
    ))
}
