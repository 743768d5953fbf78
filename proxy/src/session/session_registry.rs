//! The registry of sessions: the current activity of each. A session writes its own record, without locks.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use crate::clock::coarse_ms;
use headwater_session::machine::SessionActivity;

/// Number of lists, to spread contention.
const LIST_COUNT: usize = 16;
/// Bytes of an account's name that are kept.
const NAME_BYTES: usize = 512;

/// One session.
#[derive(Debug)]
pub struct SessionRecord {
    /// The client's address; `None`: a Unix socket.
    pub client: Option<SocketAddr>,
    begun_ms: u64,
    state: AtomicU8,
    /// Start of that activity, in milliseconds since the session began.
    since_ms: AtomicU64,
    thread_id: AtomicU32,
    account: OnceLock<Box<[u8]>>,
    bytes: ByteCounters,
    finished_bytes: Arc<ByteCounters>,
}

impl Drop for SessionRecord {
    fn drop(&mut self) {
        let [to_server, to_client] = self.bytes.load();
        self.finished_bytes
            .to_server
            .fetch_add(to_server, Ordering::Relaxed);
        self.finished_bytes
            .to_client
            .fetch_add(to_client, Ordering::Relaxed);
    }
}

/// Every session.
#[derive(Debug, Default)]
pub struct SessionRegistry {
    lists: [Mutex<Vec<Weak<SessionRecord>>>; LIST_COUNT],
    next: AtomicU64,
    /// Bytes of sessions that have ended.
    finished_bytes: Arc<ByteCounters>,
}

/// Bytes transferred.
#[derive(Debug, Default)]
pub struct ByteCounters {
    to_server: AtomicU64,
    to_client: AtomicU64,
}

impl ByteCounters {
    fn load(&self) -> [u64; 2] {
        [&self.to_server, &self.to_client].map(|bytes| bytes.load(Ordering::Relaxed))
    }
}

impl SessionRegistry {
    /// Registers a session, for as long as the record is held.
    #[must_use]
    pub fn register(&self, client: Option<SocketAddr>) -> Arc<SessionRecord> {
        let listed = Arc::new(SessionRecord {
            client,
            begun_ms: coarse_ms(),
            state: AtomicU8::new(SessionActivity::LoggingIn as u8),
            since_ms: AtomicU64::new(0),
            thread_id: AtomicU32::new(0),
            account: OnceLock::new(),
            bytes: ByteCounters::default(),
            finished_bytes: Arc::clone(&self.finished_bytes),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let list = usize::try_from(number % LIST_COUNT as u64).unwrap_or_default();
        if let Some(list) = self.lists.get(list) {
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            // Ended sessions make room, so that the list is at most twice as long as needed.
            if list.len() == list.capacity() {
                list.retain(|listed| listed.strong_count() > 0);
                let more = list.len().max(8);
                list.reserve(more);
            }
            list.push(Arc::downgrade(&listed));
        }
        listed
    }

    /// All current sessions.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<SessionRecord>> {
        let mut all = Vec::new();
        for list in &self.lists {
            let list = list.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(list.iter().filter_map(Weak::upgrade));
        }
        all
    }

    /// Bytes sent to servers and to clients.
    #[must_use]
    pub fn bytes(&self) -> [u64; 2] {
        let all = self.all();
        let now = all.iter().map(|listed| listed.bytes.load());
        // Last: a session that ends meanwhile is then counted twice for a moment, but never missed.
        now.fold(self.finished_bytes.load(), |[a, b], [c, d]| [a + c, b + d])
    }
}

impl SessionRecord {
    /// Sets the current activity.
    pub(super) fn set_activity(&self, state: SessionActivity) {
        // Only the session itself writes here.
        if self.state.load(Ordering::Relaxed) != state as u8 {
            self.state.store(state as u8, Ordering::Relaxed);
            let since = coarse_ms().saturating_sub(self.begun_ms);
            self.since_ms.store(since, Ordering::Relaxed);
        }
    }

    pub(super) fn add_to_server(&self, bytes: usize) {
        add(&self.bytes.to_server, bytes);
    }

    pub(super) fn add_to_client(&self, bytes: usize) {
        add(&self.bytes.to_client, bytes);
    }

    /// Bytes sent to the server, and to the client.
    #[must_use]
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes.load()
    }

    /// Records the login.
    pub(super) fn set_login(&self, thread: Option<u32>, account: Option<&[u8]>) {
        self.thread_id
            .store(thread.unwrap_or_default(), Ordering::Relaxed);
        if let Some(account) = account {
            let name = account.get(..NAME_BYTES).unwrap_or(account);
            let _ = self.account.set(name.into());
        }
    }

    /// The current activity.
    #[must_use]
    pub fn activity(&self) -> SessionActivity {
        let number = self.state.load(Ordering::Relaxed);
        let mut states = SessionActivity::ALL.into_iter();
        states
            .find(|state| *state as u8 == number)
            .unwrap_or(SessionActivity::Unfollowed)
    }

    /// Time in the current activity.
    #[must_use]
    pub fn since(&self) -> Duration {
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        self.age().saturating_sub(since)
    }

    /// Time since the session began.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_millis(coarse_ms().saturating_sub(self.begun_ms))
    }

    /// The server's thread id.
    #[must_use]
    pub fn thread_id(&self) -> Option<u32> {
        Some(self.thread_id.load(Ordering::Relaxed)).filter(|thread| *thread > 0)
    }

    /// The account of the first login.
    #[must_use]
    pub fn account(&self) -> Option<String> {
        let account = self.account.get()?;
        Some(String::from_utf8_lossy(account).into_owned())
    }
}

/// Only the session itself writes, so no read-modify-write is needed.
fn add(counter: &AtomicU64, bytes: usize) {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before.wrapping_add(bytes as u64), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_gone_is_not_listed_and_takes_no_room() {
        let sessions = SessionRegistry::default();
        let stays = sessions.register(None);
        for _ in 0..10_000 {
            drop(sessions.register(None));
        }
        stays.set_activity(SessionActivity::Busy);
        stays.set_login(Some(7), Some(b"app"));
        let all = sessions.all();
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.activity(), one.thread_id(), one.account()))
            .collect();
        assert_eq!(
            told,
            [(SessionActivity::Busy, Some(7), Some("app".to_owned()))]
        );
        let lists = sessions.lists.iter();
        let kept: usize = lists
            .flat_map(Mutex::lock)
            .map(|list| list.capacity())
            .sum();
        assert!(kept < 1_000, "{kept}");
    }
}
