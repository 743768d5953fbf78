//! Lessons that are on their way: the first statement of its kind goes as it is, and those that come until its answer does wait for what is
//! learned from that.
//!
//! A server that narrowed statements are enough for could not bear all of them as they are, and behind a restart of Headwater they come at
//! once. A lesson that takes long does not hold up the others for good: one more of them goes as it is then, and another one after twice that time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headwater_feed::Template;
use headwater_feed::cost::Crowd;
use headwater_feed::variants::Under;

/// So long others wait for a first lesson.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Where it takes longer, they wait twice as long for the next one, up to so long: those that are on their way slow each other down.
const MOST_PATIENCE: Duration = Duration::from_secs(32);
/// Behind one that taught nothing, nobody waits for so long.
const FREE: Duration = Duration::from_secs(60);

/// What is learned together: by template, about how many authors, and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    template: u64,
    crowd: Crowd,
    under: Under,
}

impl Of {
    pub(super) fn new(template: &Template, crowd: Crowd, under: Under) -> Of {
        Of {
            template: template.kept.template,
            crowd,
            under,
        }
    }
}

/// The latest lesson of its kind.
#[derive(Clone, Copy, Debug)]
struct Begun {
    of: Of,
    at: Instant,
    /// So long it counts.
    lasts: Duration,
    /// It is over, and has taught nothing: a statement that always fails is not to be asked one by one.
    is_vain: bool,
}

impl Begun {
    fn counts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < self.lasts
    }
}

/// Lessons of all sessions.
#[derive(Debug, Default)]
pub struct Lessons(Mutex<Vec<Begun>>);

impl Lessons {
    /// A statement is about to go as it is; false: another one has gone, and this one waits for it.
    pub(super) fn begin(&self, of: Of, now: Instant) -> bool {
        let mut lessons = self.lessons();
        let lasts = match lessons.iter().find(|it| it.of == of) {
            Some(before) if before.counts(now) => return before.is_vain,
            Some(before) if !before.is_vain => (before.lasts * 2).min(MOST_PATIENCE),
            _ => PATIENCE,
        };
        // Those whose clients have gone are of no use for good.
        let is_old = |it: &Begun| now.saturating_duration_since(it.at) >= 2 * MOST_PATIENCE;
        lessons.retain(|it| it.of != of && !is_old(it));
        lessons.push(Begun {
            of,
            at: now,
            lasts,
            is_vain: false,
        });
        true
    }

    /// It is over, and has taught what others wait for or not.
    pub(super) fn end(&self, of: Of, has_taught: bool, now: Instant) {
        let mut lessons = self.lessons();
        lessons.retain(|it| it.of != of);
        if !has_taught {
            lessons.push(Begun {
                of,
                at: now,
                lasts: FREE,
                is_vain: true,
            });
        }
    }

    fn is_on(&self, of: Of, now: Instant) -> bool {
        let is_own = |it: &Begun| it.of == of && !it.is_vain && it.counts(now);
        self.lessons().iter().any(is_own)
    }

    fn lessons(&self) -> MutexGuard<'_, Vec<Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A statement that waits for a lesson.
#[derive(Clone, Debug)]
pub struct Awaits {
    pub(super) template: Arc<Template>,
    pub(super) of: Of,
}

impl Awaits {
    /// True as long as it has to wait.
    #[must_use]
    pub fn is_on(&self, lessons: &Lessons, now: Instant) -> bool {
        !self.template.has_learned(self.of.crowd, self.of.under) && lessons.is_on(self.of, now)
    }
}
