//! Rights that sessions of an account have proved, for new sessions of the same account.
//!
//! An app that connects for each page has no session that lives long enough to prove its own rights. A server takes an account's rights
//! from its tables when a session logs in and when it enters a database. So what one session may read, a later one of the same account,
//! host, roles and server may read as well, unless the right was taken between the two logins. If the first logged in less than
//! `privileges.ttl_s` ago, that was not longer ago: a page from memory may ignore it (see `docs/rows.md`). An earlier session is no such
//! one: the right may have been given since, and the server goes on refusing.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::session_state::SessionState;

/// Proved rights: who read which template, and when the session that proved it logged in.
#[derive(Debug)]
pub struct AccountRights {
    proofs: Mutex<LruCache<RightKey, Instant>>,
}

/// A template's number, and the server's word for who reads: server, user, host and roles.
type RightKey = (u64, Box<[u8]>);

/// About one megabyte.
const MAX_PROOFS: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();
/// A list of roles may be long; longer identities prove nothing.
const MAX_IDENTITY_BYTES: usize = 512;

impl Default for AccountRights {
    fn default() -> Self {
        AccountRights {
            proofs: Mutex::new(LruCache::new(MAX_PROOFS)),
        }
    }
}

impl AccountRights {
    /// The server has answered a statement of this template that the session sent at `sent`. A proof counts for `within`.
    pub fn template_answered(
        &self,
        state: &mut SessionState,
        template: u64,
        within: Duration,
        sent: Instant,
    ) {
        state.template_answered(template, sent);
        let is_old = |login: Instant| sent.saturating_duration_since(login) >= within;
        if state.login_began().is_none_or(is_old) {
            return;
        }
        if let Some((key, login)) = right_key(state, template) {
            let mut proofs = self.proofs();
            // The older one helps more sessions: it is replaced once half of its time is over.
            let is_aged = |known: &Instant| sent.saturating_duration_since(*known) >= within / 2;
            if proofs.get(&key).is_none_or(is_aged) {
                proofs.put(key, login);
            }
        }
    }

    /// True where the session may read this template's tables: it proved so itself within this time before `now`, or an earlier session of
    /// the account did that logged in within this time.
    #[must_use]
    pub fn may_read(
        &self,
        state: &SessionState,
        template: u64,
        within: Duration,
        now: Instant,
    ) -> bool {
        if state.may_read_template(template, within, now) {
            return true;
        }
        let is_recent = |login: Instant| now.saturating_duration_since(login) < within;
        right_key(state, template).is_some_and(|(key, login)| {
            let mut proofs = self.proofs();
            proofs
                .get(&key)
                .is_some_and(|at| *at <= login && is_recent(*at))
        })
    }

    fn proofs(&self) -> MutexGuard<'_, LruCache<RightKey, Instant>> {
        self.proofs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `None`: the session's account, or when it logged in, is uncertain.
fn right_key(state: &SessionState, template: u64) -> Option<(RightKey, Instant)> {
    let login = state.login_began()?;
    let (server, account) = state.account()?;
    (account.len() <= MAX_IDENTITY_BYTES)
        .then(|| ((template, [server, &[0], account].concat().into()), login))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
