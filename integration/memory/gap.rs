//! Commits held between their entry in the log and the moment from which they can be read.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use headwater::lab::private_server::Kind;

use super::linear::numbers;
use super::stage::{CALL, Stage, page};
use super::{prepare, warm};
use crate::kit::database::classic_on;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

/// How long the server waits for a replica that does not exist.
const HELD_MS: u64 = 2_500;

/// Has the server wait for a replica that does not exist, and returns while a message, number 30 of author 2, waits
/// for it: long after the log has told of it.
fn hold_a_commit(kind: Kind, mut root: WireClient) -> JoinHandle<Duration> {
    let settings = match kind {
        Kind::Mysql => vec![
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'".to_owned(),
            "SET GLOBAL rpl_semi_sync_source_wait_point = AFTER_SYNC".to_owned(),
            format!("SET GLOBAL rpl_semi_sync_source_timeout = {HELD_MS}"),
            "SET GLOBAL rpl_semi_sync_source_enabled = 1".to_owned(),
        ],
        Kind::Mariadb => vec![
            "SET GLOBAL rpl_semi_sync_master_wait_no_slave = 1".to_owned(),
            "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC".to_owned(),
            format!("SET GLOBAL rpl_semi_sync_master_timeout = {HELD_MS}"),
            "SET GLOBAL rpl_semi_sync_master_enabled = 1".to_owned(),
        ],
    };
    for setting in settings {
        root.ok(&setting);
    }
    let held = thread::spawn(move || {
        let begun = Instant::now();
        root.ok("INSERT INTO message (id, user_id, body) VALUES (30, 2, 'thirty')");
        begun.elapsed()
    });
    thread::sleep(Duration::from_millis(500));
    held
}

/// Under semi-synchronous replication a commit waits for a replica before it can be read, while the log tells of it already.
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
            let held = hold_a_commit(server.kind(), root);
            let before = proxy.counts();
            let begun = Instant::now();
            let mut asked = 0;
            while begun.elapsed() < Duration::from_millis(HELD_MS / 2) {
                let answer = page(&mut client);
                asked += 1;
                let read = numbers(&client.column("SELECT id FROM message"));
                assert_eq!(answer, read, "after {asked} calls\n{}", proxy.log());
                assert_eq!(answer.len(), 2, "the commit was not held");
            }
            let after = proxy.counts();
            assert!(asked > 10, "only {asked} calls in {:?}", begun.elapsed());
            let remembered = after.of("calls_from_memory") - before.of("calls_from_memory");
            assert!(
                remembered * 4 > asked,
                "{remembered} of {asked} from memory"
            );
            let waited = held.join().unwrap();
            assert!(
                waited >= Duration::from_millis(HELD_MS / 2),
                "held for {waited:?} only"
            );
            assert_eq!(page(&mut client).len(), 3);
        },
    );
}

/// A timeline whose first call comes while such a commit waits: the stream has passed it, with nobody listening to its table.
#[test]
fn a_timeline_first_called_while_a_commit_waits_has_it_afterwards() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = prepare(server.addr());
            let other = classic_on(server.addr(), "other");
            let mut root = WireClient::login(server.addr(), &login);
            root.ok("INSERT INTO follower VALUES (1, 2)");
            root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten')");
            let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
            proxy.wait_for_log("in database other: accelerated");
            // The stream is there, for another timeline.
            warm(&proxy, &mut proxy.login(&other), CALL);
            let held = hold_a_commit(server.kind(), root);
            let mut client = proxy.login(&login);
            assert_eq!(page(&mut client), [10].into());
            // If memory comes up before the commit can be read, it has to hear of it all the same.
            warm(&proxy, &mut client, CALL);
            held.join().unwrap();
            let deadline = Instant::now() + Duration::from_secs(20);
            let before = proxy.counts().of("calls_from_memory");
            while proxy.counts().of("calls_from_memory") < before + 20 {
                assert!(Instant::now() < deadline, "{}", proxy.log());
                assert_eq!(page(&mut client), [10, 30].into(), "{}", proxy.log());
            }
        },
    );
}
