//! Clients that do not speak the protocol, or violate it: the server judges them, and no other session is affected.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use super::talk::bare;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::packet::{Packet, encode};
use crate::kit::wire_client::{Login, capability};

#[test]
fn what_is_no_login_is_answered_as_the_server_answers_it() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &["--tls-own", "false"]);
        let mut neighbour = proxy.login(&Login::default());
        // Flags of 3.23 and a limit in three bytes, then a name and a password.
        let pre_41 = b"\x05\x00\xff\xff\xffhw_nobody\0notright\0";
        // TLS is not offered, so a ClientHello is invalid.
        let tls = ((capability::SSL | capability::USUAL) as u32).to_le_bytes();
        let tls_request = [&tls[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
        for (what, bytes) in [
            ("a login before 4.1", encode(1, pre_41)),
            ("a packet of garbage", encode(1, &[0xa5; 300])),
            ("an empty packet", encode(1, &[])),
            ("a login cut short", encode(1, &tls_request[..20])),
            (
                "a TLS request and then no TLS",
                [encode(1, &tls_request), vec![b'?'; 600]].concat(),
            ),
            ("a sequence number out of order", encode(9, &tls_request)),
        ] {
            let direct = bare(server.addr(), &bytes);
            let relayed = bare(proxy.addr(), &bytes);
            assert_eq!(direct, relayed, "{what}");
            assert_eq!(neighbour.column("SELECT 1"), ["1"], "{what}");
        }
    });
}

#[test]
fn silent_and_babbling_clients_harm_nobody() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        let mut neighbour = proxy.login(&Login::default());
        let before = proxy.resident_kib();
        let mut guests = Vec::new();
        for guest in 0..30_u8 {
            let mut stream = TcpStream::connect(proxy.addr()).unwrap();
            stream
                .set_write_timeout(Some(Duration::from_millis(100)))
                .unwrap();
            Packet::read(&mut stream, &mut Vec::new()).unwrap();
            match guest % 3 {
                0 => {}
                1 => stream
                    .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    .unwrap(),
                // Never stops; the other side may refuse a part of it.
                _ => (0..100).for_each(|_| drop(stream.write(&[guest; 64 * 1024]))),
            }
            guests.push(stream);
        }
        assert_eq!(neighbour.column("SELECT 1"), ["1"]);
        let grown = proxy.peak_kib().saturating_sub(before);
        assert!(grown < 30 * 512, "grew by {grown} KiB");
        drop(guests);
        assert_eq!(proxy.login(&Login::default()).column("SELECT 1"), ["1"]);
    });
}

#[test]
fn garbage_between_commands_is_the_servers_to_judge() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        for bytes in [
            encode(7, b"\x0e"),
            encode(0, &[0xee; 70_000]),
            encode(0, b"\x17\x01"),
        ] {
            let [direct, relayed] = [server.addr(), proxy.addr()].map(|addr| {
                let mut client = crate::kit::wire_client::WireClient::connect(addr);
                client.stream.write_all(&bytes).unwrap();
                client
                    .read_packet()
                    .map(|packet| packet.payload)
                    .unwrap_or_default()
            });
            assert_eq!(direct, relayed);
        }
    });
}
