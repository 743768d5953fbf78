//! Counts beside pages, from memory: as the server has them, whatever changes between them, as text and prepared.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::feed::CLASSIC_FEED;

use super::app::{SMALL, settings_in};
use super::kept::kept;
use super::linear::checks;
use super::rules::{BEHIND, app};
use super::served::{PATIENT, served};
use crate::kit::database::Database;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_quiet_server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;
use crate::memory::world::World;

/// As apps and ORMs write them.
const COUNTS: [&str; 21] = [
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5)",
    "SELECT COUNT(*) AS `__count` FROM `statuses` WHERE `statuses`.`profile_id` IN (SELECT U0.`following_id` FROM `followers` U0 WHERE U0.`profile_id` = 1)",
    "select count(*) as aggregate from `statuses` inner join `followers` on `followers`.`following_id` = `statuses`.`profile_id` where `followers`.`profile_id` = 2",
    "SELECT COUNT(s.id) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 AND s.deleted_at IS NULL",
    "SELECT COUNT(DISTINCT s.id) FROM statuses s JOIN followers f ON s.profile_id = f.following_id WHERE f.profile_id = 3 AND s.visibility = 'public'",
    "SELECT COUNT(1) FROM statuses WHERE (profile_id = 3 OR profile_id IN (SELECT following_id FROM followers WHERE profile_id = 3)) AND kind = 'photo'",
    "SELECT COUNT(*) FROM statuses s WHERE EXISTS (SELECT 1 FROM followers f WHERE f.following_id = s.profile_id AND f.profile_id = 1) AND likes > 10",
    "SELECT count(*) AS count_1 FROM (SELECT statuses.id AS id, statuses.caption AS caption FROM statuses WHERE statuses.profile_id IN (1, 2, 3) ORDER BY statuses.id DESC) AS anon_1",
    "SELECT COUNT(*) FROM (SELECT DISTINCT s.id, s.caption FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 AND s.likes < 40) t",
    "SELECT count(*) FROM (SELECT s.id FROM statuses s WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = 2) GROUP BY s.id) AS counted",
    "SELECT COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 AND f.accepted = 1",
    "SELECT COUNT(*) FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = 2 AND accepted <> 0) AND p.private = 0",
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 1)",
    "SELECT COUNT(s.id) FROM statuses s LEFT JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (2, 4, 6) AND (p.name LIKE 'user 4%' OR s.likes BETWEEN 5 AND 20)",
    "SELECT COUNT(*) FROM statuses WHERE profile_id = 4 AND created_at >= '2026-01-01 10:00:30'",
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2, 3) AND id > 2900",
    "SELECT COUNT(*) FROM statuses s LEFT JOIN blocks b ON b.profile_id = 2 AND b.blocked_id = s.profile_id WHERE s.profile_id IN (1, 2, 3, 4) AND b.blocked_id IS NULL",
    "SELECT COUNT(*) FROM statuses WHERE (profile_id = 1 OR (visibility = 'public' AND profile_id IN (2, 3)) OR (likes > 40 AND profile_id IN (4, 5))) \
     AND deleted_at IS NULL",
    "/* page */ SELECT COUNT(*) -- all\n FROM statuses WHERE profile_id IN (7, 8) -- of two\n",
    "SELECT COUNT(*) AS `__count` FROM `statuses` WHERE `statuses`.`profile_id` IN (SELECT U0.`id` FROM `profiles` U0 INNER JOIN `followers` U1 ON (U0.`id` = U1.`following_id`) WHERE U1.`profile_id` = 1)",
    "SELECT COUNT(*) FROM statuses s WHERE s.profile_id IN (SELECT p.id FROM followers f JOIN profiles p ON p.id = f.following_id WHERE f.profile_id = 2 AND f.accepted = 1) AND s.likes > 10",
];

/// The same with parameters.
const EXECUTED: [(&str, &[&str]); 5] = [
    (
        "SELECT COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = ?",
        &["1"],
    ),
    (
        "SELECT COUNT(*) FROM statuses WHERE profile_id IN (?, ?, ?) AND likes > ? AND deleted_at IS NULL",
        &["1", "2", "3", "10"],
    ),
    (
        "SELECT COUNT(*) FROM (SELECT s.* FROM statuses s WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = ? AND accepted = ?)) t",
        &["2", "1"],
    ),
    (
        "SELECT COUNT(DISTINCT id) FROM statuses WHERE profile_id IN (?, ?) AND kind = 'photo'",
        &["4", "5"],
    ),
    (
        "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2)",
        &[],
    ),
];

/// A change of anything that a count may depend on.
pub(super) fn change(random: &mut Random, turn: u64) -> String {
    let (reader, author) = (1 + random.below(3), 1 + random.below(12));
    let id = 1 + random.below(3_100);
    match random.below(16) {
        0 => format!(
            "INSERT IGNORE INTO statuses SELECT {id} + 3000, {author}, 'new', 'photo', 'public', {turn} MOD 50, NULL, '2026-01-01 10:00:40', NULL"
        ),
        1 => format!("DELETE FROM statuses WHERE id = {id}"),
        2 => format!("DELETE FROM statuses WHERE profile_id = {author} ORDER BY id DESC LIMIT 3"),
        3 => format!("UPDATE statuses SET profile_id = {author} WHERE id = {id}"),
        4 => format!("UPDATE statuses SET profile_id = NULL WHERE id = {id}"),
        5 => format!("UPDATE statuses SET profile_id = {author} WHERE profile_id IS NULL LIMIT 2"),
        6 => format!(
            "UPDATE statuses SET kind = IF(kind = 'photo', 'text', 'photo'), likes = {turn} MOD 50 WHERE id BETWEEN {id} AND {id} + 30"
        ),
        7 => format!(
            "UPDATE statuses SET deleted_at = IF(deleted_at IS NULL, NOW(), NULL) WHERE profile_id = {author} LIMIT 5"
        ),
        8 => format!("UPDATE statuses SET id = id + 10000 WHERE id = {id}"),
        9 => format!(
            "REPLACE INTO statuses SELECT id, {author}, caption, 'video', 'private', 3, NULL, created_at, NULL FROM statuses WHERE id = {id}"
        ),
        10 => format!(
            "INSERT IGNORE INTO followers VALUES (DEFAULT, {reader}, {author}, {})",
            turn % 2
        ),
        11 => {
            format!("DELETE FROM followers WHERE profile_id = {reader} AND following_id = {author}")
        }
        12 => format!(
            "UPDATE followers SET accepted = 1 - accepted WHERE profile_id = {reader} AND following_id = {author}"
        ),
        13 => format!("INSERT IGNORE INTO blocks VALUES ({reader}, {author})"),
        14 => format!("DELETE FROM blocks WHERE profile_id = {reader} LIMIT 1"),
        _ => format!(
            "UPDATE profiles SET private = 1 - private, name = CONCAT('user ', {turn} MOD 60) WHERE id = {author}"
        ),
    }
}

/// A statement that is prepared on both sides, and the values of its executions.
pub(super) type PreparedOnBoth = ([u32; 2], Vec<Option<&'static str>>);

pub(super) fn prepare_on_both(
    twin: &mut Twin,
    executed: &[(&'static str, &'static [&'static str])],
) -> Vec<PreparedOnBoth> {
    let each = executed.iter().map(|(text, values)| {
        let values = values.iter().copied().map(Some).collect();
        (twin.prepare(text), values)
    });
    each.collect()
}

/// Runs each statement twice, and executes each prepared one twice; now and then one of `behind`.
pub(super) fn run_twice(
    twin: &mut Twin,
    (statements, prepared): (&[&str], &[PreparedOnBoth]),
    behind: &[&str],
    (random, turn): (&mut Random, u64),
) {
    for statement in statements {
        for _ in 0..2 {
            twin.run(statement);
        }
        if turn.is_multiple_of(5) {
            twin.run(random.pick::<&str>(behind));
        }
    }
    for (statement, values) in prepared {
        for _ in 0..2 {
            twin.execute(*statement, values);
        }
    }
}

/// Compares statements and executions after each of many changes, [`change`] and one of the story's own, and after changes that cost all
/// that is known. Returns how often cached rows answered.
pub(super) fn compare_whatever_changes(
    server: &'static Server,
    (story, seed): (&str, u64),
    (statements, executed): (&[&str], &[(&'static str, &'static [&'static str])]),
    mut own_change: impl FnMut(&mut WireClient, u64),
) -> u64 {
    let (database, proxy) = app(server, story);
    let mut twin = Twin::new(server, &proxy, &database.login());
    let (mut writer, mut random) = (database.connect(), Random(seed));
    for statement in statements {
        kept(&proxy, &mut twin, statement);
    }
    let prepared = prepare_on_both(&mut twin, executed);
    let before = proxy.counts().of("feeds_kept");
    for turn in 0..80 {
        change_row_image(&mut writer, turn);
        writer.query(&change(&mut random, turn));
        own_change(&mut writer, turn);
        let all = (statements, &prepared[..]);
        run_twice(&mut twin, all, &BEHIND, (&mut random, turn));
    }
    let kept = proxy.counts().of("feeds_kept") - before;
    for loss in [
        "ALTER TABLE statuses ADD COLUMN extra INT NULL",
        "DELETE FROM statuses WHERE profile_id IN (1, 2)",
        "TRUNCATE TABLE statuses",
    ] {
        writer.ok(loss);
        for statement in statements.iter().chain(statements) {
            twin.run(statement);
        }
    }
    kept
}

/// From time to time the writer's log has other row images.
pub(super) fn change_row_image(writer: &mut WireClient, turn: u64) {
    if turn.is_multiple_of(30) {
        let image = ["FULL", "MINIMAL", "NOBLOB"][(turn / 30 % 3) as usize];
        writer.ok(&format!("SET SESSION binlog_row_image = {image}"));
    }
}

#[test]
fn counts_are_the_servers_whatever_changes_between_them() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "counts");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let (mut other, mut random) = (database.connect(), Random(40));
        for statement in COUNTS {
            kept(&proxy, &mut twin, statement);
        }
        let statements: Vec<_> = EXECUTED
            .iter()
            .map(|(text, values)| {
                let values: Vec<Option<&str>> = values.iter().copied().map(Some).collect();
                (twin.prepare(text), values)
            })
            .collect();
        let before = proxy.counts();
        for turn in 0..150 {
            change_row_image(&mut other, turn);
            let ends = ["COMMIT", "COMMIT", "ROLLBACK"][(turn % 3) as usize];
            other.ok("BEGIN");
            other.query(&change(&mut random, turn));
            other.ok("SAVEPOINT half");
            other.query(&change(&mut random, turn));
            if turn % 4 == 0 {
                other.ok("ROLLBACK TO SAVEPOINT half");
            }
            twin.run(random.pick::<&str>(&COUNTS));
            other.ok(ends);
            for statement in COUNTS {
                twin.run(statement);
            }
            twin.run(random.pick::<&str>(&BEHIND));
            for (statement, values) in &statements {
                twin.execute(*statement, values);
            }
            twin.run(random.pick::<&str>(&BEHIND));
        }
        let counts = proxy.counts();
        let answered = |counts: &Counts| counts.feeds_answered();
        assert!(answered(&counts) > answered(&before) + 150, "{counts:?}");
        for statement in [
            "ALTER TABLE statuses ADD COLUMN extra INT NULL",
            "TRUNCATE TABLE followers",
            "INSERT INTO followers (profile_id, following_id) SELECT 1, id FROM profiles WHERE id < 9",
            "DELETE FROM statuses",
            "INSERT INTO statuses (id, profile_id, kind, visibility, likes, created_at) SELECT id, id MOD 7, 'photo', 'public', 20, NOW() FROM profiles",
            "TRUNCATE TABLE statuses",
        ] {
            other.ok(statement);
            for statement in COUNTS.iter().chain(&COUNTS) {
                twin.run(statement);
            }
        }
    });
}

/// Counts of other things, and counts in places where they are not served, are the server's.
#[test]
fn other_counts_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "countsother");
        let mut twin = Twin::new(server, &proxy, &database.login());
        kept(&proxy, &mut twin, COUNTS[0]);
        database
            .connect()
            .ok("INSERT IGNORE INTO blocks VALUES (1, 2), (2, 2)");
        for statement in [
            // Each row once for each edge of a reader.
            "SELECT COUNT(*) FROM statuses s JOIN blocks b ON b.blocked_id = s.profile_id WHERE s.profile_id IN (1, 2)",
            "SELECT COUNT(caption) FROM statuses WHERE profile_id IN (1, 2)",
            "SELECT COUNT(DISTINCT profile_id) FROM statuses WHERE profile_id IN (1, 2)",
            "SELECT COUNT(DISTINCT kind) FROM statuses WHERE profile_id IN (1, 2)",
            "SELECT COUNT(in_reply_to) FROM statuses s WHERE profile_id IN (1, 2)",
            "SELECT COUNT(*) FROM statuses WHERE kind = 'photo'",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) GROUP BY profile_id",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) HAVING COUNT(*) > 5",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) LIMIT 1",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) LIMIT 0",
            "SELECT COUNT(*), MAX(id) FROM statuses WHERE profile_id IN (1, 2)",
            "SELECT COUNT(*) + 1 FROM statuses WHERE profile_id IN (1, 2)",
            "SELECT COUNT(*) OVER () FROM statuses WHERE profile_id IN (1, 2)",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) AND created_at < NOW()",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) AND RAND() < 2",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) FOR UPDATE",
            "SELECT COUNT(*) FROM (SELECT caption FROM statuses WHERE profile_id IN (1, 2) LIMIT 5) t",
            "SELECT COUNT(*) FROM (SELECT DISTINCT kind FROM statuses WHERE profile_id IN (1, 2)) t",
            "SELECT COUNT(*) FROM (SELECT kind FROM statuses WHERE profile_id IN (1, 2) GROUP BY kind) t",
            "SELECT COUNT(t.caption) FROM (SELECT caption FROM statuses WHERE profile_id IN (1, 2)) t",
            "SELECT COUNT(*) FROM statuses s, followers f WHERE s.profile_id IN (1, 2) AND f.id < 5",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) UNION SELECT 5",
            "SELECT COUNT(id) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1",
            "SELECT COUNT(f.id) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) AND caption = (SELECT MAX(caption) FROM statuses)",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2, NULL)",
            "SELECT COUNT(*) FROM statuses WHERE profile_id NOT IN (1, 2)",
            "SELECT COUNT(*) FROM statuses WHERE NOT profile_id IN (1, 2)",
            "SELECT COUNT (*) FROM statuses WHERE profile_id IN (1, 2)",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN ('1', '2x')",
            "SELECT COUNT(*) FROM none WHERE profile_id IN (1, 2)",
        ] {
            for _ in 0..3 {
                twin.run(statement);
                twin.run("SHOW WARNINGS");
                twin.run("SELECT FOUND_ROWS()");
            }
        }
        // In a transaction its snapshot counts, and what it wrote itself.
        twin.ok("BEGIN");
        for _ in 0..3 {
            twin.run(COUNTS[0]);
            database
                .connect()
                .ok("DELETE FROM statuses WHERE profile_id = 1 ORDER BY id LIMIT 1");
        }
        twin.ok("COMMIT");
        for _ in 0..3 {
            twin.run(COUNTS[0]);
        }
    });
}

/// In transactions that have only read, memory answers with the snapshot's numbers, which the count has opened.
#[test]
fn counts_in_transactions_are_those_of_the_snapshot() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "countssnapshot");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let (mut other, mut random) = (database.connect(), Random(54));
        kept(&proxy, &mut twin, COUNTS[0]);
        let beside = [
            "SELECT COUNT(*) FROM profiles WHERE private = 1",
            "SELECT COUNT(*), SUM(likes) FROM statuses",
            "SELECT COUNT(*) FROM followers",
        ];
        let (text, values) = EXECUTED[1];
        let values: Vec<Option<&str>> = values.iter().copied().map(Some).collect();
        for (begin, end) in [
            ("BEGIN", "COMMIT"),
            ("START TRANSACTION READ ONLY", "ROLLBACK"),
            ("SET autocommit = 0", "COMMIT"),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "COMMIT",
            ),
            ("BEGIN", "COMMIT"),
        ] {
            let prepared = twin.prepare(text);
            let before = proxy.counts();
            let begun = Instant::now();
            let mut turn = 0;
            while turn < 40 || proxy.counts().of("feeds_kept") < before.of("feeds_kept") + 60 {
                turn += 1;
                assert!(
                    begun.elapsed() < Duration::from_secs(120),
                    "{begin}: {:?}",
                    proxy.counts()
                );
                twin.ok(begin);
                let first = random.below(4);
                if first == 0 {
                    twin.run(random.pick::<&str>(&beside));
                }
                twin.run(COUNTS[random.below(COUNTS.len() as u64) as usize]);
                twin.run(random.pick::<&str>(&BEHIND));
                for _ in 0..3 {
                    if turn % 4 != 3 {
                        other.query(&change(&mut random, turn));
                    }
                    for statement in [COUNTS[0], COUNTS[3], COUNTS[10], COUNTS[15]] {
                        twin.run(statement);
                    }
                    twin.execute(prepared, &values);
                    twin.run(random.pick::<&str>(&beside));
                }
                if turn % 5 == 0 {
                    twin.run("UPDATE statuses SET likes = likes WHERE id = 99999999");
                    twin.run(COUNTS[0]);
                }
                twin.ok(end);
            }
            twin.ok("SET autocommit = 1");
        }
    });
}

/// A fault that was found: a table that loses its unique key, or is gone, changes counts with a LEFT JOIN to it.
#[test]
fn tables_of_left_joins_are_followed() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "countsleft");
        let mut root = database.connect();
        let mut twin = Twin::new(server, &proxy, &database.login());
        for (at, change) in [
            "ALTER TABLE {} DROP PRIMARY KEY, ADD KEY (id)",
            "RENAME TABLE {} TO {}_gone",
            "DROP TABLE {}",
        ]
        .iter()
        .enumerate()
        {
            let table = format!("extras{at}");
            root.ok(&format!(
                "CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, private INT)"
            ));
            root.ok(&format!(
                "INSERT INTO {table} SELECT id, private FROM profiles"
            ));
            let statement = format!(
                "SELECT COUNT(*) FROM statuses s LEFT JOIN {table} p ON p.id = s.profile_id WHERE s.profile_id IN (1, 2, 3)"
            );
            kept(&proxy, &mut twin, &statement);
            root.ok(&change.replace("{}", &table));
            root.query(&format!("INSERT INTO {table} SELECT * FROM {table}"));
            for _ in 0..5 {
                twin.run(&statement);
            }
        }
    });
}

/// MariaDB's FOUND_ROWS() behind a count of nothing follows the plan: it may be the number of before. Where memory answers, it is restored.
#[test]
fn found_rows_behind_counts_of_nothing_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "countsnothing");
        database.connect().ok("DELETE FROM profiles WHERE id = 2");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let page = "SELECT id FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 4";
        for statement in [COUNTS[0], page] {
            kept(&proxy, &mut twin, statement);
        }
        let counts: Vec<String> = [
            "AND id = 999999",
            "AND id IS NULL",
            "AND kind = 'none'",
            "AND id = 5 AND id = 6",
            "AND id > 999998",
            "AND id > 999998 AND kind = 'photo'",
        ]
        .iter()
        .map(|condition| {
            format!("SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2) {condition}")
        })
        .chain([
            "SELECT COUNT(*) FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id = 2".to_owned(),
            "SELECT COUNT(*) FROM statuses WHERE profile_id = 77777".to_owned(),
        ])
        .collect();
        let texts = [
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, ?) AND id > ? AND likes > 2",
            "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, ?) AND id = ?",
        ];
        let executed = texts.map(|text| twin.prepare(text));
        for count in &counts {
            kept(&proxy, &mut twin, count);
        }
        let (mut random, mut asked) = (Random(46), 0);
        for _ in 0..300 {
            // Several without the server, and then what it leaves.
            let before = proxy.counts().of("feeds_kept");
            let several = 1 + random.below(6);
            for _ in 0..several {
                match random.below(4) {
                    0 => drop(twin.run(page)),
                    1 => {
                        let statement = *random.pick(&executed);
                        twin.execute(statement, &[Some("2"), Some("999999")]);
                    }
                    _ => drop(twin.run(random.pick::<String>(&counts))),
                }
            }
            if proxy.counts().of("feeds_kept") == before + several {
                twin.run("SELECT FOUND_ROWS()");
                twin.run(random.pick::<&str>(&BEHIND));
                asked += 1;
            }
        }
        // A fault that was found: what the server runs keeps the number of before, too.
        for relayed in [
            "SELECT COUNT(*) FROM profiles WHERE id = 77777",
            "SELECT MAX(id) FROM profiles WHERE id = 77777",
        ] {
            let prepared = twin.prepare(relayed);
            for _ in 0..5 {
                twin.run(page);
                twin.run(relayed);
                twin.run("SELECT FOUND_ROWS()");
                twin.run(page);
                twin.execute(prepared, &[]);
                twin.run("SELECT FOUND_ROWS()");
            }
        }
        assert!(asked > 40, "{asked}: {:?}", proxy.counts());
    });
}

/// Without a unique key an edge may be there twice: a join counts its author's messages twice, and IN or DISTINCT once.
#[test]
fn copies_of_edges_count_in_joins() {
    on_each_server(|server| {
        let database = Database::empty(server, "countscopies");
        let mut root = database.connect();
        SMALL.make(&mut root, &mut Random(5));
        root.ok("ALTER TABLE followers ADD KEY (profile_id), DROP KEY profile_id");
        root.ok("INSERT INTO followers SELECT NULL, profile_id, following_id, 1 FROM followers WHERE id MOD 3 = 0");
        let proxy = served(server, &database, "home", &settings_in(&database));
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut random = Random(41);
        let joined = [2, 3, 4, 8, 9, 10, 11].map(|at| COUNTS[at]);
        for statement in joined {
            kept(&proxy, &mut twin, statement);
        }
        let executed = twin.prepare(EXECUTED[0].0);
        for turn in 0..60 {
            root.query(&match turn % 3 {
                0 => format!(
                    "INSERT INTO followers VALUES (NULL, {}, {}, {})",
                    1 + random.below(3),
                    1 + random.below(12),
                    turn % 2
                ),
                1 => format!(
                    "DELETE FROM followers WHERE profile_id = {} ORDER BY id DESC LIMIT 1",
                    1 + random.below(3)
                ),
                _ => change(&mut random, turn),
            });
            for statement in joined {
                twin.run(statement);
            }
            twin.execute(executed, &[Some("1")]);
        }
        let answered = proxy.counts().feeds_answered();
        assert!(answered > 60, "{:?}", proxy.counts());
    });
}

/// A count is compared with the server's as pages are, and a wrong one is not sent.
#[test]
fn a_wrong_count_is_found_and_not_told() {
    on_each_server(|server| {
        let database = Database::empty(server, "countshadow");
        SMALL.make(&mut database.connect(), &mut Random(5));
        let settings = format!("{}\n[shadow]\nrate = 1\n", settings_in(&database));
        let proxy = served(server, &database, "home", &settings);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        let executed = twin.prepare("SELECT COUNT(*) FROM statuses WHERE profile_id IN (?, 3)");
        for turn in 0..10 {
            for statement in COUNTS {
                kept(&proxy, &mut twin, statement);
            }
            twin.execute(executed, &[Some("1")]);
            other.ok(&format!("DELETE FROM statuses WHERE id MOD 100 = {turn}"));
        }
        let counts = proxy.counts();
        assert!(
            counts.of("shadow_same") >= COUNTS.len() as u64,
            "{counts:?}"
        );
        assert_eq!(counts.of("shadow_different"), 0, "{}", proxy.log());

        // Only a comparison can detect this change.
        kept(&proxy, &mut twin, COUNTS[0]);
        other.ok("SET sql_log_bin = 0");
        other.ok("DELETE FROM statuses WHERE profile_id = 1 LIMIT 1");
        twin.run(COUNTS[0]);
        proxy.wait_for_log("a page made of kept rows is not the server's: row 1 is another one");
        for statement in COUNTS {
            twin.run(statement);
        }
    });
}

pub(super) fn classic(
    server: &'static crate::kit::servers::Server,
    story: &str,
) -> (Database, Proxy) {
    let database = Database::classic(server, story);
    let mut root = database.connect();
    root.ok("INSERT INTO follower VALUES (1, 2), (1, 3), (1, 4)");
    for id in 1..=30 {
        let author = 2 + id % 3;
        root.ok(&format!(
            "INSERT INTO message (id, user_id, body) VALUES ({id}, {author}, 'x')"
        ));
    }
    let settings = [PATIENT, CLASSIC_FEED].concat();
    let proxy = served(server, &database, "classic", &settings);
    (database, proxy)
}

const OF_READER: [&str; 3] = [
    "SELECT COUNT(*) FROM message JOIN follower ON message.user_id = follower.follower_id WHERE follower.user_id = 1",
    "SELECT COUNT(*) FROM message WHERE user_id IN (SELECT follower_id FROM follower WHERE follower.user_id = 1) AND body <> 'hidden'",
    "SELECT COUNT(*) FROM (SELECT id FROM message WHERE user_id IN (2, 3, 4)) t",
];

/// Each transaction adds a message of one author and removes one of another: the number never changes.
#[test]
fn a_count_is_of_one_moment() {
    on_each_quiet_server(|server| {
        let (database, proxy) = classic(server, "countmoment");
        let (login, addr) = (database.login(), server.addr());
        let quota = Quota::new(&proxy, checks(), checks() / 4, Counts::feeds_answered);
        let world = World::new(1);
        thread::scope(|scope| {
            let running = world.run();
            let writer = scope.spawn(|| {
                let mut client = WireClient::login(addr, &login);
                let mut next = 30;
                while !world.is_stopping() {
                    next += 1;
                    client.ok("BEGIN");
                    client.ok(&format!("DELETE FROM message WHERE id = {}", next - 30));
                    client.ok(&format!(
                        "INSERT INTO message (id, user_id, body) VALUES ({next}, {}, 'x')",
                        2 + next % 3
                    ));
                    client.ok("COMMIT");
                    thread::sleep(Duration::from_micros(next % 7 * 1_500));
                }
            });
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    let (quota, proxy, login) = (&quota, &proxy, &login);
                    scope.spawn(move || {
                        let mut client = proxy.login(login);
                        while let Some(turn) = quota.take() {
                            let statement = OF_READER[(turn % 3) as usize];
                            assert_eq!(client.column(statement), ["30"], "to {statement}");
                        }
                    })
                })
                .collect();
            running.outlast(readers, vec![writer]);
        });
        eprintln!("{:?}", proxy.counts());
    });
}

/// A number that was asked for with a reader's edges is cached for all readers. A fault that was found, in some thousands of turns: an edge
/// that went between memory's answer and the server's left its author without messages.
#[test]
fn a_readers_edges_leave_the_numbers_of_others() {
    on_each_quiet_server(|server| {
        let (database, proxy) = classic(server, "countedges");
        let mut root = database.connect();
        root.ok("INSERT INTO follower VALUES (2, 2), (2, 3), (2, 4)");
        let (login, addr) = (database.login(), server.addr());
        let quota = Quota::new(&proxy, checks(), checks() / 50, Counts::feeds_answered);
        let world = World::new(1);
        thread::scope(|scope| {
            let running = world.run();
            let writer = scope.spawn(|| {
                let mut client = WireClient::login(addr, &login);
                let mut next = 30;
                while !world.is_stopping() {
                    next += 1;
                    let author = 2 + next % 3;
                    client.ok("BEGIN");
                    client.ok(&format!("DELETE FROM message WHERE id = {}", next - 30));
                    client.ok(&format!(
                        "INSERT INTO message (id, user_id, body) VALUES ({next}, {author}, 'x')"
                    ));
                    client.ok("COMMIT");
                    thread::sleep(Duration::from_micros(next % 7 * 300));
                    client.ok(&format!(
                        "DELETE FROM follower WHERE user_id = 1 AND follower_id = {author}"
                    ));
                    thread::sleep(Duration::from_micros(next % 5 * 300));
                    client.ok(&format!("INSERT INTO follower VALUES (1, {author})"));
                    // Numbers are cached in between.
                    thread::sleep(Duration::from_millis(next % 4 * 4));
                }
            });
            let readers: Vec<_> = (0..4)
                .map(|number| {
                    let (quota, proxy, login) = (&quota, &proxy, &login);
                    scope.spawn(move || {
                        let mut client = proxy.login(login);
                        while let Some(turn) = quota.take() {
                            let statement = OF_READER[(turn % 2) as usize];
                            if number < 3 {
                                let count = client.column(statement)[0].parse::<u64>().unwrap();
                                assert!([20, 30].contains(&count), "{count} to {statement}");
                                continue;
                            }
                            let statement = statement.replace("user_id = 1", "user_id = 2");
                            assert_eq!(client.column(&statement), ["30"], "to {statement}");
                        }
                    })
                })
                .collect();
            running.outlast(readers, vec![writer]);
        });
        eprintln!("{:?}", proxy.counts());
    });
}

/// How many messages were written or deleted: begun, and acknowledged.
struct Progress {
    begun: AtomicU64,
    done: AtomicU64,
}

impl Progress {
    fn starting_at(number: u64) -> Progress {
        Progress {
            begun: AtomicU64::new(number),
            done: AtomicU64::new(number),
        }
    }

    fn run(&self, client: &mut WireClient, statement: &str) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        client.ok(statement);
        self.done.fetch_add(1, Ordering::SeqCst);
    }
}

/// A number is between what was acknowledged before the statement and what was begun by its reply.
#[test]
fn no_count_is_stale_while_others_write() {
    /// The most messages that an author keeps, so that a long run is as quick at its end.
    const KEPT: u64 = 1_000;
    on_each_quiet_server(|server| {
        let (database, proxy) = classic(server, "countlinear");
        let (login, addr) = (database.login(), server.addr());
        let quota = Quota::new(&proxy, checks(), checks() / 4, Counts::feeds_answered);
        let world = World::new(1);
        let (inserts, deletes) = (Progress::starting_at(30), Progress::starting_at(0));
        thread::scope(|scope| {
            let running = world.run();
            let writers: Vec<_> = (2..5)
                .map(|author| {
                    let (world, login, inserts, deletes) = (&world, &login, &inserts, &deletes);
                    scope.spawn(move || {
                        let mut client = WireClient::login(addr, login);
                        let (mut random, mut kept) = (Random(author), 0);
                        while !world.is_stopping() {
                            if kept > 0 && (kept > KEPT || random.below(4) == 0) {
                                kept -= 1;
                                let oldest = format!(
                                    "DELETE FROM message WHERE user_id = {author} ORDER BY id LIMIT 1"
                                );
                                deletes.run(&mut client, &oldest);
                            } else {
                                kept += 1;
                                let new = format!(
                                    "INSERT INTO message (user_id, body) VALUES ({author}, 'x')"
                                );
                                inserts.run(&mut client, &new);
                            }
                            thread::sleep(Duration::from_micros(random.below(11) * 2_000));
                        }
                    })
                })
                .collect();
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    let (quota, proxy, login) = (&quota, &proxy, &login);
                    let (inserts, deletes) = (&inserts, &deletes);
                    scope.spawn(move || {
                        let mut client = proxy.login(login);
                        while let Some(turn) = quota.take() {
                            let statement = OF_READER[(turn % 3) as usize];
                            let written = inserts.done.load(Ordering::SeqCst);
                            let gone = deletes.done.load(Ordering::SeqCst);
                            let number: u64 = client.column(statement)[0].parse().unwrap();
                            let most = inserts.begun.load(Ordering::SeqCst) - gone;
                            let least = written - deletes.begun.load(Ordering::SeqCst);
                            assert!(
                                (least..=most).contains(&number),
                                "{number} is not in {least}..={most}: {statement}"
                            );
                        }
                    })
                })
                .collect();
            running.outlast(readers, writers);
        });
        eprintln!("{:?}; {:?}", inserts.done, proxy.counts());
    });
}
