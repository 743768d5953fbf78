//! A small conversation under each optional client capability.

use super::player::Player;
use super::side::Side;
use super::statements::about;
use crate::kit::database::Database;
use crate::kit::servers::on_each_release;
use crate::kit::wire_client::{COM_PING, COM_STMT_CLOSE, capability};

/// Capabilities that this client can omit, and those that it can add.
const OPTIONAL: &[(&str, u64)] = &[
    ("LONG_PASSWORD", capability::LONG_PASSWORD),
    ("FOUND_ROWS", 1 << 1),
    ("LONG_FLAG", 1 << 2),
    ("NO_SCHEMA", 1 << 4),
    ("ODBC", 1 << 6),
    ("LOCAL_FILES", capability::LOCAL_FILES),
    ("IGNORE_SPACE", 1 << 8),
    ("INTERACTIVE", 1 << 10),
    ("IGNORE_SIGPIPE", 1 << 12),
    ("TRANSACTIONS", capability::TRANSACTIONS),
    ("RESERVED", 1 << 14),
    ("MULTI_STATEMENTS", capability::MULTI_STATEMENTS),
    ("MULTI_RESULTS", capability::MULTI_RESULTS),
    ("PS_MULTI_RESULTS", capability::PS_MULTI_RESULTS),
    ("PLUGIN_AUTH", capability::PLUGIN_AUTH),
    ("CONNECT_ATTRS", capability::CONNECT_ATTRS),
    (
        "PLUGIN_AUTH_LENENC_DATA",
        capability::PLUGIN_AUTH_LENENC_DATA,
    ),
    ("CAN_HANDLE_EXPIRED_PASSWORDS", 1 << 22),
    ("SESSION_TRACK", capability::SESSION_TRACK),
    ("DEPRECATE_EOF", capability::DEPRECATE_EOF),
    (
        "OPTIONAL_RESULTSET_METADATA",
        capability::OPTIONAL_RESULTSET_METADATA,
    ),
    ("QUERY_ATTRIBUTES", capability::QUERY_ATTRIBUTES),
    ("MULTI_FACTOR_AUTHENTICATION", 1 << 28),
    ("CAPABILITY_EXTENSION", 1 << 29),
    ("SSL_VERIFY_SERVER_CERT", 1 << 30),
    ("REMEMBER_OPTIONS", 1 << 31),
    ("MARIADB_PROGRESS", capability::MARIADB_PROGRESS),
    ("MARIADB_BULK", capability::MARIADB_BULK),
    (
        "MARIADB_EXTENDED_METADATA",
        capability::MARIADB_EXTENDED_METADATA,
    ),
    ("MARIADB_CACHE_METADATA", capability::MARIADB_CACHE_METADATA),
    (
        "MARIADB_BULK_UNIT_RESULTS",
        capability::MARIADB_BULK_UNIT_RESULTS,
    ),
];

#[test]
fn each_capability_with_and_without() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_capabilities");
        let mut root = database.connect();
        root.ok("CREATE TABLE t (id int PRIMARY KEY, word varchar(9))");
        root.ok("INSERT INTO t VALUES (1, 'one'), (2, NULL)");
        root.ok("CREATE PROCEDURE several(n int) BEGIN SELECT n; SELECT * FROM t; END");
        let player = Player::new(server);
        for named in [false, true] {
            for (name, bit) in OPTIONAL {
                let mut login = database.login();
                if !named {
                    login.database = None;
                }
                login.capabilities ^= bit;
                login.attributes = vec![
                    ("_client_name".into(), "corpus".into()),
                    ("long".into(), "v".repeat(300)),
                    (String::new(), String::new()),
                ];
                let held = player.try_play(name, &login, |side| small(side, database.name()));
                assert!(held || *name == "PLUGIN_AUTH", "{name}");
            }
        }
        // All capabilities, and the minimum.
        let mut login = database.login();
        for (_, bit) in OPTIONAL {
            login.capabilities |= bit;
        }
        player.play("everything", &login, |side| small(side, database.name()));
        login.capabilities =
            capability::PROTOCOL_41 | capability::SECURE_CONNECTION | capability::PLUGIN_AUTH;
        player.play("next to nothing", &login, |side| {
            small(side, database.name())
        });
    });
}

/// Uses everything that a capability may change, and restores the state.
pub(super) fn small(side: &mut Side, database: &str) {
    side.queries(&[
        &format!("USE {database}"),
        "SELECT id, word FROM t ORDER BY id",
        "SELECT id, word FROM t WHERE id > 5",
        "SELECT COUNT (*) FROM t",
        &format!("SELECT {database}.t.id FROM {database}.t"),
        "UPDATE t SET word = 'one' WHERE id = 1",
        "SELECT 1; SELECT 2, 3; DO 1",
        "CALL several(5)",
        "CALL several(5); SELECT 'behind it'",
        "SET SESSION session_track_system_variables = 'autocommit,sql_mode,time_zone'",
        "SET SESSION session_track_state_change = 1",
        "SET SESSION session_track_transaction_info = 'CHARACTERISTICS'",
        "SET NAMES latin1",
        "USE information_schema",
        &format!("USE {database}"),
        "SET @a = 1, sql_mode = '', autocommit = 0",
        "SELECT * FROM t FOR UPDATE",
        "ROLLBACK",
        "START TRANSACTION READ ONLY",
        "UPDATE t SET id = 5",
        "COMMIT",
        "nonsense",
        "SHOW WARNINGS",
        "SELECT 1/0",
        "SELECT @@wait_timeout, FOUND_ROWS(), CONNECTION_ID() = 0",
    ]);
    let id = side.prepare("SELECT id, ? FROM t ORDER BY id");
    side.execute(id, &[Some("p")], 0);
    side.execute(id, &[None], 0);
    side.command(&about(COM_STMT_CLOSE, id, &[]));
    let id = side.prepare("CALL several(?)");
    side.execute(id, &[Some("6")], 0);
    let id = side.prepare("SELECT id FROM t ORDER BY id");
    side.execute(id, &[], 1);
    side.command(&about(0x1c, id, &[9, 0, 0, 0]));
    side.client.infile = b"3\tx\n".to_vec();
    side.query("LOAD DATA LOCAL INFILE 'any' INTO TABLE t");
    side.query("DELETE FROM t WHERE id = 3");
    side.command(b"\x04t\0");
    side.command(&[COM_PING]);
    side.command(&[0x1f]);
    side.change_user("root", database, 45);
    side.query("SELECT CURRENT_USER(), DATABASE()");
}
