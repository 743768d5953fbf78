//! Feed statements that are prepared by the protocol: executions are the same directly and through Headwater.

use std::collections::HashMap;
use std::time::Instant;

use super::app::{App, SMALL, large, settings};
use super::narrowed::{narrowed_where, until_risen};
use super::opened::Opened;
use super::pair::Pair;
use super::rules::BEHIND;
use super::served::served;
use super::statements::Drawn;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::patience;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_quiet_server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{
    COM_INIT_DB, COM_RESET_CONNECTION, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH,
    COM_STMT_PREPARE, COM_STMT_RESET, COM_STMT_SEND_LONG_DATA, Login, Param, ServerError,
    WireClient, capability,
};

/// Executions to compare on each server: `HEADWATER_FEEDS`, or a number that suffices for a test.
fn executions() -> u64 {
    how_many("HEADWATER_FEEDS", 1_000)
}

/// The ways to write a statement.
const TEMPLATES: u64 = 60;
/// Statements that are open at a time.
const OPEN: usize = 200;

#[test]
fn executions_are_answered_as_directly() {
    on_each_server(|server| {
        let compared = [
            ("BIGINT UNSIGNED", "BIGINT UNSIGNED", Login::default()),
            (
                "INT",
                "INT",
                Login::default().without(capability::DEPRECATE_EOF),
            ),
            (
                "MEDIUMINT UNSIGNED",
                "SMALLINT",
                Login::default().with(capability::QUERY_ATTRIBUTES | capability::SESSION_TRACK),
            ),
            // A client that caches column metadata: on MariaDB.
            (
                "BIGINT",
                "INT UNSIGNED",
                Login::default().with(
                    capability::MARIADB_CACHE_METADATA | capability::MARIADB_EXTENDED_METADATA,
                ),
            ),
        ];
        for (id, user, login) in &compared {
            compare(
                server,
                id,
                user,
                login,
                executions() / compared.len() as u64,
            );
        }
    });
}

fn compare(
    server: &'static Server,
    id: &'static str,
    user: &'static str,
    login: &Login,
    executions: u64,
) {
    let app = large(id, user);
    let mut random = Random(20_261_124);
    let (database, proxy) = story(server, &app, &mut random);
    let login = login.clone().database(database.name());
    let direct = WireClient::login(server.addr(), &login);
    let mut pair = Pair::new(direct, proxy.login(&login));
    let mut open: HashMap<String, ([u32; 2], Vec<[u8; 2]>)> = HashMap::new();
    let quota = Quota::new(
        &proxy,
        executions,
        executions * 3 / 8,
        Counts::feeds_answered,
    );
    while quota.take().is_some() {
        let template = random.below(TEMPLATES);
        let statement = Drawn {
            random: Random(template),
            values: &mut random,
            app: &app,
            key: None,
        }
        .statement();
        let opened = Opened::of(&statement.text, &mut Random(template), &mut random);
        let Opened { text, params } = opened;
        let types: Vec<[u8; 2]> = params.iter().map(|it| [it.code, it.sign]).collect();
        if !open.contains_key(&text) && open.len() == OPEN {
            for (statement, _) in open.drain().map(|(_, own)| own) {
                pair.close(statement);
            }
        }
        let (statement, told) = open
            .entry(text.clone())
            .or_insert_with(|| (pair.prepare(&text), Vec::new()));
        let known = *told == types && !types.is_empty();
        pair.execute(template, &text, *statement, &params, !known);
        *told = types;
        if !params.is_empty() && random.one_in(4) {
            // In a transaction that does more than read, the execution is relayed. Its types came once, before the transaction.
            pair.run("BEGIN");
            if random.one_in(2) {
                pair.run("SET SESSION sql_notes = DEFAULT");
            }
            pair.execute(template, &text, *statement, &params, false);
            pair.run("ROLLBACK");
            pair.execute(template, &text, *statement, &params, random.one_in(2));
        }
    }
    println!("{} turns: {:?}", quota.taken(), proxy.counts());
}

fn story(server: &'static Server, app: &App, random: &mut Random) -> (Database, Proxy) {
    let database = Database::empty(server, "feedprepared");
    app.make(&mut database.connect(), random);
    // So few candidates that a filter which nothing passes reaches the end of them.
    let settings = [&settings(), "[limits]\ncandidates = 900\n"].concat();
    let proxy = served(server, &database, "home", &settings);
    (database, proxy)
}

fn small(server: &'static Server) -> (Database, Proxy) {
    story(server, &SMALL, &mut Random(5))
}

/// The same, with captions that mean something else in another character set.
fn accented(server: &'static Server) -> (Database, Proxy) {
    let (database, proxy) = small(server);
    let mut root = database.connect();
    root.ok("UPDATE statuses SET caption = '\u{e9}' WHERE id % 2 = 0");
    root.ok("UPDATE statuses SET caption = '\u{c3}\u{a9}' WHERE id % 3 = 0");
    (database, proxy)
}

const LISTED: &str = "SELECT id, caption FROM statuses WHERE profile_id IN (?, ?, ?) AND kind <> ? ORDER BY id DESC LIMIT 5";

fn listed(kind: &str) -> [Param; 4] {
    let [one, two, three] = [1, 2, 3].map(Param::long);
    [one, two, three, Param::text(Some(kind))]
}

/// Executes until it is narrowed: changes by other tests on this server may cause a new check at any time.
#[track_caller]
fn narrowed(proxy: &Proxy, twin: &mut Twin, statement: [u32; 2], params: &[Param]) {
    narrowed_where(proxy, "an execution", |_| {
        twin.execute_with(statement, params, 0, true);
    });
}

/// MySQL may be unable to convert text beyond ASCII and then refuses it. The server answers such an execution.
#[track_caller]
fn accented_execution(
    server: &Server,
    proxy: &Proxy,
    twin: &mut Twin,
    statement: [u32; 2],
    with: &[Param],
) {
    match server.is_mariadb() {
        true => narrowed(proxy, twin, statement, with),
        false => relayed(proxy, "execution", || {
            twin.execute_with(statement, with, 0, true);
        }),
    }
}

/// Executes until it is relayed for this reason.
#[track_caller]
fn relayed(proxy: &Proxy, why: &str, execute: impl FnMut()) {
    let name = format!("feeds_relayed[{why}]");
    until_risen(proxy, &name, |counts| counts.of(&name), execute);
}

/// Types come once, and the server has not received those of a narrowed execution.
#[test]
fn types_that_came_once_hold_for_executions_that_are_relayed() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let statement = twin.prepare(LISTED);
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        twin.execute_with(statement, &listed("photo"), 0, false);
        // A transaction that does more than read.
        twin.run("BEGIN");
        twin.run("SET SESSION sql_notes = DEFAULT");
        relayed(&proxy, "in_transaction", || {
            twin.execute_with(statement, &listed("video"), 0, false);
        });
        twin.execute_with(statement, &listed("photo"), 0, false);
        twin.run("ROLLBACK");
        // Other types, narrowed again, and then an execution that is too long to inspect.
        let mut other = listed("photo");
        other[0] = Param::new(8, 0, &4u64.to_le_bytes());
        narrowed(&proxy, &mut twin, statement, &other);
        other[3] = Param::text(Some(&"x".repeat(300 * 1024)));
        let reply = twin.execute_with(statement, &other, 0, false);
        assert_eq!(reply.packets.len(), 1 + 2 + 5 + 1);
        other[3] = Param::text(Some("text"));
        relayed(&proxy, "execution", || {
            twin.execute_with(statement, &other, 0, false);
        });
    });
}

#[test]
fn lists_of_any_length_and_nulls_are_answered_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        for count in [2, 1, 9, 30, 3] {
            let list = vec!["?"; count].join(", ");
            let text = format!(
                "SELECT * FROM statuses WHERE profile_id IN ({list}) AND in_reply_to IS NULL AND likes > ? ORDER BY id DESC LIMIT ? OFFSET ?"
            );
            let statement = twin.prepare(&text);
            let users = (0..count).map(|user| Param::long(i32::try_from(user).unwrap() + 1));
            let mut params: Vec<Param> = users.collect();
            params.extend([3, 4, 2].map(Param::long));
            narrowed(&proxy, &mut twin, statement, &params);
            for at in 0..params.len() {
                let mut with_null = params.clone();
                with_null[at].value = None;
                twin.execute_with(statement, &with_null, 0, true);
                match params.len() - at {
                    // No value is greater than NULL. Narrowing finds that out where all messages are few enough to be candidates.
                    3 if count <= 3 => narrowed(&proxy, &mut twin, statement, &with_null),
                    3 => relayed(&proxy, "filtered", || {
                        twin.execute_with(statement, &with_null, 0, true);
                    }),
                    1 | 2 => relayed(&proxy, "limit", || {
                        twin.execute_with(statement, &with_null, 0, true);
                    }),
                    _ => relayed(&proxy, "types", || {
                        twin.execute_with(statement, &with_null, 0, true);
                    }),
                }
            }
            twin.of_statement(COM_STMT_CLOSE, statement, b"");
        }
    });
}

/// All candidates pass this filter.
const UNFILTERED: &str =
    "SELECT id, caption FROM statuses WHERE profile_id IN (?, ?) ORDER BY id DESC LIMIT 5";

/// Drivers prepare, execute and close a text again and again. Its narrowed text is prepared once, and ends with the session.
#[test]
fn own_statements_are_few_and_end_with_the_session() {
    on_each_quiet_server(|server| {
        let (database, proxy) = small(server);
        let mut root = server.connect();
        let mut open = || {
            let rows = root.rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
            rows[0][1].clone().unwrap().parse::<u64>().unwrap()
        };
        let before = open();
        let users = [1, 2].map(Param::long);
        let mut twin = Twin::new(server, &proxy, &database.login());
        for _ in 0..5 {
            let statement = twin.prepare(UNFILTERED);
            narrowed(&proxy, &mut twin, statement, &users);
            assert_eq!(open(), before + 3);
            twin.of_statement(COM_STMT_CLOSE, statement, b"");
            twin.run("DO 1");
            assert_eq!(open(), before + 1);
        }
        for limit in 1..30 {
            let text = UNFILTERED.replace("LIMIT 5", &format!("LIMIT {limit}"));
            let statement = twin.prepare(&text);
            narrowed(&proxy, &mut twin, statement, &users);
            twin.of_statement(COM_STMT_CLOSE, statement, b"");
        }
        twin.run("DO 1");
        assert_eq!(open(), before + 8);
        let statement = twin.prepare(UNFILTERED);
        twin.command(&[COM_RESET_CONNECTION]);
        assert_eq!(open(), before);
        unknown(&mut twin, statement);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let again = twin.prepare(UNFILTERED);
        narrowed(&proxy, &mut twin, again, &users);
        twin.change_to_root();
        assert_eq!(open(), before);
        unknown(&mut twin, again);
        // A client that names an internal statement by chance gets an error.
        let mut twin = Twin::new(server, &proxy, &database.login());
        let anew = twin.prepare(UNFILTERED);
        narrowed(&proxy, &mut twin, anew, &users);
        unknown(&mut twin, anew.map(|id| id + 1));
        assert_eq!(open(), before + 3);
    });
}

/// The error names the statement, whose id differs between the sides.
#[track_caller]
fn unknown(twin: &mut Twin, statement: [u32; 2]) {
    let sides = [&mut twin.direct, &mut twin.proxied].into_iter();
    for (client, id) in sides.zip(statement) {
        let reply = client.execute(id, &[Some("1"), Some("2")], 0).unwrap();
        assert_eq!(ServerError::parse(&reply.packets[0].payload).code, 1243);
    }
}

#[test]
fn a_table_that_is_altered_between_executions_is_told_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let mut root = database.connect();
        let mut twin = Twin::new(server, &proxy, &database.login());
        let all = "SELECT * FROM statuses WHERE profile_id IN (?, ?) ORDER BY id DESC LIMIT 5";
        let users = [1, 2].map(Param::long);
        let statement = twin.prepare(all);
        narrowed(&proxy, &mut twin, statement, &users);
        for change in [
            "ALTER TABLE statuses ADD COLUMN more INT NOT NULL DEFAULT 7",
            "ALTER TABLE statuses MODIFY more BIGINT",
            "ALTER TABLE statuses ADD KEY (likes)",
            "ALTER TABLE statuses DROP COLUMN more",
        ] {
            root.ok(change);
            for _ in 0..20 {
                twin.execute_with(statement, &users, 0, true);
            }
            let anew = twin.prepare(all);
            narrowed(&proxy, &mut twin, anew, &users);
            for _ in 0..5 {
                twin.execute_with(statement, &users, 0, true);
            }
        }
        root.ok("DROP TABLE statuses");
        for _ in 0..3 {
            twin.execute_with(statement, &users, 0, true);
        }
    });
}

#[test]
fn names_mean_what_they_meant_where_a_statement_was_prepared() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let other = Database::empty(server, "feedelsewhere");
        App {
            messages: 50,
            ..SMALL
        }
        .make(&mut other.connect(), &mut Random(6));
        let mut twin = Twin::new(server, &proxy, &database.login());
        let statement = twin.prepare(LISTED);
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        let to = |twin: &mut Twin, name: &str| {
            twin.command(&[&[COM_INIT_DB], name.as_bytes()].concat());
        };
        to(&mut twin, other.name());
        for _ in 0..3 {
            relayed(&proxy, "other_database", || {
                twin.execute_with(statement, &listed("text"), 0, true);
            });
        }
        let elsewhere = twin.prepare(LISTED);
        narrowed(&proxy, &mut twin, elsewhere, &listed("text"));
        to(&mut twin, database.name());
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        relayed(&proxy, "other_database", || {
            twin.execute_with(elsewhere, &listed("text"), 0, true);
        });
    });
}

/// A string literal keeps the character set of its PREPARE; a parameter has that of its execution.
#[test]
fn strings_are_read_in_the_character_set_of_their_time() {
    on_each_server(|server| {
        let (database, proxy) = accented(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let users = [1, 2].map(Param::long);
        let text = |string: &str| {
            format!(
                "SELECT id, caption FROM statuses WHERE profile_id IN (?, ?) AND caption <> {string} ORDER BY id DESC LIMIT 5"
            )
        };
        let with = |value: &str| [Param::long(1), Param::long(2), Param::text(Some(value))];
        twin.run("SET NAMES utf8mb4");
        let plain = twin.prepare(&text("'text'"));
        let strange = twin.prepare(&text("'\u{e9}'"));
        let given = twin.prepare(&text("?"));
        // Headwater knows the settings of a PREPARE with the first execution.
        narrowed(&proxy, &mut twin, plain, &users);
        accented_execution(server, &proxy, &mut twin, given, &with("\u{e9}"));
        for charset in ["utf8mb4", "latin1", "utf8mb4"] {
            twin.run(&format!("SET NAMES {charset}"));
            match charset {
                "utf8mb4" => {
                    narrowed(&proxy, &mut twin, plain, &users);
                    accented_execution(server, &proxy, &mut twin, given, &with("\u{e9}"));
                }
                // The server answers statements that were prepared under other settings.
                _ => relayed(&proxy, "execution", || {
                    twin.execute_with(plain, &users, 0, true);
                    twin.execute_with(given, &with("\u{e9}"), 0, true);
                }),
            }
            relayed(&proxy, "not_understood", || {
                twin.execute_with(strange, &users, 0, true);
            });
        }
        twin.run("SET collation_connection = ucs2_general_ci");
        twin.execute_with(plain, &users, 0, true);
        twin.execute_with(given, &with("\u{e9}"), 0, true);
    });
}

/// A parameter's text has the character set that was in effect when its type came, whatever is set since.
#[test]
fn text_is_read_as_when_its_type_came() {
    on_each_server(|server| {
        let (database, proxy) = accented(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let text = "SELECT id, caption FROM statuses WHERE profile_id IN (?, ?) AND caption <> ? ORDER BY id DESC LIMIT 5";
        let with = |value: &str| [Param::long(1), Param::long(2), Param::text(Some(value))];
        twin.run("SET NAMES utf8mb4");
        let statement = twin.prepare(text);
        accented_execution(server, &proxy, &mut twin, statement, &with("\u{e9}"));
        for charset in ["latin1", "cp1251"] {
            twin.run(&format!("SET NAMES {charset}"));
            twin.execute_with(statement, &with("\u{e9}"), 0, true);
            twin.run("SET NAMES utf8mb4");
            relayed(&proxy, "execution", || {
                twin.execute_with(statement, &with("\u{e9}"), 0, false);
            });
            accented_execution(server, &proxy, &mut twin, statement, &with("\u{e9}"));
            twin.execute_with(statement, &with("\u{c3}\u{a9}"), 0, false);
        }
    });
}

/// It is unknown which types a server retains from an execution that it refuses.
#[test]
fn types_of_an_execution_that_was_refused_are_not_relied_on() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        twin.run("SET NAMES utf8mb4");
        let statement = twin.prepare(LISTED);
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        let mut strange = listed("photo");
        strange[3] = Param::new(253, 0, b"\x03\xff\xfe\x80");
        for first in [Param::long(1), Param::new(4, 0, &1u32.to_le_bytes())] {
            strange[0] = first;
            twin.execute_with(statement, &strange, 0, true);
            // Both sides read it the same way, whatever that is.
            twin.execute_with(statement, &listed("photo"), 0, false);
            twin.execute_with(statement, &strange, 0, false);
            narrowed(&proxy, &mut twin, statement, &listed("text"));
        }
    });
}

/// MySQL treats a DATE with a time of day as a malformed packet. Errors and counts of the statement before stay.
#[test]
fn what_is_left_behind_a_malformed_execution_is_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let statement = twin.prepare(
            "SELECT id FROM statuses WHERE profile_id IN (?, ?) AND created_at >= ? ORDER BY id DESC LIMIT 5",
        );
        let with = |date: Param| [Param::long(1), Param::long(2), date];
        let plain = with(Param::text(Some("2020-01-01 00:00:00")));
        narrowed(&proxy, &mut twin, statement, &plain);
        let date = with(Param::new(10, 0, &[7, 0xe4, 7, 1, 1, 10, 0, 0]));
        for before in [
            "SELECT 1",
            "INSERT INTO nowhere VALUES (1)",
            "SELECT 1 + 'x'",
        ] {
            for left in BEHIND {
                twin.execute_with(statement, &plain, 0, true);
                twin.run(before);
                for _ in 0..2 {
                    twin.execute_with(statement, &date, 0, true);
                }
                twin.run(left);
            }
        }
    });
}

#[test]
fn cursors_and_long_data_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let statement = twin.prepare(LISTED);
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        twin.of_statement(COM_STMT_SEND_LONG_DATA, statement, b"\x03\0text");
        let mut sent = listed("");
        sent[3].value = Some(Vec::new());
        relayed(&proxy, "execution", || {
            twin.execute_with(statement, &sent, 0, true);
        });
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        twin.of_statement(COM_STMT_SEND_LONG_DATA, statement, b"\x03\0text");
        twin.of_statement(COM_STMT_RESET, statement, b"");
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        relayed(&proxy, "execution", || {
            twin.execute_with(statement, &listed("text"), 1, true);
        });
        twin.of_statement(COM_STMT_FETCH, statement, &3u32.to_le_bytes());
        // Without a cursor, MySQL's reply has no end.
        if server.is_mariadb() {
            relayed(&proxy, "execution", || {
                twin.execute_with(statement, &listed("text"), 0, true);
            });
        }
    });
}

/// A client that caches column metadata receives it when the server would send it.
#[test]
fn columns_that_a_client_keeps_are_left_out_as_directly() {
    on_each_server(|server| {
        if !server.is_mariadb() {
            return;
        }
        let (database, proxy) = small(server);
        let mut root = database.connect();
        for login in [
            Login::default(),
            Login::default().without(capability::DEPRECATE_EOF),
        ] {
            let login = login
                .database(database.name())
                .with(capability::MARIADB_CACHE_METADATA);
            let mut twin = Twin::new(server, &proxy, &login);
            let all = "SELECT * FROM statuses WHERE profile_id IN (?, ?) ORDER BY id DESC LIMIT 5";
            let joined = "SELECT s.id, s.caption AS shown, s.created_at FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = ? ORDER BY s.id DESC LIMIT 7";
            let users = [1, 2].map(Param::long);
            let of = |user| [Param::long(user)];
            let statement = twin.prepare(all);
            let page = twin.prepare(joined);
            for _ in 0..3 {
                narrowed(&proxy, &mut twin, statement, &users);
                narrowed(&proxy, &mut twin, page, &of(3));
            }
            for user in 1..30 {
                twin.execute_with(page, &of(user), 0, true);
            }
            for change in [
                "ALTER TABLE statuses ADD COLUMN more INT NOT NULL DEFAULT 7",
                "ALTER TABLE statuses MODIFY more BIGINT",
                "ALTER TABLE statuses DROP COLUMN more",
            ] {
                root.ok(change);
                for _ in 0..20 {
                    twin.execute_with(statement, &users, 0, true);
                    twin.execute_with(page, &of(3), 0, true);
                }
                let anew = twin.prepare(all);
                narrowed(&proxy, &mut twin, anew, &users);
                narrowed(&proxy, &mut twin, page, &of(4));
                twin.execute_with(statement, &users, 0, true);
            }
            for charset in ["latin1", "utf8mb4", "latin1", "utf8mb4"] {
                twin.run(&format!("SET NAMES {charset}"));
                for user in 1..6 {
                    twin.execute_with(statement, &users, 0, true);
                    twin.execute_with(page, &of(user), 0, true);
                }
                // A statement is narrowed only under the settings of its PREPARE.
                let [statement, page] = [all, joined].map(|text| twin.prepare(text));
                for user in 1..6 {
                    narrowed(&proxy, &mut twin, statement, &users);
                    narrowed(&proxy, &mut twin, page, &of(user));
                }
            }
            twin.run("SET character_set_results = latin1");
            twin.execute_with(statement, &users, 0, true);
            let statement = twin.prepare(all);
            narrowed(&proxy, &mut twin, statement, &users);
            // An execution that is too long to inspect: from then on the server answers its statement.
            let text = "SELECT id, caption FROM statuses WHERE profile_id IN (?, ?) AND caption <> ? ORDER BY id DESC LIMIT 3";
            let given = twin.prepare(text);
            let with = |value: &str| [Param::long(1), Param::long(2), Param::text(Some(value))];
            narrowed(&proxy, &mut twin, given, &with("text"));
            for value in ["text", &"x".repeat(300 * 1024), "text"] {
                twin.run("SET NAMES utf8mb4");
                twin.execute_with(given, &with(value), 0, true);
            }
            twin.command(&[COM_RESET_CONNECTION]);
            let anew = twin.prepare(all);
            narrowed(&proxy, &mut twin, anew, &users);
        }
    });
}

/// On MariaDB the statement prepared last has a second id, which never names an internal statement of Headwater.
#[test]
fn the_one_prepared_last_is_the_clients() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let twin = || Twin::new(server, &proxy, &database.login());
        let last = [u32::MAX; 2];
        let mut calls = twin();
        let first = calls.prepare(LISTED);
        narrowed(&proxy, &mut calls, first, &listed("text"));
        if server.is_mariadb() {
            narrowed(&proxy, &mut calls, last, &listed("photo"));
        }
        calls.of_statement(COM_STMT_RESET, last, b"");
        calls.run("BEGIN");
        calls.run("SET SESSION sql_notes = DEFAULT");
        calls.execute_with(last, &listed("photo"), 0, true);
        calls.run("ROLLBACK");

        let mut calls = twin();
        let first = calls.prepare(LISTED);
        calls.prepare("SELECT ? + 1");
        narrowed(&proxy, &mut calls, first, &listed("video"));
        calls.execute_with(last, &[Param::long(6)], 0, true);
        calls.of_statement(COM_STMT_SEND_LONG_DATA, last, b"\0\x0041");
        calls.execute_with(last, &[Param::new(254, 0, b"")], 0, true);
        calls.execute_with(last, &[Param::long(6)], 1, true);
        calls.of_statement(COM_STMT_FETCH, last, &3u32.to_le_bytes());

        // The statement prepared last is closed.
        let mut calls = twin();
        let first = calls.prepare(LISTED);
        let second = calls.prepare("SELECT ? + 1");
        narrowed(&proxy, &mut calls, first, &listed("video"));
        calls.of_statement(COM_STMT_CLOSE, second, b"");
        unknown(&mut calls, last);

        let mut calls = twin();
        let first = calls.prepare(LISTED);
        narrowed(&proxy, &mut calls, first, &listed("video"));
        calls.command(&[&[COM_STMT_PREPARE], &b"SELECT nothing"[..]].concat());
        calls.execute_with(last, &listed("photo"), 0, true);
        calls.run("SELECT 1");

        let mut calls = twin();
        let first = calls.prepare(LISTED);
        calls.command(&[&[COM_STMT_PREPARE], &b"SELECT nothing"[..]].concat());
        narrowed(&proxy, &mut calls, first, &listed("video"));
        unknown(&mut calls, last);
    });
}

/// MariaDB's drivers send a first execution this way.
#[test]
fn an_execution_may_follow_its_text_without_waiting() {
    on_each_server(|server| {
        if !server.is_mariadb() {
            return;
        }
        let (database, proxy) = small(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let statement = twin.prepare(LISTED);
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        let before = proxy.counts().feeds_answered();
        let deadline = patience();
        while proxy.counts().feeds_answered() < before + 3 {
            let [direct, proxied] = [&mut twin.direct, &mut twin.proxied].map(|client| {
                let prepare = [&[COM_STMT_PREPARE], LISTED.as_bytes()].concat();
                let execute = client.execution(u32::MAX, &listed("photo"), 0, true);
                client.send(&prepare).unwrap();
                client.send(&execute).unwrap();
                let prepared = client.reply(COM_STMT_PREPARE).unwrap();
                let executed = client.reply(COM_STMT_EXECUTE).unwrap();
                let id = prepared.packets[0].payload[1..5].to_vec();
                client.send(&[&[COM_STMT_CLOSE], &*id].concat()).unwrap();
                executed
            });
            assert_eq!(direct.packets, proxied.packets);
            assert!(Instant::now() < deadline, "{:?}", proxy.counts());
        }
    });
}

#[test]
fn counts_and_warnings_behind_it_are_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let statement = twin.prepare(LISTED);
        narrowed(&proxy, &mut twin, statement, &listed("text"));
        for question in BEHIND {
            twin.ok("DO 1");
            twin.execute_with(statement, &listed("text"), 0, true);
            twin.run(question);
            // The first execution of another size prepares one more statement.
            let fewer = twin.prepare(&LISTED.replace("LIMIT 5", "LIMIT 3"));
            narrowed(&proxy, &mut twin, fewer, &listed("text"));
            twin.run(question);
            twin.of_statement(COM_STMT_CLOSE, fewer, b"");
            twin.run(question);
        }
    });
}

/// Parameters carry times in three forms.
#[test]
fn moments_are_compared_as_the_server_compares_them() {
    on_each_server(|server| {
        let (database, proxy) = small(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let text = "SELECT id FROM statuses WHERE profile_id IN (?, ?) AND created_at < ? ORDER BY id DESC LIMIT 4";
        let statement = twin.prepare(text);
        let with = |at: Param| [Param::long(1), Param::long(2), at];
        let day = [0xea, 0x07, 1, 1];
        let binary = |code: u8, rest: &[u8]| {
            let length = u8::try_from(day.len() + rest.len()).unwrap();
            Param::new(code, 0, &[&[length], &day[..], rest].concat())
        };
        narrowed(
            &proxy,
            &mut twin,
            statement,
            &with(binary(12, &[10, 0, 30])),
        );
        for at in [
            binary(7, &[10, 0, 30]),
            binary(12, &[10, 0, 30, 1, 0, 0, 0]),
            binary(10, &[]),
            Param::text(Some("2026-01-01 10:00:30")),
            Param::text(None),
        ] {
            narrowed(&proxy, &mut twin, statement, &with(at));
        }
        for at in [
            Param::text(Some("2026-01-01T10:00:30")),
            Param::text(Some("2026-02-30")),
            Param::text(Some("x")),
            Param::long(20_260_101),
            Param::new(12, 0, b"\0"),
            Param::new(11, 0, b"\0"),
            Param::new(12, 0, b"\x04\xea\x07\x02\x1e"),
        ] {
            relayed(&proxy, "types", || {
                twin.execute_with(statement, &with(at.clone()), 0, true);
            });
            twin.run("SHOW WARNINGS");
        }
    });
}
