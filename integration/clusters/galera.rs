//! A node of a Galera cluster (MariaDB).

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::attack::attack;
use super::scene::{CALL, Scene, page, post, until};
use crate::kit::cluster::{Cluster, Form, MEMBERS, Shared, turn};
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::wire_client::{Answer, WireClient};
use crate::memory::linear::numbers;
use crate::memory::warm;

/// ER_UNKNOWN_COM_ERROR: WSREP has not yet prepared node for application use.
const NOT_READY: u16 = 1047;

/// One cluster for all tests, which run one after the other: each leaves all three nodes serving.
pub(super) fn cluster() -> Option<Shared> {
    static CLUSTER: OnceLock<Option<Mutex<Cluster>>> = OnceLock::new();
    let turn = turn();
    let cluster = CLUSTER.get_or_init(|| Cluster::start(Form::Galera, &[]).map(Mutex::new));
    let cluster = cluster.as_ref()?;
    let cluster = cluster.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Shared::new(cluster, turn))
}

/// Runs the statements on all nodes.
fn set(cluster: &Cluster, statements: &[&str]) {
    for index in 0..MEMBERS {
        let mut root = cluster.connect(index);
        for statement in statements {
            root.ok(statement);
        }
    }
}

/// Covers the node's own commits, the write sets of other nodes, and both; with one applier, and with several.
#[test]
fn no_answer_of_a_node_is_stale_or_ahead() {
    let Some(cluster) = cluster() else { return };
    attack(&cluster, 0, &[0]);
    attack(&cluster, 0, &[1, 2]);
    set(&cluster, &["SET GLOBAL wsrep_slave_threads = 4"]);
    attack(&cluster, 0, &[0, 1, 2]);
    set(&cluster, &["SET GLOBAL wsrep_slave_threads = 1"]);
}

/// Covers cluster-wide GTIDs, streaming replication (fragments before the commit), and a desynchronised node.
#[test]
fn nor_in_other_ways_to_replicate() {
    let Some(cluster) = cluster() else { return };
    set(
        &cluster,
        &[
            "SET GLOBAL wsrep_slave_threads = 4",
            "SET GLOBAL wsrep_gtid_mode = ON",
        ],
    );
    attack(&cluster, 0, &[0, 1, 2]);
    set(
        &cluster,
        &[
            "SET GLOBAL wsrep_gtid_mode = OFF",
            "SET GLOBAL wsrep_trx_fragment_unit = 'statements'",
            "SET GLOBAL wsrep_trx_fragment_size = 1",
        ],
    );
    attack(&cluster, 0, &[0, 1, 2]);
    set(&cluster, &["SET GLOBAL wsrep_trx_fragment_size = 0"]);
    let mut root = cluster.connect(0);
    root.ok("SET GLOBAL wsrep_desync = ON");
    attack(&cluster, 0, &[1, 2]);
    root.ok("SET GLOBAL wsrep_desync = OFF");
    set(&cluster, &["SET GLOBAL wsrep_slave_threads = 1"]);
}

/// The session's own node answers a session whose reads wait until all is applied.
#[test]
fn reads_that_wait_for_the_cluster_are_relayed() {
    let Some(cluster) = cluster() else { return };
    let mut scene = Scene::new(&cluster, 0, 1);
    let mut writer = scene.direct(&cluster, 1);
    let mut id = 0;
    for waits in ["1", "3", "15"] {
        let mut client = scene.session(&format!("SET SESSION wsrep_sync_wait = {waits}"));
        let before = scene.relayed_for("waits_for_cluster");
        for _ in 0..50 {
            id += 1;
            post(&mut writer, id);
            assert!(page(&mut client).contains(&id), "{waits}: no {id}");
        }
        assert_eq!(scene.relayed_for("waits_for_cluster"), before + 50);
    }
    for waits in ["0", "2", "4"] {
        let mut client = scene.session(&format!("SET SESSION wsrep_sync_wait = {waits}"));
        warm(&scene.proxy, &mut client, CALL);
    }
    // The session changes the setting later.
    warm(&scene.proxy, &mut scene.client, CALL);
    scene.client.ok("SET wsrep_sync_wait = 1");
    let before = scene.relayed_for("waits_for_cluster");
    page(&mut scene.client);
    assert_eq!(scene.relayed_for("waits_for_cluster"), before + 1);
}

/// A node that has lost the others refuses to read tables, and a Headwater before it refuses too.
#[test]
fn a_node_without_the_others_is_not_answered_for() {
    let Some(mut cluster) = cluster() else { return };
    let mut scene = Scene::new(&cluster, 0, 0);
    let mut direct = scene.direct(&cluster, 0);
    for id in 1..=5 {
        post(&mut direct, id);
    }
    assert_eq!(page(&mut scene.client).len(), 5);
    cluster.hold(1);
    cluster.hold(2);
    until("the loss", || {
        cluster.status(0, "wsrep_ready").as_deref() == Some("OFF")
    });
    let before = scene.remembered();
    for _ in 0..100 {
        assert_eq!(direct.error(CALL).code, NOT_READY);
        let own = scene.client.error(CALL);
        assert_eq!(own.code, NOT_READY, "{own:?}");
        let fresh = scene.proxy.login(&scene.login).error(CALL);
        assert_eq!(fresh.code, NOT_READY, "{fresh:?}");
        thread::sleep(Duration::from_millis(10));
    }
    let mut dirty = scene.session("SET SESSION wsrep_dirty_reads = ON");
    let own = format!("{:?}", dirty.query(CALL));
    direct.ok("SET SESSION wsrep_dirty_reads = ON");
    let theirs = format!("{:?}", direct.query(CALL));
    eprintln!("dirty reads: {own} and {theirs}");
    assert_eq!(own.contains("1047"), theirs.contains("1047"));
    assert_eq!(scene.remembered(), before, "{}", scene.proxy.log());
    cluster.go_on(1);
    cluster.go_on(2);
    for index in 0..MEMBERS {
        cluster.wait_until_it_serves(index);
    }
    cluster.wait_for_members(0, MEMBERS);
    let mut client = scene.proxy.login(&scene.login);
    warm(&scene.proxy, &mut client, CALL);
    assert_eq!(page(&mut client).len(), 5);
}

/// A page, or the error code that the node is not ready.
#[track_caller]
fn page_or_refusal(client: &mut WireClient) -> Result<BTreeSet<u64>, u16> {
    for statement in [CALL, "SELECT id FROM fetch_timeline_tt"] {
        match client.query(statement).into_iter().next() {
            Some(Answer::Ok(_)) => {}
            Some(Answer::Rows(rows)) => {
                let ids: Vec<String> = rows.rows.into_iter().flatten().flatten().collect();
                return Ok(numbers(&ids));
            }
            Some(Answer::Err(error)) if error.code == NOT_READY => return Err(error.code),
            other => panic!("{statement}: {other:?}"),
        }
    }
    panic!("no rows");
}

/// A state transfer fills a killed node. Headwater is before the donor, or before the filled node: answers match that node's data.
#[test]
fn a_node_that_comes_back_by_state_transfer_is_followed_again() {
    let Some(mut cluster) = cluster() else { return };
    let mut scene = Scene::new(&cluster, 0, 1);
    let mut writer = scene.direct(&cluster, 1);
    post(&mut writer, 1);
    // Headwater is before a possible donor.
    cluster.kill(2);
    thread::scope(|scope| {
        let mut client = scene.proxy.login(&scene.login);
        let mut direct = scene.direct(&cluster, 0);
        let all = &mut *cluster;
        let restarted = scope.spawn(move || all.restart(2));
        let mut checks = 0;
        while !restarted.is_finished() {
            // Both refuse briefly, while the others detect the failed node.
            let both = [&mut client, &mut direct].map(page_or_refusal);
            if let [Ok(own), Ok(theirs)] = both {
                assert_eq!(own, theirs, "{}", scene.proxy.log());
                checks += 1;
            }
            thread::sleep(Duration::from_millis(5));
        }
        eprintln!("{checks} answers beside a state transfer");
        assert!(checks > 0);
        restarted.join().unwrap();
    });
    cluster.wait_until_it_serves(2);
    cluster.kill(0);
    cluster.wait_for_members(1, 2);
    cluster.wait_until_it_serves(1);
    for id in 2..=5 {
        post(&mut writer, id);
    }
    cluster.restart(0);
    cluster.wait_until_it_serves(0);
    scene.client = scene.proxy.login(&scene.login);
    assert_eq!(scene.is_as_directly(&cluster).len(), 5);
    warm(&scene.proxy, &mut scene.client, CALL);
    assert_eq!(scene.is_as_directly(&cluster).len(), 5);
    cluster.wait_for_members(0, MEMBERS);
}

/// Headwater's log names a node that does not log what it applies.
#[test]
fn a_node_that_does_not_log_what_others_write_is_named() {
    let Some(cluster) = cluster() else { return };
    // The setting needs a restart, so this test uses a private single node.
    drop(cluster);
    let _turn = turn();
    let Some(alone) = Cluster::alone(Form::Galera, &["--log-slave-updates=OFF"]) else {
        return;
    };
    let proxy = Proxy::start(alone.addr(0), ROOT_SERVICE);
    proxy.wait_for_log("log_slave_updates");
}
