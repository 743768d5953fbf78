//! An address that leads to several servers: the service account is on one of them, and a client on another.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use crate::kit::haproxy::{self, HaProxy};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::relay::Relay;
use crate::kit::replica::another;
use crate::kit::semi_sync::{let_go, wait_for_nobody};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};
use crate::kit::{patience, wait_until};
use crate::memory::stage::{CALL, page, post};
use crate::memory::{CLASSIC, prepare, warm};

/// The classic tables, in which reader 1 follows author 2.
fn follow_one(server: &PrivateServer) -> (WireClient, Login) {
    let login = prepare(server.addr());
    let mut root = WireClient::login(server.addr(), &login);
    root.ok("INSERT INTO follower VALUES (1, 2)");
    (root, login)
}

/// Each connection leads to the next server, those of sessions and those of the service account alike.
#[test]
fn each_session_has_its_own_servers_answers_where_connections_go_to_two_servers_in_turn() {
    if !haproxy::is_here() {
        return;
    }
    on_servers_of_its_own(
        |_| &[],
        |one| {
            let other = another(one, &[]);
            let (first, login) = follow_one(one);
            let (second, _) = follow_one(&other);
            let mut roots = [first, second];
            let balancer = HaProxy::in_turn(&[one.addr(), other.addr()]);
            // Headwater compares each answer with the procedure's, on the session's server.
            let flags = [ROOT_SERVICE, &["--shadow", "1"]].concat();
            let proxy = Proxy::start(balancer.addr(), &flags);
            proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            let ports = [one.port(), other.port()].map(|port| port.to_string());
            let mut sessions: Vec<(usize, WireClient)> = Vec::new();
            for server in [0, 1, 0, 1, 0, 1] {
                let deadline = patience();
                loop {
                    assert!(Instant::now() < deadline, "no session on {server}");
                    let mut session = proxy.login(&login);
                    if session.column("SELECT @@port")[0] == ports[server] {
                        sessions.push((server, session));
                        break;
                    }
                }
            }
            let begun = Instant::now();
            let mut id = 0;
            let mut remembered = 0;
            // Runs until memory has answered, whichever server its rows are from.
            while id < 100 || remembered < 100 {
                let counts = || proxy.counts_line();
                assert!(
                    begun.elapsed() < Duration::from_secs(120),
                    "{}\n{}",
                    counts(),
                    proxy.log()
                );
                id += 1;
                for (server, root) in roots.iter_mut().enumerate() {
                    post(root, id + 10_000_000 * server as u64);
                }
                for (server, session) in &mut sessions {
                    let newest = id + 10_000_000 * *server as u64;
                    let oldest = newest - newest.min(id).min(20) + 1;
                    let expected = (oldest..=newest).collect();
                    assert_eq!(page(session), expected, "{}", proxy.log());
                }
                if id % 20 == 0 {
                    remembered = proxy.counts().of("calls_from_memory");
                }
            }
            thread::sleep(Duration::from_millis(500));
            let counts = proxy.counts();
            eprintln!("{id} rounds: {}", proxy.counts_line());
            assert_eq!(counts.of("shadow_different"), 0, "{}", proxy.log());
            assert_eq!(counts.relayed(), 0, "{}", proxy.log());
        },
    );
}

/// A list of open transactions on one server proves nothing about commits on the other.
#[test]
fn a_commit_that_waits_is_not_missed_where_the_other_server_is_asked_what_waits() {
    on_servers_of_its_own(
        |_| &[],
        |one| {
            let other = another(one, &[]);
            let (mut root, login) = follow_one(one);
            drop(follow_one(&other));
            post(&mut root, 10);
            // Message 30 waits: it is in the log, but not readable.
            wait_for_nobody(one, "AFTER_SYNC", Duration::from_secs(60));
            let mut writer = WireClient::login(one.addr(), &login);
            let thread_of =
                |client: &mut WireClient| client.column("SELECT CONNECTION_ID()").remove(0);
            let held_by = thread_of(&mut writer);
            let held = thread::spawn(move || post(&mut writer, 30));
            wait_until("the commit waits", || {
                root.column("SELECT COUNT(*) FROM information_schema.INNODB_TRX") == ["1"]
            });
            thread::sleep(Duration::from_millis(500));
            let relay = Relay::start(one.addr());
            let proxy = Proxy::start(relay.addr(), ROOT_SERVICE);
            proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            let mut client = proxy.login(&login);
            assert_eq!(page(&mut client), [10].into());
            // Kills the connections of the service account except the stream. They reconnect to the other server, also the one that waits
            // for open transactions to end, two seconds later.
            let own = [thread_of(&mut client), thread_of(&mut root), held_by].join(",");
            thread::sleep(Duration::from_secs(1));
            relay.lead_to(other.addr());
            let askers = format!(
                "SELECT id FROM information_schema.processlist WHERE user = 'root' AND command NOT LIKE 'Binlog%' \
                 AND id NOT IN ({own})"
            );
            for thread in root.column(&askers) {
                root.query(&format!("KILL {thread}"));
            }
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(4) {
                assert_eq!(page(&mut client), [10].into(), "{}", proxy.log());
                thread::sleep(Duration::from_millis(10));
            }
            relay.lead_to(one.addr());
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(3) {
                assert_eq!(page(&mut client), [10].into(), "{}", proxy.log());
                thread::sleep(Duration::from_millis(10));
            }
            let_go(one);
            held.join().unwrap();
            for _ in 0..100 {
                assert_eq!(page(&mut client), [10, 30].into(), "{}", proxy.log());
                thread::sleep(Duration::from_millis(10));
            }
            warm(&proxy, &mut client, CALL);
            assert_eq!(page(&mut client), [10, 30].into(), "{}", proxy.log());
        },
    );
}
