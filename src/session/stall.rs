//! Clients that do not take their bytes. Their server is not read meanwhile, so that its end would not be noticed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::counts::Event;
use super::state::{Ended, Session};
use super::who::log_in;

/// So often such a client, and its server, are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long what waits for a client has waited.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// There while bytes wait, or did when it was set.
    next_look: Option<Pin<Box<Sleep>>>,
    /// Everything was taken since the last look.
    taken: bool,
    /// Looks between which nothing but a part was.
    looks: u32,
    /// The server says that it has no such session any more: its last bytes may be in the way of that news.
    gone: Option<Arc<AtomicBool>>,
}

impl Stall {
    /// Nothing waits.
    pub(super) fn taken(&mut self) {
        self.taken = true;
    }

    /// Ready when it is time to look. To be asked while bytes wait; an answer that comes later wakes the session once in vain.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let next_look = self.next_look.get_or_insert_with(|| Box::pin(sleep(LOOK)));
        next_look.as_mut().poll(context)
    }

    /// How long the same bytes have waited, or a part of them.
    pub(super) fn look(&mut self) -> Duration {
        self.next_look = None;
        self.looks = match std::mem::take(&mut self.taken) {
            true => 0,
            false => self.looks.saturating_add(1),
        };
        LOOK.saturating_mul(self.looks)
    }
}

impl Session {
    /// Ends the session if its client has had its time; before that, its places are given back once its server has ended it.
    pub(super) fn look_at_stalled(&mut self) -> Result<(), Ended> {
        let waited = self.stall.look();
        let has_ended = self.backend.link.has_ended();
        if has_ended || waited >= LOOK && self.is_gone() {
            self.admission.give_back();
        }
        let limits = &self.shared.limits;
        let ended = |limit: &'static str, limit_ms: u64| {
            (waited >= Duration::from_millis(limit_ms))
                .then_some(Ended::Stalled { limit, limit_ms })
        };
        let by_now = ended("stalled_ms", limits.stalled_ms)
            .or_else(|| ended("last_words_ms", limits.last_words_ms).filter(|_| has_ended));
        match by_now {
            Some(ended) => {
                self.shared.counts.add(Event::ClientStalled);
                log_in!(self.span(), INFO, "a session ended: {ended}");
                Err(ended)
            }
            None => Ok(()),
        }
    }

    /// What the service account was told of it at the last look; it is asked for the next one.
    fn is_gone(&mut self) -> bool {
        let gone = self.stall.gone.get_or_insert_default();
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
