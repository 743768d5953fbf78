//! How good calls can be at best.

/// The best that the settings ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Memory,
    Lookups,
}
