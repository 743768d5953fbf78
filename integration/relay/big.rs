//! Sizes: packets that end at the edge of 16 MiB, statements and results far larger than any buffer.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use super::talk::same_with_and_without;
use crate::kit::certificates::trust_anyone;
use crate::kit::database::Database;
use crate::kit::peer::Peer;
use crate::kit::proxy::Proxy;
use crate::kit::servers::{on_each_server, on_servers_of_its_own};
use crate::kit::wire_client::packet::MAX_PART;
use crate::kit::wire_client::{COM_QUERY, Login, WireClient};

/// How much a session may add to the process's memory, whatever its traffic, in KiB: its bound of 1 MiB of buffers, and as much again for
/// memory that the allocator retains.
const SESSION_KIB: u64 = 2 * 1024;
const MIB: usize = 1024 * 1024;

#[test]
fn packets_at_the_edge_of_16_mib_pass_both_ways() {
    on_each_server(|server| {
        same_with_and_without(server, &Login::default(), |talk| {
            for length in [MAX_PART - 1, MAX_PART, MAX_PART + 1, 2 * MAX_PART] {
                // A row of one column has a length prefix of four bytes or nine.
                let prefix = if length < 2 * MAX_PART { 4 } else { 9 };
                talk.query(&format!(
                    "SELECT repeat('a', {}); SELECT 2",
                    length - prefix
                ));
                let (head, tail) = ("\u{3}SELECT length('", "')");
                let text = "b".repeat(length - head.len() - tail.len());
                talk.command(format!("{head}{text}{tail}").as_bytes());
                talk.query("SELECT 'still in step'");
            }
        });
    });
}

#[test]
fn a_64_mib_insert_passes_without_being_held() {
    on_each_server(|server| {
        let database = Database::empty(server, "relay_insert");
        database
            .connect()
            .ok("CREATE TABLE t (body longblob) ENGINE = MyISAM");
        let proxy = warm(server.addr());
        let mut client = proxy.login(&database.login());
        let before = proxy.resident_kib();
        let body = "x".repeat(64 * MIB);
        assert_eq!(
            client
                .ok(&format!("INSERT INTO t VALUES ('{body}')"))
                .affected_rows,
            1
        );
        let grown = proxy.peak_kib().saturating_sub(before);
        assert!(grown < SESSION_KIB, "grew by {grown} KiB");
        assert_eq!(
            client.column("SELECT length(body) FROM t"),
            [(64 * MIB).to_string()]
        );
    });
}

#[test]
fn a_gibibyte_passes_through_a_session_of_fixed_size() {
    const ROWS: usize = 1024;
    on_each_server(|server| {
        let proxy = warm(server.addr());
        let mut client = proxy.login(&Login::default());
        let before = proxy.resident_kib();
        // The servers limit a recursion to a thousand rows, so the query combines two halves.
        let sql = format!(
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {half}) \
             SELECT repeat('x', {MIB}) FROM n UNION ALL SELECT repeat('y', {MIB}) FROM n",
            half = ROWS / 2
        );
        client
            .send(&client.query_payload(sql.as_bytes(), &[]))
            .unwrap();
        let mut bytes = 0;
        for _ in 0..ROWS + 3 {
            bytes += client.read_packet().unwrap().payload.len();
        }
        assert!(bytes > ROWS * MIB, "{bytes} bytes came");
        assert_eq!(client.column("SELECT 'still in step'"), ["still in step"]);
        let grown = proxy.peak_kib().saturating_sub(before);
        assert!(grown < SESSION_KIB, "grew by {grown} KiB");
    });
}

#[test]
fn a_slow_reader_slows_the_server_and_does_not_grow_the_proxy() {
    const ROWS: usize = 256;
    on_each_server(|server| {
        let proxy = warm(server.addr());
        let mut client = proxy.login(&Login::default());
        let before = proxy.resident_kib();
        let sql = format!(
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) \
             SELECT repeat('x', {MIB}) FROM n"
        );
        client
            .send(&client.query_payload(sql.as_bytes(), &[]))
            .unwrap();
        let id = client.greeting.thread_id;
        thread::sleep(Duration::from_millis(700));
        let command = format!("SELECT command FROM information_schema.processlist WHERE id = {id}");
        assert_eq!(
            server.connect().column(&command),
            ["Query"],
            "the server is done already"
        );
        let mut packets = 0;
        // Column count, definition, rows, terminator.
        while packets < ROWS + 3 {
            client.read_packet().unwrap();
            packets += 1;
            if packets % 64 == 0 {
                thread::sleep(Duration::from_millis(50));
            }
        }
        assert_eq!(client.column("SELECT 'still in step'"), ["still in step"]);
        let grown = proxy.peak_kib().saturating_sub(before);
        assert!(grown < SESSION_KIB, "grew by {grown} KiB");
    });
}

/// Headwater does not read most of these long rows: they are spliced within the operating system.
#[test]
fn long_rows_arrive_as_they_were_sent() {
    // Around the size of a splice, of a pipe, and of a packet.
    let lengths = [
        1,
        65_000,
        65_537,
        70_000,
        131_073,
        200,
        262_149,
        300_000,
        MIB,
        3 * MIB + 1,
        60_000,
        MAX_PART - 20,
        MAX_PART - 13,
        MAX_PART - 12,
        MAX_PART - 11,
        MAX_PART,
        2 * MAX_PART + 7,
        100_000,
        9,
    ];
    let row = |length: &usize| {
        let times = length / 64 + 1;
        format!("SELECT {length}, LEFT(REPEAT(SHA2({length}, 256), {times}), {length})")
    };
    let rows: Vec<_> = lengths.iter().map(row).collect();
    let sql = format!("{}; SELECT 'next'", rows.join(" UNION ALL "));
    on_servers_of_its_own(
        |_| &["--max-allowed-packet=64M"],
        |server| {
            let mut root = WireClient::connect(server.addr());
            for host in ["'%'", "localhost"] {
                root.ok(&format!("CREATE USER guest@{host}"));
                root.ok(&format!("GRANT ALL ON *.* TO guest@{host}"));
            }
            let socket = server.socket();
            let apart = "[upstream_tls]\nmode = 'disabled'\nmirror = false\n";
            let over_tcp = Proxy::configured(server.addr(), apart, &["--tls-self-signed"]);
            let over_socket = Proxy::start_with(&["--upstream", socket.to_str().unwrap()], &[]);
            let plain = Login::default().user("guest").database("mysql");
            let enciphered = plain.clone().tls(&trust_anyone());
            let mut direct = WireClient::login(server.addr(), &plain);
            let payload = direct.query_payload(sql.as_bytes(), &[]);
            let sent = direct.command(&payload).unwrap().raw;
            let end = String::from_utf8_lossy(&sent[sent.len().saturating_sub(200)..]);
            assert!(sent.len() > lengths.iter().sum(), "{end}");
            for (way, proxy, login) in [
                ("plain", &over_tcp, &plain),
                ("enciphered", &over_tcp, &enciphered),
                ("from a socket", &over_socket, &plain),
            ] {
                // Reads as fast as it can, or pauses so often that all buffers on the path are full.
                for (piece, pause) in [(MIB, 0), (1_000_003, 10), (5 * MIB, 100)] {
                    let mut client = proxy.login(login);
                    client.send(&payload).unwrap();
                    // Unread bytes of a session that ends never reach another session.
                    let mut leaves = proxy.login(login);
                    leaves.send(&payload).unwrap();
                    leaves.stream.read_exact(&mut vec![0; 4 * MIB]).unwrap();
                    drop(leaves);
                    let mut heard = vec![0; sent.len()];
                    for piece in heard.chunks_mut(piece) {
                        thread::sleep(Duration::from_millis(pause));
                        client.stream.read_exact(piece).unwrap();
                    }
                    // Not `assert_eq`, which would print them.
                    let same = heard == sent;
                    assert!(same, "{way}, {piece} bytes at a time");
                    assert_eq!(client.column("SELECT 'in step'"), ["in step"]);
                }
            }
        },
    );
}

/// The other direction: Headwater does not read from a client while it cannot write to the server.
#[test]
fn a_server_that_does_not_read_slows_the_client() {
    let peer = Peer::start(|stage| {
        if stage.let_in()? != "deaf" {
            return stage.answer_ok();
        }
        thread::sleep(Duration::from_secs(30));
        Ok(())
    });
    let proxy = warm(peer.addr());
    let before = proxy.resident_kib();
    let mut client = proxy.login(&Login::default().user("deaf"));
    client
        .stream
        .tcp()
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let mut payload = vec![COM_QUERY];
    payload.resize(256 * MIB, b'x');
    let started = Instant::now();
    assert!(client.send(&payload).is_err(), "256 MiB went somewhere");
    assert!(started.elapsed() < Duration::from_secs(10));
    let grown = proxy.peak_kib().saturating_sub(before);
    assert!(grown < SESSION_KIB, "grew by {grown} KiB");
}

/// Starts a Headwater whose threads have their scratch buffers and whose allocator has grown.
fn warm(upstream: std::net::SocketAddr) -> Proxy {
    let proxy = Proxy::start(upstream, &[]);
    let clients: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn({
                let addr = proxy.addr();
                move || WireClient::connect(addr).command(&[0x0e]).map(|_| ())
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap().unwrap();
    }
    proxy
}
