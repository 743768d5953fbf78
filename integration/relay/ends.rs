//! How sessions end: killed, timed out, refused, too large a packet, or with their server.

use std::io::{ErrorKind, Read};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use super::talk::{read_to_end, same_with_and_without};
use crate::kit::certificates::trust_anyone;
use crate::kit::patience;
use crate::kit::peer::Peer;
use crate::kit::proxy::{Proxy, free_addr};
use crate::kit::servers::{Server, full, on_each_server, wait_until_busy};
use crate::kit::wire_client::capability::COMPRESS;
use crate::kit::wire_client::packet::encode;
use crate::kit::wire_client::{COM_PING, Login, ServerError, WireClient};

#[test]
fn a_session_is_killed_by_the_thread_id_its_client_saw() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        let mut client = proxy.login(&Login::default());
        let id = client.greeting.thread_id;
        assert_eq!(client.column("SELECT CONNECTION_ID()"), [id.to_string()]);
        // First KILL QUERY: the session continues.
        client
            .send(&client.query_payload(b"SELECT SLEEP(60)", &[]))
            .unwrap();
        wait_until_busy(server.addr(), id, "SELECT SLEEP");
        server.connect().ok(&format!("KILL QUERY {id}"));
        client.reply(3).unwrap();
        assert_eq!(client.column("SELECT 1"), ["1"]);
        server.connect().ok(&format!("KILL {id}"));
        let mut until_end = String::from_utf8_lossy(&read_to_end(&mut client.stream)).into_owned();
        until_end.retain(|letter| letter.is_ascii_alphabetic());
        assert!(!until_end.contains("Headwater"), "{until_end}");
    });
}

#[test]
fn a_session_that_idles_too_long_hears_the_servers_good_bye() {
    on_each_server(|server| {
        same_with_and_without(server, &Login::default(), |talk| {
            talk.query("SET SESSION wait_timeout = 1");
            talk.read_to_its_end();
        });
    });
}

/// How a connection ends: by EOF or by a reset.
fn end(client: &WireClient) -> Result<(), ErrorKind> {
    let read = client.stream.tcp().read_to_end(&mut Vec::new());
    read.map(|_| ()).map_err(|error| error.kind())
}

/// MariaDB resets the connection of an idle session, MySQL closes it in order.
#[test]
fn a_session_ends_in_the_way_that_the_server_ends_it() {
    on_each_server(|server| {
        let settings = "[tls]\nself_signed = true\n[upstream_tls]\nmirror = false\n";
        let proxy = Proxy::configured(server.addr(), settings, &[]);
        let login = Login::default;
        for relayed in [
            login(),
            login().with(COMPRESS),
            login().tls(&trust_anyone()),
        ] {
            let directly = login().with(relayed.capabilities & COMPRESS);
            let mut clients = [
                WireClient::login(server.addr(), &directly),
                proxy.login(&relayed),
            ];
            for client in &mut clients {
                client.ok("SET SESSION wait_timeout = 1");
            }
            let [direct, relayed] = clients.map(|client| end(&client));
            assert_eq!(relayed, direct);
            assert_eq!(direct.is_err(), server.is_mariadb());
        }
    });
}

/// After the error the server resets the connection, so the next command fails.
#[test]
fn a_command_behind_the_error_that_ended_the_session_fails() {
    let small = small_server(crate::kit::servers::mariadb());
    let proxy = Proxy::start(small.addr(), &[]);
    for addr in [small.addr(), proxy.addr()] {
        let mut client = WireClient::login(addr, &Login::default().with(COMPRESS));
        let error = client.error(&format!("SELECT length('{}')", "x".repeat(3 << 20)));
        assert_eq!(error.code, 1153);
        thread::sleep(Duration::from_millis(200));
        let sent = client.send(&[COM_PING]).map_err(|error| error.kind());
        assert_eq!(sent, Err(ErrorKind::ConnectionReset), "{addr}");
    }
}

/// A server with small limits, which the shared servers never reach.
fn small_server(server: &Server) -> PrivateServer {
    let options = ["--max-allowed-packet=1M", "--max-connections=4"];
    PrivateServer::start(server.kind(), &options).unwrap()
}

#[test]
fn a_server_at_its_limits_and_beyond() {
    on_each_server(|server| {
        let mut small = small_server(server);
        let proxy = Proxy::start(small.addr(), &[]);
        too_big(&small, &proxy);
        too_many(&small, &proxy);
        gone_and_back(&mut small, &proxy);
        let (status, log) = proxy.terminate();
        assert!(status.success(), "{log}");
    });
}

/// The server replies in the middle of the packet and closes; the client is still writing.
fn too_big(small: &PrivateServer, proxy: &Proxy) {
    for length in [1 << 20, 3 << 20, 40 << 20] {
        let mut heard = Vec::new();
        for addr in [small.addr(), proxy.addr()] {
            let mut client = WireClient::connect(addr);
            let sql = format!("SELECT length('{}')", "x".repeat(length));
            let mut writer = client.stream.tcp().try_clone().unwrap();
            let packet = encode(0, &client.query_payload(sql.as_bytes(), &[]));
            let writing = thread::spawn(move || {
                use std::io::Write;
                // The write fails once the server has closed.
                let _ = writer.write_all(&packet);
            });
            let error = client
                .read_packet()
                .map(|packet| ServerError::parse(&packet.payload).code);
            heard.push(error.ok());
            drop(client);
            writing.join().unwrap();
        }
        // Directly from the server, the error may be lost to the reset after it.
        assert_eq!(
            heard[1],
            Some(1153),
            "{length} bytes, and without Headwater {:?}",
            heard[0]
        );
    }
}

fn too_many(small: &PrivateServer, proxy: &Proxy) {
    let (guests, refused) = full(small.addr());
    assert_eq!(refused.code, 1040);
    let relayed = WireClient::try_login(proxy.addr(), &Login::default())
        .unwrap()
        .unwrap_err();
    assert_eq!(relayed, refused);
    drop(guests);
}

fn gone_and_back(small: &mut PrivateServer, proxy: &Proxy) {
    let deadline = patience();
    let mut client = loop {
        match WireClient::try_login(proxy.addr(), &Login::default()) {
            Ok(Ok(client)) => break client,
            _ => assert!(Instant::now() < deadline, "the guests' places stay taken"),
        }
    };
    client
        .send(&client.query_payload(b"SELECT SLEEP(60)", &[]))
        .unwrap();
    small.kill();
    assert_eq!(read_to_end(&mut client.stream), b"");

    let error = WireClient::try_login(proxy.addr(), &Login::default())
        .unwrap()
        .unwrap_err();
    assert_eq!((error.code, error.sqlstate.as_str()), (1429, ""));
    assert!(
        error.message.contains(&small.addr().to_string()),
        "{error:?}"
    );

    let again = WireClient::try_login(proxy.addr(), &Login::default()).unwrap();
    assert_eq!(again.unwrap_err().code, 1429);
    let lost = "cannot connect to the server at ";
    // The reply may arrive before the log line.
    proxy.wait_for_log(lost);
    assert_eq!(proxy.log().matches(lost).count(), 1, "{}", proxy.log());

    small.restart().unwrap();
    assert_eq!(proxy.login(&Login::default()).column("SELECT 1"), ["1"]);
    proxy.wait_for_log("can be reached again, after ");
    proxy.wait_for_log("clients refused meanwhile: 2");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let upstream = free_addr();
    let proxy = Proxy::start(upstream, &[]);
    let error = WireClient::try_login(proxy.addr(), &Login::default())
        .unwrap()
        .unwrap_err();
    assert_eq!(error.code, 1429);
    assert!(error.message.contains(&upstream.to_string()), "{error:?}");
    proxy.wait_for_log("--upstream");
}

/// MariaDB's clients treat an error with an error code of the client range, in place of a greeting, as a malformed packet.
#[test]
fn the_products_own_clients_say_that_the_server_is_away() {
    let upstream = free_addr();
    let proxy = Proxy::start(upstream, &[]);
    on_each_server(|server| {
        let output = server
            .stock_client(proxy.addr())
            .args(["-e", "DO 1"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let why = format!("can't connect to the MySQL server on '{upstream}'");
        for part in ["1429", why.as_str()] {
            assert!(
                !output.status.success() && said.contains(part),
                "no {part} in {said}"
            );
        }
    });
}

/// The server's last bytes reach a slow client.
#[test]
fn the_last_words_of_a_server_wait_for_their_client() {
    const ROW: usize = 60_000;
    const ROWS: usize = 400;
    let peer = Peer::start(|stage| {
        stage.let_in()?;
        stage.read()?;
        stage.packet(1, &[1])?;
        stage.packet(2, b"\x03def\0\0\0\x01a\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0")?;
        for row in 0..ROWS {
            let mut payload = vec![0xfc];
            payload.extend((ROW as u16).to_le_bytes());
            payload.resize(ROW + 3, b'x');
            stage.packet((row as u8).wrapping_add(3), &payload)?;
        }
        stage.packet(200, b"\xff\x1d\x05#70100Query execution was interrupted")
    });
    let proxy = Proxy::start(peer.addr(), &[]);
    let mut client = proxy.login(&Login::default());
    client.send(b"\x03SELECT a").unwrap();
    thread::sleep(Duration::from_millis(2_500));
    let heard = read_to_end(&mut client.stream);
    assert!(heard.ends_with(b"was interrupted"), "{} bytes", heard.len());
}
