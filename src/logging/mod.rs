//! The process's own log: how much is said, counted before it is throttled.
//!
//! Clients can cause lines without end: of each place in the program where a line is made (its call site), the first few in a minute are
//! written, and how many more there were is said once that minute is over. Nothing is left out without its count.

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

/// Of lines that sessions cause so many are written of a call site in an interval.
const MAX_SESSION_LINES: u32 = 10;
/// Of all others, which settings and the server bound: one for each definition in each database, for example.
const MAX_OTHER_LINES: u32 = 100;
/// Debug lines are asked for, and all of them are wanted.
const THROTTLED_LEVEL: Level = Level::INFO;
/// So often it is looked whether an interval is over.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// By this the line that says how many were left out is known: it is neither counted nor left out itself.
const SUMMARY: &str = "headwater::logging::summary";

/// What was said, and what was left out.
#[derive(Debug)]
pub struct LogState {
    /// What the settings have written.
    level: RwLock<LevelFilter>,
    warnings: AtomicU64,
    errors: AtomicU64,
    suppressed: AtomicU64,
    sites: Mutex<CallSites>,
}

impl LogState {
    /// Nothing yet. What is above this level is not written, and counted nevertheless.
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

    /// So much has to come here for everything to be counted.
    #[must_use]
    pub fn required_level(&self) -> LevelFilter {
        self.level().max(LevelFilter::WARN)
    }

    fn level(&self) -> LevelFilter {
        *self.level.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// So much is written from now on.
    pub fn set_level(&self, level: LevelFilter) {
        *self.level.write().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// How many warnings and errors there were, by their level, written or not.
    #[must_use]
    pub fn message_counts(&self) -> [(&'static str, u64); 2] {
        [("warn", &self.warnings), ("error", &self.errors)]
            .map(|(level, count)| (level, count.load(Ordering::Relaxed)))
    }

    /// How many lines were left out because many more like them were written.
    #[must_use]
    pub fn suppressed(&self) -> u64 {
        self.suppressed.load(Ordering::Relaxed)
    }

    /// Says for good what was left out.
    pub async fn report_suppressed(&self) -> std::convert::Infallible {
        let mut looks = tokio::time::interval(REPORT_INTERVAL);
        loop {
            looks.tick().await;
            let over = self.sites().take_finished(clock::now());
            over.iter().for_each(log_suppressed);
        }
    }

    /// Says what was left out up to now: the process ends.
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

/// Counts what is said, and leaves out what is said too often.
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
        // Sessions alone have spans.
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

/// What an event says, without its fields.
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
