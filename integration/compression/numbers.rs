//! Sequence numbers of packets and frames when the client splits a command into unusual frames.

use std::io::Write;
use std::net::TcpStream;

use headwater_lab::private_server::PrivateServer;

use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::capability::{COMPRESS, MULTI_STATEMENTS};
use crate::kit::wire_client::frames::{Frame, framed};
use crate::kit::wire_client::packet::encode;
use crate::kit::wire_client::{COM_QUERY, Login, WireClient};

/// Lengths of a statement, and of the frames that carry it.
const COMMANDS: [(usize, usize); 10] = [
    (10, 1_000),
    (10, 9),
    (3_000, 1_000),
    (200_000, 60_000),
    (900_000, 3_001),
    (900_000, 0xff_ffff),
    // Longer than the server accepts: it sends the error in the middle.
    (3 << 20, 0xff_ffff),
    (3 << 20, 1 << 20),
    (3 << 20, 65_536),
    (3 << 20, 300_000),
];

/// A client that makes frames of any length and records the sequence numbers it receives.
struct Framing {
    socket: TcpStream,
    zstd: bool,
    next: u8,
}

impl Framing {
    fn login(addr: std::net::SocketAddr, proxy: Option<&Proxy>, algorithm: u64) -> Framing {
        let login = Login::default().with(algorithm).database("mysql");
        let client = match proxy {
            Some(proxy) => proxy.login(&login),
            None => WireClient::login(addr, &login),
        };
        Framing {
            socket: client.stream.tcp().try_clone().unwrap(),
            zstd: algorithm & COMPRESS == 0,
            next: 0,
        }
    }

    fn command(&mut self, payload: &[u8], length: usize) {
        self.next = 0;
        self.write(&encode(0, payload), length);
    }

    fn write(&mut self, bytes: &[u8], length: usize) {
        let mut frames = Vec::new();
        for plain in bytes.chunks(length) {
            frames.extend(framed(self.next, plain, self.zstd));
            self.next = self.next.wrapping_add(1);
        }
        self.socket.write_all(&frames).unwrap();
    }

    /// The sequence number of the server's next frame, and its bytes.
    fn frame(&mut self) -> (u8, Vec<u8>) {
        let frame = Frame::read(&mut self.socket, self.zstd).unwrap().unwrap();
        self.next = frame.seq.wrapping_add(1);
        (frame.seq, frame.plain)
    }
}

/// The sequence number and the first byte of each packet.
fn numbers(mut packets: &[u8]) -> Vec<(u8, u8)> {
    let mut numbers = Vec::new();
    while let [a, b, c, seq, rest @ ..] = packets {
        let length = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
        numbers.push((*seq, rest.first().copied().unwrap_or_default()));
        packets = &rest[length..];
    }
    numbers
}

#[test]
fn a_reply_has_the_numbers_that_it_has_directly() {
    on_each_server(|server| {
        let small = PrivateServer::start(server.kind(), &["--max-allowed-packet=1M"]).unwrap();
        let proxy = Proxy::start(small.addr(), &[]);
        for &algorithm in super::algorithms(server) {
            for (length, frames) in COMMANDS {
                let told = [None, Some(&proxy)].map(|proxy| {
                    let mut client = Framing::login(small.addr(), proxy, algorithm);
                    let mut payload = vec![COM_QUERY];
                    payload.extend(format!("SELECT length('{}')", "x".repeat(length)).as_bytes());
                    client.command(&payload, frames);
                    let (frame, packets) = client.frame();
                    (frame, numbers(&packets))
                });
                let [direct, proxied] = told;
                assert_eq!(proxied, direct, "{length} bytes in frames of {frames}");
            }
        }
    });
}

/// The server numbers its reply after a local file from the file's frames.
#[test]
fn a_reply_behind_a_local_file_has_the_numbers_that_it_has_directly() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        for &algorithm in super::algorithms(server) {
            for length in [100, 3_000, 70_000, 1 << 20] {
                let told = [None, Some(&proxy)].map(|proxy| {
                    let mut client = Framing::login(server.addr(), proxy, algorithm);
                    let table = "CREATE TEMPORARY TABLE told (word TEXT)";
                    let load = "LOAD DATA LOCAL INFILE 'words' INTO TABLE told";
                    let mut payload = vec![COM_QUERY];
                    payload.extend(table.as_bytes());
                    client.command(&payload, 20);
                    let created = client.frame();
                    payload.truncate(1);
                    payload.extend(load.as_bytes());
                    client.command(&payload, 7);
                    let asked = client.frame();
                    let seq = asked.1[3];
                    let file = "word\n".repeat(100_000);
                    let words = [encode(seq + 1, file.as_bytes()), encode(seq + 2, b"")].concat();
                    client.write(&words, length);
                    let ended = client.frame();
                    [created, asked, ended].map(|(frame, packets)| (frame, numbers(&packets)))
                });
                let [direct, proxied] = told;
                assert_eq!(proxied, direct, "a file in frames of {length} bytes");
            }
        }
    });
}

/// The sequence numbers of a reply's packets.
fn told(client: &mut WireClient, text: &str) -> Vec<u8> {
    let reply = client.query_reply(text).unwrap();
    reply.packets.iter().map(|packet| packet.seq).collect()
}

/// Served calls, and the commands after them, in frames of any length. The client checks the sequence numbers of frames strictly.
#[test]
fn owned_answers_have_the_numbers_that_they_have_directly() {
    on_each_server(|server| {
        let database = Database::classic(server, "numbers");
        let mut root = database.connect();
        root.ok("INSERT INTO follower VALUES (1, 2)");
        root.ok("INSERT INTO message (user_id, body) VALUES (2, 'a'), (2, 'b'), (2, 'c')");
        for &algorithm in super::algorithms(server) {
            let login = || database.login().with(algorithm | MULTI_STATEMENTS);
            let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
            let mut direct = WireClient::login(server.addr(), &login());
            let mut client = proxy.login(&login());
            for length in [1_000, 40, 7] {
                direct.stream.cut_frames(length);
                client.stream.cut_frames(length);
                for text in [
                    "CALL fetch_timeline_ids(1)",
                    super::TAIL,
                    "CALL fetch_timeline_ids2(1, 10)",
                    "SELECT COUNT(*) FROM fetch_timeline_tt",
                    "CALL fetch_timeline_ids(1); SELECT 1, 2; DO 1",
                    "CALL fetch_timeline_ids(1); CALL fetch_timeline_ids(2)",
                    "CALL fetch_timeline_ids(1)",
                    super::TAIL,
                ] {
                    let expected = told(&mut direct, text);
                    assert_eq!(
                        told(&mut client, text),
                        expected,
                        "{text} in {length} bytes"
                    );
                }
            }
            let counts = proxy.counts();
            assert!(counts.of("calls_owned") >= 12, "{counts:?}");
        }
    });
}
