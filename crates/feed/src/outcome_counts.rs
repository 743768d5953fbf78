//! Counts the outcomes of statements, by name. Counting does not wait.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names that are stored inline: most templates have few outcomes.
const INLINE_NAMES: usize = 6;

/// Counts since the start. The names are those of the counters.
#[derive(Debug, Default)]
pub struct OutcomeCounts {
    /// In the order of their first use.
    first: [OnceLock<(&'static str, AtomicU64)>; INLINE_NAMES],
    overflow: OnceLock<Box<OutcomeCounts>>,
    /// Microseconds that the server has spent, as far as known; only grows.
    server_micros: AtomicU64,
    /// Statements sent to the server before their time was known.
    unmeasured: AtomicU64,
}

impl OutcomeCounts {
    /// Counts one statement.
    pub fn add(&self, name: &'static str) {
        for slot in &self.first {
            let (slot_name, count) = slot.get_or_init(|| (name, AtomicU64::new(0)));
            if *slot_name == name {
                count.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.overflow.get_or_init(Box::default).add(name);
    }

    /// Adds a statement that the server answered, with its microseconds if known. Earlier statements of unknown time get the same time.
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

    /// Microseconds that the server has spent on the statements.
    #[must_use]
    pub fn server_micros(&self) -> u64 {
        self.server_micros.load(Ordering::Relaxed)
    }

    /// Each name with its count, the most frequent first.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        let mut all = Vec::new();
        let mut next = Some(self);
        while let Some(counts) = next {
            let slots = counts.first.iter().filter_map(OnceLock::get);
            all.extend(slots.map(|(name, count)| (*name, count.load(Ordering::Relaxed))));
            next = counts.overflow.get().map(|more| &**more);
        }
        all.sort_by_key(|&(name, times)| (std::cmp::Reverse(times), name));
        all
    }

    /// The sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.all().iter().map(|(_, times)| times).sum()
    }
}

impl fmt::Display for OutcomeCounts {
    /// `narrowed=7 ties=1`: the most frequent first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, times)) in self.all().into_iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{name}={times}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_is_first() {
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
        // Later statements take less, or were measured wrongly.
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
