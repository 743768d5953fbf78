//! Pages from the logs of all data nodes: of one moment of all nodes, and not served while the location of messages is uncertain.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Spread;
use crate::kit::how_many;
use crate::kit::patience;
use crate::kit::proxy::Proxy;
use crate::kit::quota::{Quota, from_memory};
use crate::kit::relay::Relay;
use crate::kit::wire_client::WireClient;
use crate::kit::wire_client::answer::Answer;

const CALL: &str = "CALL fetch_timeline_ids(1)";
const IDS: &str = "SELECT id FROM fetch_timeline_tt ORDER BY id DESC";
/// The reader's authors: on four nodes, two on each.
const AUTHORS: u64 = 8;
/// Messages that remain of each author: few enough that a page contains all of them.
const KEPT: u64 = 10;
/// Calls between two checks of how many memory has served.
const BATCH: u64 = 10;

/// Reader 1 follows all authors, each of whom has a message.
fn filled(data: usize) -> Option<Spread> {
    let spread = Spread::start(data, false)?;
    fill(&spread);
    Some(spread)
}

fn fill(spread: &Spread) {
    let mut client = spread.direct();
    for author in 1..=AUTHORS {
        client.ok(&format!("INSERT INTO follower VALUES (1, {author})"));
        client.ok(&format!(
            "INSERT INTO message VALUES ({author}, {author}, 'first')"
        ));
    }
}

fn remembered(proxy: &Proxy) -> u64 {
    proxy.counts().of("calls_from_memory")
}

/// Calls until an answer comes from memory.
#[track_caller]
fn warm(proxy: &Proxy, client: &mut WireClient) {
    crate::memory::warm(proxy, client, CALL);
}

fn page(client: &mut WireClient) -> Vec<u64> {
    client.ok(CALL);
    let ids = client.column(IDS);
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

/// A writer posts on one node after the other, each time after the last OK: a page with a message contains all messages before it. The
/// writes go through the Spider node's sessions, or directly to the data nodes.
#[test]
fn a_page_is_of_one_moment_of_all_nodes() {
    let Some(spread) = filled(4) else { return };
    let proxy = spread.proxy();
    warm(&proxy, &mut proxy.login(&spread.login));
    let before = remembered(&proxy);
    let acknowledged = AtomicU64::new(AUTHORS);
    let stop = AtomicBool::new(false);
    let batches = how_many("HEADWATER_CHECKS", 1_000) / BATCH;
    let quota = Quota::new(&proxy, batches, batches * BATCH / 10, from_memory);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut nodes: Vec<_> = (0..4).map(|user| spread.data_node_of(user)).collect();
            for id in AUTHORS + 1.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let author = 1 + (id - 1) % AUTHORS;
                let node = &mut nodes[author as usize % 4];
                node.ok(&format!(
                    "INSERT INTO message VALUES ({id}, {author}, 'then')"
                ));
                acknowledged.store(id, Ordering::SeqCst);
                if id > KEPT * AUTHORS {
                    let old = id - KEPT * AUTHORS;
                    node.ok(&format!("DELETE FROM message WHERE id = {old}"));
                }
                // Without a pause, hardly any page is read between two posts.
                thread::sleep(Duration::from_millis(id % 5));
            }
        });
        let reader = scope.spawn(|| {
            let mut client = proxy.login(&spread.login);
            while quota.take().is_some() {
                let before = remembered(&proxy);
                let mut torn = Vec::new();
                for _ in 0..BATCH {
                    let least = acknowledged.load(Ordering::SeqCst);
                    let ids = page(&mut client);
                    let newest = ids[0];
                    assert!(newest >= least, "{newest}, and {least} was acknowledged");
                    // The oldest may be deleted by now.
                    let must = (KEPT - 2) * AUTHORS;
                    if (newest.saturating_sub(must) + 1..newest).any(|id| !ids.contains(&id)) {
                        torn.push(ids);
                    }
                }
                // The procedure and lookups read one node after the other.
                let elsewhere = BATCH - (remembered(&proxy) - before);
                assert!(
                    torn.len() as u64 <= elsewhere,
                    "{elsewhere} from elsewhere: {torn:?}"
                );
            }
        });
        let ended = reader.join();
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        ended.unwrap();
    });
    let counts = proxy.counts();
    let (checks, remembered) = (quota.taken() * BATCH, remembered(&proxy) - before);
    let written = acknowledged.load(Ordering::SeqCst);
    eprintln!("{remembered} of {checks} from memory; {written} written; {counts:?}");
}

/// The table definitions on the Spider node and on each data node decide what a page may contain.
#[test]
fn tables_that_are_defined_anew_are_read_anew() {
    let Some(spread) = filled(2) else { return };
    let proxy = spread.proxy();
    let mut client = proxy.login(&spread.login);
    let mut direct = spread.direct();
    let mut node = spread.data_node_of(1);
    warm(&proxy, &mut client);
    let all: Vec<u64> = (1..=AUTHORS).rev().collect();
    assert_eq!(page(&mut client), all);
    // A row on a node to which its author does not belong: Spider does not search there.
    node.ok("INSERT INTO message VALUES (100, 2, 'astray')");
    for _ in 0..20 {
        assert_eq!(page(&mut client), all);
    }
    node.ok("DELETE FROM message WHERE id = 100");
    // On the Spider node: from here, all authors are on one node.
    let port = spread.spider.data_nodes[1].port();
    direct.ok(&format!(
        "ALTER TABLE message PARTITION BY RANGE (user_id) (PARTITION p0 VALUES LESS THAN MAXVALUE COMMENT='wrapper \"mysql\", \
         host \"127.0.0.1\", port \"{port}\", user \"root\", password \"\", database \"tl\", table \"message\"')"
    ));
    let moved = {
        let mut fresh = spread.direct();
        page(&mut fresh)
    };
    for _ in 0..50 {
        assert_eq!(page(&mut client), moved);
    }
    warm(&proxy, &mut client);
    assert_eq!(page(&mut client), moved);
    // On the data node.
    for statement in [
        "ALTER TABLE message ADD COLUMN extra int FIRST",
        "INSERT INTO message VALUES (7, 200, 1, 'behind it')",
        "TRUNCATE TABLE message",
        "INSERT INTO message VALUES (7, 201, 1, 'behind that')",
        "RENAME TABLE message TO other",
        "CREATE TABLE message LIKE other",
        "INSERT INTO message VALUES (7, 202, 1, 'another table')",
    ] {
        node.ok(statement);
        let mut direct = spread.direct();
        let [told, direct] =
            [&mut client, &mut direct].map(|client| match client.query(CALL).pop() {
                Some(Answer::Err(error)) => Err(error.code),
                _ => Ok(client.column(IDS)),
            });
        assert_eq!(told, direct, "{statement}");
    }
    warm(&proxy, &mut client);
    assert_eq!(page(&mut client), page(&mut spread.direct()));
}

#[test]
fn several_partitions_may_be_on_one_node() {
    let Some(spider) = crate::kit::spider::spider(2, &[]) else {
        return;
    };
    spider
        .create_partitioned_tables(super::DATABASE, false, 2)
        .unwrap();
    let spread = Spread::of(spider);
    fill(&spread);
    let proxy = spread.proxy();
    let mut client = proxy.login(&spread.login);
    warm(&proxy, &mut client);
    // Author 3 is in the second partition of the second node.
    let mut node = spread.data_node_of(3);
    for id in 100..150 {
        node.ok(&format!(
            "INSERT INTO message_1 VALUES ({id}, 3, 'straight there')"
        ));
        assert_eq!(page(&mut client), page(&mut spread.direct()));
    }
    assert!(remembered(&proxy) > 25, "{:?}", proxy.counts());
}

/// These tables may differ from what the Spider node has open.
#[test]
fn a_map_that_is_changed_by_hand_is_not_followed() {
    let Some(spread) = filled(2) else { return };
    let mut direct = spread.direct();
    let proxy = spread.proxy();
    let mut client = proxy.login(&spread.login);
    warm(&proxy, &mut client);
    let port = spread.spider.data_nodes[0].port();
    direct.ok(&format!(
        "UPDATE mysql.spider_tables SET tgt_table_name = 'other', port = {port} WHERE table_name = 'message#P#p1'"
    ));
    let deadline = patience();
    while !proxy.log().contains("run FLUSH TABLES `tl`.`message`") {
        assert!(Instant::now() < deadline, "{}", proxy.log());
        assert_eq!(page(&mut client), page(&mut spread.direct()));
    }
    let before = remembered(&proxy);
    for _ in 0..50 {
        assert_eq!(page(&mut client), page(&mut spread.direct()));
    }
    assert_eq!(remembered(&proxy), before);
}

/// Existing connections stay with their server, as when a host name or address moves.
#[test]
fn an_address_that_leads_to_another_server_is_noticed() {
    let Some(spread) = filled(2) else { return };
    let [one, other] = [0, 1].map(|at| spread.spider.data_nodes[at].addr());
    let road = Relay::start(one);
    let mut direct = spread.direct();
    direct.ok(&format!(
        "ALTER TABLE message PARTITION BY RANGE (user_id) (PARTITION p0 VALUES LESS THAN MAXVALUE COMMENT='wrapper \"mysql\", \
         host \"127.0.0.1\", port \"{}\", user \"root\", password \"\", database \"tl\", table \"message\"')",
        road.addr().port()
    ));
    let proxy = spread.proxy();
    let mut client = proxy.login(&spread.login);
    warm(&proxy, &mut client);
    let before = page(&mut client);
    road.lead_to(other);
    proxy.wait_for_log("another server has come to this address");
    // The Spider node reconnects where it has no connection.
    direct.ok("FLUSH TABLES");
    let connections = WireClient::login(one, &spread.login).column(
        "SELECT id FROM information_schema.PROCESSLIST WHERE db = 'tl' AND command <> 'Query'",
    );
    let mut root = WireClient::login(one, &spread.login);
    for connection in connections {
        let _ = root.query(&format!("KILL {connection}"));
    }
    let mut fresh = spread.direct();
    let _ = fresh.query(CALL);
    let now = page(&mut fresh);
    assert_ne!(now, before);
    let mut client = proxy.login(&spread.login);
    let _ = client.query(CALL);
    for _ in 0..20 {
        assert_eq!(page(&mut client), now);
    }
    warm(&proxy, &mut client);
    assert_eq!(page(&mut client), now);
}

#[test]
fn a_data_node_that_comes_back_is_followed_again() {
    let Some(mut spread) = filled(2) else { return };
    let proxy = spread.proxy();
    let mut client = proxy.login(&spread.login);
    let mut last = spread.data_node_of(1);
    last.ok("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    last.ok("UPDATE message SET body = CONCAT(body, '!')");
    warm(&proxy, &mut client);
    spread.spider.data_nodes[1].kill();
    let begun = Instant::now();
    let mut failed = 0;
    while begun.elapsed() < Duration::from_secs(1) {
        // As without Headwater: memory does not serve for an unreachable node.
        let reply = client.query(CALL);
        failed += u32::from(matches!(reply.last(), Some(Answer::Err(_))));
        client = proxy.login(&spread.login);
    }
    assert!(failed > 0);
    spread.spider.data_nodes[1].restart().unwrap();
    // Spider may detect the change only on its first attempt.
    let _ = client.query(CALL);
    warm(&proxy, &mut client);
    let mut node = spread.data_node_of(1);
    for id in 300..320 {
        node.ok(&format!("INSERT INTO message VALUES ({id}, 1, 'again')"));
        assert_eq!(page(&mut client)[0], id);
    }
}

#[test]
fn what_is_in_the_way_is_named_and_lookups_answer() {
    let Some(spread) = filled(2) else { return };
    let mut node = spread.data_node_of(1);
    let mut direct = spread.direct();
    let port = spread.spider.data_nodes[1].port();
    for (on_node, statement, said, back) in [
        (
            true,
            "ALTER TABLE tl.message DROP PRIMARY KEY, ADD PRIMARY KEY (id, user_id)",
            "primary key",
            "ALTER TABLE tl.message DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
        ),
        (
            true,
            "ALTER TABLE tl.message MODIFY id bigint unsigned NOT NULL",
            "is not int unsigned",
            "ALTER TABLE tl.message MODIFY id int unsigned NOT NULL",
        ),
        (
            true,
            "SET GLOBAL binlog_format = MIXED",
            "binlog_format",
            "SET GLOBAL binlog_format = ROW",
        ),
        (
            false,
            "SET GLOBAL spider_error_read_mode = 1",
            "spider_error_read_mode",
            "SET GLOBAL spider_error_read_mode = 0",
        ),
    ] {
        let mut run = |statement: &str| match on_node {
            true => node.ok(statement),
            false => direct.ok(statement),
        };
        run(statement);
        let proxy = spread.proxy();
        let mut client = proxy.login(&spread.login);
        let deadline = Instant::now() + Duration::from_secs(15);
        let named = |log: &str| {
            log.lines()
                .any(|line| line.contains("lookups alone") && line.contains(said))
        };
        while !named(&proxy.log()) {
            assert!(Instant::now() < deadline, "{statement}: {}", proxy.log());
            assert_eq!(page(&mut client).len(), AUTHORS as usize);
            thread::sleep(Duration::from_millis(50));
        }
        let log = proxy.log();
        assert!(
            log.contains("answered by lookups alone, not from memory"),
            "{log}"
        );
        if on_node {
            assert!(
                log.contains(&format!("data node 127.0.0.1:{port}")),
                "{log}"
            );
        }
        assert_eq!(remembered(&proxy), 0);
        run(back);
        // Headwater checks it again by itself.
        warm(&proxy, &mut client);
    }
}

#[test]
fn a_data_node_that_does_not_know_the_account_is_named() {
    let Some(spread) = filled(2) else { return };
    let mut direct = spread.direct();
    direct.ok("CREATE USER watcher IDENTIFIED BY 'w'");
    direct.ok("GRANT ALL ON *.* TO watcher");
    let flags = ["--service-user", "watcher", "--service-password", "w"];
    let proxy = Proxy::start(spread.spider.node.addr(), &flags);
    proxy.wait_for_log("in database tl: accelerated");
    let mut client = proxy.login(&spread.login);
    let deadline = Instant::now() + Duration::from_secs(15);
    while !proxy.log().contains("data node 127.0.0.1:") {
        assert!(Instant::now() < deadline, "{}", proxy.log());
        assert_eq!(page(&mut client).len(), AUTHORS as usize);
    }
    let log = proxy.log();
    assert!(log.contains("Access denied for user 'watcher'"), "{log}");
    for server in &spread.spider.data_nodes {
        let mut root = WireClient::login(server.addr(), &spread.login);
        root.ok("CREATE USER watcher IDENTIFIED BY 'w'");
        root.ok("GRANT ALL ON *.* TO watcher");
    }
    warm(&proxy, &mut client);
}
