//! What lets a session in: its places among all, and among those of its address and of its account. Who has lost its server gives them
//! back, though its client has not read what the server said at the end.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::quota::QuotaPermit;

/// So many sessions are there beside those that have places, for as long as their clients may read.
const MAX_LINGERING: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct SessionAdmission {
    session_permit: Option<OwnedSemaphorePermit>,
    address_permit: Option<QuotaPermit<IpAddr>>,
    account_permit: Option<QuotaPermit<Box<[u8]>>>,
    linger_permits: Arc<Semaphore>,
    /// Taken in place of the others.
    linger_permit: Option<OwnedSemaphorePermit>,
}

impl SessionAdmission {
    /// Room for those who have given their places back.
    #[must_use]
    pub fn linger_permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MAX_LINGERING))
    }

    /// With a place among all.
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

    /// Another one, among those of its address, where these are limited.
    pub fn set_address_permit(&mut self, place: Option<QuotaPermit<IpAddr>>) {
        self.address_permit = place;
    }

    /// The same of its account.
    pub(super) fn set_account_permit(&mut self, place: Option<QuotaPermit<Box<[u8]>>>) {
        self.account_permit = place;
    }

    pub(super) fn has_account_permit(&self) -> bool {
        self.account_permit.is_some()
    }

    /// Gives all of them back, once and if there is room to linger without.
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
