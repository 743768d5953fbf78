//! Advice in the log about accounts whose calls are relayed because of how their app connects.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use tracing::Span;

use super::log_span::log_in;

use crate::clock;

/// Interval at which the advice for an account is repeated.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Accounts whose advice is remembered; the oldest makes room.
const MAX_ACCOUNTS: NonZeroUsize = NonZeroUsize::new(1_000).expect("above 0");
/// Bytes of an account's name that are remembered and logged; servers have names of up to 128 characters.
const NAME_BYTES: usize = 512;

/// The accounts advised about, each with the time.
#[derive(Debug)]
pub struct AccountAdvice(Mutex<LruCache<Vec<u8>, Instant>>);

impl Default for AccountAdvice {
    fn default() -> AccountAdvice {
        AccountAdvice(Mutex::new(LruCache::new(MAX_ACCOUNTS)))
    }
}

impl AccountAdvice {
    /// Logs that calls of this account are relayed because its sessions have autocommit off.
    pub fn warn_autocommit_off(&self, account: &[u8], span: impl FnOnce() -> Span) {
        let account = account.get(..NAME_BYTES).unwrap_or(account);
        if self.is_due(account, clock::now()) {
            log_in!(
                span(),
                WARN,
                "calls of the account {:?} are relayed, since its sessions have autocommit off: have the app connect with autocommit \
                 (autocommit=True with most Python drivers; docs/connecting.md has each)",
                String::from_utf8_lossy(account)
            );
        }
    }

    fn is_due(&self, account: &[u8], now: Instant) -> bool {
        let mut advised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| now.duration_since(*at) < REPEAT_INTERVAL;
        if advised.peek(account).is_some_and(is_recent) {
            return false;
        }
        advised.put(account.to_vec(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_logged_once_an_hour_and_each_separately() {
        let (advice, began) = (AccountAdvice::default(), Instant::now());
        assert!(advice.is_due(b"app", began));
        assert!(!advice.is_due(b"app", began + Duration::from_secs(3_599)));
        assert!(advice.is_due(b"batch", began));
        assert!(advice.is_due(b"app", began + Duration::from_secs(3_600)));
    }

    #[test]
    fn no_more_accounts_are_remembered_than_the_limit() {
        let (advice, began) = (AccountAdvice::default(), Instant::now());
        for number in 0..2 * MAX_ACCOUNTS.get() {
            assert!(advice.is_due(number.to_string().as_bytes(), began));
        }
        let told = advice.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(told.len(), MAX_ACCOUNTS.get());
    }
}
