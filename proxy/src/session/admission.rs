//! The permits that admit a session: one of all, one of its address, one of its account. A session that lost its server returns them,
//! though its client has not read the server's last bytes.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::quota::QuotaPermit;

/// Sessions without permits that may exist while their clients read.
const MAX_LINGERING: usize = 64;

/// The permits of one session.
#[derive(Debug)]
pub struct SessionAdmission {
    session_permit: Option<OwnedSemaphorePermit>,
    address_permit: Option<QuotaPermit<IpAddr>>,
    account_permit: Option<QuotaPermit<Box<[u8]>>>,
    linger_permits: Arc<Semaphore>,
    /// Held instead of the other permits.
    linger_permit: Option<OwnedSemaphorePermit>,
}

impl SessionAdmission {
    /// Permits for sessions that have returned the others.
    #[must_use]
    pub fn linger_permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MAX_LINGERING))
    }

    /// Starts with a permit of all sessions.
    #[must_use]
    pub fn new(of_all: OwnedSemaphorePermit, lingering: Arc<Semaphore>) -> SessionAdmission {
        SessionAdmission {
            session_permit: Some(of_all),
            address_permit: None,
            account_permit: None,
            linger_permits: lingering,
            linger_permit: None,
        }
    }

    /// Adds the permit of its address, if these are limited.
    pub fn set_address_permit(&mut self, permit: Option<QuotaPermit<IpAddr>>) {
        self.address_permit = permit;
    }

    /// Adds the permit of its account, if these are limited.
    pub(super) fn set_account_permit(&mut self, permit: Option<QuotaPermit<Box<[u8]>>>) {
        self.account_permit = permit;
    }

    pub(super) fn has_account_permit(&self) -> bool {
        self.account_permit.is_some()
    }

    /// Returns all permits, once, if a linger permit is free.
    pub(super) fn release(&mut self) {
        if self.session_permit.is_none() {
            return;
        }
        if let Ok(lingers) = Arc::clone(&self.linger_permits).try_acquire_owned() {
            self.linger_permit = Some(lingers);
            (
                self.session_permit,
                self.address_permit,
                self.account_permit,
            ) = (None, None, None);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::session::quota::SessionQuota;

    #[test]
    fn places_are_given_back_where_there_is_room_to_linger() {
        let (all, lingering) = (Arc::new(Semaphore::new(2)), Arc::new(Semaphore::new(1)));
        let accounts = Arc::new(SessionQuota::default());
        let account: Box<[u8]> = Box::from(&b"app"[..]);
        let admit = || {
            let place = Arc::clone(&all).try_acquire_owned().unwrap();
            SessionAdmission::new(place, Arc::clone(&lingering))
        };
        let (mut first, mut second) = (admit(), admit());
        first.set_account_permit(accounts.acquire(account.clone(), 1));
        assert!(first.has_account_permit() && accounts.acquire(account.clone(), 1).is_none());
        for _ in 0..2 {
            first.release();
            assert_eq!(all.available_permits(), 1);
        }
        assert!(accounts.acquire(account, 1).is_some());
        second.release();
        assert_eq!(all.available_permits(), 1);
        drop(first);
        second.release();
        assert_eq!(
            (all.available_permits(), lingering.available_permits()),
            (2, 0)
        );
        drop(second);
        assert_eq!(lingering.available_permits(), 1);
    }
}
