//! The primary changes under load, in every way that occurs: clients see only closed sessions, answers are right, and memory stays warm.
//!
//! These tests print times and check them against wide bounds, since everything runs on one machine; `make soak` measures them.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{PrivateServer, ServerKind};

use super::attack::classic;
use super::group::{AT_ONCE, PATIENT};
use super::traffic::{Report, Traffic, prepare};
use crate::kit::cluster::{Cluster, Form, MEMBERS, Turn, turn};
use crate::kit::database::classic_on;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::replica::{another, follow};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::{Login, WireClient};

const GOES_ON: &str = "memory goes on with the log of this server";
const ANEW: &str = "memory is filled anew beside this server";
/// A replica that has applied nothing for this long has nothing more to apply.
const STUCK: Duration = Duration::from_secs(10);
/// Times after a promotion.
const OWNED_WITHIN: Duration = Duration::from_secs(20);
const REMEMBERED_WITHIN: Duration = Duration::from_secs(40);

fn options(mariadb: bool) -> &'static [&'static str] {
    match mariadb {
        true => &[
            "--log-slave-updates=ON",
            "--max-connections=1500",
            "--sync-binlog=1",
            "--innodb-flush-log-at-trx-commit=1",
            "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
            "--rpl-semi-sync-master-timeout=60000",
        ],
        false => &[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--max-connections=1500",
            "--sync-binlog=1",
            "--innodb-flush-log-at-trx-commit=1",
        ],
    }
}

/// Options of members that lose no commit at a restart.
const GROUP: &[&str] = &[
    "--max-connections=1500",
    "--sync-binlog=1",
    "--innodb-flush-log-at-trx-commit=1",
];

/// Starts Headwater before these servers, in this order.
fn in_front_of(servers: &[SocketAddr]) -> Proxy {
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let mut flags = ROOT_SERVICE.to_vec();
    for server in &servers {
        flags.extend(["--upstream", server]);
    }
    let (_folder, path) = crate::kit::proxy::settings_file("[freshness]\nwait_ms = 1000\n");
    flags.extend(["--config", &path]);
    Proxy::start_with(&flags, &[])
}

/// A primary, and a replica that has every acknowledged commit (semi-synchronous replication).
struct Pair<'a> {
    primary: &'a mut PrivateServer,
    replica: PrivateServer,
    login: Login,
    proxy: Proxy,
}

impl<'a> Pair<'a> {
    fn new(primary: &'a mut PrivateServer) -> Pair<'a> {
        let replica = another(primary, options(primary.kind() == ServerKind::Mariadb));
        let (on_source, on_replica, how): (&[&str], &[&str], _) = match primary.kind() {
            ServerKind::Mariadb => (
                &[
                    "RESET MASTER",
                    "SET GLOBAL rpl_semi_sync_master_enabled = 1",
                ],
                &[
                    "RESET MASTER",
                    "SET GLOBAL gtid_slave_pos = ''",
                    "SET GLOBAL rpl_semi_sync_slave_enabled = 1",
                    "SET GLOBAL read_only = 1",
                ],
                "MASTER_USE_GTID=slave_pos",
            ),
            ServerKind::Mysql => (
                &[
                    "RESET BINARY LOGS AND GTIDS",
                    "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
                    "SET GLOBAL rpl_semi_sync_source_timeout = 60000",
                    "SET GLOBAL rpl_semi_sync_source_enabled = 1",
                ],
                &[
                    "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'",
                    "SET GLOBAL rpl_semi_sync_replica_enabled = 1",
                    "RESET BINARY LOGS AND GTIDS",
                    "SET GLOBAL super_read_only = 1",
                ],
                "SOURCE_AUTO_POSITION=1",
            ),
        };
        for (server, statements) in [(&replica, on_replica), (&*primary, on_source)] {
            let mut root = WireClient::connect(server.addr());
            for statement in statements {
                root.ok(statement);
            }
        }
        follow(&replica, primary.port(), "root", how);
        let login = classic_on(primary.addr(), "tl");
        prepare(&mut WireClient::login(primary.addr(), &login));
        let proxy = in_front_of(&[primary.addr(), replica.addr()]);
        proxy.wait_for_log("in database tl: accelerated");
        Pair {
            primary,
            replica,
            login,
            proxy,
        }
    }

    /// Waits until the replica has applied what it received, stops replication, and makes it writable. Returns the time of the promotion.
    fn promote(&self) -> Instant {
        let mut root = WireClient::connect(self.replica.addr());
        let word = match self.replica.kind() {
            ServerKind::Mariadb => "SLAVE",
            ServerKind::Mysql => "REPLICA",
        };
        // This comes first: a client that may write despite read_only then gets no acknowledgement for a commit that the replica lacks.
        root.ok(&format!("STOP {word} IO_THREAD"));
        self.wait_for_replica(&mut root);
        root.ok(&format!("STOP {word}"));
        root.ok(&format!("RESET {word} ALL"));
        root.ok("SET GLOBAL read_only = 0");
        Instant::now()
    }

    /// Waits until the replica has applied all that it received, or applies nothing more because it received only a part of a transaction.
    /// The reported state of its thread is not enough: a busy machine may not have woken it yet.
    #[track_caller]
    fn wait_for_replica(&self, root: &mut WireClient) {
        let deadline = patience();
        let (mut before, mut since) = (None, Instant::now());
        loop {
            let now = root.rows("SHOW REPLICA STATUS").remove(0);
            // The source's file and position, as received and as applied.
            let [read, applied] = [[5, 6], [9, 21]].map(|at| at.map(|at: usize| now[at].clone()));
            if read == applied {
                return;
            }
            if before.as_ref() != Some(&applied) {
                (before, since) = (Some(applied), Instant::now());
            } else if since.elapsed() > STUCK {
                return;
            }
            assert!(Instant::now() < deadline, "{now:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[track_caller]
fn in_time(report: &Report, proxy: &Proxy) {
    let log = proxy.log();
    assert!(report.owned < OWNED_WITHIN, "{report:?}\n{log}");
    assert!(report.remembered < REMEMBERED_WITHIN, "{report:?}\n{log}");
    assert!(report.share >= 95, "{report:?}\n{log}");
}

#[track_caller]
fn is_warm(proxy: &Proxy) {
    let log = proxy.log();
    assert!(log.contains(GOES_ON) && !log.contains(ANEW), "{log}");
}

#[test]
fn a_primary_is_killed_under_load() {
    on_servers_of_its_own(options, |primary| {
        let pair = Pair::new(primary);
        let traffic = Traffic::new(&pair.proxy, &pair.login);
        let report = traffic.through(true, || {
            thread::sleep(Duration::from_secs(1));
            let mut process = pair.primary.pid();
            kill(process.take());
            pair.promote()
        });
        eprintln!("{report:?}");
        in_time(&report, &pair.proxy);
        is_warm(&pair.proxy);
        traffic.ends_on(pair.replica.addr());
        assert!(traffic.errors().is_empty(), "{:?}", traffic.errors());
    });
}

/// As a crash would.
fn kill(pid: Option<u32>) {
    use nix::sys::signal::{Signal, kill};
    let pid = i32::try_from(pid.unwrap()).unwrap();
    kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// The old primary refuses writes, the replica catches up, and then takes writes.
#[test]
fn a_switch_is_planned_under_load() {
    on_servers_of_its_own(options, |primary| {
        let pair = Pair::new(primary);
        let traffic = Traffic::new(&pair.proxy, &pair.login);
        let report = traffic.through(true, || {
            thread::sleep(Duration::from_secs(1));
            let mut root = WireClient::connect(pair.primary.addr());
            root.ok(match pair.primary.kind() {
                ServerKind::Mariadb => "SET GLOBAL read_only = 1",
                ServerKind::Mysql => "SET GLOBAL super_read_only = 1",
            });
            pair.promote()
        });
        eprintln!("{report:?}");
        in_time(&report, &pair.proxy);
        is_warm(&pair.proxy);
        traffic.ends_on(pair.replica.addr());
        // The error for a read-only server.
        let told = traffic.errors();
        assert!(told.keys().all(|code| *code == 1290), "{told:?}");
    });
}

/// A cluster, and a Headwater before all its members. The first member is the primary.
struct Group {
    cluster: Cluster,
    login: Login,
    proxy: Proxy,
    _turn: Turn,
}

impl Group {
    fn start(form: Form, more: &[&str]) -> Option<Group> {
        let turn = turn();
        let patient = format!("--group-replication-member-expel-timeout={PATIENT}");
        let mut more = more.to_vec();
        if form == Form::SinglePrimary {
            more.push(&patient);
        }
        let cluster = Cluster::start(form, &more)?;
        let login = classic(&cluster, 0, MEMBERS - 1);
        prepare(&mut WireClient::login(cluster.addr(0), &login));
        let servers: Vec<SocketAddr> = (0..MEMBERS).map(|index| cluster.addr(index)).collect();
        let proxy = in_front_of(&servers);
        let database = login.database.clone().unwrap();
        proxy.wait_for_log(&format!("in database {database}: accelerated"));
        Some(Group {
            cluster,
            login,
            proxy,
            _turn: turn,
        })
    }
}

#[test]
fn the_primary_of_a_group_changes_under_load() {
    let Some(mut group) = Group::start(Form::SinglePrimary, GROUP) else {
        return;
    };
    let traffic = Traffic::new(&group.proxy, &group.login);
    let cluster = &mut group.cluster;
    // A planned switch.
    let report = traffic.through(true, || {
        cluster.set_as_primary(1);
        Instant::now()
    });
    eprintln!("planned: {report:?}");
    in_time(&report, &group.proxy);
    is_warm(&group.proxy);
    // The primary is killed.
    let mut primary = 1;
    let report = traffic.through(true, || {
        cluster.wait_for_silent(AT_ONCE);
        cluster.kill(primary);
        primary = cluster.wait_for_another_primary(primary);
        Instant::now()
    });
    eprintln!("killed: {report:?}");
    in_time(&report, &group.proxy);
    is_warm(&group.proxy);
    cluster.restart(1);
    cluster.wait_until_it_serves(1);
    cluster.wait_for_silent(PATIENT);
    // A network partition: the primary is silent, the others continue, and it returns to find itself expelled.
    let cut = primary;
    let report = traffic.through(true, || {
        cluster.wait_for_silent(AT_ONCE);
        cluster.hold(cut);
        primary = cluster.wait_for_another_primary(cut);
        Instant::now()
    });
    eprintln!("cut: {report:?}");
    in_time(&report, &group.proxy);
    is_warm(&group.proxy);
    let report = traffic.through(false, || {
        cluster.go_on(cut);
        thread::sleep(Duration::from_secs(2));
        Instant::now()
    });
    eprintln!("back: {report:?}");
    in_time(&report, &group.proxy);
    traffic.ends_on(cluster.addr(primary));
    let told = traffic.errors();
    // Read-only; the group refuses what is in flight where the primary changes.
    let expected = [1290, 3100, 3101, 1180];
    assert!(told.keys().all(|code| expected.contains(code)), "{told:?}");
}

/// The primary has lost the others: its data may be old, and it cannot commit. Headwater leads no client to it.
#[test]
fn a_primary_that_has_lost_its_group_is_nobodys() {
    let Some(mut group) = Group::start(Form::SinglePrimary, GROUP) else {
        return;
    };
    let traffic = Traffic::new(&group.proxy, &group.login);
    let cluster = &mut group.cluster;
    let report = traffic.through(true, || {
        cluster.hold(1);
        cluster.hold(2);
        group.proxy.wait_for_log("is the primary no more");
        thread::sleep(Duration::from_secs(2));
        let refused = WireClient::try_login(group.proxy.addr(), &group.login);
        assert!(
            !matches!(refused, Ok(Ok(_))),
            "a client is let in:\n{}",
            group.proxy.log()
        );
        cluster.go_on(1);
        cluster.go_on(2);
        for index in 1..MEMBERS {
            cluster.wait_until_it_serves(index);
        }
        Instant::now()
    });
    eprintln!("{report:?}");
    traffic.ends_on(cluster.addr(cluster.primary().unwrap()));
}

#[test]
fn a_node_of_a_galera_cluster_is_lost_under_load() {
    let Some(mut group) = Group::start(Form::Galera, &["--max-connections=1500"]) else {
        return;
    };
    let traffic = Traffic::new(&group.proxy, &group.login);
    let cluster = &mut group.cluster;
    let report = traffic.through(true, || {
        cluster.kill(0);
        cluster.wait_for_members(1, MEMBERS - 1);
        Instant::now()
    });
    eprintln!("killed: {report:?}");
    in_time(&report, &group.proxy);
    let report = traffic.through(false, || {
        cluster.restart(0);
        cluster.wait_until_it_serves(0);
        Instant::now()
    });
    eprintln!("joined again: {report:?}");
    in_time(&report, &group.proxy);
    // Two nodes fail at once: no quorum. The errors are the node's own.
    let report = traffic.through(true, || {
        cluster.kill(1);
        cluster.kill(2);
        cluster.wait_until_it_is_alone(0);
        WireClient::connect(cluster.addr(0))
            .ok("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'");
        cluster.wait_until_it_serves(0);
        Instant::now()
    });
    eprintln!("two gone: {report:?}");
    traffic.ends_on(cluster.addr(0));
    let told = traffic.errors();
    // Not ready; a deadlock is the error for a refused write set.
    let expected = [1047, 1213, 1180];
    assert!(told.keys().all(|code| expected.contains(code)), "{told:?}");
}

/// Headwater does not use a returned server as the primary if it has transactions that no other has.
#[test]
fn an_old_primary_that_comes_back_with_more_is_not_followed() {
    on_servers_of_its_own(options, |primary| {
        let pair = Pair::new(primary);
        let traffic = Traffic::new(&pair.proxy, &pair.login);
        let report = traffic.through(true, || {
            kill(pair.primary.pid());
            pair.promote()
        });
        eprintln!("{report:?}");
        pair.primary.restart().unwrap();
        let mut root = WireClient::login(pair.primary.addr(), &pair.login);
        root.ok(match pair.primary.kind() {
            ServerKind::Mariadb => "SET GLOBAL rpl_semi_sync_master_enabled = 0",
            ServerKind::Mysql => "SET GLOBAL rpl_semi_sync_source_enabled = 0",
        });
        root.ok("INSERT INTO message (id, user_id, body) VALUES (4000000, 1, 'nobody has it')");
        // Both servers take writes.
        let report = traffic.through(false, || {
            thread::sleep(Duration::from_secs(2));
            Instant::now()
        });
        eprintln!("{report:?}");
        let mut client = pair.proxy.login(&pair.login);
        for _ in 0..50 {
            client.ok("CALL fetch_timeline_ids(1)");
            let ids = client.column("SELECT id FROM fetch_timeline_tt");
            assert!(!ids.contains(&"4000000".to_owned()), "{}", pair.proxy.log());
        }
        traffic.ends_on(pair.replica.addr());
    });
}

/// All servers are down for a while, and return.
#[test]
fn all_servers_are_gone_for_a_while() {
    on_servers_of_its_own(options, |primary| {
        let mut pair = Pair::new(primary);
        let proxy = &pair.proxy;
        let traffic = Traffic::new(proxy, &pair.login);
        let (primary, replica) = (&mut *pair.primary, &mut pair.replica);
        let seconds = crate::kit::how_many("HEADWATER_AWAY_SECONDS", 5);
        let report = traffic.through(true, || {
            primary.kill();
            replica.kill();
            thread::sleep(Duration::from_secs(seconds));
            primary.restart().unwrap();
            Instant::now()
        });
        eprintln!("{report:?}");
        assert!(
            report.owned < OWNED_WITHIN + REMEMBERED_WITHIN,
            "{report:?}"
        );
        traffic.ends_on(primary.addr());
    });
}
