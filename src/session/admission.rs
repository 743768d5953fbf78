//! What lets a session in: its places among all, and among those of its address and of its account. Who has lost its server gives them
//! back, though its client has not read what the server said at the end.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::quota::Taken;

/// So many sessions are there beside those that have places, for as long as their clients may read.
const MOST_LINGERING: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Admission {
    of_all: Option<OwnedSemaphorePermit>,
    of_address: Option<Taken<IpAddr>>,
    of_account: Option<Taken<Box<[u8]>>>,
    lingering: Arc<Semaphore>,
    /// Taken in place of the others.
    lingers: Option<OwnedSemaphorePermit>,
}

impl Admission {
    /// Room for those who have given their places back.
    #[must_use]
    pub fn room_to_linger() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MOST_LINGERING))
    }

    /// With a place among all.
    #[must_use]
    pub fn new(of_all: OwnedSemaphorePermit, lingering: Arc<Semaphore>) -> Admission {
        Admission {
            of_all: Some(of_all),
            of_address: None,
            of_account: None,
            lingering,
            lingers: None,
        }
    }

    /// Another one, among those of its address, where these are limited.
    pub fn take_of_address(&mut self, place: Option<Taken<IpAddr>>) {
        self.of_address = place;
    }

    /// The same of its account.
    pub(super) fn take_of_account(&mut self, place: Option<Taken<Box<[u8]>>>) {
        self.of_account = place;
    }

    pub(super) fn has_of_account(&self) -> bool {
        self.of_account.is_some()
    }

    /// Gives all of them back, once and if there is room to linger without.
    pub(super) fn give_back(&mut self) {
        if self.of_all.is_none() {
            return;
        }
        if let Ok(lingers) = Arc::clone(&self.lingering).try_acquire_owned() {
            self.lingers = Some(lingers);
            (self.of_all, self.of_address, self.of_account) = (None, None, None);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::session::quota::Quota;

    #[test]
    fn places_are_given_back_where_there_is_room_to_linger() {
        let (all, lingering) = (Arc::new(Semaphore::new(2)), Arc::new(Semaphore::new(1)));
        let accounts = Arc::new(Quota::default());
        let account: Box<[u8]> = Box::from(&b"app"[..]);
        let admit = || {
            let place = Arc::clone(&all).try_acquire_owned().unwrap();
            Admission::new(place, Arc::clone(&lingering))
        };
        let (mut first, mut second) = (admit(), admit());
        first.take_of_account(accounts.take(account.clone(), 1));
        assert!(first.has_of_account() && accounts.take(account.clone(), 1).is_none());
        for _ in 0..2 {
            first.give_back();
            assert_eq!(all.available_permits(), 1);
        }
        assert!(accounts.take(account, 1).is_some());
        second.give_back();
        assert_eq!(all.available_permits(), 1);
        drop(first);
        second.give_back();
        assert_eq!(
            (all.available_permits(), lingering.available_permits()),
            (2, 0)
        );
        drop(second);
        assert_eq!(lingering.available_permits(), 1);
    }
}
