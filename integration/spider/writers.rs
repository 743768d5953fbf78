//! During writes through the Spider node, no answer is stale or ahead.

use super::{Answers, Spread};
use crate::kit::how_many;
use crate::kit::quota::{Quota, from_memory};
use crate::memory::linear::attack;
use crate::memory::warm;
use crate::memory::world::World;

const WRITERS: u64 = 4;

#[test]
fn no_answer_is_stale_or_ahead_on_four_data_nodes() {
    check(4, Answers::Memory);
}

#[test]
fn nor_on_two() {
    check(2, Answers::Memory);
}

#[test]
fn nor_is_one_that_was_looked_up() {
    check(4, Answers::Lookups);
}

#[test]
fn nor_with_follow_lists_on_data_nodes() {
    check(2, Answers::LookupsAlone);
}

#[track_caller]
fn check(data: usize, answers: Answers) {
    let Some((spread, proxy)) = Spread::answering(data, answers) else {
        return;
    };
    let checks = how_many("HEADWATER_CHECKS", 600);
    let (node, login) = (spread.spider.node.addr(), &spread.login);
    // A run of the procedure proves the definer's rights for the whole test; these calls are relayed.
    let mut first = proxy.login(login);
    first.ok("INSERT INTO follower VALUES (1000, 1000)");
    first.ok("INSERT INTO message VALUES (4000000001, 1000, 'read by the run')");
    first.ok("CALL fetch_timeline_ids(1000)");
    first.ok("CALL fetch_timeline_ids2(1000, 4000000001)");
    if answers == Answers::Memory {
        warm(&proxy, &mut first, "CALL fetch_timeline_ids(1000)");
    }
    let before = proxy.counts();
    let runs = before.of("calls_run_for_rights");
    let world = World::new(WRITERS);
    let write = |world: &World, number| world.write(number, node, login).unwrap();
    let wanted = u64::from(answers == Answers::Memory);
    let quota = Quota::new(&proxy, checks, wanted, from_memory);
    attack((&world, WRITERS), &quota, (node, login), 200, write);
    let checks = quota.taken();
    let counts = proxy.counts();
    eprintln!("{} writes; {counts:?}", world.writes());
    assert_eq!(counts.of("calls_run_for_rights"), runs);
    // A follow list that changes with each request is read by the procedure.
    assert!(counts.relayed() * 20 <= checks, "{}", proxy.log());
    assert!(counts.of("calls_owned") * 20 >= checks * 19, "{counts:?}");
    let remembered = counts.of("calls_from_memory") - before.of("calls_from_memory");
    assert_eq!(
        remembered > 0,
        answers == Answers::Memory,
        "{remembered} from memory"
    );
}
