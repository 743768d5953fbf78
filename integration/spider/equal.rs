//! Random calls on one, two and four data nodes: every reply equals the procedure's, packet by packet.

use super::{Answers, Spread};
use crate::differential::Asked;
use crate::kit::how_many;
use crate::kit::quota::{Quota, from_memory};
use crate::kit::random::Random;
use crate::kit::timeline::{Timeline, insert};
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;
use crate::memory::warm;

const USERS: u64 = 40;
const CALLS_A_SESSION: u64 = 40;

#[test]
fn replies_are_the_procedures_on_one_data_node() {
    compare(1, Answers::Memory);
}

#[test]
fn replies_are_the_procedures_on_two_data_nodes() {
    compare(2, Answers::Lookups);
}

#[test]
fn replies_are_the_procedures_on_four_data_nodes() {
    compare(4, Answers::Memory);
}

#[test]
fn replies_are_the_procedures_with_follow_lists_on_data_nodes() {
    compare(2, Answers::LookupsAlone);
}

#[track_caller]
fn compare(data: usize, answers: Answers) {
    let Some((spread, proxy)) = Spread::answering(data, answers) else {
        return;
    };
    let mut random = Random(how_many("HEADWATER_SEED", data as u64));
    let mut world = Messages::load(&mut spread.direct(), &mut random);
    let mut somebody = spread.direct();
    // On an idle machine the test would end before the logs are followed.
    if answers == Answers::Memory {
        let mut first = proxy.login(&spread.login);
        warm(&proxy, &mut first, "CALL fetch_timeline_ids(1)");
    }
    let before = proxy.counts();
    let calls = how_many("HEADWATER_CHECKS", 600);
    // After each change of a followed author, memory is tested again.
    let wanted = match answers {
        Answers::Memory => calls / 3,
        Answers::Lookups | Answers::LookupsAlone => 0,
    };
    let quota = Quota::new(&proxy, calls, wanted, from_memory);
    'all: loop {
        let mut twin = Twin::between(spread.direct(), proxy.login(&spread.login)).of_one_plan();
        let mut asked = Asked::new(&Timeline::CLASSIC);
        for _ in 0..CALLS_A_SESSION {
            if quota.take().is_none() {
                break 'all;
            }
            if random.one_in(4) {
                world.change(&spread, &mut somebody, &mut random);
            }
            twin.run(&world.call(&mut random));
            asked.after_call(&mut twin, &mut random);
        }
    }
    let told = quota.taken();
    let counts = proxy.counts();
    eprintln!("{data} data nodes: {counts:?}");
    let owned = counts.of("calls_owned") - before.of("calls_owned");
    assert!(owned * 10 > told * 9, "{owned} of {told} calls were owned");
    assert!(counts.of("tails_virtual") * 4 > told, "{counts:?}");
    let remembered = counts.of("calls_from_memory") - before.of("calls_from_memory");
    assert_eq!(remembered > 0, answers == Answers::Memory, "{counts:?}");
    assert_eq!(counts.of("calls_relayed[lookup_failed]"), 0, "{counts:?}");
}

/// Message ids are unique, as in an app that allocates them centrally.
struct Messages {
    next: u64,
}

impl Messages {
    fn load(client: &mut WireClient, random: &mut Random) -> Messages {
        let mut follows = std::collections::BTreeSet::new();
        for reader in 1..=USERS {
            for _ in 0..random.below(40) * random.below(2) {
                follows.insert((reader, 1 + random.below(USERS + 2)));
            }
        }
        let follows: Vec<_> = follows.into_iter().collect();
        insert(client, "follower", &follows, |(reader, author)| {
            format!("({reader},{author})")
        });
        let mut messages: Vec<(u64, u64)> = Vec::new();
        for id in 1..900 {
            let most = 1 + random.below(USERS);
            if !random.one_in(5) {
                messages.push((id, 1 + random.below(most)));
            }
        }
        insert(client, "message", &messages, |(id, author)| {
            format!("({id},{author},'message {id}')")
        });
        client.query("ANALYZE TABLE message, follower");
        Messages { next: 900 }
    }

    /// Makes a change through the Spider node, or directly on the data node, whose changes are in no log of the Spider node.
    fn change(&mut self, spread: &Spread, somebody: &mut WireClient, random: &mut Random) {
        let (author, reader) = (1 + random.below(USERS), 1 + random.below(USERS));
        let some = 1 + random.below(4).pow(3);
        match random.below(8) {
            0..=2 => {
                let rows: Vec<String> = (0..some)
                    .map(|at| format!("({},{author},'late')", self.next + at))
                    .collect();
                self.next += some;
                let insert = format!("INSERT INTO message VALUES {}", rows.join(","));
                match random.one_in(2) {
                    true => spread.data_node_of(author).ok(&insert),
                    false => somebody.ok(&insert),
                };
            }
            3 => {
                let delete = format!(
                    "DELETE FROM message WHERE user_id = {author} ORDER BY id DESC LIMIT {some}"
                );
                spread.data_node_of(author).ok(&delete);
            }
            // Spider requires all columns in the statement that moves a row to another partition.
            4 => {
                let newest = somebody.column(&format!(
                    "SELECT id FROM message WHERE user_id = {reader} ORDER BY id DESC LIMIT 1"
                ));
                if let Some(id) = newest.first() {
                    somebody.ok(&format!(
                        "UPDATE message SET user_id = {author}, body = 'moved' WHERE id = {id}"
                    ));
                }
            }
            5 | 6 => {
                somebody.ok(&format!(
                    "DELETE FROM follower WHERE user_id = {reader} AND follower_id = {author}"
                ));
                somebody.ok(&format!("INSERT INTO follower VALUES ({reader},{author})"));
            }
            _ => {
                somebody.ok(&format!(
                    "DELETE FROM follower WHERE user_id = {reader} AND follower_id < {author}"
                ));
            }
        }
    }

    fn call(&self, random: &mut Random) -> String {
        let reader = random.below(USERS + 2);
        let bound = match random.below(5) {
            0 => random.below(40),
            1 => u64::from(u32::MAX),
            _ => random.below(self.next + 50),
        };
        match random.below(6) {
            0..=2 => format!("CALL fetch_timeline_ids({reader})"),
            3 | 4 => format!("CALL fetch_timeline_ids2({reader}, {bound})"),
            _ => format!("CALL build_max_ids_of_followers({reader}, {bound})"),
        }
    }
}
