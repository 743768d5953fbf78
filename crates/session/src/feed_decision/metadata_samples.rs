//! Metadata samples in progress: the first statement of its kind is relayed unchanged, and later ones wait for its sample.
//!
//! A server whose load is sized for narrowed statements could not run all of them unchanged, and after a restart of Headwater they come at
//! once. A slow sample does not block the others for good: one more statement is relayed then, and another one after twice that time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headwater_feed::Template;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::result_metadata::PlanSettings;

/// How long others wait for a first sample.
pub const SAMPLE_WAIT: Duration = Duration::from_secs(1);
/// Where it takes longer, the wait for the next one doubles, up to this: statements in progress slow each other down.
const MAX_SAMPLE_WAIT: Duration = Duration::from_secs(32);
/// After a failed sample, no statement waits for this long.
const FAILED_SAMPLE_PAUSE: Duration = Duration::from_secs(60);

/// What shares a sample: template, author-count bucket, and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleKey {
    template: u64,
    bucket: AuthorCountBucket,
    settings: PlanSettings,
}

impl SampleKey {
    pub(super) fn new(
        template: &Template,
        bucket: AuthorCountBucket,
        settings: PlanSettings,
    ) -> SampleKey {
        SampleKey {
            template: template.row_cache.template,
            bucket,
            settings,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct RunningSample {
    key: SampleKey,
    at: Instant,
    /// How long it holds up others.
    valid_for: Duration,
    /// It failed: a statement that always fails must not run one at a time.
    failed: bool,
}

impl RunningSample {
    fn is_valid(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < self.valid_for
    }
}

/// The samples of all sessions.
#[derive(Debug, Default)]
pub struct MetadataSamples(Mutex<Vec<RunningSample>>);

impl MetadataSamples {
    /// A statement is about to be relayed unchanged; false: another one is in progress, and this one waits for it.
    pub(super) fn begin(&self, key: SampleKey, now: Instant) -> bool {
        let mut samples = self.lock();
        let lasts = match samples.iter().find(|it| it.key == key) {
            Some(before) if before.is_valid(now) => return before.failed,
            Some(before) if !before.failed => (before.valid_for * 2).min(MAX_SAMPLE_WAIT),
            _ => SAMPLE_WAIT,
        };
        // Samples whose clients have gone never end.
        let is_old =
            |it: &RunningSample| now.saturating_duration_since(it.at) >= 2 * MAX_SAMPLE_WAIT;
        samples.retain(|it| it.key != key && !is_old(it));
        samples.push(RunningSample {
            key,
            at: now,
            valid_for: lasts,
            failed: false,
        });
        true
    }

    /// The sample ended, and was recorded or not.
    pub(super) fn end(&self, key: SampleKey, is_recorded: bool, now: Instant) {
        let mut samples = self.lock();
        samples.retain(|it| it.key != key);
        if !is_recorded {
            samples.push(RunningSample {
                key,
                at: now,
                valid_for: FAILED_SAMPLE_PAUSE,
                failed: true,
            });
        }
    }

    fn is_running(&self, key: SampleKey, now: Instant) -> bool {
        let is_own = |it: &RunningSample| it.key == key && !it.failed && it.is_valid(now);
        self.lock().iter().any(is_own)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RunningSample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A statement that waits for a sample.
#[derive(Clone, Debug)]
pub struct SampleWait {
    pub(super) template: Arc<Template>,
    pub(super) key: SampleKey,
}

impl SampleWait {
    /// True while it must wait.
    #[must_use]
    pub fn is_pending(&self, samples: &MetadataSamples, now: Instant) -> bool {
        !self
            .template
            .has_sampled(self.key.bucket, self.key.settings)
            && samples.is_running(self.key, now)
    }
}
