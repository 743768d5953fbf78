//! Legs that differ: the numbers that each side receives, however the bytes are cut.

use super::*;
use crate::compression_frames::{ClientCompression, ServerCompression};

const ZLIB: u32 = 1 << 5;
const ZSTD: u32 = 1 << 26;
const LOCAL: &str = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t";

const SERVER_ALONE: CompressionPolicy = CompressionPolicy {
    clients: ClientCompression::Mirror,
    server: ServerCompression::WhereOffered,
};
const CLIENT_ALONE: CompressionPolicy = CompressionPolicy {
    clients: ClientCompression::Mirror,
    server: ServerCompression::Never,
};

fn world(compression: CompressionPolicy) -> MachineHarness {
    let mut world = MachineHarness::new();
    let ways = SessionPolicy {
        compression,
        ..WAYS
    };
    world.machine = SessionMachine::new(LIMITS, ways);
    world.server_sends(&encoded(0, &greeting()));
    world
}

fn logged_in(compression: CompressionPolicy, flags: u32) -> MachineHarness {
    let mut world = world(compression);
    let mut login = login(LOGIN_FLAGS | flags);
    if flags & ZSTD != 0 {
        login.push(7);
    }
    world.client_sends(&encoded(1, &login));
    world.server_sends(&encoded(2, OK));
    world.to_client.clear();
    world.to_server.clear();
    world
}

/// The numbers of the packets in these bytes, which are then forgotten.
fn numbers(bytes: &mut Vec<u8>) -> Vec<u8> {
    let (mut numbers, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let header = packet::PacketHeader::parse(&bytes[at..]).unwrap();
        numbers.push(header.seq);
        at += HEADER_BYTES + header.len;
    }
    bytes.clear();
    numbers
}

use headwater_wire::packet;

/// One round: the bytes sent, and their numbers after renumbering.
struct DialogueRound<'a> {
    client: Vec<u8>,
    server: Vec<u8>,
    to_server: &'a [u8],
    to_client: &'a [u8],
}

fn hold(compression: CompressionPolicy, flags: u32, turns: &[DialogueRound<'_>]) {
    for size in [1, 2, 3, 4, 5, 7, 11, 50, 1 << 20] {
        let mut world = logged_in(compression, flags);
        for (number, turn) in turns.iter().enumerate() {
            for piece in turn.client.chunks(size) {
                world.client_sends(piece);
            }
            for piece in turn.server.chunks(size) {
                world.server_sends(piece);
            }
            let what = format!("turn {number} in pieces of {size}");
            assert_eq!(world.to_server.len(), turn.client.len(), "{what}");
            assert_eq!(world.to_client.len(), turn.server.len(), "{what}");
            assert_eq!(numbers(&mut world.to_server), turn.to_server, "{what}");
            assert_eq!(numbers(&mut world.to_client), turn.to_client, "{what}");
        }
        assert!(world.machine.is_at_rest());
    }
}

fn packets(numbers: &[u8], payload: &[u8]) -> Vec<u8> {
    let packets = numbers.iter().map(|seq| encoded(*seq, payload));
    packets.collect::<Vec<_>>().concat()
}

#[test]
fn a_plain_client_receives_consecutive_numbers() {
    let more = b"\0\0\0\x0a\0\0\0";
    let file = [encoded(2, b"1\n2\n"), encoded(3, b"")].concat();
    hold(
        SERVER_ALONE,
        0,
        &[
            DialogueRound {
                client: query("SELECT a FROM t"),
                server: rows(),
                to_server: &[0],
                to_client: &[1, 2, 3, 4],
            },
            // Two results, the second counted from the number of frames.
            DialogueRound {
                client: query("DO 1; SELECT a FROM t"),
                server: [encoded(1, more), rows()].concat(),
                to_server: &[0],
                to_client: &[1, 2, 3, 4, 5],
            },
            // Three commands at once, and their replies.
            DialogueRound {
                client: [query("DO 1"), encoded(0, b"\x0e"), query("SELECT a FROM t")].concat(),
                server: [encoded(9, OK), encoded(0, OK), rows()].concat(),
                to_server: &[0, 0, 0],
                to_client: &[1, 1, 1, 2, 3, 4],
            },
            DialogueRound {
                client: query(LOCAL),
                server: encoded(200, b"\xfbx"),
                to_server: &[0],
                to_client: &[1],
            },
            DialogueRound {
                client: file,
                server: encoded(3, OK),
                to_server: &[1, 2],
                to_client: &[4],
            },
            DialogueRound {
                client: encoded(0, b"\x11bob\0\0tl\0"),
                server: encoded(7, b"\xfemysql_native_password\0scramblescramblescra\0"),
                to_server: &[0],
                to_client: &[1],
            },
            DialogueRound {
                client: encoded(2, &[3; 20]),
                server: encoded(9, OK),
                to_server: &[1],
                to_client: &[3],
            },
            // Without a command: nothing was flushed since, so the server's number is the packet's.
            DialogueRound {
                client: Vec::new(),
                server: encoded(0, ERR),
                to_server: &[],
                to_client: &[0],
            },
        ],
    );
}

#[test]
fn a_plain_server_receives_consecutive_numbers() {
    let file = [encoded(9, b"1\n2\n"), encoded(0, b""), query("DO 2")].concat();
    hold(
        CLIENT_ALONE,
        ZLIB,
        &[
            // Neither side checks the numbers of packets in frames: a command may have any.
            DialogueRound {
                client: [encoded(5, b"\x03DO 1"), encoded(0, b"\x0e")].concat(),
                server: [encoded(1, OK), encoded(1, OK)].concat(),
                to_server: &[0, 0],
                to_client: &[1, 1],
            },
            DialogueRound {
                client: query(LOCAL),
                server: encoded(1, b"\xfbx"),
                to_server: &[0],
                to_client: &[1],
            },
            DialogueRound {
                client: file,
                server: [encoded(4, OK), encoded(1, OK)].concat(),
                to_server: &[2, 3, 0],
                to_client: &[4, 1],
            },
            DialogueRound {
                client: encoded(0, b"\x11bob\0\0tl\0"),
                server: encoded(1, b"\xfemysql_native_password\0scramblescramblescra\0"),
                to_server: &[0],
                to_client: &[1],
            },
            DialogueRound {
                client: encoded(77, &[3; 20]),
                server: encoded(3, OK),
                to_server: &[2],
                to_client: &[3],
            },
        ],
    );
}

#[test]
fn a_command_of_three_parts_is_answered_with_the_number_after_them() {
    for (compression, flags, said) in [
        (SERVER_ALONE, 0, [0, 1, 2]),
        (CLIENT_ALONE, ZLIB, [0, 7, 7]),
    ] {
        for size in [1 << 16, packet::MAX_BODY + 6, 1 << 30] {
            let mut world = logged_in(compression, flags);
            let mut command = Vec::new();
            encode(0, &vec![3; packet::MAX_BODY * 2 + 9], &mut command);
            for (part, seq) in said.iter().enumerate() {
                command[part * (HEADER_BYTES + packet::MAX_BODY) + 3] = *seq;
            }
            // A command before it, and one after.
            let both = [query("DO 1"), command, query("DO 2")].concat();
            for piece in both.chunks(size) {
                world.client_sends(piece);
            }
            assert_eq!(numbers(&mut world.to_server), [0, 0, 1, 2, 0]);
            world.server_sends(&packets(&[1, 3, 1], OK));
            assert_eq!(numbers(&mut world.to_client), [1, 3, 1]);
        }
    }
}

#[test]
fn the_login_for_the_server_has_its_legs_compression() {
    let ways = |login: &[u8]| {
        let flags = u32::from_le_bytes(*login[HEADER_BYTES..].first_chunk().unwrap());
        flags & (ZLIB | ZSTD)
    };
    let offer = ClientCompression::Offer;
    for (clients, server, asked, sent, frames) in [
        (offer, ServerCompression::Mirror, ZLIB, ZLIB, (true, true)),
        (offer, ServerCompression::Never, ZSTD, 0, (true, false)),
        (
            offer,
            ServerCompression::WhereOffered,
            0,
            ZLIB,
            (false, true),
        ),
        (
            ClientCompression::Never,
            ServerCompression::Mirror,
            ZLIB,
            0,
            (false, false),
        ),
    ] {
        let mut world = world(CompressionPolicy { clients, server });
        let mut login = login(LOGIN_FLAGS | asked);
        if asked & ZSTD != 0 {
            login.push(7);
        }
        world.client_sends(&encoded(1, &login));
        assert_eq!(ways(&world.to_server), sent, "{server:?}");
        let sent_whole = packet::complete_payload(&world.to_server).unwrap();
        assert_eq!(sent_whole.len() + HEADER_BYTES, world.to_server.len());
        world.server_sends(&encoded(2, OK));
        let agreed = world
            .machine
            .take_compression_frames()
            .unwrap_or(CompressionFrames::NONE);
        let (client, server) = (agreed.client.is_some(), agreed.server.is_some());
        assert_eq!((client, server), frames);
    }
}

/// Commands sent before the login has ended may or may not be in frames: they wait.
#[test]
fn commands_sent_ahead_wait_until_the_login_has_ended() {
    let mut world = world(SERVER_ALONE);
    let ahead = [encoded(1, &login(LOGIN_FLAGS)), query("SELECT a FROM t")].concat();
    world.client_sends(&ahead);
    assert_eq!(numbers(&mut world.to_server), [1]);
    world.server_sends(&encoded(2, OK));
    assert_eq!(numbers(&mut world.to_server), [0]);
    assert!(world.machine.commands().is_some());
}

#[test]
fn a_binary_log_is_relayed_and_other_unfollowable_replies_are_refused() {
    let dump = b"\x12\x04\0\0\0\0\0\x01\0\0\0binlog.000001";
    for (compression, flags, heard) in [
        (SERVER_ALONE, 0, [1, 2, 3]),
        (CLIENT_ALONE, ZLIB, [1, 5, 0]),
    ] {
        let mut world = logged_in(compression, flags);
        world.client_sends(&encoded(0, dump));
        world.server_sends(&packets(&[1, 5, 0], b"\0\0\0\0\0event"));
        assert_eq!(numbers(&mut world.to_client), heard);
        assert!(world.machine.commands().is_none());

        let mut world = logged_in(compression, flags);
        world.client_sends(&encoded(0, b"\x20clone"));
        let step = world.machine.server(&encoded(1, OK));
        let ServerStep::Refuse(error) = step else {
            panic!("{step:?}");
        };
        let text = String::from_utf8_lossy(&error);
        assert_eq!(error[3], 1);
        assert!(text.contains("compression.server"), "{text}");
    }
}

/// A client that was offered other algorithms than the server's, and whose login cannot be read, would not be understood.
#[test]
fn a_login_that_cannot_be_read_is_refused_where_it_asks_for_frames() {
    for (flags, refused) in [(ZLIB, true), (0, false)] {
        let mut old = flags.to_le_bytes().to_vec();
        old.extend(b"\0\0\0\0root\0\0");
        for (compression, refused) in [(SERVER_ALONE, refused), (CompressionPolicy::MIRROR, false)]
        {
            let mut machine = world(compression).machine;
            let step = machine.client(&encoded(1, &old), &mut |_| unreachable!());
            assert_eq!(matches!(step, ClientStep::Refuse(_)), refused, "{step:?}");
        }
    }
}

/// Servers in frames continue from the frame number, which is the client's own where both sides have frames.
#[test]
fn where_both_sides_have_frames_the_server_counts_those_of_the_client() {
    for size in [1, 2, 3, 4, 5, 7, 1 << 20] {
        let mut world = logged_in(CompressionPolicy::MIRROR, ZLIB);
        world.more_frames = 3;
        world.client_sends(&encoded(0, b"\x0e"));
        for piece in encoded(4, OK).chunks(size) {
            world.server_sends(piece);
        }
        assert_eq!(numbers(&mut world.to_client), [1]);
        // A file leaves in as many frames as it comes in; the server's next reply is renumbered.
        world.client_sends(&query(LOCAL));
        world.server_sends(&encoded(5, b"\xfbx"));
        assert_eq!(numbers(&mut world.to_client), [2]);
        world.more_frames = 0;
        world.client_sends(&[encoded(3, b"word"), encoded(4, b"")].concat());
        for piece in encoded(9, OK).chunks(size) {
            world.server_sends(piece);
        }
        assert_eq!(numbers(&mut world.to_client), [9]);
    }
}
