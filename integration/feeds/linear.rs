//! Linearizability: writers commit directly on the server while readers query feeds through Headwater.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use headwater_lab::feed::CLASSIC_FEED;

use super::served::{PATIENT, served};
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::servers::{Server, on_each_quiet_server};
use crate::kit::wire_client::WireClient;
use crate::memory::world::{READERS, World};

const WRITERS: u64 = 8;

/// The number of answers to check on each server: `HEADWATER_CHECKS`, or enough for a test.
pub(super) fn checks() -> u64 {
    how_many("HEADWATER_CHECKS", 1_000)
}

/// A reader's page, in the shapes that apps use.
fn statement(shape: u64, reader: u64, limit: usize) -> String {
    let followed = format!("SELECT follower_id FROM follower WHERE follower.user_id = {reader}");
    let condition = match shape % 4 {
        0 => {
            return format!(
                "SELECT message.id FROM message JOIN follower ON message.user_id = follower.follower_id \
                 WHERE follower.user_id = {reader} ORDER BY message.id DESC LIMIT {limit}"
            );
        }
        1 => format!("message.user_id IN ({followed})"),
        2 => format!(
            "EXISTS (SELECT 1 FROM follower WHERE follower.user_id = {reader} AND follower.follower_id = message.user_id)"
        ),
        _ => format!("(message.user_id IN ({followed}) OR message.user_id = 999999)"),
    };
    format!("SELECT id FROM message WHERE {condition} ORDER BY id DESC LIMIT {limit}")
}

fn proxy(server: &Server, database: &Database) -> Proxy {
    served(
        server,
        database,
        "classic",
        &[PATIENT, CLASSIC_FEED].concat(),
    )
}

#[test]
fn no_page_is_stale_while_others_write() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "feedlinear");
        let (login, addr) = (database.login(), server.addr());
        let proxy = proxy(server, &database);
        let world = World::new(WRITERS).resting(Duration::from_millis(60));
        let quota = Quota::new(&proxy, checks(), checks() * 4 / 10, Counts::feeds_answered);
        thread::scope(|scope| {
            let running = world.run();
            let writers: Vec<_> = (0..WRITERS)
                .map(|number| {
                    let (world, login) = (&world, &login);
                    scope.spawn(move || world.write(number, addr, login).unwrap())
                })
                .collect();
            world.wait_for_writes(200);
            let readers: Vec<_> = (0..4)
                .map(|number| {
                    let (world, quota, proxy, login) = (&world, &quota, &proxy, &login);
                    scope.spawn(move || {
                        let mut client = proxy.login(login);
                        let mut turn = number;
                        while quota.take().is_some() {
                            turn += 1;
                            let reader = 1 + turn % READERS;
                            let limit = [3, 20, 400][(turn / 7 % 3) as usize];
                            let statement = statement(turn / 5, reader, limit);
                            let before = world.look();
                            let ids = client.column(&statement);
                            let ids: Vec<u64> = ids.iter().map(|id| id.parse().unwrap()).collect();
                            assert!(ids.is_sorted_by(|a, b| a > b), "{ids:?} to {statement}");
                            let answer: BTreeSet<u64> = ids.iter().copied().collect();
                            let full = ids.len() == limit;
                            let oldest = ids.last().filter(|_| full).copied().unwrap_or(0);
                            let fault = world.fault_above(reader, &before, &answer, oldest);
                            assert_eq!(fault, None, "in {} checks, to {statement}", quota.taken());
                        }
                    })
                })
                .collect();
            running.outlast(readers, writers);
        });
        let counts = proxy.counts();
        eprintln!("{} writes; {counts:?}", world.writes());
    });
}

/// A transaction adds one message and removes another: an answer with only one of the changes never was the state of the table.
#[test]
fn a_page_is_of_one_moment() {
    const KEPT: usize = 12;
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "feedmoment");
        let mut root = database.connect();
        root.ok("INSERT INTO follower VALUES (1, 2), (1, 3)");
        for id in 1..=KEPT {
            root.ok(&format!(
                "INSERT INTO message (id, user_id, body) VALUES ({id}, {}, 'x')",
                2 + id % 2
            ));
        }
        let proxy = proxy(server, &database);
        let (login, addr) = (database.login(), server.addr());
        let quota = Quota::new(&proxy, checks(), checks() / 4, Counts::feeds_answered);
        let world = World::new(1);
        thread::scope(|scope| {
            let running = world.run();
            let writer = scope.spawn(|| {
                let mut client = WireClient::login(addr, &login);
                let mut next = KEPT as u64;
                while !world.is_stopping() {
                    next += 1;
                    let old = next - KEPT as u64;
                    client.ok("BEGIN");
                    client.ok(&format!("DELETE FROM message WHERE id = {old}"));
                    client.ok(&format!(
                        "INSERT INTO message (id, user_id, body) VALUES ({next}, {}, 'x')",
                        2 + next % 2
                    ));
                    client.ok("COMMIT");
                    thread::sleep(Duration::from_micros(next % 7 * 1_500));
                }
            });
            let readers: Vec<_> = (0..3u64)
                .map(|number| {
                    let (quota, proxy, login) = (&quota, &proxy, &login);
                    scope.spawn(move || {
                        let mut client = proxy.login(login);
                        while let Some(turn) = quota.take() {
                            let limit = [KEPT, 5, 50][(turn % 3) as usize];
                            let statement = statement(number + turn, 1, limit);
                            let ids = client.column(&statement);
                            let ids: Vec<u64> = ids.iter().map(|id| id.parse().unwrap()).collect();
                            let newest = *ids.first().unwrap();
                            let expected: Vec<u64> = (newest + 1 - limit.min(KEPT) as u64..=newest)
                                .rev()
                                .collect();
                            assert_eq!(ids, expected, "to {statement}");
                        }
                    })
                })
                .collect();
            running.outlast(readers, vec![writer]);
        });
        let counts = proxy.counts();
        eprintln!("{counts:?}");
    });
}
