//! Several Headwaters behind a balancer: an app's sessions are on different ones, and each Headwater sees the writes through the others.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::fleet::Fleet;
use crate::kit::fake_replica::dump_threads;
use crate::kit::haproxy;
use crate::kit::how_many;
use crate::kit::patience;
use crate::kit::quota::{Quota, from_memory};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::linear::numbers;
use crate::memory::prepare;
use crate::memory::world::{READERS, World};

const WRITERS: u64 = 4;
const IDS: &str = "SELECT id FROM fetch_timeline_tt";

/// How many answers are checked on each server: `HEADWATER_CHECKS`, or enough for a test.
fn checks() -> u64 {
    how_many("HEADWATER_CHECKS", 1_000)
}

/// Starts the threads that write the world's messages to the server.
fn writers<'scope>(
    scope: &'scope Scope<'scope, '_>,
    world: &'scope World,
    server: SocketAddr,
    login: &'scope Login,
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let write = |number| scope.spawn(move || world.write(number, server, login).unwrap());
    (0..WRITERS).map(write).collect()
}

fn on_each(story: impl Fn(SocketAddr, &Login, &mut Fleet)) {
    if !haproxy::is_here() {
        return;
    }
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = prepare(server.addr());
            let mut fleet = Fleet::start(server.addr(), &login);
            story(server.addr(), &login, &mut fleet);
            for headwater in &fleet.headwaters {
                let counts = headwater.counts();
                assert_eq!(counts.relayed(), 0, "{}", headwater.log());
            }
        },
    );
}

/// An author who writes through one Headwater and at once reads through the next one.
struct Own {
    number: u64,
    sessions: [WireClient; 3],
    kept: Vec<u64>,
    next: u64,
}

impl Own {
    fn new(number: u64, fleet: &Fleet) -> Own {
        let mut sessions = fleet.sessions();
        let (reader, author) = (500 + number, 1_000 + number);
        sessions[0].ok(&format!("INSERT INTO follower VALUES ({reader}, {author})"));
        Own {
            number,
            sessions,
            kept: Vec::new(),
            // The ids of the other writers begin with 1.
            next: 1_000_000_000 * (number + 1),
        }
    }

    /// Adds a message, or sometimes deletes one. Then both other Headwaters must return the page with exactly the expected ids.
    fn turn(&mut self, turn: u64) {
        let (reader, author) = (500 + self.number, 1_000 + self.number);
        let through = &mut self.sessions[turn as usize % 3];
        if self.kept.len() < 15 {
            self.next += 1;
            self.kept.push(self.next);
            let id = self.next;
            through.ok(&format!(
                "INSERT INTO message VALUES ({id}, {author}, 'own')"
            ));
        } else {
            let id = self.kept.remove(self.kept.len() / 2);
            through.ok(&format!("DELETE FROM message WHERE id = {id}"));
        }
        let expected: BTreeSet<u64> = self.kept.iter().copied().collect();
        for other in [1, 2] {
            let session = &mut self.sessions[(turn as usize + other) % 3];
            session.ok(&format!("CALL fetch_timeline_ids({reader})"));
            let answer = numbers(&session.column(IDS));
            assert_eq!(answer, expected, "turn {turn} of {}", self.number);
        }
    }
}

#[test]
fn what_is_written_through_one_is_in_the_next_answer_of_another() {
    on_each(|server, login, fleet| {
        let fleet = &*fleet;
        let mut root = WireClient::connect(server);
        assert_eq!(dump_threads(&mut root), 3);
        let quota = Quota::of_all(&fleet.headwaters, checks(), checks() / 5, from_memory);
        let world = World::new(WRITERS);
        thread::scope(|scope| {
            let running = world.run();
            let writers = writers(scope, &world, fleet.addr(), login);
            world.wait_for_writes(200);
            let mut readers = Vec::new();
            for number in 0..2 {
                let quota = &quota;
                readers.push(scope.spawn(move || {
                    let mut own = Own::new(number, fleet);
                    while let Some(turn) = quota.take() {
                        own.turn(turn);
                    }
                }));
            }
            for _ in 0..2 {
                let (quota, world) = (&quota, &world);
                readers.push(scope.spawn(move || {
                    let mut sessions = fleet.sessions();
                    let mut direct = WireClient::login(server, login);
                    while let Some(turn) = quota.take() {
                        check(world, turn, &mut sessions, &mut direct);
                    }
                }));
            }
            running.outlast(readers, writers);
        });
        eprintln!("{} checks, {} writes", quota.taken(), world.writes());
        assert_eq!(dump_threads(&mut root), 3);
    });
}

/// Checks that an answer through one of the three is neither stale nor ahead.
#[track_caller]
fn check(world: &World, turn: u64, sessions: &mut [WireClient; 3], direct: &mut WireClient) {
    let reader = 1 + turn % READERS;
    let session = &mut sessions[(turn / READERS) as usize % 3];
    let before = world.look();
    session.ok(&format!("CALL fetch_timeline_ids({reader})"));
    // The readable messages, read on another connection before the session selects the ids.
    let readable = numbers(&direct.column("SELECT id FROM message"));
    let answer = numbers(&session.column(IDS));
    let (asked, told) = ((reader, &before), (&answer, &readable));
    world.is_neither_stale_nor_ahead(asked, told, format!("turn {turn}"));
}

/// True where the session answers `SELECT 1`.
fn is_alive(session: &mut WireClient) -> bool {
    session.query_reply("SELECT 1").is_ok()
}

#[test]
fn one_is_killed_and_comes_back_cold_beside_warm_ones() {
    on_each(|server, login, fleet| {
        let world = World::new(WRITERS);
        let (stop, checked) = (AtomicBool::new(false), AtomicU64::new(0));
        let idle: Vec<WireClient> = (0..30).map(|_| fleet.session()).collect();
        let mut idle: Vec<(usize, WireClient)> = idle
            .into_iter()
            .map(|mut session| (fleet.of(&mut session), session))
            .collect();
        for at in 0..3 {
            let here = idle.iter().filter(|(of, _)| *of == at).count();
            assert!((5..=15).contains(&here), "{here} of 30 are on {at}");
        }
        thread::scope(|scope| {
            let running = world.run();
            let writers = writers(scope, &world, server, login);
            world.wait_for_writes(200);
            // Reads through the balancer all the time. Opens another session whenever one is closed.
            let reader = {
                let (world, fleet, stop, checked) = (&world, &*fleet, &stop, &checked);
                let (addr, killed) = (fleet.addr(), fleet.headwaters[0].addr());
                assert_ne!(addr, killed);
                move || {
                    let mut direct = WireClient::login(server, login);
                    let (mut turn, mut cut_off) = (0, 0);
                    while !stop.load(Ordering::Relaxed) {
                        let mut session = match WireClient::try_login(addr, login) {
                            Ok(session) => session.expect("the app logs in"),
                            // This session was logging in to the killed Headwater.
                            Err(error) => {
                                cut_off += 1;
                                assert_eq!(cut_off, 1, "{error}");
                                continue;
                            }
                        };
                        for _ in 0..50 {
                            turn += 1;
                            if !check_alone(world, turn, &mut session, &mut direct) {
                                break;
                            }
                            checked.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            };
            let guard = StopOnDrop(&stop);
            let checking = scope.spawn(reader);
            let begun = Instant::now();
            while checked.load(Ordering::Relaxed) < 200 {
                assert!(begun.elapsed() < Duration::from_secs(120) && !checking.is_finished());
                thread::sleep(Duration::from_millis(5));
            }
            fleet.headwaters[0].signal(Signal::SIGKILL);
            for (of, session) in &mut idle {
                assert_eq!(is_alive(session), *of != 0);
            }
            // New sessions work at once, before the next health check of HAProxy.
            let begun = Instant::now();
            for _ in 0..30 {
                let mut session = fleet.session();
                assert_ne!(fleet.of(&mut session), 0);
            }
            eprintln!("30 sessions on the other two within {:?}", begun.elapsed());
            assert!(begun.elapsed() < Duration::from_secs(60));
            let before = checked.load(Ordering::Relaxed);
            while checked.load(Ordering::Relaxed) < before + 200 {
                assert!(begun.elapsed() < Duration::from_secs(120) && !checking.is_finished());
                thread::sleep(Duration::from_millis(5));
            }
            drop(guard);
            checking.join().unwrap();
            drop(running);
            for writer in writers {
                writer.join().unwrap();
            }
        });
        drop(idle);
        fleet.headwaters[0].crash_and_start();
        let fleet = &*fleet;
        // The restarted Headwater is cold, and HAProxy sends it sessions as soon as it is ready.
        let world = World::new(WRITERS);
        let mut root = WireClient::login(server, login);
        root.ok("DELETE FROM message");
        root.ok("DELETE FROM follower");
        thread::scope(|scope| {
            let running = world.run();
            let writers = writers(scope, &world, fleet.addr(), login);
            let world = &world;
            let readers = (0..2).map(|number| {
                scope.spawn(move || {
                    let mut sessions = fleet.sessions();
                    let mut direct = WireClient::login(server, login);
                    for turn in 0..checks() / 8 {
                        check(world, turn + number, &mut sessions, &mut direct);
                    }
                })
            });
            running.outlast(readers.collect(), writers);
        });
        for headwater in &fleet.headwaters {
            fleet.warm(headwater);
        }
        assert_eq!(dump_threads(&mut root), 3);
    });
}

/// Stops a thread, also on a panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// [`check`] for one session; false where the session was closed.
#[track_caller]
fn check_alone(
    world: &World,
    turn: u64,
    session: &mut WireClient,
    direct: &mut WireClient,
) -> bool {
    let reader = 1 + turn % READERS;
    let before = world.look();
    let called = session.query_reply(&format!("CALL fetch_timeline_ids({reader})"));
    if called.is_err() || !is_alive(session) {
        return false;
    }
    let readable = numbers(&direct.column("SELECT id FROM message"));
    // The session may close here too, before an answer.
    let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| session.column(IDS)));
    let Ok(answer) = answered else {
        return false;
    };
    let answer = numbers(&answer);
    let (asked, told) = ((reader, &before), (&answer, &readable));
    world.is_neither_stale_nor_ahead(asked, told, format!("turn {turn}"));
    true
}

#[test]
fn the_real_client_is_known_behind_the_balancer() {
    on_each(|_, _, fleet| {
        for mut session in fleet.sessions() {
            let at = fleet.of(&mut session);
            let own = session.stream.tcp().local_addr().unwrap().to_string();
            let shown = session.rows("SHOW HEADWATER SESSIONS");
            assert!(
                shown
                    .iter()
                    .any(|row| row[2].as_deref() == Some(own.as_str())),
                "no {own} in {shown:?}"
            );
            session.rows("SELECT SLEEP(0.4)");
            let headwater = &fleet.headwaters[at];
            let deadline = patience();
            let is_told = |line: &str| line.contains("a statement was slow") && line.contains(&own);
            while !headwater.log().lines().any(is_told) {
                assert!(Instant::now() < deadline, "no {own} in {}", headwater.log());
                thread::sleep(Duration::from_millis(10));
            }
        }
    });
}
