//! Headwater before a delayed replica, and before a replica with several sources: memory answers exactly with what that server has made
//! readable.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{PrivateServer, ServerKind};

use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::quota::{Quota, from_memory};
use crate::kit::replica::{another, follow, from_now_on, wait_for};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::threads;
use crate::kit::wire_client::{Login, WireClient};
use crate::memory::linear::numbers;
use crate::memory::{CLASSIC, prepare, warm};

/// Each author has a range of ids, which grow in the order of the author's writes.
const PER_AUTHOR: u64 = 100_000_000;
/// The messages of each author on a page.
const N: usize = 20;
/// The pause between two messages of a writer.
const REST: Duration = Duration::from_millis(3);

/// Writes as this author until `stop` is set.
fn write(source: &PrivateServer, login: &Login, author: u64, stop: &AtomicBool, told: &AtomicU64) {
    let mut root = WireClient::login(source.addr(), login);
    let mut id = author * PER_AUTHOR;
    while !stop.load(Ordering::Relaxed) {
        id += 1;
        root.ok(&format!(
            "INSERT INTO message VALUES ({id}, {author}, 'text')"
        ));
        told.store(id, Ordering::SeqCst);
        thread::sleep(REST);
    }
}

/// The newest of this author's ids up to `most`, as many as a page has.
fn newest(ids: &BTreeSet<u64>, author: u64, most: u64) -> BTreeSet<u64> {
    let first = author * PER_AUTHOR;
    ids.range(first..=most).rev().take(N).copied().collect()
}

/// An author's newest id.
fn head(ids: &BTreeSet<u64>, author: u64) -> u64 {
    let own = ids.range(author * PER_AUTHOR..(author + 1) * PER_AUTHOR);
    own.last().copied().unwrap_or(author * PER_AUTHOR)
}

/// The ids that the server currently shows for each author, starting well before that author's newest id in `from`.
fn look(direct: &mut WireClient, authors: &[u64], from: &BTreeSet<u64>) -> BTreeSet<u64> {
    let parts: Vec<String> = authors
        .iter()
        .map(|author| {
            let first = head(from, *author).saturating_sub(2 * N as u64);
            format!("SELECT id FROM message WHERE user_id = {author} AND id > {first}")
        })
        .collect();
    numbers(&direct.column(&parts.join(" UNION ALL ")))
}

/// The newest id that the server currently shows for each author.
fn heads(direct: &mut WireClient, authors: &[u64]) -> BTreeSet<u64> {
    let parts: Vec<String> = authors
        .iter()
        .map(|author| {
            let none = author * PER_AUTHOR;
            format!("SELECT COALESCE(MAX(id), {none}) FROM message WHERE user_id = {author}")
        })
        .collect();
    numbers(&direct.column(&parts.join(" UNION ALL ")))
}

/// Checks that the page of reader 1 has each author's newest messages as of some moment between two reads of the server.
#[track_caller]
fn check(client: &mut WireClient, direct: &mut WireClient, authors: &[u64]) {
    let before = heads(direct, authors);
    client.ok("CALL fetch_timeline_ids(1)");
    // What was readable once the call was answered: this read comes before the session selects the ids.
    let after = look(direct, authors, &before);
    let answer = numbers(&client.column("SELECT id FROM fetch_timeline_tt"));
    for author in authors {
        let [least, own, most] = [&before, &answer, &after].map(|ids| head(ids, *author));
        assert!(
            least <= own,
            "stale: author {author} has {least}, and the answer {own}"
        );
        assert!(
            own <= most,
            "ahead: author {author} has {most}, and the answer {own}"
        );
        let expected = newest(&after, *author, own);
        assert_eq!(newest(&answer, *author, own), expected, "author {author}");
    }
}

/// The options of a replica with several applier threads.
fn parallel(kind: ServerKind) -> Vec<&'static str> {
    match kind {
        ServerKind::Mariadb => vec![
            "--log-slave-updates=ON",
            "--slave-parallel-threads=6",
            "--slave-parallel-mode=optimistic",
        ],
        ServerKind::Mysql => vec!["--replica-parallel-workers=4"],
    }
}

/// Starts Headwater before the replica, with a page of reader 1 in memory.
fn in_front(replica: &PrivateServer, login: &Login) -> Proxy {
    let settings = "[freshness]\nwait_ms = 10000\n[index]\nwait_ms = 10000\n";
    let proxy = Proxy::configured(replica.addr(), settings, ROOT_SERVICE);
    proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
    warm(
        &proxy,
        &mut proxy.login(login),
        "CALL fetch_timeline_ids(1)",
    );
    proxy
}

#[test]
fn a_replica_that_is_late_on_purpose_has_its_own_moment_in_every_answer() {
    const DELAY: Duration = Duration::from_secs(2);
    const PATIENCE: Duration = Duration::from_secs(120);
    on_servers_of_its_own(
        |_| &[],
        |source| {
            let source = &*source;
            let replica = another(source, &parallel(source.kind()));
            let delay = match source.kind() {
                ServerKind::Mariadb => "MASTER_DELAY",
                ServerKind::Mysql => "SOURCE_DELAY",
            };
            let options = format!("{}, {delay}={}", from_now_on(source), DELAY.as_secs());
            follow(&replica, source.port(), "root", &options);
            let login = prepare(source.addr());
            let mut root = WireClient::login(source.addr(), &login);
            root.ok("INSERT INTO follower VALUES (1, 2), (1, 3)");
            wait_for(
                &replica,
                &format!("SELECT COUNT(*) = 2 FROM {CLASSIC}.follower"),
            );
            let proxy = in_front(&replica, &login);
            let stop = AtomicBool::new(false);
            let told = [AtomicU64::new(0), AtomicU64::new(0)];
            let late = AtomicU64::new(0);
            let quota = Quota::new(&proxy, 100, 100, from_memory);
            let begun = Instant::now();
            thread::scope(|scope| {
                for (author, told) in [2, 3].into_iter().zip(&told) {
                    let (stop, login) = (&stop, &login);
                    scope.spawn(move || write(source, login, author, stop, told));
                }
                let readers = (0..2).map(|_| {
                    scope.spawn(|| {
                        let mut client = proxy.login(&login);
                        let mut direct = WireClient::login(replica.addr(), &login);
                        let enough =
                            || late.load(Ordering::Relaxed) > 100 || begun.elapsed() > PATIENCE;
                        while quota.take().is_some() || begun.elapsed() < 4 * DELAY || !enough() {
                            let told = told[0].load(Ordering::SeqCst);
                            check(&mut client, &mut direct, &[2, 3]);
                            // The source has committed newer messages that the replica has not applied, and the answer omits them.
                            let seen = numbers(&client.column("SELECT id FROM fetch_timeline_tt"));
                            late.fetch_add(u64::from(head(&seen, 2) < told), Ordering::Relaxed);
                        }
                    })
                });
                threads::wait_for(readers.collect(), &stop);
            });
            let counts = proxy.counts();
            eprintln!(
                "{late:?} answers behind the source; {}",
                proxy.counts_line()
            );
            assert!(late.load(Ordering::Relaxed) > 100, "{late:?}");
            assert_eq!(counts.relayed(), 0, "{}", proxy.log());
        },
    );
}

/// A source with its own GTIDs (on MariaDB: its own domain).
fn source(like: &PrivateServer, number: u64) -> PrivateServer {
    let options: &[&str] = match (like.kind(), number) {
        (ServerKind::Mariadb, 1) => &["--server-id=11", "--gtid-domain-id=1"],
        (ServerKind::Mariadb, _) => &["--server-id=12", "--gtid-domain-id=2"],
        (ServerKind::Mysql, 1) => &["--server-id=11"],
        (ServerKind::Mysql, _) => &["--server-id=12"],
    };
    match PrivateServer::start(like.kind(), options) {
        Ok(server) => server,
        Err(error) => panic!("{error}"),
    }
}

/// Adds this source to a replica, under that name.
fn follow_too(replica: &PrivateServer, source: &PrivateServer, name: &str) {
    let mut root = WireClient::connect(replica.addr());
    let (from, port) = (from_now_on(source), source.port());
    match replica.kind() {
        ServerKind::Mariadb => {
            root.ok(&format!(
                "CHANGE MASTER '{name}' TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='root', \
                 MASTER_PASSWORD='', {from}"
            ));
            root.ok(&format!("START SLAVE '{name}'"));
        }
        ServerKind::Mysql => {
            root.ok(&format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='root', \
                 SOURCE_PASSWORD='', GET_SOURCE_PUBLIC_KEY=1, {from} FOR CHANNEL '{name}'"
            ));
            root.ok(&format!("START REPLICA FOR CHANNEL '{name}'"));
        }
    }
}

/// The transactions of two sources interleave in any order, and a third writer writes on the replica itself.
#[test]
fn a_server_with_two_sources_has_both_in_every_answer() {
    on_servers_of_its_own(
        |mariadb| {
            if mariadb {
                &[
                    "--log-slave-updates=ON",
                    "--slave-parallel-threads=6",
                    "--slave-parallel-mode=optimistic",
                ]
            } else {
                &["--replica-parallel-workers=4"]
            }
        },
        |replica| {
            let replica = &*replica;
            let sources = [source(replica, 1), source(replica, 2)];
            let login = prepare(replica.addr());
            for (number, source) in sources.iter().enumerate() {
                prepare(source.addr());
                follow_too(replica, source, &format!("s{number}"));
            }
            let mut root = WireClient::login(replica.addr(), &login);
            for author in 2..=6 {
                root.ok(&format!("INSERT INTO follower VALUES (1, {author})"));
            }
            let proxy = in_front(replica, &login);
            let stop = AtomicBool::new(false);
            let told: [AtomicU64; 5] = [(); 5].map(|()| AtomicU64::new(0));
            let writers = [&sources[0], &sources[0], &sources[1], &sources[1], replica];
            let quota = Quota::new(&proxy, 1_500, 1_200, from_memory);
            thread::scope(|scope| {
                for (author, (source, told)) in (2..).zip(writers.into_iter().zip(&told)) {
                    let (stop, login) = (&stop, &login);
                    scope.spawn(move || write(source, login, author, stop, told));
                }
                let readers = (0..3).map(|_| {
                    scope.spawn(|| {
                        let mut client = proxy.login(&login);
                        let mut direct = WireClient::login(replica.addr(), &login);
                        while quota.take().is_some() {
                            check(&mut client, &mut direct, &[2, 3, 4, 5, 6]);
                        }
                    })
                });
                threads::wait_for(readers.collect(), &stop);
            });
            // In the end every message arrives.
            for (author, told) in (2_u64..).zip(&told) {
                let id = told.load(Ordering::SeqCst);
                wait_for(
                    replica,
                    &format!("SELECT COUNT(*) FROM {CLASSIC}.message WHERE id = {id}"),
                );
                assert!(
                    id > author * PER_AUTHOR + 50,
                    "author {author} wrote little: {id}"
                );
            }
            eprintln!("{}", proxy.counts_line());
            assert_eq!(proxy.counts().relayed(), 0, "{}", proxy.log());
        },
    );
}
