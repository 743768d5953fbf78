//! What happened in a world: when, who, what.

use std::fmt::Display;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// So much of a statement is shown.
const SHOWN: usize = 160;

/// The lines of one world, in their order.
#[derive(Debug)]
pub(crate) struct Trace {
    begun: Instant,
    lines: Mutex<Vec<Line>>,
}

#[derive(Clone, Debug)]
struct Line {
    at: Duration,
    who: String,
    what: String,
}

impl Trace {
    /// Begins now.
    pub(crate) fn new() -> Trace {
        Trace {
            begun: Instant::now(),
            lines: Mutex::default(),
        }
    }

    pub(crate) fn note(&self, who: impl Display, what: &str) {
        let what = what.replace('\n', " ");
        let cut = what
            .char_indices()
            .nth(SHOWN)
            .map_or(what.len(), |(at, _)| at);
        let line = Line {
            at: self.begun.elapsed(),
            who: who.to_string(),
            what: what[..cut].to_owned(),
        };
        self.lines.lock().expect("nobody panics with it").push(line);
    }

    /// As a table: milliseconds, who, what.
    pub(crate) fn table(&self) -> String {
        let lines = self.lines.lock().expect("nobody panics with it");
        let rows = lines.iter().map(|Line { at, who, what }| {
            format!("{:>12.3}  {who:<12}  {what}\n", at.as_secs_f64() * 1000.0)
        });
        rows.collect()
    }
}
