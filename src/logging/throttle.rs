//! Which lines are written, by their call sites. `now` is an argument.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tracing::Level;
use tracing::callsite::Identifier;

/// In so long the first few lines of a call site are written.
pub(super) const INTERVAL: Duration = Duration::from_secs(60);
/// So much of a line is said again with the count of those like it, in characters.
const LIKE_LETTERS: usize = 200;

/// Lines of each call site in the interval that runs for it. There are no more of them than places in the program.
#[derive(Debug, Default)]
pub(super) struct Sites {
    sites: HashMap<Identifier, Site>,
    /// Of intervals that are over, and of which nothing was said yet.
    due: Vec<LeftOut>,
}

#[derive(Debug)]
struct Site {
    level: Level,
    begun: Instant,
    written: u32,
    left_out: u64,
    /// The first that was left out.
    like: String,
}

/// Whether a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    Yes,
    No,
}

/// Lines that were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) level: Level,
    pub(super) count: u64,
    /// In so long.
    pub(super) within: Duration,
    /// One of them.
    pub(super) like: String,
}

impl Sites {
    /// A line is to be written, of which there are to be no more than `most` in an interval.
    pub(super) fn admit(
        &mut self,
        (callsite, level): (Identifier, Level),
        most: u32,
        now: Instant,
        message: impl FnOnce() -> String,
    ) -> Admitted {
        let site = self
            .sites
            .entry(callsite)
            .or_insert_with(|| Site::new(level, now));
        if site.is_over(now) {
            let before = std::mem::replace(site, Site::new(level, now));
            self.due.extend(before.left_out(INTERVAL));
        }
        if site.written < most {
            site.written += 1;
            return Admitted::Yes;
        }
        if site.left_out == 0 {
            site.like = message().chars().take(LIKE_LETTERS).collect();
        }
        site.left_out += 1;
        Admitted::No
    }

    /// What was left out in intervals that are over by now.
    pub(super) fn over(&mut self, now: Instant) -> Vec<LeftOut> {
        let over = self.sites.extract_if(|_, site| site.is_over(now));
        self.due
            .extend(over.filter_map(|(_, site)| site.left_out(INTERVAL)));
        std::mem::take(&mut self.due)
    }

    /// What was left out up to now.
    pub(super) fn rest(&mut self, now: Instant) -> Vec<LeftOut> {
        let mut rest = std::mem::take(&mut self.due);
        let sites = self.sites.drain();
        rest.extend(sites.filter_map(|(_, site)| {
            let within = now.saturating_duration_since(site.begun);
            site.left_out(within.min(INTERVAL))
        }));
        rest
    }
}

impl Site {
    fn new(level: Level, now: Instant) -> Site {
        Site {
            level,
            begun: now,
            written: 0,
            left_out: 0,
            like: String::new(),
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.begun) >= INTERVAL
    }

    fn left_out(self, within: Duration) -> Option<LeftOut> {
        (self.left_out > 0).then_some(LeftOut {
            level: self.level,
            count: self.left_out,
            within,
            like: self.like,
        })
    }
}
