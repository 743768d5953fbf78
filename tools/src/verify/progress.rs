//! Progress: a line every few seconds, or a redrawn one on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use headwater_proxy::clock;

/// Interval of lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Width of the bar, in characters.
const BAR_WIDTH: u64 = 24;

#[derive(Debug)]
pub(super) struct VerifyProgress {
    terminal: bool,
    begun: Instant,
    last_reported: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgressCounts {
    pub(super) readers: u64,
    pub(super) all_readers: u64,
    /// Compared answers, and how many there will be.
    pub(super) answers: u64,
    pub(super) all_answers: u64,
    pub(super) differences: u64,
}

impl VerifyProgress {
    pub(super) fn begin() -> VerifyProgress {
        VerifyProgress {
            terminal: std::io::stderr().is_terminal(),
            begun: clock::now(),
            last_reported: clock::now(),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        clock::since(self.begun)
    }

    /// Reports progress, if it is time to.
    pub(super) fn report(&mut self, far: impl FnOnce() -> ProgressCounts) {
        let pause = if self.terminal {
            REDRAW_INTERVAL
        } else {
            LINE_INTERVAL
        };
        if clock::since(self.last_reported) < pause {
            return;
        }
        self.last_reported = clock::now();
        let far = far();
        let text = far.line(clock::since(self.begun));
        // Stderr may be closed.
        let _ = match self.terminal {
            true => write!(std::io::stderr(), "\r{} {text}\x1b[K", far.bar()),
            false => writeln!(std::io::stderr(), "{text}"),
        };
    }

    pub(super) fn end(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl ProgressCounts {
    fn line(self, elapsed: Duration) -> String {
        let ProgressCounts {
            readers,
            all_readers,
            differences,
            ..
        } = self;
        let rate = self.rate(elapsed);
        let left = match self.remaining(elapsed) {
            Some(left) => format!(", {} left", span(left)),
            None => String::new(),
        };
        format!(
            "{readers} of {all_readers} readers, differences: {differences}, {rate:.1} answers a second{left}"
        )
    }

    fn rate(self, elapsed: Duration) -> f64 {
        self.answers as f64 / elapsed.as_secs_f64().max(0.001)
    }

    fn remaining(self, elapsed: Duration) -> Option<Duration> {
        let rate = self.rate(elapsed);
        let left = self.all_answers.saturating_sub(self.answers) as f64;
        (rate > 0.0).then(|| Duration::try_from_secs_f64(left / rate).ok())?
    }

    fn bar(self) -> String {
        let done = self.answers.min(self.all_answers).saturating_mul(BAR_WIDTH);
        let done = done / self.all_answers.max(1);
        let marks = (0..BAR_WIDTH).map(|at| if at < done { '#' } else { '.' });
        std::iter::once('[').chain(marks).chain([']']).collect()
    }
}

/// A duration for display.
pub(super) fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5_999 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_how_far_it_is_and_how_long_it_will_take() {
        let far = ProgressCounts {
            readers: 100,
            all_readers: 400,
            answers: 300,
            all_answers: 1_200,
            differences: 0,
        };
        assert_eq!(
            far.line(Duration::from_secs(6)),
            "100 of 400 readers, differences: 0, 50.0 answers a second, 18 s left"
        );
        assert_eq!(far.bar(), "[######..................]");
        assert_eq!(
            ProgressCounts::default().bar(),
            "[........................]"
        );
        assert_eq!(span(Duration::from_secs(150)), "3 min");
        assert_eq!(span(Duration::from_secs(7_260)), "2 h 1 min");
    }
}
