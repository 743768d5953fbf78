//! Sessions with their own settings: the server answers if plans, columns or comparisons depend on them.

use std::thread;
use std::time::Duration;

use super::narrowed::{equal, narrowed, relayed};
use super::rules::{LISTED, app};
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;

/// Each setting has a value that differs from the server's.
const STEERING: [&str; 9] = [
    "optimizer_search_depth = 1",
    "optimizer_prune_level = 0",
    "optimizer_switch = 'index_merge=off'",
    "eq_range_index_dive_limit = 3",
    "max_seeks_for_key = 1",
    "max_join_size = 1000000",
    "sql_big_selects = 0",
    "join_buffer_size = 131072",
    "sql_buffer_result = 1",
];
const MARIADB: [&str; 5] = [
    "optimizer_use_condition_selectivity = 1",
    "optimizer_selectivity_sampling_limit = 10",
    "use_stat_tables = 'never'",
    "join_cache_level = 0",
    "in_predicate_conversion_threshold = 2",
];
/// With this setting the server warns about the list.
const MYSQL: [&str; 1] = ["range_optimizer_max_mem_size = 1"];

/// Under other settings the server may choose other plans, describe columns differently, or warn.
#[test]
fn a_session_that_steers_the_servers_plans_is_answered_by_the_server() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedsteers");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let own: &[&str] = match server.is_mariadb() {
            true => &MARIADB,
            false => &MYSQL,
        };
        for setting in STEERING.iter().chain(own) {
            equal(&proxy, &mut twin, LISTED);
            twin.run(&format!("SET {setting}"));
            relayed(&proxy, &mut twin, LISTED, "session_settings");
            let (name, _) = setting.split_once(" = ").unwrap();
            twin.run(&format!("SET {name} = DEFAULT"));
        }
        equal(&proxy, &mut twin, LISTED);
    });
}

/// Column metadata contains the character set of the result. Each session gets its own, and none deprives others of the template.
#[test]
fn sessions_of_several_character_sets_are_all_narrowed() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feednames");
        let statement = "SELECT id, caption FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 5";
        let names = ["latin1", "utf8mb4", "gbk", "binary"];
        let mut twins = names.map(|name| {
            let mut twin = Twin::new(server, &proxy, &database.login());
            twin.run(&format!("SET NAMES {name}"));
            twin
        });
        for _ in 0..3 {
            for twin in &mut twins {
                equal(&proxy, twin, statement);
            }
        }
        let counts = proxy.counts();
        assert_eq!(counts.of("feeds_relayed[columns_differ]"), 0, "{counts:?}");
    });
}

/// The flag of a slow statement comes at its end, and is not part of the metadata sample.
#[test]
fn that_a_statement_was_slow_is_never_learned() {
    const SLOW: &str = "SET long_query_time = 0";
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedslow");
        let mut slow = Twin::new(server, &proxy, &database.login());
        slow.run(SLOW);
        let mut quick = Twin::new(server, &proxy, &database.login());
        let by_slow = LISTED;
        let by_quick = LISTED.replace("SELECT id", "SELECT id, likes");
        for _ in 0..2 {
            equal(&proxy, &mut slow, by_slow);
            equal(&proxy, &mut quick, by_slow);
            equal(&proxy, &mut quick, &by_quick);
            equal(&proxy, &mut slow, &by_quick);
        }
    });
}

/// In the hour that occurs twice, a TIMESTAMP compares differently by row than by index: the plan decides which rows pass.
#[test]
fn a_timestamp_is_compared_by_the_server_where_an_hour_comes_twice() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedtwice");
        let mut root = database.connect();
        root.ok("SET time_zone = '+00:00'");
        // One message a minute, through both of these hours.
        root.ok(
            "ALTER TABLE statuses ADD COLUMN seen_at TIMESTAMP NULL, ADD COLUMN shown_at DATETIME, ADD INDEX feed (profile_id, seen_at)",
        );
        root.ok("UPDATE statuses SET seen_at = '2026-10-24 12:00:00' + INTERVAL id MINUTE, shown_at = '2026-10-25 02:30:00'");
        root.query("ANALYZE TABLE statuses");
        // The zone tables may be empty, so the test inserts its own zone.
        zone(&mut root);
        let mut twin = Twin::new(server, &proxy, &database.login());
        for condition in [
            "seen_at < '2026-10-25 02:30:00'",
            "seen_at >= '2026-10-25 02:30:00'",
            "seen_at BETWEEN '2026-10-25 02:10:00' AND '2026-10-25 02:40:00'",
            "seen_at < shown_at",
            "NOT (seen_at > '2026-10-25 02:30:00')",
        ] {
            // Only the server's plan uses the index. Candidates use the primary key.
            let statement = format!(
                "SELECT id FROM statuses WHERE profile_id IN (1, 2) AND {condition} ORDER BY id DESC LIMIT 400"
            );
            twin.ok("SET time_zone = '+02:00'");
            equal(&proxy, &mut twin, &statement);
            twin.ok("SET time_zone = 'Headwater/Twice'");
            relayed(&proxy, &mut twin, &statement, "time_zone");
        }
        // A TIMESTAMP that is only selected, or tested for NULL, does not prevent narrowing.
        for condition in ["seen_at IS NOT NULL", "shown_at <= '2026-10-25 02:30:00'"] {
            equal(
                &proxy,
                &mut twin,
                &format!(
                    "SELECT id, seen_at FROM statuses WHERE profile_id IN (1, 2) AND {condition} ORDER BY id DESC LIMIT 9"
                ),
            );
        }
    });
}

/// Summer time until 2026-10-25 01:00 UTC.
fn zone(root: &mut WireClient) {
    for statement in [
        "REPLACE INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (90001, 'N')",
        "REPLACE INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Headwater/Twice', 90001)",
        "REPLACE INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation) \
         VALUES (90001, 0, 7200, 1, 'SUM'), (90001, 1, 3600, 0, 'WIN')",
        "REPLACE INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) \
         VALUES (90001, 1774746000, 0), (90001, 1792890000, 1)",
    ] {
        root.ok(statement);
    }
}

/// The server ends a session that sends it nothing for `wait_timeout`. Page requests must keep the session alive.
#[test]
fn a_session_that_only_reads_pages_stays_within_its_wait_timeout() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedwait");
        let mut twin = Twin::new(server, &proxy, &database.login());
        narrowed(&proxy, &mut twin.proxied, LISTED);
        twin.ok("SET wait_timeout = 8");
        for _ in 0..3 {
            equal(&proxy, &mut twin, LISTED);
            thread::sleep(Duration::from_millis(3_500));
        }
        equal(&proxy, &mut twin, LISTED);
    });
}

/// A level that shows uncommitted rows, and a level that is set for the next transaction alone.
#[test]
fn what_is_read_at_a_level_of_no_snapshot_is_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedlevels");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut writer = database.connect();
        equal(&proxy, &mut twin, LISTED);
        writer.ok("BEGIN");
        writer.ok("UPDATE statuses SET profile_id = 1 WHERE id = 3000");
        writer.ok("DELETE FROM statuses WHERE id BETWEEN 2900 AND 2990");
        for (level, why) in [
            ("SESSION TRANSACTION", "session_settings"),
            ("TRANSACTION", "one_shot_transaction"),
        ] {
            twin.ok(&format!("SET {level} ISOLATION LEVEL READ UNCOMMITTED"));
            relayed(&proxy, &mut twin, LISTED, why);
            twin.ok("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        }
        writer.ok("ROLLBACK");
    });
}
