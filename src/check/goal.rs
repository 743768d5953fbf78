//! How good calls can be at best.

use crate::config::Comparisons;

/// The best that the settings ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Memory,
    Lookups,
}

/// Whether calls are compared with the procedures, which the account has to run for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compares {
    Never,
    /// Nobody asked for it: where the account may not run them, nothing is missing.
    WherePossible,
    Wished,
}

impl From<Comparisons> for Compares {
    fn from(comparisons: Comparisons) -> Compares {
        match (comparisons.rate > 0.0, comparisons.unasked) {
            (false, _) => Compares::Never,
            (true, true) => Compares::WherePossible,
            (true, false) => Compares::Wished,
        }
    }
}
