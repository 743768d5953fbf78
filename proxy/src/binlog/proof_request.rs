//! Requests for proofs of freshness, batched by thread, and which prover serves which thread.
//!
//! Threads query the server themselves: a single prover would make all others wait. Measured against one for all, 8 connections, two
//! threads: 1.1 to 1.4 times as many calls a second on both servers. The first threads that ask have a prover each; others share these.
//!
//! A waiter on another thread is woken through the operating system, which costs as much as a call does here. So does a timer that is due
//! before all others of its thread, as that of a call mostly is. So the sessions of a thread that ask before a proof begins share one
//! request and one wake-up, and one timer watches all waiters: some three system calls less for each call.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, oneshot};

use crate::clock;

#[derive(Debug)]
pub(super) struct ProofRequest {
    batch: Arc<ProofBatch>,
    answer: oneshot::Sender<bool>,
}

impl ProofRequest {
    /// Marks that its proof begins: a later caller needs another one.
    pub(super) fn begin(&self) {
        self.batch.begun.store(true, Ordering::SeqCst);
    }

    pub(super) fn end(self, proved: bool) {
        let _ = self.answer.send(proved);
    }
}

/// Sessions of one thread that share a request.
#[derive(Debug, Default)]
struct ProofBatch {
    begun: AtomicBool,
    outcome: AtomicU8,
    ended: Notify,
}

const OPEN: u8 = 0;
const PROVED: u8 = 1;
const FAILED: u8 = 2;

pub(super) type ProofRequestReceiver = mpsc::UnboundedReceiver<ProofRequest>;

#[derive(Debug)]
pub(super) struct ProofRequester {
    provers: Mutex<ProverPool>,
    /// Unique in this process.
    id: u64,
    /// How long a caller waits for a proof.
    limit: Duration,
}

#[derive(Debug, Default)]
struct ProverPool {
    asks: Vec<mpsc::UnboundedSender<ProofRequest>>,
    /// Threads that have requested a proof.
    threads: usize,
}

/// The most provers, each on a thread of its own.
pub(super) const MOST_PROVERS: usize = 4;

struct PendingProof {
    /// The requester it belongs to.
    requester_id: u64,
    batch: Arc<ProofBatch>,
    /// It fails at this time.
    deadline: Instant,
}

struct ThreadProofs {
    /// This thread's prover, for each requester.
    provers: Vec<(u64, mpsc::UnboundedSender<ProofRequest>)>,
    /// Those not known to have ended; the last one is the newest.
    pending: Vec<PendingProof>,
    /// A task checks their deadlines.
    has_watchdog: bool,
}

thread_local! {
    static OWN: RefCell<ThreadProofs> = const { RefCell::new(ThreadProofs { provers: Vec::new(),
            pending: Vec::new(), has_watchdog: false }) };
}

const DEADLINE_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// After this many checks of an empty list, the task ends until the next request.
const MAX_IDLE_CHECKS: u32 = 100;

impl ProofRequester {
    /// `limit`: how long a caller waits for a proof.
    pub(super) fn new(limit: Duration) -> ProofRequester {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ProofRequester {
            provers: Mutex::default(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            limit,
        }
    }

    /// True once a proof succeeds that began after this call; false if none does in time. `start` spawns a prover on this thread.
    pub(super) async fn prove(&self, start: impl FnOnce(ProofRequestReceiver)) -> bool {
        self.batch(start).wait_until_done().await
    }

    /// The prover for a thread that requests its first proof.
    fn prover(
        &self,
        start: impl FnOnce(ProofRequestReceiver),
    ) -> mpsc::UnboundedSender<ProofRequest> {
        let mut provers = self.provers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = provers.threads % MOST_PROVERS;
        provers.threads += 1;
        if let Some(requests) = provers.asks.get(number) {
            return requests.clone();
        }
        let (requests, receiver) = mpsc::unbounded_channel();
        provers.asks.push(requests.clone());
        start(receiver);
        requests
    }

    /// This thread's open batch, or a new one if its proof has begun.
    fn batch(&self, start: impl FnOnce(ProofRequestReceiver)) -> Arc<ProofBatch> {
        OWN.with_borrow_mut(|thread_proofs| {
            let mut newest = thread_proofs.pending.iter().rev();
            let open = newest.find(|pending| pending.requester_id == self.id);
            if let Some(pending) = open.filter(|made| !made.batch.begun.load(Ordering::SeqCst)) {
                return Arc::clone(&pending.batch);
            }
            thread_proofs
                .pending
                .retain(|pending| pending.batch.is_open());
            let known = thread_proofs
                .provers
                .iter()
                .find(|(requester_id, _)| *requester_id == self.id);
            let requests = match known {
                Some((_, requests)) => requests.clone(),
                None => {
                    let requests = self.prover(start);
                    thread_proofs
                        .provers
                        .retain(|(_, requests)| !requests.is_closed());
                    thread_proofs.provers.push((self.id, requests.clone()));
                    requests
                }
            };
            let batch = send_request(&requests);
            thread_proofs.pending.push(PendingProof {
                requester_id: self.id,
                batch: Arc::clone(&batch),
                deadline: clock::now() + self.limit,
            });
            if !std::mem::replace(&mut thread_proofs.has_watchdog, true) {
                tokio::spawn(expire_overdue());
            }
            batch
        })
    }
}

fn send_request(requests: &mpsc::UnboundedSender<ProofRequest>) -> Arc<ProofBatch> {
    let batch = Arc::new(ProofBatch::default());
    let (answer, answered) = oneshot::channel();
    let request = ProofRequest {
        batch: Arc::clone(&batch),
        answer,
    };
    if requests.send(request).is_err() {
        batch.end(false);
        return batch;
    }
    let waiting = Arc::clone(&batch);
    // On this thread: it wakes all the others without the operating system.
    tokio::spawn(async move { waiting.end(answered.await.unwrap_or(false)) });
    batch
}

/// Fails this thread's overdue requests.
async fn expire_overdue() {
    let mut in_vain = 0;
    while in_vain < MAX_IDLE_CHECKS {
        tokio::time::sleep(DEADLINE_CHECK_INTERVAL).await;
        let now = clock::now();
        let late = OWN.with_borrow_mut(|thread_proofs| {
            thread_proofs
                .pending
                .retain(|pending| pending.batch.is_open());
            in_vain = match thread_proofs.pending.is_empty() {
                true => in_vain + 1,
                false => 0,
            };
            thread_proofs.has_watchdog = in_vain < MAX_IDLE_CHECKS;
            let late = thread_proofs
                .pending
                .extract_if(.., |pending| pending.deadline <= now);
            late.collect::<Vec<_>>()
        });
        late.iter().for_each(|pending| pending.batch.end(false));
    }
}

impl ProofBatch {
    fn end(&self, proved: bool) {
        let outcome = match proved {
            true => PROVED,
            false => FAILED,
        };
        // A batch that never began accepts no further sessions.
        self.begun.store(true, Ordering::SeqCst);
        let first =
            self.outcome
                .compare_exchange(OPEN, outcome, Ordering::AcqRel, Ordering::Acquire);
        if first.is_ok() {
            self.ended.notify_waiters();
        }
    }

    fn is_open(&self) -> bool {
        self.outcome.load(Ordering::Acquire) == OPEN
    }

    async fn wait_until_done(&self) -> bool {
        // Registers before the check, so that no end is missed.
        let ended = self.ended.notified();
        if self.is_open() {
            ended.await;
        }
        self.outcome.load(Ordering::Acquire) == PROVED
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A prover that leaves its requests in this slot.
    type RequestSlot = Arc<Mutex<Option<ProofRequestReceiver>>>;

    fn proving(asker: &Arc<ProofRequester>, place: &RequestSlot) -> tokio::task::JoinHandle<bool> {
        let (asker, place) = (Arc::clone(asker), Arc::clone(place));
        tokio::spawn(async move {
            let start = |asks| *place.lock().unwrap() = Some(asks);
            asker.prove(start).await
        })
    }

    fn next(place: &RequestSlot) -> Option<ProofRequest> {
        place.lock().unwrap().as_mut()?.try_recv().ok()
    }

    #[tokio::test]
    async fn requests_before_a_proof_begins_share_it_and_later_ones_need_another() {
        let (asker, place) = (Arc::new(ProofRequester::new(LONG)), RequestSlot::default());
        let early = [proving(&asker, &place), proving(&asker, &place)];
        tokio::task::yield_now().await;
        let first = next(&place).unwrap();
        assert!(next(&place).is_none());
        // Received, and not begun.
        let joining = proving(&asker, &place);
        tokio::task::yield_now().await;
        assert!(next(&place).is_none());
        first.begin();
        let late = proving(&asker, &place);
        tokio::task::yield_now().await;
        let second = next(&place).unwrap();
        first.end(true);
        for one in early.into_iter().chain([joining]) {
            assert!(one.await.unwrap());
        }
        assert!(!late.is_finished());
        second.begin();
        second.end(false);
        assert!(!late.await.unwrap());
        // The prover is gone.
        let lost = proving(&asker, &place);
        tokio::task::yield_now().await;
        place.lock().unwrap().take();
        assert!(!lost.await.unwrap());
        assert!(!proving(&asker, &place).await.unwrap());
    }

    #[tokio::test]
    async fn requesters_do_not_share() {
        let new = || (Arc::new(ProofRequester::new(LONG)), RequestSlot::default());
        let ((one, place), (other, others)) = (new(), new());
        let _asks = [
            proving(&one, &place),
            proving(&other, &others),
            proving(&one, &place),
        ];
        tokio::task::yield_now().await;
        assert!(next(&place).is_some() && next(&place).is_none());
        assert!(next(&others).is_some() && next(&others).is_none());
    }

    #[tokio::test]
    async fn a_waiter_times_out() {
        let place = RequestSlot::default();
        let asker = Arc::new(ProofRequester::new(Duration::from_millis(20)));
        assert!(!proving(&asker, &place).await.unwrap());
        let ask = next(&place).unwrap();
        ask.begin();
        ask.end(true);
        // The watchdog has ended, or still runs: the next request is watched in either case.
        tokio::time::sleep(DEADLINE_CHECK_INTERVAL * (MAX_IDLE_CHECKS + 20)).await;
        assert!(!proving(&asker, &place).await.unwrap());
    }

    #[test]
    fn the_first_threads_have_provers_of_their_own_and_others_share_them() {
        let asker = Arc::new(ProofRequester::new(LONG));
        let mut started = Vec::new();
        for _ in 0..=MOST_PROVERS * 2 {
            asker.prover(|asks| started.push(asks));
        }
        assert_eq!(started.len(), MOST_PROVERS);
    }
}
