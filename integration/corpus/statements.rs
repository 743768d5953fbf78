//! Prepared statements: prepare, execute, cursors, long data, bulk.

use super::player::Player;
use super::side::Side;
use crate::kit::database::Database;
use crate::kit::servers::on_each_release;
use crate::kit::wire_client::packet::put_bytes;
use crate::kit::wire_client::{
    COM_STMT_BULK_EXECUTE, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH, COM_STMT_RESET,
    COM_STMT_SEND_LONG_DATA, Login, capability,
};

const CURSOR_READ_ONLY: u8 = 1;
/// An id that no statement has.
const NOBODY: u32 = 4_000;

pub(super) fn about(command: u8, statement: u32, rest: &[u8]) -> Vec<u8> {
    [&[command], &statement.to_le_bytes()[..], rest].concat()
}

fn logins(login: &Login) -> Vec<Login> {
    let mut logins = super::commands::logins(login).to_vec();
    let metadata = login.clone().with(capability::OPTIONAL_RESULTSET_METADATA);
    logins.push(metadata.clone().without(capability::DEPRECATE_EOF));
    logins.push(metadata);
    logins.push(login.clone().with(capability::MARIADB_CACHE_METADATA));
    logins.push(login.clone().without(capability::PS_MULTI_RESULTS));
    logins
}

#[test]
fn statements_from_prepare_to_close() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_statements");
        database.connect().ok(
            "CREATE TABLE t (id int PRIMARY KEY, word text); \
             INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL); \
             CREATE PROCEDURE several(OUT n int) BEGIN SELECT 1; SELECT word FROM t; SET n = 5; END",
        );
        let player = Player::new(server);
        player.play("many parameters", &database.login(), of_many_parameters);
        for login in logins(&database.login()) {
            player.play("executions", &login, executions);
            player.play("cursors", &login, cursors);
            player.play("long data", &login, long_data);
            player.play("statements of every kind", &login, of_every_kind);
            // MySQL sets the cursor flag for rows and sends them all the same: the end of the reply cannot be known.
            for (sql, flags) in [
                ("DO 1", CURSOR_READ_ONLY),
                ("CALL several(@n)", 0),
                ("CALL several(@n)", CURSOR_READ_ONLY),
                ("SHOW TABLES", CURSOR_READ_ONLY),
                ("SELECT 1", CURSOR_READ_ONLY),
                ("SELECT 1", 2),
                ("SELECT 1", 4),
                ("SELECT 1", 8),
                ("SELECT 1", 0x80),
            ] {
                player.play("a cursor on something else", &login, |side| {
                    side.query("CALL several(@n)");
                    let id = side.prepare(sql);
                    let flags = [flags, 1, 0, 0, 0];
                    side.last_words(&about(COM_STMT_EXECUTE, id, &flags));
                });
            }
        }
    });
}

fn executions(side: &mut Side) {
    let by_id = side.prepare("SELECT id, word FROM t WHERE id >= ? ORDER BY id");
    for id in [Some("1"), Some("3"), Some("9"), None, Some("x")] {
        side.execute(by_id, &[id], 0);
    }
    // Types sent once hold until others are sent.
    side.command(&about(COM_STMT_EXECUTE, by_id, &[0, 1, 0, 0, 0, 1, 0]));
    let insert = side.prepare("INSERT INTO t VALUES (?, ?)");
    side.execute(insert, &[Some("1"), Some("again")], 0);
    side.execute(insert, &[None, None], 0);
    side.query("ALTER TABLE t COMMENT 'prepared anew'");
    side.execute(by_id, &[Some("2")], 0);
    for command in [COM_STMT_RESET, COM_STMT_EXECUTE, COM_STMT_FETCH] {
        side.command(&about(command, NOBODY, &[0, 1, 0, 0, 0]));
    }
    side.command(&about(COM_STMT_RESET, by_id, &[]));
    side.command(&about(COM_STMT_CLOSE, by_id, &[]));
    side.command(&about(COM_STMT_CLOSE, NOBODY, &[]));
    side.execute(by_id, &[Some("1")], 0);
    side.queries(&[
        "PREPARE s FROM 'SELECT word FROM t WHERE id = ?'",
        "SET @id = 2",
        "EXECUTE s USING @id",
        "EXECUTE s",
        "DEALLOCATE PREPARE s",
        "EXECUTE s USING @id",
    ]);
    // The id of MariaDB's last statement; unknown to MySQL.
    side.prepare("SELECT 'the last one'");
    side.execute(u32::MAX, &[], 0);
    side.command(&about(COM_STMT_CLOSE, u32::MAX, &[]));
    side.query("SELECT 'in step'");
}

fn of_every_kind(side: &mut Side) {
    for sql in [
        "SELECT 1",
        "SELECT ?, ? + ?, CONCAT(?, 'x')",
        "DO ?",
        "SET @a = ?",
        "CALL no_such_procedure()",
        "SHOW TABLES",
        "SHOW WARNINGS",
        "EXPLAIN SELECT 1",
        "CREATE TEMPORARY TABLE tt (a int)",
        "DROP TEMPORARY TABLE tt",
        "BEGIN",
        "COMMIT",
        "SELECT nothing",
        "nonsense",
        "",
        "SELECT 1; SELECT 2",
        "PREPARE p FROM 'SELECT 1'",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "USE information_schema",
        "SELECT * FROM t LIMIT ?",
    ] {
        let id = side.prepare(sql);
        let params = vec![Some("1"); sql.matches('?').count()];
        side.execute(id, &params, 0);
        side.command(&about(COM_STMT_CLOSE, id, &[]));
    }
}

fn of_many_parameters(side: &mut Side) {
    let many = format!("SELECT {}1", "?,".repeat(1_000));
    let id = side.prepare(&many);
    side.execute(id, &vec![Some("v"); 1_000], 0);
    side.prepare(&format!("SELECT {}1", "?,".repeat(65_535)));
    side.prepare(&format!("SELECT {}1", "?+".repeat(65_536)));
}

fn cursors(side: &mut Side) {
    let fetch = |id: u32, count: u32| about(COM_STMT_FETCH, id, &count.to_le_bytes());
    let rows = side.prepare("SELECT id, word FROM t ORDER BY id");
    side.execute(rows, &[], CURSOR_READ_ONLY);
    for count in [1, 1, 0, 1, 1, 1] {
        side.command(&fetch(rows, count));
    }
    side.execute(rows, &[], CURSOR_READ_ONLY);
    side.command(&fetch(rows, u32::MAX));
    side.command(&about(COM_STMT_RESET, rows, &[]));
    side.command(&fetch(rows, 1));
    side.execute(rows, &[], CURSOR_READ_ONLY);
    side.query("SELECT 'with a cursor open'");
    side.command(&fetch(rows, 2));
    side.command(&about(COM_STMT_CLOSE, rows, &[]));
    side.command(&fetch(rows, 1));
    let none = side.prepare("SELECT id FROM t WHERE id > ?");
    side.execute(none, &[Some("9")], CURSOR_READ_ONLY);
    side.command(&fetch(none, 5));
}

fn long_data(side: &mut Side) {
    let id = side.prepare("SELECT length(?), md5(?)");
    let named = side.client.capabilities & capability::QUERY_ATTRIBUTES != 0;
    // A parameter sent as long data has a type, but no value.
    let mut execution = about(COM_STMT_EXECUTE, id, &[0, 1, 0, 0, 0]);
    if named {
        execution.extend([2, 0, 1, 0xfc, 0, 0, 0xfc, 0, 0]);
    } else {
        execution.extend([0, 1, 0xfc, 0, 0xfc, 0]);
    }
    for piece in [&[b'a'; 100_000][..], b"", b"and the end"] {
        for param in [0, 1] {
            let body = [&[param, 0], piece].concat();
            side.command(&about(COM_STMT_SEND_LONG_DATA, id, &body));
        }
    }
    side.command(&execution);
    // The statement is used up, or the parameter does not exist: either outcome is compared.
    side.command(&about(COM_STMT_SEND_LONG_DATA, id, &[7, 0, b'x']));
    side.command(&about(COM_STMT_RESET, id, &[]));
    side.command(&about(COM_STMT_SEND_LONG_DATA, NOBODY, &[0, 0, b'x']));
    side.query("SELECT 'in step'");
}

#[test]
fn bulks() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_bulk");
        let player = Player::new(server);
        let usual = database.login();
        for login in [
            usual.clone().with(capability::MARIADB_BULK),
            usual
                .clone()
                .with(capability::MARIADB_BULK | capability::MARIADB_BULK_UNIT_RESULTS)
                .without(capability::DEPRECATE_EOF),
            usual,
        ] {
            player.play("bulks", &login, bulk);
        }
    });
}

fn bulk(side: &mut Side) {
    side.query(
        "CREATE TEMPORARY TABLE t (id int PRIMARY KEY AUTO_INCREMENT, word varchar(9) DEFAULT 'd')",
    );
    for sql in [
        "INSERT INTO t VALUES (?, ?)",
        "REPLACE INTO t VALUES (?, ?)",
        "INSERT IGNORE INTO t VALUES (?, ?)",
        "REPLACE INTO t VALUES (?, ?) RETURNING id, word",
        "DELETE FROM t WHERE id = ? AND word = ?",
        "SELECT ?, ?",
    ] {
        let id = side.prepare(sql);
        // Types are sent (128), results are requested for each row (64).
        for flags in [128_u8, 128 | 64, 0] {
            for rows in [0, 1, 2, 300_u16] {
                let mut body = vec![flags, 0];
                if flags & 128 != 0 {
                    body.extend([0xfe, 0, 0xfe, 0]);
                }
                for row in 0..rows {
                    put_value(&mut body, &format!("{}", row / 2 * 2));
                    // NULL, the default, no change, a word.
                    match row % 4 {
                        indicator @ 1..=3 => body.push(indicator as u8),
                        _ => put_value(&mut body, "word"),
                    }
                }
                side.command(&about(COM_STMT_BULK_EXECUTE, id, &body));
            }
        }
        side.command(&about(COM_STMT_CLOSE, id, &[]));
        side.query("SELECT COUNT(*), MAX(id), MIN(word) FROM t");
    }
}

fn put_value(body: &mut Vec<u8>, value: &str) {
    body.push(0);
    put_bytes(body, value.as_bytes());
}
