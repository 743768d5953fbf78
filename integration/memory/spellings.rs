//! Statements about the tables that a server accepts and that are hard to parse in its log; and statements that name the tables
//! but leave memory intact.

use std::net::SocketAddr;
use std::time::Instant;

use headwater_lab::private_server::ServerKind;

use super::stage::{CALL, Stage, page, post};
use crate::kit::patience;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Answer, COM_QUERY, COM_STMT_EXECUTE, COM_STMT_PREPARE, WireClient};

/// Headwater logs this when memory has been emptied.
const EMPTIED: &str = "nothing is answered from memory";

/// What a client sends that bypasses Headwater.
enum Send {
    /// Earlier in this session, as text.
    Set(&'static str),
    Query(&'static [u8]),
    Prepare(&'static [u8]),
    /// The statement prepared last.
    Execute,
}

use Send::{Execute, Prepare, Query, Set};

/// Each empties `message`, or replaces it with another table.
const HOSTILE: &[&[Send]] = &[
    &[Set("SET NAMES latin1"), Query(b"TRUNCATE TABLE\xa0message")],
    &[
        Set("SET NAMES greek"),
        Query(b"RENAME TABLE\xa0message TO gone,\xa0spare TO message"),
    ],
    &[
        Set("SET NAMES cp866"),
        Query(b"TRUNCATE\xffTABLE\xffmessage"),
    ],
    &[
        Set("SET NAMES keybcs2"),
        Query(b"ALTER TABLE\xffmessage\xffRENAME TO gone"),
        Set("CREATE TABLE message LIKE spare"),
    ],
    &[
        Set("USE aside"),
        Set("SET NAMES cp1250"),
        Query(b"TRUNCATE TABLE tl\xa0.message"),
    ],
    &[
        Set("USE aside"),
        Set("SET NAMES hebrew"),
        Query(b"TRUNCATE TABLE `tl`\xa0.\xa0`message`"),
    ],
    // Parsed in one character set, executed in another: the log contains the second.
    &[
        Set("SET NAMES cp866"),
        Prepare(b"TRUNCATE TABLE\xffmessage"),
        Set("SET NAMES latin1"),
        Execute,
    ],
    &[
        Set("SET NAMES latin1"),
        Prepare(b"TRUNCATE TABLE\xa0message"),
        Set("SET NAMES utf8mb4"),
        Execute,
    ],
    &[
        Set("SET NAMES gbk"),
        Prepare(b"ALTER TABLE `\x95\x60` RENAME TO `unseen`, COMMENT ''"),
        Set("SET NAMES utf8mb4"),
        Execute,
        Query(b"RENAME TABLE message TO gone, unseen TO message"),
    ],
    // The same with SQL modes.
    &[
        Set("SET sql_mode = 'ANSI_QUOTES'"),
        Prepare(b"TRUNCATE TABLE \"message\""),
        Set("SET sql_mode = ''"),
        Execute,
    ],
    &[
        Set("SET sql_mode = 'NO_BACKSLASH_ESCAPES'"),
        Prepare(b"ALTER TABLE spare COMMENT '\\', RENAME TO shown -- '"),
        Set("SET sql_mode = ''"),
        Execute,
        Query(b"RENAME TABLE message TO gone, shown TO message"),
    ],
    &[
        Set("RENAME TABLE message TO gone"),
        Set("SET sql_mode = 'NO_BACKSLASH_ESCAPES'"),
        Prepare(b"ALTER TABLE spare COMMENT '\\', RENAME TO message -- '"),
        Set("SET sql_mode = ''"),
        Execute,
    ],
    &[Query(
        b"/*!99999999 GRANT */ TRUNCATE /*!40000 TABLE */ message",
    )],
    &[Query(
        b"ALTER TABLE parts EXCHANGE PARTITION p WITH TABLE tl.message",
    )],
    &[
        Query(b"DROP TABLE IF EXISTS nothing, message"),
        Set("CREATE TABLE message LIKE spare"),
    ],
];

/// Only MariaDB accepts these.
const HOSTILE_TO_MARIADB: &[&[Send]] = &[
    &[
        Set("SET sql_mode = 'MSSQL'"),
        Query(b"RENAME TABLE [message] TO [a'b], spare TO message, [a'b] TO gone"),
    ],
    &[Query(
        b"SET STATEMENT max_statement_time = 10 FOR TRUNCATE message",
    )],
    &[Query(b"CREATE OR REPLACE TABLE message LIKE spare")],
    &[Query(b"TRUNCATE .message")],
    &[
        Set("SET sql_mode = ORACLE"),
        Query(b"BEGIN TRUNCATE TABLE \"message\" REUSE STORAGE; END;"),
    ],
    &[Query(b"EXECUTE IMMEDIATE 'TRUNCATE /* */ message'")],
];

const MADE: &[&str] = &[
    "CREATE DATABASE aside",
    "CREATE TABLE origin LIKE message",
    "INSERT INTO message (id, user_id, body) VALUES (50, 2, 'text')",
];

/// Restores the original tables, with another message.
fn mend(root: &mut WireClient, id: u64) {
    for statement in [
        "DROP TABLE IF EXISTS message, spare, gone, unseen, shown, parts, aside.t",
        "SET NAMES gbk",
    ] {
        root.ok(statement);
    }
    query(root, COM_QUERY, b"DROP TABLE IF EXISTS `\x95\x60`");
    query(root, COM_QUERY, b"CREATE TABLE `\x95\x60` LIKE origin");
    for statement in [
        "SET NAMES utf8mb4",
        "CREATE TABLE message LIKE origin",
        "CREATE TABLE spare LIKE origin",
        "CREATE TABLE parts LIKE origin",
        "ALTER TABLE parts PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (1000000))",
    ] {
        root.ok(statement);
    }
    post(root, id);
}

#[track_caller]
fn query(client: &mut WireClient, command: u8, text: &[u8]) -> Vec<u8> {
    let reply = client.command(&[&[command], text].concat()).unwrap();
    let first = reply.packets[0].payload.clone();
    assert_ne!(
        first[0],
        0xff,
        "{}: {}",
        text.escape_ascii(),
        first.escape_ascii()
    );
    first
}

/// Runs a dialogue. Returns its text, for failure messages.
fn play(client: &mut WireClient, dialogue: &[Send]) -> String {
    let mut prepared = Vec::new();
    let mut said = String::new();
    for send in dialogue {
        let text: &[u8] = match send {
            Set(text) => text.as_bytes(),
            Query(text) | Prepare(text) => text,
            Execute => b"(execute)",
        };
        said.push_str(&format!("{}; ", text.escape_ascii()));
        match send {
            Set(_) | Query(_) => drop(query(client, COM_QUERY, text)),
            Prepare(_) => prepared = query(client, COM_STMT_PREPARE, text),
            Execute => {
                let execution = [&prepared[1..5], &[0, 1, 0, 0, 0]].concat();
                query(client, COM_STMT_EXECUTE, &execution);
            }
        }
    }
    said
}

fn check(server: SocketAddr, stage: &mut Stage, dialogues: &[&[Send]], id: &mut u64) {
    for dialogue in dialogues {
        *id += 1;
        mend(&mut stage.root, *id);
        stage.begin_anew(server, "DO 1");
        assert!(stage.page().contains(id));
        let mut direct = WireClient::login(server, &stage.login);
        let said = play(&mut direct, dialogue);
        let mut other = WireClient::login(server, &stage.login);
        for _ in 0..20 {
            assert_eq!(
                stage.page(),
                page(&mut other),
                "{said}\n{}",
                stage.proxy.log()
            );
        }
        // And from memory again.
        *id += 1;
        post(&mut other, *id);
        super::warm(&stage.proxy, &mut stage.client, CALL);
        assert_eq!(stage.page(), page(&mut other), "{said}");
    }
}

#[test]
fn what_the_server_understands_to_be_about_the_tables_is_in_the_very_next_answer() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), MADE, "");
            let mut id = 100;
            check(server.addr(), &mut stage, HOSTILE, &mut id);
            if server.kind() == ServerKind::Mariadb {
                check(server.addr(), &mut stage, HOSTILE_TO_MARIADB, &mut id);
            }
        },
    );
}

/// Statements that change no row of the tables, run by users who may run them.
const KIND: &[&str] = &[
    "ANALYZE TABLE message, follower",
    "OPTIMIZE TABLE message",
    "FLUSH TABLES message",
    "FLUSH PRIVILEGES",
    "CREATE USER somebody@localhost IDENTIFIED BY 'secret'",
    "SET PASSWORD FOR somebody@localhost = {password}",
    "GRANT SELECT ON tl.message TO somebody@localhost",
    "CREATE ROLE message",
    "GRANT message TO somebody@localhost",
    "SET DEFAULT ROLE message {to} somebody@localhost",
    "REVOKE SELECT ON tl.message FROM somebody@localhost",
    "DROP ROLE message",
    "RENAME USER somebody@localhost TO message@localhost",
    "DROP USER message@localhost",
    "CREATE VIEW seen AS SELECT * FROM message",
    "DROP VIEW seen",
    "CREATE TRIGGER noted BEFORE INSERT ON message FOR EACH ROW SET @noted = 1",
    "DROP TRIGGER noted",
    "CREATE PROCEDURE empties() TRUNCATE message",
    "DROP PROCEDURE empties",
    "CREATE TABLE aside.message (tl int, message text)",
    "ALTER TABLE aside.message ADD follower int, COMMENT 'tl.message isn\\'t here'",
    "TRUNCATE aside.message",
    "CREATE INDEX follower ON aside.message (tl)",
    "RENAME TABLE aside.message TO aside.follower",
    "DROP TABLE aside.follower",
    "CREATE TABLE notes (message int, follower int)",
    "ALTER TABLE notes DROP message, RENAME COLUMN follower TO message",
    "DROP TABLE notes",
    "CREATE SERVER message FOREIGN DATA WRAPPER mysql OPTIONS (USER 'a', PASSWORD 'secret', HOST 'h', DATABASE 'tl')",
    "DROP SERVER message",
    "ALTER DATABASE tl CHARACTER SET utf8mb4",
];

#[test]
fn memory_outlives_what_changes_no_row_of_the_tables() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let (password, to) = match server.kind() {
                ServerKind::Mariadb => ("PASSWORD('secret')", "FOR"),
                ServerKind::Mysql => ("'secret'", "TO"),
            };
            let mut stage = Stage::new(server.addr(), MADE, "");
            for statement in KIND {
                let statement = statement
                    .replace("{password}", password)
                    .replace("{to}", to);
                let answers = stage.root.query(&statement);
                assert!(
                    !answers
                        .iter()
                        .any(|answer| matches!(answer, Answer::Err(_))),
                    "{statement}"
                );
                assert!(stage.page().contains(&50), "{statement}");
            }
            // Headwater reads this after all of them.
            post(&mut stage.root, 60);
            let deadline = patience();
            super::warm(&stage.proxy, &mut stage.client, CALL);
            assert!(stage.page().contains(&60) && Instant::now() < deadline);
            let log = stage.proxy.log();
            assert!(!log.contains(EMPTIED) && !log.contains("secret"), "{log}");
        },
    );
}

/// The log shows no other user's SQL either: it names a statement that empties memory by its kind and log position.
#[test]
fn what_cannot_be_read_is_counted_and_its_text_is_not_in_the_log() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), MADE, "");
            let mut session = WireClient::login(server.addr(), &stage.login);
            session.ok("CREATE TABLE notes (a int)");
            session.ok("ALTER TABLE notes COMMENT 'secret\\', RENAME TO message -- '");
            stage
                .proxy
                .wait_for_log("nothing is answered from memory: a statement");
            let log = stage.proxy.log();
            assert!(
                log.contains("ALTER, which ends at") && !log.contains("secret"),
                "{log}"
            );
            assert_eq!(stage.proxy.counts().of("statements_unreadable"), 1);
            super::warm(&stage.proxy, &mut stage.client, CALL);
            assert!(stage.page().contains(&50));
        },
    );
}
