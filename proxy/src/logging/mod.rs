//! The process's own log: counts messages, and throttles them by call site.
//!
//! Clients can cause any number of lines. Of each call site the first few in a minute are written; the number suppressed is logged once
//! that minute is over.

mod line_format;
mod throttle;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

pub use self::line_format::{JsonLogWriter, fields};
use self::throttle::{CallSites, LineDecision, SuppressedLines};

use crate::clock;

/// Lines written of one call site in an interval, if sessions cause them.
const MAX_SESSION_LINES: u32 = 10;
/// The same for other lines, which settings and the server bound: for example one for each definition in each database.
const MAX_OTHER_LINES: u32 = 100;
/// Debug lines are switched on by the operator and are not throttled.
const THROTTLED_LEVEL: Level = Level::INFO;
/// How often finished intervals are looked for.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// The target of the line that reports suppressed lines: that line is neither counted nor suppressed.
const SUMMARY: &str = "crate::logging::summary";

/// Counts of written and suppressed messages.
#[derive(Debug)]
pub struct LogState {
    /// The level that the settings write.
    level: RwLock<LevelFilter>,
    warnings: AtomicU64,
    errors: AtomicU64,
    suppressed: AtomicU64,
    sites: Mutex<CallSites>,
}

impl LogState {
    /// Starts empty. Messages above this level are counted and not written.
    #[must_use]
    pub fn new(level: LevelFilter) -> LogState {
        LogState {
            level: RwLock::new(level),
            warnings: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
            sites: Mutex::default(),
        }
    }

    /// The level that has to reach this layer so that everything is counted.
    #[must_use]
    pub fn required_level(&self) -> LevelFilter {
        self.level().max(LevelFilter::WARN)
    }

    fn level(&self) -> LevelFilter {
        *self.level.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the level that is written from now on.
    pub fn set_level(&self, level: LevelFilter) {
        *self.level.write().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Numbers of warnings and errors, by level, written or not.
    #[must_use]
    pub fn message_counts(&self) -> [(&'static str, u64); 2] {
        [("warn", &self.warnings), ("error", &self.errors)]
            .map(|(level, count)| (level, count.load(Ordering::Relaxed)))
    }

    /// Number of suppressed lines.
    #[must_use]
    pub fn suppressed(&self) -> u64 {
        self.suppressed.load(Ordering::Relaxed)
    }

    /// Logs what was suppressed, until the process ends.
    pub async fn report_suppressed(&self) -> std::convert::Infallible {
        let mut looks = tokio::time::interval(REPORT_INTERVAL);
        loop {
            looks.tick().await;
            let over = self.sites().take_finished(clock::now());
            over.iter().for_each(log_suppressed);
        }
    }

    /// Logs what was suppressed up to now: the process ends.
    pub fn report_remainder(&self) {
        let rest = self.sites().take_remainder(clock::now());
        rest.iter().for_each(log_suppressed);
    }

    fn sites(&self) -> std::sync::MutexGuard<'_, CallSites> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, level: Level) {
        let counter = match level {
            Level::ERROR => &self.errors,
            Level::WARN => &self.warnings,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn log_suppressed(left_out: &SuppressedLines) {
    let SuppressedLines {
        level,
        count,
        within,
        example: like,
    } = left_out;
    let seconds = within.as_secs().max(1);
    macro_rules! say {
        ($level:ident) => {
            tracing::event!(
                target: SUMMARY,
                Level::$level,
                suppressed = count,
                "… and {count} more like it in the last {seconds} s: {like}"
            )
        };
    }
    match *level {
        Level::ERROR => say!(ERROR),
        Level::WARN => say!(WARN),
        _ => say!(INFO),
    }
}

/// Counts messages, and suppresses those of a call site over its limit.
#[derive(Debug)]
pub struct ThrottleLayer(pub std::sync::Arc<LogState>);

impl<S> Layer<S> for ThrottleLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn event_enabled(&self, event: &Event<'_>, context: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let level = *metadata.level();
        if metadata.target() == SUMMARY {
            return self.0.level() >= level;
        }
        self.0.count(level);
        if self.0.level() < level {
            return false;
        }
        if level > THROTTLED_LEVEL {
            return true;
        }
        // Only sessions have spans.
        let most = match context.lookup_current() {
            Some(_) => MAX_SESSION_LINES,
            None => MAX_OTHER_LINES,
        };
        let site = (metadata.callsite(), level);
        let mut sites = self.0.sites();
        match sites.admit(site, most, clock::now(), || message(event)) {
            LineDecision::Write => true,
            LineDecision::Suppress => {
                self.0.suppressed.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }
}

/// The message of an event, without its fields.
fn message(event: &Event<'_>) -> String {
    #[derive(Default)]
    struct MessageVisitor(String);

    impl Visit for MessageVisitor {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            if field.name() == "message" {
                self.0 = format!("{value:?}");
            }
        }
    }

    let mut message = MessageVisitor::default();
    event.record(&mut message);
    message.0
}

#[cfg(test)]
mod tests;
