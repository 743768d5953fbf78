//! Ten thousand readers come back behind a promotion: memory is unconfirmed then, and each page is loaded when it is first asked for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::ServerKind;

use crate::kit::database::classic_on;
use crate::kit::replica::wait_for;
use crate::kit::wire_client::{Login, WireClient};
use crate::{ClusterAim, DATABASE, FigureTable, PATIENCE, promote, replica_of, start, start_proxy};

const READERS: u64 = 10_000;
const MESSAGES: u64 = 200_000;
const CONNECTIONS: u64 = 8;
/// Of so many calls in a row it is looked whence they were answered.
const WINDOW: Duration = Duration::from_millis(250);

pub(crate) fn measure(kind: ServerKind, rounds: u64, table: &mut FigureTable) {
    let [mut first, mut remembered] = [const { Vec::new() }; 2];
    for _ in 0..rounds {
        let mut primary = start(kind);
        let replica = replica_of(&primary, 2);
        let login = fill(primary.addr());
        wait_for(
            &replica,
            &format!("SELECT COUNT(*) = {MESSAGES} FROM {DATABASE}.message"),
        );
        let proxy = start_proxy(&[primary.addr(), replica.addr()], &login);
        for _ in 0..2 {
            connect_readers(
                &proxy.addr().to_string(),
                &login,
                |_| READERS / CONNECTIONS,
                &AtomicBool::new(false),
            );
        }
        primary.kill();
        promote(&replica);
        let promoted = Instant::now();
        let (over, address) = (AtomicBool::new(false), proxy.addr().to_string());
        thread::scope(|scope| {
            scope.spawn(|| connect_readers(&address, &login, |_| u64::MAX, &over));
            let counted = || {
                let counts = proxy.counts();
                ["calls_owned", "calls_from_memory"].map(|name| counts.of(name))
            };
            let mut before = counted();
            let mut answered = None;
            loop {
                assert!(promoted.elapsed() < PATIENCE, "{}", proxy.log());
                thread::sleep(if answered.is_none() {
                    Duration::from_millis(10)
                } else {
                    WINDOW
                });
                let now = counted();
                let [calls, from_memory] = [0, 1].map(|at: usize| now[at] - before[at]);
                let took = promoted.elapsed().as_secs_f64();
                if answered.is_none() && calls > 0 {
                    answered = Some(took);
                    first.push(took);
                    before = now;
                } else if answered.is_some() {
                    if calls > 100 && from_memory * 100 >= calls * 95 {
                        remembered.push(took);
                        break;
                    }
                    before = now;
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        println!(
            "compared with the new server: {:?}",
            proxy.counts().of("memory_different")
        );
    }
    let name = kind.name();
    table.add(
        &format!("{name}: from promoted to the first answer, {READERS} readers come, s"),
        first,
        ClusterAim::Within(0.5),
    );
    table.add(
        &format!("{name}: from promoted to 95 of 100 answers from memory, s"),
        remembered,
        ClusterAim::Within(5.0),
    );
}

/// So many readers come on each connection, in turn; each connection is made again where it was lost.
fn connect_readers(
    proxy: &str,
    login: &Login,
    turns: impl Fn(u64) -> u64 + Sync,
    over: &AtomicBool,
) {
    let proxy = proxy.parse().unwrap();
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            let (next, turns) = (&next, &turns);
            scope.spawn(move || {
                let mut client = None;
                let mut turn = 0;
                while turn < turns(number) && !over.load(Ordering::Relaxed) {
                    let Some(connected) = &mut client else {
                        client = WireClient::try_login(proxy, login)
                            .ok()
                            .and_then(Result::ok);
                        continue;
                    };
                    let reader = 1 + next.fetch_add(1, Ordering::Relaxed) % READERS;
                    let call = format!("CALL fetch_timeline_ids({reader})");
                    if connected.query_reply(&call).is_err() {
                        client = None;
                    }
                    turn += 1;
                }
            });
        }
    });
}

/// Each reader follows about 43 of 10,000 users, who wrote 200,000 messages.
fn fill(server: std::net::SocketAddr) -> Login {
    let login = classic_on(server, DATABASE);
    let mut root = WireClient::login(server, &login);
    root.ok("CREATE TABLE digits (d INT PRIMARY KEY)");
    root.ok("INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)");
    root.ok(
        "CREATE TABLE numbers (n INT PRIMARY KEY) SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n \
         FROM digits a, digits b, digits c, digits e",
    );
    for k in 1..=43 {
        root.ok(&format!(
            "INSERT IGNORE INTO follower SELECT n + 1, 1 + (n * 31 + {k} * {k} * 97) % 10000 FROM numbers"
        ));
    }
    for part in 0..MESSAGES / 10_000 {
        root.ok(&format!(
            "INSERT INTO message (user_id, body) SELECT 1 + ((n + {part} * 10000) * 7919) % 10000, 'text' FROM numbers"
        ));
    }
    login
}
