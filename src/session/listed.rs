//! The sessions that there are: what each was seen doing last. A session writes into its own place, and waits for nobody.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use super::machine::Doing;
use crate::clock::coarse_ms;

/// Sessions come and go in so many lists.
const LISTS: usize = 16;
/// So much of an account's name is kept.
const NAME_BYTES: usize = 512;

/// One session.
#[derive(Debug)]
pub struct Listed {
    /// The client's address; `None` at the socket.
    pub client: Option<SocketAddr>,
    begun_ms: u64,
    state: AtomicU8,
    /// Since when it is in that state, in milliseconds since it began.
    since_ms: AtomicU64,
    thread: AtomicU32,
    account: OnceLock<Box<[u8]>>,
    bytes: Bytes,
    before: Arc<Bytes>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let [to_server, to_client] = self.bytes.told();
        self.before
            .to_server
            .fetch_add(to_server, Ordering::Relaxed);
        self.before
            .to_client
            .fetch_add(to_client, Ordering::Relaxed);
    }
}

/// Every session.
#[derive(Debug, Default)]
pub struct Sessions {
    lists: [Mutex<Vec<Weak<Listed>>>; LISTS],
    next: AtomicU64,
    /// Bytes of sessions that are gone.
    before: Arc<Bytes>,
}

/// Bytes that went through.
#[derive(Debug, Default)]
pub struct Bytes {
    to_server: AtomicU64,
    to_client: AtomicU64,
}

impl Bytes {
    fn told(&self) -> [u64; 2] {
        [&self.to_server, &self.to_client].map(|bytes| bytes.load(Ordering::Relaxed))
    }
}

impl Sessions {
    /// Lists another one, for as long as it is held.
    #[must_use]
    pub fn enter(&self, client: Option<SocketAddr>) -> Arc<Listed> {
        let listed = Arc::new(Listed {
            client,
            begun_ms: coarse_ms(),
            state: AtomicU8::new(Doing::LoggingIn as u8),
            since_ms: AtomicU64::new(0),
            thread: AtomicU32::new(0),
            account: OnceLock::new(),
            bytes: Bytes::default(),
            before: Arc::clone(&self.before),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let list = usize::try_from(number % LISTS as u64).unwrap_or_default();
        if let Some(list) = self.lists.get(list) {
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that are gone make room, so that the list is never twice as long as it was full.
            if list.len() == list.capacity() {
                list.retain(|listed| listed.strong_count() > 0);
                let more = list.len().max(8);
                list.reserve(more);
            }
            list.push(Arc::downgrade(&listed));
        }
        listed
    }

    /// All that there are now.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Listed>> {
        let mut all = Vec::new();
        for list in &self.lists {
            let list = list.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(list.iter().filter_map(Weak::upgrade));
        }
        all
    }

    /// Bytes that have gone to servers and to clients.
    #[must_use]
    pub fn bytes(&self) -> [u64; 2] {
        let all = self.all();
        let now = all.iter().map(|listed| listed.bytes.told());
        // Last, so that who ends meanwhile is counted twice for a moment rather than never: it is told again at the next look.
        now.fold(self.before.told(), |[a, b], [c, d]| [a + c, b + d])
    }
}

impl Listed {
    /// It is in this state now.
    pub(super) fn is(&self, state: Doing) {
        // Nobody else writes here.
        if self.state.load(Ordering::Relaxed) != state as u8 {
            self.state.store(state as u8, Ordering::Relaxed);
            let since = coarse_ms().saturating_sub(self.begun_ms);
            self.since_ms.store(since, Ordering::Relaxed);
        }
    }

    /// So many bytes more have gone to the server.
    pub(super) fn to_server(&self, bytes: usize) {
        add(&self.bytes.to_server, bytes);
    }

    /// So many bytes more have gone to the client.
    pub(super) fn to_client(&self, bytes: usize) {
        add(&self.bytes.to_client, bytes);
    }

    /// Bytes that have gone to the server, and to the client.
    #[must_use]
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes.told()
    }

    /// Its client has logged in.
    pub(super) fn knows(&self, thread: Option<u32>, account: Option<&[u8]>) {
        self.thread
            .store(thread.unwrap_or_default(), Ordering::Relaxed);
        if let Some(account) = account {
            let name = account.get(..NAME_BYTES).unwrap_or(account);
            let _ = self.account.set(name.into());
        }
    }

    /// What it does.
    #[must_use]
    pub fn doing(&self) -> Doing {
        let number = self.state.load(Ordering::Relaxed);
        let mut states = Doing::ALL.into_iter();
        states
            .find(|state| *state as u8 == number)
            .unwrap_or(Doing::Unfollowed)
    }

    /// For how long it has done so.
    #[must_use]
    pub fn since(&self) -> Duration {
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        self.age().saturating_sub(since)
    }

    /// How long there has been it.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_millis(coarse_ms().saturating_sub(self.begun_ms))
    }

    /// Its number at the server.
    #[must_use]
    pub fn thread(&self) -> Option<u32> {
        Some(self.thread.load(Ordering::Relaxed)).filter(|thread| *thread > 0)
    }

    /// Whom its client has logged in as first.
    #[must_use]
    pub fn account(&self) -> Option<String> {
        let account = self.account.get()?;
        Some(String::from_utf8_lossy(account).into_owned())
    }
}

/// Only the session itself counts, so that no other processor waits.
fn add(counter: &AtomicU64, bytes: usize) {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before.wrapping_add(bytes as u64), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_gone_is_not_listed_and_takes_no_room() {
        let sessions = Sessions::default();
        let stays = sessions.enter(None);
        for _ in 0..10_000 {
            drop(sessions.enter(None));
        }
        stays.is(Doing::Busy);
        stays.knows(Some(7), Some(b"app"));
        let all = sessions.all();
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.doing(), one.thread(), one.account()))
            .collect();
        assert_eq!(told, [(Doing::Busy, Some(7), Some("app".to_owned()))]);
        let lists = sessions.lists.iter();
        let kept: usize = lists
            .flat_map(Mutex::lock)
            .map(|list| list.capacity())
            .sum();
        assert!(kept < 1_000, "{kept}");
    }
}
