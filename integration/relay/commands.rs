//! Every command without parameters: the bytes of each reply are the server's.

use super::talk::{Talk, same_with_and_without};
use crate::kit::database::Database;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::{COM_INIT_DB, COM_PING, Login, capability};

/// Session trackers, query attributes, and result sets with and without EOF packets: each set of capabilities gives the same statements
/// other replies.
fn logins(database: &Database) -> Vec<Login> {
    let usual = database.login();
    vec![
        usual.clone(),
        usual.clone().without(capability::DEPRECATE_EOF),
        usual
            .clone()
            .with(capability::SESSION_TRACK | capability::CONNECT_ATTRS),
        usual
            .clone()
            .with(capability::QUERY_ATTRIBUTES | capability::SESSION_TRACK),
        usual.clone().with(capability::OPTIONAL_RESULTSET_METADATA),
        usual
            .clone()
            .with(capability::OPTIONAL_RESULTSET_METADATA)
            .without(capability::DEPRECATE_EOF),
        usual
            .clone()
            .with(capability::MARIADB_CACHE_METADATA | capability::MARIADB_PROGRESS),
        usual.without(capability::MULTI_STATEMENTS | capability::TRANSACTIONS),
    ]
}

#[test]
fn statements_of_every_kind_are_answered_in_the_servers_bytes() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_query");
        for login in logins(&database) {
            same_with_and_without(server, &login, |talk| {
                statements(talk);
                transactions(talk);
                several_results(talk);
            });
        }
    });
}

fn statements(talk: &mut Talk) {
    for sql in [
        "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, word varchar(20), UNIQUE (word))",
        "INSERT INTO t (word) VALUES ('one'), ('two'), (NULL)",
        "SELECT * FROM t",
        "SELECT * FROM t WHERE id > 1000",
        "SELECT id, word FROM t ORDER BY id LIMIT 1 /* a comment */ ; ",
        "INSERT INTO t (word) VALUES ('one')",
        "INSERT IGNORE INTO t (word) VALUES ('one'), ('far too long for such a narrow column')",
        "SHOW WARNINGS",
        "SHOW COUNT(*) ERRORS",
        "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID(), DATABASE()",
        "UPDATE t SET word = 'three' WHERE id = 2",
        "SELECT nothing FROM t",
        "SELECT (SELECT id FROM t)",
        "nonsense",
        "",
        " ",
        "/* only a comment */",
        "SELECT 1 AS `\u{e9}t\u{e9}`, _binary'\\0\\n' AS b, NULL, 1.5, 2e10, DATE'2020-02-29'",
        "SET @x := 5, NAMES latin1",
        "SELECT @x, 'caf\u{e9}'",
        "SET NAMES utf8mb4",
        "EXPLAIN SELECT * FROM t WHERE id = 1",
        "SHOW TABLES",
        "DESCRIBE t",
        "CREATE TEMPORARY TABLE tt (a int)",
        "INSERT INTO tt SELECT id FROM t",
        "SELECT COUNT(*) FROM tt",
        "LOCK TABLES t READ",
        "UPDATE t SET word = 'no'",
        "UNLOCK TABLES",
        "DO SLEEP(0)",
        "CALL no_such_procedure(1)",
        "CALL fetch_timeline_ids(1)",
        "CALL fetch_timeline_ids2(1, 'x')",
        "SELECT * FROM fetch_timeline_tt",
        "USE no_such_database",
        "DROP TABLE tt",
    ] {
        talk.query(sql);
    }
}

fn transactions(talk: &mut Talk) {
    for sql in [
        "BEGIN",
        "INSERT INTO t (word) VALUES ('in a transaction')",
        "SELECT COUNT(*) FROM t",
        "SAVEPOINT s",
        "ROLLBACK TO s",
        "ROLLBACK",
        "SET autocommit = 0",
        "SELECT COUNT(*) FROM t",
        "COMMIT AND CHAIN",
        "COMMIT",
        "SET autocommit = 1",
        "START TRANSACTION READ ONLY",
        "DELETE FROM t",
        "COMMIT",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "XA START 'x'",
        "XA END 'x'",
        "XA ROLLBACK 'x'",
    ] {
        talk.query(sql);
    }
}

fn several_results(talk: &mut Talk) {
    for sql in [
        "CREATE PROCEDURE several(IN n int) BEGIN SELECT n; SELECT id FROM t WHERE id < n; \
         UPDATE t SET word = word; SELECT 'last' AS l; END",
        "CALL several(3)",
        "SELECT 1; SELECT 2, 3; DO 4; SELECT word FROM t; INSERT INTO t (word) VALUES ('four')",
        "SELECT 1; SELECT nothing; SELECT 3",
        "CALL several(2); CALL several(1)",
        "SELECT 1;;",
        "SELECT 1; /* nothing */",
        "DROP PROCEDURE several",
        "DROP TABLE t",
    ] {
        talk.query(sql);
    }
}

#[test]
fn plain_commands_are_answered_in_the_servers_bytes() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_commands");
        database
            .connect()
            .ok("CREATE TABLE t (id int, word varchar(20) DEFAULT 'x')");
        for login in logins(&database) {
            same_with_and_without(server, &login, |talk| {
                talk.command(&[&[COM_INIT_DB], &b"information_schema"[..]].concat());
                talk.command(&[&[COM_INIT_DB], &b"no_such_database"[..]].concat());
                talk.command(&[&[COM_INIT_DB], database.name().as_bytes()].concat());
                talk.query("SELECT DATABASE()");
                talk.command(b"\x04t\0%");
                talk.command(b"\x04no_such_table\0");
                talk.command(&[COM_PING]);
                // DEBUG; SET_OPTION on, off and an invalid value; REFRESH; PROCESS_KILL of an unknown id.
                talk.command(&[0x0d]);
                talk.command(&[0x1b, 1, 0]);
                talk.command(&[0x1b, 0, 0]);
                talk.query("SELECT 1; SELECT 2");
                talk.command(&[0x1b, 9, 9]);
                talk.command(&[0x07, 0]);
                talk.command(&[0x0c, 0xff, 0xff, 0xff, 0x7f]);
                // RESET_CONNECTION keeps the database.
                talk.query("SET @x = 1");
                talk.command(&[0x1f]);
                talk.query("SELECT @x, DATABASE()");
                talk.command(&[0x0e]);
            });
        }
    });
}

/// Their text changes with each second and with the other sessions.
#[test]
fn statistics_and_processes_come_through() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_processes");
        same_with_and_without(server, &database.login(), |talk| {
            let statistics = talk.client.command(&[0x09]).unwrap();
            assert_eq!(statistics.packets.len(), 1);
            talk.heard("STATISTICS", &statistics.packets[0].payload[..8]);
            let processes = talk.client.command(&[0x0a]).unwrap();
            // The column count and the names of the first columns; MySQL no longer has the command.
            let columns = processes
                .packets
                .iter()
                .take(5)
                .flat_map(|packet| packet.payload.clone());
            talk.heard("PROCESS_INFO", &columns.collect::<Vec<_>>());
            talk.query("SELECT 'still in step'");
        });
    });
}

#[test]
fn commands_that_nobody_knows_are_the_servers_to_refuse() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_unknown");
        for command in [
            0x00, 0x05, 0x06, 0x0b, 0x0f, 0x10, 0x13, 0x14, 0x1d, 0x22, 0x99, 0xfe, 0xff,
        ] {
            same_with_and_without(server, &database.login(), |talk| {
                talk.command(&[command, 1, 2, 3]);
                talk.query("SELECT 'after it'");
            });
        }
        same_with_and_without(server, &database.login(), |talk| {
            talk.command(&[]);
            talk.query("SELECT 'behind an empty packet'");
        });
    });
}

/// COM_CLONE and COM_SUBSCRIBE_GROUP_REPLICATION_STREAM switch to other protocols.
#[test]
fn commands_that_open_a_stream_are_refused_by_the_server_too() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_streams");
        for command in [0x20, 0x21] {
            same_with_and_without(server, &database.login(), |talk| {
                talk.command(&[command]);
                talk.query("SELECT 'after it'");
                talk.query("SELECT 'and again'");
            });
        }
    });
}

#[test]
fn local_files_flow_backwards() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_infile");
        let login = database.login();
        let big: Vec<u8> = (0..60_000)
            .flat_map(|n: u32| format!("{n}\n").into_bytes())
            .collect();
        let script = |talk: &mut Talk| {
            talk.query("CREATE TABLE t (id int)");
            talk.client.infile = b"1\n2\n3\n".to_vec();
            talk.query("LOAD DATA LOCAL INFILE 'few' INTO TABLE t");
            talk.query("LOAD DATA LOCAL INFILE 'empty' INTO TABLE t");
            talk.client.infile = b"not a number\n".to_vec();
            talk.query("LOAD DATA LOCAL INFILE 'bad' INTO TABLE t");
            talk.query("LOAD DATA LOCAL INFILE 'nowhere' INTO TABLE no_such_table");
            talk.client.infile = b"4\n".to_vec();
            talk.query(
                "SELECT 1; LOAD DATA LOCAL INFILE 'amid' INTO TABLE t; SELECT COUNT(*) FROM t",
            );
            talk.client.infile.clone_from(&big);
            talk.query("LOAD DATA LOCAL INFILE 'big' INTO TABLE t");
            talk.query("SELECT COUNT(*), SUM(id) FROM t");
            talk.query("DROP TABLE t");
        };
        same_with_and_without(server, &login, script);
        same_with_and_without(server, &login.without(capability::LOCAL_FILES), |talk| {
            talk.query("LOAD DATA LOCAL INFILE 'few' INTO TABLE t");
            talk.query("SELECT 'refused'");
        });
    });
}
