//! What a template's statements cost, asked directly and narrowed, and how many candidates they need: learned from those that came.
//!
//! A narrowed statement pays for proofs, for candidates that did not suffice and for answers that came too late; all of that counts as
//! its cost. The one that costs less is taken, and the other is tried again now and then, as data and readers change.

/// Readers who follow about as many are planned alike by the server, and cost alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Crowd(u8);

impl Crowd {
    /// How many kinds there are.
    pub const COUNT: usize = 8;

    /// Of so many authors.
    #[must_use]
    pub fn of(authors: usize) -> Crowd {
        Crowd(match authors {
            0 => 0,
            1 => 1,
            2..=9 => 2,
            10..=49 => 3,
            50..=199 => 4,
            200..=999 => 5,
            1_000..=4_999 => 6,
            _ => 7,
        })
    }

    /// Its number, below [`Self::COUNT`].
    #[must_use]
    pub fn number(self) -> usize {
        usize::from(self.0)
    }
}

/// Which way a statement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As the client wrote it.
    Direct,
    /// With candidates.
    Narrowed,
}

/// The costs of one template for one crowd.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    direct: Mean,
    narrowed: Mean,
    /// Statements since the dearer way was taken last.
    since: u32,
}

/// The dearer way is taken for one statement in so many.
const TRIED: u32 = 1_000;
/// So many statements are looked at before a way is judged.
const ENOUGH: u32 = 3;
/// A way has to be this much cheaper to be taken for it, so that noise does not turn it about.
const MARGIN: f64 = 0.95;

impl Costs {
    /// Which way the next statement goes.
    pub fn choose(&mut self) -> Way {
        self.since = self.since.saturating_add(1);
        // What the server says of its columns is learned from a direct one, so that comes first.
        if self.direct.count == 0 {
            return Way::Direct;
        }
        if self.narrowed.count < ENOUGH {
            return Way::Narrowed;
        }
        let better = self.better();
        if self.since < TRIED {
            return better;
        }
        self.since = 0;
        match better {
            Way::Direct => Way::Narrowed,
            Way::Narrowed => Way::Direct,
        }
    }

    /// The way that costs less, as far as is known.
    #[must_use]
    pub fn better(&self) -> Way {
        match self.narrowed.mean < self.direct.mean * MARGIN {
            true => Way::Narrowed,
            false => Way::Direct,
        }
    }

    /// A statement took so many microseconds.
    pub fn took(&mut self, way: Way, microseconds: f64) {
        match way {
            Way::Direct => self.direct.add(microseconds),
            Way::Narrowed => self.narrowed.add(microseconds),
        }
    }

    /// How many times as long the direct way takes, where both are known.
    #[must_use]
    pub fn gain(&self) -> Option<f64> {
        let known = self.direct.count > 0 && self.narrowed.count > 0;
        known.then(|| self.direct.mean / self.narrowed.mean.max(1.0))
    }
}

/// A mean in which the latest count most.
#[derive(Clone, Debug, Default, PartialEq)]
struct Mean {
    mean: f64,
    count: u32,
}

impl Mean {
    const WEIGHT: f64 = 1.0 / 16.0;

    fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        let weight = (1.0 / f64::from(self.count)).max(Self::WEIGHT);
        // One that was held up by something else shall not decide for long.
        let value = match self.count > 1 {
            true => value.min(self.mean * 8.0),
            false => value,
        };
        self.mean += (value - self.mean) * weight;
    }
}

/// How many candidates a template needs for each row that is wanted, as its filter lets some of them pass.
///
/// A page that is full tells nothing of how many more would have passed, so the number falls a little with each, and rises where
/// candidates did not suffice: it comes to rest where one statement in some twenty asks twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need(f64);

impl Default for Need {
    /// Nothing was filtered yet.
    fn default() -> Self {
        Need(1.0)
    }
}

/// Each time that candidates did not suffice, there are so many times as many at once.
pub const WIDER: usize = 4;
/// Behind a full page, the need is taken to be so many times as great.
const FALLS: f64 = 0.99;
/// Where candidates did not suffice, at least so many times as great, and at most.
const RISES: (f64, f64) = (1.2, 4.0);
/// More candidates are never taken for a row.
const MOST_FOR_A_ROW: f64 = 10_000.0;

impl Need {
    /// The candidates sufficed, and there were more messages behind them.
    pub fn sufficed(&mut self) {
        self.0 = (self.0 * FALLS).max(1.0);
    }

    /// Of so many candidates so many passed, which did not suffice.
    pub fn fell_short(&mut self, candidates: usize, passed: usize) {
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let seen = candidates as f64 / passed.max(1) as f64;
        let (least, most) = (self.0 * RISES.0, self.0 * RISES.1);
        self.0 = seen.clamp(least, most).min(MOST_FOR_A_ROW);
    }

    /// How many candidates to take for so many rows: `most` at most.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a guess, bounded below and above"
    )]
    pub fn candidates(self, rows: usize, most: usize) -> usize {
        let wanted = rows as f64 * self.0;
        (wanted.ceil().min(most as f64) as usize)
            .max(rows.min(most))
            .max(2)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)]
mod tests {
    use super::*;

    /// Runs statements that take so long, and counts which way they went.
    fn run(costs: &mut Costs, statements: u32, direct: f64, narrowed: f64) -> (u32, u32) {
        let mut ways = (0, 0);
        for _ in 0..statements {
            let way = costs.choose();
            match way {
                Way::Direct => ways.0 += 1,
                Way::Narrowed => ways.1 += 1,
            }
            costs.took(way, if way == Way::Direct { direct } else { narrowed });
        }
        ways
    }

    #[test]
    fn the_first_is_direct_and_the_cheaper_way_is_taken() {
        let mut costs = Costs::default();
        assert_eq!(run(&mut costs, 1, 8_000.0, 250.0), (1, 0));
        // One in a thousand goes the dearer way.
        assert_eq!(run(&mut costs, 2_000, 8_000.0, 250.0), (2, 1_998));
        let mut costs = Costs::default();
        let (direct, narrowed) = run(&mut costs, 2_000, 160.0, 250.0);
        assert!(narrowed <= 5 && direct >= 1_995, "{direct} {narrowed}");
    }

    #[test]
    fn a_way_that_became_cheaper_is_found_again() {
        let mut costs = Costs::default();
        run(&mut costs, 1_000, 160.0, 250.0);
        // The table has grown.
        let (_, narrowed) = run(&mut costs, 100_000, 900.0, 250.0);
        assert!(narrowed > 90_000, "{narrowed}");
    }

    #[test]
    fn one_that_was_held_up_does_not_decide() {
        let mut costs = Costs::default();
        run(&mut costs, 100, 8_000.0, 250.0);
        costs.took(Way::Narrowed, 1_000_000.0);
        assert_eq!(costs.choose(), Way::Narrowed);
    }

    /// Asks for pages of 20 rows where each message passes by a chance: how often that is done twice, and the candidates at the end.
    fn pages(need: &mut Need, pages: u32, passes: impl Fn(u32) -> bool) -> (u32, usize) {
        let (mut short, mut seen) = (0, 0_u32);
        for _ in 0..pages {
            let candidates = need.candidates(20, 4_000);
            let passed = (0..candidates).filter(|_| {
                seen = seen.wrapping_add(1);
                passes(seen.wrapping_mul(0x9e37_79b1) >> 8)
            });
            let passed = passed.count();
            if passed < 20 {
                short += 1;
                need.fell_short(candidates, passed);
            } else {
                need.sufficed();
            }
        }
        (short, need.candidates(20, 4_000))
    }

    #[test]
    fn candidates_are_as_many_as_the_filter_needs() {
        let mut need = Need::default();
        assert_eq!(need.candidates(20, 1_000), 20);
        assert_eq!(need.candidates(1, 1_000), 2);
        // Without a filter they stay as many as rows are wanted.
        assert_eq!(pages(&mut need, 1_000, |_| true), (0, 20));
        // Four of five pass.
        let (short, candidates) = pages(&mut Need::default(), 2_000, |chance| chance % 5 != 0);
        assert!(
            short < 200 && (25..45).contains(&candidates),
            "{short} {candidates}"
        );
        // One of fifty.
        let (short, candidates) = pages(&mut Need::default(), 2_000, |chance| chance % 50 == 0);
        assert!(
            short < 300 && (1_000..2_500).contains(&candidates),
            "{short} {candidates}"
        );
        // None.
        let (short, candidates) = pages(&mut need, 100, |_| false);
        assert_eq!((short, candidates), (100, 4_000));
        // And then all again.
        let (_, candidates) = pages(&mut need, 2_000, |_| true);
        assert_eq!(candidates, 20);
    }

    #[test]
    fn crowds_are_numbered_as_they_grow() {
        let counts = [0, 1, 2, 10, 50, 200, 1_000, 5_000];
        for (number, count) in counts.into_iter().enumerate() {
            assert_eq!(Crowd::of(count).number(), number);
        }
        assert_eq!(Crowd::COUNT, counts.len());
    }
}
