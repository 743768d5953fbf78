//! Random numbers, to differ from those of others: no secret depends on them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A random server id of the upper half: replicas of one server need distinct ids.
pub(super) fn replica_id() -> u32 {
    random() >> 1 | 1 << 31
}

#[cfg(feature = "simulation")]
thread_local! {
    static SEED: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// Derives this thread's numbers from a seed from now on: where time and network are simulated, so is this.
#[cfg(feature = "simulation")]
pub fn seed(seed: u64) {
    SEED.set(Some(seed));
}

pub(super) fn random() -> u32 {
    #[cfg(feature = "simulation")]
    if let Some(seed) = SEED.get() {
        // The constants of a 64-bit linear congruential generator, of which the upper half is used.
        let next = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        SEED.set(Some(next));
        return u32::try_from(next >> 32).unwrap_or_default();
    }
    let random = RandomState::new().build_hasher().finish();
    u32::try_from(random >> 32).unwrap_or_default()
}
