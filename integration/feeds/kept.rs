//! Pages of cached rows equal the server's own, whatever changes in the rows.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::ServerKind;

use super::app::{App, SMALL, settings};
use super::narrowed::{equal, narrowed};
use super::pair::Pair;
use super::rules::{BEHIND, app};
use super::served::served;
use super::statements::Drawn;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::quota::{Quota, kept_pages};
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server, on_servers_of_its_own};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{COM_PING, WireClient, capability};
use crate::kit::{patience, pause_since};
use crate::memory::prepare;

/// Pages with all or some columns, with and without filters.
pub(super) const PAGES: [&str; 6] = [
    "SELECT * FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) ORDER BY id DESC LIMIT 5",
    "SELECT s.id, s.caption, s.visibility, s.created_at FROM statuses s JOIN followers f ON f.following_id = s.profile_id \
     WHERE f.profile_id = 1 ORDER BY s.id DESC LIMIT 7",
    "SELECT id, COALESCE(caption, 'none') AS caption FROM statuses WHERE profile_id IN (2, 3, 4, 6, 7, 8) \
     AND kind = 'photo' ORDER BY id DESC LIMIT 4 OFFSET 3",
    "SELECT caption FROM statuses s WHERE EXISTS (SELECT 1 FROM followers f WHERE f.following_id = s.profile_id AND f.profile_id = 1) \
     ORDER BY s.id DESC LIMIT 5",
    "SELECT id, likes FROM statuses WHERE (profile_id = 3 OR profile_id IN (SELECT following_id FROM followers WHERE profile_id = 3)) \
     AND deleted_at IS NULL AND id < 2500 ORDER BY id DESC LIMIT 6",
    "SELECT id, kind FROM statuses WHERE profile_id IN (1, 2) AND visibility = 'public' AND likes >= 10 ORDER BY id DESC LIMIT 3",
];

/// Runs the statement on both sides until cached rows answer it: other tests on this server may invalidate the cache
/// at any time.
#[track_caller]
pub(super) fn kept(proxy: &Proxy, twin: &mut Twin, statement: &str) {
    let before = proxy.counts().of("feeds_kept");
    let (begun, deadline) = (Instant::now(), patience());
    while proxy.counts().of("feeds_kept") == before {
        // For a page with an offset, the skipped rows must have been read first.
        let front = statement.replace("LIMIT 4 OFFSET 3", "LIMIT 7");
        if front != statement {
            same_rows(twin, &front);
        }
        same_rows(twin, statement);
        assert!(
            Instant::now() < deadline,
            "never kept: {statement}: {:?}\n{}",
            proxy.counts(),
            proxy.log()
        );
        pause_since(begun);
    }
}

/// Compares rows on both sides. Key flags of columns may differ: they follow the plan, which depends on the tables' current rows.
#[track_caller]
pub(super) fn same_rows(twin: &mut Twin, statement: &str) {
    let (direct, proxied) = (twin.direct.rows(statement), twin.proxied.rows(statement));
    assert_eq!(direct, proxied, "{statement}");
}

/// No rows are cached, and the row cache has no memory.
fn without_rows(server: &'static Server, story: &str) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    SMALL.make(&mut database.connect(), &mut Random(5));
    let settings = format!("{}\n[rows]\nmemory_bytes = 0\n", settings());
    let proxy = served(server, &database, "home", &settings);
    (database, proxy)
}

#[test]
fn pages_are_told_from_memory_and_counts_behind_them_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptpages");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
            for behind in BEHIND {
                twin.run(statement);
                twin.run(behind);
                // After a command that is not a statement, and after one that leaves the counts unchanged.
                twin.run(statement);
                twin.command(&[COM_PING]);
                twin.run(behind);
                twin.run(statement);
                twin.run("SET @name = 1");
                twin.run(behind);
                twin.run(statement);
                twin.run("SELECT nothing FROM nowhere");
                twin.run("SHOW WARNINGS");
            }
        }
        // A page clears the warnings of the statement before it.
        twin.run("SELECT 1 + 'x'");
        kept(&proxy, &mut twin, PAGES[0]);
        twin.run("SELECT 1 + 'x'");
        twin.run(PAGES[0]);
        twin.run("SHOW WARNINGS");
    });
}

/// A change of any column is visible at once, whether it is made through Headwater or directly.
#[test]
fn a_change_of_what_is_shown_is_shown() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptchanged");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        let mut random = Random(9);
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
        }
        let quota = Quota::new(&proxy, 300, 300, kept_pages);
        while let Some(turn) = quota.take() {
            let id = 2_900 + random.below(120);
            let change = match random.below(9) {
                0 => format!("UPDATE statuses SET caption = 'turn {turn}' WHERE id = {id}"),
                1 => format!("UPDATE statuses SET caption = NULL WHERE id = {id}"),
                2 => format!(
                    "UPDATE statuses SET visibility = 'public', likes = likes + 7 WHERE id = {id}"
                ),
                3 => format!(
                    "UPDATE statuses SET deleted_at = IF(deleted_at IS NULL, NOW(), NULL) WHERE id = {id}"
                ),
                4 => format!(
                    "UPDATE statuses SET kind = IF(kind = 'photo', 'text', 'photo') WHERE id BETWEEN {id} AND {id} + 5"
                ),
                5 => format!(
                    "UPDATE statuses SET profile_id = 1 + profile_id MOD 30 WHERE id = {id}"
                ),
                6 => format!("DELETE FROM statuses WHERE id = {id}"),
                7 => format!(
                    "REPLACE INTO statuses VALUES ({id}, {}, 'again {turn}', 'photo', 'public', {turn}, NULL, NOW(), NULL)",
                    1 + turn % 5
                ),
                _ => format!(
                    "DELETE FROM followers WHERE profile_id = {} ORDER BY id LIMIT 1",
                    1 + turn % 3
                ),
            };
            other.ok(&change);
            for statement in PAGES {
                same_rows(&mut twin, statement);
            }
        }
        // The session's own changes are visible, and also their rollback.
        let own = &mut twin.proxied;
        own.ok("UPDATE statuses SET caption = 'own' WHERE id > 2950");
        same_rows(&mut twin, PAGES[0]);
        let own = &mut twin.proxied;
        own.ok("BEGIN");
        own.ok("UPDATE statuses SET caption = 'taken back' WHERE id > 2950");
        let captions = own.rows(PAGES[0]).into_iter().map(|row| row[2].clone());
        assert!(captions.flatten().all(|caption| caption == "taken back"));
        own.ok("ROLLBACK");
        same_rows(&mut twin, PAGES[0]);
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
        }
    });
}

/// Statements of many templates repeat a few values while rows change.
#[test]
fn drawn_pages_are_the_servers_whatever_changes_between_them() {
    const STATEMENTS: u64 = 2_000;
    on_each_server(|server| {
        let mut random = Random(20_261_124);
        let small = App {
            users: 12,
            messages: 600,
            follows: 60,
            ..SMALL
        };
        let database = Database::empty(server, "keptdrawn");
        small.make(&mut database.connect(), &mut random);
        let proxy = served(server, &database, "home", &settings());
        let mut other = database.connect();
        let mut pair = Pair::new(database.connect(), proxy.login(&database.login()));
        let quota = Quota::new(&proxy, STATEMENTS, STATEMENTS / 50, kept_pages);
        while let Some(turn) = quota.take() {
            let template = random.below(60);
            let mut statement = Drawn {
                random: Random(template),
                values: &mut Random(random.below(5)),
                app: &small,
                key: None,
            };
            let text = statement.statement().text;
            // Twice, because the second execution may use the rows that the first one cached.
            pair.ask(template, &text);
            pair.ask(template, &text);
            if turn % 6 == 0 {
                let (id, user) = (1 + random.below(600), 1 + random.below(12));
                other.query(&match random.below(10) {
                    0 => format!("UPDATE statuses SET caption = 'turn {turn}', likes = {} WHERE id = {id}", turn % 50),
                    1 => format!("UPDATE statuses SET deleted_at = IF(deleted_at IS NULL, '2026-02-02', NULL) WHERE id = {id}"),
                    2 => format!("UPDATE statuses SET kind = 'video', visibility = 'public' WHERE id > {id} AND id < {id} + 9"),
                    3 => format!("UPDATE statuses SET profile_id = {user} WHERE id = {id}"),
                    4 => format!("DELETE FROM statuses WHERE id = {id}"),
                    5 => format!("INSERT IGNORE INTO statuses VALUES ({id}, {user}, 'new', 'photo', 'public', 1, NULL, NOW(), NULL)"),
                    6 => format!("INSERT IGNORE INTO followers VALUES (DEFAULT, {user}, {}, 1)", 1 + id % 12),
                    7 => format!("UPDATE profiles SET name = 'turn {turn}', private = {} WHERE id = {user}", id % 2),
                    8 => format!("REPLACE INTO profiles VALUES ({user}, 'again', 0)"),
                    _ => format!("DELETE FROM followers WHERE profile_id = {user} ORDER BY id LIMIT 1"),
                });
            }
        }
        println!("{} turns: {:?}", quota.taken(), proxy.counts());
    });
}

/// A partial row image in the log is enough to invalidate the row.
#[test]
fn images_of_rows_may_be_short() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptminimal");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        for image in ["MINIMAL", "NOBLOB", "FULL"] {
            other.ok(&format!("SET SESSION binlog_row_image = {image}"));
            for turn in 0..10 {
                kept(&proxy, &mut twin, PAGES[0]);
                other.ok(&format!(
                    "UPDATE statuses SET caption = '{image} {turn}' WHERE profile_id < 6 ORDER BY id DESC LIMIT 3"
                ));
                same_rows(&mut twin, PAGES[0]);
            }
        }
    });
}

/// Changes more rows at once than the cache tracks one by one.
#[test]
fn all_rows_may_change_at_once() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptall");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        other.ok("INSERT INTO statuses SELECT id + 3000, 31, 'more', 'text', 'private', 0, NULL, NOW(), NULL FROM statuses");
        other.ok("INSERT INTO statuses SELECT id + 6000, 31, 'more', 'text', 'private', 0, NULL, NOW(), NULL FROM statuses");
        for turn in 0..4 {
            for statement in PAGES {
                kept(&proxy, &mut twin, statement);
            }
            other.ok(&format!("UPDATE statuses SET caption = 'all {turn}'"));
            for statement in PAGES {
                same_rows(&mut twin, statement);
            }
        }
    });
}

/// Sessions with different settings use different cached rows.
#[test]
fn rows_follow_the_settings_of_their_session() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptsettings");
        let mut root = database.connect();
        root.ok("SET NAMES utf8mb4");
        root.ok("SET time_zone = '+00:00'");
        root.ok("ALTER TABLE statuses ADD COLUMN seen_at TIMESTAMP NULL, ADD COLUMN code CHAR(8)");
        root.ok("UPDATE statuses SET seen_at = '2026-03-01 10:00:00', code = 'ab', caption = CONCAT('Grüße ', id)");
        let statement = "SELECT id, caption, seen_at, code FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) ORDER BY id DESC LIMIT 5";
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut plain = Twin::new(server, &proxy, &database.login());
        for setting in [
            "SET NAMES latin1",
            "SET character_set_results = NULL",
            "SET NAMES utf8mb4",
            "SET time_zone = '+05:00'",
            "SET time_zone = '-03:30'",
            "SET sql_mode = CONCAT(@@sql_mode, ',PAD_CHAR_TO_FULL_LENGTH')",
            "SET sql_mode = DEFAULT",
            "SET collation_connection = utf8mb4_bin",
            "SET lc_time_names = 'de_DE'",
        ] {
            twin.run(setting);
            kept(&proxy, &mut twin, statement);
            kept(&proxy, &mut plain, statement);
            twin.run(statement);
        }
    });
}

/// The result-set envelope follows the capabilities of client and server: each kind of client gets its own.
#[test]
fn clients_of_other_capabilities_are_told_replies_of_their_own() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptcapable");
        let login = database.login();
        let logins = [
            login.clone(),
            login.clone().with(capability::MARIADB_CACHE_METADATA),
            login.clone().with(capability::SESSION_TRACK),
            login.clone().with(capability::QUERY_ATTRIBUTES),
            login.without(capability::DEPRECATE_EOF),
        ];
        let mut twins = logins.map(|login| Twin::new(server, &proxy, &login));
        for statement in PAGES {
            for twin in &mut twins {
                kept(&proxy, twin, statement);
            }
            for twin in &mut twins {
                twin.run(statement);
            }
        }
    });
}

/// Each of these statements changes the table: no row cached before is sent.
#[test]
fn a_table_that_is_altered_renamed_or_emptied_has_other_rows() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptaltered");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        for statement in [
            "ALTER TABLE statuses MODIFY visibility ENUM('open','private') NOT NULL DEFAULT 'private'",
            "ALTER TABLE statuses MODIFY visibility ENUM('public','private','open') NOT NULL DEFAULT 'private'",
            "ALTER TABLE statuses ADD COLUMN extra INT DEFAULT 7",
            "ALTER TABLE statuses MODIFY caption VARCHAR(100) CHARACTER SET latin1",
            "ALTER TABLE statuses MODIFY caption VARCHAR(100) COLLATE utf8mb4_bin",
            "ALTER TABLE statuses ENGINE = InnoDB",
            "RENAME TABLE statuses TO old, old TO statuses",
            "CREATE TABLE fresh LIKE statuses",
            "INSERT INTO fresh SELECT * FROM statuses WHERE id MOD 2 = 0",
            "RENAME TABLE statuses TO old, fresh TO statuses",
            "TRUNCATE TABLE statuses",
        ] {
            kept(&proxy, &mut twin, PAGES[0]);
            let sql_mode = "SET SESSION sql_mode = ''";
            other.ok(sql_mode);
            other.query(statement);
            for _ in 0..3 {
                same_rows(&mut twin, PAGES[0]);
            }
        }
    });
}

/// A revoked right takes effect within `privileges.ttl_s`.
#[test]
fn a_right_that_is_taken_away_counts_for_a_second() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptright");
        narrowed(&proxy, &mut proxy.login(&database.login()), PAGES[0]);
        let login = database.account("EXECUTE", "");
        let (user, name) = (login.user.clone(), database.name());
        // The server checks rights to a whole database only when a session enters it.
        let grant = format!("GRANT SELECT ON {name}.statuses TO {user}@'%'");
        database.connect().ok(&grant);
        let mut twin = Twin::new(server, &proxy, &login);
        kept(&proxy, &mut twin, PAGES[0]);
        let mut root = database.connect();
        root.ok(&format!("REVOKE SELECT ON {name}.statuses FROM {user}@'%'"));
        thread::sleep(Duration::from_millis(1_100));
        for _ in 0..3 {
            assert_eq!(twin.error(PAGES[0]), 1142);
        }
        root.ok(&grant);
        kept(&proxy, &mut twin, PAGES[0]);
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// The server checks rights to a whole database when a session enters it: an earlier session may still read, and one that logs in more than
/// `privileges.ttl_s` later may not.
#[test]
fn what_another_session_may_read_is_nobody_elses_right() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptentered");
        let login = database.account("SELECT, EXECUTE", "");
        let (user, name) = (login.user.clone(), database.name());
        let mut before = Twin::new(server, &proxy, &login);
        kept(&proxy, &mut before, PAGES[0]);
        let mut root = database.connect();
        root.ok(&format!("REVOKE SELECT ON {name}.* FROM {user}@'%'"));
        thread::sleep(Duration::from_millis(1_100));
        let mut behind = Twin::new(server, &proxy, &login);
        for _ in 0..20 {
            before.run(PAGES[0]);
            assert_eq!(behind.error(PAGES[0]), 1142);
        }
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// Rows cached for one account do not prove another account's rights.
#[test]
fn who_may_not_read_is_told_so_though_rows_are_kept() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptdenied");
        let mut twin = Twin::new(server, &proxy, &database.login());
        kept(&proxy, &mut twin, PAGES[0]);
        let login = database.account("EXECUTE", "");
        let mut denied = Twin::new(server, &proxy, &login);
        for _ in 0..3 {
            assert_eq!(denied.error(PAGES[0]), 1142);
            kept(&proxy, &mut twin, PAGES[0]);
        }
        let user = login.user;
        database.connect().ok(&format!("DROP USER {user}@'%'"));
    });
}

/// Within a transaction the snapshot decides which rows are visible.
#[test]
fn a_transaction_is_told_its_own_rows() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptinside");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        for level in ["REPEATABLE READ", "READ COMMITTED"] {
            twin.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
            kept(&proxy, &mut twin, PAGES[0]);
            twin.run("BEGIN");
            same_rows(&mut twin, PAGES[0]);
            other.ok("UPDATE statuses SET caption = CONCAT('x', caption) WHERE id > 2900 AND caption IS NOT NULL");
            let before = proxy.counts().of("feeds_kept");
            same_rows(&mut twin, PAGES[0]);
            twin.run("ROLLBACK");
            assert_eq!(proxy.counts().of("feeds_kept"), before);
            same_rows(&mut twin, PAGES[0]);
        }
    });
}

/// Long rows are not cached, and memory is bounded whatever clients request.
#[test]
fn long_rows_and_many_forms_stay_within_memory() {
    on_each_server(|server| {
        let database = Database::empty(server, "keptlong");
        SMALL.make(&mut database.connect(), &mut Random(5));
        let small = format!("{}\n[rows]\nmemory_bytes = 1048576\n", settings());
        let proxy = served(server, &database, "home", &small);
        let mut root = database.connect();
        root.ok("ALTER TABLE statuses ADD COLUMN document LONGTEXT");
        root.ok("UPDATE statuses SET document = REPEAT('x', 200000) WHERE id > 2990");
        root.ok("UPDATE statuses SET document = REPEAT('y', 500) WHERE id <= 2990");
        let mut twin = Twin::new(server, &proxy, &database.login());
        equal(&proxy, &mut twin, PAGES[0]);
        for number in 0..400 {
            let reader = 1 + number % 30;
            let bound = 3_000 - number * 5;
            twin.run(&format!(
                "SELECT id, document FROM statuses WHERE profile_id IN ({reader}, 1) AND id < {bound} AND likes <> {} ORDER BY id DESC LIMIT 9",
                number % 50
            ));
            twin.run(PAGES[(number % 6) as usize]);
        }
        kept(&proxy, &mut twin, PAGES[5]);
    });
}

/// A JSON document that the log updates in part only, and one that does not fit into a packet.
#[test]
fn documents_may_be_told_in_parts_and_be_of_16_mib() {
    on_servers_of_its_own(
        |_| &["--max-allowed-packet=67108864"],
        |server| {
            let login = prepare(server.addr());
            let mut root = WireClient::login(server.addr(), &login);
            SMALL.make(&mut root, &mut Random(5));
            root.ok("ALTER TABLE statuses ADD COLUMN document JSON, ADD COLUMN picture LONGBLOB");
            root.ok(
                "UPDATE statuses SET document = JSON_OBJECT('likes', id, 'text', REPEAT('x', 300))",
            );
            if server.kind() == ServerKind::Mysql {
                root.ok("SET SESSION binlog_row_value_options = 'PARTIAL_JSON', binlog_row_image = 'MINIMAL'");
            }
            let proxy = Proxy::configured(server.addr(), &settings(), ROOT_SERVICE);
            proxy.wait_for_log("feed home in database tl: served");
            let (direct, proxied) = (
                WireClient::login(server.addr(), &login),
                proxy.login(&login),
            );
            let mut twin = Twin::between(direct, proxied);
            let shown = "SELECT id, document FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 5";
            for turn in 0..5 {
                kept(&proxy, &mut twin, shown);
                root.ok(&format!(
                    "UPDATE statuses SET document = JSON_SET(document, '$.likes', {turn}) WHERE id > 2800"
                ));
                same_rows(&mut twin, shown);
            }
            let pictures = "SELECT id, picture FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 2";
            kept(&proxy, &mut twin, pictures);
            let last = twin.direct.column(pictures)[0].clone();
            for letter in ["a", "b"] {
                root.ok(&format!(
                    "UPDATE statuses SET picture = REPEAT('{letter}', 17000000) WHERE id = {last}"
                ));
                for _ in 0..3 {
                    same_rows(&mut twin, pictures);
                    same_rows(&mut twin, shown);
                }
            }
            root.ok(&format!(
                "UPDATE statuses SET picture = 'small' WHERE id = {last}"
            ));
            kept(&proxy, &mut twin, pictures);
        },
    );
}

#[test]
fn without_memory_for_rows_statements_are_narrowed() {
    on_each_server(|server| {
        let (database, proxy) = without_rows(server, "keptoff");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for statement in PAGES {
            equal(&proxy, &mut twin, statement);
            equal(&proxy, &mut twin, statement);
        }
        let counts = proxy.counts();
        assert_eq!(counts.of("feeds_kept"), 0, "{counts:?}");
    });
}
