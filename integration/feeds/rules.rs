//! Rules for narrowed statements, one test each.

use super::app::{SMALL, settings_in};
use super::narrowed::{narrowed, narrowed_where, same};
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;

pub(super) const LISTED: &str =
    "SELECT id FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) ORDER BY id DESC LIMIT 5";

/// Queries for the session state that the statement before them leaves.
pub(super) const BEHIND: [&str; 5] = [
    "SELECT FOUND_ROWS()",
    "SELECT ROW_COUNT()",
    "SHOW WARNINGS",
    "SELECT @@warning_count, @@error_count",
    "SELECT LAST_INSERT_ID()",
];

pub(super) fn app(server: &'static Server, story: &str) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    SMALL.make(&mut database.connect(), &mut Random(5));
    let proxy = served(server, &database, "home", &settings_in(&database));
    (database, proxy)
}

/// A statement without its list does not read the list's column, so the server would not refuse it to an account without that right.
#[test]
fn a_list_is_left_out_only_by_who_may_read_its_column() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedright");
        narrowed(&proxy, &mut proxy.login(&database.login()), LISTED);
        let login = database.account("EXECUTE", "");
        let user = login.user.clone();
        let name = database.name();
        let mut root = database.connect();
        root.ok(&format!(
            "GRANT SELECT (id, caption) ON {name}.statuses TO {user}@'%'"
        ));
        let mut client = proxy.login(&login);
        for _ in 0..5 {
            assert_eq!(client.error(LISTED).code, 1143);
        }
        root.ok(&format!(
            "GRANT SELECT (profile_id) ON {name}.statuses TO {user}@'%'"
        ));
        // This account cannot query whether a temporary table hides the table: only a new session certainly has none.
        narrowed_where(&proxy, LISTED, |statement| {
            proxy.login(&login).query(statement);
        });
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// The server must report errors and warnings of rows that narrowing never reads.
#[test]
fn what_may_fail_or_warn_is_not_narrowed() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedplain");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for condition in [
            "likes - 60 > 0",
            "caption = 5",
            "caption + 0 > 1",
            "(@n := 1) = 1",
            "likes / 0 IS NULL",
            "kind = 'photo' XOR likes = 1",
            "likes BETWEEN 0 AND profile_id IN (1,2)",
            "profile_id IN (1, '2x')",
            "NOT profile_id IN (1)",
        ] {
            let statement = format!(
                "SELECT id FROM statuses WHERE profile_id IN (1, 2, 3) AND {condition} ORDER BY id DESC LIMIT 3"
            );
            same(&mut twin, &statement, 3);
        }
        let counts = proxy.counts();
        assert_eq!(counts.feeds_answered(), 0, "{counts:?}");
    });
}

/// A temporary table hides the real one, and a transaction sees its own rows.
#[test]
fn what_only_the_session_sees_is_the_servers_to_show() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedown");
        let mut twin = Twin::new(server, &proxy, &database.login());
        narrowed(&proxy, &mut twin.proxied, LISTED);
        for statement in [
            "BEGIN",
            "INSERT INTO statuses (id, profile_id, caption, kind, visibility, likes, created_at) \
             VALUES ({id}, 2, 'mine', 'photo', 'public', 1, '2026-01-01')",
        ] {
            twin.direct.ok(&statement.replace("{id}", "900001"));
            twin.proxied.ok(&statement.replace("{id}", "900002"));
        }
        for (client, own) in [(&mut twin.direct, "900001"), (&mut twin.proxied, "900002")] {
            assert_eq!(client.column(LISTED)[0], own);
            client.ok("ROLLBACK");
        }
        narrowed(&proxy, &mut twin.proxied, LISTED);
        twin.ok("CREATE TEMPORARY TABLE statuses (id INT PRIMARY KEY, profile_id INT)");
        twin.ok("INSERT INTO statuses VALUES (7, 1)");
        assert_eq!(twin.rows(LISTED).len(), 1);
        twin.ok("DROP TEMPORARY TABLE statuses");
        assert_eq!(twin.rows(LISTED).len(), 5);
        narrowed(&proxy, &mut twin.proxied, LISTED);
    });
}

#[test]
fn counts_and_warnings_behind_it_are_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedbehind");
        let mut twin = Twin::new(server, &proxy, &database.login());
        narrowed(&proxy, &mut twin.proxied, LISTED);
        for question in BEHIND {
            twin.ok("DO 1");
            assert_eq!(twin.rows(LISTED).len(), 5);
            twin.run(question);
        }
    });
}
