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
    turns: u64,
    wanted: Vec<Wanted<'a>>,
    taken: AtomicU64,
    met: AtomicBool,
}

/// How far a count of a Headwater has to come.
#[derive(Debug)]
struct Wanted<'a> {
    proxy: &'a Proxy,
    count: Count,
    end: u64,
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
        let quota = Quota {
            turns,
            wanted: Vec::new(),
            taken: AtomicU64::new(0),
            met: AtomicBool::new(false),
        };
        let proxies = proxies.into_iter();
        proxies.fold(quota, |quota, proxy| quota.and(proxy, answers, count))
    }

    /// And until this count has risen by so many, too.
    pub(crate) fn and(mut self, proxy: &'a Proxy, answers: u64, count: Count) -> Quota<'a> {
        let end = count(&proxy.counts()) + answers;
        self.wanted.push(Wanted { proxy, count, end });
        self
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
        // That turn is not taken.
        self.taken.fetch_sub(1, Ordering::Relaxed);
        self.met.store(true, Ordering::Relaxed);
        None
    }

    /// The Headwater that answers, or the first of them.
    pub(crate) fn proxy(&self) -> &'a Proxy {
        self.wanted[0].proxy
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
