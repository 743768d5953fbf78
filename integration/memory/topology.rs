//! The server in a group of servers: as a replica, and as one of two at the same address.

use std::time::Instant;

use headwater_lab::feed::CLASSIC_FEED;
use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::stage::{CALL, page, post};
use super::{CLASSIC, prepare, warm};
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::relay::Relay;
use crate::kit::replica::{another, follow, from_now_on, wait_for};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};

/// Makes one server replicate another from now on, and creates the tables on the source.
fn replicate(source: &PrivateServer, replica: &PrivateServer) -> Login {
    follow(replica, source.port(), "root", &from_now_on(source));
    let login = prepare(source.addr());
    let mut root = WireClient::login(source.addr(), &login);
    root.ok("INSERT INTO follower VALUES (1, 2)");
    login
}

fn wait_for_follow(replica: &PrivateServer) {
    wait_for(replica, &format!("SELECT COUNT(*) FROM {CLASSIC}.follower"));
}

/// A replica's changes are in the next answer from memory, whichever server they were written on.
#[test]
fn in_front_of_a_replica_memory_has_what_the_replica_has() {
    on_servers_of_its_own(
        |_| &[],
        |source| {
            let options: &[&str] = match source.kind() {
                ServerKind::Mariadb => &["--log-slave-updates=ON", "--slave-parallel-threads=4"],
                ServerKind::Mysql => &["--replica-parallel-workers=4"],
            };
            let replica = another(source, options);
            let login = replicate(source, &replica);
            wait_for_follow(&replica);
            let patient = "[freshness]\nwait_ms = 10000\n";
            let proxy = Proxy::configured(replica.addr(), patient, ROOT_SERVICE);
            proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            let mut client = proxy.login(&login);
            warm(&proxy, &mut client, CALL);
            let remembered = proxy.counts().of("calls_from_memory");
            let mut root = WireClient::login(source.addr(), &login);
            let mut seen = WireClient::login(replica.addr(), &login);
            for id in 1..=300_u64 {
                post(&mut root, id);
                let newest = || "SELECT COALESCE(MAX(id), 0) FROM message";
                let deadline = patience();
                while seen.column(newest()) != [id.to_string()] {
                    assert!(Instant::now() < deadline, "message {id} is not replicated");
                }
                assert_eq!(page(&mut client).last(), Some(&id), "{}", proxy.log());
            }
            let counts = proxy.counts();
            assert_eq!(counts.relayed(), 0, "{}", proxy.log());
            let remembered = counts.of("calls_from_memory") - remembered;
            assert!(remembered >= 150, "{remembered} of 300 from memory");
        },
    );
}

/// Such a replica's own log lacks the replicated changes.
#[test]
fn a_replica_that_does_not_log_what_it_replicates_is_named() {
    on_servers_of_its_own(
        |_| &[],
        |source| {
            let (options, variable): (&[&str], _) = match source.kind() {
                ServerKind::Mariadb => (&["--log-slave-updates=OFF"], "log_slave_updates"),
                ServerKind::Mysql => (&["--log-replica-updates=OFF"], "log_replica_updates"),
            };
            let replica = another(source, options);
            let login = replicate(source, &replica);
            wait_for_follow(&replica);
            let proxy = Proxy::start(replica.addr(), ROOT_SERVICE);
            proxy.wait_for_log(variable);
            let mut root = WireClient::login(source.addr(), &login);
            let mut client = proxy.login(&login);
            for id in 1..=20 {
                post(&mut root, id);
                let there = format!("SELECT COUNT(*) FROM {CLASSIC}.message WHERE id={id}");
                wait_for(&replica, &there);
                assert_eq!(page(&mut client).len() as u64, id);
            }
            let counts = proxy.counts();
            assert_eq!(counts.of("calls_from_memory"), 0, "{}", proxy.log());
            assert_eq!(counts.relayed(), 0, "{}", proxy.log());
        },
    );
}

/// Memory answers a session only if it was filled from the server that the session is connected to.
#[test]
fn an_address_that_leads_to_another_server_gives_each_session_its_own_servers_answers() {
    on_servers_of_its_own(
        |_| &[],
        |one| {
            let other = another(one, &[]);
            let roots = [(&*one, 10), (&other, 20)].map(|(server, id)| {
                let login = prepare(server.addr());
                let mut root = WireClient::login(server.addr(), &login);
                root.ok("INSERT INTO follower VALUES (1, 2)");
                post(&mut root, id);
                (root, login)
            });
            let [(mut first, login), (mut second, _)] = roots;
            let relay = Relay::start(one.addr());
            let proxy = Proxy::start(relay.addr(), ROOT_SERVICE);
            proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            let mut of_one = proxy.login(&login);
            warm(&proxy, &mut of_one, CALL);
            relay.lead_to(other.addr());
            let mut of_other = proxy.login(&login);
            for id in 100..150 {
                post(&mut first, id);
                post(&mut second, id + 1_000);
                assert_eq!(page(&mut of_one).last(), Some(&id), "{}", proxy.log());
                let theirs = page(&mut of_other);
                assert_eq!(theirs.last(), Some(&(id + 1_000)), "{}", proxy.log());
            }
            assert_eq!(proxy.counts().relayed(), 0, "{}", proxy.log());
            // The first server dies: Headwater follows the other one's log.
            one.kill();
            warm(&proxy, &mut of_other, CALL);
            post(&mut second, 5_000);
            let ids = page(&mut of_other);
            assert_eq!(ids.last(), Some(&5_000), "{}", proxy.log());
            assert!(ids.iter().all(|id| *id > 1_000), "{ids:?}");
        },
    );
}

/// Rows of one server are neither shown to nor cached for sessions of another server.
#[test]
fn rows_of_one_server_are_not_shown_in_sessions_of_another() {
    const TAIL: &str = "SELECT message.id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";
    const JOIN: &str = "SELECT message.id,body FROM message JOIN follower ON message.user_id = follower.follower_id \
                        WHERE follower.user_id = 1 ORDER BY message.id DESC LIMIT 20";
    on_servers_of_its_own(
        |_| &[],
        |one| {
            let other = another(one, &[]);
            let [login, _] = [(&*one, "one"), (&other, "other")].map(|(server, text)| {
                let login = prepare(server.addr());
                let mut root = WireClient::login(server.addr(), &login);
                root.ok("INSERT INTO follower VALUES (1, 2)");
                // With so many rows, MySQL's plan for a follow-up SELECT is certain.
                let rows: Vec<String> = (1..=5_000)
                    .map(|id| format!("({id}, {}, '{text}')", 2 + id % 2))
                    .collect();
                root.ok(&format!(
                    "INSERT INTO message (id, user_id, body) VALUES {}",
                    rows.join(",")
                ));
                root.query("ANALYZE TABLE message");
                login
            });
            let relay = Relay::start(one.addr());
            let proxy = Proxy::configured(relay.addr(), CLASSIC_FEED, ROOT_SERVICE);
            proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            let mut of_one = proxy.login(&login);
            let kept = || {
                let counts = proxy.counts();
                [counts.of("tails_kept"), counts.of("feeds_kept")]
            };
            let shows = |client: &mut WireClient, text: &str| {
                client.ok(CALL);
                for statement in [TAIL, JOIN] {
                    let rows = client.rows(statement);
                    assert_eq!(rows.len(), 20, "{statement}");
                    let bodies = rows.iter().map(|row| row[1].as_deref());
                    for body in bodies {
                        assert_eq!(body, Some(text), "{statement}: {}", proxy.log());
                    }
                }
            };
            let deadline = patience();
            while kept().contains(&0) {
                assert!(
                    Instant::now() < deadline,
                    "{:?}\n{}",
                    proxy.counts(),
                    proxy.log()
                );
                shows(&mut of_one, "one");
            }
            relay.lead_to(other.addr());
            let mut of_other = proxy.login(&login);
            let before = kept();
            for _ in 0..40 {
                shows(&mut of_other, "other");
            }
            assert_eq!(kept(), before, "told in a session of another server");
            for _ in 0..40 {
                shows(&mut of_one, "one");
                shows(&mut of_other, "other");
            }
            assert_ne!(kept(), before);
        },
    );
}
