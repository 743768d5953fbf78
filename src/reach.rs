//! Whether the server can be reached, as the log tells it: a line for each change, not one for each client.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// While the server stays away, that is said again so often.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// Where the server is, and whether it was there when it was last looked for.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) address: String,
    /// So that nobody waits for the lock while all is well.
    away: AtomicBool,
    absence: Mutex<Option<Absence>>,
}

/// Since when the server has been away.
#[derive(Debug)]
struct Absence {
    since: Instant,
    said: Instant,
    refused: u64,
}

/// What the log says.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Lost,
    StillAway { seconds: u64, refused: u64 },
}

impl Upstream {
    pub(crate) fn new(address: &str) -> Upstream {
        Upstream {
            address: address.to_owned(),
            away: AtomicBool::new(false),
            absence: Mutex::new(None),
        }
    }

    /// A client could not be given a connection.
    pub(crate) fn refuses(&self, error: &io::Error) {
        let mut absence = self.absence.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        let news = match absence.as_mut() {
            Some(absence) => absence.refuses(now),
            None => {
                *absence = Some(Absence::begin(now));
                Some(News::Lost)
            }
        };
        self.away.store(true, Ordering::Relaxed);
        drop(absence);
        if let Some(news) = news {
            tracing::warn!(
                "cannot connect to the server at {}: {error}{news}",
                self.address
            );
        }
    }

    /// A connection to it stands.
    pub(crate) fn answers(&self) {
        if !self.away.load(Ordering::Relaxed) {
            return;
        }
        let ended = {
            let mut absence = self.absence.lock().unwrap_or_else(PoisonError::into_inner);
            self.away.store(false, Ordering::Relaxed);
            absence.take()
        };
        if let Some(Absence { since, refused, .. }) = ended {
            let seconds = clock::since(since).as_secs_f64();
            tracing::info!(
                "the server at {} can be reached again, after {seconds:.1} s; clients refused meanwhile: {refused}",
                self.address
            );
        }
    }
}

impl Absence {
    /// With the first client that is refused.
    fn begin(now: Instant) -> Absence {
        Absence {
            since: now,
            said: now,
            refused: 1,
        }
    }

    /// One more client is refused.
    fn refuses(&mut self, now: Instant) -> Option<News> {
        self.refused += 1;
        if now.duration_since(self.said) < SAID_AGAIN {
            return None;
        }
        self.said = now;
        Some(News::StillAway {
            seconds: now.duration_since(self.since).as_secs(),
            refused: self.refused,
        })
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            News::Lost => f.write_str(
                ". Clients are refused with error 1429 until it can be reached (--upstream, HEADWATER_UPSTREAM, upstream)",
            ),
            News::StillAway { seconds, refused } => {
                write!(f, ". It has been away for {seconds} s; clients refused: {refused}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_server_that_stays_away_there_is_a_line_a_minute_and_not_one_a_client() {
        let began = Instant::now();
        let mut absence = Absence::begin(began);
        for _ in 0..1_000 {
            assert_eq!(absence.refuses(began + Duration::from_secs(59)), None);
        }
        let still = absence.refuses(began + Duration::from_secs(61));
        let (seconds, refused) = (61, 1_002);
        assert_eq!(still, Some(News::StillAway { seconds, refused }));
        assert_eq!(absence.refuses(began + Duration::from_secs(62)), None);
    }
}
