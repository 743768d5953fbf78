//! `make bench-clusters`: what several servers cost, and how long clients wait when the primary changes. Each ratio is of two sides that take
//! turns on one machine; of each figure the median is told, with the least and the most.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

// Its own stories are told by the stories' program.
#[path = "../../integration/kit/mod.rs"]
#[allow(unused_imports)]
mod kit;

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headwater::lab::private_server::{Kind, PrivateServer};

use crate::kit::cluster::{Cluster, Form};
use crate::kit::database::classic_on;
use crate::kit::how_many;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::replica::{another, follow, wait_for};
use crate::kit::wire_client::{Login, WireClient};

const CALL: &str = "CALL fetch_timeline_ids(1)";
const DATABASE: &str = "measured";
const CONNECTIONS: usize = 8;
const SESSIONS: usize = 1_000;
const TURN: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(30);

fn main() {
    // `cargo test --benches` asks for no measurements.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let rounds = how_many("HEADWATER_ROUNDS", 7);
    let mut table = Table::default();
    relaying(rounds, &mut table);
    on_a_primary(rounds, &mut table);
    for kind in [Kind::Mariadb, Kind::Mysql] {
        failing_over(kind, rounds.div_ceil(2), &mut table);
    }
    table.show();
}

/// Figures with what was aimed at.
#[derive(Default)]
struct Table(Vec<(String, Vec<f64>, Aim)>);

#[derive(Clone, Copy)]
enum Aim {
    AtLeast(f64),
    Within(f64),
}

impl Table {
    fn add(&mut self, figure: &str, values: Vec<f64>, aim: Aim) {
        let told = Table(vec![(figure.to_owned(), values.clone(), aim)]);
        told.show();
        self.0.push((figure.to_owned(), values, aim));
    }

    fn show(&self) {
        let mut out = std::io::stdout().lock();
        for (figure, values, aim) in &self.0 {
            let mut values = values.clone();
            values.sort_by(f64::total_cmp);
            let (least, most) = (values[0], values[values.len() - 1]);
            let median = values[values.len() / 2];
            let (met, aim) = match aim {
                Aim::AtLeast(aim) => (median >= *aim, format!("at least {aim}")),
                Aim::Within(aim) => (median <= *aim, format!("at most {aim}")),
            };
            let met = if met { "met" } else { "MISSED" };
            let rounds = values.len();
            let _ = writeln!(
                out,
                "{figure:70} {median:7.3} ({least:.3} to {most:.3}, {rounds} rounds), aim {aim}: {met}"
            );
        }
    }
}

/// How often a second so many clients get an answer to a statement, each on a connection of its own.
fn rate(proxy: &Proxy, login: &Login, statement: &str) -> f64 {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut client = proxy.login(login);
                while !stop.load(Ordering::Relaxed) {
                    client.ok(statement);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(TURN);
        stop.store(true, Ordering::Relaxed);
    });
    done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64()
}

/// The second side's rate by the first one's, in each round; whoever is first changes.
fn ratios(rounds: u64, mut rate: impl FnMut(usize) -> f64) -> Vec<f64> {
    let mut ratios = Vec::new();
    for round in 0..rounds as usize {
        let mut rates = [0.0; 2];
        for side in [round % 2, (round + 1) % 2] {
            rates[side] = rate(side);
        }
        eprintln!("{:.0} and {:.0} a second", rates[0], rates[1]);
        ratios.push(rates[1] / rates[0]);
    }
    ratios
}

/// Relaying with three upstreams, and with one.
fn relaying(rounds: u64, table: &mut Table) {
    let primary = start(Kind::Mariadb);
    let replicas = [2, 3].map(|number| replica_of(&primary, number));
    let login = prepare(primary.addr());
    let all = [primary.addr(), replicas[0].addr(), replicas[1].addr()];
    let sides = [&all[..1], &all].map(|servers| in_front_of(servers, &login));
    let ratios = ratios(rounds, |side| rate(&sides[side], &login, "DO 1"));
    table.add("relay, three upstreams / one", ratios, Aim::AtLeast(0.98));
}

/// CALL from memory on the primary of a group, and on a single server.
fn on_a_primary(rounds: u64, table: &mut Table) {
    let Some(group) = Cluster::start(Form::SinglePrimary, &[]) else {
        eprintln!("no MySQL here: `make servers` tells why");
        return;
    };
    let single = start(Kind::Mysql);
    let sides = [single.addr(), group.addr(0)].map(|server| {
        let login = prepare(server);
        let proxy = in_front_of(&[server], &login);
        remembers(&proxy, &login);
        (proxy, login)
    });
    let ratios = ratios(rounds, |side| {
        let (proxy, login) = &sides[side];
        let before = proxy.counts();
        let rate = rate(proxy, login, CALL);
        let after = proxy.counts();
        let [owned, remembered] =
            ["calls_owned", "calls_from_memory"].map(|name| after.of(name) - before.of(name));
        assert!(remembered * 100 >= owned * 95, "{remembered} of {owned}");
        rate
    });
    table.add(
        "CALL from memory, primary of a group / single server",
        ratios,
        Aim::AtLeast(0.9),
    );
}

/// A primary is killed with so many sessions on it, and its replica promoted.
fn failing_over(kind: Kind, rounds: u64, table: &mut Table) {
    let [mut closed, mut owned, mut remembered] = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let mut primary = start(kind);
        let replica = replica_of(&primary, 2);
        let login = prepare(primary.addr());
        let there = format!("SELECT COUNT(*) = 78 FROM {DATABASE}.message");
        wait_for(&replica, &there);
        let proxy = in_front_of(&[primary.addr(), replica.addr()], &login);
        remembers(&proxy, &login);
        thread::sleep(Duration::from_secs(1));
        let mut sessions: Vec<WireClient> = (0..SESSIONS).map(|_| proxy.login(&login)).collect();
        let killed = Instant::now();
        primary.kill();
        for session in &mut sessions {
            while session.read_packet().is_ok() {}
        }
        closed.push(killed.elapsed().as_secs_f64());
        let before = proxy.counts();
        promote(&replica);
        let promoted = Instant::now();
        let mut times = [None; 2];
        while times.contains(&None) {
            assert!(promoted.elapsed() < PATIENCE, "{}", proxy.log());
            // Whoever comes waits for the next primary.
            if let Ok(Ok(mut client)) = WireClient::try_login(proxy.addr(), &login) {
                client.ok(CALL);
            }
            let (took, now) = (promoted.elapsed().as_secs_f64(), proxy.counts());
            for (time, name) in times.iter_mut().zip(["calls_owned", "calls_from_memory"]) {
                if time.is_none() && now.of(name) > before.of(name) {
                    *time = Some(took);
                }
            }
        }
        owned.extend(times[0]);
        remembered.extend(times[1]);
    }
    let name = kind.name();
    let figure = |what: &str| format!("{name}: {what}, s");
    let ended = format!("{SESSIONS} sessions on a primary that is killed are ended");
    table.add(&figure(&ended), closed, Aim::Within(3.0));
    table.add(
        &figure("from promoted to the first owned call"),
        owned,
        Aim::Within(1.0),
    );
    table.add(
        &figure("from promoted to the first answer from memory"),
        remembered,
        Aim::Within(2.0),
    );
}

fn options(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Mariadb => &["--log-slave-updates=ON", "--max-connections=1500"],
        Kind::Mysql => &[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--max-connections=1500",
        ],
    }
}

fn start(kind: Kind) -> PrivateServer {
    let server = PrivateServer::start(kind, options(kind));
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    let forget = match kind {
        Kind::Mariadb => "RESET MASTER",
        Kind::Mysql => "RESET BINARY LOGS AND GTIDS",
    };
    WireClient::connect(server.addr()).ok(forget);
    server
}

/// A replica that refuses writes.
fn replica_of(primary: &PrivateServer, number: u32) -> PrivateServer {
    let kind = primary.kind();
    let number = format!("--server-id={number}");
    let replica = another(primary, &[options(kind), &[number.as_str()]].concat());
    let (statements, how): (&[&str], _) = match kind {
        Kind::Mariadb => (
            &[
                "RESET MASTER",
                "SET GLOBAL gtid_slave_pos = ''",
                "SET GLOBAL read_only = 1",
            ],
            "MASTER_USE_GTID=slave_pos",
        ),
        Kind::Mysql => (
            &[
                "RESET BINARY LOGS AND GTIDS",
                "SET GLOBAL super_read_only = 1",
            ],
            "SOURCE_AUTO_POSITION=1",
        ),
    };
    let mut root = WireClient::connect(replica.addr());
    for statement in statements {
        root.ok(statement);
    }
    follow(&replica, primary.port(), "root", how);
    replica
}

fn promote(replica: &PrivateServer) {
    let statements = match replica.kind() {
        Kind::Mariadb => ["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"],
        Kind::Mysql => [
            "STOP REPLICA",
            "RESET REPLICA ALL",
            "SET GLOBAL read_only = 0",
        ],
    };
    let mut root = WireClient::connect(replica.addr());
    for statement in statements {
        root.ok(statement);
    }
}

/// The classic tables, with two messages of each of 39 authors whom reader 1 follows.
fn prepare(server: SocketAddr) -> Login {
    let login = classic_on(server, DATABASE);
    let mut root = WireClient::login(server, &login);
    for author in 2..=40 {
        root.ok(&format!("INSERT INTO follower VALUES (1, {author})"));
        root.ok(&format!(
            "INSERT INTO message (user_id, body) VALUES ({author}, 'text'), ({author}, 'text')"
        ));
    }
    login
}

fn in_front_of(servers: &[SocketAddr], login: &Login) -> Proxy {
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let mut flags = ROOT_SERVICE.to_vec();
    for server in &servers {
        flags.extend(["--upstream", server]);
    }
    let proxy = Proxy::start_with(&flags, &[]);
    let database = login.database.as_deref().unwrap_or_default();
    proxy.wait_for_log(&format!("in database {database}: accelerated"));
    proxy
}

/// Calls until an answer comes from memory.
fn remembers(proxy: &Proxy, login: &Login) {
    let (begun, before) = (Instant::now(), proxy.counts().of("calls_from_memory"));
    let mut client = proxy.login(login);
    while proxy.counts().of("calls_from_memory") == before {
        assert!(begun.elapsed() < PATIENCE, "{}", proxy.log());
        client.ok(CALL);
        thread::sleep(Duration::from_millis(10));
    }
}
