//! Clients that do not take their bytes. Their server is not read meanwhile, so that its end would not be noticed.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

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
