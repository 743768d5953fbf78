//! Lessons that are on their way: the first statement of its kind goes as it is, and those that come until its answer does wait for what is
//! learned from that.
//!
//! A server that narrowed statements are enough for could not bear all of them as they are, and behind a restart of Headwater they come at
//! once. A lesson that takes long does not hold up the others for good: one more of them goes as it is then, and another one after twice that time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headwater_feed::Template;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::result_metadata::PlanSettings;

/// So long others wait for a first lesson.
pub const SAMPLE_WAIT: Duration = Duration::from_secs(1);
/// Where it takes longer, they wait twice as long for the next one, up to so long: those that are on their way slow each other down.
const MAX_SAMPLE_WAIT: Duration = Duration::from_secs(32);
/// Behind one that taught nothing, nobody waits for so long.
const FAILED_SAMPLE_PAUSE: Duration = Duration::from_secs(60);

/// What is learned together: by template, about how many authors, and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleKey {
    template: u64,
    bucket: AuthorCountBucket,
    settings: PlanSettings,
}

impl SampleKey {
    pub(super) fn new(
        template: &Template,
        crowd: AuthorCountBucket,
        under: PlanSettings,
    ) -> SampleKey {
        SampleKey {
            template: template.row_cache.template,
            bucket: crowd,
            settings: under,
        }
    }
}

/// The latest lesson of its kind.
#[derive(Clone, Copy, Debug)]
struct RunningSample {
    key: SampleKey,
    at: Instant,
    /// So long it counts.
    valid_for: Duration,
    /// It is over, and has taught nothing: a statement that always fails is not to be asked one by one.
    failed: bool,
}

impl RunningSample {
    fn is_valid(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < self.valid_for
    }
}

/// Lessons of all sessions.
#[derive(Debug, Default)]
pub struct MetadataSamples(Mutex<Vec<RunningSample>>);

impl MetadataSamples {
    /// A statement is about to go as it is; false: another one has gone, and this one waits for it.
    pub(super) fn begin(&self, of: SampleKey, now: Instant) -> bool {
        let mut lessons = self.lock();
        let lasts = match lessons.iter().find(|it| it.key == of) {
            Some(before) if before.is_valid(now) => return before.failed,
            Some(before) if !before.failed => (before.valid_for * 2).min(MAX_SAMPLE_WAIT),
            _ => SAMPLE_WAIT,
        };
        // Those whose clients have gone are of no use for good.
        let is_old =
            |it: &RunningSample| now.saturating_duration_since(it.at) >= 2 * MAX_SAMPLE_WAIT;
        lessons.retain(|it| it.key != of && !is_old(it));
        lessons.push(RunningSample {
            key: of,
            at: now,
            valid_for: lasts,
            failed: false,
        });
        true
    }

    /// It is over, and has taught what others wait for or not.
    pub(super) fn end(&self, of: SampleKey, has_taught: bool, now: Instant) {
        let mut lessons = self.lock();
        lessons.retain(|it| it.key != of);
        if !has_taught {
            lessons.push(RunningSample {
                key: of,
                at: now,
                valid_for: FAILED_SAMPLE_PAUSE,
                failed: true,
            });
        }
    }

    fn is_running(&self, of: SampleKey, now: Instant) -> bool {
        let is_own = |it: &RunningSample| it.key == of && !it.failed && it.is_valid(now);
        self.lock().iter().any(is_own)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RunningSample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A statement that waits for a lesson.
#[derive(Clone, Debug)]
pub struct SampleWait {
    pub(super) template: Arc<Template>,
    pub(super) key: SampleKey,
}

impl SampleWait {
    /// True as long as it has to wait.
    #[must_use]
    pub fn is_pending(&self, lessons: &MetadataSamples, now: Instant) -> bool {
        !self
            .template
            .has_sampled(self.key.bucket, self.key.settings)
            && lessons.is_running(self.key, now)
    }
}
