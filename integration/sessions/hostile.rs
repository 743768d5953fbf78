//! A server, or an attacker on the way to it, that answers Headwater's internal queries with what no server should send:
//! the session that sent the query may suffer, no other one does, and nothing grows.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::stage::TAIL;
use crate::kit::database::Database;
use crate::kit::peer::{Peer, Stage};
use crate::kit::proxy::Proxy;
use crate::kit::random::Random;
use crate::kit::servers::{on_each_quiet_server, on_each_server};
use crate::kit::wire_client::WireClient;
use crate::kit::wire_client::packet::encode;
use crate::memory::warm;

/// Bytes after which even an endless stream ends.
const ENDLESS: usize = 192 * 1024 * 1024;
/// How long a client waits for the outcome of its session.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is sent in place of a reply.
#[derive(Clone, Copy, Debug)]
enum Mischief {
    Nothing,
    HalfAHeader,
    HalfAColumn,
    OutOfSequence,
    NoColumns,
    ColumnsBeyondCounting,
    EndlessColumns,
    EndlessRows,
    EndlessPacket,
    EndlessResults,
    ALongError,
    AFile,
    ATruncatedOk,
    Noise,
    SlowBytes,
}

const ALL: [Mischief; 15] = [
    Mischief::Nothing,
    Mischief::HalfAHeader,
    Mischief::HalfAColumn,
    Mischief::OutOfSequence,
    Mischief::NoColumns,
    Mischief::ColumnsBeyondCounting,
    Mischief::EndlessColumns,
    Mischief::EndlessRows,
    Mischief::EndlessPacket,
    Mischief::EndlessResults,
    Mischief::ALongError,
    Mischief::AFile,
    Mischief::ATruncatedOk,
    Mischief::Noise,
    Mischief::SlowBytes,
];

/// A column `id` of type bigint.
const COLUMN: &[u8] =
    b"\x03def\x00\x00\x00\x02id\x00\x0c\x3f\x00\x14\x00\x00\x00\x08\x00\x00\x00\x00\x00";
/// More results follow.
const OK_AND_MORE: &[u8] = &[0, 0, 0, 10, 0, 0, 0];

impl Mischief {
    fn play(self, to: &mut TcpStream) -> io::Result<()> {
        let again = |to: &mut TcpStream, piece: &[u8]| -> io::Result<()> {
            let pieces = piece.repeat((64 * 1024 / piece.len()).max(1));
            (0..ENDLESS / pieces.len()).try_for_each(|_| to.write_all(&pieces))
        };
        match self {
            Mischief::Nothing => Ok(()),
            Mischief::HalfAHeader => to.write_all(&[7, 0]),
            Mischief::HalfAColumn => {
                to.write_all(&[encode(1, &[1]), vec![0xff, 0, 0, 2, 3, b'd']].concat())
            }
            Mischief::OutOfSequence => {
                to.write_all(&[encode(77, &[1]), encode(3, COLUMN)].concat())
            }
            Mischief::NoColumns => to.write_all(&encode(1, &[0xfe, 0, 0, 2, 0])),
            Mischief::ColumnsBeyondCounting => to.write_all(&encode(
                1,
                &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            )),
            Mischief::EndlessColumns => {
                to.write_all(&encode(1, &[0xfd, 0xff, 0xff, 0xff]))?;
                again(to, &encode(2, COLUMN))
            }
            Mischief::EndlessRows => {
                to.write_all(&[encode(1, &[1]), encode(2, COLUMN)].concat())?;
                to.write_all(&encode(3, &[0xfe, 0, 0, 2, 0]))?;
                again(to, &encode(4, b"\x0242"))
            }
            Mischief::EndlessPacket => {
                to.write_all(&encode(1, &[1]))?;
                let part = [&[0xff, 0xff, 0xff, 2][..], &vec![b'x'; 0xff_ffff]].concat();
                (0..ENDLESS / part.len()).try_for_each(|_| to.write_all(&part))
            }
            Mischief::EndlessResults => again(to, &encode(1, OK_AND_MORE)),
            Mischief::ALongError => {
                let message = vec![b'e'; 8 * 1024 * 1024];
                to.write_all(&encode(1, &[b"\xff\x51\x04#HY000", &message[..]].concat()))
            }
            Mischief::AFile => to.write_all(&encode(1, b"\xfb/etc/hostname")),
            Mischief::ATruncatedOk => to.write_all(&encode(1, &[0, 0])),
            Mischief::Noise => {
                let mut random = Random(7);
                let noise = std::iter::repeat_with(|| random.below(256) as u8);
                to.write_all(&noise.take(100_000).collect::<Vec<u8>>())
            }
            Mischief::SlowBytes => encode(1, &[1])
                .iter()
                .chain(&encode(2, COLUMN))
                .try_for_each(|byte| {
                    thread::sleep(Duration::from_millis(50));
                    to.write_all(&[*byte])
                }),
        }
    }
}

/// What the next connection that sends these words receives.
type Armed = Arc<Mutex<Option<(Mischief, &'static str)>>>;

fn arm(armed: &Armed, mischief: Mischief, words: &'static str) {
    *armed.lock().unwrap_or_else(PoisonError::into_inner) = Some((mischief, words));
}

fn is_armed(armed: &Armed) -> bool {
    let waiting = armed.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.is_some()
}

/// A relay to the server that misbehaves on connections whose login contains this name.
fn road(server: SocketAddr, armed: &Armed, name: &'static str) -> Peer {
    let armed = Arc::clone(armed);
    Peer::start(move |stage| carry(stage, server, &armed, name))
}

fn carry(stage: &mut Stage, server: SocketAddr, armed: &Armed, name: &str) -> io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    server.set_nodelay(true)?;
    let (mut back, mut client) = (server.try_clone()?, stage.stream.try_clone()?);
    let spoiled = Arc::new(AtomicBool::new(false));
    let silent = Arc::clone(&spoiled);
    thread::spawn(move || -> io::Result<()> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let count = back.read(&mut bytes)?;
            if silent.load(Ordering::Acquire) {
                return Ok(());
            }
            if count == 0 {
                return client.shutdown(std::net::Shutdown::Both);
            }
            client.write_all(&bytes[..count])?;
        }
    });
    let mut bytes = vec![0; 64 * 1024];
    let mut named = false;
    loop {
        let count = stage.stream.read(&mut bytes)?;
        if count == 0 {
            return server.shutdown(std::net::Shutdown::Both);
        }
        let said = &bytes[..count];
        let holds = |words: &str| {
            let mut windows = said.windows(words.len());
            windows.any(|window| window == words.as_bytes())
        };
        named |= holds(name);
        let mut waiting = armed.lock().unwrap_or_else(PoisonError::into_inner);
        let mischief = waiting.take_if(|(_, words)| named && holds(words));
        drop(waiting);
        if let Some((mischief, _)) = mischief {
            spoiled.store(true, Ordering::Release);
            let played = mischief.play(&mut stage.stream);
            server.shutdown(std::net::Shutdown::Both)?;
            stage.stream.shutdown(std::net::Shutdown::Both)?;
            return played;
        }
        server.write_all(said)?;
    }
}

/// A client whose call or follow-up SELECT meets each kind of mischief, and another client that must not notice.
fn each_kind(words: &'static str, before: &[&str], then: &str, deceived: impl Fn(&[u8]) -> bool) {
    on_each_server(|server| {
        let database = Database::classic(server, "hostile");
        let mut root = database.connect();
        root.ok("INSERT INTO follower VALUES (1, 2), (1, 3)");
        root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (20, 3, 'twenty')");
        let armed = Armed::default();
        let road = road(server.addr(), &armed, "root");
        let proxy = Proxy::start(road.addr(), &[]);
        let mut neighbour = proxy.login(&database.login());
        let asks = |client: &mut WireClient| {
            client.ok("CALL fetch_timeline_ids(1)");
            client.column("SELECT id FROM fetch_timeline_tt ORDER BY id")
        };
        assert_eq!(asks(&mut neighbour), ["10", "20"]);
        let resident = proxy.resident_kib();
        for mischief in ALL {
            eprintln!("{mischief:?}");
            let mut victim = proxy.login(&database.login());
            for statement in before {
                victim.query(statement);
            }
            arm(&armed, mischief, words);
            victim
                .stream
                .tcp()
                .set_read_timeout(Some(PATIENCE))
                .unwrap();
            victim.send(&[b"\x03", then.as_bytes()].concat()).unwrap();
            let begun = Instant::now();
            let mut told = Vec::new();
            // A session that ends within a packet may be cut off.
            let _ = (&mut victim.stream)
                .take(16 * 1024 * 1024)
                .read_to_end(&mut told);
            assert!(
                begun.elapsed() < PATIENCE,
                "{mischief:?}: it waits for ever"
            );
            assert!(!is_armed(&armed), "{mischief:?} was not played: {told:?}");
            assert!(!deceived(&told), "{mischief:?}: told {told:?}");
            assert_eq!(asks(&mut neighbour), ["10", "20"], "{mischief:?}");
            let grown = proxy.peak_kib().saturating_sub(resident);
            assert!(grown < 48 * 1024, "{mischief:?}: grew by {grown} KiB");
        }
        let counts = proxy.counts();
        assert!(counts.of("calls_owned") > ALL.len() as u64, "{counts:?}");
        let (status, log) = proxy.terminate();
        assert!(status.success(), "{log}");
    });
}

#[test]
fn nonsense_in_answer_to_a_lookup_ends_its_session_alone() {
    let answered = |told: &[u8]| told.get(4) == Some(&0);
    each_kind("message", &[], "CALL fetch_timeline_ids(1)", answered);
}

#[test]
fn nonsense_in_answer_to_a_tail_ends_its_session_alone() {
    let call = "CALL fetch_timeline_ids(1)";
    // The client judges what the server sends, but it must not become messages.
    let a_message = |told: &[u8]| told.windows(6).any(|window| window == b"twenty");
    each_kind("message", &[call], TAIL, a_message);
}

/// No other session logs in with this name.
const SERVICE: &str = "hw_told_nonsense";

/// Part of the name of each of the log's first files: it appears in the request for the log.
const LOG_FILE: &str = ".00000";

/// The service account's queries: for the procedures, for the end of the log, for rows to cache, and for the log itself.
#[test]
fn nonsense_in_answer_to_the_service_account_harms_no_session() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "hostile_service");
        let mut root = database.connect();
        root.ok("INSERT INTO message (id, user_id, body) VALUES (10, 2, 'ten'), (20, 3, 'twenty')");
        root.ok(&format!(
            "CREATE USER IF NOT EXISTS {SERVICE}@'%' IDENTIFIED BY ''"
        ));
        root.ok(&format!("GRANT ALL ON *.* TO {SERVICE}@'%'"));
        let armed = Armed::default();
        let road = road(server.addr(), &armed, SERVICE);
        let settings = format!(
            "[limits]\nrecheck_ms = 200\ncheck_ms = 1000\n[binlog]\nevent_bytes = 1048576\n\
             [[definition]]\ndatabase = \"{}\"\n",
            database.name()
        );
        let proxy = Proxy::configured(road.addr(), &settings, &["--service-user", SERVICE]);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&database.login());
        root.ok("INSERT INTO follower VALUES (1, 2), (1, 3)");
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        let resident = proxy.resident_kib();
        let position = match server.is_mariadb() {
            true => "SHOW MASTER STATUS",
            false => "SHOW BINARY LOG STATUS",
        };
        let mut reader = 100;
        // After each failure, Headwater waits longer before it follows the log again.
        let log = [
            Mischief::EndlessPacket,
            Mischief::ALongError,
            Mischief::ATruncatedOk,
            Mischief::HalfAHeader,
            Mischief::Noise,
        ];
        for (words, kinds) in [
            ("SHOW CREATE PROCEDURE", &ALL[..]),
            (position, &ALL),
            ("GROUP_CONCAT", &ALL),
            (LOG_FILE, &log),
        ] {
            for &mischief in kinds {
                eprintln!("{mischief:?} in answer to {words}");
                arm(&armed, mischief, words);
                if words == LOG_FILE {
                    // The stream starts again.
                    let stream = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'";
                    for id in root.column(stream) {
                        root.query(&format!("KILL {id}"));
                    }
                }
                let begun = Instant::now();
                loop {
                    // A reader that no call has requested yet.
                    reader += 1;
                    root.ok(&format!(
                        "INSERT INTO follower VALUES ({reader}, 2), ({reader}, 3)"
                    ));
                    client.ok(&format!("CALL fetch_timeline_ids({reader})"));
                    let ids = client.column("SELECT id FROM fetch_timeline_tt ORDER BY id");
                    assert_eq!(ids, ["10", "20"], "{mischief:?}");
                    if !is_armed(&armed) {
                        break;
                    }
                    assert!(
                        begun.elapsed() < PATIENCE,
                        "{mischief:?}: not asked\n{}",
                        proxy.log()
                    );
                    thread::sleep(Duration::from_millis(20));
                }
                let grown = proxy.peak_kib().saturating_sub(resident);
                // 64 MiB, loaded into a buffer that doubles.
                assert!(grown < 128 * 1024, "{mischief:?}: grew by {grown} KiB");
            }
        }
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        root.ok(&format!("DROP USER {SERVICE}@'%'"));
        let (status, log) = proxy.terminate();
        assert!(status.success(), "{log}");
        assert!(!log.contains("panicked"), "{log}");
    });
}
