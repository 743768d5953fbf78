//! The largest value of a column, as the time of the last message, with and without the count beside it.

use super::counts::{change, change_row_image, prepare_on_both, run_twice};
use super::kept::kept;
use super::rules::{BEHIND, app};
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;

/// As apps and ORMs write them: the third is Rails' `cache_key`, of a relation.
const STATEMENTS: [&str; 11] = [
    "SELECT MAX(created_at) FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5)",
    "SELECT MAX(`statuses`.`created_at`) AS `created_at__max` FROM `statuses` WHERE `statuses`.`profile_id` IN (SELECT U0.`following_id` FROM `followers` U0 WHERE U0.`profile_id` = 3)",
    "SELECT COUNT(*) AS `size`, MAX(`statuses`.`created_at`) AS timestamp FROM `statuses` INNER JOIN `followers` ON `followers`.`following_id` = `statuses`.`profile_id` WHERE `followers`.`profile_id` = 1",
    "SELECT MAX(s.deleted_at), COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 2 AND f.accepted = 1 AND s.visibility = 'public'",
    "SELECT MAX(deleted_at) AS gone FROM statuses WHERE profile_id = 4",
    "SELECT COUNT(*), MAX(id) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND id > 2900 AND kind = 'photo'",
    "SELECT MAX(id) AS newest, COUNT(*) AS n FROM statuses WHERE profile_id IN (2, 3)",
    "SELECT COUNT(*), MAX(s.created_at) FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (3, 4, 5) AND p.private = 0",
    "SELECT MAX(created_at) FROM statuses WHERE profile_id IN (77777, 88888)",
    "SELECT COUNT(*), MAX(created_at) FROM statuses WHERE profile_id IN (77777, 88888)",
    "SELECT COUNT(*), MAX(created_at) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 1)",
];

const EXECUTED: [(&str, &[&str]); 3] = [
    (
        "SELECT MAX(created_at) FROM statuses WHERE profile_id IN (?, ?) AND likes > ?",
        &["3", "4", "10"],
    ),
    (
        "SELECT COUNT(*) AS size, MAX(s.created_at) AS timestamp FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = ? AND s.kind = 'photo'",
        &["2"],
    ),
    (
        "SELECT MAX(deleted_at), COUNT(*) FROM statuses WHERE profile_id IN (?, ?)",
        &["1", "5"],
    ),
];

#[test]
fn the_largest_is_the_servers_for_each_type_of_date() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "largest");
        let (mut other, mut random) = (database.connect(), Random(61));
        let before = proxy.counts();
        for (of, column) in ["DATETIME", "DATETIME(3)", "TIMESTAMP(2)", "DATE"]
            .into_iter()
            .enumerate()
        {
            other.ok(&format!(
                "ALTER TABLE statuses MODIFY created_at {column} NOT NULL, MODIFY deleted_at {column} NULL"
            ));
            let mut twin = Twin::new(server, &proxy, &database.login());
            twin.ok("SET time_zone = '+02:00'");
            for statement in STATEMENTS {
                kept(&proxy, &mut twin, statement);
            }
            let prepared = prepare_on_both(&mut twin, &EXECUTED);
            for turn in 0..60 {
                change_row_image(&mut other, turn);
                other.query(&change(&mut random, turn));
                // What is newest goes, changes, or has a time of its own.
                other.ok(&match turn % 5 {
                    0 => "DELETE FROM statuses ORDER BY created_at DESC, id DESC LIMIT 1".to_owned(),
                    1 => format!(
                        "UPDATE statuses SET created_at = '2026-03-{:02} 0{}:00:0{}.{}5' WHERE profile_id IS NOT NULL ORDER BY id DESC LIMIT {}",
                        1 + turn % 28,
                        turn % 3,
                        random.below(2),
                        random.below(3),
                        1 + turn % 3
                    ),
                    2 => "UPDATE statuses SET deleted_at = created_at WHERE profile_id IN (1, 4) LIMIT 2".to_owned(),
                    3 => "UPDATE statuses SET deleted_at = NULL WHERE profile_id IN (1, 4)".to_owned(),
                    _ => "UPDATE statuses SET likes = likes + 1 WHERE profile_id = 3".to_owned(),
                });
                let all = (&STATEMENTS[..], &prepared[..]);
                run_twice(&mut twin, all, &BEHIND[1..], (&mut random, turn));
            }
            let kept = proxy.counts().of("feeds_kept") - before.of("feeds_kept");
            assert!(
                kept > 200 * (1 + of as u64),
                "{column}: {:?}",
                proxy.counts()
            );
        }
        let mut twin = Twin::new(server, &proxy, &database.login());
        for statement in [
            "SELECT MAX(caption) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT MAX(likes) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT MAX(created_at) FROM statuses WHERE profile_id IN (1, 6) GROUP BY kind",
            "SELECT MAX(created_at), MIN(created_at) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT COUNT(*), MAX(created_at), COUNT(*) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT COUNT(DISTINCT kind), MAX(created_at) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT MAX(CREATED_AT) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT MAX(none) FROM statuses WHERE profile_id IN (1, 6)",
        ] {
            for _ in 0..3 {
                twin.run(statement);
                twin.run("SHOW WARNINGS");
            }
        }
    });
}

/// Where clocks are set back, a later moment may have an earlier date.
#[test]
fn the_largest_moment_is_the_servers_where_clocks_change() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "largestclock");
        let mut other = database.connect();
        other.ok("ALTER TABLE statuses MODIFY created_at TIMESTAMP NOT NULL");
        other.ok("SET time_zone = '+00:00'");
        // In Berlin 02:30, 02:10 and 02:20.
        for (author, at) in [(1, "00:30"), (2, "01:10"), (3, "01:20")] {
            other.ok(&format!(
                "UPDATE statuses SET created_at = '2026-10-25 {at}:00' WHERE profile_id = {author} ORDER BY id DESC LIMIT 1"
            ));
        }
        for zone in ["'+02:00'", "'+00:00'", "'-07:30'", "SYSTEM"] {
            let mut twin = Twin::new(server, &proxy, &database.login());
            twin.ok(&format!("SET time_zone = {zone}"));
            for _ in 0..6 {
                for statement in [STATEMENTS[0], STATEMENTS[2], STATEMENTS[7]] {
                    twin.run(statement);
                }
            }
        }
    });
}

/// A fault that was found: MariaDB leaves out dates that the session would not accept, where it groups in a temporary table.
#[test]
fn dates_that_are_none_are_the_largest_where_the_server_says_so() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "largestdates");
        let mut other = database.connect();
        other.ok("SET sql_mode = 'ALLOW_INVALID_DATES'");
        other.ok("ALTER TABLE statuses MODIFY created_at DATETIME(3) NULL");
        for (id, author, at) in [
            (800_001, 501, "2027-02-31"),
            (800_002, 501, "2020-02-27 08:31:36.629"),
            (800_003, 502, "2026-02-31"),
            (800_004, 502, "2026-02-30"),
            (800_005, 503, "0000-00-00"),
            (800_006, 504, "2028-00-05"),
        ] {
            other.ok(&format!(
                "INSERT INTO statuses VALUES ({id}, {author}, 'x', 'photo', 'public', 1, NULL, '{at}', NULL)"
            ));
        }
        other.ok("INSERT INTO followers (profile_id, following_id) VALUES (500, 501), (500, 502), (500, 503), (500, 504)");
        let statements = [
            "SELECT COUNT(*), MAX(s.created_at) FROM statuses s WHERE s.profile_id IN (SELECT f.following_id FROM followers f WHERE f.profile_id = 500) AND s.id > 2999",
            "SELECT MAX(created_at) FROM statuses WHERE profile_id IN (502, 503) AND id > 2999",
            "SELECT MAX(created_at) FROM statuses WHERE profile_id IN (503, 504)",
            "SELECT MAX(s.created_at), COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 500 AND s.likes < 9",
            "SELECT MAX(created_at) FROM statuses WHERE profile_id IN (503, 77777)",
        ];
        for mode in [
            "DEFAULT",
            "'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE'",
            "''",
            "'ALLOW_INVALID_DATES'",
        ] {
            let mut twin = Twin::new(server, &proxy, &database.login());
            twin.ok(&format!("SET sql_mode = {mode}"));
            for statement in statements {
                kept(&proxy, &mut twin, statement);
                twin.run(statement);
            }
        }
    });
}
