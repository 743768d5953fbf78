//! Numbers that are not those of others: no secret depends on them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Replicas of one server must have numbers of their own: a random one of the upper half.
pub(super) fn replica_id() -> u32 {
    random() >> 1 | 1 << 31
}

#[cfg(feature = "lab")]
thread_local! {
    static SEED: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// From now on numbers of this thread follow from a seed: where time and network are simulated, so is this.
#[cfg(feature = "lab")]
pub fn seed(seed: u64) {
    SEED.set(Some(seed));
}

/// Another number each time.
pub(super) fn random() -> u32 {
    #[cfg(feature = "lab")]
    if let Some(seed) = SEED.get() {
        // The constants of a linear congruential generator of 64 bits, whose upper half is used.
        let next = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        SEED.set(Some(next));
        return u32::try_from(next >> 32).unwrap_or_default();
    }
    let random = RandomState::new().build_hasher().finish();
    u32::try_from(random >> 32).unwrap_or_default()
}
