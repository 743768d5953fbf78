//! Counts relayed SELECTs for `headwater discover --listen`, and logs slow ones.

use std::sync::PoisonError;

use super::state::Session;
use crate::clock;
use headwater_feed::tally::CompletedStatement;

impl Session {
    /// The client's bytes are on their way to the server.
    pub(super) fn note_sent(&mut self) {
        if (self.shared.tally.is_some() || self.slow_timer.is_some())
            && let Some(commands) = self.machine.commands()
        {
            commands.sent(clock::now());
        }
    }

    /// The server has sent bytes: replies may have ended.
    pub(super) fn note_ended(&mut self) {
        self.log_slow_replies();
        let Some(tally) = &self.shared.tally else {
            return;
        };
        let Some(commands) = self.machine.commands() else {
            return;
        };
        let selects = commands.take_watched_selects();
        if selects.is_empty() {
            return;
        }
        let now = clock::now();
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        for select in selects {
            tally.add(CompletedStatement {
                database: select.database.as_deref(),
                text: &select.text,
                prepared: select.prepared,
                duration: now.saturating_duration_since(select.sent),
                rows: select.rows,
            });
        }
    }
}
