//! Messages and follows that writers change while readers query, and what a reader must get.
//!
//! Each thing (a message, a follow) is *settled* between the acknowledgement of a change and the beginning of the
//! next one. A thing that is settled from before a call until after it has to be in the answer in that state.
//! So few messages exist that the procedure's result set holds every message of every followed author.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::kit::how_many;
use crate::kit::patience;
use crate::kit::random::Random;
use crate::kit::wire_client::{Login, WireClient};

/// Each writer's authors; no other writer writes for them.
const AUTHORS: u64 = 2;
/// How many messages an author keeps.
const KEPT: usize = 12;
pub(crate) const READERS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    /// A message, by its author and id.
    Message(u64, u64),
    /// A follow, by its reader and author.
    Follow(u64, u64),
}

impl Thing {
    /// The SELECT that shows whether it exists.
    fn select(&self) -> String {
        match self {
            Thing::Message(_, id) => format!("SELECT 1 FROM message WHERE id = {id}"),
            Thing::Follow(reader, author) => format!(
                "SELECT 1 FROM follower WHERE user_id = {reader} AND follower_id = {author}"
            ),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    there: bool,
    settled: bool,
    version: u64,
}

/// The state that writers and readers share.
#[derive(Debug)]
pub(crate) struct World {
    things: Mutex<BTreeMap<Thing, State>>,
    next_id: AtomicU64,
    stop: AtomicBool,
    writes: AtomicU64,
    /// Each writer's longest pause between two changes.
    rest: Duration,
}

/// Busy writers take both processors from other tests, so they run without pauses only where many answers are to be checked.
fn rest() -> Duration {
    match how_many("HEADWATER_CHECKS", 0) {
        0 => Duration::from_millis(4),
        _ => Duration::ZERO,
    }
}

/// Writers run while this exists.
#[must_use]
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a World);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

impl Running<'_> {
    /// Runs the writers until all readers have ended, and fails with the first reader's failure.
    pub(crate) fn outlast(
        self,
        readers: Vec<ScopedJoinHandle<'_, ()>>,
        writers: Vec<ScopedJoinHandle<'_, ()>>,
    ) {
        let ended = readers.into_iter().map(ScopedJoinHandle::join);
        let failed: Vec<_> = ended.filter_map(Result::err).collect();
        drop(self);
        for writer in writers {
            writer.join().unwrap();
        }
        if let Some(failed) = failed.into_iter().next() {
            std::panic::resume_unwind(failed);
        }
    }
}

/// What was settled at one moment.
#[derive(Debug)]
pub(crate) struct Seen(BTreeMap<Thing, State>);

impl World {
    pub(crate) fn new(writers: u64) -> World {
        let world = World {
            things: Mutex::default(),
            next_id: AtomicU64::new(1),
            stop: AtomicBool::new(false),
            writes: AtomicU64::new(0),
            rest: rest(),
        };
        for reader in 1..=READERS {
            for author in 1..=writers * AUTHORS {
                let nothing = State {
                    there: false,
                    settled: true,
                    version: 0,
                };
                world.lock().insert(Thing::Follow(reader, author), nothing);
            }
        }
        world
    }

    /// Sets the writers' longest pause between changes.
    pub(crate) fn resting(self, rest: Duration) -> World {
        World { rest, ..self }
    }

    /// Runs writers and readers until the result is dropped, also by a panic, so that no thread waits for ever.
    pub(crate) fn run(&self) -> Running<'_> {
        self.stop.store(false, Ordering::Relaxed);
        Running(self)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Thing, State>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn look(&self) -> Seen {
        Seen(self.lock().clone())
    }

    fn begin(&self, changes: &[(Thing, bool)]) {
        let mut things = self.lock();
        for (thing, _) in changes {
            let state = things.entry(*thing).or_insert(State {
                there: false,
                settled: true,
                version: 0,
            });
            state.settled = false;
            state.version += 1;
        }
    }

    fn settle(&self, changes: &[(Thing, bool)]) {
        let mut things = self.lock();
        for (thing, there) in changes {
            if let Some(state) = things.get_mut(thing) {
                state.settled = true;
                state.there = *there;
            }
            // Ids are not reused, so old deleted messages can be forgotten.
        }
        let gone: Vec<Thing> = things
            .iter()
            .filter(|(thing, state)| {
                matches!(thing, Thing::Message(..)) && state.settled && !state.there
            })
            .map(|(thing, _)| *thing)
            .collect();
        // The newest ones stay: answers must not contain them.
        for thing in gone.iter().take(gone.len().saturating_sub(60)) {
            things.remove(thing);
        }
    }

    /// As [`Self::write`], on a server with other writers, while another server is read: a change is settled once that server
    /// (`shows`) has it. A change that is rolled back because of another writer's conflict is abandoned.
    pub(crate) fn write_among(
        &self,
        number: u64,
        addr: SocketAddr,
        shows: SocketAddr,
        login: &Login,
    ) {
        let mut random = Random(number + 77);
        let mut client = WireClient::login(addr, login);
        let mut witness = WireClient::login(shows, login);
        while !self.is_stopping() {
            let (mut changes, statements) = self.plan(number, &mut random);
            if changes.is_empty() {
                continue;
            }
            self.begin(&changes);
            for statement in &statements {
                let reply = client.query_reply(statement).unwrap();
                if reply.raw.get(4) == Some(&0xff) {
                    let said = String::from_utf8_lossy(&reply.raw).into_owned();
                    // ER_LOCK_DEADLOCK, and what a group reports on a conflict.
                    let conflict = ["40001", "conflicts", "rolled back"];
                    let is_conflict = conflict.iter().any(|word| said.contains(word));
                    assert!(is_conflict, "{statement}: {said}");
                    client.query("ROLLBACK");
                    for (thing, there) in &mut changes {
                        *there = !client.column(&thing.select()).is_empty();
                    }
                    break;
                }
            }
            for (thing, there) in &changes {
                let deadline = patience();
                while witness.column(&thing.select()).is_empty() == *there {
                    assert!(
                        Instant::now() < deadline,
                        "{thing:?} does not come to be {there}"
                    );
                }
            }
            self.settle(&changes);
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads the state of this writer's unsettled things after a lost connection.
    fn find_out(&self, number: u64, client: &mut WireClient) {
        let first = number * AUTHORS + 1;
        let own = first..first + AUTHORS;
        let unsettled: Vec<Thing> = self
            .lock()
            .iter()
            .filter(|(thing, state)| {
                let (Thing::Message(author, _) | Thing::Follow(_, author)) = thing;
                own.contains(author) && !state.settled
            })
            .map(|(thing, _)| *thing)
            .collect();
        for thing in unsettled {
            let rows = client.column(&thing.select());
            self.settle(&[(thing, !rows.is_empty())]);
        }
    }

    /// As [`Self::write`], with a new connection whenever the server is lost.
    pub(crate) fn write_through(&self, number: u64, addr: SocketAddr, login: &Login) {
        while !self.is_stopping() {
            // A server that shuts down refuses clients, with or without an error.
            let _ = self.write(number, addr, login);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Writes directly to the server as writer number `number` until `stop` is set. Returns when the server
    /// is unreachable: changes in progress then stay unsettled.
    pub(crate) fn write(
        &self,
        number: u64,
        addr: SocketAddr,
        login: &Login,
    ) -> std::io::Result<()> {
        let mut random = Random(number + 77);
        let mut client = match WireClient::try_login(addr, login)? {
            Ok(client) => client,
            Err(error) => return Err(std::io::Error::other(error.message)),
        };
        self.find_out(number, &mut client);
        while !self.is_stopping() {
            let (changes, statements) = self.plan(number, &mut random);
            if changes.is_empty() {
                continue;
            }
            self.begin(&changes);
            for statement in &statements {
                let reply = client.query_reply(statement)?;
                if reply.raw.get(4) == Some(&0xff) {
                    let said = String::from_utf8_lossy(&reply.raw).into_owned();
                    // During shutdown (1053), or killed by the test.
                    if ["shutdown", "killed"]
                        .iter()
                        .any(|word| said.contains(word))
                    {
                        return Err(std::io::Error::other(said));
                    }
                    panic!("{statement}: {said}");
                }
            }
            self.settle(&changes);
            self.writes.fetch_add(1, Ordering::Relaxed);
            if random.one_in(4) {
                std::thread::sleep(Duration::from_micros(random.below(1_500)));
            }
            if !self.rest.is_zero() {
                let most = self.rest.as_micros() as u64;
                std::thread::sleep(Duration::from_micros(random.below(most)));
            }
        }
        Ok(())
    }

    fn plan(&self, number: u64, random: &mut Random) -> (Vec<(Thing, bool)>, Vec<String>) {
        let author = number * AUTHORS + 1 + random.below(AUTHORS);
        let own: BTreeSet<u64> = self
            .lock()
            .iter()
            .filter_map(|(thing, state)| match thing {
                Thing::Message(whose, id) if *whose == author && state.there => Some(*id),
                _ => None,
            })
            .collect();
        let post = |changes: &mut Vec<(Thing, bool)>| {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            changes.push((Thing::Message(author, id), true));
            format!("INSERT INTO message (id, user_id, body) VALUES ({id}, {author}, 'text')")
        };
        let mut changes = Vec::new();
        let mut statements = Vec::new();
        match random.below(10) {
            // Adds or deletes a message.
            0..=4 if own.len() < KEPT => statements.push(post(&mut changes)),
            0..=5 => {
                let ids: Vec<u64> = own.into_iter().collect();
                if !ids.is_empty() {
                    let id = *random.pick(&ids);
                    changes.push((Thing::Message(author, id), false));
                    statements.push(format!("DELETE FROM message WHERE id = {id}"));
                }
            }
            // A change that changes nothing.
            6 => {
                if let Some(id) = own.last() {
                    changes.push((Thing::Message(author, *id), true));
                    statements.push(format!(
                        "UPDATE message SET body = CONCAT(body, 'x') WHERE id = {id}"
                    ));
                    if random.one_in(2) {
                        statements[0] = format!("UPDATE message SET body = 'y' WHERE id = {id}");
                    }
                }
            }
            7..=8 => {
                let reader = 1 + random.below(READERS);
                let follow = Thing::Follow(reader, author);
                let there = self.lock().get(&follow).is_some_and(|state| state.there);
                changes.push((follow, !there));
                statements.push(if there {
                    format!(
                        "DELETE FROM follower WHERE user_id = {reader} AND follower_id = {author}"
                    )
                } else {
                    format!(
                        "INSERT INTO follower (user_id, follower_id) VALUES ({reader}, {author})"
                    )
                });
            }
            // Several at once, with time for other commits before it.
            _ => {
                statements.push("BEGIN".into());
                if own.len() + 2 <= KEPT {
                    statements.push(post(&mut changes));
                    statements.push(post(&mut changes));
                }
                if let Some(id) = own.first().filter(|_| random.one_in(2)) {
                    changes.push((Thing::Message(author, *id), false));
                    statements.push(format!("DELETE FROM message WHERE id = {id}"));
                }
                statements.push("DO SLEEP(0.001)".into());
                statements.push("COMMIT".into());
            }
        }
        (changes, statements)
    }

    /// The first error in an answer: a thing that was settled from before the call until after it, and that the answer shows otherwise.
    pub(crate) fn fault(
        &self,
        reader: u64,
        before: &Seen,
        answer: &BTreeSet<u64>,
    ) -> Option<String> {
        self.fault_above(reader, before, answer, 0)
    }

    /// Checks that an answer has everything that was settled throughout the call, and nothing that was not readable after it.
    #[track_caller]
    pub(crate) fn is_neither_stale_nor_ahead(
        &self,
        (reader, before): (u64, &Seen),
        (answer, readable): (&BTreeSet<u64>, &BTreeSet<u64>),
        when: impl std::fmt::Display,
    ) {
        assert_eq!(self.fault(reader, before, answer), None, "{when}");
        let unread: BTreeSet<u64> = answer.difference(readable).copied().collect();
        let ahead = self.undeleted(&unread, before);
        assert!(ahead.is_empty(), "ahead: {ahead:?} could not be read");
    }

    /// As [`Self::fault`], for a page that ends with this message and may omit older ones.
    pub(crate) fn fault_above(
        &self,
        reader: u64,
        before: &Seen,
        answer: &BTreeSet<u64>,
        oldest: u64,
    ) -> Option<String> {
        let after = self.lock();
        let still = |thing: &Thing, state: &State| {
            state.settled
                && match after.get(thing) {
                    Some(now) => now.version == state.version && now.settled,
                    // Only deleted things are forgotten.
                    None => !state.there,
                }
        };
        for (thing, state) in &before.0 {
            let Thing::Message(author, id) = *thing else {
                continue;
            };
            let follow = Thing::Follow(reader, author);
            let Some(followed) = before.0.get(&follow) else {
                continue;
            };
            let message = still(thing, state);
            let edge = still(&follow, followed);
            let found = answer.contains(&id);
            if message && edge && state.there && followed.there && !found && id > oldest {
                return Some(format!(
                    "stale: reader {reader} lacks message {id} of author {author}"
                ));
            }
            if message && !state.there && found {
                return Some(format!("stale: message {id} of author {author} is gone"));
            }
            if edge && !followed.there && found {
                return Some(format!(
                    "stale: reader {reader} does not follow {author} any more"
                ));
            }
        }
        None
    }

    /// The answer's ids that must exist on the server after it, because no writer has begun to delete them.
    pub(crate) fn undeleted(&self, ids: &BTreeSet<u64>, deleted_since: &Seen) -> BTreeSet<u64> {
        let now = self.lock();
        ids.iter()
            .copied()
            .filter(|id| {
                let mut things = now.range(Thing::Message(0, 0)..Thing::Follow(0, 0));
                let own = things
                    .find(|(thing, _)| matches!(thing, Thing::Message(_, other) if other == id));
                own.is_some_and(|(thing, state)| match deleted_since.0.get(thing) {
                    // No change has begun since, and only its own insertion was in progress.
                    Some(before) => {
                        state.version == before.version && (before.settled || before.version == 1)
                    }
                    None => state.version == 1,
                })
            })
            .collect()
    }

    /// The number of acknowledged changes.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// No message has a greater id.
    pub(crate) fn newest_id(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
    }

    pub(crate) fn wait_for_writes(&self, count: u64) {
        let deadline = Instant::now() + Duration::from_secs(180);
        while self.writes() < count {
            assert!(Instant::now() < deadline, "the writers stand still");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
