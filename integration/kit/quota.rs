//! The length of a comparison: it runs the requested rounds, and continues until enough of them were answered from memory.
//!
//! How many of a fixed number of rounds memory answers depends on the load of the machine. That enough come sooner or later does not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::proxy::{Counts, Proxy};

/// After the requested rounds, the counters are read once in so many rounds; more often where few were requested.
const LOOK: u64 = 25;
/// The maximum of rounds, as a multiple of those requested.
const MOST: u64 = 20;

/// Reads the number of answers from a Headwater's counters.
type Count = fn(&Counts) -> u64;

/// The rounds of a comparison. Threads may share them.
#[derive(Debug)]
pub(crate) struct Quota<'a> {
    turns: u64,
    wanted: Vec<Wanted<'a>>,
    taken: AtomicU64,
    met: AtomicBool,
}

/// The value that a count of a Headwater must reach.
#[derive(Debug)]
struct Wanted<'a> {
    proxy: &'a Proxy,
    count: Count,
    end: u64,
}

impl<'a> Quota<'a> {
    /// Runs `turns` rounds, and more until `count` has risen by `answers`.
    pub(crate) fn new(proxy: &'a Proxy, turns: u64, answers: u64, count: Count) -> Quota<'a> {
        Quota::of_all([proxy], turns, answers, count)
    }

    /// [`Quota::new`] for several Headwaters, each of which must give that many answers.
    pub(crate) fn of_all(
        proxies: impl IntoIterator<Item = &'a Proxy>,
        turns: u64,
        answers: u64,
        count: Count,
    ) -> Quota<'a> {
        let quota = Quota {
            turns,
            wanted: Vec::new(),
            taken: AtomicU64::new(0),
            met: AtomicBool::new(false),
        };
        let proxies = proxies.into_iter();
        proxies.fold(quota, |quota, proxy| quota.and(proxy, answers, count))
    }

    /// Adds the condition that this count rises by `answers`.
    pub(crate) fn and(mut self, proxy: &'a Proxy, answers: u64, count: Count) -> Quota<'a> {
        let end = count(&proxy.counts()) + answers;
        self.wanted.push(Wanted { proxy, count, end });
        self
    }

    /// The number of the next round, from 0; `None` after the last one.
    #[track_caller]
    pub(crate) fn take(&self) -> Option<u64> {
        if self.met.load(Ordering::Relaxed) {
            return None;
        }
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        let look = LOOK.min(self.turns / 4).max(1);
        let beyond = turn.checked_sub(self.turns);
        if beyond.is_none_or(|beyond| !beyond.is_multiple_of(look)) {
            return Some(turn);
        }
        for Wanted { proxy, count, end } in &self.wanted {
            let counts = proxy.counts();
            if count(&counts) < *end {
                assert!(
                    turn < self.turns * MOST,
                    "after {turn} turns {} of {end} were answered: {counts:?}\n{}",
                    count(&counts),
                    proxy.log()
                );
                return Some(turn);
            }
        }
        // This round does not run.
        self.taken.fetch_sub(1, Ordering::Relaxed);
        self.met.store(true, Ordering::Relaxed);
        None
    }

    /// The first Headwater of the comparison.
    pub(crate) fn proxy(&self) -> &'a Proxy {
        self.wanted[0].proxy
    }

    /// How many rounds have started.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Calls answered from memory.
pub(crate) fn from_memory(counts: &Counts) -> u64 {
    counts.of("calls_from_memory")
}

/// Feed pages answered from cached rows.
pub(crate) fn kept_pages(counts: &Counts) -> u64 {
    counts.of("feeds_kept")
}

/// Follow-up SELECTs answered from cached rows.
pub(crate) fn kept_tails(counts: &Counts) -> u64 {
    counts.of("tails_kept")
}
