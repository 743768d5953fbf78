//! Linearizability of cached rows: writers change what pages show while readers request them, with memory for all rows and for one in a
//! hundred.
//!
//! Each body begins with a number that each change raises by one. A page with a lower number than the one settled before the request is
//! stale. A page with a number that no writer had begun by the reply, or that was rolled back, shows an uncommitted change.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headwater_lab::feed::CLASSIC_FEED;

use super::warm;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Counts, Proxy, ROOT_SERVICE};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_quiet_server};
use crate::kit::threads::wait_for;
use crate::kit::wire_client::{Login, WireClient};

const MESSAGES: u64 = 20_000;
const AUTHORS: u64 = 200;
const READERS: u64 = 40;
const FOLLOWED: u64 = 20;
/// The number of concurrent readers.
const ASKING: u64 = 8;
const WRITING: u64 = 8;
/// At this length all bodies, in every form and character set below, take some 100 MiB.
const BODY: u64 = 780;
const SMALL: &str = "[rows]\nmemory_bytes = 1048576\n";

const TAILS: [&str; 2] = [
    "SELECT message.id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20",
    "SELECT m.id, m.body AS text, m.user_id FROM message m JOIN fetch_timeline_tt t ON m.id = t.id ORDER BY m.id DESC LIMIT 20",
];

/// The number of pages to check on each server: `HEADWATER_CHECKS`, or enough for a test.
fn checks() -> u64 {
    how_many("HEADWATER_CHECKS", 1_000)
}

#[test]
fn no_page_shows_what_is_changed() {
    on_each_quiet_server(|server| {
        check(server, "keptlinear", "", checks() / 5);
    });
}

#[test]
fn nor_where_rows_have_to_make_room_for_each_other() {
    on_each_quiet_server(|server| {
        check(server, "keptnarrow", SMALL, 1);
    });
}

/// The numbers of one message's bodies.
#[derive(Debug, Default)]
struct Numbers {
    /// The last number that is certainly committed.
    settled: AtomicU64,
    /// The last number that a writer has begun to write.
    begun: AtomicU64,
}

#[derive(Debug)]
struct World {
    /// Indexed by the message's id.
    numbers: Vec<Numbers>,
    /// Messages and numbers that were rolled back.
    taken_back: Mutex<HashSet<(u64, u64)>>,
    stop: AtomicBool,
}

fn author_of(message: u64) -> u64 {
    1 + message % AUTHORS
}

fn follows(reader: u64, author: u64) -> bool {
    (author + reader * 7).is_multiple_of(AUTHORS / FOLLOWED)
}

/// The expected page: no writer inserts or deletes.
fn page(reader: u64, bound: u64) -> Vec<u64> {
    let ids = (1..=bound).rev();
    let followed = ids.filter(|id| follows(reader, author_of(*id)));
    followed.take(20).collect()
}

fn fill(root: &mut WireClient) {
    root.ok("ALTER TABLE message MODIFY body VARCHAR(1000) NOT NULL");
    for from in (1..=MESSAGES).step_by(5_000) {
        let ids = from..from + 5_000;
        let values: Vec<String> = ids
            .map(|id| format!("({id}, {}, '0 ')", author_of(id)))
            .collect();
        root.ok(&format!(
            "INSERT INTO message (id, user_id, body) VALUES {}",
            values.join(",")
        ));
    }
    root.ok(&format!(
        "UPDATE message SET body = CONCAT(body, REPEAT('x', {BODY}))"
    ));
    for reader in 1..=READERS {
        let authors = (1..=AUTHORS).filter(|author| follows(reader, *author));
        let values: Vec<String> = authors
            .map(|author| format!("({reader}, {author})"))
            .collect();
        root.ok(&format!("INSERT INTO follower VALUES {}", values.join(",")));
    }
    root.query("ANALYZE TABLE message, follower");
}

/// Checks pages until this many were answered from cached rows.
fn check(server: &'static Server, story: &str, settings: &str, kept: u64) {
    let database = Database::classic(server, story);
    fill(&mut database.connect());
    // On a busy machine memory is slow: the longer waits let the test check those answers too.
    let patient = "[freshness]\nwait_ms = 10000\n[index]\nwait_ms = 10000\n";
    let settings = [patient, settings, CLASSIC_FEED].concat();
    let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
    proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
    let login = database.login();
    warm(
        &proxy,
        &mut proxy.login(&login),
        "CALL fetch_timeline_ids(1)",
    );
    let world = World {
        numbers: (0..=MESSAGES).map(|_| Numbers::default()).collect(),
        taken_back: Mutex::default(),
        stop: AtomicBool::new(false),
    };
    let count: fn(&Counts) -> u64 = |counts| counts.of("tails_kept") + counts.of("feeds_kept");
    let quota = Quota::new(&proxy, checks(), kept, count);
    thread::scope(|scope| {
        for number in 0..WRITING {
            let (world, login) = (&world, &login);
            scope.spawn(move || world.write(number, server.addr(), login));
        }
        let readers: Vec<_> = (0..ASKING)
            .map(|number| {
                let (world, quota, login) = (&world, &quota, &login);
                scope.spawn(move || world.read(number, quota, login))
            })
            .collect();
        wait_for(readers, &world.stop);
    });
    eprintln!("{} pages checked: {:?}", quota.taken(), proxy.counts());
}

impl World {
    /// Changes bodies of this writer's messages until `stop` is set.
    fn write(&self, number: u64, addr: SocketAddr, login: &Login) {
        let mut client = WireClient::login(addr, login);
        let mut random = Random(number + 900);
        while !self.stop.load(Ordering::Relaxed) {
            let count = if random.one_in(4) { 3 } else { 1 };
            let mut own: Vec<(u64, u64)> = Vec::new();
            for _ in 0..count {
                // Half of them are among the newest.
                let from = if random.one_in(2) { 4_000 } else { MESSAGES };
                let id = (MESSAGES - random.below(from)) / WRITING * WRITING + number;
                if (1..=MESSAGES).contains(&id) && own.iter().all(|(other, _)| *other != id) {
                    let next = self.numbers[id as usize].begun.load(Ordering::SeqCst) + 1;
                    own.push((id, next));
                }
            }
            let takes_back = random.one_in(5);
            if takes_back {
                self.taken_back().extend(&own);
            }
            for (id, next) in &own {
                self.numbers[*id as usize]
                    .begun
                    .store(*next, Ordering::SeqCst);
            }
            let alone = own.len() == 1 && !takes_back;
            if !alone {
                client.ok("BEGIN");
            }
            for (id, next) in &own {
                client.ok(&format!(
                    "UPDATE message SET body = CONCAT('{next} ', REPEAT('x', {BODY})) WHERE id = {id}"
                ));
            }
            if takes_back {
                client.ok("ROLLBACK");
                continue;
            }
            if !alone {
                client.ok("COMMIT");
            }
            for (id, next) in &own {
                self.numbers[*id as usize]
                    .settled
                    .store(*next, Ordering::SeqCst);
            }
            // Gives cached rows time to be used again: a changed row is cached only once its change is known to be readable.
            thread::sleep(Duration::from_micros(random.below(100_000)));
        }
    }

    fn read(&self, number: u64, quota: &Quota, login: &Login) {
        let mut client = quota.proxy().login(login);
        if number.is_multiple_of(2) {
            client.ok("SET NAMES latin1");
        }
        let mut random = Random(number + 40);
        while quota.take().is_some() {
            let reader = 1 + random.below(READERS);
            let newest = !random.one_in(4);
            let bound = if newest {
                MESSAGES
            } else {
                2_000 + random.below(MESSAGES - 2_000)
            };
            let before: Vec<(u64, u64)> = page(reader, bound)
                .into_iter()
                .map(|id| (id, self.numbers[id as usize].settled.load(Ordering::SeqCst)))
                .collect();
            let rows = match random.below(3) {
                0 => {
                    let bounded = if newest {
                        String::new()
                    } else {
                        format!("AND message.id <= {bound} ")
                    };
                    client.rows(&format!(
                        "SELECT message.id, body FROM message JOIN follower ON message.user_id = follower.follower_id \
                         WHERE follower.user_id = {reader} {bounded}ORDER BY message.id DESC LIMIT 20"
                    ))
                }
                _ => {
                    client.ok(&match newest {
                        true => format!("CALL fetch_timeline_ids({reader})"),
                        false => format!("CALL fetch_timeline_ids2({reader}, {bound})"),
                    });
                    client.rows(random.pick::<&str>(&TAILS))
                }
            };
            assert_eq!(rows.len(), before.len(), "{rows:?}");
            for (row, (id, settled)) in rows.iter().zip(before) {
                let shown = |at: usize| row[at].as_deref().unwrap_or_default();
                assert_eq!(shown(0), id.to_string());
                let said = shown(1).split(' ').next().unwrap_or_default();
                let said: u64 = said.parse().unwrap();
                let begun = self.numbers[id as usize].begun.load(Ordering::SeqCst);
                assert!(
                    said >= settled,
                    "stale: message {id} shows {said} behind {settled}"
                );
                assert!(said <= begun, "message {id} shows {said} before {begun}");
                let never = self.taken_back().contains(&(id, said));
                assert!(!never, "message {id} shows {said}, which was taken back");
            }
        }
    }

    fn taken_back(&self) -> std::sync::MutexGuard<'_, HashSet<(u64, u64)>> {
        self.taken_back
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
