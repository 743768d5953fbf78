//! Errors of every kind in every position, and warnings and notes of successful statements.

use super::player::Player;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::{full, on_each_release, on_servers_of_its_own};
use crate::kit::wire_client::Login;

const TABLES: &[&str] = &[
    "CREATE TEMPORARY TABLE t (id int AUTO_INCREMENT PRIMARY KEY, word varchar(5) NOT NULL UNIQUE, n tinyint CHECK (n < 100))",
    "INSERT INTO t (word, n) VALUES ('one', 1), ('two', 2), ('three', 3)",
    "CREATE TEMPORARY TABLE u SELECT id FROM t",
];

const FAILURES: &[&str] = &[
    "nonsense",
    "SELECT",
    "SELECT 'open",
    "SELECT nothing FROM t",
    "SELECT id FROM t, u",
    "SELECT * FROM no_such_table",
    "SELECT * FROM no_such_database.t",
    "SELECT no_such_function(1)",
    "CALL no_such_procedure()",
    "INSERT INTO t (word) VALUES ('one')",
    "INSERT INTO t (word) VALUES (NULL)",
    "INSERT INTO t (word) VALUES ('far too long')",
    "INSERT INTO t (word, n) VALUES ('n', 1000)",
    "INSERT INTO t (word, n) VALUES ('n', 120)",
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t (word, n) VALUES ('four', 4), ('five', 5), ('one', 1)",
    "UPDATE t SET word = 'one'",
    "SELECT (SELECT id FROM t)",
    "SELECT 1 FROM t WHERE id = (SELECT id FROM u)",
    "SELECT id, (SELECT 1 UNION SELECT id) FROM t",
    "SELECT 1 + (SELECT word, id FROM t)",
    "SELECT COUNT(*), id FROM t",
    "SELECT 18446744073709551615 + 1",
    "SELECT CAST(-1 AS UNSIGNED) * 2",
    "SELECT ST_GeomFromText('no geometry')",
    "SELECT JSON_EXTRACT('{', '$')",
    "SELECT 'x' REGEXP '('",
    "SELECT _utf8mb4'\\xff' COLLATE latin1_bin",
    "SELECT CONVERT('x' USING no_such_charset)",
    "SET no_such_variable = 1",
    "SET GLOBAL version = 1",
    "SET autocommit = 7",
    "SET NAMES no_such_charset",
    "USE no_such_database",
    "KILL 999999999",
    "DROP TABLE no_such_table",
    "CREATE TABLE mysql.user (id int)",
    "CREATE DATABASE information_schema",
    "CREATE USER root@localhost",
    "GRANT SELECT ON *.* TO hw_no_such_user@'%'",
    "LOCK TABLES no_such_table READ",
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'of the app''s own', MYSQL_ERRNO = 5555",
    "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'a warning of its own'",
    "RESIGNAL",
    "COMMIT RELEASE AND CHAIN",
    "XA COMMIT 'nobody'",
    "EXECUTE nothing",
    "LOAD DATA INFILE '/no/such/file' INTO TABLE t",
    "SELECT 1 INTO OUTFILE '/no/such/folder/file'",
    "SELECT 1; nonsense; SELECT 3",
    "SELECT 1; SELECT nothing; SELECT 3",
    "DO 1; INSERT INTO t (word) VALUES ('one'); DO 2",
    "INSERT INTO t (word) SELECT * FROM (SELECT 'ten' UNION ALL SELECT 'one') AS x",
];

const SUCCESSES: &[&str] = &[
    "UPDATE t SET n = n",
    "UPDATE t SET n = n + 1 WHERE id > 1",
    "INSERT IGNORE INTO t (word) VALUES ('one'), ('long word')",
    "INSERT INTO t (word) VALUES ('one') ON DUPLICATE KEY UPDATE n = 50",
    "REPLACE INTO t (id, word) VALUES (1, 'one'), (9, 'nine')",
    "DELETE FROM t WHERE id = 9",
    "ALTER TABLE u ADD COLUMN x int",
    "DROP TABLE IF EXISTS no_such_table",
    "SELECT 1 / 0, CAST('x' AS SIGNED), CAST('2020-13-45' AS DATE)",
    "SELECT LAST_INSERT_ID(77)",
    "DO LAST_INSERT_ID(78)",
    "TRUNCATE u",
    "CHECK TABLE t",
    "ANALYZE TABLE no_such_table",
];

#[test]
fn errors_and_warnings_in_each_language() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_errors");
        let player = Player::new(server);
        for language in ["en_US", "de_DE", "ja_JP", "ru_RU", "fr_FR", "no_SUCH"] {
            for charset in ["utf8mb4", "latin1"] {
                player.play(language, &database.login(), |side| {
                    side.query(format!("SET NAMES {charset}"));
                    side.query(format!("SET lc_messages = '{language}'"));
                    side.queries(TABLES);
                    for sql in FAILURES.iter().chain(SUCCESSES) {
                        side.query(sql);
                        side.query("SHOW WARNINGS");
                    }
                    side.query("GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT");
                    side.query("SELECT @m, ROW_COUNT(), @@warning_count, @@error_count");
                });
            }
        }
        player.play("names of any length", &database.login(), |side| {
            for length in [63, 64, 65, 255, 256, 512, 600, 10_000] {
                let name = "n".repeat(length);
                side.query(format!("SELECT 1 AS {name}"));
                side.query(format!("SELECT {name}"));
                side.query(format!("SELECT * FROM {name}"));
                side.query(format!("CREATE TEMPORARY TABLE {name} ({name} int)"));
                side.query(format!("USE {name}"));
                side.query(format!("{name} is no statement"));
            }
        });
    });
}

/// Rows and then an error in place of more rows; the statements after it do not run.
#[test]
fn errors_in_the_middle_of_rows() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_rows_error");
        let player = Player::new(server);
        for login in super::commands::logins(&database.login()) {
            player.play("rows and an error", &login, |side| {
                side.queries(TABLES);
                for sql in [
                    "SELECT id, (SELECT x.id FROM u AS x WHERE x.id >= t.id OR t.id < 3 LIMIT 1) FROM t",
                    "SELECT id, 1 + (SELECT x.i FROM (SELECT 2 AS i UNION ALL SELECT 3) AS x WHERE x.i >= t.id) FROM t ORDER BY id DESC",
                    "SELECT id, EXP(id * 400) FROM t ORDER BY id",
                    "SELECT 1; SELECT id, EXP(id * 400) FROM t ORDER BY id; SELECT 3",
                ] {
                    side.query(sql);
                    let id = side.prepare(sql);
                    side.execute(id, &[], 0);
                }
                side.query("SELECT 'in step'");
            });
        }
    });
}

#[test]
fn waits_for_locks_that_end() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_locks");
        let mut other = database.connect();
        other.ok("CREATE TABLE t (id int PRIMARY KEY) ENGINE = InnoDB");
        other.ok("INSERT INTO t VALUES (1), (2)");
        other.ok("BEGIN");
        other.ok("UPDATE t SET id = 11 WHERE id = 1");
        let player = Player::new(server);
        player.play("locks", &database.login(), |side| {
            side.queries(&[
                "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
                "BEGIN",
                "UPDATE t SET id = 12 WHERE id = 2",
                "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT",
                "SELECT * FROM t WHERE id > 0 FOR UPDATE SKIP LOCKED",
                "UPDATE t SET id = 12 WHERE id = 1",
                "SELECT GET_LOCK('corpus', 0)",
                "ROLLBACK",
                "SELECT id FROM t",
            ]);
        });
        other.ok("ROLLBACK");
    });
}

/// The server refuses the connection before authentication.
#[test]
fn a_server_that_is_full_or_takes_no_strangers() {
    on_servers_of_its_own(
        |_| &["--max-connections=3"],
        |server| {
            let proxy = Proxy::start(server.addr(), &["--tls-self-signed"]);
            let player = Player::with(server.addr(), proxy);
            let (_guests, _) = full(server.addr());
            assert!(!player.try_play("no place", &Login::default(), |_| {}));
        },
    );
}
