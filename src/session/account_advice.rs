//! What is said to the operator about an account whose calls are relayed for the way in which its app connects.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use tracing::Span;

use super::log_span::log_in;

use crate::clock;

/// An account is told of again after so long.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Accounts of which it is remembered that they were told of; the one that was told of longest ago makes room.
const MAX_ACCOUNTS: NonZeroUsize = NonZeroUsize::new(1_000).expect("above 0");
/// So much of an account's name is remembered and said, in bytes; servers have names of up to 128 characters.
const NAME_BYTES: usize = 512;

/// Who was told of, and when.
#[derive(Debug)]
pub struct AccountAdvice(Mutex<LruCache<Vec<u8>, Instant>>);

impl Default for AccountAdvice {
    fn default() -> AccountAdvice {
        AccountAdvice(Mutex::new(LruCache::new(MAX_ACCOUNTS)))
    }
}

impl AccountAdvice {
    /// A call of this account is relayed because its session has autocommit off.
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
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = |at: &Instant| now.duration_since(*at) < REPEAT_INTERVAL;
        if told.peek(account).is_some_and(lately) {
            return false;
        }
        told.put(account.to_vec(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_told_of_once_an_hour_and_each_by_itself() {
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
