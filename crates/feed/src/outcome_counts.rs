//! What became of statements: how often each, by its name. Whoever counts waits for nobody.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names that lie side by side: few become of most forms of statements.
const INLINE_NAMES: usize = 6;

/// Counts since the start. Names are those of the counters.
#[derive(Debug, Default)]
pub struct OutcomeCounts {
    /// In the order in which they came.
    first: [OnceLock<(&'static str, AtomicU64)>; INLINE_NAMES],
    overflow: OnceLock<Box<OutcomeCounts>>,
    /// What the server has spent on them, as far as that is known, in microseconds: it only grows.
    server_micros: AtomicU64,
    /// How many went to the server before it was known how long they take.
    unmeasured: AtomicU64,
}

impl OutcomeCounts {
    /// One more.
    pub fn add(&self, name: &'static str) {
        for slot in &self.first {
            let (own, count) = slot.get_or_init(|| (name, AtomicU64::new(0)));
            if *own == name {
                count.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.overflow.get_or_init(Box::default).add(name);
    }

    /// The server has answered one more, which takes it so many microseconds as far as is known; and so do those before it, of which
    /// nothing was known.
    pub fn add_server_time(&self, microseconds: Option<f64>) {
        let Some(each) = microseconds else {
            self.unmeasured.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let before = self.unmeasured.swap(0, Ordering::Relaxed);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "what is below 0 or too much is brought into bounds by the cast"
        )]
        let each = each as u64;
        let all = each.saturating_mul(before.saturating_add(1));
        self.server_micros.fetch_add(all, Ordering::Relaxed);
    }

    /// What the server has spent on them, in microseconds.
    #[must_use]
    pub fn server_micros(&self) -> u64 {
        self.server_micros.load(Ordering::Relaxed)
    }

    /// Each name with how often it came, the most frequent first.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        let mut all = Vec::new();
        let mut next = Some(self);
        while let Some(own) = next {
            let slots = own.first.iter().filter_map(OnceLock::get);
            all.extend(slots.map(|(name, count)| (*name, count.load(Ordering::Relaxed))));
            next = own.overflow.get().map(|more| &**more);
        }
        all.sort_by_key(|&(name, times)| (std::cmp::Reverse(times), name));
        all
    }

    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.all().iter().map(|(_, times)| times).sum()
    }
}

impl fmt::Display for OutcomeCounts {
    /// `narrowed=7 ties=1`: the most frequent first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, times)) in self.all().into_iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(f, "{space}{name}={times}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_is_told_first() {
        let counted = OutcomeCounts::default();
        for name in ["ties", "narrowed", "ties", "learned"] {
            counted.add(name);
        }
        assert_eq!(counted.to_string(), "ties=2 learned=1 narrowed=1");
        assert_eq!(counted.total(), 4);
    }

    #[test]
    fn what_was_spent_only_grows() {
        let counted = OutcomeCounts::default();
        counted.add_server_time(None);
        counted.add_server_time(None);
        assert_eq!(counted.server_micros(), 0);
        counted.add_server_time(Some(1_000.0));
        assert_eq!(counted.server_micros(), 3_000);
        // They take less of late, or were measured wrongly.
        for (each, all) in [(10.0, 3_010), (0.0, 3_010), (-5.0, 3_010)] {
            counted.add_server_time(Some(each));
            assert_eq!(counted.server_micros(), all);
        }
    }

    #[test]
    fn however_many_names_there_are_and_whoever_counts_none_is_lost() {
        const NAMES: [&str; 14] = [
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
        ];
        let counted = OutcomeCounts::default();
        std::thread::scope(|scope| {
            for first in 0..4 {
                let counted = &counted;
                let names = NAMES.iter().cycle().skip(first).take(NAMES.len() * 500);
                scope.spawn(move || names.for_each(|name| counted.add(name)));
            }
        });
        assert_eq!(counted.all(), NAMES.map(|name| (name, 2_000)));
    }
}
