//! Statements that were prepared under settings other than the present ones: servers retain some of these, and read others anew.

use super::app::{SMALL, settings};
use super::narrowed::{narrowed, until_risen};
use super::rules::{LISTED, app};
use crate::kit::proxy::{Counts, Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::{on_each_server, on_servers_of_its_own};
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;
use crate::memory::prepare;

/// Statements that may mean something else under other settings.
const TEXTS: [&str; 5] = [
    "SELECT id, COALESCE(caption, '') AS shown FROM statuses WHERE profile_id IN (1, 2, 3, 4) ORDER BY id DESC LIMIT 5",
    "SELECT id, caption FROM statuses WHERE profile_id IN (1, 2, 3, 4) AND caption <> '' ORDER BY id DESC LIMIT 5",
    "SELECT id, seen_at FROM statuses WHERE profile_id IN (1, 2, 3, 4) AND seen_at > '2026-01-01 11:30:00' ORDER BY id DESC LIMIT 5",
    "SELECT id, kind FROM statuses WHERE profile_id IN (1, 2, 3, 4) AND kind = 'PHOTO' ORDER BY id DESC LIMIT 5",
    "SELECT id, likes FROM statuses WHERE profile_id IN (1, 2, 3, 4) AND NOT likes BETWEEN 1 AND 20 ORDER BY id DESC LIMIT 5",
];

const SETTINGS: [&str; 8] = [
    "sql_mode = ''",
    "sql_mode = 'HIGH_NOT_PRECEDENCE'",
    "sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE'",
    "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES'",
    "time_zone = '+02:00'",
    "time_zone = '+00:00'",
    "collation_connection = utf8mb4_bin",
    "NAMES latin1",
];

#[test]
fn a_prepared_statement_keeps_the_settings_under_which_it_was_prepared() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedmodes");
        let mut root = database.connect();
        root.ok("SET time_zone = '+00:00'");
        root.ok("ALTER TABLE statuses ADD COLUMN seen_at TIMESTAMP NULL");
        root.ok("UPDATE statuses SET seen_at = '2026-01-01 08:00:00' + INTERVAL id MINUTE");
        root.ok("UPDATE statuses SET caption = '' WHERE id MOD 3 = 0");
        narrowed(&proxy, &mut proxy.login(&database.login()), LISTED);
        let mut settings = SETTINGS.to_vec();
        if server.is_mariadb() {
            settings.push("sql_mode = 'EMPTY_STRING_IS_NULL'");
        }
        let mut random = Random(20_261_127);
        let mut twin = Twin::new(server, &proxy, &database.login());
        twin.ok("SET time_zone = '+00:00'");
        let before = proxy.counts().feeds_answered();
        for turn in 0..120 {
            twin.ok(&format!("SET {}", random.pick(&settings)));
            let text = random.pick(&TEXTS);
            let statement = twin.prepare(text);
            // Executed at once, or only after the settings change.
            for _ in 0..random.below(3) {
                twin.execute(statement, &[]);
            }
            twin.ok(&format!(
                "PREPARE named FROM '{}'",
                text.replace('\'', "''")
            ));
            for _ in 0..2 {
                twin.ok(&format!("SET {}", random.pick(&settings)));
                for _ in 0..3 {
                    twin.execute(statement, &[]);
                    twin.run("EXECUTE named");
                }
            }
            if turn % 8 == 0 {
                twin.command(&[crate::kit::wire_client::COM_RESET_CONNECTION]);
                twin.ok("SET time_zone = '+00:00'");
            }
        }
        let counts = proxy.counts();
        assert!(counts.feeds_answered() > before, "{counts:?}");
        assert!(counts.of("feeds_relayed[execution]") > 0, "{counts:?}");
    });
}

/// A bug that was found: an empty string was NULL at PREPARE, and is not any more.
#[test]
fn an_empty_string_that_was_null_stays_null() {
    on_each_server(|server| {
        if !server.is_mariadb() {
            return;
        }
        let (database, proxy) = app(server, "feedempty");
        let mut root = database.connect();
        root.ok("UPDATE statuses SET caption = '' WHERE id MOD 3 = 0");
        narrowed(&proxy, &mut proxy.login(&database.login()), LISTED);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let text = TEXTS[1];
        for _ in 0..5 {
            twin.run(text);
        }
        twin.ok("SET sql_mode = 'EMPTY_STRING_IS_NULL'");
        let statement = twin.prepare(text);
        for mode in ["EMPTY_STRING_IS_NULL", "", "EMPTY_STRING_IS_NULL"] {
            twin.ok(&format!("SET sql_mode = '{mode}'"));
            for _ in 0..5 {
                twin.execute(statement, &[]);
            }
        }
        // Prepared and executed under the same settings, it is served.
        twin.ok("SET sql_mode = ''");
        let statement = twin.prepare(text);
        until_risen(&proxy, "answered", Counts::feeds_answered, || {
            twin.execute(statement, &[]);
        });
    });
}

/// A bug that was found: behind a statement that the server executed between PREPARE and the first execution, no page ordered by a
/// TIMESTAMP was served for the rest of the session.
///
/// A stored function concerns all sessions of its server.
#[test]
fn stored_code_before_the_first_execution_counts_where_a_moment_is_compared() {
    on_servers_of_its_own(
        |_| &["--log-bin-trust-function-creators=1"],
        |server| {
            let login = prepare(server.addr());
            let mut root = WireClient::login(server.addr(), &login);
            SMALL.make(&mut root, &mut Random(5));
            for statement in [
                "SET time_zone = '+00:00'",
                "ALTER TABLE statuses ADD COLUMN seen_at TIMESTAMP NOT NULL DEFAULT '2026-01-01', ADD INDEX (profile_id, seen_at, id)",
                "UPDATE statuses SET seen_at = '2026-01-01 08:00:00' + INTERVAL id MINUTE",
                "CREATE FUNCTION moved() RETURNS INT DETERMINISTIC BEGIN SET time_zone = '+02:00'; RETURN 1; END",
            ] {
                root.ok(statement);
            }
            let settings = settings().replace("order = [\"id\"]", "order = [\"seen_at\", \"id\"]");
            let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
            proxy.wait_for_log("feed home in database tl: served");
            let page = |bound: &str| {
                format!(
                    "SELECT id, seen_at FROM statuses WHERE profile_id IN (1, 2, 3, 4) {bound} ORDER BY seen_at DESC, id DESC LIMIT 5"
                )
            };
            let (newest, older) = (page(""), page("AND seen_at <= '2026-01-01 13:00:00'"));
            let relayed = |counts: &Counts| counts.of("feeds_relayed[execution]");
            for (text, count) in [
                (newest, &Counts::feeds_answered as &dyn Fn(&Counts) -> u64),
                (older, &relayed),
            ] {
                narrowed(&proxy, &mut proxy.login(&login), &text);
                let direct = WireClient::login(server.addr(), &login);
                let mut twin = Twin::between(direct, proxy.login(&login));
                twin.ok("SET time_zone = '+00:00'");
                let statement = twin.prepare(&text);
                twin.run("SELECT moved()");
                until_risen(&proxy, &format!("counted: {text}"), count, || {
                    twin.execute(statement, &[]);
                });
            }
        },
    );
}
