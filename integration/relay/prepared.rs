//! Prepared statements: prepare, execute, cursors, long data, bulk.

use std::io::Read;

use super::talk::{Talk, same_with_and_without};
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::{
    COM_PING, COM_QUIT, COM_STMT_BULK_EXECUTE, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH,
    COM_STMT_PREPARE, COM_STMT_RESET, COM_STMT_SEND_LONG_DATA, Login, WireClient, capability,
};

const CURSOR_READ_ONLY: u8 = 1;

#[test]
fn prepared_statements_are_answered_in_the_servers_bytes() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_prepared");
        database
            .connect()
            .ok("CREATE TABLE t (id int PRIMARY KEY, word text); \
             INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL); \
             CREATE PROCEDURE several() BEGIN SELECT 1; SELECT word FROM t; END");
        let usual = database.login();
        for login in [
            usual.clone(),
            usual.clone().without(capability::DEPRECATE_EOF),
            usual
                .clone()
                .with(capability::QUERY_ATTRIBUTES | capability::SESSION_TRACK),
            usual.clone().with(capability::OPTIONAL_RESULTSET_METADATA),
            usual.with(capability::MARIADB_CACHE_METADATA),
        ] {
            same_with_and_without(server, &login, |talk| {
                executions(talk);
                cursors(talk);
                long_data(talk);
                long_data_in_pieces(talk);
            });
        }
    });
}

fn prepare(talk: &mut Talk, sql: &str) -> u32 {
    let payload = [&[COM_STMT_PREPARE], sql.as_bytes()].concat();
    let reply = talk.client.command(&payload).unwrap();
    talk.heard(sql, &reply.raw);
    let head = &reply.packets[0].payload;
    if head[0] == 0 {
        u32::from_le_bytes([head[1], head[2], head[3], head[4]])
    } else {
        u32::MAX
    }
}

fn execute(talk: &mut Talk, statement: u32, params: &[Option<&str>], cursor: u8) {
    let payload = talk.client.execute_payload(statement, params, cursor);
    talk.command(&payload);
}

fn about(command: u8, statement: u32, rest: &[u8]) -> Vec<u8> {
    [&[command], &statement.to_le_bytes()[..], rest].concat()
}

fn executions(talk: &mut Talk) {
    let by_id = prepare(talk, "SELECT id, word FROM t WHERE id >= ? ORDER BY id");
    for id in [Some("1"), Some("3"), Some("9"), None] {
        execute(talk, by_id, &[id], 0);
    }
    let insert = prepare(talk, "INSERT INTO t VALUES (?, ?)");
    execute(talk, insert, &[Some("1"), Some("again")], 0);
    prepare(talk, "SELECT nothing FROM t");
    prepare(talk, "SELECT ? + ?, ?");
    let none = prepare(talk, "DO 1");
    execute(talk, none, &[], 0);
    let several = prepare(talk, "CALL several()");
    execute(talk, several, &[], 0);
    talk.command(&about(COM_STMT_RESET, by_id, &[]));
    talk.command(&about(COM_STMT_RESET, 4_000, &[]));
    talk.command(&about(COM_STMT_CLOSE, by_id, &[]));
    talk.command(&about(COM_STMT_CLOSE, 4_000, &[]));
    execute(talk, by_id, &[Some("1")], 0);
    talk.query("PREPARE s FROM 'SELECT word FROM t WHERE id = ?'");
    talk.query("SET @id = 2");
    talk.query("EXECUTE s USING @id");
    talk.query("DEALLOCATE PREPARE s");
}

fn cursors(talk: &mut Talk) {
    let rows = prepare(talk, "SELECT id, word FROM t ORDER BY id");
    execute(talk, rows, &[], CURSOR_READ_ONLY);
    for count in [1_u32, 1, 1, 1] {
        talk.command(&about(COM_STMT_FETCH, rows, &count.to_le_bytes()));
    }
    execute(talk, rows, &[], CURSOR_READ_ONLY);
    talk.command(&about(COM_STMT_FETCH, rows, &100_u32.to_le_bytes()));
    talk.command(&about(COM_STMT_RESET, rows, &[]));
    talk.command(&about(COM_STMT_FETCH, rows, &1_u32.to_le_bytes()));
    talk.command(&about(COM_STMT_FETCH, 4_000, &1_u32.to_le_bytes()));
    talk.command(&about(COM_STMT_CLOSE, rows, &[]));
}

fn long_data(talk: &mut Talk) {
    let insert = prepare(talk, "SELECT length(?), 'long'");
    for piece in [&[b'a'; 100_000][..], b"", b"and the end"] {
        let payload = about(COM_STMT_SEND_LONG_DATA, insert, &[&[0, 0], piece].concat());
        talk.command(&payload);
    }
    let execution = execution_of_long_data(talk, insert);
    talk.command(&execution);
    // The parameter does not exist: an error, but no reply to the command itself.
    talk.command(&about(COM_STMT_SEND_LONG_DATA, insert, &[7, 0, b'x']));
    talk.command(&about(COM_STMT_RESET, insert, &[]));
}

/// All commands in one write, as drivers send them.
fn long_data_in_pieces(talk: &mut Talk) {
    use std::io::Write;
    let statement = prepare(talk, "SELECT md5(?)");
    let mut bytes = Vec::new();
    for piece in 0..50_u8 {
        let payload = about(
            COM_STMT_SEND_LONG_DATA,
            statement,
            &[&[0, 0], &[piece; 999][..]].concat(),
        );
        bytes.extend(crate::kit::wire_client::packet::encode(0, &payload));
    }
    let execution = execution_of_long_data(talk, statement);
    bytes.extend(crate::kit::wire_client::packet::encode(0, &execution));
    talk.client.stream.write_all(&bytes).unwrap();
    let reply = talk.client.reply(COM_STMT_EXECUTE).unwrap();
    talk.heard("pieces and execution in one write", &reply.raw);
}

/// A parameter sent as long data has a type, but no value.
fn execution_of_long_data(talk: &Talk, statement: u32) -> Vec<u8> {
    let named = talk.client.capabilities & capability::QUERY_ATTRIBUTES != 0;
    let (count, name): (&[u8], &[u8]) = if named { (&[1], &[0]) } else { (&[], &[]) };
    about(
        COM_STMT_EXECUTE,
        statement,
        &[&[0, 1, 0, 0, 0], count, &[0, 1, 0xfc, 0], name].concat(),
    )
}

#[test]
fn bulk_execution_is_relayed_where_there_is_one() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_bulk");
        let login: Login = database.login().with(capability::MARIADB_BULK);
        same_with_and_without(server, &login, |talk| {
            talk.query("CREATE TABLE t (id int PRIMARY KEY, word text)");
            for sql in [
                "INSERT INTO t VALUES (?, ?)",
                "REPLACE INTO t VALUES (?, ?)",
            ] {
                let statement = prepare(talk, sql);
                talk.command(&bulk(statement));
            }
            if server.is_mariadb() {
                let statement = prepare(talk, "REPLACE INTO t VALUES (?, ?) RETURNING id, word");
                talk.command(&bulk(statement));
            }
            talk.query("SELECT * FROM t");
            talk.query("DROP TABLE t");
        });
    });
}

/// Two rows of two strings, one of which is NULL.
fn bulk(statement: u32) -> Vec<u8> {
    // Types are sent (128): both are strings.
    let types = [128, 0, 0xfe, 0, 0xfe, 0];
    let rows = b"\0\x011\0\x03one\0\x012\x01";
    about(
        COM_STMT_BULK_EXECUTE,
        statement,
        &[&types[..], rows].concat(),
    )
}

/// A procedure's OUT values are another result set, and MySQL marks it as if a cursor were open.
#[test]
fn a_procedure_that_gives_values_back_does_not_put_the_session_out_of_step() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_values");
        database.connect().ok(
            "CREATE PROCEDURE gives(OUT a int, INOUT b text) BEGIN \
             DECLARE c CURSOR FOR SELECT 1; OPEN c; SELECT 5 INTO a; SET b = 'x'; SELECT 1; CLOSE c; END; \
             CREATE PROCEDURE plainly(OUT a int) SET a = 5",
        );
        let proxy = Proxy::start(server.addr(), &[]);
        for login in [
            database.login(),
            database.login().without(capability::DEPRECATE_EOF),
        ] {
            for (call, params) in [
                ("CALL gives(?, ?)", &[None, Some("y")][..]),
                ("CALL plainly(?)", &[None]),
            ] {
                for cursor in [0, CURSOR_READ_ONLY] {
                    let [direct, through] = [server.addr(), proxy.addr()].map(|addr| {
                        let mut client = WireClient::login(addr, &login);
                        let statement = client.prepare(call);
                        let execute = client.execute_payload(statement, params, cursor);
                        client.send(&execute).unwrap();
                        client.send(&[COM_PING]).unwrap();
                        // A call that may be served waits for the replies before it.
                        let payload = client.query_payload(b"CALL fetch_timeline_ids(1)", &[]);
                        client.send(&payload).unwrap();
                        client.send(&[COM_QUIT]).unwrap();
                        let mut told = Vec::new();
                        let _ = client.stream.read_to_end(&mut told);
                        told
                    });
                    assert!(direct.len() > 50, "{call} {direct:02x?}");
                    assert_eq!(direct, through, "{call} {cursor}");
                }
            }
        }
    });
}
