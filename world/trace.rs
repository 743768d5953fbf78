//! The trace of a world: time, participant, event; it includes Headwater's log.

use std::cell::RefCell;
use std::fmt::{self, Display};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum length of a shown statement.
const SHOWN: usize = 160;

/// The lines of one world, in order. Without tracing, no line is created.
#[derive(Clone, Debug)]
pub(crate) struct WorldTrace {
    begun: Instant,
    lines: Option<Arc<Mutex<Vec<TraceLine>>>>,
}

/// An action of a participant, or a reply that it received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceLine {
    pub(crate) at: Duration,
    pub(crate) who: String,
    pub(crate) what: String,
}

impl WorldTrace {
    /// An empty trace that begins now.
    pub(crate) fn new(enabled: bool) -> WorldTrace {
        WorldTrace {
            begun: Instant::now(),
            lines: enabled.then(Arc::default),
        }
    }

    /// Adds this thread's log lines to the trace from now on.
    pub(crate) fn follow_log(&self) {
        FOLLOWED.set(Some(self.clone()));
    }

    pub(crate) fn note(&self, who: impl Display, what: impl Display) {
        let Some(lines) = &self.lines else {
            return;
        };
        let what = what.to_string().replace('\n', " ");
        let limit = what
            .char_indices()
            .nth(SHOWN)
            .map_or(what.len(), |(at, _)| at);
        let line = TraceLine {
            at: self.begun.elapsed(),
            who: who.to_string(),
            what: what[..limit].to_owned(),
        };
        lines.lock().expect("nobody panics with it").push(line);
    }

    pub(crate) fn lines(&self) -> Vec<TraceLine> {
        let lines = self.lines.iter();
        let lines = lines.map(|lines| lines.lock().expect("nobody panics with it").clone());
        lines.flatten().collect()
    }
}

impl Display for TraceLine {
    /// Milliseconds, who, what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceLine { at, who, what } = self;
        let ms = at.as_secs_f64() * 1000.0;
        write!(f, "{ms:>12.3}  {who:<12}  {what}")
    }
}

thread_local! {
    /// The trace of this thread's world.
    static FOLLOWED: RefCell<Option<WorldTrace>> = const { RefCell::new(None) };
}

/// Adds each world's log lines to its trace. One subscriber for all threads: separate ones lose lines while others come and go.
pub(crate) fn install() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .with_writer(|| LogLineWriter)
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("nobody else installs one");
}

/// Receives whole lines of the log.
struct LogLineWriter;

impl io::Write for LogLineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let line_text = String::from_utf8_lossy(line);
        FOLLOWED.with_borrow(|trace| {
            if let Some(trace) = trace {
                trace.note("headwater", line_text.trim());
            }
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
