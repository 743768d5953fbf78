//! Malformed command bodies: the server judges each, and its reply passes through.

use super::player::Player;
use super::side::Side;
use crate::kit::database::Database;
use crate::kit::servers::on_each_release;
use crate::kit::wire_client::{Login, capability};

/// Invalid lengths, unknown ids, bytes that end too early or lack a terminator.
const BODIES: &[&[u8]] = &[
    b"",
    b"\0",
    b"\x01",
    b"\x01\0",
    b"\x01\0\0",
    b"\x01\0\0\0",
    b"\x01\0\0\0\0",
    b"\x01\0\0\0\0\x01\0\0\0",
    b"\x01\0\0\0\0\x01\0\0\0\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x63\0\0\0\x01\x01\0\0\0\0\x01\x03\0",
    b"no NUL anywhere in it",
    &[0; 300],
    &[0xfe; 70_000],
];

/// All commands that take a body, or might, except those whose bytes would kill other sessions or reset the server's log.
const COMMANDS: &[u8] = &[
    0x02, 0x03, 0x04, 0x09, 0x0d, 0x0e, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1f, 0xfa,
];

/// Sends one command and closes the client's half: a reply of any length, or none, is read to its end.
#[test]
fn bodies_that_are_none() {
    on_each_release(|server| {
        let player = Player::new(server);
        for &command in COMMANDS {
            for body in BODIES {
                // The reply's text consists of numbers.
                if command == 0x09 {
                    continue;
                }
                player.play("a malformed body", &Login::default(), |side| {
                    side.last_words(&[&[command], *body].concat());
                });
            }
        }
    });
}

/// The same bodies in a session that has a statement with that id.
#[test]
fn executions_that_are_none() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_malformed");
        let player = Player::new(server);
        let login = database.login().with(capability::MARIADB_BULK);
        for command in [0x17, 0x18, 0x19, 0x1a, 0x1c, 0xfa] {
            for (number, body) in BODIES.iter().enumerate() {
                // MySQL reads past the end of a short body, into bytes of earlier packets.
                if !server.is_mariadb() && command == 0x17 && (5..9).contains(&number) {
                    continue;
                }
                player.play("a malformed execution", &login, |side| {
                    side.prepare("SELECT ?, ?");
                    side.last_words(&[&[command], *body].concat());
                });
            }
        }
    });
}

#[test]
fn query_attributes_that_are_none() {
    on_each_release(|server| {
        let player = Player::new(server);
        let login = Login::default().with(capability::QUERY_ATTRIBUTES);
        for body in [
            &b"SELECT 1"[..],
            b"\0\x01SELECT 1",
            b"\0\x02SELECT 1",
            b"\x01\x01\0\x01\xfe\0\x01n\x01vSELECT 1",
            b"\x01\x01\x01\x01\xfe\0\x01nSELECT 1",
            b"\x01\x01\0\0SELECT 1",
            b"\x01\x01\0\x01\x03\0\x02id\x05\0\0\0SELECT mysql_query_attribute_string('id')",
            b"\xff",
            b"",
        ] {
            player.play("query attributes", &login, |side| {
                side.last_words(&[&[0x03], body].concat());
            });
        }
        player.play("query attributes by name", &login, |side: &mut Side| {
            for (sql, attributes) in [
                ("SELECT 1", &[][..]),
                ("SELECT 2", &[("traceparent", "00-4bf9"), ("empty", "")]),
                ("nonsense", &[("n", "v")]),
                ("SELECT 3; SELECT 4", &[("n", "v")]),
                ("", &[("n", "v")]),
            ] {
                let payload = side.client.query_payload(sql.as_bytes(), attributes);
                side.command(&payload);
            }
        });
    });
}
