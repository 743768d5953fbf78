//! Costs of a template's statements, direct and narrowed, and the candidates that they need, measured on earlier statements.
//!
//! The cost of a narrowed statement includes proofs, candidates that did not suffice, and replies that came too late. The cheaper path is
//! taken. The other is tried again now and then, because data and readers change.

/// A range of author counts: the server plans its readers' statements alike, at about the same cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AuthorCountBucket(u8);

impl AuthorCountBucket {
    /// The number of buckets.
    pub const COUNT: usize = 8;

    /// The bucket of a number of authors.
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

    /// Its index, below [`Self::COUNT`].
    #[must_use]
    pub fn number(self) -> usize {
        usize::from(self.0)
    }
}

/// The path of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementPath {
    /// The client's text.
    Direct,
    /// The text narrowed to candidates.
    Narrowed,
}

/// The path of the next statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathDecision {
    /// The client's text; its time has to be recorded.
    Measured,
    /// The client's text.
    Direct,
    /// The text narrowed to candidates.
    Narrowed,
}

/// The costs of one template for one author-count bucket.
///
/// The path in use is measured all the time. The other was measured some time ago, perhaps under another load. So it is measured anew
/// before a switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathCosts {
    direct: RunningMean,
    narrowed: RunningMean,
    /// The path in use; the narrowed one at first.
    prefers_direct: bool,
    /// Statements on the other path, to measure it. Once there are enough replies, their mean becomes that path's mean.
    trial: Option<RunningMean>,
    /// A trial statement is in flight. The next one waits for its reply, because its cost is not known by now.
    is_trial_pending: bool,
    statements_since_trial: u32,
    compared: bool,
    /// Costs of cached pages, where the narrowed path fills the cache.
    cached_pages: Option<CachedPageCosts>,
}

/// What the narrowed path gains by the rows that it caches.
#[derive(Clone, Debug, PartialEq)]
struct CachedPageCosts {
    page_time: RunningMean,
    /// The share of this path's statements that a cached page answered.
    hit_share: f64,
    /// Direct statements since the share was last measured.
    direct_statements: f64,
}

/// The next trial waits at least so many statements for a reply that does not come, perhaps because the client is gone.
const TRIAL_TIMEOUT: u32 = 1_000;
/// Least number of statements between trials, where the other path seems cheaper.
const MIN_TRIAL_INTERVAL: u32 = 50;
/// Where the other path seems dearer, a trial is due once the statements since the last one took so many times its cost. So trials cost one
/// part in so many at most, and a first statement that was slow on a cold server does not decide for long.
const TRIAL_COST_RATIO: f64 = 30.0;
/// Samples that a judgement of a path needs.
const ENOUGH_SAMPLES: u32 = 3;
/// How much cheaper a path must be for a switch, so that noise causes none.
const SWITCH_MARGIN: f64 = 0.95;
/// On the direct path, one statement in so many is measured.
const MEASURE_INTERVAL: u32 = 16;
/// Assumed share of cached pages while it is unknown: as long as no rows are cached, no page shows what they are worth.
const ASSUMED_HIT_SHARE: f64 = 0.9;
/// Weight of one page in the share: until the current readers' rows are cached, most pages miss.
const HIT_SHARE_WEIGHT: f64 = 1.0 / 1024.0;
/// Assumed microseconds of a cached page until one is measured: those of the proof that memory is up to date.
const ASSUMED_PAGE_MICROS: f64 = 300.0;
/// So many statements measure the share again, once it is unknown.
const HIT_SHARE_PROBES: f64 = 1_000.0;
/// So many cached pages are reported at once.
pub const CACHED_PAGE_BATCH: u32 = 16;

impl PathCosts {
    /// Chooses the path of the next statement.
    pub fn choose(&mut self) -> PathDecision {
        self.statements_since_trial = self.statements_since_trial.saturating_add(1);
        // A direct reply comes first: it is the sample of the columns' metadata.
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

    /// The mean microseconds of the direct and of the narrowed path. `None`: one is unknown.
    #[must_use]
    pub fn times(&self) -> Option<(f64, f64)> {
        let known = self.direct.count > 0 && self.narrowed.count > 0;
        known.then_some((self.direct.mean, self.narrowed.mean))
    }

    /// The mean cost of the narrowed path, including statements that cached pages answer.
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

    /// Takes the narrowed path again to measure the share of cached pages, at one part in [`TRIAL_COST_RATIO`] of the cost at most.
    fn reset_hit_share(&mut self) {
        let Some(costs) = self.cached_pages.as_mut().filter(|_| self.prefers_direct) else {
            return;
        };
        costs.direct_statements += 1.0;
        if costs.direct_statements * self.direct.mean
            < TRIAL_COST_RATIO * HIT_SHARE_PROBES * self.narrowed.mean
        {
            return;
        }
        costs.hit_share = ASSUMED_HIT_SHARE;
        costs.direct_statements = 0.0;
        self.compare_paths();
    }

    fn is_trial_due(&self) -> bool {
        let with_cached = self.narrowed_with_cached();
        let (taken, other) = match self.prefers_direct {
            true => (self.direct.mean, with_cached),
            false => (with_cached, self.direct.mean),
        };
        // No cached page answers a trial.
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

    /// Records cached pages; the last one took so many microseconds.
    pub fn record_cached_pages(&mut self, pages: u32, microseconds: f64) {
        let costs = self.cached_pages.get_or_insert_default();
        costs.page_time.add(microseconds);
        let others = f64::from(pages) * HIT_SHARE_WEIGHT;
        costs.hit_share += (1.0 - costs.hit_share) * others.min(1.0);
    }

    /// Records a narrowed statement that a cached page would have answered, had all its rows been cached.
    pub fn record_cache_miss(&mut self) {
        let costs = self.cached_pages.get_or_insert_default();
        costs.hit_share -= costs.hit_share * HIT_SHARE_WEIGHT;
    }

    /// Records a statement's time in microseconds.
    pub fn record_time(&mut self, path: StatementPath, microseconds: f64) {
        let is_other = (path == StatementPath::Narrowed) == self.prefers_direct;
        match (&mut self.trial, path) {
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

    /// Records a narrowed statement that failed after so many microseconds. The direct one follows it.
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

/// A mean in which the latest values weigh most.
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
        // One value that something else delayed must not decide for long.
        let value = match self.count > 1 {
            true => value.min(self.mean * 8.0),
            false => value,
        };
        self.mean += (value - self.mean) * weight;
    }
}

/// How many candidates a template needs per requested row, because its filter lets only some of them pass.
///
/// A full page does not show how many more would have passed. So the ratio falls a little with each, and rises where candidates did not
/// suffice. It settles where about one statement in twenty is sent twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateRatio(f64);

impl Default for CandidateRatio {
    /// Nothing was filtered yet.
    fn default() -> Self {
        CandidateRatio(1.0)
    }
}

/// The number of candidates grows by this factor each time that they did not suffice.
pub const WIDENING_FACTOR: usize = 4;
/// Factor of the ratio after a full page.
const RATIO_DECAY: f64 = 0.99;
/// Least and greatest factor of the ratio after a shortfall.
const RATIO_GROWTH: (f64, f64) = (1.2, 4.0);
/// Most candidates per row.
const MOST_CANDIDATES_PER_ROW: f64 = 10_000.0;

impl CandidateRatio {
    /// The candidates sufficed, and more messages follow them.
    pub fn record_sufficient(&mut self) {
        self.0 = (self.0 * RATIO_DECAY).max(1.0);
    }

    /// Too few of the candidates passed.
    pub fn record_shortfall(&mut self, candidates: usize, passed: usize) {
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let ratio = candidates as f64 / passed.max(1) as f64;
        let (least, most) = (self.0 * RATIO_GROWTH.0, self.0 * RATIO_GROWTH.1);
        self.0 = ratio.clamp(least, most).min(MOST_CANDIDATES_PER_ROW);
    }

    /// The number of candidates for so many rows, at most `most`.
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

    /// Runs statements with these times, and counts the paths taken.
    fn run(costs: &mut PathCosts, statements: u32, direct: f64, narrowed: f64) -> (u32, u32) {
        let mut taken = (0, 0);
        for _ in 0..statements {
            match costs.choose() {
                PathDecision::Direct => taken.0 += 1,
                PathDecision::Measured => {
                    taken.0 += 1;
                    costs.record_time(StatementPath::Direct, direct);
                }
                PathDecision::Narrowed => {
                    taken.1 += 1;
                    costs.record_time(StatementPath::Narrowed, narrowed);
                }
            }
        }
        taken
    }

    #[test]
    fn the_first_is_direct_and_the_cheaper_path_is_taken() {
        let mut costs = PathCosts::default();
        assert_eq!(run(&mut costs, 1, 8_000.0, 250.0), (1, 0));
        // Trials of the dearer path cost a thirtieth at most: three statements of 8 ms after 2,880 of 0.25 ms.
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

    /// The same with a row cache: on the narrowed path, cached pages answer `share` of a hundred statements.
    fn run_with_cache(
        costs: &mut PathCosts,
        statements: u32,
        times: [f64; 3],
        share: u32,
    ) -> (u32, u32) {
        let [direct, narrowed, cached] = times;
        let mut taken = (0, 0);
        for number in 0..statements {
            if !costs.prefers_direct && number % 100 < share {
                costs.record_cached_pages(1, cached);
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
            taken = (taken.0 + direct_ones, taken.1 + narrowed_ones);
        }
        taken
    }

    #[test]
    fn cached_pages_count_for_the_narrowed_path() {
        // A narrowed statement is dearer, but most pages need none.
        let mut costs = PathCosts::default();
        run_with_cache(&mut costs, 1_000, [5_000.0, 6_000.0, 300.0], 0);
        assert!(!costs.prefers_direct, "nothing is kept yet");
        let (direct, _) = run_with_cache(&mut costs, 50_000, [5_000.0, 6_000.0, 300.0], 90);
        assert!(direct < 200, "{direct}");
        // A busy moment does not cause a switch, nor does a later one.
        run_with_cache(&mut costs, 3_000, [50_000.0, 80_000.0, 400.0], 90);
        let (direct, _) = run_with_cache(&mut costs, 20_000, [5_000.0, 6_000.0, 300.0], 90);
        assert!(direct < 200 && !costs.prefers_direct, "{direct}");
    }

    #[test]
    fn without_cached_pages_the_cheaper_path_is_taken() {
        let mut costs = PathCosts::default();
        let times = [5_000.0, 6_000.0, 300.0];
        let (_, narrowed) = run_with_cache(&mut costs, 100_000, times, 0);
        assert!((1_000..9_000).contains(&narrowed), "{narrowed}");
        assert!(costs.prefers_direct);
        // From now on they are cached.
        run_with_cache(&mut costs, 100_000, times, 90);
        assert!(!costs.prefers_direct);
        // A direct statement that takes no longer than a cached page is cheap enough.
        let mut costs = PathCosts::default();
        let (_, narrowed) = run_with_cache(&mut costs, 10_000, [200.0, 300.0, 300.0], 90);
        assert!(narrowed < 400, "{narrowed}");
    }

    #[test]
    fn concurrent_statements_are_not_all_trials() {
        let mut costs = PathCosts::default();
        run(&mut costs, 100, 8_000.0, 250.0);
        let mut sent = 0;
        for _ in 0..50_000 {
            // Replies on the other path do not arrive.
            match costs.choose() {
                PathDecision::Narrowed => costs.record_time(StatementPath::Narrowed, 250.0),
                PathDecision::Measured | PathDecision::Direct => sent += 1,
            }
        }
        assert!((15..=18).contains(&sent), "{sent}");
        assert!(!costs.prefers_direct);
        // They arrive after all.
        for _ in 0..ENOUGH_SAMPLES {
            costs.record_time(StatementPath::Direct, 100.0);
        }
        assert!(costs.prefers_direct);
    }

    #[test]
    fn one_is_tried_at_a_time_even_where_it_seemed_to_cost_less() {
        let mut costs = PathCosts::default();
        run(&mut costs, 100, 300.0, 250.0);
        // Narrowed statements take longer now, so direct ones seem cheaper; but those take for ever.
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
    fn a_path_that_became_cheaper_is_taken_again() {
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
    fn a_failed_narrowing_also_costs_the_direct_path() {
        let mut costs = PathCosts::default();
        costs.record_time(StatementPath::Direct, 34_000.0);
        for _ in 0..ENOUGH_SAMPLES {
            assert_eq!(costs.choose(), PathDecision::Narrowed);
            costs.record_failed_narrowing(17_000.0);
        }
        assert_eq!(costs.choose(), PathDecision::Direct);
    }

    #[test]
    fn a_busy_server_does_not_switch_the_path() {
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

    /// Requests pages of 20 rows where messages pass by chance. Returns the shortfalls, and the candidates at the end.
    fn pages(need: &mut CandidateRatio, pages: u32, passes: impl Fn(u32) -> bool) -> (u32, usize) {
        let (mut short, mut messages) = (0, 0_u32);
        for _ in 0..pages {
            let candidates = need.candidates(20, 4_000);
            let passed = (0..candidates).filter(|_| {
                messages = messages.wrapping_add(1);
                passes(messages.wrapping_mul(0x9e37_79b1) >> 8)
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
        // Without a filter there is one candidate per requested row.
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
    fn buckets_are_numbered_by_size() {
        let counts = [0, 1, 2, 10, 50, 200, 1_000, 5_000];
        for (number, count) in counts.into_iter().enumerate() {
            assert_eq!(AuthorCountBucket::of(count).number(), number);
        }
        assert_eq!(AuthorCountBucket::COUNT, counts.len());
    }
}
