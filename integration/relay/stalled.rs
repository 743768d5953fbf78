//! Clients that do not read, and servers that time out.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use crate::kit::certificates::trust_anyone;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::capability::COMPRESS;
use crate::kit::wire_client::{Login, WireClient};

/// More than the socket buffers on the path hold, even when compressed.
const MUCH: &str = "SELECT SHA2(RAND(), 512), SHA2(RAND(), 512), SHA2(RAND(), 512), SHA2(RAND(), 512) \
                    FROM information_schema.collations a, information_schema.collations b, information_schema.collations c";

/// Requests more than it will read.
fn stalled(proxy: &Proxy, login: &Login) -> WireClient {
    let mut client = proxy.enter(login);
    client.ok("SET SESSION net_write_timeout = 1");
    let query = client.query_payload(MUCH.as_bytes(), &[]);
    client.send(&query).unwrap();
    client
}

/// Waits until the server has no other session.
#[track_caller]
fn alone(server: &PrivateServer) {
    let mut root = WireClient::connect(server.addr());
    let deadline = patience();
    while root.rows("SHOW GLOBAL STATUS LIKE 'Threads_connected'")[0][1].as_deref() != Some("1") {
        assert!(Instant::now() < deadline, "sessions stay on the server");
        thread::sleep(Duration::from_millis(50));
    }
}

const SETTINGS: &str = "[tls]\nself_signed = true\n[upstream_tls]\nmirror = false\n\
                        [limits]\nsessions = 3\nlast_words_ms = 2000\nstalled_ms = 8000\n";

/// Plain, encrypted, compressed.
fn logins() -> [Login; 3] {
    let login = Login::default;
    [
        login(),
        login().tls(&trust_anyone()),
        login().with(COMPRESS),
    ]
}

/// The server ends each session after `net_write_timeout`, and its last bytes delay the notice of its end.
#[test]
fn places_of_clients_that_never_read_are_given_back() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let proxy = Proxy::configured(server.addr(), SETTINGS, &[]);
            let kept: Vec<WireClient> = logins().map(|login| stalled(&proxy, &login)).into();
            alone(server);
            proxy.enter(&Login::default());
            let deadline = patience();
            while proxy.counts().of("clients_stalled") < 3 {
                assert!(Instant::now() < deadline, "{}", proxy.log());
                thread::sleep(Duration::from_millis(50));
            }
            let log = proxy.log();
            assert!(log.contains("did not take what waited"), "{log}");
            drop(kept);
        },
    );
}

/// Waits until every session of the server is blocked on a write.
#[track_caller]
fn all_stalled(root: &mut WireClient) {
    let mut sent = || -> u64 {
        let rows = root.rows("SHOW GLOBAL STATUS LIKE 'Bytes_sent'");
        rows[0][1].as_deref().unwrap().parse().unwrap()
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut before = sent();
    loop {
        assert!(Instant::now() < deadline, "{before} bytes");
        thread::sleep(Duration::from_secs(1));
        let now = sent();
        if now > 6 << 20 && now - before < 100_000 {
            return;
        }
        before = now;
    }
}

/// The client has a minute to read the last bytes. Its slot is free at once, although unread bytes delay the notice of the end.
#[test]
fn a_place_is_free_once_the_server_has_ended_a_session_that_nobody_reads() {
    let settings = "[tls]\nself_signed = true\n[upstream_tls]\nmirror = false\n\
                    [limits]\nsessions = 3\nlast_words_ms = 600000\nstalled_ms = 1200000\n";
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
            let mut root = WireClient::connect(server.addr());
            let mut kept = Vec::new();
            let mut threads = Vec::new();
            for login in logins() {
                let mut client = proxy.enter(&login);
                threads.push(client.column("SELECT CONNECTION_ID()").remove(0));
                let query = client.query_payload(MUCH.as_bytes(), &[]);
                client.send(&query).unwrap();
                kept.push(client);
            }
            all_stalled(&mut root);
            // Clients that do not read hold all connection slots.
            assert!(
                WireClient::try_login(proxy.addr(), &Login::default())
                    .unwrap()
                    .is_err()
            );
            for thread in &threads {
                root.ok(&format!("KILL {thread}"));
            }
            let deadline = patience();
            let all = "SELECT ID FROM information_schema.PROCESSLIST";
            while root
                .column(all)
                .iter()
                .any(|thread| threads.contains(thread))
            {
                assert!(Instant::now() < deadline, "sessions stay on the server");
                thread::sleep(Duration::from_millis(50));
            }
            // All slots are free again.
            let others = [(); 3].map(|()| proxy.enter(&Login::default()));
            drop(others);
            // No client was ended early: a client that reads at last gets all that was sent.
            assert_eq!(proxy.counts().of("clients_stalled"), 0);
            let mut rest = Vec::new();
            let read = kept[0].stream.read_to_end(&mut rest);
            assert!(rest.len() > 1 << 20, "{} bytes, then {read:?}", rest.len());
        },
    );
}

/// All that the server sent, and the end after it, is in Headwater's own socket buffers. How many bytes that takes depends on the sizes
/// of the buffers: fewer bytes go to the client's side, and with more the end is not seen.
#[test]
fn a_server_whose_end_is_seen_behind_unread_bytes_is_not_waited_for() {
    let seen = (60..=140).step_by(10).any(|rows| {
        let seen = ends_behind(rows);
        eprintln!("behind {rows} rows of 60,000 bytes: {seen}");
        seen
    });
    assert!(seen);
}

/// True if Headwater ends a session whose server closes after so many unread rows of 60,000 bytes.
fn ends_behind(rows: u8) -> bool {
    use crate::kit::peer::Peer;
    let peer = Peer::start(move |stage| {
        stage.let_in()?;
        stage.read()?;
        stage.packet(1, &[1])?;
        stage.packet(2, b"\x03def\0\0\0\x01a\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0")?;
        for row in 0..rows {
            let mut payload = vec![0xfc];
            payload.extend(60_000_u16.to_le_bytes());
            payload.resize(60_000 + 3, b'x');
            stage.packet(row.wrapping_add(3), &payload)?;
        }
        Ok(())
    });
    let settings = "[limits]\nlast_words_ms = 2000\n";
    let proxy = Proxy::configured(peer.addr(), settings, &[]);
    let mut client = proxy.enter(&Login::default());
    client.send(b"\x03SELECT a").unwrap();
    let deadline = Instant::now() + Duration::from_secs(8);
    while Instant::now() < deadline {
        if proxy.counts().of("clients_stalled") == 1 {
            return true;
        }
        thread::sleep(Duration::from_millis(200));
    }
    false
}

/// The server is killed, or its machine fails: the clients get what it had sent if they read in time.
#[test]
fn a_client_that_reads_in_time_gets_all_that_its_server_had_sent() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let proxy = Proxy::configured(server.addr(), SETTINGS, &[]);
            let mut client = stalled(&proxy, &Login::default());
            alone(server);
            let mut rest = Vec::new();
            let read = client.stream.read_to_end(&mut rest);
            eprintln!("{} bytes, then {read:?}", rest.len());
            assert!(rest.len() > 1 << 20, "{} bytes", rest.len());
            // A client that resumes reading in time is not ended.
            let mut slow = proxy.enter(&Login::default());
            let query = slow.query_payload(b"SELECT REPEAT('x', 12000000)", &[]);
            slow.send(&query).unwrap();
            thread::sleep(Duration::from_secs(4));
            assert!(slow.reply(3).unwrap().raw.len() > 12_000_000);

            drop((client, slow));
            let _kept: Vec<WireClient> = logins().map(|login| stalled(&proxy, &login)).into();
            server.kill();
            server.restart().unwrap();
            proxy.enter(&Login::default());
        },
    );
}
