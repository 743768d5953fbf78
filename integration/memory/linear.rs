//! Linearizability: writers commit directly on the server while readers call through Headwater.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;

use super::world::{READERS, World};
use super::{CLASSIC, prepare, warm};
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::quota::{Quota, from_memory};
use crate::kit::servers::{on_each_quiet_server, on_servers_of_its_own};
use crate::kit::wire_client::{Login, WireClient};

pub(crate) const WRITERS: u64 = 8;
const NO_MEMORY: &[&str] = &["--index-memory-bytes", "0"];
/// Compares some answers with the procedure's.
pub(crate) const SHADOW: &[&str] = &["--shadow", "0.05"];

/// The number of answers to check on each server: `HEADWATER_CHECKS`, or enough for a test.
fn checks() -> u64 {
    how_many("HEADWATER_CHECKS", 1_000)
}

#[test]
fn no_answer_is_stale_or_ahead_while_others_write() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "linear");
        check(
            server.addr(),
            &database.login(),
            database.name(),
            checks(),
            &[ROOT_SERVICE, SHADOW].concat(),
        );
    });
}

/// The same without memory: lookups alone.
#[test]
fn nor_is_one_that_was_looked_up() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "lookups");
        let flags = [ROOT_SERVICE, NO_MEMORY].concat();
        let (owned, remembered) = check(
            server.addr(),
            &database.login(),
            database.name(),
            checks() / 10,
            &flags,
        );
        assert!(owned >= checks() / 10 && remembered == 0);
    });
}

/// Row images in the log are minimal and compressed, and MySQL has no GTIDs.
#[test]
fn nor_with_other_forms_of_the_log() {
    let options = |mariadb: bool| -> &'static [&'static str] {
        if mariadb {
            &[
                "--binlog-row-image=MINIMAL",
                "--log-bin-compress=ON",
                "--log-bin-compress-min-len=10",
                "--sync-binlog=1",
            ]
        } else {
            &[
                "--binlog-row-image=MINIMAL",
                "--binlog-transaction-compression=ON",
                "--gtid-mode=OFF",
                "--enforce-gtid-consistency=OFF",
                "--sync-binlog=1",
            ]
        }
    };
    on_servers_of_its_own(options, |server| {
        let login = prepare(server.addr());
        let flags = [ROOT_SERVICE, SHADOW].concat();
        check(server.addr(), &login, CLASSIC, checks() / 10, &flags);
    });
}

/// Log events of writes during startup arrive before Headwater knows the tables' columns.
#[test]
fn memory_comes_up_beside_a_writer() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "beside");
        let login = database.login();
        let world = World::new(1);
        thread::scope(|scope| {
            let running = world.run();
            scope.spawn(|| {
                let mut client = database.connect();
                while !world.is_stopping() {
                    client.ok("INSERT INTO message (user_id, body) VALUES (2, 'text')");
                }
            });
            let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
            proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
            let mut client = proxy.login(&login);
            client.ok("INSERT INTO follower VALUES (1, 2)");
            warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
            drop(running);
        });
    });
}

/// Checks this many answers, and more until most of them come from memory, if there is one. Returns how many calls
/// Headwater answered, and how many of them from memory.
pub(crate) fn check(
    server: SocketAddr,
    login: &Login,
    database: &str,
    checks: u64,
    flags: &[&str],
) -> (u64, u64) {
    let write = |world: &World, number| world.write(number, server, login).unwrap();
    let world = World::new(WRITERS);
    check_beside(&world, server, login, database, checks, flags, write)
}

/// The same next to additional writers: `write` gets the world and the writer's number.
pub(crate) fn check_beside(
    world: &World,
    server: SocketAddr,
    login: &Login,
    database: &str,
    checks: u64,
    flags: &[&str],
    write: impl Fn(&World, u64) + Sync,
) -> (u64, u64) {
    // On a busy machine memory is slow: the longer waits let the test check those answers too.
    let settings = "[freshness]\nwait_ms = 10000\n[index]\nwait_ms = 10000\n";
    let proxy = Proxy::configured(server, settings, flags);
    proxy.wait_for_log(&format!("in database {database}: accelerated"));
    if !flags.contains(&NO_MEMORY[0]) {
        warm(
            &proxy,
            &mut proxy.login(login),
            "CALL fetch_timeline_ids(1)",
        );
    }
    let wanted = match flags.contains(&NO_MEMORY[0]) {
        true => 0,
        false => checks * 8 / 10,
    };
    let quota = Quota::new(&proxy, checks, wanted, from_memory);
    attack((world, WRITERS), &quota, (server, login), 500, write);
    let counts = proxy.counts();
    eprintln!("{} writes; {}", world.writes(), proxy.output());
    assert_eq!(counts.relayed(), 0, "{}", proxy.log());
    assert_eq!(counts.of("shadow_different"), 0, "{}", proxy.log());
    (counts.of("calls_owned"), counts.of("calls_from_memory"))
}

/// Checks this many answers while writers run, after this many writes.
pub(crate) fn attack(
    (world, writers): (&World, u64),
    quota: &Quota,
    (server, login): (SocketAddr, &Login),
    writes: u64,
    write: impl Fn(&World, u64) + Sync,
) {
    thread::scope(|scope| {
        let running = world.run();
        let writers: Vec<_> = (0..writers)
            .map(|number| {
                let write = &write;
                scope.spawn(move || write(world, number))
            })
            .collect();
        world.wait_for_writes(writes);
        let readers: Vec<_> = (0..4)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = quota.proxy().login(login);
                    let mut direct = WireClient::login(server, login);
                    let mut turn = number;
                    while quota.take().is_some() {
                        turn += 1;
                        let reader = 1 + turn % READERS;
                        let before = world.look();
                        client.ok(&match turn % 3 {
                            0 => format!("CALL fetch_timeline_ids2({reader}, 4000000000)"),
                            _ => format!("CALL fetch_timeline_ids({reader})"),
                        });
                        // The rows that are readable on another connection before the ids are read.
                        let readable = numbers(&direct.column("SELECT id FROM message"));
                        let answer = numbers(&client.column("SELECT id FROM fetch_timeline_tt"));
                        let when = format!("in {} checks", quota.taken());
                        let (asked, told) = ((reader, &before), (&answer, &readable));
                        world.is_neither_stale_nor_ahead(asked, told, when);
                    }
                })
            })
            .collect();
        running.outlast(readers, writers);
    });
}

pub(crate) fn numbers(texts: &[String]) -> BTreeSet<u64> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}
