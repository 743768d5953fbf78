//! `SHOW HEADWATER ...`: a client receives what the admin port reports, and the stated decision is the one that is made.

use std::time::Instant;

use super::http::Admin;
use crate::kit::database::Database;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::WireClient;
use crate::kit::{patience, pause_since};
use crate::memory::warm;

const CALL: &str = "CALL fetch_timeline_ids(1)";

/// The given columns of the first row.
#[track_caller]
fn told(client: &mut WireClient, statement: &str) -> [String; 2] {
    let rows = client.rows(&format!("SHOW HEADWATER WHY FOR {statement}"));
    let [row] = &rows[..] else {
        panic!("{rows:?}");
    };
    [0, 1].map(|cell| row[cell].clone().unwrap())
}

#[test]
fn tables_are_those_of_the_admin_port() {
    on_each_server(|server| {
        let database = Database::classic(server, "showtables");
        let name = database.name();
        // Databases of other tests come and go.
        let settings = format!("[[definition]]\nname = \"classic\"\ndatabase = \"{name}\"\n");
        let (proxy, admin) = Admin::beside(server.addr(), &settings, ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {name}: accelerated"));
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, CALL);
        // Byte counts and times change between requests, and a session that was answered is busy for a moment.
        let moves = |name: &str| {
            ["seconds", "bytes", "proof", "process", "binlog", "by_state"]
                .iter()
                .any(|it| name.contains(it))
        };
        for table in ["status", "feeds", "memory", "settings", "statements"] {
            let rows = client.rows(&format!("SHOW HEADWATER {table}"));
            let answer = admin.get(&format!("/api/{table}"));
            assert!(answer.head.contains("application/json"), "{answer:?}");
            let said: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
            let said = said.as_array().unwrap();
            assert_eq!(rows.len(), said.len(), "{table}");
            for (row, said) in rows.iter().zip(said) {
                let said = said.as_object().unwrap();
                let first = row[0].clone().unwrap();
                if table == "memory" || moves(&first) {
                    continue;
                }
                for cell in row.iter().flatten() {
                    let alike = said.values().any(|value| match value {
                        serde_json::Value::String(text) => text == cell,
                        value => &value.to_string() == cell,
                    });
                    assert!(alike, "{table}: {cell:?} is not in {said:?}");
                }
            }
        }
        let feeds = client.rows("SHOW HEADWATER FEEDS LIKE 'class%'");
        let own = feeds
            .iter()
            .find(|row| row[2].as_deref() == Some(name))
            .unwrap();
        let cells = [0, 1, 3].map(|cell| own[cell].as_deref().unwrap());
        assert_eq!(cells, ["classic", "definition", "memory"]);
        let counted = client
            .rows("SHOW HEADWATER STATUS LIKE 'headwater_calls_total%\"classic\"%\"memory\"%'");
        let counted: u64 = counted[0][1].as_ref().unwrap().parse().unwrap();
        assert_eq!(counted, proxy.counts().of("calls_from_memory"));
        // Secrets are omitted.
        let settings = client.rows("SHOW HEADWATER SETTINGS LIKE 'service.%'");
        assert_eq!(settings[1][1].as_deref(), Some("root"), "{settings:?}");
    });
}

#[test]
fn sessions_are_seen_doing_what_they_do() {
    on_each_server(|server| {
        let database = Database::classic(server, "showsessions");
        let (proxy, _) = Admin::beside(server.addr(), "", ROOT_SERVICE);
        let mut root = database.connect();
        let strange = "it's <b>\u{e4}</b>";
        root.query(&format!("DROP USER IF EXISTS `{strange}`@'%'"));
        root.ok(&format!("CREATE USER `{strange}`@'%'"));
        let login = crate::kit::wire_client::Login {
            user: strange.to_owned(),
            password: String::new(),
            ..database.login()
        };
        root.ok(&format!(
            "GRANT ALL ON {}.* TO `{strange}`@'%'",
            database.name()
        ));
        let mut open = proxy.login(&login);
        open.ok("BEGIN");
        let mut busy = proxy.login(&login);
        busy.send(&busy.query_payload(b"SELECT SLEEP(20)", &[]))
            .unwrap();
        let mut client = proxy.login(&database.login());
        let number = client.column("SELECT CONNECTION_ID()");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(15);
        loop {
            let rows = client.rows("SHOW HEADWATER SESSIONS");
            let seen: Vec<_> = rows
                .iter()
                .map(|row| (row[1].as_deref(), row[3].as_deref()))
                .collect();
            let expected = [
                (Some(strange), Some("in_transaction")),
                (Some(strange), Some("busy")),
                (Some("root"), Some("busy")),
            ];
            if seen == expected {
                assert_eq!(rows[2][0].as_deref(), Some(number[0].as_str()));
                assert_eq!(
                    rows[2][2].as_ref().unwrap().split(':').next(),
                    Some("127.0.0.1")
                );
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{rows:?}");
        }
        drop(busy);
        drop(open);
        while client.rows("SHOW HEADWATER SESSIONS").len() > 1 {
            assert!(std::time::Instant::now() < deadline);
        }
        root.ok(&format!("DROP USER `{strange}`@'%'"));
    });
}

#[test]
fn what_would_become_of_a_call_becomes_of_it() {
    on_each_server(|server| {
        let database = Database::classic(server, "showwhy");
        let name = database.name();
        let (proxy, _) = Admin::beside(server.addr(), "", ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {name}: accelerated"));
        let mut client = proxy.login(&database.login());
        let mut other = proxy.login(&database.login());
        warm(&proxy, &mut other, CALL);
        // The explanation holds in every session state.
        for (before, statement, reason, after) in [
            ("DO 0", CALL, "", "DO 0"),
            (
                "SET @reader = 1",
                "CALL fetch_timeline_ids(@reader)",
                "",
                "DO 0",
            ),
            ("BEGIN", CALL, "in_transaction", "COMMIT"),
            (
                "SET autocommit = 0",
                CALL,
                "autocommit_off",
                "SET autocommit = 1",
            ),
            (
                "LOCK TABLES message READ",
                CALL,
                "table_locks",
                "UNLOCK TABLES",
            ),
            (
                "SET @reader = NULL",
                "CALL fetch_timeline_ids(@reader)",
                "arguments",
                "DO 0",
            ),
            (
                "SET sql_select_limit = 5",
                CALL,
                "session_settings",
                "SET sql_select_limit = DEFAULT",
            ),
            (
                "USE mysql",
                &format!("CALL {name}.fetch_timeline_ids(1)"),
                "other_database",
                &format!("USE {name}"),
            ),
        ] {
            client.ok(before);
            for _ in 0..2 {
                let [from, why] = told(&mut client, statement);
                assert_eq!(
                    (from == "memory", why.as_str()),
                    (reason.is_empty(), reason),
                    "{before}"
                );
            }
            let counts = proxy.counts();
            client.query(statement);
            let now = proxy.counts();
            let answered = now.of("calls_owned") - counts.of("calls_owned");
            assert_eq!(answered, u64::from(reason.is_empty()), "{before}");
            if !reason.is_empty() {
                let counter = format!("calls_relayed[{reason}]");
                assert_eq!(now.of(&counter) - counts.of(&counter), 1, "{before}");
            }
            client.query(after);
        }
        for (statement, reason) in [
            ("SELECT 1", "no_feed"),
            ("CALL fetch_timeline_ids('x')", "no_definition"),
            ("CALL fetch_timeline_ids(1); SELECT 1", "several"),
            ("EXECUTE page", "dynamic"),
            ("INSERT INTO message VALUES (1)", "no_feed"),
        ] {
            assert_eq!(
                told(&mut client, statement),
                ["server", reason],
                "{statement}"
            );
        }
    });
}

/// To the session it counts as one statement and has the effects of any SHOW.
#[test]
fn it_leaves_nothing_in_the_session() {
    on_each_server(|server| {
        let database = Database::classic(server, "showleaves");
        let (proxy, _) = Admin::beside(server.addr(), "", ROOT_SERVICE);
        let mut client = proxy.login(&database.login());
        let mut direct = database.connect();
        direct.ok("INSERT INTO message (id, user_id, body) VALUES (1999999, 2, 'x')");
        direct.ok("INSERT INTO follower VALUES (1, 2)");
        warm(&proxy, &mut client, CALL);
        client.ok("CREATE TEMPORARY TABLE kept (id INT AUTO_INCREMENT PRIMARY KEY)");
        client.ok("INSERT INTO kept VALUES (), ()");
        client.ok(CALL);
        let questions = [
            "STATUS",
            "FEEDS",
            "STATEMENTS",
            "SESSIONS",
            "MEMORY",
            "SETTINGS",
            "TEA",
        ];
        for question in questions {
            client.rows(&format!("SHOW HEADWATER {question}"));
        }
        for statement in [
            CALL,
            "CALL fetch_timeline_ids2(1, 500)",
            "SELECT 1",
            "CREATE TABLE never (id INT)",
        ] {
            client.rows(&format!("SHOW HEADWATER WHY FOR {statement}"));
        }
        let ids = client.column("SELECT id FROM fetch_timeline_tt ORDER BY id DESC");
        direct.ok(CALL);
        assert_eq!(
            ids,
            direct.column("SELECT id FROM fetch_timeline_tt ORDER BY id DESC")
        );
        assert!(!ids.is_empty());
        assert_eq!(client.column("SELECT LAST_INSERT_ID()"), ["1"]);
        assert_eq!(client.column("SELECT COUNT(*) FROM kept"), ["2"]);
        assert_eq!(client.column("SHOW TABLES LIKE 'never'"), [""; 0]);
        client.rows("SHOW HEADWATER MEMORY");
        assert_eq!(client.rows("SHOW WARNINGS").len(), 0);
        client.ok("SET autocommit = 0");
        client.rows("SHOW HEADWATER MEMORY");
        let id = client.column("SELECT CONNECTION_ID()").remove(0);
        let open = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id =";
        // The server shows transactions as of up to 0.1 s ago; one that is left open stays.
        let (begun, deadline) = (Instant::now(), patience());
        while direct.column(&format!("{open} {id}")) != ["0"] {
            assert!(Instant::now() < deadline, "an open transaction");
            pause_since(begun);
        }
        client.ok("SET autocommit = 1");
        client.ok("BEGIN");
        client.ok("INSERT INTO message (id, user_id, body) VALUES (2000000, 2, 'x')");
        client.rows("SHOW HEADWATER FEEDS");
        client.ok("ROLLBACK");
        assert_eq!(
            client.column("SELECT COUNT(*) FROM message WHERE id = 2000000"),
            ["0"]
        );
    });
}

#[test]
fn who_may_not_ask_hears_it_from_the_server() {
    on_each_server(|server| {
        let database = Database::classic(server, "showdenied");
        let login = database.account("EXECUTE, SELECT", "");
        let (proxy, _) = Admin::beside(server.addr(), "", ROOT_SERVICE);
        let mut client = proxy.login(&login);
        let denied = client.error("SHOW HEADWATER STATUS");
        assert_eq!(denied.code, 1227);
        assert!(denied.message.contains("PROCESS"), "{denied:?}");
        assert_eq!(client.error("SHOW HEADWATER WHY FOR SELECT 1").code, 1227);
        // When the feature is off or no service account is set, the server rejects the statement.
        let mut direct = WireClient::login(server.addr(), &database.login());
        let directly = direct.error("SHOW HEADWATER STATUS");
        assert_eq!(directly.code, 1064);
        for (settings, flags) in [("[admin]\nshow = false\n", ROOT_SERVICE), ("", &[][..])] {
            let (proxy, _) = Admin::beside(server.addr(), settings, flags);
            let relayed = proxy
                .login(&database.login())
                .error("SHOW HEADWATER STATUS");
            assert_eq!(
                (relayed.code, &relayed.message),
                (directly.code, &directly.message)
            );
        }
        let user = login.user;
        database.connect().ok(&format!("DROP USER {user}@'%'"));
    });
}

/// The list of statements is complete and matches the documentation.
#[test]
fn the_list_of_questions_is_that_of_the_documentation() {
    const PAGE: &str = include_str!("../../docs/inspect.md");
    let rows = PAGE
        .lines()
        .filter(|line| line.starts_with("| `SHOW HEADWATER "));
    let explained: Vec<String> = rows
        .map(|row| {
            row.split('`')
                .nth(1)
                .unwrap()
                .replace("FOR statement", "FOR <statement>")
        })
        .collect();
    on_each_server(|server| {
        let database = Database::classic(server, "showlist");
        let (proxy, _) = Admin::beside(server.addr(), "", ROOT_SERVICE);
        let mut client = proxy.login(&database.login());
        let rows = client.rows("SHOW HEADWATER TEA");
        let listed: Vec<String> = rows
            .into_iter()
            .map(|row| row[0].clone().unwrap())
            .collect();
        assert_eq!(listed, explained);
    });
}
