//! How the server's defaults, its settings and other sessions' locks affect the service account's sessions.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::ServerKind;

use super::stage::{CALL, Stage, page, post};
use super::warm;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

/// A session without autocommit would read the same old snapshot for ever.
#[test]
fn sessions_that_do_not_commit_by_default_do_not_make_memory_stale() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            stage.root.ok("SET GLOBAL autocommit = 0");
            // Open connections keep their settings: another Headwater has new sessions.
            stage.begin_anew(server.addr(), "SET autocommit = 1");
            for id in 1..=30 {
                stage.post(id);
                assert_eq!(stage.page().last(), Some(&id), "{}", stage.proxy.log());
            }
        },
    );
}

/// A truncated result would pass for the whole list.
#[test]
fn a_limit_on_every_select_does_not_shorten_lists() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let follows: Vec<String> = (3..60).map(|author| format!("(1,{author})")).collect();
            let messages: Vec<String> = (1..=600)
                .map(|id| format!("({id},{},'x')", 2 + id % 58))
                .collect();
            let rows = [
                format!("INSERT INTO follower VALUES {}", follows.join(",")),
                format!("INSERT INTO message VALUES {}", messages.join(",")),
            ];
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            let mut stage = Stage::new(server.addr(), &rows, "");
            stage.root.ok("SET GLOBAL sql_select_limit = 15");
            let no_limit = "SET sql_select_limit = 18446744073709551615";
            stage.begin_anew(server.addr(), no_limit);
            let procedure = page(&mut stage.root);
            assert!(procedure.len() > 100, "{procedure:?}");
            assert_eq!(stage.page(), procedure, "{}", stage.proxy.log());
            for id in 1_000..1_030 {
                stage.post(id);
                assert_eq!(stage.page().last(), Some(&id), "{}", stage.proxy.log());
            }
        },
    );
}

/// A freshness proof that waits for a lock takes one connection, not one more every few milliseconds.
#[test]
fn a_locked_table_does_not_take_up_the_servers_connections() {
    on_servers_of_its_own(
        |_| &["--max-connections=60"],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            let mut locker = WireClient::login(server.addr(), &stage.login);
            locker.ok("LOCK TABLES message WRITE");
            post(&mut locker, 10);
            let mut most = 0;
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(6) {
                let connected = stage
                    .root
                    .rows("SHOW GLOBAL STATUS LIKE 'Threads_connected'");
                most = most.max(connected[0][1].as_deref().unwrap().parse::<u64>().unwrap());
                thread::sleep(Duration::from_millis(50));
            }
            assert!(most <= 30, "{most} connections\n{}", stage.proxy.log());
            locker.ok("UNLOCK TABLES");
            assert!(stage.page().contains(&10));
            warm(&stage.proxy, &mut stage.client, CALL);
            assert!(stage.page().contains(&10));
        },
    );
}

/// Headwater notices at run time when a setting makes the log insufficient.
#[test]
fn a_setting_that_is_changed_in_mid_run_is_named_and_memory_comes_back_when_it_is_mended() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let (variable, bad, good) = match server.kind() {
                ServerKind::Mysql => ("binlog_order_commits", "OFF", "ON"),
                ServerKind::Mariadb => ("binlog_format", "MIXED", "ROW"),
            };
            let mut stage = Stage::new(server.addr(), &[], "");
            stage.root.ok(&format!("SET GLOBAL {variable} = {bad}"));
            stage
                .proxy
                .wait_for_log(&format!("{variable} = \"{bad}\" on the server"));
            let before = stage.proxy.counts().of("calls_from_memory");
            for id in 1..=20 {
                stage.post(id);
                assert_eq!(stage.page().last(), Some(&id));
            }
            assert_eq!(stage.proxy.counts().of("calls_from_memory"), before);
            stage.root.ok(&format!("SET GLOBAL {variable} = {good}"));
            warm(&stage.proxy, &mut stage.client, CALL);
        },
    );
}

/// The ids, by activity, of the service account's sessions and all other connections, except the querying one.
fn others(root: &mut WireClient) -> Vec<(String, String)> {
    let own = root.column("SELECT CONNECTION_ID()");
    let rows = root.rows("SHOW PROCESSLIST");
    let sessions = rows
        .into_iter()
        .filter(|row| row[1].as_deref() == Some("root"));
    let sessions = sessions.map(|row| (row[0].clone().unwrap(), row[4].clone().unwrap()));
    sessions.filter(|(id, _)| *id != own[0]).collect()
}

/// Headwater waits for a definition check that is blocked by a lock, and starts no second one meanwhile.
#[test]
fn checks_that_hang_are_not_doubled() {
    on_servers_of_its_own(
        |_| &["--max-connections=60"],
        |server| {
            let settings = "[limits]\nrecheck_ms = 100\ncheck_ms = 1000\n";
            let mut stage = Stage::new(server.addr(), &[], settings);
            let mut locker = WireClient::login(server.addr(), &stage.login);
            locker.ok("LOCK TABLES message WRITE");
            let mut most = 0;
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(16) {
                // Except the client's and the locker's.
                most = most.max(others(&mut stage.root).len() - 2);
                thread::sleep(Duration::from_millis(50));
            }
            assert!(
                most <= headwater_proxy::account::MOST_CONNECTIONS,
                "{most} connections\n{}",
                stage.proxy.log()
            );
            locker.ok("UNLOCK TABLES");
            warm(&stage.proxy, &mut stage.client, CALL);
        },
    );
}

/// The server ends sessions that are idle for five seconds, but not the service account's.
#[test]
fn a_short_wait_timeout_of_the_server_is_no_trouble() {
    on_servers_of_its_own(
        |_| {
            &[
                "--wait-timeout=5",
                "--interactive-timeout=5",
                "--net-read-timeout=1",
                "--net-write-timeout=1",
            ]
        },
        |server| {
            let keep = "SET wait_timeout = 1000";
            let mut stage = Stage::new(server.addr(), &[keep], "");
            stage.client.ok(keep);
            let first = others(&mut stage.root);
            thread::sleep(Duration::from_secs(3));
            // What was opened for the start alone is closed by then.
            let mut before = others(&mut stage.root);
            before.retain(|(id, _)| first.iter().any(|(own, _)| own == id));
            thread::sleep(Duration::from_secs(12));
            let (there, log) = (others(&mut stage.root), stage.proxy.log());
            for (id, does) in before {
                assert!(
                    there.iter().any(|(own, _)| *own == id),
                    "{id} {does}\n{log}"
                );
            }
            stage.post(5);
            assert!(stage.page().contains(&5));
            assert!(!warns(&log), "{log}");
        },
    );
}

/// A server's guard script kills all idle sessions: Headwater replaces them, and logs no warning.
#[test]
fn a_connection_that_was_lost_while_idle_is_opened_anew_without_a_warning() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let settings = "[limits]\nrecheck_ms = 1000\n[freshness]\nwait_ms = 10000\n";
            let mut stage = Stage::new(server.addr(), &[], settings);
            let client = stage.client.column("SELECT CONNECTION_ID()");
            for id in 1..=5 {
                thread::sleep(Duration::from_millis(700));
                for (session, does) in others(&mut stage.root) {
                    if does == "Sleep" && session != client[0] {
                        stage.root.query(&format!("KILL {session}"));
                    }
                }
                thread::sleep(Duration::from_millis(100));
                stage.post(id);
                let before = stage.proxy.counts().of("calls_from_memory");
                assert!(stage.page().contains(&id));
                let log = stage.proxy.log();
                assert_eq!(
                    stage.proxy.counts().of("calls_from_memory"),
                    before + 1,
                    "{log}"
                );
                assert!(!warns(&log), "{log}");
            }
        },
    );
}

/// Whether the log has a warning other than the one about the limit on sessions, which depends on the machine.
fn warns(log: &str) -> bool {
    let mut lines = log.lines();
    lines.any(|line| line.contains("WARN") && !line.contains("there is room for"))
}
