//! `make bench-clusters`: what several servers cost, and how long clients wait when the primary changes. Each ratio is of two sides that take
//! turns on one machine (`turns`); of each figure the median is told, with the least and the most.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

// Its own stories are told by the stories' program.
mod client_return;
#[path = "../../integration/kit/mod.rs"]
#[allow(unused_imports)]
mod kit;
mod turns;

use std::io::Write as _;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{PrivateServer, ServerKind};

use crate::kit::cluster::{Cluster, Form};
use crate::kit::database::classic_on;
use crate::kit::how_many;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::replica::{another, follow, wait_for};
use crate::kit::wire_client::{Login, WireClient};
use crate::turns::{ClientSide, median, ratios};

const CALL: &str = "CALL fetch_timeline_ids(1)";
const DATABASE: &str = "measured";
/// Asks a server how far its log goes: a proof of freshness.
const LOG_END: &str = "SHOW BINARY LOG STATUS";
const SESSIONS: usize = 1_000;
const PATIENCE: Duration = Duration::from_secs(30);

fn main() {
    // `cargo test --benches` asks for no measurements.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let rounds = how_many("HEADWATER_ROUNDS", 7);
    // `cargo bench --bench clusters -- group`: that part alone.
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let all = parts.iter().all(|part| part.starts_with('-'));
    let wanted = |part| all || parts.contains(&part);
    let mut table = FigureTable::default();
    if wanted("relay") {
        relaying(rounds, &mut table);
    }
    if wanted("group") {
        on_a_primary(rounds, &mut table);
    }
    if wanted("failover") {
        for kind in [ServerKind::Mariadb, ServerKind::Mysql] {
            failing_over(kind, rounds.div_ceil(2), &mut table);
        }
    }
    if wanted("returning") {
        for kind in [ServerKind::Mariadb, ServerKind::Mysql] {
            client_return::measure(kind, rounds.div_ceil(3), &mut table);
        }
    }
    table.show();
}

/// Figures with what was aimed at.
#[derive(Default)]
struct FigureTable(Vec<(String, Vec<f64>, ClusterAim)>);

#[derive(Clone, Copy)]
enum ClusterAim {
    AtLeast(f64),
    Within(f64),
    /// Told to compare with.
    Nothing,
}

impl FigureTable {
    fn add(&mut self, figure: &str, values: Vec<f64>, aim: ClusterAim) {
        let told = FigureTable(vec![(figure.to_owned(), values.clone(), aim)]);
        told.show();
        self.0.push((figure.to_owned(), values, aim));
    }

    fn show(&self) {
        let mut out = std::io::stdout().lock();
        for (figure, values, aim) in &self.0 {
            let mut values = values.clone();
            values.sort_by(f64::total_cmp);
            let (least, most) = (values[0], values[values.len() - 1]);
            let rounds = values.len();
            let median = median(values);
            let judged = |met: bool| if met { "met" } else { "MISSED" };
            let aim = match aim {
                ClusterAim::AtLeast(aim) => {
                    format!(", aim at least {aim}: {}", judged(median >= *aim))
                }
                ClusterAim::Within(aim) => {
                    format!(", aim at most {aim}: {}", judged(median <= *aim))
                }
                ClusterAim::Nothing => String::new(),
            };
            let _ = writeln!(
                out,
                "{figure:70} {median:7.3} ({least:.3} to {most:.3}, {rounds} rounds){aim}"
            );
        }
    }
}

/// Relaying with three upstreams, and with one.
fn relaying(rounds: u64, table: &mut FigureTable) {
    let primary = start(ServerKind::Mariadb);
    let replicas = [2, 3].map(|number| replica_of(&primary, number));
    let login = prepare(primary.addr());
    let all = [primary.addr(), replicas[0].addr(), replicas[1].addr()];
    let proxies = [&all[..1], &all].map(|servers| start_proxy(servers, &login));
    let mut sides = [0, 1].map(|at: usize| ClientSide::new(proxies[at].addr(), &login, &["DO 1"]));
    let ratios = ratios(rounds, &mut sides);
    table.add(
        "relay, three upstreams / one",
        ratios,
        ClusterAim::AtLeast(0.98),
    );
}

/// CALL from memory on the primary of a group, and on a single server; and what the servers themselves take for plain statements, the
/// procedure, and proofs of freshness.
fn on_a_primary(rounds: u64, table: &mut FigureTable) {
    let Some(group) = Cluster::start(Form::SinglePrimary, &[]) else {
        eprintln!("no MySQL here: `make servers` tells why");
        return;
    };
    let single = start(ServerKind::Mysql);
    let servers = [single.addr(), group.addr(0)].map(|server| (server, prepare(server)));
    let proxies = servers.each_ref().map(|(server, login)| {
        let proxy = start_proxy(&[*server], login);
        wait_for_memory(&proxy, login);
        proxy
    });
    let before = proxies.each_ref().map(Proxy::counts);
    let mut sides =
        [0, 1].map(|at: usize| ClientSide::new(proxies[at].addr(), &servers[at].1, &[CALL]));
    let figures = ratios(rounds, &mut sides);
    for (proxy, before) in proxies.iter().zip(before) {
        let after = proxy.counts();
        let [owned, remembered] =
            ["calls_owned", "calls_from_memory"].map(|name| after.of(name) - before.of(name));
        assert!(remembered * 100 >= owned * 95, "{remembered} of {owned}");
    }
    table.add(
        "CALL from memory, primary of a group / single server",
        figures,
        ClusterAim::AtLeast(0.9),
    );
    drop(sides);
    drop(proxies);
    let (prepare, execute) = (
        &format!("PREPARE log_end FROM '{LOG_END}'"),
        "EXECUTE log_end",
    );
    let read = "SELECT 1 FROM message LIMIT 0";
    for (figure, [on_single, on_primary]) in [
        ("DO 1", [&["DO 1"][..]; 2]),
        ("SELECT 1", [&["SELECT 1"][..]; 2]),
        ("the procedure", [&[CALL][..]; 2]),
        ("the log's end", [&[LOG_END][..]; 2]),
        ("it, executed", [&[LOG_END][..], &[execute]]),
        (
            "it, behind a COMMIT",
            [&[LOG_END][..], &["COMMIT", LOG_END]],
        ),
        ("it, behind a read", [&[LOG_END][..], &[read, LOG_END]]),
    ] {
        let statements = [on_single, on_primary];
        let side = |at: usize| ClientSide::new(servers[at].0, &servers[at].1, statements[at]);
        let mut sides = [0, 1].map(|at| side(at).after_statement(prepare));
        let ratios = ratios(rounds.div_ceil(2), &mut sides);
        let figure = format!("directly, {figure}: primary of a group / single server");
        table.add(&figure, ratios, ClusterAim::Nothing);
    }
}

/// A primary is killed with so many sessions on it, and its replica promoted.
fn failing_over(kind: ServerKind, rounds: u64, table: &mut FigureTable) {
    let [mut closed, mut owned, mut remembered] = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let mut primary = start(kind);
        let replica = replica_of(&primary, 2);
        let login = prepare(primary.addr());
        let there = format!("SELECT COUNT(*) = 78 FROM {DATABASE}.message");
        wait_for(&replica, &there);
        let proxy = start_proxy(&[primary.addr(), replica.addr()], &login);
        wait_for_memory(&proxy, &login);
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
    table.add(&figure(&ended), closed, ClusterAim::Within(3.0));
    table.add(
        &figure("from promoted to the first owned call"),
        owned,
        ClusterAim::Within(1.0),
    );
    table.add(
        &figure("from promoted to the first answer from memory"),
        remembered,
        ClusterAim::Within(2.0),
    );
}

fn options(kind: ServerKind) -> &'static [&'static str] {
    match kind {
        ServerKind::Mariadb => &["--log-slave-updates=ON", "--max-connections=1500"],
        ServerKind::Mysql => &[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--max-connections=1500",
        ],
    }
}

fn start(kind: ServerKind) -> PrivateServer {
    let server = PrivateServer::start(kind, options(kind));
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    let forget = match kind {
        ServerKind::Mariadb => "RESET MASTER",
        ServerKind::Mysql => "RESET BINARY LOGS AND GTIDS",
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
        ServerKind::Mariadb => (
            &[
                "RESET MASTER",
                "SET GLOBAL gtid_slave_pos = ''",
                "SET GLOBAL read_only = 1",
            ],
            "MASTER_USE_GTID=slave_pos",
        ),
        ServerKind::Mysql => (
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
        ServerKind::Mariadb => ["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"],
        ServerKind::Mysql => [
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

fn start_proxy(servers: &[SocketAddr], login: &Login) -> Proxy {
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
fn wait_for_memory(proxy: &Proxy, login: &Login) {
    let (begun, before) = (Instant::now(), proxy.counts().of("calls_from_memory"));
    let mut client = proxy.login(login);
    while proxy.counts().of("calls_from_memory") == before {
        assert!(begun.elapsed() < PATIENCE, "{}", proxy.log());
        client.ok(CALL);
        thread::sleep(Duration::from_millis(10));
    }
}
