//! Aborted logins, which servers count by host: behind Headwater, all clients share one host.

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use crate::kit::patience;
use crate::kit::proxy::Proxy;
use crate::kit::relay::Relay;
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::packet::{Packet, encode};
use crate::kit::wire_client::{Login, WireClient};

const MOST: usize = 25;
const OPTIONS: &[&str] = &["--disable-skip-name-resolve", "--max-connect-errors=25"];
const SETTINGS: &str = "[tls]\nself_signed = true\n[upstream_tls]\nmirror = false\n";

/// A request for TLS, with the usual flags.
const TLS_REQUEST: [u8; 9] = [0x00, 0x8a, 0x08, 0, 0, 0, 0, 1, 45];

/// Connects and disconnects in one of the ways in which clients do.
fn leave(proxy: &Proxy, way: usize) {
    let mut client = TcpStream::connect(proxy.addr()).unwrap();
    if way == 0 {
        return;
    }
    Packet::read(&mut client, &mut Vec::new()).unwrap();
    match way {
        1 => {}
        // A part of a packet.
        2 => client.write_all(&[40, 0, 0, 1, 5]).unwrap(),
        // During the TLS handshake, like a client that does not trust the certificate.
        _ => {
            let request = encode(1, &[&TLS_REQUEST[..], &[0; 23]].concat());
            client.write_all(&request).unwrap();
        }
    }
}

/// An account on this server.
#[track_caller]
fn guest(server: &PrivateServer) -> Login {
    WireClient::connect(server.addr()).ok("CREATE USER guest@'%' IDENTIFIED BY ''");
    Login::default().user("guest")
}

/// Without Headwater, this server must count errors by host: else these tests would prove nothing.
#[track_caller]
fn assert_counts_by_host(server: &PrivateServer, guest: &Login) {
    let road = Relay::start_from(Ipv4Addr::new(127, 0, 0, 3), server.addr());
    for _ in 0..2 * MOST {
        let mut client = TcpStream::connect(road.addr()).unwrap();
        let _ = Packet::read(&mut client, &mut Vec::new());
    }
    let deadline = patience();
    loop {
        match WireClient::try_login(road.addr(), guest) {
            Ok(Err(refused)) if refused.code == 1129 => return,
            other => assert!(Instant::now() < deadline, "{other:?}"),
        }
    }
}

#[track_caller]
fn wait_for(proxy: &Proxy, counter: &str, count: u64) {
    let deadline = patience();
    while proxy.counts().of(counter) < count {
        assert!(Instant::now() < deadline, "{}", proxy.counts_line());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_leaves_before_logging_in_shuts_nobody_out() {
    on_servers_of_its_own(
        |_| OPTIONS,
        |server| {
            let guest = guest(server);
            assert_counts_by_host(server, &guest);
            let road = Relay::start_from(Ipv4Addr::new(127, 0, 0, 2), server.addr());
            let proxy = Proxy::configured(road.addr(), SETTINGS, &[]);
            let user = proxy.login(&guest).column("SELECT USER()");
            assert_eq!(user, ["guest@127.0.0.2"]);
            let mut left = proxy.counts().of("logins_cut");
            for way in 0..4 {
                for _ in 0..=MOST {
                    leave(&proxy, way);
                    left += 1;
                }
                wait_for(&proxy, "logins_cut", left);
                let entered = WireClient::try_login(proxy.addr(), &guest).unwrap();
                assert!(entered.is_ok(), "way {way}: {entered:?}");
            }
            // A login error would be counted only after the last packet.
            thread::sleep(Duration::from_millis(200));
            assert_eq!(proxy.counts().of("login_errors"), 0, "{}", proxy.log());
        },
    );
}

/// A malformed login is the server's to judge, and the server counts it.
#[test]
fn errors_that_are_counted_are_told_of_before_all_are_shut_out_and_when_they_are() {
    on_servers_of_its_own(
        |_| OPTIONS,
        |server| {
            let guest = guest(server);
            assert_counts_by_host(server, &guest);
            let road = Relay::start_from(Ipv4Addr::new(127, 0, 0, 2), server.addr());
            let proxy = Proxy::start(road.addr(), &[]);
            let garbage = || {
                let mut client = TcpStream::connect(proxy.addr()).unwrap();
                let _ = Packet::read(&mut client, &mut Vec::new());
                // The other side may have closed already.
                let _ = client.write_all(&encode(1, &[]));
                let _ = Packet::read(&mut client, &mut Vec::new());
            };
            for _ in 0..12 {
                garbage();
            }
            proxy.wait_for_log("max_connect_errors");
            assert!(!proxy.log().contains("ERROR"), "{}", proxy.log());
            proxy.login(&guest).ok("DO 1");
            // After the login above, the count begins again.
            for _ in 0..2 * MOST {
                garbage();
            }
            let refused = WireClient::try_login(proxy.addr(), &guest).unwrap();
            assert_eq!(refused.unwrap_err().code, 1129);
            proxy.wait_for_log("Let them in again");
            let cure = if server.version().contains("MariaDB") {
                "FLUSH HOSTS"
            } else {
                "TRUNCATE TABLE performance_schema.host_cache"
            };
            WireClient::connect(server.addr()).ok(cure);
            proxy.login(&guest).ok("DO 1");
        },
    );
}
