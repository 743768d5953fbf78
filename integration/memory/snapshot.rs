//! Compares answers with the procedure's, both at one state of the tables, while writers run before and after.

use std::collections::BTreeSet;
use std::thread;

use super::world::{READERS, World};
use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::on_each_quiet_server;
use crate::kit::wire_client::WireClient;

const WRITERS: u64 = 6;
const ROUNDS: u64 = 150;

/// The rows that a call writes to both result tables.
fn left_behind(client: &mut WireClient, call: &str) -> Vec<BTreeSet<Vec<Option<String>>>> {
    client.ok(call);
    let tail = "SELECT message.id, user_id FROM message INNER JOIN fetch_timeline_tt USING(id) \
                ORDER BY message.id DESC LIMIT 20";
    let (ids, heads) = (
        "SELECT id FROM fetch_timeline_tt",
        "SELECT * FROM max_ids_of_followers",
    );
    let tables = match call {
        _ if call.contains("build") => vec![heads],
        _ if call.contains("ids2") => vec![tail, ids, heads],
        _ => vec![tail, ids],
    };
    let read = |table: &str| client.rows(table).into_iter().collect();
    tables.into_iter().map(read).collect()
}

#[test]
fn memory_and_procedure_tell_the_same_between_the_writes_of_others() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "snapshot");
        let login = database.login();
        let proxy = Proxy::configured(
            server.addr(),
            "[freshness]\nwait_ms = 10000\n",
            ROOT_SERVICE,
        );
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let world = World::new(WRITERS);
        thread::scope(|scope| {
            let running = world.run();
            for number in 0..WRITERS {
                let (world, login) = (&world, &login);
                scope.spawn(move || world.write(number, server.addr(), login).unwrap());
            }
            world.wait_for_writes(200);
            let mut locker = database.connect();
            let mut direct = database.connect();
            let mut client = proxy.login(&login);
            let mut random = Random(11);
            for round in 0..ROUNDS {
                let calls: Vec<String> = (1..=READERS)
                    .map(|reader| match random.below(4) {
                        0 => format!("CALL fetch_timeline_ids({reader})"),
                        1 => format!("CALL fetch_timeline_ids2({reader}, 4000000000)"),
                        other => {
                            let newest = world.newest_id();
                            let bound = newest.saturating_sub(random.below(150));
                            let procedure = match other {
                                2 => "fetch_timeline_ids2",
                                _ => "build_max_ids_of_followers",
                            };
                            format!("CALL {procedure}({reader}, {bound})")
                        }
                    })
                    .collect();
                // Waits for open transactions, and blocks all others.
                locker.ok("LOCK TABLES message READ, follower READ");
                for call in &calls {
                    let own = left_behind(&mut client, call);
                    let real = left_behind(&mut direct, call);
                    assert_eq!(own, real, "round {round}: {call}");
                }
                locker.ok("UNLOCK TABLES");
                let before = world.writes();
                world.wait_for_writes(before + 5);
            }
            drop(running);
        });
        let counts = proxy.counts();
        let calls = ROUNDS * READERS;
        assert_eq!(counts.of("calls_owned"), calls, "{}", proxy.output());
        let remembered = counts.of("calls_from_memory");
        assert!(
            remembered * 10 >= calls * 2,
            "{remembered} of {calls} from memory"
        );
    });
}
