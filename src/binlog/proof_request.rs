//! Asks for proofs of freshness, gathered by thread, and who proves for which thread.
//!
//! A thread asks the server itself: what one thread does for all others, they have to wait for. Measured beside one for all, 8 connections,
//! two threads: 1.1 to 1.4 times as many calls a second on both servers. The first threads that ask have a prover each; others share these.
//!
//! Who waits for a proof on another thread has to be woken through the operating system, which costs as much as a call does here; and
//! so does a timer that is due before all others of its thread, as that of a call mostly is. So the sessions of a thread that ask before a proof
//! is begun share one ask and one wake-up, and one timer looks after all that wait: some three system calls less for each call.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, oneshot};

use crate::clock;

/// What is asked of those who prove.
#[derive(Debug)]
pub(super) struct ProofRequest {
    batch: Arc<ProofBatch>,
    answer: oneshot::Sender<bool>,
}

impl ProofRequest {
    /// A proof is begun for it from here on: who asks behind this needs another one.
    pub(super) fn begin(&self) {
        self.batch.begun.store(true, Ordering::SeqCst);
    }

    /// Tells how the proof ended.
    pub(super) fn end(self, proved: bool) {
        let _ = self.answer.send(proved);
    }
}

/// Sessions of one thread that share an ask.
#[derive(Debug, Default)]
struct ProofBatch {
    begun: AtomicBool,
    outcome: AtomicU8,
    ended: Notify,
}

const OPEN: u8 = 0;
const PROVED: u8 = 1;
const FAILED: u8 = 2;

/// Asks that wait for a prover.
pub(super) type ProofRequestReceiver = mpsc::UnboundedReceiver<ProofRequest>;

/// Where asks go.
#[derive(Debug)]
pub(super) struct ProofRequester {
    provers: Mutex<ProverPool>,
    /// None other of this process has it.
    id: u64,
    /// So long a proof is waited for.
    limit: Duration,
}

#[derive(Debug, Default)]
struct ProverPool {
    asks: Vec<mpsc::UnboundedSender<ProofRequest>>,
    /// Threads that have asked.
    threads: usize,
}

/// Provers, each on a thread of its own.
pub(super) const MOST_PROVERS: usize = 4;

/// An ask that this thread has made.
struct PendingProof {
    /// Whose it is.
    requester_id: u64,
    batch: Arc<ProofBatch>,
    /// It has failed by then.
    deadline: Instant,
}

/// Asks of a thread.
struct ThreadProofs {
    /// Who proves for this thread, for each asker.
    provers: Vec<(u64, mpsc::UnboundedSender<ProofRequest>)>,
    /// Those that have not ended, as far as was looked; the last one is the newest.
    pending: Vec<PendingProof>,
    /// Somebody looks now and then.
    has_watchdog: bool,
}

thread_local! {
    static OWN: RefCell<ThreadProofs> = const { RefCell::new(ThreadProofs { provers: Vec::new(),
            pending: Vec::new(), has_watchdog: false }) };
}

/// So often it is looked whose time has come.
const DEADLINE_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// After so many looks at nothing nobody looks any more, before the next ask.
const MAX_IDLE_CHECKS: u32 = 100;

impl ProofRequester {
    /// `limit`: so long a proof is waited for.
    pub(super) fn new(limit: Duration) -> ProofRequester {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ProofRequester {
            provers: Mutex::default(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            limit,
        }
    }

    /// True once a proof has come that was begun behind this; false if none comes in time. `start` has this thread prove what is asked.
    pub(super) async fn prove(&self, start: impl FnOnce(ProofRequestReceiver)) -> bool {
        self.batch(start).wait_until_done().await
    }

    /// Who proves for a thread that asks for the first time.
    fn prover(
        &self,
        start: impl FnOnce(ProofRequestReceiver),
    ) -> mpsc::UnboundedSender<ProofRequest> {
        let mut provers = self.provers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = provers.threads % MOST_PROVERS;
        provers.threads += 1;
        if let Some(asks) = provers.asks.get(number) {
            return asks.clone();
        }
        let (asks, asked) = mpsc::unbounded_channel();
        provers.asks.push(asks.clone());
        start(asked);
        asks
    }

    /// The ask that this thread has made, as long as no proof was begun for it, or another one.
    fn batch(&self, start: impl FnOnce(ProofRequestReceiver)) -> Arc<ProofBatch> {
        OWN.with_borrow_mut(|own| {
            let mut newest = own.pending.iter().rev();
            let open = newest.find(|made| made.requester_id == self.id);
            if let Some(made) = open.filter(|made| !made.batch.begun.load(Ordering::SeqCst)) {
                return Arc::clone(&made.batch);
            }
            own.pending.retain(|made| made.batch.is_open());
            let known = own.provers.iter().find(|(asker, _)| *asker == self.id);
            let asks = match known {
                Some((_, asks)) => asks.clone(),
                None => {
                    let asks = self.prover(start);
                    own.provers.retain(|(_, asks)| !asks.is_closed());
                    own.provers.push((self.id, asks.clone()));
                    asks
                }
            };
            let batch = send_request(&asks);
            own.pending.push(PendingProof {
                requester_id: self.id,
                batch: Arc::clone(&batch),
                deadline: clock::now() + self.limit,
            });
            if !std::mem::replace(&mut own.has_watchdog, true) {
                tokio::spawn(expire_overdue());
            }
            batch
        })
    }
}

fn send_request(asks: &mpsc::UnboundedSender<ProofRequest>) -> Arc<ProofBatch> {
    let batch = Arc::new(ProofBatch::default());
    let (answer, answered) = oneshot::channel();
    let ask = ProofRequest {
        batch: Arc::clone(&batch),
        answer,
    };
    if asks.send(ask).is_err() {
        batch.end(false);
        return batch;
    }
    let own = Arc::clone(&batch);
    // On this thread: it wakes all the others without the operating system.
    tokio::spawn(async move { own.end(answered.await.unwrap_or(false)) });
    batch
}

/// Ends what has waited for too long on this thread.
async fn expire_overdue() {
    let mut in_vain = 0;
    while in_vain < MAX_IDLE_CHECKS {
        tokio::time::sleep(DEADLINE_CHECK_INTERVAL).await;
        let now = clock::now();
        let late = OWN.with_borrow_mut(|own| {
            own.pending.retain(|made| made.batch.is_open());
            in_vain = match own.pending.is_empty() {
                true => in_vain + 1,
                false => 0,
            };
            own.has_watchdog = in_vain < MAX_IDLE_CHECKS;
            let late = own.pending.extract_if(.., |made| made.deadline <= now);
            late.collect::<Vec<_>>()
        });
        late.iter().for_each(|made| made.batch.end(false));
    }
}

impl ProofBatch {
    fn end(&self, proved: bool) {
        let outcome = match proved {
            true => PROVED,
            false => FAILED,
        };
        // Of one that was never begun nobody may take part any more.
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
        // It hears of an end from here on.
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

    /// Asks are given to a prover that leaves them in this place.
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
    async fn who_asks_before_a_proof_is_begun_shares_it_and_who_asks_behind_needs_another() {
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
        // Nobody proves any more.
        let lost = proving(&asker, &place);
        tokio::task::yield_now().await;
        place.lock().unwrap().take();
        assert!(!lost.await.unwrap());
        assert!(!proving(&asker, &place).await.unwrap());
    }

    #[tokio::test]
    async fn askers_do_not_share() {
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
    async fn who_has_waited_long_enough_is_told_so() {
        let place = RequestSlot::default();
        let asker = Arc::new(ProofRequester::new(Duration::from_millis(20)));
        assert!(!proving(&asker, &place).await.unwrap());
        let ask = next(&place).unwrap();
        ask.begin();
        ask.end(true);
        // Whoever looks has ended, or goes on: the next one is looked after all the same.
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
