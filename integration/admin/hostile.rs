//! Sessions are unaffected by abuse of the admin port, and the port recovers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::http::Admin;
use crate::kit::patience;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::Login;

#[test]
fn a_thousand_connections_and_half_requests_do_no_harm() {
    on_each_server(|server| {
        let (proxy, admin) = Admin::beside(server.addr(), "", ROOT_SERVICE);
        let mut client = proxy.login(&Login::default());
        let before = proxy.resident_kib();
        let mut held = Vec::new();
        for number in 0..1_000 {
            let Ok(mut socket) = TcpStream::connect(admin.0) else {
                continue;
            };
            let begun: &[u8] = match number % 4 {
                0 => b"",
                1 => b"GET /metrics HTTP/1.1\r\nHost: local",
                2 => b"\x16\x03\x01\x02\x00\x01\x00",
                _ => b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /metr",
            };
            let _ = socket.write_all(begun);
            held.push(socket);
            if number % 100 == 0 {
                assert_eq!(client.column("SELECT 1"), ["1"]);
            }
        }
        assert!(
            proxy.resident_kib() < before + 64 * 1024,
            "{before} KiB before, {} now",
            proxy.resident_kib()
        );
        // Silent connections are closed, and new ones are answered then.
        let deadline = patience();
        while admin
            .send(b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .map_or(0, |it| it.status)
            != 200
        {
            assert!(Instant::now() < deadline, "the port does not answer again");
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(held);
        assert_eq!(client.column("SELECT 1"), ["1"]);
    });
}

#[test]
fn what_is_too_large_or_no_request_is_refused() {
    on_each_server(|server| {
        let (proxy, admin) = Admin::beside(server.addr(), "", ROOT_SERVICE);
        let before = proxy.resident_kib();
        let long = "x".repeat(1 << 20);
        for request in [
            format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            format!("GET /live HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"),
            format!(
                "GET /live HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
                "A: b\r\n".repeat(1_000)
            ),
            "GET\r\n\r\n".to_owned(),
            format!("{long}\r\n\r\n"),
            "GET /live HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".to_owned(),
        ] {
            let mut socket = TcpStream::connect(admin.0).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let _ = socket.write_all(request.as_bytes());
            let mut reply = Vec::new();
            // The connection may be reset.
            let _ = socket.read_to_end(&mut reply);
            let reply = String::from_utf8_lossy(&reply);
            let refused = reply.is_empty() || reply.starts_with("HTTP/1.1 4");
            assert!(refused, "{}: {reply}", &request[..request.len().min(60)]);
        }
        // The reply does not wait for a long body.
        let begun = Instant::now();
        let answer = admin.send(b"GET /live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\nx");
        assert!(answer.is_ok_and(|answer| answer.status == 200));
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(admin.get("/live").status, 200);
        assert!(proxy.resident_kib() < before + 32 * 1024);
    });
}
