//! Servers that violate the protocol: only their own session may suffer.

use std::io;
use std::thread;
use std::time::Duration;

use super::talk::{bare, read_to_end};
use crate::kit::peer::{OK, Peer, Stage, greeting};
use crate::kit::proxy::Proxy;
use crate::kit::wire_client::packet::encode;
use crate::kit::wire_client::{Login, WireClient};

const MIB: usize = 1024 * 1024;

/// Plays the reply named by the client's user; `good` is a correct server.
fn play(stage: &mut Stage) -> io::Result<()> {
    let reply = stage.let_in()?;
    if reply == "good" || reply == "root" {
        return stage.answer_ok();
    }
    stage.read()?;
    match reply.as_str() {
        "truncated_ok" => stage.packet(1, &[0, 0, 0]),
        "truncated_row" => {
            stage.packet(1, &[1])?;
            stage.write(&[0xff, 0, 0, 2, b'x'])
        }
        "half_a_header" => stage.write(&[7, 0]),
        "empty" => stage.packet(1, &[]),
        "out_of_sequence" => stage.packet(99, OK),
        "a_column_count_beyond_counting" => {
            stage.packet(1, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])?;
            stage.packet(2, b"no column definition")
        }
        "eof_at_once" => stage.packet(1, &[0xfe, 0, 0, 2, 0]),
        "more_and_more_results" => {
            (0..100_000_u32).try_for_each(|n| stage.packet(n as u8, &[0, 0, 0, 8, 0, 0, 0]))
        }
        "a_long_error" => {
            let error = [b"\xff\x51\x04#HY000", &vec![b'e'; 20 * MIB][..]].concat();
            stage.packet(1, &error)
        }
        "an_endless_packet" => {
            // Parts of the maximum size without end: 200 MiB of them.
            for seq in 1..=12 {
                stage.write(&[0xff, 0xff, 0xff, seq])?;
                stage.write(&vec![seq; 0xff_ffff])?;
            }
            Ok(())
        }
        "unasked" => {
            stage.packet(1, OK)?;
            stage.packet(0, b"\xff\xbf\x0f#HY000something unasked")?;
            stage.answer_ok()
        }
        "file_request" => {
            stage.packet(1, b"\xfb/etc/hostname")?;
            stage.answer_ok()
        }
        other => panic!("no reply {other:?}"),
    }
}

#[test]
fn strange_replies_reach_their_client_as_they_are_and_harm_no_other_session() {
    let peer = Peer::start(play);
    let proxy = Proxy::start(peer.addr(), &[]);
    let mut neighbour = proxy.login(&Login::default().user("good"));
    neighbour.ok("DO 1");
    let before = proxy.resident_kib();
    for reply in [
        "truncated_ok",
        "truncated_row",
        "half_a_header",
        "empty",
        "out_of_sequence",
        "a_column_count_beyond_counting",
        "eof_at_once",
        "more_and_more_results",
        "a_long_error",
        "an_endless_packet",
    ] {
        let [direct, relayed] = [peer.addr(), proxy.addr()].map(|addr| {
            let mut client = WireClient::login(addr, &Login::default().user(reply));
            client.send(b"\x03SELECT 1").unwrap();
            let heard = read_to_end(&mut client.stream);
            (
                heard.len(),
                heard
                    .iter()
                    .fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte)),
            )
        });
        assert_eq!(direct, relayed, "{reply}");
        neighbour.ok("DO 1");
        let grown = proxy.peak_kib().saturating_sub(before);
        assert!(grown < 4 * 1024, "{reply}: grew by {grown} KiB");
    }
    let (status, log) = proxy.terminate();
    assert!(status.success(), "{log}");
}

#[test]
fn a_server_that_speaks_unasked_is_heard() {
    let peer = Peer::start(play);
    let proxy = Proxy::start(peer.addr(), &[]);
    let mut client = proxy.login(&Login::default().user("unasked"));
    client.ok("DO 1");
    let unasked = client.read_packet().unwrap();
    assert!(unasked.payload.ends_with(b"something unasked"));
    client.ok("DO 2");
}

/// The client refuses to send the file: it sends only the empty packet that ends it.
#[test]
fn a_server_that_asks_for_a_file_gets_what_the_client_gives() {
    let peer = Peer::start(play);
    let proxy = Proxy::start(peer.addr(), &[]);
    let mut client = proxy.login(&Login::default().user("file_request"));
    client.ok("DO 1");
    client.ok("DO 2");
}

#[test]
fn a_greeting_that_nobody_knows_is_relayed_and_the_rest_is_pumped() {
    let mut other_version = greeting("12.0.0");
    other_version[0] = 11;
    for first in [
        encode(0, &other_version),
        encode(0, &greeting("9.9.9")[..20]),
        encode(0, b"\xff\x10\x04Too many connections"),
        encode(0, b"\xff"),
        encode(0, &[]),
        b"SSH-2.0-OpenSSH_9.2p1\r\n".to_vec(),
        encode(0, &vec![10; 100_000]),
    ] {
        let expected = first.clone();
        let peer = Peer::start(move |stage| {
            stage.write(&first)?;
            stage.read_some()?;
            stage.write(b"and the same again, unread")
        });
        let proxy = Proxy::start(peer.addr(), &["--log-level", "error"]);
        let mut stream = std::net::TcpStream::connect(proxy.addr()).unwrap();
        std::io::Write::write_all(&mut stream, b"whatever").unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let heard = read_to_end(&mut stream);
        let expected = [&expected[..], b"and the same again, unread"].concat();
        assert!(
            heard == expected,
            "{} for {}",
            heard.escape_ascii(),
            expected.escape_ascii()
        );
    }
}

#[test]
fn a_server_that_does_not_greet_holds_nobody_else_up() {
    let silent = Peer::start(|stage| stage.wait_for_end());
    let proxy = Proxy::start(silent.addr(), &["--log-level", "error"]);
    let mut waiting: Vec<_> = (0..20)
        .map(|_| std::net::TcpStream::connect(proxy.addr()).unwrap())
        .collect();
    thread::sleep(Duration::from_millis(100));
    for stream in &mut waiting {
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        assert!(
            std::io::Read::read(stream, &mut [0; 1]).is_err(),
            "neither greeted nor closed"
        );
    }
    drop(waiting);
    let (status, log) = proxy.terminate();
    assert!(status.success(), "{log}");
}

#[test]
fn an_authentication_that_goes_on_and_on_is_carried() {
    let peer = Peer::start(|stage| {
        stage.packet(0, &greeting("8.0.99-scripted"))?;
        let mut seq = stage.read()?.seq;
        for step in 0..300_u16 {
            seq = seq.wrapping_add(1);
            stage.packet(seq, &[&[1][..], &step.to_le_bytes()].concat())?;
            seq = stage.read()?.seq;
        }
        stage.packet(seq.wrapping_add(1), OK)?;
        stage.answer_ok()
    });
    let proxy = Proxy::start(peer.addr(), &[]);
    let mut stream = std::net::TcpStream::connect(proxy.addr()).unwrap();
    let read = |stream: &mut std::net::TcpStream| {
        crate::kit::wire_client::packet::Packet::read(stream, &mut Vec::new()).unwrap()
    };
    read(&mut stream);
    let login = [&0x0000_8200_u32.to_le_bytes()[..], &[0; 28], b"root\0\0"].concat();
    let write = |stream: &mut std::net::TcpStream, seq: u8, payload: &[u8]| {
        std::io::Write::write_all(stream, &encode(seq, payload)).unwrap();
    };
    write(&mut stream, 1, &login);
    loop {
        let packet = read(&mut stream);
        if packet.payload[0] == 0 {
            break;
        }
        write(&mut stream, packet.seq.wrapping_add(1), b"an answer");
    }
    write(&mut stream, 0, b"\x0e");
    assert_eq!(read(&mut stream).payload, OK);
}

/// The greeting, the login's OK and every reply arrive byte by byte.
#[test]
fn a_server_that_speaks_slowly_holds_up_its_own_session_alone() {
    let rows = || {
        let column = b"\x03def\0\0\0\x01a\0\x0c\x2d\0\x10\0\0\0\xfd\0\0\0\0\0";
        let mut reply = [encode(1, &[1]), encode(2, column)].concat();
        (0..100).for_each(|row| reply.extend(encode(3 + row, b"\x04word")));
        reply.extend(encode(103, b"\xfe\0\0\x02\0\0\0"));
        reply
    };
    let drip = |stage: &mut Stage, bytes: &[u8]| {
        bytes.iter().try_for_each(|&byte| {
            stage.write(&[byte])?;
            thread::sleep(Duration::from_millis(1));
            io::Result::Ok(())
        })
    };
    let slow = Peer::start(move |stage| {
        drip(stage, &encode(0, &greeting("8.0.99-scripted")))?;
        let login = stage.read()?;
        drip(stage, &encode(2, OK))?;
        if login.payload[32..].starts_with(b"good") {
            return stage.answer_ok();
        }
        loop {
            stage.read()?;
            drip(stage, &rows())?;
        }
    });
    let proxy = Proxy::start(slow.addr(), &[]);
    let mut neighbour = proxy.login(&Login::default().user("good"));
    let mut client = proxy.login(&Login::default());
    let conversation = thread::spawn(move || {
        for _ in 0..2 {
            let reply = client.query_reply("SELECT a FROM t").unwrap();
            assert!(reply.raw == rows(), "{}", reply.raw.escape_ascii());
        }
    });
    let mut answered = 0;
    while !conversation.is_finished() {
        neighbour.ok("DO 1");
        answered += 1;
    }
    conversation.join().unwrap();
    // Two replies of a thousand bytes take two seconds.
    assert!(answered > 50, "{answered}");
}

/// A bare connection gets the same bytes: Headwater adds none.
#[test]
fn a_refusal_in_place_of_the_greeting_is_the_servers() {
    let peer = Peer::start(|stage| stage.packet(0, b"\xff\x6a\x04Host is blocked"));
    let proxy = Proxy::start(peer.addr(), &["--log-level", "error"]);
    assert_eq!(bare(proxy.addr(), b""), b"");
}
