//! What a template's statements cost, asked directly and narrowed, and how many candidates they need: learned from those that came.
//!
//! A narrowed statement pays for proofs, for candidates that did not suffice and for answers that came too late; all of that counts as
//! its cost. The one that costs less is taken, and the other is tried again now and then, as data and readers change.

/// Readers who follow about as many are planned alike by the server, and cost alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AuthorCountBucket(u8);

impl AuthorCountBucket {
    /// How many kinds there are.
    pub const COUNT: usize = 8;

    /// Of so many authors.
    #[must_use]
    pub fn of(authors: usize) -> AuthorCountBucket {
        AuthorCountBucket(match authors {
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
pub enum StatementPath {
    /// As the client wrote it.
    Direct,
    /// With candidates.
    Narrowed,
}

/// How the next statement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathDecision {
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
pub struct PathCosts {
    direct: RunningMean,
    narrowed: RunningMean,
    /// The way that is taken; the narrowed one at first.
    prefers_direct: bool,
    /// Statements are sent the other way, to be measured. What those took that came back: that way's mean from now on, once they are enough.
    trial: Option<RunningMean>,
    /// One of them is on its way. The next one is sent behind its answer, since nobody knows how long that takes by now.
    is_trial_pending: bool,
    /// Statements since it was tried last.
    statements_since_trial: u32,
    /// The ways were compared.
    compared: bool,
    /// Pages of kept rows, where rows may be kept of such statements: those whom the narrowed way has left rows.
    cached_pages: Option<CachedPageCosts>,
}

/// What the narrowed way gains by rows that it leaves behind.
#[derive(Clone, Debug, PartialEq)]
struct CachedPageCosts {
    page_time: RunningMean,
    /// Of statements on this way, so many were answered by such a page.
    hit_share: f64,
    /// Statements that went directly since the share was found out.
    direct_statements: f64,
}

/// One that is tried and does not come back, as its client is gone perhaps, is waited for during so many statements at least.
const TRIAL_TIMEOUT: u32 = 1_000;
/// The other way is tried after so many statements at the earliest, and where it seems to cost less.
const MIN_TRIAL_INTERVAL: u32 = 50;
/// Where it seems to cost more, once the statements since it was tried last took so many times as long as trying it does: that costs one
/// part in so many at most, however dear it is. A first one that was slow, since the server was cold, does not decide for long either.
const TRIAL_COST_RATIO: f64 = 30.0;
/// So many statements are looked at before a way is judged.
const ENOUGH_SAMPLES: u32 = 3;
/// A way has to be this much cheaper to be taken for it, so that noise does not turn it about.
const SWITCH_MARGIN: f64 = 0.95;
/// Where the direct way is the cheaper one, one statement in so many is measured.
const MEASURE_INTERVAL: u32 = 16;
/// The share of kept pages, as long as nothing is known of it: while rows are kept of none, no page shows what they are worth.
const ASSUMED_HIT_SHARE: f64 = 0.9;
/// One page changes the share by so much: until rows are kept of those who come, most are missing.
const HIT_SHARE_WEIGHT: f64 = 1.0 / 1024.0;
/// What a kept page takes in microseconds, as long as none was made: the proof that memory is up to date.
const ASSUMED_PAGE_MICROS: f64 = 300.0;
/// So many statements find out what the share is, once it is not known any more.
const HIT_SHARE_PROBES: f64 = 1_000.0;
/// So many kept pages are told of at once.
pub const CACHED_PAGE_BATCH: u32 = 16;

impl PathCosts {
    /// Which way the next statement goes.
    pub fn choose(&mut self) -> PathDecision {
        self.statements_since_trial = self.statements_since_trial.saturating_add(1);
        // What the server says of its columns is learned from a direct one, so that comes first.
        if self.direct.count == 0 {
            return PathDecision::Measured;
        }
        if self.narrowed.count < ENOUGH_SAMPLES && !self.prefers_direct {
            return PathDecision::Narrowed;
        }
        self.reset_hit_share();
        let may_try = self.trial.is_none() || self.statements_since_trial >= TRIAL_TIMEOUT;
        if may_try && self.is_trial_due() {
            self.statements_since_trial = 0;
            self.trial = Some(RunningMean::default());
            self.is_trial_pending = false;
        }
        let tries = self.trial.is_some() && !self.is_trial_pending;
        self.is_trial_pending |= tries;
        match (self.prefers_direct, tries) {
            (false, false) | (true, true) => PathDecision::Narrowed,
            (false, true) => PathDecision::Measured,
            (true, false) if self.statements_since_trial.is_multiple_of(MEASURE_INTERVAL) => {
                PathDecision::Measured
            }
            (true, false) => PathDecision::Direct,
        }
    }

    /// The mean of each way in microseconds, directly first, once both are known.
    #[must_use]
    pub fn times(&self) -> Option<(f64, f64)> {
        let known = self.direct.count > 0 && self.narrowed.count > 0;
        known.then_some((self.direct.mean, self.narrowed.mean))
    }

    /// What a statement costs on the narrowed way, be it answered by a page of kept rows or by the server.
    fn narrowed_with_cached(&self) -> f64 {
        let narrowed = self.narrowed.mean;
        let Some(CachedPageCosts {
            page_time: took,
            hit_share: share,
            ..
        }) = &self.cached_pages
        else {
            return narrowed;
        };
        let page = match took.count {
            0 => ASSUMED_PAGE_MICROS.min(narrowed),
            _ => took.mean,
        };
        share * page + (1.0 - share) * narrowed
    }

    /// Goes the narrowed way again to find out how many pages are kept by now, so seldom that it costs one part in [`TRIAL_COST_RATIO`] at most.
    fn reset_hit_share(&mut self) {
        let Some(kept) = self.cached_pages.as_mut().filter(|_| self.prefers_direct) else {
            return;
        };
        kept.direct_statements += 1.0;
        if kept.direct_statements * self.direct.mean
            < TRIAL_COST_RATIO * HIT_SHARE_PROBES * self.narrowed.mean
        {
            return;
        }
        kept.hit_share = ASSUMED_HIT_SHARE;
        kept.direct_statements = 0.0;
        self.compare_paths();
    }

    fn is_trial_due(&self) -> bool {
        let with_kept = self.narrowed_with_cached();
        let (taken, other) = match self.prefers_direct {
            true => (self.direct.mean, with_kept),
            false => (with_kept, self.direct.mean),
        };
        // One that is tried is answered by no kept page.
        let tried = self.other_path_mean();
        let seems_better = other < taken * SWITCH_MARGIN;
        let pays = f64::from(self.statements_since_trial) * taken
            >= TRIAL_COST_RATIO * f64::from(ENOUGH_SAMPLES) * tried;
        self.statements_since_trial >= MIN_TRIAL_INTERVAL && (seems_better || pays)
    }

    fn other_path_mean(&self) -> f64 {
        match self.prefers_direct {
            true => self.narrowed.mean,
            false => self.direct.mean,
        }
    }

    fn other_path(&mut self) -> &mut RunningMean {
        match self.prefers_direct {
            true => &mut self.narrowed,
            false => &mut self.direct,
        }
    }

    /// So many pages of kept rows were made, the last one in so many microseconds.
    pub fn record_cached_pages(&mut self, pages: u32, microseconds: f64) {
        let kept = self.cached_pages.get_or_insert_default();
        kept.page_time.add(microseconds);
        let others = f64::from(pages) * HIT_SHARE_WEIGHT;
        kept.hit_share += (1.0 - kept.hit_share) * others.min(1.0);
    }

    /// A statement goes the narrowed way that would have been answered by a page of kept rows, had all of them been kept.
    pub fn record_cache_miss(&mut self) {
        let kept = self.cached_pages.get_or_insert_default();
        kept.hit_share -= kept.hit_share * HIT_SHARE_WEIGHT;
    }

    /// A statement took so many microseconds.
    pub fn record_time(&mut self, way: StatementPath, microseconds: f64) {
        let is_other = (way == StatementPath::Narrowed) == self.prefers_direct;
        match (&mut self.trial, way) {
            (Some(trying), _) if is_other => {
                trying.add(microseconds);
                self.is_trial_pending = false;
            }
            (_, StatementPath::Direct) => self.direct.add(microseconds),
            (_, StatementPath::Narrowed) => self.narrowed.add(microseconds),
        }
        if let Some(tried) = self.trial.take_if(|trying| trying.count >= ENOUGH_SAMPLES) {
            *self.other_path() = tried;
            self.compare_paths();
        } else if !self.compared && self.direct.count > 0 && self.narrowed.count >= ENOUGH_SAMPLES {
            self.compare_paths();
        }
    }

    fn compare_paths(&mut self) {
        self.compared = true;
        let (direct, narrowed) = (self.direct.mean, self.narrowed_with_cached());
        self.prefers_direct = match self.prefers_direct {
            true => narrowed >= direct * SWITCH_MARGIN,
            false => direct < narrowed * SWITCH_MARGIN,
        };
    }

    /// A narrowed statement took so many microseconds and came to nothing: it is asked directly behind that.
    pub fn record_failed_narrowing(&mut self, microseconds: f64) {
        self.record_time(StatementPath::Narrowed, microseconds + self.direct.mean);
    }
}

impl Default for CachedPageCosts {
    fn default() -> CachedPageCosts {
        CachedPageCosts {
            page_time: RunningMean::default(),
            hit_share: ASSUMED_HIT_SHARE,
            direct_statements: 0.0,
        }
    }
}

/// A mean in which the latest count most.
#[derive(Clone, Debug, Default, PartialEq)]
struct RunningMean {
    mean: f64,
    count: u32,
}

impl RunningMean {
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
pub struct CandidateRatio(f64);

impl Default for CandidateRatio {
    /// Nothing was filtered yet.
    fn default() -> Self {
        CandidateRatio(1.0)
    }
}

/// Each time that candidates did not suffice, there are so many times as many at once.
pub const WIDENING_FACTOR: usize = 4;
/// Behind a full page, the need is taken to be so many times as great.
const RATIO_DECAY: f64 = 0.99;
/// Where candidates did not suffice, at least so many times as great, and at most.
const RATIO_GROWTH: (f64, f64) = (1.2, 4.0);
/// More candidates are never taken for a row.
const MOST_CANDIDATES_PER_ROW: f64 = 10_000.0;

impl CandidateRatio {
    /// The candidates sufficed, and there were more messages behind them.
    pub fn record_sufficient(&mut self) {
        self.0 = (self.0 * RATIO_DECAY).max(1.0);
    }

    /// Of so many candidates so many passed, which did not suffice.
    pub fn record_shortfall(&mut self, candidates: usize, passed: usize) {
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let seen = candidates as f64 / passed.max(1) as f64;
        let (least, most) = (self.0 * RATIO_GROWTH.0, self.0 * RATIO_GROWTH.1);
        self.0 = seen.clamp(least, most).min(MOST_CANDIDATES_PER_ROW);
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
    fn run(costs: &mut PathCosts, statements: u32, direct: f64, narrowed: f64) -> (u32, u32) {
        let mut ways = (0, 0);
        for _ in 0..statements {
            match costs.choose() {
                PathDecision::Direct => ways.0 += 1,
                PathDecision::Measured => {
                    ways.0 += 1;
                    costs.record_time(StatementPath::Direct, direct);
                }
                PathDecision::Narrowed => {
                    ways.1 += 1;
                    costs.record_time(StatementPath::Narrowed, narrowed);
                }
            }
        }
        ways
    }

    #[test]
    fn the_first_is_direct_and_the_cheaper_way_is_taken() {
        let mut costs = PathCosts::default();
        assert_eq!(run(&mut costs, 1, 8_000.0, 250.0), (1, 0));
        // Trying the dearer way costs a thirtieth at most: three statements of 8 ms behind 2,880 of 0.25 ms.
        let (direct, _) = run(&mut costs, 2_800, 8_000.0, 250.0);
        assert_eq!(direct, 0);
        let (direct, _) = run(&mut costs, 28_800, 8_000.0, 250.0);
        assert!((27..=30).contains(&direct), "{direct}");
        let mut costs = PathCosts::default();
        let (_, narrowed) = run(&mut costs, 3_000, 160.0, 250.0);
        assert!((3..=70).contains(&narrowed), "{narrowed}");
    }

    #[test]
    fn a_first_one_that_was_slow_does_not_decide_for_long() {
        let mut costs = PathCosts::default();
        assert_eq!(costs.choose(), PathDecision::Measured);
        costs.record_time(StatementPath::Direct, 5_000.0);
        // Half a second.
        let (_, narrowed) = run(&mut costs, 10_000, 160.0, 250.0);
        assert!(narrowed < 2_100, "{narrowed}");
    }

    /// Runs statements that take so long, where rows may be kept: of so many in a hundred all are there, once the narrowed way is taken.
    fn run_kept(costs: &mut PathCosts, statements: u32, times: [f64; 3], share: u32) -> (u32, u32) {
        let [direct, narrowed, kept] = times;
        let mut ways = (0, 0);
        for number in 0..statements {
            if !costs.prefers_direct && number % 100 < share {
                costs.record_cached_pages(1, kept);
                continue;
            }
            let (direct_ones, narrowed_ones) = match costs.choose() {
                PathDecision::Direct => (1, 0),
                PathDecision::Measured => {
                    costs.record_time(StatementPath::Direct, direct);
                    (1, 0)
                }
                PathDecision::Narrowed => {
                    costs.record_cache_miss();
                    costs.record_time(StatementPath::Narrowed, narrowed);
                    (0, 1)
                }
            };
            ways = (ways.0 + direct_ones, ways.1 + narrowed_ones);
        }
        ways
    }

    #[test]
    fn what_a_kept_page_costs_counts_for_the_way_that_keeps_rows() {
        // A narrowed one is dearer, and most pages need none.
        let mut costs = PathCosts::default();
        run_kept(&mut costs, 1_000, [5_000.0, 6_000.0, 300.0], 0);
        assert!(!costs.prefers_direct, "nothing is kept yet");
        let (direct, _) = run_kept(&mut costs, 50_000, [5_000.0, 6_000.0, 300.0], 90);
        assert!(direct < 200, "{direct}");
        // A busy moment turns nothing about, and another one later does not either.
        run_kept(&mut costs, 3_000, [50_000.0, 80_000.0, 400.0], 90);
        let (direct, _) = run_kept(&mut costs, 20_000, [5_000.0, 6_000.0, 300.0], 90);
        assert!(direct < 200 && !costs.prefers_direct, "{direct}");
    }

    #[test]
    fn where_no_page_is_kept_the_cheaper_way_is_taken_all_the_same() {
        let mut costs = PathCosts::default();
        let times = [5_000.0, 6_000.0, 300.0];
        let (_, narrowed) = run_kept(&mut costs, 100_000, times, 0);
        assert!((1_000..9_000).contains(&narrowed), "{narrowed}");
        assert!(costs.prefers_direct);
        // They are kept from now on.
        run_kept(&mut costs, 100_000, times, 90);
        assert!(!costs.prefers_direct);
        // One that takes no longer than a kept page is cheap enough.
        let mut costs = PathCosts::default();
        let (_, narrowed) = run_kept(&mut costs, 10_000, [200.0, 300.0, 300.0], 90);
        assert!(narrowed < 400, "{narrowed}");
    }

    #[test]
    fn many_that_come_at_a_time_are_not_all_sent_the_other_way() {
        let mut costs = PathCosts::default();
        run(&mut costs, 100, 8_000.0, 250.0);
        let mut sent = 0;
        for _ in 0..50_000 {
            // Those that go the other way are on their way for good.
            match costs.choose() {
                PathDecision::Narrowed => costs.record_time(StatementPath::Narrowed, 250.0),
                PathDecision::Measured | PathDecision::Direct => sent += 1,
            }
        }
        assert!((15..=18).contains(&sent), "{sent}");
        assert!(!costs.prefers_direct);
        // They come back after all.
        for _ in 0..ENOUGH_SAMPLES {
            costs.record_time(StatementPath::Direct, 100.0);
        }
        assert!(costs.prefers_direct);
    }

    #[test]
    fn one_is_tried_at_a_time_even_where_it_seemed_to_cost_less() {
        let mut costs = PathCosts::default();
        run(&mut costs, 100, 300.0, 250.0);
        // Narrowed ones take longer now, so that the others seem to cost less; but they take for ever.
        let mut sent = 0;
        for _ in 0..9_000 {
            match costs.choose() {
                PathDecision::Narrowed => costs.record_time(StatementPath::Narrowed, 2_000.0),
                PathDecision::Measured | PathDecision::Direct => sent += 1,
            }
        }
        assert!((1..=10).contains(&sent), "{sent}");
    }

    #[test]
    fn a_way_that_became_cheaper_is_found_again() {
        let mut costs = PathCosts::default();
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
        let mut costs = PathCosts::default();
        costs.record_time(StatementPath::Direct, 34_000.0);
        for _ in 0..ENOUGH_SAMPLES {
            assert_eq!(costs.choose(), PathDecision::Narrowed);
            costs.record_failed_narrowing(17_000.0);
        }
        assert_eq!(costs.choose(), PathDecision::Direct);
    }

    #[test]
    fn a_busy_server_does_not_turn_the_ways_about() {
        let mut costs = PathCosts::default();
        // Alone on the server.
        run(&mut costs, 100, 3_600.0, 300.0);
        // With others: both take many times as long.
        let (direct, _) = run(&mut costs, 10_000, 60_000.0, 5_000.0);
        assert!(direct < 50, "{direct}");
        assert!(!costs.prefers_direct);
    }

    #[test]
    fn one_that_was_held_up_does_not_decide() {
        let mut costs = PathCosts::default();
        run(&mut costs, 100, 8_000.0, 250.0);
        costs.record_time(StatementPath::Narrowed, 1_000_000.0);
        assert_eq!(costs.choose(), PathDecision::Narrowed);
        assert!(!costs.prefers_direct);
    }

    /// Asks for pages of 20 rows where each message passes by a chance: how often that is done twice, and the candidates at the end.
    fn pages(need: &mut CandidateRatio, pages: u32, passes: impl Fn(u32) -> bool) -> (u32, usize) {
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
                need.record_shortfall(candidates, passed);
            } else {
                need.record_sufficient();
            }
        }
        (short, need.candidates(20, 4_000))
    }

    #[test]
    fn candidates_are_as_many_as_the_filter_needs() {
        let mut need = CandidateRatio::default();
        assert_eq!(need.candidates(20, 1_000), 20);
        assert_eq!(need.candidates(1, 1_000), 2);
        // Without a filter they stay as many as rows are wanted.
        assert_eq!(pages(&mut need, 1_000, |_| true), (0, 20));
        // Four of five pass.
        let (short, candidates) = pages(&mut CandidateRatio::default(), 2_000, |chance| {
            chance % 5 != 0
        });
        assert!(
            short < 200 && (25..45).contains(&candidates),
            "{short} {candidates}"
        );
        // One of fifty.
        let (short, candidates) = pages(&mut CandidateRatio::default(), 2_000, |chance| {
            chance % 50 == 0
        });
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
            assert_eq!(AuthorCountBucket::of(count).number(), number);
        }
        assert_eq!(AuthorCountBucket::COUNT, counts.len());
    }
}
