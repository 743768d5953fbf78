//! Each Headwater reads one log stream, under a server id that no other replica has.

use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::ServerKind;

use crate::kit::fake_replica::{FakeReplica, dump_threads, registered};
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;
use crate::memory::stage::{CALL, Stage, page, post};
use crate::memory::{CLASSIC, warm};

/// The log text for each server id that Headwater gives up.
const DRAWN: &str = "another number is drawn";

/// How often Headwater has drawn another server id.
fn drawn(proxy: &Proxy) -> usize {
    proxy.log().matches(DRAWN).count()
}

/// Waits until the server has `count` replicas besides the known ones. Returns their server ids.
#[track_caller]
fn others(root: &mut WireClient, known: &[u32], count: usize) -> Vec<u32> {
    let deadline = patience();
    loop {
        let all = registered(root);
        let others: Vec<u32> = all
            .iter()
            .copied()
            .filter(|one| !known.contains(one))
            .collect();
        if others.len() == count {
            return others;
        }
        assert!(Instant::now() < deadline, "{all:?} besides {known:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_number_that_another_replica_comes_with_is_given_up_at_once_and_said_once() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            let mut root = WireClient::connect(server.addr());
            let mut fakes = Vec::new();
            let mut taken = Vec::new();
            let mut id = 0;
            for round in 1..=3 {
                let number = others(&mut root, &taken, 1)[0];
                taken.push(number);
                fakes.push(FakeReplica::start(server.addr(), number, None));
                let begun = Instant::now();
                others(&mut root, &taken, 1);
                let took = begun.elapsed();
                assert!(
                    took < Duration::from_secs(30),
                    "{took:?}: {}",
                    stage.proxy.log()
                );
                while drawn(&stage.proxy) < round && begun.elapsed() < Duration::from_secs(30) {
                    thread::sleep(Duration::from_millis(5));
                }
                assert_eq!(drawn(&stage.proxy), round, "{}", stage.proxy.log());
                warm(&stage.proxy, &mut stage.client, CALL);
                id += 1;
                stage.post(id);
                assert_eq!(stage.page().last(), Some(&id), "{}", stage.proxy.log());
                assert_eq!(dump_threads(&mut root), round + 1);
            }
            // No replica takes the id of another any more, and the change caused no failure.
            thread::sleep(Duration::from_secs(1));
            assert_eq!(drawn(&stage.proxy), 3);
            assert_eq!(registered(&mut root).len(), 4);
            let log = stage.proxy.log();
            assert!(!log.contains("nothing is answered from memory"), "{log}");
            for fake in &mut fakes {
                fake.event().unwrap();
            }
            assert_eq!(stage.proxy.counts().relayed(), 0, "{log}");
        },
    );
}

/// A real MySQL replica sends a UUID, and a client without one does not disconnect it; MariaDB compares server ids only.
#[test]
fn a_replica_with_a_uuid_shares_a_number_on_mysql_and_takes_it_on_mariadb() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let mut stage = Stage::new(server.addr(), &[], "");
            let mut root = WireClient::connect(server.addr());
            let number = others(&mut root, &[], 1)[0];
            let uuid = "7c1f1a52-2c33-4d0e-9f5e-000000000001";
            let mut fake = FakeReplica::start(server.addr(), number, Some(uuid));
            fake.event().unwrap();
            if server.kind() == ServerKind::Mariadb {
                others(&mut root, &[number], 1);
            }
            for id in 1..=50 {
                stage.post(id);
                assert_eq!(stage.page().last(), Some(&id), "{}", stage.proxy.log());
                thread::sleep(Duration::from_millis(10));
            }
            let expected = usize::from(server.kind() == ServerKind::Mariadb);
            assert_eq!(drawn(&stage.proxy), expected, "{}", stage.proxy.log());
            assert_eq!(dump_threads(&mut root), 2);
        },
    );
}

/// The stream of a killed Headwater remains until the server notices. The restarted one uses another server id.
#[test]
fn three_headwaters_have_three_streams_and_three_numbers_whatever_becomes_of_one() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let stage = Stage::new(server.addr(), &[], "");
            let Stage {
                login,
                mut root,
                proxy: first,
                ..
            } = stage;
            let start = || {
                let proxy = Proxy::start(server.addr(), ROOT_SERVICE);
                proxy.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
                warm(&proxy, &mut proxy.login(&login), CALL);
                proxy
            };
            let mut all = [first, start(), start()];
            for id in 1..=3 {
                let numbers = others(&mut root, &[], 3);
                assert!(
                    numbers.iter().all(|number| *number >= 1 << 31),
                    "{numbers:?}"
                );
                assert_eq!(dump_threads(&mut root), 3);
                post(&mut root, id);
                for proxy in &all {
                    let mut client = proxy.login(&login);
                    assert_eq!(page(&mut client).last(), Some(&id), "{}", proxy.log());
                    assert_eq!(drawn(proxy), 0, "{}", proxy.log());
                }
                all[id as usize % 3].crash_and_start();
                let anew = &all[id as usize % 3];
                anew.wait_for_log(&format!("in database {CLASSIC}: accelerated"));
                warm(anew, &mut anew.login(&login), CALL);
            }
        },
    );
}
