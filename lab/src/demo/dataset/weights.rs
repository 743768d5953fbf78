//! The inequality of users, and weighted draws.

use super::random::SeededRandom;

/// The weight of the user at rank r of n is `(r / n + offset) ^ -exponent`: a power law whose head
/// is bent by `offset`, so that the first does not tower over all. The last `silent` share has 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightSkew {
    pub(super) exponent: f64,
    pub(super) offset: f64,
    pub(super) silent: f64,
}

impl WeightSkew {
    /// By user, given the rank of each.
    pub(super) fn weights(&self, ranks: &[u32]) -> WeightSums {
        let users = ranks.len().max(1) as f64;
        let weight = |&rank: &u32| {
            let relative_rank = f64::from(rank) / users;
            if rank > 0 && relative_rank >= 1.0 - self.silent {
                return 0;
            }
            // In whole millionths, so that nothing after this depends on how floats are rounded.
            // Between 10^5 and 10^10.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let millionths =
                (1e6 * (relative_rank + self.offset).powf(-self.exponent)).round() as u64;
            millionths
        };
        let sums = ranks.iter().map(weight).scan(0_u64, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        WeightSums {
            sums: sums.collect(),
        }
    }
}

/// Running sums of weights; users count from 0 here.
#[derive(Debug)]
pub(super) struct WeightSums {
    sums: Vec<u64>,
}

impl WeightSums {
    /// A user, drawn by weight; `None` if there are none.
    pub(super) fn draw(&self, random: &mut SeededRandom) -> Option<u32> {
        let point = random.below(*self.sums.last()?);
        u32::try_from(self.sums.partition_point(|&sum| sum <= point)).ok()
    }

    /// The sum of the shares of all users up to and including `user`, of a `total` that is divided by weight.
    pub(super) fn share_up_to(&self, user: u32, total: u64) -> u64 {
        let sum = usize::try_from(user)
            .ok()
            .and_then(|user| self.sums.get(user));
        match (sum, self.sums.last()) {
            (Some(&sum), Some(&all)) if all > 0 => {
                let share = u128::from(total) * u128::from(sum) / u128::from(all);
                u64::try_from(share).unwrap_or(total)
            }
            _ => 0,
        }
    }
}
