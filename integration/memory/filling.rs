//! How memory is filled: at startup, by calls, and by many concurrent calls.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::PrivateServer;

use super::{CLASSIC, prepare};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};

const READERS: u64 = 300;
const AUTHORS: u64 = 200;
const FOLLOWS: u64 = 30;

/// Readers have ids from 1 on, and each follows authors with ids from 1,001 on; each author wrote 1 to 200 messages.
fn fill(server: &PrivateServer) -> Login {
    let login = prepare(server.addr());
    let mut root = WireClient::login(server.addr(), &login);
    let author = |number: u64| 1_001 + number % AUTHORS;
    let follows: Vec<String> = (1..=READERS)
        .flat_map(|reader| {
            (0..FOLLOWS).map(move |n| format!("({reader},{})", author(reader * 7 + n * 3)))
        })
        .collect();
    root.ok(&format!(
        "INSERT IGNORE INTO follower VALUES {}",
        follows.join(",")
    ));
    // One author's messages alternate with those of the others, some of whom write seldom.
    let messages: Vec<String> = (1..=20_000_u64)
        .map(|n| format!("({},'x')", author(n * n % 997 % AUTHORS)))
        .collect();
    root.ok(&format!(
        "INSERT INTO message (user_id, body) VALUES {}",
        messages.join(",")
    ));
    root.rows("ANALYZE TABLE message, follower");
    login
}

const IDS: &str = "SELECT id FROM fetch_timeline_tt ORDER BY id DESC";

/// The page that a call writes to its result table.
fn page(client: &mut WireClient, reader: u64) -> Vec<String> {
    client.ok(&format!("CALL fetch_timeline_ids({reader})"));
    client.column(IDS)
}

/// Every reader's page, as the server's own procedure makes it.
fn pages(server: &PrivateServer, login: &Login) -> Vec<Vec<String>> {
    let mut root = WireClient::login(server.addr(), login);
    (1..=READERS)
        .map(|reader| page(&mut root, reader))
        .collect()
}

/// Checks that every reader's page through Headwater is the expected one.
fn tells(proxy: &Proxy, login: &Login, expected: &[Vec<String>]) {
    let mut client = proxy.login(login);
    for (reader, expected) in (1..).zip(expected) {
        assert_eq!(&page(&mut client, reader), expected, "reader {reader}");
    }
}

#[test]
fn with_preload_the_first_call_is_answered_from_memory() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = fill(server);
            let expected = pages(server, &login);
            // Does not depend on how busy the machine is.
            let flags = [ROOT_SERVICE, &["--preload"]].concat();
            let proxy = Proxy::configured(server.addr(), "[freshness]\nwait_ms = 10000\n", &flags);
            proxy.wait_for_log(&format!("preload of {CLASSIC}: {READERS} readers, "));
            tells(&proxy, &login, &expected);
            let counts = proxy.counts();
            assert_eq!(counts.of("calls_from_memory"), READERS, "{}", proxy.log());
        },
    );
}

#[test]
fn a_preload_ends_where_memory_does() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = fill(server);
            let expected = pages(server, &login);
            let settings = "[index]\nmemory_bytes = 60000\npreload = true\n";
            let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
            proxy.wait_for_log(
                "then memory was full (60000 bytes, by index.memory_bytes and memory.limit)",
            );
            tells(&proxy, &login, &expected);
        },
    );
}

/// The number of rows that the server has read.
fn rows_read(root: &mut WireClient) -> u64 {
    let rows = root.rows("SHOW GLOBAL STATUS LIKE 'Handler_read_%'");
    let counts = rows
        .iter()
        .map(|row| row[1].as_deref().unwrap().parse::<u64>().unwrap());
    counts.sum()
}

/// Concurrent cold readers: each gets the right answer, and the server reads no more rows than for direct calls.
#[test]
fn many_cold_readers_at_once_do_not_stampede() {
    on_servers_of_its_own(
        |_| &["--max-connections=1000"],
        |server| {
            let login = fill(server);
            let mut root = WireClient::login(server.addr(), &login);
            let before = rows_read(&mut root);
            let expected = pages(server, &login);
            let direct = rows_read(&mut root) - before;

            let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
            proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            // This reader follows no author; Headwater follows the log from here on.
            let mut client = proxy.login(&login);
            super::warm(&proxy, &mut client, "CALL fetch_timeline_ids(999999)");
            let before = rows_read(&mut root);
            let remembered = proxy.counts().of("calls_from_memory");
            let (all, begun) = (Barrier::new(expected.len()), Instant::now());
            thread::scope(|scope| {
                for (reader, expected) in (1..).zip(&expected) {
                    let (all, proxy, login) = (&all, &proxy, &login);
                    let mut client = proxy.login(login);
                    scope.spawn(move || {
                        all.wait();
                        assert_eq!(&page(&mut client, reader), expected, "reader {reader}");
                    });
                }
            });
            assert!(begun.elapsed() < Duration::from_secs(60));
            let through = rows_read(&mut root) - before;
            let remembered = proxy.counts().of("calls_from_memory") - remembered;
            eprintln!(
                "rows read: direct {direct}, through {through}; {remembered} of {READERS} from memory"
            );
            assert!(
                through <= direct,
                "{through} rows read in place of {direct}"
            );
            assert_eq!(proxy.counts().relayed(), 0, "{}", proxy.log());
        },
    );
}

/// A list that takes up most of memory is not loaded again and again.
#[test]
fn a_reader_who_follows_too_many_is_looked_up() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let login = fill(server);
            let mut root = WireClient::login(server.addr(), &login);
            let follows: Vec<String> = (1..=20_000)
                .map(|author| format!("(9000,{author})"))
                .collect();
            root.ok(&format!(
                "INSERT INTO follower VALUES {}",
                follows.join(",")
            ));
            let settings = "[index]\nmemory_bytes = 2000000\n";
            let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
            proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
            let mut client = proxy.login(&login);
            super::warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
            let before = proxy.counts().of("calls_from_memory");
            let expected = page(&mut root, 9_000);
            assert_eq!(page(&mut client, 9_000), expected);
            // Headwater reads the list once, up to the length limit.
            let begun = rows_read(&mut root);
            thread::sleep(Duration::from_secs(3));
            let read = rows_read(&mut root) - begun;
            assert!(read < 40_000, "{read} rows read in quiet moments");
            assert_eq!(page(&mut client, 9_000), expected);
            assert_eq!(proxy.counts().of("calls_from_memory"), before);
            super::warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        },
    );
}
