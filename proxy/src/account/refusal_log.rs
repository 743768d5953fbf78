//! Logs that the server refuses the service account: once, until the refusal changes or an hour has passed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::AccountError;

use crate::clock;

/// An unchanged refusal is logged again after this long.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Shared by all connections of an account.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusalLog(Arc<Mutex<Option<(String, Instant)>>>);

impl RefusalLog {
    pub(super) fn record<T>(&self, login: &Result<T, AccountError>) {
        match login {
            Ok(_) => {
                if self.take().is_some() {
                    tracing::info!("the server lets the service account in");
                }
            }
            Err(error) if error.is_refusal() => {
                let text = error.to_string();
                if self.is_new(&text, clock::now()) {
                    tracing::warn!("nothing is answered from memory: {text}");
                }
            }
            Err(_) => {}
        }
    }

    fn take(&self) -> Option<(String, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_new(&self, text: &str, now: Instant) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = logged.as_ref().is_some_and(|(before, at)| {
            before == text && now.duration_since(*at) < REPEAT_INTERVAL
        });
        if !known {
            *logged = Some((text.to_owned(), now));
        }
        !known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_said_once_and_again_when_it_changes_or_an_hour_has_passed() {
        let (told, began) = (RefusalLog::default(), Instant::now());
        assert!(told.is_new("denied", began));
        assert!(!told.is_new("denied", began + Duration::from_secs(3_599)));
        assert!(told.is_new("locked", began + Duration::from_secs(3_599)));
        assert!(!told.is_new("locked", began + Duration::from_secs(7_198)));
        assert!(told.is_new("locked", began + Duration::from_secs(7_199)));
    }
}
