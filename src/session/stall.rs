//! Clients that do not take their bytes. Their server is not read meanwhile, so that its end would not be noticed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::log_span::log_in;
use super::session_counters::SessionEvent;
use super::state::{Session, SessionEnd};

/// So often such a client, and its server, are looked at.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long what waits for a client has waited.
#[derive(Debug, Default)]
pub(super) struct ClientStall {
    /// There while bytes wait, or did when it was set.
    next_check: Option<Pin<Box<Sleep>>>,
    /// Everything was taken since the last look.
    was_taken: bool,
    /// Looks between which nothing but a part was.
    checks: u32,
    /// The server says that it has no such session any more: its last bytes may be in the way of that news.
    session_gone: Option<Arc<AtomicBool>>,
}

impl ClientStall {
    /// Nothing waits.
    pub(super) fn mark_taken(&mut self) {
        self.was_taken = true;
    }

    /// Ready when it is time to look. To be asked while bytes wait; an answer that comes later wakes the session once in vain.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let next_look = self
            .next_check
            .get_or_insert_with(|| Box::pin(sleep(CHECK_INTERVAL)));
        next_look.as_mut().poll(context)
    }

    /// How long the same bytes have waited, or a part of them.
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
    /// Ends the session if its client has had its time; before that, its places are given back once its server has ended it.
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

    /// What the service account was told of it at the last look; it is asked for the next one.
    fn server_session_is_gone(&mut self) -> bool {
        let gone = self.stall.session_gone.get_or_insert_default();
        let is_gone = gone.load(Ordering::Relaxed);
        // One question at a time.
        if !is_gone
            && Arc::strong_count(gone) == 1
            && let (Some(service), Some(thread)) = (
                self.shared.catalogue.service.clone(),
                self.machine.thread_id(),
            )
        {
            let gone = Arc::clone(gone);
            tokio::spawn(async move {
                if service.has_ended(thread).await {
                    gone.store(true, Ordering::Relaxed);
                }
            });
        }
        is_gone
    }
}
