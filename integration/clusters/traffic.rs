//! Traffic through a Headwater before several servers during an event such as a failover: readers, writers, and idle sessions; and the
//! checks of each answer.
//!
//! No client deletes, and each author's ids grow. An answer must contain every message acknowledged before its call, unless newer ones
//! displace it from the page. The session's next statement must find each message that an answer names.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::kit::proxy::Proxy;
use crate::kit::wire_client::answer::answers;
use crate::kit::wire_client::{Answer, Login, WireClient};

/// The number of authors. Each has a writer, and every reader follows all.
pub(super) const WRITERS: u64 = 4;
const READERS: u64 = 8;
const AT_REST: usize = 200;
/// The pause of readers and writers between two statements.
const REST: Duration = Duration::from_millis(4);
/// The ids of each author in an answer.
const PAGE: usize = 20;
/// The errors of a session that ends, or finds no server: from Headwater, or from the server.
const ENDED: [u16; 3] = [1053, 1927, 1429];
const PATIENCE: Duration = Duration::from_secs(60);

/// The measurements of one event.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// From the event's start until the last idle session was closed; `None` where the test did not wait for that.
    pub(super) closed: Option<Duration>,
    /// From the promotion until the first served call, and until the first answer from memory.
    pub(super) owned: Duration,
    pub(super) remembered: Duration,
    /// The percentage of calls that memory answered, from two seconds after the promotion on.
    pub(super) share: u64,
    pub(super) answers: u64,
    pub(super) writes: u64,
}

pub(super) struct Traffic<'a> {
    proxy: &'a Proxy,
    login: &'a Login,
    /// The acknowledged ids of each author.
    acknowledged: Vec<Mutex<BTreeSet<u64>>>,
    next: AtomicU64,
    stop: AtomicBool,
    answered: AtomicU64,
    /// Server errors other than [`ENDED`], by code.
    errors: Mutex<BTreeMap<u16, u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the rows that all traffic needs.
pub(super) fn prepare(root: &mut WireClient) {
    for reader in 1..=READERS {
        for author in 1..=WRITERS {
            root.ok(&format!("INSERT INTO follower VALUES ({reader}, {author})"));
        }
    }
}

impl<'a> Traffic<'a> {
    pub(super) fn new(proxy: &'a Proxy, login: &'a Login) -> Traffic<'a> {
        Traffic {
            proxy,
            login,
            acknowledged: (0..WRITERS).map(|_| Mutex::default()).collect(),
            next: AtomicU64::new(1),
            stop: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            errors: Mutex::default(),
        }
    }

    /// Runs traffic during `event` and until memory answers again. `event` returns the time from which there is a primary again. `ends`:
    /// the event ends the existing sessions.
    #[track_caller]
    pub(super) fn through(&self, ends: bool, event: impl FnOnce() -> Instant) -> Report {
        let mut report = Report::default();
        thread::scope(|scope| {
            let mut all = Vec::new();
            for number in 0..WRITERS {
                all.push(scope.spawn(move || self.write(number)));
            }
            for number in 0..READERS {
                all.push(scope.spawn(move || self.read(number)));
            }
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut resting: Vec<WireClient> =
                    (0..AT_REST).map(|_| self.proxy.login(self.login)).collect();
                self.wait_for(200, "answers before");
                let begun = Instant::now();
                let closing = ends.then(|| {
                    scope.spawn(move || {
                        for client in &mut resting {
                            while client.read_packet().is_ok() {}
                        }
                        begun.elapsed()
                    })
                });
                let there = event();
                let before = self.counts();
                report.owned = self.until("an owned call", there, || self.counts()[0] > before[0]);
                report.remembered =
                    self.until("a call from memory", there, || self.counts()[1] > before[1]);
                thread::sleep(Duration::from_secs(2).saturating_sub(there.elapsed()));
                let from = self.counts();
                self.wait_for(500, "answers behind");
                let to = self.counts();
                report.share = (to[1] - from[1]) * 100 / (to[2] - from[2]).max(1);
                report.closed = closing.map(|closing| closing.join().unwrap());
            }));
            self.stop.store(true, Ordering::Relaxed);
            let failed: Vec<_> = all.into_iter().filter_map(|one| one.join().err()).collect();
            // A reader's failure says more than a timeout after it.
            if let Some(failed) = failed.into_iter().next() {
                std::panic::resume_unwind(failed);
            }
            if let Err(failed) = outcome {
                std::panic::resume_unwind(failed);
            }
        });
        report.answers = self.answered.load(Ordering::Relaxed);
        report.writes = self
            .acknowledged
            .iter()
            .map(|ids| lock(ids).len() as u64)
            .sum();
        self.stop.store(false, Ordering::Relaxed);
        report
    }

    /// Server errors of sessions other than their end, by code.
    pub(super) fn errors(&self) -> BTreeMap<u16, u64> {
        lock(&self.errors).clone()
    }

    /// Checks that no acknowledged message is missing, and that every page equals the procedure's on that server.
    #[track_caller]
    pub(super) fn ends_on(&self, server: SocketAddr) {
        let mut direct = WireClient::login(server, self.login);
        let mut own = self.proxy.login(self.login);
        for (author, acknowledged) in (1..).zip(&self.acknowledged) {
            let there = direct.column(&format!("SELECT id FROM message WHERE user_id = {author}"));
            let there: BTreeSet<u64> = there.iter().map(|id| id.parse().unwrap()).collect();
            let missing: Vec<u64> = lock(acknowledged).difference(&there).copied().collect();
            assert!(missing.is_empty(), "the servers have lost {missing:?}");
        }
        for reader in 1..=READERS {
            let pages = [&mut own, &mut direct].map(|client| {
                client.ok(&format!("CALL fetch_timeline_ids({reader})"));
                client.column("SELECT id FROM fetch_timeline_tt ORDER BY id")
            });
            assert_eq!(pages[0], pages[1], "reader {reader}: {}", self.proxy.log());
        }
    }

    /// The counts of served calls, of calls from memory, and of all calls.
    fn counts(&self) -> [u64; 3] {
        let counts = self.proxy.counts();
        let owned = counts.of("calls_owned");
        [
            owned,
            counts.of("calls_from_memory"),
            owned + counts.relayed(),
        ]
    }

    #[track_caller]
    fn until(&self, what: &str, since: Instant, is_so: impl Fn() -> bool) -> Duration {
        while !is_so() {
            assert!(
                since.elapsed() < PATIENCE,
                "no {what}:\n{}",
                self.proxy.log()
            );
            assert!(
                !self.stop.load(Ordering::Relaxed),
                "a reader or writer has failed"
            );
            thread::sleep(Duration::from_millis(10));
        }
        since.elapsed()
    }

    #[track_caller]
    fn wait_for(&self, more: u64, what: &str) {
        let wanted = self.answered.load(Ordering::Relaxed) + more;
        let is_so = || self.answered.load(Ordering::Relaxed) >= wanted;
        self.until(what, Instant::now(), is_so);
    }

    /// Logs in, and retries until it succeeds; `None` once the traffic stops.
    fn session(&self) -> Option<WireClient> {
        while !self.stop.load(Ordering::Relaxed) {
            match WireClient::try_login(self.proxy.addr(), self.login) {
                Ok(Ok(client)) => return Some(client),
                Ok(Err(refused)) => self.note(refused.code),
                Err(_) => {}
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }

    fn note(&self, code: u16) {
        if !ENDED.contains(&code) {
            *lock(&self.errors).entry(code).or_default() += 1;
        }
    }

    /// The rows of a statement; `None` where the session has become unusable.
    fn ask(&self, client: &mut WireClient, statement: &str) -> io::Result<Option<Vec<u64>>> {
        let reply = client.query_reply(statement)?;
        match answers(&reply.packets, client.capabilities)
            .into_iter()
            .next()
        {
            Some(Answer::Rows(rows)) => {
                let ids = rows
                    .rows
                    .iter()
                    .filter_map(|row| row[0].as_deref()?.parse().ok());
                Ok(Some(ids.collect()))
            }
            Some(Answer::Ok(_)) => Ok(Some(Vec::new())),
            Some(Answer::Err(error)) => {
                self.note(error.code);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn write(&self, number: u64) {
        let author = number + 1;
        while let Some(mut client) = self.session() {
            while !self.stop.load(Ordering::Relaxed) {
                let id = self.next.fetch_add(1, Ordering::Relaxed);
                let insert = format!(
                    "INSERT INTO message (id, user_id, body) VALUES ({id}, {author}, 'text')"
                );
                match self.ask(&mut client, &insert) {
                    Ok(Some(_)) => lock(&self.acknowledged[number as usize]).insert(id),
                    _ => break,
                };
                thread::sleep(REST);
            }
        }
    }

    fn read(&self, number: u64) {
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while let Some(mut client) = self.session() {
                while !self.stop.load(Ordering::Relaxed) {
                    match self.look(&mut client, 1 + number) {
                        Ok(true) => self.answered.fetch_add(1, Ordering::Relaxed),
                        _ => break,
                    };
                    // The pause leaves processor time to the servers, which share this machine.
                    thread::sleep(REST);
                }
            }
        }));
        if let Err(failed) = failed {
            self.stop.store(true, Ordering::Relaxed);
            std::panic::resume_unwind(failed);
        }
    }

    /// Checks one answer; false where the session has ended.
    fn look(&self, client: &mut WireClient, reader: u64) -> io::Result<bool> {
        let before: Vec<Vec<u64>> = self
            .acknowledged
            .iter()
            .map(|ids| lock(ids).iter().rev().take(PAGE).copied().collect())
            .collect();
        if self
            .ask(client, &format!("CALL fetch_timeline_ids({reader})"))?
            .is_none()
        {
            return Ok(false);
        }
        let Some(answer) = self.ask(client, "SELECT id FROM fetch_timeline_tt")? else {
            return Ok(false);
        };
        let named: Vec<String> = answer.iter().map(ToString::to_string).collect();
        let named = named.join(",");
        let mut own: Vec<BTreeSet<u64>> = Vec::new();
        for author in 1..=WRITERS {
            let named = if named.is_empty() { "NULL" } else { &named };
            let query =
                format!("SELECT id FROM message WHERE user_id = {author} AND id IN ({named})");
            let Some(there) = self.ask(client, &query)? else {
                return Ok(false);
            };
            own.push(there.into_iter().collect());
        }
        let there: usize = own.iter().map(BTreeSet::len).sum();
        assert_eq!(
            there,
            answer.len(),
            "ahead: of {answer:?} only {own:?} can be read\n{}",
            self.proxy.log()
        );
        for (author, (acknowledged, own)) in (1..).zip(before.iter().zip(&own)) {
            let least = match own.len() >= PAGE {
                true => own.first().copied().unwrap_or_default(),
                false => 0,
            };
            let missing: Vec<&u64> = acknowledged
                .iter()
                .filter(|id| **id >= least && !own.contains(id))
                .collect();
            assert!(
                missing.is_empty(),
                "stale: author {author} lacks {missing:?}, in {own:?}\n{}",
                self.proxy.log()
            );
        }
        Ok(true)
    }
}
