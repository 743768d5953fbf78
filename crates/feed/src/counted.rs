//! What became of statements: how often each, by its name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts since the start. Names are those of the counters.
#[derive(Debug, Default)]
pub struct Counted(Mutex<BTreeMap<&'static str, u64>>);

impl Counted {
    fn all(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub fn add(&self, name: &'static str) {
        *self.all().entry(name).or_default() += 1;
    }

    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.all().values().sum()
    }
}

impl fmt::Display for Counted {
    /// `narrowed=7 ties=1`: the most frequent first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<(&str, u64)> = self.all().iter().map(|(&name, &n)| (name, n)).collect();
        all.sort_by_key(|&(name, times)| (std::cmp::Reverse(times), name));
        for (place, (name, times)) in all.into_iter().enumerate() {
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
}
