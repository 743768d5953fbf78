//! Commits held between their event in the log and the moment when they become readable.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use super::linear::numbers;
use super::stage::{CALL, Stage, page, post};
use super::{CLASSIC, prepare, warm};
use crate::kit::database::{classic_on, one_message};
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::quota::{Quota, from_memory};
use crate::kit::replica::from_now_on;
use crate::kit::semi_sync::{let_go, wait_for_nobody};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

/// How long the test checks answers while a commit is held.
const WATCHED: Duration = Duration::from_millis(1_250);

/// Makes the server wait this long for a replica that does not exist, and returns while the commit of message 30 of author 2
/// waits for it: long after the log has its event.
fn hold_a_commit(
    server: &PrivateServer,
    mut root: WireClient,
    patience: Duration,
) -> JoinHandle<Duration> {
    wait_for_nobody(server, "AFTER_SYNC", patience);
    let held = thread::spawn(move || {
        let begun = Instant::now();
        root.ok("INSERT INTO message (id, user_id, body) VALUES (30, 2, 'thirty')");
        begun.elapsed()
    });
    thread::sleep(Duration::from_millis(500));
    held
}

/// Under semi-synchronous replication a commit waits for a replica before it becomes readable, but the log already contains it.
#[test]
fn a_commit_that_waits_for_a_replica_is_not_in_an_answer_and_holds_none_up() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let both =
                "INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (20, 2, 'twenty')";
            let Stage {
                root,
                proxy,
                mut client,
                ..
            } = Stage::new(server.addr(), &[both], "");
            let held = hold_a_commit(server, root, Duration::from_secs(120));
            let begun = Instant::now();
            let quota = Quota::new(&proxy, 100, 25, from_memory);
            while quota.take().is_some() || begun.elapsed() < WATCHED {
                let answer = page(&mut client);
                let read = numbers(&client.column("SELECT id FROM message"));
                assert_eq!(answer, read, "{}", proxy.log());
                assert_eq!(answer.len(), 2, "the commit was not held");
            }
            let_go(server);
            let waited = held.join().unwrap();
            assert!(waited >= WATCHED, "held for {waited:?} only");
            assert_eq!(page(&mut client).len(), 3);
        },
    );
}

/// A timeline gets its first call while a commit waits: the stream passed the commit before it followed the timeline's table.
#[test]
fn a_timeline_first_called_while_a_commit_waits_has_it_afterwards() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = prepare(server.addr());
            let other = classic_on(server.addr(), "other");
            let mut root = WireClient::login(server.addr(), &login);
            one_message(&mut root);
            let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
            proxy.wait_for_log("in database other: accelerated");
            // Another timeline has started the stream.
            warm(&proxy, &mut proxy.login(&other), CALL);
            let held = hold_a_commit(server, root, Duration::from_secs(10));
            let mut client = proxy.login(&login);
            assert_eq!(page(&mut client), [10].into());
            // If memory fills before the commit becomes readable, memory still has to receive the commit.
            warm(&proxy, &mut client, CALL);
            held.join().unwrap();
            let deadline = patience();
            let before = proxy.counts().of("calls_from_memory");
            while proxy.counts().of("calls_from_memory") < before + 20 {
                assert!(Instant::now() < deadline, "{}", proxy.log());
                assert_eq!(page(&mut client), [10, 30].into(), "{}", proxy.log());
            }
        },
    );
}

/// The log contains nothing of an open transaction: memory does not wait for its end.
#[test]
fn a_transaction_that_is_left_open_holds_no_memory_up() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = prepare(server.addr());
            let mut open = WireClient::login(server.addr(), &login);
            open.ok("INSERT INTO follower VALUES (1, 2)");
            post(&mut open, 10);
            open.ok("BEGIN");
            post(&mut open, 20);
            let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
            proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            let mut client = proxy.login(&login);
            warm(&proxy, &mut client, CALL);
            assert_eq!(page(&mut client), [10].into(), "{}", proxy.log());
            open.ok("COMMIT");
            assert_eq!(page(&mut client), [10, 20].into(), "{}", proxy.log());
        },
    );
}

/// A row in the state that a transaction wrote proves that this transaction is readable: no older unreadable one can have written that
/// state, because no session can change the row before then. Where a stream begins, what a row proves rests on this alone.
#[test]
fn nobody_changes_what_a_commit_that_waits_for_a_replica_has_changed() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = prepare(server.addr());
            let mut root = WireClient::login(server.addr(), &login);
            one_message(&mut root);
            let mut other = WireClient::login(server.addr(), &login);
            other.ok("SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1");
            wait_for_nobody(server, "AFTER_SYNC", Duration::from_secs(120));
            let end = from_now_on(server);
            let held = thread::spawn(move || {
                root.ok("BEGIN");
                root.ok("DELETE FROM message");
                root.ok("DELETE FROM follower");
                root.ok("COMMIT");
            });
            let deadline = patience();
            while from_now_on(server) == end {
                assert!(Instant::now() < deadline, "it is never in the log");
                thread::sleep(Duration::from_millis(5));
            }
            for statement in [
                "INSERT INTO message VALUES (10, 2, 'again')",
                "INSERT INTO follower VALUES (1, 2)",
                "TRUNCATE TABLE message",
                "TRUNCATE TABLE follower",
            ] {
                assert_eq!(other.error(statement).code, 1205, "{statement}");
            }
            assert_eq!(other.column("SELECT id FROM message"), ["10"]);
            let_go(server);
            held.join().unwrap();
            other.ok("INSERT INTO message VALUES (10, 2, 'again')");
            other.ok("INSERT INTO follower VALUES (1, 2)");
        },
    );
}
