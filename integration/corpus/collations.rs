//! Every collation, and every byte with which a login can name one.

use std::collections::BTreeSet;
use std::thread;

use super::player::Player;
use super::side::Side;
use crate::kit::database::Database;
use crate::kit::servers::{Server, on_each_release};
use crate::kit::wire_client::Login;

/// Charsets that clients cannot use.
const WIDE: &[&str] = &["ucs2", "utf16", "utf16le", "utf32"];

/// The id, name and charset of each collation. MariaDB's UCA 14.0.0 collations belong to several charsets and have an id with each.
fn collations(server: &Server) -> Vec<(u16, String, String)> {
    let mut root = server.connect();
    let (name, table) = match server.is_mariadb() {
        true => (
            "full_collation_name",
            "collation_character_set_applicability",
        ),
        false => ("collation_name", "collations"),
    };
    let rows = root.rows(&format!(
        "SELECT DISTINCT id, {name}, character_set_name FROM information_schema.{table} ORDER BY id, {name}"
    ));
    let collations: Vec<(u16, String, String)> = rows
        .into_iter()
        .map(|row| match <[_; 3]>::try_from(row).unwrap() {
            [Some(id), Some(name), Some(charset)] => (id.parse().unwrap(), name, charset),
            row => panic!("{row:?}"),
        })
        .collect();
    let ids: BTreeSet<u16> = collations.iter().map(|(id, ..)| *id).collect();
    let counted = format!("SELECT COUNT(DISTINCT id) FROM information_schema.{table}");
    assert_eq!(root.column(&counted), [ids.len().to_string()]);
    // The defaults of sessions and tables are among them.
    for default in ["@@collation_server", "@@collation_connection"] {
        let default = root.column(&format!("SELECT {default}")).remove(0);
        assert!(
            collations.iter().any(|(_, name, _)| *name == default),
            "{default}"
        );
    }
    collations
}

#[test]
fn a_login_with_each_byte_for_its_collation() {
    on_each_release(|server| {
        let player = Player::new(server);
        for byte in 0..=255 {
            let login = Login {
                collation: byte,
                ..Login::default()
            };
            player.try_play("a collation's byte", &login, said_in_it);
        }
        assert_eq!(player.compared().0, 256);
    });
}

#[test]
fn sessions_that_take_each_collation() {
    on_each_release(|server| {
        let database = Database::empty(server, "corpus_collations");
        let player = Player::new(server);
        let collations = collations(server);
        let least = if server.is_mariadb() { 1_200 } else { 280 };
        assert!(collations.len() > least, "{}", collations.len());
        for some in collations.chunks(64) {
            player.play("SET NAMES", &database.login(), |side| {
                for (_, name, charset) in some {
                    side.query(format!("SET NAMES {charset} COLLATE {name}"));
                    said_in_it(side);
                    // The server refuses a charset that clients cannot use, but columns can have it.
                    side.query(format!(
                        "CREATE TEMPORARY TABLE t (a char(3) CHARACTER SET {charset} COLLATE {name})"
                    ));
                    side.query("INSERT INTO t VALUES ('a'), (0x41)");
                    side.query("SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY a");
                    side.query("DROP TEMPORARY TABLE t");
                }
            });
            // COM_CHANGE_USER has two bytes for the collation.
            player.play("CHANGE_USER", &database.login(), |side| {
                for (id, _, charset) in some {
                    if !WIDE.contains(&charset.as_str()) {
                        side.change_user("root", "", *id);
                        said_in_it(side);
                    }
                }
            });
        }
        // Each refusal takes a second, so they run at the same time.
        thread::scope(|scope| {
            for wide in WIDE {
                let id = collations.iter().find(|(.., charset)| charset == wide);
                let id = id.unwrap().0;
                let (player, login) = (&player, database.login());
                scope.spawn(move || {
                    player.play("CHANGE_USER to wide letters", &login, |side| {
                        side.change_user("root", "", id);
                        said_in_it(side);
                    });
                });
            }
        });
    });
}

/// Sends bytes above 127 in a name, a value and a message, whatever they mean in the charset.
fn said_in_it(side: &mut Side) {
    side.query(
        b"SELECT 'caf\xe9', '\xc3\xa9' AS `\xc3\xa9`, _latin1'\xe9\xdf', @@collation_connection",
    );
    side.query(b"SELECT `\xe9\xe8`");
    side.query("nonsense \u{e9}\u{4e2d}\u{1f980}");
}
