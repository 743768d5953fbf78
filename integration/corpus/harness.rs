//! Tests of the corpus itself: it detects each difference and its position.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::mask;
use super::player::Player;
use super::side::Side;
use super::tape::{Place, Tape};
use crate::kit::peer::OK;
use crate::kit::servers::{Server, on_each_release};
use crate::kit::wire_client::packet::encode;
use crate::kit::wire_client::{COM_PING, Login};

/// A fault that a relay between client and server adds to the server's last reply.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// Flips a bit of this byte.
    Flip(usize),
    /// Drops this byte and all after it.
    Cut(usize),
    /// Adds a packet.
    Add,
}

/// A text that no server sends by itself.
const MARK: &str = "the marked answer";

fn conversation(side: &mut Side) {
    side.command(&[COM_PING]);
    side.query(format!("SELECT 1, '{MARK}'"));
    side.query("SELECT 'behind it'");
}

#[test]
fn a_road_that_changes_nothing_is_not_seen() {
    on_each_release(|server| {
        let player = Player::between(server.addr(), road(server, Fault::None));
        player.play("a road", &Login::default(), conversation);
        let (conversations, packets) = player.compared();
        assert_eq!(conversations, 1);
        // Greeting and login; OK; twice columns, rows and their terminator.
        assert!(packets >= 12, "{packets}");
    });
}

#[test]
fn whatever_a_road_changes_is_reported_where_it_is() {
    on_each_release(|server| {
        // The reply begins with a packet of 1 byte, the column count.
        for (fault, told) in [
            (
                Fault::Flip(4),
                "packet 0, Payload(0):\n   one #1 of 1 bytes, at 0 0x02",
            ),
            (Fault::Flip(3), "packet 0, SequenceNumber:\n   one #1"),
            (Fault::Flip(5 + 4), "packet 1, Payload(0):"),
            (Fault::Cut(4), "packet 0, "),
            (Fault::Cut(5), "packet 1, Packet:"),
        ] {
            let player = Player::between(server.addr(), road(server, fault));
            let (outcome, _) = player.compare(&Login::default(), conversation);
            let report = outcome.unwrap_err();
            let step = format!("step 2 (\"\\x03SELECT 1, \\'{MARK}\\'\"");
            assert!(report.contains("came through"), "{fault:?}: {report}");
            assert!(report.contains(&step), "{fault:?}: {report}");
            assert!(report.contains(told), "{fault:?}: {report}");
        }
    });
}

/// A client reads a surplus packet as the reply to its next command.
#[test]
fn a_packet_too_many_is_reported() {
    on_each_release(|server| {
        let player = Player::between(server.addr(), road(server, Fault::Add));
        let (outcome, _) = player.compare(&Login::default(), conversation);
        let report = outcome.unwrap_err();
        assert!(report.contains("step 3 (\"\\x03SELECT"), "{report}");
        assert!(report.contains("packet 0, "), "{report}");
    });
}

#[test]
fn a_server_that_does_not_repeat_itself_is_no_measure() {
    on_each_release(|server| {
        let player = Player::new(server);
        let (outcome, _) = player.compare(&Login::default(), |side| {
            side.query("SELECT CONNECTION_ID()");
        });
        let report = outcome.unwrap_err();
        assert!(report.contains("does not repeat itself"), "{report}");
        assert_eq!(player.compared(), (0, 0));
    });
}

#[test]
fn tapes_part_at_their_first_difference() {
    let tape = |raw: &[u8], ended: bool| {
        let mut tape = Tape::default();
        tape.heard("first", encode(0, b"same"), false);
        tape.heard("second", raw.to_vec(), ended);
        tape
    };
    let two = [encode(1, b"abc"), encode(2, b"def")].concat();
    let check = |raw: &[u8], ended: bool, packet: usize, place: Place| {
        let difference = tape(&two, false).differs_from(&tape(raw, ended)).unwrap();
        assert_eq!((difference.step, difference.said.as_str()), (1, "second"));
        assert_eq!((difference.packet, difference.place), (packet, place));
    };
    let packets = |one: &[u8], other: &[u8]| [one, other].concat();
    assert!(tape(&two, false).differs_from(&tape(&two, false)).is_none());
    check(&two, true, 0, Place::End);
    check(&two[..7], false, 1, Place::Packet);
    check(&packets(&two, &encode(3, b"")), false, 2, Place::Packet);
    check(
        &packets(&two[..7], &encode(3, b"def")),
        false,
        1,
        Place::SequenceNumber,
    );
    check(
        &packets(&two[..7], &encode(2, b"defg")),
        false,
        1,
        Place::Length,
    );
    check(
        &packets(&two[..7], &encode(2, b"dxf")),
        false,
        1,
        Place::Payload(1),
    );
    check(
        &packets(&encode(1, b"abd"), &two[7..]),
        false,
        0,
        Place::Payload(2),
    );
    assert_eq!(tape(&two, false).packets(), 3);
}

/// Only thread id and scramble are masked.
#[test]
fn the_masks_cover_what_they_name() {
    let greeting = crate::kit::peer::greeting("9");
    let mut masked = encode(0, &greeting);
    mask::login(&mut masked);
    let left: Vec<u8> = [
        &b"\x0a9\0"[..],
        &[0; 12],
        &greeting[15..34],
        &[0; 12],
        &greeting[46..],
    ]
    .concat();
    assert_eq!(masked, encode(0, &left));
    let mut masked = [encode(2, b"\xfeplugin\0scramble"), encode(4, b"\0\0\0\x02")].concat();
    mask::login(&mut masked);
    assert_eq!(
        masked,
        [
            encode(2, b"\xfeplugin\0\0\0\0\0\0\0\0\0"),
            encode(4, b"\0\0\0\x02")
        ]
        .concat()
    );
    let mut masked = encode(1, b"Uptime: 123  Rate: 0.45");
    mask::numbers(&mut masked);
    assert_eq!(masked, b"\0\0\0\x01Uptime: 0  Rate: 0.0");
}

/// A relay to a server, at an address of its own.
fn road(server: &Server, fault: Fault) -> SocketAddr {
    let server = server.addr();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || carry(client, server, fault));
        }
    });
    addr
}

fn carry(mut client: TcpStream, server: SocketAddr, fault: Fault) -> io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut bytes = vec![0; 1 << 16];
    while let count @ 1.. = server.read(&mut bytes)? {
        let mut bytes = bytes[..count].to_vec();
        // The reply is short and arrives in one piece.
        let marked = bytes
            .windows(MARK.len())
            .any(|part| part == MARK.as_bytes());
        match fault {
            Fault::Flip(at) if marked => bytes[at] ^= 1,
            Fault::Cut(at) if marked => {
                client.write_all(&bytes[..at])?;
                let _ = server.shutdown(Shutdown::Both);
                return client.shutdown(Shutdown::Both);
            }
            Fault::Add if marked => bytes.extend(encode(9, OK)),
            _ => {}
        }
        client.write_all(&bytes)?;
    }
    client.shutdown(Shutdown::Both)
}
