//! Numbers that are not those of others: no secret depends on them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Replicas of one server must have numbers of their own: a random one of the upper half.
pub(super) fn replica_id() -> u32 {
    random() >> 1 | 1 << 31
}

/// Another number each time.
pub(super) fn random() -> u32 {
    let random = RandomState::new().build_hasher().finish();
    u32::try_from(random >> 32).unwrap_or_default()
}
