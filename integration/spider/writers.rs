//! While others write through the Spider node, no answer is stale or ahead.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::Spread;
use crate::kit::how_many;
use crate::kit::wire_client::WireClient;
use crate::memory::world::{READERS, World};

const WRITERS: u64 = 4;

#[test]
fn no_answer_is_stale_or_ahead_on_four_data_nodes() {
    check(4);
}

#[test]
fn nor_on_two() {
    check(2);
}

#[track_caller]
fn check(data: usize) {
    let Some(spread) = Spread::start(data, false) else {
        return;
    };
    let checks = how_many("HEADWATER_CHECKS", 600);
    let proxy = spread.proxy();
    let (node, login) = (spread.spider.node.addr(), &spread.login);
    // A run of the procedure proves the definer's rights for as long as this takes; its own answers are the server's.
    let mut first = proxy.login(login);
    first.ok("INSERT INTO follower VALUES (1000, 1000)");
    first.ok("INSERT INTO message VALUES (4000000001, 1000, 'read by the run')");
    first.ok("CALL fetch_timeline_ids(1000)");
    first.ok("CALL fetch_timeline_ids2(1000, 4000000001)");
    let runs = proxy.counts().of("calls_run_for_rights");
    let world = World::new(WRITERS);
    let checked = AtomicU64::new(0);
    thread::scope(|scope| {
        let running = world.run();
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let world = &world;
                scope.spawn(move || world.write(number, node, login).unwrap())
            })
            .collect();
        world.wait_for_writes(200);
        let readers: Vec<_> = (0..4)
            .map(|number| {
                let (world, checked, proxy) = (&world, &checked, &proxy);
                scope.spawn(move || {
                    let mut client = proxy.login(login);
                    let mut direct = WireClient::login(node, login);
                    let mut turn = number;
                    while checked.load(Ordering::Relaxed) < checks {
                        turn += 1;
                        let reader = 1 + turn % READERS;
                        let before = world.look();
                        client.ok(&match turn % 3 {
                            0 => format!("CALL fetch_timeline_ids2({reader}, 4000000000)"),
                            _ => format!("CALL fetch_timeline_ids({reader})"),
                        });
                        let readable = numbers(&direct.column("SELECT id FROM message"));
                        let answer = numbers(&client.column("SELECT id FROM fetch_timeline_tt"));
                        let fault = world.fault(reader, &before, &answer);
                        assert_eq!(fault, None, "after {checked:?} checks");
                        let unread: BTreeSet<u64> = answer.difference(&readable).copied().collect();
                        let ahead = world.undeleted(&unread, &before);
                        assert!(ahead.is_empty(), "ahead: {ahead:?} could not be read");
                        checked.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        running.outlast(readers, writers);
    });
    let counts = proxy.counts();
    eprintln!("{} writes; {counts:?}", world.writes());
    assert_eq!(counts.of("calls_run_for_rights"), runs);
    assert_eq!(counts.relayed(), 0, "{}", proxy.log());
    assert!(counts.of("calls_owned") >= checks && counts.of("calls_from_memory") == 0);
}

fn numbers(texts: &[String]) -> BTreeSet<u64> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}
