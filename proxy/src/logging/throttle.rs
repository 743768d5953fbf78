//! Which lines are written, by call site. `now` is an argument.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tracing::Level;
use tracing::callsite::Identifier;

/// The interval in which the first few lines of a call site are written.
pub(super) const INTERVAL: Duration = Duration::from_secs(60);
/// Length of the example line in a summary, in characters.
const EXAMPLE_CHARS: usize = 200;

/// Counts by call site, in the interval that runs for it. There are no more entries than call sites in the program.
#[derive(Debug, Default)]
pub(super) struct CallSites {
    sites: HashMap<Identifier, CallSite>,
    /// Counts of finished intervals, not reported yet.
    unreported: Vec<SuppressedLines>,
}

#[derive(Debug)]
struct CallSite {
    level: Level,
    begun: Instant,
    written: u32,
    suppressed: u64,
    /// The first suppressed line.
    example: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineDecision {
    Write,
    Suppress,
}

/// Suppressed lines of one call site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SuppressedLines {
    pub(super) level: Level,
    pub(super) count: u64,
    /// The interval's length.
    pub(super) within: Duration,
    /// One of the lines.
    pub(super) example: String,
}

impl CallSites {
    /// Decides about a line of a call site that may have `most` in an interval.
    pub(super) fn admit(
        &mut self,
        (callsite, level): (Identifier, Level),
        most: u32,
        now: Instant,
        message: impl FnOnce() -> String,
    ) -> LineDecision {
        let site = self
            .sites
            .entry(callsite)
            .or_insert_with(|| CallSite::new(level, now));
        if site.is_over(now) {
            let before = std::mem::replace(site, CallSite::new(level, now));
            self.unreported.extend(before.into_suppressed(INTERVAL));
        }
        if site.written < most {
            site.written += 1;
            return LineDecision::Write;
        }
        if site.suppressed == 0 {
            site.example = message().chars().take(EXAMPLE_CHARS).collect();
        }
        site.suppressed += 1;
        LineDecision::Suppress
    }

    /// Takes the counts of intervals that are over.
    pub(super) fn take_finished(&mut self, now: Instant) -> Vec<SuppressedLines> {
        let over = self.sites.extract_if(|_, site| site.is_over(now));
        self.unreported
            .extend(over.filter_map(|(_, site)| site.into_suppressed(INTERVAL)));
        std::mem::take(&mut self.unreported)
    }

    /// Takes all counts up to now.
    pub(super) fn take_remainder(&mut self, now: Instant) -> Vec<SuppressedLines> {
        let mut rest = std::mem::take(&mut self.unreported);
        let sites = self.sites.drain();
        rest.extend(sites.filter_map(|(_, site)| {
            let within = now.saturating_duration_since(site.begun);
            site.into_suppressed(within.min(INTERVAL))
        }));
        rest
    }
}

impl CallSite {
    fn new(level: Level, now: Instant) -> CallSite {
        CallSite {
            level,
            begun: now,
            written: 0,
            suppressed: 0,
            example: String::new(),
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.begun) >= INTERVAL
    }

    fn into_suppressed(self, within: Duration) -> Option<SuppressedLines> {
        (self.suppressed > 0).then_some(SuppressedLines {
            level: self.level,
            count: self.suppressed,
            within,
            example: self.example,
        })
    }
}
