//! When a session ends because its process does.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::state::Session;

/// Where another process takes the clients that come, a session ends once it has been quiet for so long: a client in the middle of
/// something is not cut short between two commands.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

impl Session {
    /// How long it is to go on as things stand, while the process drains. `None`: until what it does now has ended.
    ///
    /// Where nobody else takes clients, each moment is one without service, and it ends between two commands at once, as a server's
    /// sessions do.
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
