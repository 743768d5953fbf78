//! Peers that violate TLS affect no other session.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::{enciphered, on_each_stage};
use crate::kit::peer::Peer;
use crate::kit::proxy::Proxy;
use crate::kit::servers::mariadb;
use crate::kit::wire_client::WireClient;
use crate::kit::wire_client::packet::encode;

/// The start of a login with the flag that requests TLS.
fn request() -> Vec<u8> {
    let mut head = 0x0108_8a00_u32.to_le_bytes().to_vec();
    head.extend([0, 0, 0, 1, 45]);
    head.extend([0; 23]);
    encode(1, &head)
}

#[test]
fn who_asks_for_tls_and_does_something_else_is_let_go() {
    on_each_stage(|stage| {
        let limits = "[limits]\nconnect_ms = 700\n";
        let proxy = stage.proxy(limits, &[]);
        let mut other = proxy.login(&enciphered());
        for behind in [
            b"".to_vec(),
            vec![0; 100],
            vec![0xff; 70_000],
            encode(2, b"no hello"),
            b"\x16\x03\x01\xff\xff".to_vec(),
            b"\x16\x03\x01\x00\x05hello".to_vec(),
        ] {
            let mut socket = TcpStream::connect(proxy.addr()).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let mut greeting = [0; 4];
            socket.read_exact(&mut greeting).unwrap();
            let bytes = [request(), behind].concat();
            let _ = socket.write_all(&bytes);
            let begun = Instant::now();
            let mut rest = Vec::new();
            let _ = socket.read_to_end(&mut rest);
            assert!(begun.elapsed() < Duration::from_secs(5));
            other.ok("DO 1");
        }
        // Clients that stop in the middle of the handshake.
        let before = proxy.resident_kib();
        let idle: Vec<TcpStream> = (0..50)
            .map(|_| {
                let mut socket = TcpStream::connect(proxy.addr()).unwrap();
                let _ = socket.write_all(&[request(), b"\x16\x03\x01".to_vec()].concat());
                socket
            })
            .collect();
        thread::sleep(Duration::from_millis(1_500));
        other.ok("DO 1");
        assert!(proxy.resident_kib() < before + (16 << 10));
        drop(idle);
    });
}

/// A server offers TLS and breaks the handshake: the client's error names that and the setting.
#[test]
fn a_server_that_breaks_off_the_agreement_is_named() {
    let greeting = WireClient::connect(mariadb().addr()).greeting.raw;
    for answer in [&b""[..], b"\xff\x10\x04nonsense", &[0; 200]] {
        let (greeting, answer) = (greeting.clone(), answer.to_vec());
        let peer = Peer::start(move |stage| {
            let mut greeting = greeting.clone();
            // The position of the flag for SSL.
            let flags =
                4 + 1 + greeting[5..].iter().position(|byte| *byte == 0).unwrap() + 1 + 4 + 8 + 1;
            greeting[flags + 1] |= 0x08;
            stage.write(&greeting)?;
            stage.read()?;
            stage.write(&answer)
        });
        let limits = "[limits]\nconnect_ms = 2000\n";
        let proxy = Proxy::configured(peer.addr(), limits, &["--tls-self-signed"]);
        let refused = WireClient::try_login(proxy.addr(), &enciphered()).unwrap();
        let error = refused.map(|_| ()).unwrap_err();
        assert_eq!(error.code, 3159);
        assert!(error.message.contains("upstream_tls.mode"), "{error:?}");
    }
}
