//! Random numbers that are the same everywhere: PCG-64, and integer arithmetic on it.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::RandomStream;

#[derive(Debug, Clone)]
pub(super) struct SeededRandom(Pcg64);

impl SeededRandom {
    pub(super) fn new(seed: u64, purpose: RandomStream) -> SeededRandom {
        SeededRandom(Pcg64::new(u128::from(seed), purpose as u128))
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..limit`, by the high half of a product; 0 when `limit` is 0. The bias is
    /// below `limit / 2^64`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(limit);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// The ranks `0..users` in random order.
    pub(super) fn permutation(&mut self, users: u32) -> Vec<u32> {
        let mut ranks: Vec<u32> = (0..users).collect();
        for last in (1..ranks.len()).rev() {
            let other = self.below(last as u64 + 1);
            ranks.swap(last, usize::try_from(other).unwrap_or_default());
        }
        ranks
    }

    /// Ranks in nearly the order of `ranks`: each is moved by a random distance, up to `share`
    /// of their number, and then they are numbered anew.
    pub(super) fn shuffled_by(&mut self, ranks: &[u32], share: f64) -> Vec<u32> {
        // A distance within a u32's range, as `share` is below one.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let distance = (ranks.len() as f64 * share) as u64;
        let mut moved: Vec<(u64, usize)> = ranks
            .iter()
            .enumerate()
            .map(|(user, &rank)| (u64::from(rank) + self.below(distance + 1), user))
            .collect();
        moved.sort_unstable();
        let mut renumbered = vec![0; ranks.len()];
        for ((_, user), rank) in moved.into_iter().zip(0..) {
            if let Some(slot) = renumbered.get_mut(user) {
                *slot = rank;
            }
        }
        renumbered
    }
}
