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
pub(super) struct Ask {
    batch: Arc<Batch>,
    answer: oneshot::Sender<bool>,
}

impl Ask {
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
struct Batch {
    begun: AtomicBool,
    outcome: AtomicU8,
    ended: Notify,
}

const OPEN: u8 = 0;
const PROVED: u8 = 1;
const FAILED: u8 = 2;

/// Asks that wait for a prover.
pub(super) type Asks = mpsc::UnboundedReceiver<Ask>;

/// Where asks go.
#[derive(Debug)]
pub(super) struct Asker {
    provers: Mutex<Provers>,
    /// None other of this process has it.
    number: u64,
    /// So long a proof is waited for.
    limit: Duration,
}

#[derive(Debug, Default)]
struct Provers {
    asks: Vec<mpsc::UnboundedSender<Ask>>,
    /// Threads that have asked.
    threads: usize,
}

/// Provers, each on a thread of its own.
pub(super) const MOST_PROVERS: usize = 4;

/// An ask that this thread has made.
struct Made {
    /// Whose it is.
    asker: u64,
    batch: Arc<Batch>,
    /// It has failed by then.
    due: Instant,
}

/// Asks of a thread.
struct Own {
    /// Who proves for this thread, for each asker.
    provers: Vec<(u64, mpsc::UnboundedSender<Ask>)>,
    /// Those that have not ended, as far as was looked; the last one is the newest.
    made: Vec<Made>,
    /// Somebody looks now and then.
    watched: bool,
}

thread_local! {
    static OWN: RefCell<Own> = const { RefCell::new(Own { provers: Vec::new(),
            made: Vec::new(), watched: false }) };
}

/// So often it is looked whose time has come.
const LOOK: Duration = Duration::from_millis(5);
/// After so many looks at nothing nobody looks any more, before the next ask.
const IN_VAIN: u32 = 100;

impl Asker {
    /// `limit`: so long a proof is waited for.
    pub(super) fn new(limit: Duration) -> Asker {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Asker {
            provers: Mutex::default(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            limit,
        }
    }

    /// True once a proof has come that was begun behind this; false if none comes in time. `start` has this thread prove what is asked.
    pub(super) async fn prove(&self, start: impl FnOnce(Asks)) -> bool {
        self.batch(start).proved().await
    }

    /// Who proves for a thread that asks for the first time.
    fn prover(&self, start: impl FnOnce(Asks)) -> mpsc::UnboundedSender<Ask> {
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
    fn batch(&self, start: impl FnOnce(Asks)) -> Arc<Batch> {
        OWN.with_borrow_mut(|own| {
            let mut newest = own.made.iter().rev();
            let open = newest.find(|made| made.asker == self.number);
            if let Some(made) = open.filter(|made| !made.batch.begun.load(Ordering::SeqCst)) {
                return Arc::clone(&made.batch);
            }
            own.made.retain(|made| made.batch.is_open());
            let known = own.provers.iter().find(|(asker, _)| *asker == self.number);
            let asks = match known {
                Some((_, asks)) => asks.clone(),
                None => {
                    let asks = self.prover(start);
                    own.provers.retain(|(_, asks)| !asks.is_closed());
                    own.provers.push((self.number, asks.clone()));
                    asks
                }
            };
            let batch = ask(&asks);
            own.made.push(Made {
                asker: self.number,
                batch: Arc::clone(&batch),
                due: clock::now() + self.limit,
            });
            if !std::mem::replace(&mut own.watched, true) {
                tokio::spawn(watch());
            }
            batch
        })
    }
}

fn ask(asks: &mpsc::UnboundedSender<Ask>) -> Arc<Batch> {
    let batch = Arc::new(Batch::default());
    let (answer, answered) = oneshot::channel();
    let ask = Ask {
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
async fn watch() {
    let mut in_vain = 0;
    while in_vain < IN_VAIN {
        tokio::time::sleep(LOOK).await;
        let now = clock::now();
        let late = OWN.with_borrow_mut(|own| {
            own.made.retain(|made| made.batch.is_open());
            in_vain = match own.made.is_empty() {
                true => in_vain + 1,
                false => 0,
            };
            own.watched = in_vain < IN_VAIN;
            let late = own.made.extract_if(.., |made| made.due <= now);
            late.collect::<Vec<_>>()
        });
        late.iter().for_each(|made| made.batch.end(false));
    }
}

impl Batch {
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

    async fn proved(&self) -> bool {
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
    type Place = Arc<Mutex<Option<Asks>>>;

    fn proving(asker: &Arc<Asker>, place: &Place) -> tokio::task::JoinHandle<bool> {
        let (asker, place) = (Arc::clone(asker), Arc::clone(place));
        tokio::spawn(async move {
            let start = |asks| *place.lock().unwrap() = Some(asks);
            asker.prove(start).await
        })
    }

    fn next(place: &Place) -> Option<Ask> {
        place.lock().unwrap().as_mut()?.try_recv().ok()
    }

    #[tokio::test]
    async fn who_asks_before_a_proof_is_begun_shares_it_and_who_asks_behind_needs_another() {
        let (asker, place) = (Arc::new(Asker::new(LONG)), Place::default());
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
        let new = || (Arc::new(Asker::new(LONG)), Place::default());
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
        let place = Place::default();
        let asker = Arc::new(Asker::new(Duration::from_millis(20)));
        assert!(!proving(&asker, &place).await.unwrap());
        let ask = next(&place).unwrap();
        ask.begin();
        ask.end(true);
        // Whoever looks has ended, or goes on: the next one is looked after all the same.
        tokio::time::sleep(LOOK * (IN_VAIN + 20)).await;
        assert!(!proving(&asker, &place).await.unwrap());
    }

    #[test]
    fn the_first_threads_have_provers_of_their_own_and_others_share_them() {
        let asker = Arc::new(Asker::new(LONG));
        let mut started = Vec::new();
        for _ in 0..=MOST_PROVERS * 2 {
            asker.prover(|asks| started.push(asks));
        }
        assert_eq!(started.len(), MOST_PROVERS);
    }
}
