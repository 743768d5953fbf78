//! Differences from a timeline of InnoDB: Spider's settings, ids that no key keeps unique, failed data nodes, and the reports on them.

use super::Spread;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, headwater};

const FILLED: &[&str] = &[
    "INSERT INTO follower VALUES (1, 2), (1, 3), (1, 4), (1, 5)",
    "INSERT INTO message VALUES (1, 2, 'a'), (2, 3, 'b'), (3, 4, 'c'), (4, 5, 'd'), (5, 2, 'e')",
];
const CALL: &str = "CALL fetch_timeline_ids(1)";
const IDS: &str = "SELECT id FROM fetch_timeline_tt ORDER BY id DESC";

fn filled(data: usize) -> Option<Spread> {
    let spread = Spread::start(data, false)?;
    let mut client = spread.direct();
    FILLED.iter().for_each(|sql| {
        client.ok(sql);
    });
    Some(spread)
}

#[test]
fn settings_that_let_a_read_be_of_several_moments_have_the_procedure_run() {
    let Some(spread) = filled(2) else { return };
    let proxy = spread.without_memory();
    for (setting, owned) in [
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            false,
        ),
        ("SET spider_sync_trx_isolation = 0", false),
        ("SET spider_semi_trx = 0", false),
        ("SET spider_sync_autocommit = 0", false),
        ("SET spider_semi_trx_isolation = 1", false),
        ("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", true),
        (
            "SET spider_split_read = 1, spider_semi_split_read = 1",
            true,
        ),
        ("SET spider_bka_mode = 2", true),
        ("SET spider_direct_aggregate = 0", true),
        ("SET spider_bgs_mode = 3", true),
        ("SET spider_internal_xa = 1", true),
        ("SET spider_use_consistent_snapshot = 1", true),
        ("DO 0", true),
    ] {
        let mut client = proxy.login(&spread.login);
        client.ok(setting);
        let before = proxy.counts();
        // The first call loads the follow list, where a separate query for it is allowed.
        for _ in 0..3 {
            client.ok(CALL);
            assert_eq!(client.column(IDS), ["5", "4", "3", "2", "1"], "{setting}");
        }
        let after = proxy.counts();
        let relayed =
            |counts: &crate::kit::proxy::Counts| counts.of("calls_relayed[session_settings]");
        assert_eq!(
            relayed(&after) - relayed(&before),
            if owned { 0 } else { 3 },
            "{setting}: {after:?}"
        );
    }
}

#[test]
fn an_id_that_two_authors_have_is_the_procedures_to_refuse() {
    const DUPLICATE: u16 = 1062;
    let Some(spread) = filled(4) else { return };
    let proxy = spread.proxy();
    let mut client = proxy.login(&spread.login);
    client.ok(CALL);
    let mut direct = spread.direct();
    // No unique key prevents the duplicate on any node.
    direct.ok("INSERT INTO message VALUES (5, 3, 'twice')");
    for mut each in [spread.direct(), client, proxy.login(&spread.login)] {
        for call in [CALL, "CALL fetch_timeline_ids2(1, 5)"] {
            assert_eq!(each.error(call).code, DUPLICATE, "{call}");
        }
    }
    let counts = proxy.counts();
    assert_eq!(counts.of("calls_relayed[lookup_failed]"), 4, "{counts:?}");
    direct.ok("DELETE FROM message WHERE body = 'twice'");
    let mut client = proxy.login(&spread.login);
    client.ok(CALL);
    assert_eq!(client.column(IDS), ["5", "4", "3", "2", "1"]);
}

#[test]
fn a_data_node_that_is_gone_is_told_of_as_directly() {
    let Some(mut spread) = filled(2) else { return };
    let proxy = spread.proxy();
    let mut sessions = [spread.direct(), proxy.login(&spread.login)];
    for session in &mut sessions {
        session.ok(CALL);
    }
    // These servers are configured to lose recent commits in a crash otherwise.
    let mut last = spread.data_node_of(3);
    last.ok("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    last.ok("UPDATE message SET body = CONCAT(body, '!')");
    spread.spider.data_nodes[1].kill();
    // Spider reports each lost connection once; after that, it fails to connect.
    const LOST: u16 = 12_701;
    let codes = sessions.each_mut().map(|session| {
        let mut tries = (0..5).map(|_| session.error(CALL).code);
        let newest = tries.find(|code| *code != LOST);
        [
            newest,
            Some(session.error("CALL fetch_timeline_ids2(1, 3)").code),
        ]
    });
    assert_eq!(codes[0], codes[1], "{codes:?}");
    spread.spider.data_nodes[1].restart().unwrap();
    for mut session in sessions.into_iter().chain([proxy.login(&spread.login)]) {
        // Spider may detect the change only on its first attempt.
        let _ = session.query(CALL);
        session.ok(CALL);
        assert_eq!(session.column(IDS), ["5", "4", "3", "2", "1"]);
    }
}

#[test]
fn check_says_whether_the_logs_of_the_data_nodes_can_be_followed() {
    let Some(spread) = filled(2) else { return };
    let report = |more: &[&str]| {
        let output = headwater(&[])
            .args([
                "check",
                "--upstream",
                &spread.spider.node.addr().to_string(),
            ])
            .args(["--listen", "127.0.0.1:0"])
            .args(ROOT_SERVICE)
            .args(more)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let good = report(&[]);
    assert!(
        good.contains("from memory") && !good.contains("relay"),
        "{good}"
    );
    let mut node = spread.data_node_of(1);
    let port = spread.spider.data_nodes[1].port();
    node.ok("ALTER TABLE message DROP PRIMARY KEY, ADD PRIMARY KEY (id, user_id)");
    node.ok("SET GLOBAL binlog_format = MIXED");
    let bad = report(&[]);
    for said in ["primary key", "binlog_format"] {
        let named = |line: &str| {
            line.contains(said) && line.contains(&format!("data node 127.0.0.1:{port}"))
        };
        assert!(bad.lines().any(named), "{said}: {bad}");
    }
    assert!(bad.contains("lookups") && !bad.contains("relay"), "{bad}");
}

#[test]
fn follow_lists_on_data_nodes_are_asked_for_there() {
    let Some(spread) = Spread::start(2, true) else {
        return;
    };
    let mut direct = spread.direct();
    FILLED.iter().for_each(|sql| {
        direct.ok(sql);
    });
    let proxy = spread.proxy();
    let mut client = proxy.login(&spread.login);
    for ids in [&["5", "4", "3", "2", "1"][..], &["4", "3", "2"]] {
        for _ in 0..2 {
            client.ok(CALL);
            assert_eq!(client.column(IDS), ids);
        }
        // A change on the data node itself: no log of the Spider node contains it.
        let unfollowed = "DELETE FROM follower WHERE user_id = 1 AND follower_id = 2";
        spread.data_node_of(1).ok(unfollowed);
    }
    // The data nodes have their own settings.
    client.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    client.ok(CALL);
    let counts = proxy.counts();
    assert_eq!(counts.of("calls_owned"), 4, "{counts:?}");
    assert_eq!(counts.of("calls_relayed[session_settings]"), 1);
}

#[test]
fn memory_is_not_filled_for_what_it_does_not_answer() {
    let Some(spread) = filled(2) else { return };
    let settings = "[privileges]\nttl_s = 3600\n[index]\npreload = true\n";
    let proxy = Proxy::configured(spread.spider.node.addr(), settings, ROOT_SERVICE);
    proxy.wait_for_log("in database tl: accelerated");
    let mut client = proxy.login(&spread.login);
    client.ok(CALL);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(!proxy.log().contains("preload"), "{}", proxy.log());
}
