//! Chooses how far down a query reads.
//!
//! The newest ids of many authors are read by one scan of ranges that begin at the same id: a third of the cost of
//! querying each author's newest ids. That id is guessed from how densely an average author's ids have lain so far.
//! A wrong guess costs another query, never a wrong answer.

/// Ids of an average author that the first query is meant to return.
const WANTED_IDS: u64 = 40;
/// Each further query extends the known depth by this factor.
const DEPTH_FACTOR: u64 = 4;
/// Maximum doublings or halvings of the width at a time.
const MAX_WIDTH_STEPS: u32 = 4;

/// The density of ids, as measured so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdDensity {
    /// The greatest id read.
    max_id: u64,
    /// An average author has `WANTED_IDS` ids within about 2^bits.
    width_bits: u32,
}

impl IdDensity {
    /// Starts with only the greatest id known.
    pub fn with_max_id(top: u64) -> IdDensity {
        IdDensity {
            max_id: top,
            width_bits: (u64::BITS - top.leading_zeros()).saturating_sub(8),
        }
    }

    fn width(self) -> u64 {
        1 << self.width_bits
    }

    /// Rounds down to a multiple of the width, so that authors loaded at different times have windows that end at the same ids.
    fn aligned(self, id: u64) -> u64 {
        id >> self.width_bits << self.width_bits
    }

    /// The first id to query for a page at or below `bound`, of authors whose ids from `below` on are known; `None`: none are.
    pub fn range_start(self, below: Option<u64>, bound: Option<u64>) -> u64 {
        let depth = match below {
            None => self.width(),
            Some(below) => {
                let known = self.max_id.saturating_sub(below).max(self.width());
                known.saturating_mul(DEPTH_FACTOR)
            }
        };
        let from = self.max_id.saturating_sub(depth);
        let from = match bound {
            Some(bound) => from.min(bound.saturating_sub(self.width())),
            None => from,
        };
        self.aligned(below.map_or(from, |below| from.min(below.saturating_sub(1))))
    }

    /// The number of ids of each author expected in a range.
    pub fn expected_ids(self, from: u64, below: Option<u64>) -> u64 {
        let to = below.unwrap_or(self.max_id.saturating_add(1));
        let width = to.saturating_sub(from);
        (width >> self.width_bits)
            .saturating_add(1)
            .saturating_mul(WANTED_IDS)
    }

    /// Adjusts the width: `authors` had `ids` ids from `from` on, of which the greatest is `newest`.
    pub fn record(&mut self, authors: usize, ids: usize, from: u64, newest: u64) {
        self.max_id = self.max_id.max(newest);
        let range = u128::from(self.max_id.saturating_sub(from)) + 1;
        let wanted = u128::from(WANTED_IDS) * authors as u128 * range;
        let mut scaled_ids = (ids as u128) << self.width_bits;
        let most = u64::BITS - self.max_id.leading_zeros();
        for _ in 0..MAX_WIDTH_STEPS {
            if scaled_ids > wanted * 2 && self.width_bits > 0 {
                self.width_bits -= 1;
                scaled_ids /= 2;
            } else if scaled_ids * 2 < wanted && self.width_bits < most.min(63) {
                self.width_bits += 1;
                scaled_ids *= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids up to `max_id`, of authors who have every `every`-th each.
    fn learned(top: u64, every: u64) -> IdDensity {
        let mut spans = IdDensity::with_max_id(top);
        for _ in 0..20 {
            let from = spans.range_start(None, None);
            let ids = usize::try_from((top - from + 1) / every * 10).unwrap_or(usize::MAX);
            spans.record(10, ids, from, top);
        }
        spans
    }

    #[test]
    fn an_average_author_has_about_as_many_ids_as_are_wanted_in_the_first_range() {
        for (top, every) in [
            (1 << 20, 10_000),
            (20_000_000, 10_000),
            (1 << 62, 1 << 40),
            (1 << 30, 1),
        ] {
            let spans = learned(top, every);
            let ids = (top - spans.range_start(None, None)) / every;
            assert!(
                (WANTED_IDS / 2..=WANTED_IDS * 4).contains(&ids),
                "{top} {every}: {ids}"
            );
        }
    }

    #[test]
    fn authors_with_few_ids_are_queried_from_the_first_one() {
        assert_eq!(learned(1_000, 500).range_start(None, None), 0);
        assert_eq!(IdDensity::with_max_id(0).range_start(None, None), 0);
    }

    #[test]
    fn a_range_is_never_empty_and_ends_at_the_first_id_soon() {
        for top in [0, 1, 1_000_000, u64::MAX] {
            let mut spans = learned(top, 100);
            let (mut below, mut steps) = (None, 0);
            while below != Some(0) {
                let from = spans.range_start(below, None);
                assert!(below.is_none_or(|below| from < below));
                assert!(spans.expected_ids(from, below) > 0);
                spans.record(3, 0, from, 0);
                below = Some(from);
                steps += 1;
            }
            assert!(steps <= 34, "{top}: {steps}");
        }
    }

    #[test]
    fn a_bound_is_reached_at_once() {
        let spans = learned(1_000_000, 10_000);
        assert!(spans.range_start(None, Some(70_000)) < 70_000);
        assert_eq!(spans.range_start(Some(600_000), Some(3)), 0);
    }
}
