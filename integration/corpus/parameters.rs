//! Parameters of every type that a client can send in the binary protocol.

use super::player::Player;
use super::side::Side;
use super::statements::about;
use crate::kit::servers::on_each_release;
use crate::kit::wire_client::packet::put_bytes;
use crate::kit::wire_client::{COM_STMT_EXECUTE, Login, capability};

#[test]
fn parameters_of_every_type() {
    on_each_release(|server| {
        let player = Player::new(server);
        for login in [
            Login::default(),
            Login::default().without(capability::DEPRECATE_EOF),
            Login::default().with(capability::QUERY_ATTRIBUTES),
        ] {
            for kind in (0..=0x14).chain(0xf2..=0xff) {
                player.play("a parameter", &login, |side| parameter(side, kind));
            }
        }
    });
}

fn parameter(side: &mut Side, kind: u8) {
    let named = side.client.capabilities & capability::QUERY_ATTRIBUTES != 0;
    for unsigned in [0, 0x80] {
        for value in values(kind) {
            let id = side.prepare("SELECT ?");
            let mut payload = about(COM_STMT_EXECUTE, id, &[0, 1, 0, 0, 0]);
            if named {
                payload.push(1);
            }
            payload.extend([u8::from(value.is_none()), 1, kind, unsigned]);
            if named {
                payload.push(0);
            }
            payload.extend(value.unwrap_or_default());
            side.command(&payload);
        }
    }
}

/// Values of the type's width; `None` is NULL.
fn values(kind: u8) -> Vec<Option<Vec<u8>>> {
    let fixed = |width: usize| {
        [0x00, 0x7f, 0x80, 0xff, 0x3f]
            .map(|byte| Some(vec![byte; width]))
            .to_vec()
    };
    let dates: &[&[u8]] = &[
        b"\0",
        b"\x04\xe4\x07\x02\x1d",
        b"\x07\xe4\x07\x02\x1d\x17\x3b\x3b",
        b"\x0b\xe4\x07\x02\x1d\x17\x3b\x3b\x3f\x42\x0f\0",
        b"\x04\xff\xff\x0d\x20",
    ];
    let times: &[&[u8]] = &[
        b"\0",
        b"\x08\x01\x22\0\0\0\x16\x3b\x3b",
        b"\x0c\0\x01\0\0\0\x01\x02\x03\x3f\x42\x0f\0",
    ];
    let owned = |values: &[&[u8]]| values.iter().map(|value| Some(value.to_vec())).collect();
    let mut values = match kind {
        1 => fixed(1),
        2 | 13 => fixed(2),
        3 | 4 | 9 => fixed(4),
        5 | 8 => fixed(8),
        7 | 10 | 12 | 14 | 17 | 18 => owned(dates),
        11 | 19 => owned(times),
        6 => Vec::new(),
        _ => [
            &b""[..],
            b"1.5",
            b"-99999999999999999999.5",
            b"\xff\x00bytes",
            &[b'x'; 300],
        ]
        .map(|bytes| {
            let mut value = Vec::new();
            put_bytes(&mut value, bytes);
            Some(value)
        })
        .to_vec(),
    };
    values.push(None);
    values
}
