//! What became of statements: how often each, by its name. Whoever counts waits for nobody.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names that lie side by side: few become of most forms of statements.
const SIDE_BY_SIDE: usize = 6;

/// Counts since the start. Names are those of the counters.
#[derive(Debug, Default)]
pub struct Counted {
    /// In the order in which they came.
    first: [OnceLock<(&'static str, AtomicU64)>; SIDE_BY_SIDE],
    more: OnceLock<Box<Counted>>,
}

impl Counted {
    /// One more.
    pub fn add(&self, name: &'static str) {
        for slot in &self.first {
            let (own, count) = slot.get_or_init(|| (name, AtomicU64::new(0)));
            if *own == name {
                count.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.more.get_or_init(Box::default).add(name);
    }

    /// Each name with how often it came, the most frequent first.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        let mut all = Vec::new();
        let mut next = Some(self);
        while let Some(own) = next {
            let slots = own.first.iter().filter_map(OnceLock::get);
            all.extend(slots.map(|(name, count)| (*name, count.load(Ordering::Relaxed))));
            next = own.more.get().map(|more| &**more);
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

impl fmt::Display for Counted {
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
        let counted = Counted::default();
        for name in ["ties", "narrowed", "ties", "learned"] {
            counted.add(name);
        }
        assert_eq!(counted.to_string(), "ties=2 learned=1 narrowed=1");
        assert_eq!(counted.total(), 4);
    }

    #[test]
    fn however_many_names_there_are_and_whoever_counts_none_is_lost() {
        const NAMES: [&str; 14] = [
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
        ];
        let counted = Counted::default();
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
