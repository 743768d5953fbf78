//! Semi-synchronous replication: commits wait for a replica after the write to the log and before they are readable (`AFTER_SYNC`), or
//! after that (`AFTER_COMMIT`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{PrivateServer, ServerKind};

use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::replica::{another, follow, from_now_on};
use crate::kit::semi_sync::{wait_for_nobody, word};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;
use crate::memory::linear::{WRITERS, check_beside};
use crate::memory::world::World;
use crate::memory::{CLASSIC, prepare};

/// How long a commit waits for a replica that has stopped.
const PATIENCE: Duration = Duration::from_millis(150);

/// The longest pause of writers. Without it a replica on a busy machine never catches up, and acknowledges nothing.
const REST: Duration = Duration::from_millis(4);

/// A replica that acknowledges what it receives.
fn acknowledging(source: &PrivateServer) -> PrivateServer {
    let replica = another(source, &[]);
    let mut root = WireClient::connect(replica.addr());
    match replica.kind() {
        ServerKind::Mysql => {
            root.ok("INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'");
            root.ok("SET GLOBAL rpl_semi_sync_replica_enabled = 1");
        }
        ServerKind::Mariadb => {
            root.ok("SET GLOBAL rpl_semi_sync_slave_enabled = 1");
        }
    }
    follow(&replica, source.port(), "root", &from_now_on(source));
    replica
}

/// Stops and starts the replica's receiver repeatedly: commits wait, then for a while do not, then wait again.
fn on_and_off(replica: &PrivateServer, stop: &AtomicBool) -> u64 {
    let mut root = WireClient::connect(replica.addr());
    let word = match replica.kind() {
        ServerKind::Mysql => "REPLICA",
        ServerKind::Mariadb => "SLAVE",
    };
    let mut times = 0;
    while !stop.load(Ordering::Relaxed) {
        root.query(&format!("STOP {word} IO_THREAD"));
        thread::sleep(2 * PATIENCE);
        root.query(&format!("START {word} IO_THREAD"));
        thread::sleep(3 * PATIENCE);
        times += 1;
    }
    times
}

/// How many commits waited without an acknowledgement, and how many were acknowledged.
fn waited(source: &PrivateServer) -> [u64; 2] {
    let mut root = WireClient::connect(source.addr());
    let word = word(source);
    ["no_tx", "yes_tx"].map(|name| {
        let name = format!("rpl_semi_sync_{word}_{name}");
        let rows = root.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        rows[0][1].as_deref().unwrap().parse().unwrap()
    })
}

#[test]
fn no_answer_is_stale_or_ahead_while_a_replica_acknowledges_now_and_then() {
    for point in ["AFTER_SYNC", "AFTER_COMMIT"] {
        on_servers_of_its_own(
            |_| &[],
            |source| {
                let replica = acknowledging(source);
                let login = prepare(source.addr());
                wait_for_nobody(source, point, PATIENCE);
                let stop = AtomicBool::new(false);
                let times = AtomicU64::new(0);
                let begun = Instant::now();
                let world = World::new(WRITERS).resting(REST);
                let write = |world: &World, number| {
                    world.write(number, source.addr(), &login).unwrap();
                };
                let checked = thread::scope(|scope| {
                    scope.spawn(|| times.store(on_and_off(&replica, &stop), Ordering::Relaxed));
                    let check = || {
                        let server = source.addr();
                        check_beside(&world, server, &login, CLASSIC, 1_500, ROOT_SERVICE, write)
                    };
                    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
                    stop.store(true, Ordering::Relaxed);
                    checked
                });
                let (owned, remembered) = match checked {
                    Ok(counts) => counts,
                    Err(fault) => std::panic::resume_unwind(fault),
                };
                let [vain, acknowledged] = waited(source);
                eprintln!(
                    "{point}: {owned} owned, {remembered} from memory, {vain} commits without and {acknowledged} with an \
                     acknowledgement, {times:?} stops, {:?}",
                    begun.elapsed()
                );
                assert!(vain > 0 && acknowledged > 0, "{vain} {acknowledged}");
            },
        );
    }
}
