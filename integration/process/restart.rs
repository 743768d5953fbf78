//! Many clients that retry nothing, while what they are connected to restarts: which of them see an error.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::kit::database::Database;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, settings_file};
use crate::kit::servers::{on_each_server, on_servers_of_its_own};
use crate::kit::wire_client::{COM_QUERY, Login, WireClient};

/// What a client repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Connects, sends one query, disconnects.
    Visitor,
    /// Sends queries on one connection, many times a second.
    Busy,
    /// Sends a query on one connection every other second.
    Quiet,
    /// Writes in transactions of several statements, on one connection.
    Writer,
    /// Queries what it has set, on one connection.
    Setter,
}

/// The number of clients of each kind: two hundred in total.
const CLIENTS: [(Kind, usize); 5] = [
    (Kind::Visitor, 80),
    (Kind::Busy, 40),
    (Kind::Quiet, 20),
    (Kind::Writer, 30),
    (Kind::Setter, 30),
];
/// The pause between two statements.
const PAUSE: Duration = Duration::from_millis(100);

/// The results of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Connections that failed, or that ended before their login was complete.
    refused: u64,
    /// Commands that failed outside transactions: as a rule the first one after the end of the connection.
    between: u64,
    /// Commands that failed within a transaction, which is lost with them.
    within: u64,
    answered: u64,
}

impl Seen {
    fn plus(self, other: Seen) -> Seen {
        Seen {
            refused: self.refused + other.refused,
            between: self.between + other.between,
            within: self.within + other.within,
            answered: self.answered + other.answered,
        }
    }
}

/// Runs one statement; anything but a result is an error.
fn asks(client: &mut WireClient, sql: &str, seen: &mut Seen) -> bool {
    let reply = client.query_reply(sql);
    let answered = reply.is_ok_and(|reply| reply.packets[0].first_byte() != Some(0xff));
    seen.answered += u64::from(answered);
    answered
}

/// The state that all clients of a run share.
#[derive(Debug, Default)]
struct Run {
    stop: AtomicBool,
    /// Clients that stay on one connection and have received a reply on it.
    settled: AtomicUsize,
}

impl Run {
    fn ends(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until each client that stays has its connection: one that is still logging in would be refused instead.
    #[track_caller]
    fn wait_for_settled(&self) {
        let kinds = CLIENTS.iter().filter(|(kind, _)| *kind != Kind::Visitor);
        let all: usize = kinds.map(|(_, clients)| clients).sum();
        let deadline = patience();
        while self.settled.load(Ordering::Relaxed) < all {
            assert!(Instant::now() < deadline, "{self:?} of {all}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Ends a run and waits for its clients, also after a failure within the run.
struct End<'a>(&'a Run);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

fn connects(addr: SocketAddr, login: &Login, seen: &mut Seen) -> Option<WireClient> {
    let client: Option<WireClient> = WireClient::try_login(addr, login)
        .and_then(|login| login.map_err(|_| io::ErrorKind::Other.into()))
        .ok();
    seen.refused += u64::from(client.is_none());
    client
}

/// Queries on one connection, and on a new one after each error. One more query at the end of the run
/// meets the end of the connection, however long the client had to wait.
fn stays(
    (addr, login): (SocketAddr, &Login),
    (kind, number): (Kind, usize),
    run: &Run,
    seen: &mut Seen,
) {
    let mut settled = false;
    'connections: while !run.ends() {
        let Some(mut client) = connects(addr, login, seen) else {
            thread::sleep(PAUSE);
            continue;
        };
        if kind == Kind::Setter && !asks(&mut client, &format!("SET @own = {number}"), seen) {
            seen.between += 1;
            continue;
        }
        loop {
            let last = run.ends();
            let text: &[&str] = match kind {
                Kind::Writer => &[
                    "BEGIN",
                    "INSERT INTO t (a) VALUES (1)",
                    "INSERT INTO t (a) VALUES (2)",
                    "COMMIT",
                ],
                Kind::Setter => &["SELECT @own"],
                _ => &["SELECT 1"],
            };
            for (at, sql) in text.iter().enumerate() {
                if !asks(&mut client, sql, seen) {
                    match at {
                        0 => seen.between += 1,
                        _ => seen.within += 1,
                    }
                    continue 'connections;
                }
                if kind == Kind::Writer {
                    thread::sleep(PAUSE / 4);
                }
            }
            if !settled {
                run.settled.fetch_add(1, Ordering::Relaxed);
                settled = true;
            }
            if last {
                break;
            }
            thread::sleep(if kind == Kind::Quiet {
                PAUSE * 20
            } else {
                PAUSE
            });
        }
    }
}

fn visits(addr: SocketAddr, login: &Login, run: &Run, seen: &mut Seen) {
    while !run.ends() {
        if let Some(mut client) = connects(addr, login, seen) {
            if !asks(&mut client, "SELECT 1", seen) {
                seen.between += 1;
            }
            let _ = client.send(&[1]);
        }
        thread::sleep(PAUSE * 3);
    }
}

/// The results of all clients during `restart`.
fn seen_while(addr: SocketAddr, login: &Login, restart: impl FnOnce()) -> Vec<(Kind, Vec<Seen>)> {
    let run = Run::default();
    thread::scope(|scope| {
        let run = &run;
        let started: Vec<(Kind, Vec<_>)> = CLIENTS
            .iter()
            .map(|&(kind, clients)| {
                let client = move |number| {
                    scope.spawn(move || {
                        let mut seen = Seen::default();
                        match kind {
                            Kind::Visitor => visits(addr, login, run, &mut seen),
                            _ => stays((addr, login), (kind, number), run, &mut seen),
                        }
                        seen
                    })
                };
                (kind, (0..clients).map(client).collect())
            })
            .collect();
        let end = End(run);
        run.wait_for_settled();
        restart();
        thread::sleep(Duration::from_millis(2_500));
        drop(end);
        let ended = started.into_iter().map(|(kind, clients)| {
            let seen = clients.into_iter().map(|client| client.join().unwrap());
            (kind, seen.collect())
        });
        ended.collect()
    })
}

fn say(of: &str, seen: &[(Kind, Vec<Seen>)]) {
    for (kind, clients) in seen {
        let all = clients.iter().copied().fold(Seen::default(), Seen::plus);
        eprintln!("{of}: {} of {kind:?}: {all:?}", clients.len());
    }
}

/// The sums over the clients of this kind.
fn of(kind: Kind, seen: &[(Kind, Vec<Seen>)]) -> Seen {
    let (_, clients) = seen.iter().find(|(it, _)| *it == kind).unwrap();
    clients.iter().copied().fold(Seen::default(), Seen::plus)
}

const TABLE: &str = "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, a int)";

#[test]
fn of_200_clients_none_sees_an_error_that_a_restart_of_the_server_would_not_bring() {
    on_each_server(|server| {
        let database = Database::empty(server, "restart");
        database.connect().ok(TABLE);
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("takeover.sock");
        let (_settings, path) = settings_file("[limits]\ndrain_ms = 10000\n");
        let flags = [
            "--takeover-socket",
            control.to_str().unwrap(),
            "--config",
            &path,
        ];
        let first = Proxy::start(server.addr(), &flags);
        let mut second = None;
        let seen = seen_while(first.addr(), &database.login(), || {
            let next = first.beside(&["--takeover"]);
            next.wait_for_log("taken over from process");
            second = Some(next);
            // Longer than the time that sessions get to end.
            thread::sleep(Duration::from_millis(10_500));
        });
        say("through Headwater", &seen);
        let ended = first.wait();
        assert!(ended.status.success(), "{}", ended.log);
        // No new client is refused, and no transaction is lost.
        for (kind, clients) in &seen {
            for seen in clients {
                assert_eq!((seen.refused, seen.within), (0, 0), "{kind:?}: {seen:?}");
                assert!(seen.answered > 0 && seen.between <= 1, "{kind:?}: {seen:?}");
            }
        }
        assert_eq!(of(Kind::Visitor, &seen).between, 0);
        drop(second);
    });
}

#[test]
fn the_same_clients_see_more_where_their_server_is_restarted() {
    on_servers_of_its_own(
        |_| &["--max-connections=400"],
        |server| {
            let addr = server.addr();
            let mut root = WireClient::connect(addr);
            root.ok("CREATE DATABASE restart");
            let login = Login::default().database("restart");
            WireClient::login(addr, &login).ok(TABLE);
            // What an idle client receives.
            let seen = seen_while(addr, &login, || {
                server.restart().unwrap();
            });
            say("directly", &seen);
            eprintln!("directly, an idle one: {:?}", root.reply(COM_QUERY));
            assert!(of(Kind::Visitor, &seen).refused > 0);
            for kind in [Kind::Busy, Kind::Quiet, Kind::Setter] {
                let all = of(kind, &seen);
                let clients = CLIENTS.iter().find(|(it, _)| *it == kind).unwrap().1;
                assert!(all.between >= u64::try_from(clients).unwrap(), "{kind:?}");
            }
        },
    );
}
