//! How fresh answers are: what each mode promises, and how many statements it saves the server.

use std::thread;
use std::time::Duration;

use super::stage::{CALL, Stage};
use super::warm;
use crate::kit::relay::Relay;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

const TAIL: &str = "SELECT message.id, body FROM message INNER JOIN fetch_timeline_tt USING(id) \
                    ORDER BY message.id DESC LIMIT 20";

impl Stage {
    /// The number of statements that the server received during this many calls answered from memory.
    fn statements(&mut self, calls: u64) -> u64 {
        let before = questions(&mut self.root);
        let remembered = self.proxy.counts().of("calls_from_memory");
        for _ in 0..calls {
            self.client.ok(CALL);
        }
        let now = self.proxy.counts().of("calls_from_memory");
        assert!(now >= remembered + calls - 5, "{}", self.proxy.log());
        questions(&mut self.root) - before
    }
}

fn questions(root: &mut WireClient) -> u64 {
    let rows = root.rows("SHOW GLOBAL STATUS LIKE 'Questions'");
    rows[0][1].as_deref().unwrap().parse().unwrap()
}

#[test]
fn strict_asks_the_server_with_each_call() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let patient = "[freshness]\nwait_ms = 10000\n";
            let mut stage = Stage::new(server.addr(), &[], patient);
            for id in 1..=50 {
                stage.post(id);
                assert_eq!(stage.page().len() as u64, id.min(20));
            }
            let statements = stage.statements(200);
            assert!(statements >= 200, "{statements}");
            assert!(stage.proxy.counts_line().contains("freshness=strict"));
        },
    );
}

#[test]
fn bounded_answers_are_no_older_than_their_bound() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let settings =
                "[freshness]\nmode = 'bounded'\nbounded_ms = 400\n[privileges]\nttl_s = 60\n";
            let mut stage = Stage::new(server.addr(), &[], settings);
            for id in 1..=5 {
                stage.post(id);
                thread::sleep(Duration::from_millis(410));
                assert_eq!(stage.page().len() as u64, id);
            }
            let statements = stage.statements(500);
            assert!(statements < 100, "{statements}");
            let line = stage.proxy.counts_line();
            assert!(line.contains("freshness=bounded(400ms)"), "{line}");
        },
    );
}

#[test]
fn a_session_sees_what_it_wrote_and_what_it_has_read() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let settings = "[freshness]\nmode = 'session'\n[privileges]\nttl_s = 60\n";
            let mut stage = Stage::new(server.addr(), &[], settings);
            for id in 1..=10 {
                // The session's own write.
                let own = id * 2;
                stage.client.ok(&format!(
                    "INSERT INTO message (id, user_id, body) VALUES ({own}, 2, 'own')"
                ));
                assert!(stage.page().contains(&own));
                // Another session's write, which this session has read.
                stage.post(own + 1);
                assert_eq!(
                    stage.client.column("SELECT MAX(id) FROM message"),
                    [(own + 1).to_string()]
                );
                assert!(stage.page().contains(&(own + 1)));
            }
            // A session that only calls causes no statements on the server.
            let statements = stage.statements(500);
            assert!(statements < 100, "{statements}");
            assert!(stage.proxy.counts_line().contains("freshness=session"));
        },
    );
}

/// A follow-up SELECT reads the messages, even if its result table is older.
#[test]
fn a_session_does_not_see_again_what_its_tail_has_seen_gone() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let road = Relay::start(server.addr());
            let settings = "[freshness]\nmode = 'session'\n[privileges]\nttl_s = 60\n";
            let mut stage = Stage::new(road.addr(), &[], settings);
            for id in 1..=5 {
                stage.post(id);
            }
            assert_eq!(stage.client.column("SELECT MAX(id) FROM message"), ["5"]);
            for gone in (2..=5).rev() {
                warm(&stage.proxy, &mut stage.client, CALL);
                road.hold(true);
                stage
                    .root
                    .ok(&format!("DELETE FROM message WHERE id = {gone}"));
                let newest = (gone - 1).to_string();
                assert_eq!(stage.client.column(TAIL)[0], newest);
                stage.client.ok(CALL);
                let page = stage.client.column("SELECT MAX(id) FROM fetch_timeline_tt");
                assert_eq!(page, [newest], "{}", stage.proxy.counts_line());
                road.hold(false);
            }
        },
    );
}

/// Three commits in one packet end in the first commit's state: no row shows whether the last two are readable.
#[test]
fn a_follow_that_is_made_cut_and_made_again_is_told_though_nothing_else_happens() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            stage.post(10);
            stage
                .root
                .ok("INSERT INTO message (id, user_id, body) VALUES (11, 3, 'text')");
            let made = "INSERT INTO follower VALUES (1, 3)";
            let cut = "DELETE FROM follower WHERE user_id = 1 AND follower_id = 3";
            for round in 0..10 {
                let (first, second, expected) = match round % 2 {
                    0 => (made, cut, [10, 11].as_slice()),
                    _ => (cut, made, [10].as_slice()),
                };
                let expected = expected.iter().copied().collect();
                stage.root.query(&format!("{first}; {second}; {first}"));
                assert_eq!(stage.page(), expected);
                let (proxy, client) = (&stage.proxy, &mut stage.client);
                warm(proxy, client, CALL);
                assert_eq!(stage.page(), expected);
            }
        },
    );
}

/// The procedure reads what the session could read, and uncommitted changes are not in the log.
#[test]
fn a_session_that_reads_what_is_not_committed_is_answered_with_it() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            stage
                .client
                .ok("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
            stage.root.ok("BEGIN");
            for id in 1..=10 {
                stage.post(id);
                assert_eq!(stage.page().last(), Some(&id), "{}", stage.proxy.log());
            }
            stage.root.ok("ROLLBACK");
            assert!(stage.page().is_empty());
            stage
                .client
                .ok("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
            warm(&stage.proxy, &mut stage.client, CALL);
        },
    );
}
