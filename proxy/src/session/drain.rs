//! When a session ends because its process drains.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::state::Session;

/// After a takeover, a session ends once it has been quiet for so long, so that a client between two related commands is not cut off.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

impl Session {
    /// How long the session may continue while the process drains. `None`: until its current command has ended.
    ///
    /// Without a takeover, it ends between two commands at once, as a server's sessions do: until the process restarts there is no service.
    pub(super) fn drain_delay(&mut self) -> Option<Duration> {
        if !self.machine.is_at_rest() || !self.client.is_flushed() {
            return None;
        }
        let shared = &self.shared;
        let alone = !shared.handed_over.load(Ordering::Relaxed);
        if alone || shared.grace_period_over.load(Ordering::Relaxed) {
            return Some(Duration::ZERO);
        }
        if self.machine.has_session_state() {
            return None;
        }
        self.record_activity();
        Some(QUIET_PERIOD.saturating_sub(self.record.since()))
    }
}
