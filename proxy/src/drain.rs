//! The drain signal: from then on the process accepts no clients and lets its sessions end.
//!
//! Waiters wake in the order in which they registered. `tokio::sync::watch` wakes them in random order, which no simulation could repeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct DrainState {
    is_given: AtomicBool,
    waiters: Notify,
}

/// Sends the drain signal, at the latest when dropped.
#[derive(Debug, Default)]
pub struct DrainTrigger(Arc<DrainState>);

/// Receives the drain signal.
#[derive(Clone, Debug)]
pub struct DrainSignal(Arc<DrainState>);

impl DrainTrigger {
    /// A handle with which a session waits for the drain.
    #[must_use]
    pub fn signal(&self) -> DrainSignal {
        DrainSignal(Arc::clone(&self.0))
    }

    /// Begins the drain: every signal is given from now on.
    pub fn begin(&self) {
        self.0.is_given.store(true, Ordering::Release);
        self.0.waiters.notify_waiters();
    }
}

impl Drop for DrainTrigger {
    fn drop(&mut self) {
        self.begin();
    }
}

impl DrainSignal {
    /// True once the process drains.
    pub fn is_given(&self) -> bool {
        self.0.is_given.load(Ordering::Acquire)
    }

    /// Waits until the process drains.
    pub async fn wait(&self) {
        let mut waiter = std::pin::pin!(self.0.waiters.notified());
        // From here on no signal is missed.
        waiter.as_mut().enable();
        if !self.is_given() {
            waiter.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_wake_in_their_order_and_who_comes_late_does_not_wait() {
        let drain = DrainTrigger::default();
        let (woken, mut order) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..20 {
            let (signal, woken) = (drain.signal(), woken.clone());
            tokio::spawn(async move {
                signal.wait().await;
                let _ = woken.send(number);
            });
        }
        tokio::task::yield_now().await;
        let late = drain.signal();
        assert!(!late.is_given());
        drop((drain, woken));
        late.wait().await;
        let mut numbers = Vec::new();
        while let Some(number) = order.recv().await {
            numbers.push(number);
        }
        assert!(numbers.iter().copied().eq(0..20), "{numbers:?}");
    }
}
