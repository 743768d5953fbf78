//! How good calls can be at best.

use crate::config::ShadowSampling;

/// The best that the settings ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServingGoal {
    Memory,
    Lookups,
}

/// Whether calls are compared with the procedures, which the account has to run for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonPolicy {
    Never,
    /// Nobody asked for it: where the account may not run them, nothing is missing.
    WherePossible,
    Requested,
}

impl From<ShadowSampling> for ComparisonPolicy {
    fn from(comparisons: ShadowSampling) -> ComparisonPolicy {
        match (comparisons.rate > 0.0, comparisons.by_default) {
            (false, _) => ComparisonPolicy::Never,
            (true, true) => ComparisonPolicy::WherePossible,
            (true, false) => ComparisonPolicy::Requested,
        }
    }
}
