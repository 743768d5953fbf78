//! How far down to ask at a time.
//!
//! The newest ids of many authors are read by one scan of the ranges from some id on, the same for all of them: a third of
//! the price of asking for each author's newest so many. From where on is guessed from how densely an average
//! author's ids have been found to lie; a wrong guess costs another question, never truth.

/// So many ids of an average author are asked for at first.
const WANTED_IDS: u64 = 40;
/// What lies below is asked for in steps that make what is known so many times deeper.
const DEPTH_FACTOR: u64 = 4;
/// Doublings or halvings of the width at a time.
const MAX_WIDTH_STEPS: u32 = 4;

/// The density of ids, as it was found so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdDensity {
    /// The greatest id that was seen.
    max_id: u64,
    /// An average author has `WANTED_IDS` ids among 2^bits, about.
    width_bits: u32,
}

impl IdDensity {
    /// Nothing is known but the greatest id.
    pub fn with_max_id(top: u64) -> IdDensity {
        IdDensity {
            max_id: top,
            width_bits: (u64::BITS - top.leading_zeros()).saturating_sub(8),
        }
    }

    fn width(self) -> u64 {
        1 << self.width_bits
    }

    /// Multiples of the width: so authors that were loaded at different times have windows that end at the same ids.
    fn aligned(self, id: u64) -> u64 {
        id >> self.width_bits << self.width_bits
    }

    /// From which id on to ask for what a page at or below `bound` needs of authors of whom all from `with_max_id` on is
    /// known; `None`: nothing is.
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

    /// How many ids of each author a range is expected to hold.
    pub fn expected_ids(self, from: u64, below: Option<u64>) -> u64 {
        let to = below.unwrap_or(self.max_id.saturating_add(1));
        let width = to.saturating_sub(from);
        (width >> self.width_bits)
            .saturating_add(1)
            .saturating_mul(WANTED_IDS)
    }

    /// So many authors had so many ids from `range_start` on, of which the greatest is `newest`.
    pub fn record(&mut self, authors: usize, ids: usize, from: u64, newest: u64) {
        self.max_id = self.max_id.max(newest);
        let range = u128::from(self.max_id.saturating_sub(from)) + 1;
        let wanted = u128::from(WANTED_IDS) * authors as u128 * range;
        let mut found = (ids as u128) << self.width_bits;
        let most = u64::BITS - self.max_id.leading_zeros();
        for _ in 0..MAX_WIDTH_STEPS {
            if found > wanted * 2 && self.width_bits > 0 {
                self.width_bits -= 1;
                found /= 2;
            } else if found * 2 < wanted && self.width_bits < most.min(63) {
                self.width_bits += 1;
                found *= 2;
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
    fn authors_with_few_ids_are_asked_for_from_the_first_one() {
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
