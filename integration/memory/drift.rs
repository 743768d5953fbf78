//! A replica with a complete log but different rows becomes the primary: Headwater uses nothing that memory has from the old one.

use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::CLASSIC;
use super::scene::{AUTHORS, GOES_ON, READERS, Scene, options};
use crate::kit::how_many;
use crate::kit::quota::{Quota, kept_pages};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

/// A way for a replica's rows to differ from its log.
type Drift = (&'static str, fn(&Scene<'_>));

/// No message has an id from here on.
const FREE: u64 = 2_900;

const DRIFTS: [Drift; 11] = [
    ("a transaction was skipped", skipped),
    ("messages were deleted without the log", |scene| {
        unlogged(
            scene,
            &["DELETE FROM message WHERE id > 1900 AND user_id <= 8"],
        );
    }),
    ("messages were inserted without the log", |scene| {
        let rows: Vec<String> = (1..=40)
            .map(|n| format!("({}, {}, 'here alone')", FREE + n, 1 + n % AUTHORS))
            .collect();
        let rows = rows.join(",");
        unlogged(
            scene,
            &[&format!(
                "INSERT INTO message (id, user_id, body) VALUES {rows}"
            )],
        );
    }),
    ("messages have other authors", |scene| {
        unlogged(
            scene,
            &["UPDATE message SET user_id = 1 + user_id % 40 WHERE id > 1950"],
        );
    }),
    ("messages have other texts", |scene| {
        unlogged(
            scene,
            &["UPDATE message SET body = 'other' WHERE id > 1800 AND id % 3 = 0"],
        );
    }),
    ("somebody follows more", |scene| {
        unlogged(
            scene,
            &["INSERT IGNORE INTO follower SELECT DISTINCT user_id, 7 FROM follower"],
        );
    }),
    ("somebody follows fewer", |scene| {
        unlogged(
            scene,
            &["DELETE FROM follower WHERE (user_id + follower_id) % 5 = 0"],
        );
    }),
    ("rows beside messages differ", |scene| {
        unlogged(
            scene,
            &["UPDATE user_names SET name = 'renamed' WHERE id % 2 = 0"],
        );
    }),
    ("a filter left a table out", filtered),
    ("errors were passed over", idempotent),
    ("it was restored from another state", |scene| {
        unlogged(
            scene,
            &[
                "CREATE TEMPORARY TABLE saved SELECT * FROM message WHERE id <= 1500",
                "DELETE FROM message",
                "INSERT INTO message SELECT * FROM saved",
                "DELETE FROM follower WHERE user_id > 30",
            ],
        );
    }),
];

/// Drifts that leave ids, authors and follows unchanged.
const OF_COLUMNS: [&str; 2] = ["messages have other texts", "rows beside messages differ"];

/// Changes rows on the replica alone.
fn unlogged(scene: &Scene<'_>, statements: &[&str]) {
    let mut root = WireClient::login(scene.replica.addr(), &scene.login);
    root.ok("SET sql_log_bin = 0");
    for statement in statements {
        root.ok(statement);
    }
}

fn replica_runs(scene: &Scene<'_>, runs: bool) {
    let mut root = WireClient::connect(scene.replica.addr());
    root.ok(match (scene.replica.kind(), runs) {
        (ServerKind::Mariadb, true) => "START SLAVE",
        (ServerKind::Mariadb, false) => "STOP SLAVE",
        (ServerKind::Mysql, true) => "START REPLICA",
        (ServerKind::Mysql, false) => "STOP REPLICA",
    });
}

/// The operator skips one transaction, as each server's manual describes.
fn skipped(scene: &Scene<'_>) {
    replica_runs(scene, false);
    let mut primary = WireClient::login(scene.primary.addr(), &scene.login);
    primary.ok("DELETE FROM message WHERE id > 1960 AND user_id > 20");
    let mut root = WireClient::connect(scene.replica.addr());
    match scene.replica.kind() {
        ServerKind::Mariadb => {
            root.ok("SET GLOBAL sql_slave_skip_counter = 1");
        }
        ServerKind::Mysql => {
            let executed = primary.column("SELECT @@GLOBAL.gtid_executed").remove(0);
            let (source, numbers) = executed.rsplit_once(':').unwrap();
            let last = numbers.rsplit('-').next().unwrap();
            root.ok(&format!("SET gtid_next = '{source}:{last}'"));
            root.ok("BEGIN");
            root.ok("COMMIT");
            root.ok("SET gtid_next = 'AUTOMATIC'");
        }
    }
    replica_runs(scene, true);
    // MariaDB's log shows no trace of a skipped transaction once another one follows.
    primary.ok("INSERT INTO message (id, user_id, body) VALUES (2810, 6, 'of both')");
    scene.wait_for_the_log();
}

/// The replica filters out the follows.
fn filtered(scene: &Scene<'_>) {
    replica_runs(scene, false);
    let mut root = WireClient::connect(scene.replica.addr());
    root.ok(&match scene.replica.kind() {
        ServerKind::Mariadb => format!("SET GLOBAL replicate_ignore_table = '{CLASSIC}.follower'"),
        ServerKind::Mysql => {
            format!("CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = ({CLASSIC}.follower)")
        }
    });
    let mut primary = WireClient::login(scene.primary.addr(), &scene.login);
    primary.ok("DELETE FROM follower WHERE user_id % 3 = 0 AND follower_id % 2 = 0");
    primary.ok("INSERT INTO message (id, user_id, body) VALUES (2800, 5, 'of both')");
    replica_runs(scene, true);
    scene.wait_for_the_log();
}

/// The replica ignores changes that do not match its rows.
fn idempotent(scene: &Scene<'_>) {
    unlogged(
        scene,
        &["DELETE FROM message WHERE id BETWEEN 1970 AND 1990"],
    );
    let mut root = WireClient::connect(scene.replica.addr());
    root.ok(match scene.replica.kind() {
        ServerKind::Mariadb => "SET GLOBAL slave_exec_mode = IDEMPOTENT",
        ServerKind::Mysql => "SET GLOBAL replica_exec_mode = IDEMPOTENT",
    });
    let mut primary = WireClient::login(scene.primary.addr(), &scene.login);
    primary.ok("UPDATE message SET body = 'changed there' WHERE id BETWEEN 1970 AND 1995");
    primary.ok("INSERT INTO message (id, user_id, body) VALUES (2820, 7, 'of both')");
    scene.wait_for_the_log();
}

/// Promotes a replica with these drifts, and compares all pages while writers run.
fn promote(primary: &mut PrivateServer, drifts: &[Drift], rounds: u64) {
    let mut scene = Scene::new(primary);
    for (name, drift) in drifts {
        eprintln!("{name}");
        drift(&scene);
    }
    scene.check(scene.primary);
    scene.wait_for_the_log();
    scene.fail_over();
    assert!(scene.authors() > 0, "{}", scene.proxy.log());
    for round in 0..rounds {
        scene.check(&scene.replica);
        scene.write(&scene.replica, 4_000 + round * 10..4_010 + round * 10);
    }
    let quota = Quota::new(&scene.proxy, 1, READERS, kept_pages);
    while quota.take().is_some() {
        scene.check(&scene.replica);
    }
    let (counts, log) = (scene.proxy.counts(), scene.proxy.log());
    assert!(
        log.contains(GOES_ON) && !log.contains("contradict"),
        "{log}"
    );
    // Cached rows belong to one server, so their columns are not compared.
    let differs = drifts.iter().any(|(name, _)| !OF_COLUMNS.contains(name));
    let says = log.contains("the server has other rows than the one that memory was filled beside");
    assert_eq!(
        (says, counts.of("memory_different") > 0),
        (differs, differs),
        "{log}"
    );
}

/// The successor process fills its own memory from the server that is the primary then.
#[test]
fn a_successor_knows_nothing_of_the_old_server() {
    on_servers_of_its_own(options, |primary| {
        let mut scene = Scene::new(primary);
        let (_, drifts) = DRIFTS.split_last().unwrap();
        drifts.iter().for_each(|(_, drift)| drift(&scene));
        scene.check(scene.primary);
        scene.fail_over();
        let next = scene.proxy.beside(&["--takeover"]);
        next.wait_for_log("taken over from process");
        let before = std::mem::replace(&mut scene.proxy, next);
        assert!(before.wait().status.success());
        for round in 0..rounds() {
            scene.check(&scene.replica);
            scene.write(&scene.replica, 4_000 + round * 10..4_010 + round * 10);
        }
        scene.check(&scene.replica);
    });
}

/// The number of comparisons of all pages that gives the requested total: one page of ids and two of rows a reader.
fn rounds() -> u64 {
    how_many("HEADWATER_CHECKS", 1_000).min(10_000) / (READERS * 3) + 1
}

#[test]
fn a_replica_that_has_drifted_is_answered_by_its_own_rows() {
    // A restore would undo the other drifts.
    let (_, together) = DRIFTS.split_last().unwrap();
    on_servers_of_its_own(options, |primary| promote(primary, together, rounds()));
}

/// One drift at a time, so that none hides another's fault. `make soak` runs it with more comparisons of each.
#[test]
fn each_drift_by_itself() {
    let all = how_many("HEADWATER_CHECKS", 0) > 0;
    let told = if all { &DRIFTS[..] } else { &DRIFTS[10..] };
    for drift in told {
        on_servers_of_its_own(options, |primary| promote(primary, &[*drift], rounds()));
    }
}
