//! Follow-up SELECTs answered from cached rows equal the server's own replies, whatever changes in the rows.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::feed::CLASSIC_FEED;
use nix::sys::signal::Signal;

use super::warm;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::quota::{Quota, kept_pages, kept_tails};
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{COM_PING, Login, WireClient, capability};
use crate::kit::{patience, pause_since};

const CALL: &str = "CALL fetch_timeline_ids(1)";
const TAIL: &str = "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";
const TAILS: [&str; 6] = [
    TAIL,
    "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 5",
    "select m.body as b, m.id from message m join fetch_timeline_tt t using (id) order by m.id desc limit 7;",
    "SELECT body FROM message JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20",
    "SELECT m.body, m.id FROM message m, fetch_timeline_tt t WHERE m.id = t.id ORDER BY m.id DESC LIMIT 1",
    "SELECT `message`.`id` FROM fetch_timeline_tt JOIN message USING(`id`) ORDER BY message.id DESC LIMIT 1000",
];

/// Five thousand messages of thirty authors; reader 1 follows twenty of them. With so many, MySQL's plan for a follow-up SELECT is certain.
fn timeline(server: &'static Server, story: &str) -> (Database, Proxy) {
    configured(server, story, "")
}

fn configured(server: &'static Server, story: &str, settings: &str) -> (Database, Proxy) {
    let database = Database::classic(server, story);
    fill(&mut database.connect());
    let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
    proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
    (database, proxy)
}

fn fill(root: &mut WireClient) {
    let follows: Vec<String> = (0..20).map(|it| format!("(1, {})", 2 + it)).collect();
    root.ok(&format!(
        "INSERT INTO follower VALUES {}",
        follows.join(",")
    ));
    root.ok("INSERT INTO follower VALUES (3, 2)");
    for from in [0, 2_500] {
        let messages: Vec<String> = (1..=2_500)
            .map(|it| format!("({}, {}, 'text {it}')", from + it, 2 + (from + it) % 30))
            .collect();
        root.ok(&format!(
            "INSERT INTO message (id, user_id, body) VALUES {}",
            messages.join(",")
        ));
    }
    root.ok("INSERT INTO message (id, user_id, body) VALUES (9001, 40, 'alone')");
    root.ok("INSERT INTO follower VALUES (4, 40)");
    root.query("ANALYZE TABLE message");
}

/// Queries both sides until the follow-up SELECT is answered from memory.
#[track_caller]
fn kept(proxy: &Proxy, twin: &mut Twin, tail: &str) {
    let before = proxy.counts().of("tails_kept");
    let (begun, deadline) = (Instant::now(), patience());
    while proxy.counts().of("tails_kept") == before {
        twin.run(CALL);
        twin.run(tail);
        assert!(
            Instant::now() < deadline,
            "never kept: {tail}: {:?}\n{}",
            proxy.counts(),
            proxy.log()
        );
        pause_since(begun);
    }
}

#[test]
fn tails_are_told_from_memory_and_what_is_asked_behind_them_is_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailskept");
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        for tail in TAILS {
            kept(&proxy, &mut twin, tail);
            for behind in [
                "SELECT FOUND_ROWS()",
                "SELECT ROW_COUNT()",
                "SHOW WARNINGS",
                "SELECT @@warning_count, @@error_count",
                "SHOW COUNT(*) WARNINGS",
                "SELECT COUNT(*) FROM fetch_timeline_tt",
                "SELECT id FROM fetch_timeline_tt ORDER BY id",
                "DELETE FROM fetch_timeline_tt WHERE id > 4000",
                "DROP TEMPORARY TABLE fetch_timeline_tt",
            ] {
                twin.run(CALL);
                twin.run(tail);
                twin.run(behind);
                twin.run(tail);
                twin.run(CALL);
                twin.run(tail);
                twin.run(tail);
                twin.command(&[COM_PING]);
                twin.run(behind);
                twin.run("SELECT ROW_COUNT()");
                twin.run(CALL);
                twin.run(tail);
                twin.run("SELECT nothing FROM nowhere");
                twin.run("SHOW WARNINGS");
            }
        }
        // A follow-up SELECT clears the warnings of the statement before it; pages of one row, of none, and with another bound.
        for call in [
            "CALL fetch_timeline_ids(4)",
            "CALL fetch_timeline_ids(99)",
            "CALL fetch_timeline_ids2(1, 300)",
            "CALL fetch_timeline_ids2(1, 1)",
        ] {
            for tail in TAILS.iter().chain(&TAILS) {
                twin.run("SELECT 1 + 'x'");
                twin.run(call);
                twin.run(tail);
                twin.run("SHOW WARNINGS");
            }
        }
    });
}

/// A change of any column shows at once, and so does a deletion.
#[test]
fn a_change_of_what_a_tail_shows_is_shown() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailschanged");
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        let mut other = database.connect();
        let mut random = Random(7);
        for tail in TAILS {
            kept(&proxy, &mut twin, tail);
        }
        let quota = Quota::new(&proxy, 300, 200, kept_tails);
        while let Some(turn) = quota.take() {
            let id = 4_900 + random.below(105);
            let author = 2 + random.below(25);
            twin.run(CALL);
            // Also between a call and its follow-up SELECT: the pending ids do not change.
            other.ok(&match random.below(7) {
                0..=2 => format!("UPDATE message SET body = 'turn {turn}' WHERE id = {id}"),
                3 => format!(
                    "UPDATE message SET body = CONCAT(body, '!') WHERE id BETWEEN {id} AND {id} + 9"
                ),
                4 => format!("DELETE FROM message WHERE id = {id}"),
                5 => format!("REPLACE INTO message (id, user_id, body) VALUES ({id}, {author}, 'again {turn}')"),
                _ => format!("UPDATE message SET user_id = {author} WHERE id = {id}"),
            });
            let tail = *random.pick(&TAILS);
            twin.run(tail);
            twin.run(CALL);
            twin.run(tail);
            twin.run(tail);
        }
    });
}

#[test]
fn images_of_rows_may_be_short_and_all_rows_may_change_at_once() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailsminimal");
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        let mut other = database.connect();
        for image in ["MINIMAL", "NOBLOB", "FULL"] {
            other.ok(&format!("SET SESSION binlog_row_image = {image}"));
            for turn in 0..2 {
                kept(&proxy, &mut twin, TAIL);
                other.ok(&format!(
                    "UPDATE message SET body = '{image} {turn}' WHERE id BETWEEN 4990 AND 5000"
                ));
                twin.run(TAIL);
                kept(&proxy, &mut twin, TAIL);
                other.ok(&format!("UPDATE message SET body = 'all {image} {turn}'"));
                twin.run(TAIL);
            }
        }
    });
}

/// Sessions with other settings, and clients with other capabilities, get rows and replies in their own form.
#[test]
fn rows_follow_the_settings_and_capabilities_of_their_session() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailssettings");
        let mut root = database.connect();
        root.ok("SET NAMES utf8mb4");
        root.ok("SET time_zone = '+00:00'");
        root.ok("ALTER TABLE message ADD COLUMN seen_at TIMESTAMP NULL, ADD COLUMN code CHAR(8)");
        root.ok("UPDATE message SET seen_at = '2026-03-01 10:00:00', code = 'ab', body = CONCAT('Grüße ', id)");
        let tail = "SELECT message.id, body, seen_at, code FROM message JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";
        let login = database.login();
        let mut twin = Twin::new(server, &proxy, &login).of_one_plan();
        let mut others = [
            login.clone(),
            login.clone().with(capability::MARIADB_CACHE_METADATA),
            login.clone().with(capability::SESSION_TRACK),
            login.without(capability::DEPRECATE_EOF),
        ]
        .map(|login| Twin::new(server, &proxy, &login).of_one_plan());
        for setting in [
            "SET NAMES latin1",
            "SET character_set_results = NULL",
            "SET NAMES utf8mb4",
            "SET time_zone = '+05:00'",
            "SET sql_mode = CONCAT(@@sql_mode, ',PAD_CHAR_TO_FULL_LENGTH')",
            "SET sql_mode = DEFAULT",
        ] {
            twin.run(setting);
            kept(&proxy, &mut twin, tail);
            for other in &mut others {
                kept(&proxy, other, tail);
            }
            twin.run(CALL);
            // The settings change after the call.
            twin.run("SET time_zone = '-03:30'");
            twin.run(tail);
            twin.run("SET time_zone = DEFAULT");
            twin.run(tail);
        }
    });
}

/// Each of these changes the table's definition or replaces the table: no row cached before it is used.
#[test]
fn a_table_that_is_altered_renamed_or_emptied_has_other_rows() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailsaltered");
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        let mut other = database.connect();
        let tail = TAIL.replace("body", "body, kind");
        other.ok("ALTER TABLE message ADD COLUMN kind ENUM('a','b') NOT NULL DEFAULT 'b'");
        for statement in [
            "ALTER TABLE message ADD COLUMN extra INT DEFAULT 7",
            "ALTER TABLE message MODIFY kind ENUM('c','d') NOT NULL",
            "ALTER TABLE message MODIFY body VARCHAR(200) CHARACTER SET latin1",
            "ALTER TABLE message MODIFY body VARCHAR(200) CHARACTER SET latin1 COLLATE latin1_bin",
            "ALTER TABLE message ENGINE = InnoDB",
            "RENAME TABLE message TO old, old TO message",
            "CREATE TABLE fresh LIKE message",
            "INSERT INTO fresh SELECT * FROM message WHERE id MOD 2 = 0",
            "RENAME TABLE message TO old, fresh TO message",
            "TRUNCATE TABLE message",
        ] {
            let before = proxy.counts().of("tails_kept");
            // Headwater caches no row of some of the tables.
            for _ in 0..500 {
                same_rows(&mut twin, &tail);
                if proxy.counts().of("tails_kept") > before {
                    break;
                }
            }
            other.ok("SET SESSION sql_mode = ''");
            other.query(statement);
            for _ in 0..5 {
                same_rows(&mut twin, &tail);
            }
        }
        let counts = proxy.counts();
        assert!(counts.of("tails_kept") > 10, "{counts:?}");
    });
}

#[track_caller]
fn same_rows(twin: &mut Twin, tail: &str) {
    twin.direct.ok(CALL);
    twin.proxied.ok(CALL);
    let (direct, proxied) = (twin.direct.rows(tail), twin.proxied.rows(tail));
    assert_eq!(direct, proxied);
}

/// A session needs its own rights to the message table, as the server confirmed them within `privileges.ttl_s`.
#[test]
fn a_right_that_is_taken_away_counts_for_a_second_and_is_nobody_elses() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailsright");
        let mut reader = Twin::new(server, &proxy, &database.login()).of_one_plan();
        kept(&proxy, &mut reader, TAIL);
        let may_call = "EXECUTE, CREATE TEMPORARY TABLES";
        let login = database.account(may_call, "");
        let (user, name) = (login.user.clone(), database.name());
        let mut root = database.connect();
        let grant =
            |columns: &str| format!("GRANT SELECT {columns} ON {name}.message TO {user}@'%'");
        // Reading the temporary table needs rights to that table alone.
        root.query(&format!(
            "GRANT SELECT ON {name}.fetch_timeline_tt TO {user}@'%'"
        ));
        let mut without = Twin::new(server, &proxy, &login).of_one_plan();
        denied(&mut without);
        root.ok(&grant("(id, user_id, body)"));
        let mut twin = Twin::new(server, &proxy, &login).of_one_plan();
        kept(&proxy, &mut twin, TAIL);
        root.ok(&format!(
            "REVOKE SELECT (body) ON {name}.message FROM {user}@'%'"
        ));
        thread::sleep(Duration::from_millis(1_100));
        denied(&mut twin);
        kept(&proxy, &mut reader, TAIL);
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

#[track_caller]
fn denied(twin: &mut Twin) {
    for _ in 0..3 {
        twin.run(CALL);
        // 1142: the table; 1143: the column.
        assert!([1142, 1143].contains(&twin.error(TAIL)));
    }
}

/// Both statements in one command: the replies come in order, and so do the counts after them.
#[test]
fn a_call_and_its_tail_in_one_command_are_answered_from_memory() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailsatonce");
        let mut other = database.connect();
        let login = database.login();
        for login in [login.clone(), login.without(capability::DEPRECATE_EOF)] {
            at_once(server, &proxy, &login, &mut other);
        }
    });
}

fn at_once(server: &'static Server, proxy: &Proxy, login: &Login, other: &mut WireClient) {
    let login = login.clone().with(capability::MULTI_STATEMENTS);
    let mut twin = Twin::new(server, proxy, &login).of_one_plan();
    for tail in TAILS {
        kept(proxy, &mut twin, tail);
    }
    let quota = Quota::new(proxy, 120, 50, kept_tails);
    while let Some(turn) = quota.take() {
        let tail = TAILS[turn as usize / 6 % TAILS.len()];
        twin.run(&format!("{CALL}; {tail}"));
        if turn % 30 == 0 {
            let id = 4_980 + turn % 20;
            other.ok(&format!(
                "UPDATE message SET body = 'turn {turn}' WHERE id = {id}"
            ));
        }
        twin.run(&format!("{CALL};{tail}"));
        match turn % 6 {
            0 => drop(twin.run("SELECT FOUND_ROWS()")),
            1 => drop(twin.run("SHOW WARNINGS")),
            2 => drop(twin.run(&format!("{CALL}; {TAIL}; SELECT ROW_COUNT()"))),
            3 => drop(twin.run(&format!("{CALL}; SELECT 1; {TAIL}"))),
            4 => drop(twin.run(&format!("{CALL}; {CALL}; {TAIL}"))),
            _ => drop(twin.run(tail)),
        }
    }
}

/// Feed pages between a call and its follow-up SELECT, and after both: later queries also match the server.
#[test]
fn feeds_of_a_session_that_calls_are_told_from_memory_too() {
    const JOIN: &str = "SELECT message.id,message.user_id,body FROM message INNER JOIN follower ON message.user_id=follower.follower_id \
         WHERE follower.user_id=1 ORDER BY message.id DESC LIMIT 7";
    on_each_server(|server| {
        let (database, proxy) = configured(server, "tailsfeed", CLASSIC_FEED);
        let mut twin = Twin::new(server, &proxy, &database.login());
        kept(&proxy, &mut twin, TAIL);
        let same = |twin: &mut Twin| assert_eq!(twin.direct.rows(JOIN), twin.proxied.rows(JOIN));
        let deadline = patience();
        while proxy.counts().of("feeds_kept") == 0 && Instant::now() < deadline {
            same(&mut twin);
        }
        let asked_behind = [
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT()",
            "SHOW WARNINGS",
            "SELECT COUNT(*) FROM fetch_timeline_tt",
        ];
        let quota = Quota::new(&proxy, 5, 30, kept_pages);
        while quota.take().is_some() {
            for behind in asked_behind {
                twin.run(CALL);
                same(&mut twin);
                twin.run(behind);
                twin.run(CALL);
                same(&mut twin);
                same(&mut twin);
                twin.run(TAIL);
                twin.run(behind);
                twin.run(CALL);
                twin.run(TAIL);
                same(&mut twin);
                twin.command(&[COM_PING]);
                twin.run(behind);
                same(&mut twin);
                twin.run("SELECT nothing FROM nowhere");
                twin.run("SHOW WARNINGS");
            }
        }
    });
}

/// Uncommitted rows that one session reads never reach another session.
#[test]
fn what_was_read_uncommitted_is_not_kept() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailsdirty");
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        let mut dirty = Twin::new(server, &proxy, &database.login()).of_one_plan();
        let mut writer = database.connect();
        kept(&proxy, &mut twin, TAIL);
        dirty.run("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
        for turn in 0..5 {
            // From here on none of these rows is cached.
            writer.ok("UPDATE message SET body = CONCAT(body, '.') WHERE id > 4980");
            kept(&proxy, &mut twin, TAILS[2]);
            writer.ok("BEGIN");
            writer.ok(&format!(
                "UPDATE message SET body = 'dirty {turn}' WHERE id > 4980"
            ));
            for _ in 0..3 {
                dirty.run(CALL);
                dirty.run(TAIL);
            }
            writer.ok("ROLLBACK");
            thread::sleep(Duration::from_millis(20));
            for _ in 0..3 {
                twin.run(CALL);
                twin.run(TAIL);
            }
        }
    });
}

/// A virtual column is computed on each read; on MariaDB it may also depend on the time and the user.
#[test]
fn columns_that_are_computed_when_they_are_read_are_not_kept() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailsvirtual");
        let mut root = database.connect();
        let computed = match server.is_mariadb() {
            true => "NOW(6)",
            false => "CONCAT(body, '!')",
        };
        root.ok(&format!(
            "ALTER TABLE message ADD COLUMN computed VARCHAR(300) AS ({computed}) VIRTUAL, ADD COLUMN upper_body VARCHAR(300) AS (UPPER(body)) STORED"
        ));
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        kept(&proxy, &mut twin, TAIL);
        let before = proxy.counts().of("tails_kept");
        let client = &mut twin.proxied;
        let tail = |column: &str| TAIL.replace("body", column);
        let mut shown = Vec::new();
        for _ in 0..60 {
            client.ok(CALL);
            shown.push(client.rows(&tail("computed"))[0][2].clone());
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(proxy.counts().of("tails_kept"), before);
        let first = shown.len();
        shown.dedup();
        assert!(
            !server.is_mariadb() || shown.len() == first,
            "{} of {first} are new",
            shown.len()
        );
        kept(&proxy, &mut twin, &tail("upper_body"));
    });
}

/// A message without an author is on no page, but its id may be pending.
#[test]
fn messages_that_lose_their_author_are_told_as_they_are() {
    on_each_server(|server| {
        let (database, proxy) = timeline(server, "tailsnobodys");
        let mut root = database.connect();
        root.ok("ALTER TABLE message MODIFY user_id int unsigned NULL");
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        let mut other = database.connect();
        // The whole result shows that a missing message is gone.
        let whole = TAILS[5];
        for id in [5_000, 4_999, 4_998] {
            kept(&proxy, &mut twin, TAIL);
            twin.run(CALL);
            let ask = |twin: &mut Twin| {
                for _ in 0..4 {
                    twin.run(TAIL);
                    twin.run(whole);
                    thread::sleep(Duration::from_millis(10));
                }
            };
            for change in [
                format!("UPDATE message SET user_id = NULL WHERE id = {id}"),
                format!("UPDATE message SET body = 'nobody' WHERE id = {id}"),
                format!("DELETE FROM message WHERE id = {id}"),
                format!("INSERT INTO message (id, user_id, body) VALUES ({id}, NULL, 'again')"),
                format!("UPDATE message SET user_id = 5 WHERE id = {id}"),
            ] {
                // By now the change is known to be readable, so the row may be cached.
                thread::sleep(Duration::from_millis(600));
                ask(&mut twin);
                other.ok(&change);
                ask(&mut twin);
            }
        }
    });
}

/// Some messages are longer than a cached row may be, and memory is small.
#[test]
fn long_rows_are_the_servers_and_memory_is_bounded() {
    on_each_server(|server| {
        let settings = "[rows]\nmemory_bytes = 1048576\n";
        let (database, proxy) = configured(server, "tailslong", settings);
        let mut root = database.connect();
        root.ok("ALTER TABLE message MODIFY body LONGTEXT NOT NULL");
        root.ok("UPDATE message SET body = REPEAT('y', 900)");
        root.ok("UPDATE message SET body = REPEAT('x', 20000) WHERE id IN (4990, 4999)");
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        for turn in 0..400 {
            let bound = 5_000 - turn * 12;
            twin.run(&format!("CALL fetch_timeline_ids2(1, {bound})"));
            twin.run(TAILS[turn % 3]);
        }
        twin.run("CALL fetch_timeline_ids2(1, 4900)");
        for _ in 0..20 {
            twin.run(TAIL);
        }
        assert!(proxy.counts().of("tails_kept") > 0, "{:?}", proxy.counts());
    });
}

/// No rows are cached if the cache is off, or for tables that the settings do not name.
#[test]
fn without_memory_for_rows_tails_are_the_servers() {
    on_each_server(|server| {
        for settings in [
            "[rows]\nmemory_bytes = 0\n",
            "[rows]\ntables = [\"other.message\"]\n",
        ] {
            let (database, proxy) = configured(server, "tailsoff", settings);
            let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
            warm(&proxy, &mut twin.proxied, CALL);
            twin.direct.ok(CALL);
            for _ in 0..30 {
                twin.run(CALL);
                twin.run(TAIL);
            }
            let counts = proxy.counts();
            assert_eq!(counts.of("tails_kept"), 0, "{counts:?}");
            assert!(counts.of("tails_virtual") > 20, "{counts:?}");
        }
    });
}

/// Whole replies are compared with the server's, and a reply that proves wrong is not sent.
#[test]
fn a_wrong_tail_is_found_and_not_told() {
    on_each_server(|server| {
        let (database, proxy) = configured(server, "tailsshadow", "[shadow]\nrate = 1\n");
        let mut twin = Twin::new(server, &proxy, &database.login()).of_one_plan();
        let mut other = database.connect();
        for tail in TAILS {
            kept(&proxy, &mut twin, tail);
            other.ok("UPDATE message SET body = CONCAT(body, '.') WHERE id > 4990");
            kept(&proxy, &mut twin, tail);
        }
        let both = [CALL, TAIL].join("; ");
        twin.run(&both);
        let counts = proxy.counts();
        assert!(counts.of("shadow_same") > 12, "{counts:?}");
        assert_eq!(counts.of("shadow_different"), 0, "{}", proxy.log());
        other.ok("SET sql_log_bin = 0");
        other.ok("UPDATE message SET body = 'unseen' WHERE id > 4900");
        twin.run(CALL);
        twin.run(TAIL);
        proxy.wait_for_log("a page made of kept rows is not the server's: row 1 is another one");
        let counts = proxy.counts();
        assert_eq!(counts.of("shadow_different"), 1, "{counts:?}");
        for tail in TAILS {
            twin.run(CALL);
            twin.run(tail);
        }
        assert_eq!(proxy.counts().of("tails_kept"), counts.of("tails_kept"));
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("kept again");
        kept(&proxy, &mut twin, TAIL);
        assert_eq!(proxy.counts().of("shadow_different"), 1);
    });
}
