//! The name and the meaning of a counter.

/// A counter, as printed and as `docs/counters.md` explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterDefinition {
    /// The printed name.
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
}

/// A counter and what it counts.
#[must_use]
pub const fn counter(name: &'static str, counts: &'static str) -> CounterDefinition {
    CounterDefinition {
        name,
        meaning: counts,
    }
}
