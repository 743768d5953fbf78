//! The end: work in flight may finish, no new client is accepted, and a second signal does not wait.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::servers::{mariadb, on_each_server, wait_until_busy};
use crate::kit::wire_client::{COM_QUERY, Login};

#[test]
fn commands_and_transactions_in_flight_end_first() {
    on_each_server(|server| {
        let database = Database::empty(server, "process_drain");
        database.connect().ok("CREATE TABLE t (id int PRIMARY KEY)");
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            let proxy = Proxy::start(server.addr(), &[]);
            let mut idle = proxy.login(&Login::default());
            let silent = TcpStream::connect(proxy.addr()).unwrap();
            let mut sleeper = proxy.login(&Login::default());
            sleeper
                .send(&sleeper.query_payload(b"SELECT SLEEP(0.6), 'slept'", &[]))
                .unwrap();
            let mut writer = proxy.login(&database.login());
            writer.ok("BEGIN");
            writer.ok("INSERT INTO t VALUES (1)");
            // The transaction stays open after an error.
            writer.error("INSERT INTO t VALUES (1)");
            proxy.signal(signal);
            while TcpStream::connect(proxy.addr()).is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
            assert!(
                idle.command(&[0x0e]).is_err(),
                "a session at rest is closed"
            );
            let reply = sleeper.reply(COM_QUERY).unwrap();
            assert!(reply.raw.windows(5).any(|window| window == b"slept"));
            writer.ok("INSERT INTO t VALUES (2)");
            writer.ok("COMMIT");
            let ended = proxy.wait();
            assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
            assert!(ended.log.contains("stopping"), "{}", ended.log);
            assert!(!ended.log.contains("cut off"), "{}", ended.log);
            assert!(
                ended.output.contains("counts: sessions="),
                "{}",
                ended.output
            );
            assert_eq!(database.connect().column("SELECT COUNT(*) FROM t"), ["2"]);
            database.connect().ok("DELETE FROM t");
            drop(silent);
        }
    });
}

#[test]
fn what_does_not_end_in_time_is_cut_off() {
    let proxy = Proxy::configured(mariadb().addr(), "[limits]\ndrain_ms = 300", &[]);
    let mut sleeper = proxy.login(&Login::default());
    sleeper
        .send(&sleeper.query_payload(b"SELECT SLEEP(30)", &[]))
        .unwrap();
    wait_until_busy(mariadb().addr(), sleeper.greeting.thread_id, "SELECT SLEEP");
    let started = Instant::now();
    let (status, log) = proxy.terminate();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(
        (300..25_000).contains(&started.elapsed().as_millis()),
        "{:?}",
        started.elapsed()
    );
    assert!(log.contains("limits.drain_ms = 300"), "{log}");
    assert!(sleeper.reply(COM_QUERY).is_err());
}

#[test]
fn a_second_signal_does_not_wait() {
    let proxy = Proxy::start(mariadb().addr(), &[]);
    let mut sleeper = proxy.login(&Login::default());
    sleeper
        .send(&sleeper.query_payload(b"SELECT SLEEP(30)", &[]))
        .unwrap();
    wait_until_busy(mariadb().addr(), sleeper.greeting.thread_id, "SELECT SLEEP");
    proxy.signal(Signal::SIGTERM);
    proxy.wait_for_log("stopping");
    let started = Instant::now();
    proxy.signal(Signal::SIGINT);
    let ended = proxy.wait();
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
}

#[test]
fn the_counters_are_printed_when_asked_for() {
    let proxy = Proxy::start(mariadb().addr(), &[]);
    let mut clients: Vec<_> = (0..3).map(|_| proxy.login(&Login::default())).collect();
    clients[0].ok("DO 1");
    // Includes the check that Headwater listens, whose connection may still be open or not yet counted.
    while proxy.counts().of("sessions") < 4 {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(proxy.counts().of("sessions"), 4);
    assert_eq!(proxy.counts().of("calls_owned"), 0);
    assert_eq!(clients[1].column("SELECT 1"), ["1"]);
}

/// Only clients wait for a server that cannot be reached.
#[test]
fn a_start_in_front_of_a_silent_server_can_be_interrupted() {
    let silent = crate::kit::peer::Peer::start(|stage| stage.wait_for_end());
    let proxy = Proxy::start(silent.addr(), &[]);
    let started = Instant::now();
    let (status, log) = proxy.terminate();
    assert!(status.success(), "{log}");
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}
