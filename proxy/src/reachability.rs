//! Whether the server can be reached. Logs one line for each change, not one for each client.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// While the server is unreachable, the log repeats it at this interval.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// The server, and whether the last connection to it succeeded.
#[derive(Debug)]
pub struct UpstreamReachability {
    /// Address of the server, or of all of them, as the log names it.
    pub address: String,
    /// Avoids the lock while the server is reachable.
    away: AtomicBool,
    outage: Mutex<Option<ServerOutage>>,
}

/// An outage of the server.
#[derive(Debug)]
struct ServerOutage {
    since: Instant,
    reported_at: Instant,
    refused: u64,
}

/// What the log reports.
#[derive(Debug, PartialEq, Eq)]
enum OutageNotice {
    Lost,
    StillAway { seconds: u64, refused: u64 },
}

impl UpstreamReachability {
    /// A server to which no connection has failed yet.
    #[must_use]
    pub fn new(address: &str) -> UpstreamReachability {
        UpstreamReachability {
            address: address.to_owned(),
            away: AtomicBool::new(false),
            outage: Mutex::new(None),
        }
    }

    /// Records that a client could not get a connection.
    pub fn connection_failed(&self, error: &io::Error) {
        let mut absence = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        let news = match absence.as_mut() {
            Some(absence) => absence.client_refused(now),
            None => {
                *absence = Some(ServerOutage::begin(now));
                Some(OutageNotice::Lost)
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

    /// Records that a connection was made.
    pub fn connection_succeeded(&self) {
        if !self.away.load(Ordering::Relaxed) {
            return;
        }
        let ended = {
            let mut absence = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
            self.away.store(false, Ordering::Relaxed);
            absence.take()
        };
        if let Some(ServerOutage { since, refused, .. }) = ended {
            let seconds = clock::since(since).as_secs_f64();
            tracing::info!(
                "the server at {} can be reached again, after {seconds:.1} s; clients refused meanwhile: {refused}",
                self.address
            );
        }
    }
}

impl ServerOutage {
    /// Starts with the first refused client.
    fn begin(now: Instant) -> ServerOutage {
        ServerOutage {
            since: now,
            reported_at: now,
            refused: 1,
        }
    }

    /// Counts one more refused client.
    fn client_refused(&mut self, now: Instant) -> Option<OutageNotice> {
        self.refused += 1;
        if now.duration_since(self.reported_at) < REPEAT_INTERVAL {
            return None;
        }
        self.reported_at = now;
        Some(OutageNotice::StillAway {
            seconds: now.duration_since(self.since).as_secs(),
            refused: self.refused,
        })
    }
}

impl fmt::Display for OutageNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutageNotice::Lost => f.write_str(
                ". Clients are refused with error 1429 until it can be reached (--upstream, HEADWATER_UPSTREAM, upstream)",
            ),
            OutageNotice::StillAway { seconds, refused } => {
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
        let mut absence = ServerOutage::begin(began);
        for _ in 0..1_000 {
            assert_eq!(
                absence.client_refused(began + Duration::from_secs(59)),
                None
            );
        }
        let still = absence.client_refused(began + Duration::from_secs(61));
        let (seconds, refused) = (61, 1_002);
        assert_eq!(still, Some(OutageNotice::StillAway { seconds, refused }));
        assert_eq!(
            absence.client_refused(began + Duration::from_secs(62)),
            None
        );
    }
}
