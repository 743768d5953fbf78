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

/// How the next statement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// As the client wrote it, and how long that takes is to be told.
    Measured,
    /// As the client wrote it.
    Direct,
    /// With candidates.
    Narrowed,
}

/// The costs of one template for one crowd.
///
/// The way that is taken is measured all the time, the other one was some time ago, when the server may have had less or more to do. So
/// before the ways are changed, the other one is measured anew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    direct: Mean,
    narrowed: Mean,
    /// The way that is taken; the narrowed one at first.
    takes_direct: bool,
    /// Statements are sent the other way, to be measured. What those took that came back: that way's mean from now on, once they are enough.
    trying: Option<Mean>,
    /// One of them is on its way. The next one is sent behind its answer, since nobody knows how long that takes by now.
    is_tried: bool,
    /// Statements since it was tried last.
    since: u32,
    /// The ways were compared.
    judged: bool,
}

/// One that is tried and does not come back, as its client is gone perhaps, is waited for during so many statements at least.
const LOST: u32 = 1_000;
/// The other way is tried after so many statements at the earliest, and where it seems to cost less.
const SUSPECTED: u32 = 50;
/// Where it seems to cost more, once the statements since it was tried last took so many times as long as trying it does: that costs one
/// part in so many at most, however dear it is. A first one that was slow, since the server was cold, does not decide for long either.
const PAYS: f64 = 30.0;
/// So many statements are looked at before a way is judged.
const ENOUGH: u32 = 3;
/// A way has to be this much cheaper to be taken for it, so that noise does not turn it about.
const MARGIN: f64 = 0.95;
/// Where the direct way is the cheaper one, one statement in so many is measured.
const LOOKED_AT: u32 = 16;

impl Costs {
    /// Which way the next statement goes.
    pub fn choose(&mut self) -> Course {
        self.since = self.since.saturating_add(1);
        // What the server says of its columns is learned from a direct one, so that comes first.
        if self.direct.count == 0 {
            return Course::Measured;
        }
        if self.narrowed.count < ENOUGH && !self.takes_direct {
            return Course::Narrowed;
        }
        let may_try = self.trying.is_none() || self.since >= LOST;
        if may_try && self.is_due() {
            self.since = 0;
            self.trying = Some(Mean::default());
            self.is_tried = false;
        }
        let tries = self.trying.is_some() && !self.is_tried;
        self.is_tried |= tries;
        match (self.takes_direct, tries) {
            (false, false) | (true, true) => Course::Narrowed,
            (false, true) => Course::Measured,
            (true, false) if self.since.is_multiple_of(LOOKED_AT) => Course::Measured,
            (true, false) => Course::Direct,
        }
    }

    /// The mean of each way in microseconds, directly first, once both are known.
    #[must_use]
    pub fn times(&self) -> Option<(f64, f64)> {
        let known = self.direct.count > 0 && self.narrowed.count > 0;
        known.then_some((self.direct.mean, self.narrowed.mean))
    }

    fn is_due(&self) -> bool {
        let (taken, other) = match self.takes_direct {
            true => (&self.direct, &self.narrowed),
            false => (&self.narrowed, &self.direct),
        };
        let seems_better = other.mean < taken.mean * MARGIN;
        let pays = f64::from(self.since) * taken.mean >= PAYS * f64::from(ENOUGH) * other.mean;
        self.since >= SUSPECTED && (seems_better || pays)
    }

    fn other(&mut self) -> &mut Mean {
        match self.takes_direct {
            true => &mut self.narrowed,
            false => &mut self.direct,
        }
    }

    /// A statement took so many microseconds.
    pub fn took(&mut self, way: Way, microseconds: f64) {
        let is_other = (way == Way::Narrowed) == self.takes_direct;
        match (&mut self.trying, way) {
            (Some(trying), _) if is_other => {
                trying.add(microseconds);
                self.is_tried = false;
            }
            (_, Way::Direct) => self.direct.add(microseconds),
            (_, Way::Narrowed) => self.narrowed.add(microseconds),
        }
        if let Some(tried) = self.trying.take_if(|trying| trying.count >= ENOUGH) {
            *self.other() = tried;
            self.judge();
        } else if !self.judged && self.direct.count > 0 && self.narrowed.count >= ENOUGH {
            self.judge();
        }
    }

    fn judge(&mut self) {
        self.judged = true;
        let cheaper = |a: &Mean, b: &Mean| a.mean < b.mean * MARGIN;
        self.takes_direct = match self.takes_direct {
            true => !cheaper(&self.narrowed, &self.direct),
            false => cheaper(&self.direct, &self.narrowed),
        };
    }

    /// A narrowed statement took so many microseconds and came to nothing: it is asked directly behind that.
    pub fn took_in_vain(&mut self, microseconds: f64) {
        self.took(Way::Narrowed, microseconds + self.direct.mean);
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
            match costs.choose() {
                Course::Direct => ways.0 += 1,
                Course::Measured => {
                    ways.0 += 1;
                    costs.took(Way::Direct, direct);
                }
                Course::Narrowed => {
                    ways.1 += 1;
                    costs.took(Way::Narrowed, narrowed);
                }
            }
        }
        ways
    }

    #[test]
    fn the_first_is_direct_and_the_cheaper_way_is_taken() {
        let mut costs = Costs::default();
        assert_eq!(run(&mut costs, 1, 8_000.0, 250.0), (1, 0));
        // Trying the dearer way costs a thirtieth at most: three statements of 8 ms behind 2,880 of 0.25 ms.
        let (direct, _) = run(&mut costs, 2_800, 8_000.0, 250.0);
        assert_eq!(direct, 0);
        let (direct, _) = run(&mut costs, 28_800, 8_000.0, 250.0);
        assert!((27..=30).contains(&direct), "{direct}");
        let mut costs = Costs::default();
        let (_, narrowed) = run(&mut costs, 3_000, 160.0, 250.0);
        assert!((3..=70).contains(&narrowed), "{narrowed}");
    }

    #[test]
    fn a_first_one_that_was_slow_does_not_decide_for_long() {
        let mut costs = Costs::default();
        assert_eq!(costs.choose(), Course::Measured);
        costs.took(Way::Direct, 5_000.0);
        // Half a second.
        let (_, narrowed) = run(&mut costs, 10_000, 160.0, 250.0);
        assert!(narrowed < 2_100, "{narrowed}");
    }

    #[test]
    fn many_that_come_at_a_time_are_not_all_sent_the_other_way() {
        let mut costs = Costs::default();
        run(&mut costs, 100, 8_000.0, 250.0);
        let mut sent = 0;
        for _ in 0..50_000 {
            // Those that go the other way are on their way for good.
            match costs.choose() {
                Course::Narrowed => costs.took(Way::Narrowed, 250.0),
                Course::Measured | Course::Direct => sent += 1,
            }
        }
        assert!((15..=18).contains(&sent), "{sent}");
        assert!(!costs.takes_direct);
        // They come back after all.
        for _ in 0..ENOUGH {
            costs.took(Way::Direct, 100.0);
        }
        assert!(costs.takes_direct);
    }

    #[test]
    fn one_is_tried_at_a_time_even_where_it_seemed_to_cost_less() {
        let mut costs = Costs::default();
        run(&mut costs, 100, 300.0, 250.0);
        // Narrowed ones take longer now, so that the others seem to cost less; but they take for ever.
        let mut sent = 0;
        for _ in 0..9_000 {
            match costs.choose() {
                Course::Narrowed => costs.took(Way::Narrowed, 2_000.0),
                Course::Measured | Course::Direct => sent += 1,
            }
        }
        assert!((1..=10).contains(&sent), "{sent}");
    }

    #[test]
    fn a_way_that_became_cheaper_is_found_again() {
        let mut costs = Costs::default();
        run(&mut costs, 1_000, 160.0, 250.0);
        // The table has grown.
        let (_, narrowed) = run(&mut costs, 10_000, 900.0, 250.0);
        assert!(narrowed > 9_500, "{narrowed}");
        // And was cleaned up.
        let (direct, _) = run(&mut costs, 10_000, 100.0, 250.0);
        assert!(direct > 8_500, "{direct}");
    }

    #[test]
    fn what_comes_to_nothing_costs_the_direct_way_as_well() {
        let mut costs = Costs::default();
        costs.took(Way::Direct, 34_000.0);
        for _ in 0..ENOUGH {
            assert_eq!(costs.choose(), Course::Narrowed);
            costs.took_in_vain(17_000.0);
        }
        assert_eq!(costs.choose(), Course::Direct);
    }

    #[test]
    fn a_busy_server_does_not_turn_the_ways_about() {
        let mut costs = Costs::default();
        // Alone on the server.
        run(&mut costs, 100, 3_600.0, 300.0);
        // With others: both take many times as long.
        let (direct, _) = run(&mut costs, 10_000, 60_000.0, 5_000.0);
        assert!(direct < 50, "{direct}");
        assert!(!costs.takes_direct);
    }

    #[test]
    fn one_that_was_held_up_does_not_decide() {
        let mut costs = Costs::default();
        run(&mut costs, 100, 8_000.0, 250.0);
        costs.took(Way::Narrowed, 1_000_000.0);
        assert_eq!(costs.choose(), Course::Narrowed);
        assert!(!costs.takes_direct);
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
