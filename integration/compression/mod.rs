//! Compressed sessions on either side, with acceleration.

mod hostile;
mod legs;
mod numbers;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::kit::certificates::trust_anyone;
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::{Server, on_each_server};
use crate::kit::wire_client::capability::{COMPRESS, ZSTD_COMPRESSION};
use crate::kit::wire_client::{COM_PING, INFILE_PACKET, Login, WireClient};

const TAIL: &str = "SELECT message.id, body FROM message INNER JOIN fetch_timeline_tt USING(id) \
                    ORDER BY message.id DESC LIMIT 20";

/// Calls, and the follow-up SELECT of each. Before the second, the table is written to in the same write as the client's command.
const CALLS: [(&str, &str); 3] = [
    ("CALL fetch_timeline_ids(1)", TAIL),
    (
        "CALL fetch_timeline_ids2(1, 10)",
        "SELECT id FROM fetch_timeline_tt",
    ),
    (
        "CALL fetch_timeline_ids(1)",
        "SELECT COUNT(*) FROM fetch_timeline_tt",
    ),
];

/// The compression algorithms that a server supports.
fn algorithms(server: &Server) -> &'static [u64] {
    if server.is_mariadb() {
        &[COMPRESS]
    } else {
        &[COMPRESS, ZSTD_COMPRESSION, COMPRESS | ZSTD_COMPRESSION]
    }
}

/// Asserts that two recordings are equal; prints only the first difference, because they have megabytes.
#[track_caller]
fn assert_same(one: &[Vec<u8>], other: &[Vec<u8>], what: &str) {
    assert_eq!(one.len(), other.len());
    for (number, (one, other)) in one.iter().zip(other).enumerate() {
        let at = one.iter().zip(other).position(|(one, other)| one != other);
        let around = |bytes: &[u8]| {
            let at = at.unwrap_or(0);
            bytes[at.saturating_sub(16)..bytes.len().min(at + 16)].to_vec()
        };
        assert!(
            at.is_none() && one.len() == other.len(),
            "{what}: reply {number} differs at {at:?} of {} and {}: {:?} {:?}",
            one.len(),
            other.len(),
            around(one),
            around(other)
        );
    }
}

/// Every byte of the replies to all kinds of commands.
fn told(client: &mut WireClient) -> Vec<Vec<u8>> {
    let mut told = Vec::new();
    for statement in [
        "SELECT 1",
        "SELECT REPEAT('x', 70000), REPEAT('y', 20)",
        "nonsense",
        "SELECT 2; SELECT REPEAT('z', 300); DO 1",
        "SELECT REPEAT('w', 20000000)",
        "SET @a = 5",
    ] {
        told.push(client.query_reply(statement).unwrap().raw);
    }
    let long = format!("SELECT LENGTH('{}')", "q".repeat(20_000_000));
    told.push(client.query_reply(&long).unwrap().raw);
    told.push(client.command(&[COM_PING]).unwrap().raw);
    let statement = client.prepare("SELECT ?, @a");
    let executed = client.execute(statement, &[Some("seven")], 0).unwrap();
    told.push(executed.raw);
    client.change_user(&Login::default()).unwrap().unwrap();
    told.push(client.query_reply("SELECT @a, CURRENT_USER()").unwrap().raw);
    told
}

#[test]
fn what_is_said_in_frames_is_as_it_is_said_directly() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &["--tls-self-signed"]);
        for &algorithm in algorithms(server) {
            for tls in [false, true] {
                if tls && server.is_mariadb() {
                    continue;
                }
                let login = || {
                    let login = Login::default().with(algorithm);
                    if tls {
                        login.tls(&trust_anyone())
                    } else {
                        login
                    }
                };
                let mut direct = WireClient::login(server.addr(), &login());
                let mut client = proxy.login(&login());
                assert_same(
                    &told(&mut client),
                    &told(&mut direct),
                    &format!("{algorithm:#x}"),
                );
                let (came, went) = client.stream.framed().unwrap();
                assert!(came < 1 << 20 && went < 1 << 20, "{came} {went}");
                let compressed = "SHOW STATUS LIKE 'Compression'";
                assert_eq!(client.rows(compressed), direct.rows(compressed));
                assert_eq!(client.rows(compressed)[0][1].as_deref(), Some("ON"));
            }
        }
    });
}

#[test]
fn calls_are_owned_in_frames() {
    on_each_server(|server| {
        let database = Database::classic(server, "frames");
        let mut root = database.connect();
        root.ok("INSERT INTO follower VALUES (1, 2)");
        root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (11, 2, 'eleven')");
        let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut calls = 0;
        for &algorithm in algorithms(server) {
            let login = database.login().with(algorithm);
            let mut direct = WireClient::login(server.addr(), &login);
            let mut client = proxy.login(&login);
            for (call, look) in CALLS {
                assert_eq!(client.ok(call), direct.ok(call), "{call}");
                assert_eq!(client.rows(look), direct.rows(look), "{look}");
                calls += 1;
            }
        }
        assert_eq!(proxy.counts().of("calls_owned"), calls, "{}", proxy.log());
    });
}

/// Sequence numbers wrap around in a long file, and the next command begins with 0 again.
#[test]
fn a_file_is_sent_in_frames() {
    on_each_server(|server| {
        let database = Database::empty(server, "frames_file");
        let mut root = database.connect();
        root.ok("SET GLOBAL local_infile = 1");
        root.ok("CREATE TABLE t (a mediumtext)");
        let proxy = Proxy::start(server.addr(), &[]);
        for &algorithm in algorithms(server) {
            let mut client = proxy.login(&database.login().with(algorithm));
            for packets in [0_usize, 1, 252, 253, 254, 255, 256, 510] {
                // Each line is one packet, as this client splits them.
                let line = [&[b'7'; INFILE_PACKET - 1][..], b"\n"].concat();
                client.infile = line.repeat(packets);
                client.ok("LOAD DATA LOCAL INFILE 'any' INTO TABLE t");
                let rows = client.column("SELECT COUNT(*) FROM t");
                assert_eq!(rows, [packets.to_string()], "{packets}");
                client.ok("TRUNCATE t");
            }
        }
    });
}

/// Malformed or endless frames end their own session and cost other sessions no memory.
#[test]
fn frames_that_cannot_be_read_end_their_session_alone() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        let mut other = proxy.login(&Login::default().with(COMPRESS));
        let before = proxy.resident_kib();
        for frame in [
            b"\x05\0\0\0\xff\xff\xffhello".to_vec(),
            b"\x00\0\0\0\xff\xff\xff".to_vec(),
            [
                &b"\xff\xff\xff\0\xff\xff\xff"[..],
                &[0x78, 0x9c],
                &[0; 5000],
            ]
            .concat(),
            b"\0\0\0\0\0\0\0".repeat(10_000),
            vec![0xff; 100_000],
        ] {
            let client = proxy.login(&Login::default().with(COMPRESS));
            let mut socket: TcpStream = client.stream.tcp().try_clone().unwrap();
            let _ = socket.write_all(&frame);
            other.ok("DO 1");
            thread::sleep(Duration::from_millis(50));
            let _ = socket.shutdown(std::net::Shutdown::Write);
            let _ = socket.read_to_end(&mut Vec::new());
        }
        other.ok("DO 1");
        assert!(proxy.resident_kib() < before + (16 << 10));
    });
}
