//! The best way that calls can be served.

use headwater_server::config::ShadowSampling;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServingGoal {
    Memory,
    Lookups,
}

/// Whether calls are compared with the procedures, which the account must run for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonPolicy {
    Never,
    /// By default: if the account may not run them, nothing is missing.
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
