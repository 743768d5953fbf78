//! Clients that do not read their bytes. Their server is not read meanwhile, so its end would go unnoticed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::log_span::log_in;
use super::session_counters::SessionEvent;
use super::state::{Session, SessionEnd};

/// Interval at which such a client and its server are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long a client's bytes have waited.
#[derive(Debug, Default)]
pub(super) struct ClientStall {
    /// Set while bytes wait; may be left over from earlier ones.
    next_check: Option<Pin<Box<Sleep>>>,
    /// Everything was taken since the last check.
    was_taken: bool,
    /// Checks in a row before which the client had not taken everything.
    checks: u32,
    /// The server reports that the session is gone: its last bytes may block the end of the connection.
    session_gone: Option<Arc<AtomicBool>>,
}

impl ClientStall {
    /// All bytes are taken.
    pub(super) fn mark_taken(&mut self) {
        self.was_taken = true;
    }

    /// Ready at the next check. Polled while bytes wait; a late wake-up is harmless.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let next_look = self
            .next_check
            .get_or_insert_with(|| Box::pin(sleep(CHECK_INTERVAL)));
        next_look.as_mut().poll(context)
    }

    /// How long bytes have waited without a break.
    pub(super) fn waited(&mut self) -> Duration {
        self.next_check = None;
        self.checks = match std::mem::take(&mut self.was_taken) {
            true => 0,
            false => self.checks.saturating_add(1),
        };
        CHECK_INTERVAL.saturating_mul(self.checks)
    }
}

impl Session {
    /// Ends the session if its client's time is over; before that, returns its permits once its server has ended it.
    pub(super) fn check_stall(&mut self) -> Result<(), SessionEnd> {
        let waited = self.stall.waited();
        let has_ended = self.backend.link.has_ended();
        if has_ended || waited >= CHECK_INTERVAL && self.server_session_is_gone() {
            self.admission.release();
        }
        let limits = &self.shared.limits;
        let ended = |limit: &'static str, limit_ms: u64| {
            (waited >= Duration::from_millis(limit_ms))
                .then_some(SessionEnd::Stalled { limit, limit_ms })
        };
        let by_now = ended("stalled_ms", limits.stalled_ms)
            .or_else(|| ended("last_words_ms", limits.last_words_ms).filter(|_| has_ended));
        match by_now {
            Some(ended) => {
                self.shared.counters.add(SessionEvent::ClientStalled);
                log_in!(self.span(), INFO, "a session ended: {ended}");
                Err(ended)
            }
            None => Ok(()),
        }
    }

    /// What the service account reported at the last check; starts the next query.
    fn server_session_is_gone(&mut self) -> bool {
        let session_gone = self.stall.session_gone.get_or_insert_default();
        let is_gone = session_gone.load(Ordering::Relaxed);
        // One query at a time.
        if !is_gone
            && Arc::strong_count(session_gone) == 1
            && let (Some(service), Some(thread)) = (
                self.shared.catalogue.service.clone(),
                self.machine.thread_id(),
            )
        {
            let session_gone = Arc::clone(session_gone);
            tokio::spawn(async move {
                if service.has_ended(thread).await {
                    session_gone.store(true, Ordering::Relaxed);
                }
            });
        }
        is_gone
    }
}
