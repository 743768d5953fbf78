//! Sizes from none to large: rows, columns, values, packets.

use super::player::Player;
use super::side::Side;
use crate::kit::servers::on_each_release;
use crate::kit::wire_client::packet::MAX_PART;
use crate::kit::wire_client::{Login, capability};

const WITH_EOF: u64 = capability::DEPRECATE_EOF;

#[test]
fn from_no_row_to_a_hundred_thousand() {
    on_each_release(|server| {
        let player = Player::new(server);
        for login in [Login::default(), Login::default().without(WITH_EOF)] {
            // Sequence numbers wrap around at 256.
            player.play("few rows", &login, |side| {
                for count in [
                    0, 1, 2, 3, 10, 100, 250, 251, 252, 253, 254, 255, 256, 257, 511, 512, 1_000,
                ] {
                    rows(side, count);
                }
            });
            player.play("many rows", &login, |side| rows(side, 10_000));
            player.play("most rows", &login, |side| rows(side, 100_000));
        }
    });
}

/// By the text protocol, then the binary protocol.
fn rows(side: &mut Side, count: usize) {
    // MariaDB and MySQL name the recursion limit differently.
    side.query("SET cte_max_recursion_depth = 1000000");
    side.query("SET max_recursive_iterations = 1000000");
    let sql = format!(
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
         SELECT i, i * 7, 'word' FROM n WHERE i <= {count}"
    );
    let text = side.command(&side.client.query_payload(sql.as_bytes(), &[]));
    let id = side.prepare(&sql);
    let binary = side.command(&side.client.execute_payload(id, &[], 0));
    // Besides the rows: the column count, the three definitions, their terminator, and the terminator of the rows.
    let eof = usize::from(side.client.capabilities & WITH_EOF == 0);
    assert_eq!(text.packets.len(), 5 + eof + count);
    assert_eq!(binary.packets.len(), 5 + eof + count);
}

#[test]
fn from_one_column_to_more_than_there_can_be() {
    on_each_release(|server| {
        let player = Player::new(server);
        for login in [Login::default(), Login::default().without(WITH_EOF)] {
            player.play("columns", &login, |side| {
                for count in [
                    1, 2, 3, 7, 8, 9, 100, 250, 251, 252, 255, 256, 257, 1_000, 4_095, 4_096, 4_097,
                ] {
                    let columns = vec!["NULL, 1"; count / 2 + 1].join(", ");
                    let columns: Vec<&str> = columns.split(", ").take(count).collect();
                    let sql = format!("SELECT {}", columns.join(", "));
                    side.query(&sql);
                    let id = side.prepare(&sql);
                    side.execute(id, &[], 0);
                }
            });
        }
    });
}

/// Lengths at which the length prefix gets wider and a packet gets another part.
#[test]
fn values_of_every_width_of_length() {
    on_each_release(|server| {
        let player = Player::new(server);
        for login in [Login::default(), Login::default().without(WITH_EOF)] {
            player.play("values", &login, |side| {
                for length in [
                    0, 1, 249, 250, 251, 252, 253, 254, 255, 256, 257, 65_534, 65_535, 65_536,
                    65_537,
                ] {
                    let sql = format!("SELECT REPEAT('v', {length}), NULL, REPEAT('w', {length})");
                    side.query(&sql);
                    let id = side.prepare(&sql);
                    side.execute(id, &[], 0);
                    side.query(format!("SELECT LENGTH('{}')", "x".repeat(length)));
                }
            });
        }
    });
}

/// Two parts end at 16 MiB, and an empty part follows if nothing remains.
#[test]
fn packets_around_each_part() {
    on_each_release(|server| {
        let player = Player::new(server);
        let login = Login::default();
        for length in [
            MAX_PART - 2,
            MAX_PART - 1,
            MAX_PART,
            MAX_PART + 1,
            MAX_PART + 2,
            2 * MAX_PART,
        ] {
            player.play("a long row", &login, |side| {
                // The value's length prefix takes 4 bytes or 9.
                let prefix = if length - 4 < 1 << 24 { 4 } else { 9 };
                side.query(format!("SELECT REPEAT('r', {})", length - prefix));
                side.query("SELECT 'in step'");
            });
            player.play("a long row in the binary protocol", &login, |side| {
                // Two bytes precede it: the packet's first byte and the NULL bitmap.
                let prefix = if length - 6 < 1 << 24 { 4 } else { 9 };
                let id = side.prepare(&format!("SELECT REPEAT('b', {})", length - 2 - prefix));
                let reply = side.command(&side.client.execute_payload(id, &[], 0));
                let row = &reply.packets[reply.packets.len() - 2];
                assert_eq!((row.payload.len(), row.payload[0]), (length, 0));
                side.query("SELECT 'in step'");
            });
            player.play("a long statement", &login, |side| {
                let (head, tail) = (&b"\x03SELECT LENGTH('"[..], &b"')"[..]);
                let text = vec![b's'; length - head.len() - tail.len()];
                side.command(&[head, &text, tail].concat());
                side.query("SELECT 'in step'");
            });
        }
        player.play(
            "rows with an edge inside",
            &login.without(WITH_EOF),
            |side| {
                // The row's first byte equals that of an EOF; then a column's length lies across the part's edge.
                side.query(format!("SELECT REPEAT('a', {}), 'b'; SELECT 2", 1 << 24));
                side.query(format!(
                    "SELECT REPEAT('a', {}), REPEAT('b', 70000)",
                    MAX_PART - 6
                ));
                let id = side.prepare("SELECT ?, LENGTH(?)");
                let long = "p".repeat(MAX_PART - 20);
                side.execute(id, &[Some("1"), Some(&long)], 0);
            },
        );
    });
}
