//! Has SELECTs that went by be counted, where somebody wants to know: `headwater discover --listen`. What takes long is noted by the way.

use std::sync::PoisonError;

use super::state::Session;
use crate::clock;
use crate::feed::tally::CompletedStatement;

impl Session {
    /// What the client has sent is on its way to the server.
    pub(super) fn note_sent(&mut self) {
        if (self.shared.tally.is_some() || self.slow_timer.is_some())
            && let Some(commands) = self.machine.commands()
        {
            commands.sent(clock::now());
        }
    }

    /// The server has spoken: replies may have ended.
    pub(super) fn note_ended(&mut self) {
        self.log_slow_replies();
        let Some(tally) = &self.shared.tally else {
            return;
        };
        let Some(commands) = self.machine.commands() else {
            return;
        };
        let seen = commands.take_watched_selects();
        if seen.is_empty() {
            return;
        }
        let now = clock::now();
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        for seen in seen {
            tally.add(CompletedStatement {
                database: seen.database.as_deref(),
                text: &seen.text,
                prepared: seen.prepared,
                duration: now.saturating_duration_since(seen.sent),
                rows: seen.rows,
            });
        }
    }
}
