//! How long a comparison goes on: for as many turns as were wanted, and until enough of them were answered from memory.
//!
//! How many of some turns are depends on how busy the machine is. That enough are, sooner or later, does not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::proxy::{Counts, Proxy};

/// Past the turns that were wanted, counters are looked at after so many: or after each, where few were wanted.
const LOOK: u64 = 25;
/// The most turns, as a multiple of those that were wanted.
const MOST: u64 = 20;

/// What of a Headwater's counters is an answer.
type Count = fn(&Counts) -> u64;

/// The turns of a comparison, which threads may share.
#[derive(Debug)]
pub(crate) struct Quota<'a> {
    /// Each with what it had counted before.
    proxies: Vec<(&'a Proxy, u64)>,
    turns: u64,
    answers: u64,
    count: Count,
    taken: AtomicU64,
    met: AtomicBool,
}

impl<'a> Quota<'a> {
    /// `turns`, and as many more as it takes until `count` has risen by `answers`.
    pub(crate) fn new(proxy: &'a Proxy, turns: u64, answers: u64, count: Count) -> Quota<'a> {
        Quota::of_all([proxy], turns, answers, count)
    }

    /// The same of several Headwaters, of which each is to answer so many.
    pub(crate) fn of_all(
        proxies: impl IntoIterator<Item = &'a Proxy>,
        turns: u64,
        answers: u64,
        count: Count,
    ) -> Quota<'a> {
        let proxies = proxies.into_iter();
        Quota {
            proxies: proxies
                .map(|proxy| (proxy, count(&proxy.counts())))
                .collect(),
            turns,
            answers,
            count,
            taken: AtomicU64::new(0),
            met: AtomicBool::new(false),
        }
    }

    /// The number of the next turn, from 0; none where there were enough.
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
        for (proxy, before) in &self.proxies {
            let counts = proxy.counts();
            let answered = (self.count)(&counts) - before;
            if answered < self.answers {
                assert!(
                    turn < self.turns * MOST,
                    "{answered} of {turn} were answered, {} were wanted: {counts:?}\n{}",
                    self.answers,
                    proxy.log()
                );
                return Some(turn);
            }
        }
        self.met.store(true, Ordering::Relaxed);
        None
    }

    /// The Headwater that answers, or the first of them.
    pub(crate) fn proxy(&self) -> &'a Proxy {
        self.proxies[0].0
    }

    /// How many turns were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Calls that were answered from memory.
pub(crate) fn from_memory(counts: &Counts) -> u64 {
    counts.of("calls_from_memory")
}

/// Pages of feeds that were told from rows that were kept.
pub(crate) fn kept_pages(counts: &Counts) -> u64 {
    counts.of("feeds_kept")
}

/// SELECTs behind calls that were.
pub(crate) fn kept_tails(counts: &Counts) -> u64 {
    counts.of("tails_kept")
}
