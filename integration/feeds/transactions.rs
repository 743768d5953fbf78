//! Feeds inside transactions: a narrowed page shows the transaction's snapshot.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::feed::CLASSIC_FEED;

use super::narrowed::narrowed;
use super::rules::app;
use super::served::{PATIENT, served};
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::patience;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::servers::{Server, on_each_server, on_each_server_alone};
use crate::kit::wire_client::WireClient;
use crate::memory::world::World;

/// The number of messages that exist at any moment.
const KEPT: u64 = 12;

const PAGE: &str = "SELECT message.id FROM message JOIN follower ON message.user_id = follower.follower_id \
                    WHERE follower.user_id = 1 ORDER BY message.id DESC LIMIT 12";

/// Begins another transaction.
const BEGIN: [&str; 2] = ["ROLLBACK", "BEGIN"];

struct Stage {
    database: Database,
    proxy: Proxy,
}

impl Stage {
    fn new(server: &'static Server, story: &str) -> Stage {
        let database = Database::classic(server, story);
        let mut root = database.connect();
        root.ok("INSERT INTO follower VALUES (1, 2), (1, 3)");
        for id in 1..=KEPT {
            post(&mut root, id);
        }
        let proxy = served(
            server,
            &database,
            "classic",
            &[PATIENT, CLASSIC_FEED].concat(),
        );
        // Outside of transactions: Headwater samples the columns, and memory has the messages.
        narrowed(&proxy, &mut proxy.login(&database.login()), PAGE);
        Stage { database, proxy }
    }

    /// Waits until memory has received the changes committed before. Changes that it receives later count as changes since.
    fn catches_up(&self) {
        narrowed(&self.proxy, &mut self.login(), PAGE);
    }

    fn login(&self) -> WireClient {
        self.proxy.login(&self.database.login())
    }

    /// True if the page is answered as `how` states: narrowed, or relayed for this reason. False if the query came too early.
    #[track_caller]
    fn is_answered(&self, client: &mut WireClient, page: &[u64], how: &str) -> bool {
        let counted = |counts: &Counts| match how {
            "narrowed" => counts.feeds_answered(),
            reason => counts.of(&format!("feeds_relayed[{reason}]")),
        };
        let before = self.proxy.counts();
        assert_eq!(ids(client), page);
        let after = self.proxy.counts();
        let rose = |name: &str| after.of(name) - before.of(name);
        if counted(&after) - counted(&before) == 1 {
            return true;
        }
        // After an earlier test drops its tables, Headwater checks those of this test again. On a busy machine the log may lag.
        let looked: u64 = [
            "feed_unchecked",
            "new_template",
            "log_not_followed",
            "not_in_memory",
        ]
        .iter()
        .map(|reason| rose(&format!("feeds_relayed[{reason}]")))
        .sum();
        assert!(looked == 1, "not {how}: {after:?}\n{}", self.proxy.log());
        false
    }

    /// Expects this page, answered as `how` states.
    #[track_caller]
    fn expect(&self, client: &mut WireClient, page: &[u64], how: &str) {
        self.expect_first(client, page, how, &[]);
    }

    /// The same for the first page in a transaction. If the query came too early, the statements of `anew` begin another transaction.
    #[track_caller]
    fn expect_first(&self, client: &mut WireClient, page: &[u64], how: &str, anew: &[&str]) {
        let deadline = patience();
        while !self.is_answered(client, page, how) {
            let counts = self.proxy.counts();
            let log = self.proxy.log();
            assert!(
                Instant::now() < deadline,
                "not {how} in time: {counts:?}\n{log}"
            );
            for statement in anew {
                client.ok(statement);
            }
        }
    }
}

fn post(client: &mut WireClient, id: u64) {
    client.ok(&format!(
        "INSERT INTO message (id, user_id, body) VALUES ({id}, {}, 'x')",
        2 + id % 2
    ));
}

fn ids(client: &mut WireClient) -> Vec<u64> {
    numbers(client, PAGE)
}

fn numbers(client: &mut WireClient, statement: &str) -> Vec<u64> {
    let cells = client.column(statement);
    cells.iter().map(|id| id.parse().unwrap()).collect()
}

/// The page whose newest message is this one.
fn page(newest: u64) -> Vec<u64> {
    (newest + 1 - KEPT..=newest).rev().collect()
}

/// A writer replaces a message in each transaction. Readers first query the newest message of their snapshot.
#[test]
fn a_page_is_of_its_transactions_snapshot() {
    on_each_server_alone(|server| {
        let stage = Stage::new(server, "feedsnapshot");
        let wanted = how_many("HEADWATER_CHECKS", 1_000);
        let world = World::new(1);
        let quota = Quota::new(&stage.proxy, wanted, wanted / 2, Counts::feeds_answered);
        thread::scope(|scope| {
            let running = world.run();
            let (stage, world, quota) = (&stage, &world, &quota);
            let writer = scope.spawn(move || {
                let mut client = stage.database.connect();
                let mut next = KEPT;
                while !world.is_stopping() {
                    next += 1;
                    client.ok("BEGIN");
                    client.ok(&format!("DELETE FROM message WHERE id = {}", next - KEPT));
                    post(&mut client, next);
                    client.ok("COMMIT");
                    thread::sleep(Duration::from_micros(next % 11 * 2_500));
                }
            });
            let readers: Vec<_> = (0..4)
                .map(|number| scope.spawn(move || read(stage, number, quota)))
                .collect();
            running.outlast(readers, vec![writer]);
        });
        let counts = stage.proxy.counts();
        eprintln!("{counts:?}");
        let changed = counts.of("feeds_relayed[changed_meanwhile]");
        assert!(changed > 0, "{counts:?}");
    });
}

fn read(stage: &Stage, number: u64, quota: &Quota) {
    let mut client = stage.login();
    let committed = number % 2 == 1;
    if committed {
        client.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    }
    if number / 2 == 1 {
        client.ok("SET autocommit = 0");
    }
    let mut turn = number;
    while quota.take().is_some() {
        turn += 1;
        if number / 2 == 0 {
            let consistent = turn.is_multiple_of(3) && !committed;
            client.ok(match consistent {
                true => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
                false => "BEGIN",
            });
        }
        // The feed is the first read of some transactions, and a later one of others.
        let first = turn.is_multiple_of(4).then(|| ids(&mut client));
        let newest = numbers(&mut client, "SELECT MAX(id) FROM message")[0];
        if turn.is_multiple_of(5) {
            thread::sleep(Duration::from_millis(turn % 7));
        }
        let second = ids(&mut client);
        if committed {
            let seen = second[0];
            assert!(seen >= newest);
            assert_eq!(second, page(seen));
            assert!(first.is_none_or(|first| first == page(first[0]) && first[0] <= newest));
        } else {
            assert_eq!(second, page(newest), "reader {number}, turn {turn}");
            assert!(first.is_none_or(|first| first == second));
        }
        client.ok(match turn % 6 {
            0 => "ROLLBACK",
            _ => "COMMIT",
        });
    }
}

/// Some drivers set autocommit off.
#[test]
fn without_autocommit_the_first_read_is_narrowed_and_a_later_one_shows_the_same() {
    on_each_server_alone(|server| {
        let stage = Stage::new(server, "feedautocommit");
        let mut other = stage.database.connect();
        let mut client = stage.login();
        client.ok("SET autocommit = 0");
        stage.expect_first(&mut client, &page(KEPT), "narrowed", &["ROLLBACK"]);
        stage.expect(&mut client, &page(KEPT), "narrowed");
        post(&mut other, KEPT + 1);
        stage.expect(&mut client, &page(KEPT), "changed_meanwhile");
        client.ok("ROLLBACK");
        stage.catches_up();
        let twelve = page(KEPT + 1);
        stage.expect_first(&mut client, &twelve, "narrowed", &["ROLLBACK"]);
        // A change that does not concern the page does not prevent narrowing.
        other.ok("INSERT INTO message (id, user_id, body) VALUES (900, 77, 'x')");
        client.column("SELECT MAX(id) FROM message");
        stage.expect(&mut client, &twelve, "narrowed");
        client.ok("COMMIT");
        client.ok("DELETE FROM message WHERE id = 900");
        stage.expect(&mut client, &twelve, "in_transaction");
        client.ok("COMMIT");
        stage.catches_up();
        stage.expect_first(&mut client, &twelve, "narrowed", &["ROLLBACK"]);
        client.ok("ROLLBACK");
    });
}

/// Own writes, isolation levels without a snapshot, and other statements that begin a transaction.
#[test]
fn a_transaction_that_does_more_than_read_is_the_servers() {
    on_each_server_alone(|server| {
        let stage = Stage::new(server, "feedacts");
        let mut client = stage.login();
        let mut other = stage.database.connect();
        let old = page(KEPT);
        client.ok("BEGIN");
        stage.expect_first(&mut client, &old, "narrowed", &BEGIN);
        client.ok("SAVEPOINT one");
        stage.expect(&mut client, &old, "narrowed");
        post(&mut client, KEPT + 1);
        stage.expect(&mut client, &page(KEPT + 1), "in_transaction");
        client.ok("ROLLBACK TO SAVEPOINT one");
        stage.expect(&mut client, &old, "in_transaction");
        client.ok("COMMIT AND CHAIN");
        stage.expect(&mut client, &old, "in_transaction");
        client.ok("COMMIT");
        stage.catches_up();

        // A snapshot that is opened before other clients write.
        for begin in [
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        ] {
            client.ok(begin);
            post(&mut other, 500);
            stage.expect(&mut client, &old, "changed_meanwhile");
            client.ok("COMMIT");
            other.ok("DELETE FROM message WHERE id = 500");
            stage.catches_up();
        }

        for (level, how) in [
            ("SERIALIZABLE", "in_transaction"),
            ("READ UNCOMMITTED", "session_settings"),
            ("READ COMMITTED", "narrowed"),
            ("REPEATABLE READ", "narrowed"),
        ] {
            client.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
            client.ok("BEGIN");
            stage.expect_first(&mut client, &old, how, &BEGIN);
            client.ok("COMMIT");
        }
        client.ok("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
        client.ok("BEGIN");
        stage.expect(&mut client, &old, "one_shot_transaction");
        client.ok("COMMIT");
    });
}

/// An error may leave a transaction open. A read after the error then shows the same as a read before it.
#[test]
fn behind_an_error_a_transaction_goes_on_with_its_snapshot() {
    on_each_server_alone(|server| {
        let stage = Stage::new(server, "feederror");
        let mut other = stage.database.connect();
        let mut client = stage.login();
        client.ok("BEGIN");
        stage.expect_first(&mut client, &page(KEPT), "narrowed", &BEGIN);
        assert_eq!(client.error("SELECT nothing FROM message").code, 1054);
        stage.expect(&mut client, &page(KEPT), "narrowed");
        assert_eq!(client.error("SELECT nothing FROM message").code, 1054);
        post(&mut other, KEPT + 1);
        stage.expect(&mut client, &page(KEPT), "changed_meanwhile");
        client.ok("COMMIT");
        stage.catches_up();
        stage.expect(&mut client, &page(KEPT + 1), "narrowed");
    });
}

/// A setting for the next transaction alone ends with COMMIT or ROLLBACK, even if no transaction has begun. Headwater relies on this.
#[test]
fn what_is_set_for_the_next_transaction_ends_with_it() {
    on_each_server(|server| {
        let (database, _proxy) = app(server, "feedoneshot");
        let mut writer = database.connect();
        writer.ok("BEGIN");
        writer.ok("UPDATE profiles SET name = 'not committed' WHERE id = 1");
        let mut reader = database.connect();
        let mut name = |before: &[&str]| {
            reader.ok("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
            for statement in before {
                reader.ok(statement);
            }
            reader.ok("BEGIN");
            let name = reader
                .column("SELECT name FROM profiles WHERE id = 1")
                .remove(0);
            reader.ok("COMMIT");
            name
        };
        assert_eq!(name(&[]), "not committed");
        for ends in [
            &["COMMIT"][..],
            &["ROLLBACK"],
            &["BEGIN", "COMMIT"],
            &["BEGIN", "ROLLBACK"],
        ] {
            assert_eq!(name(ends), "user 1", "{ends:?}");
        }
        writer.ok("ROLLBACK");
    });
}
