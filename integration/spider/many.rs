//! Readers who follow many authors on data nodes: lookups answer, up to a bound.

use super::Spread;
use crate::kit::timeline::insert;
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;

const AUTHORS: u64 = 5_200;
/// Readers, and how many authors each follows.
const FOLLOWED: [(u64, u64); 4] = [(1, 500), (2, 501), (3, 1_400), (4, 5_000)];
/// One more than the bound of a lookup.
const TOO_MANY: (u64, u64) = (5, 5_001);
const BOUND: u64 = 3_000;

/// Two thirds of the authors have a message or two; few have many.
fn fill(client: &mut WireClient) {
    let mut messages = Vec::new();
    for id in 1..=6_000_u64 {
        let author = match id % 3 {
            0 => 1 + id % 37,
            _ => 1 + id * 7_919 % AUTHORS,
        };
        messages.push((id, author));
    }
    insert(client, "message", &messages, |(id, author)| {
        format!("({id},{author},'message {id}')")
    });
    let mut follows = Vec::new();
    for (reader, count) in FOLLOWED.into_iter().chain([TOO_MANY]) {
        follows.extend((1..=count).map(|author| (reader, author)));
    }
    insert(client, "follower", &follows, |(reader, author)| {
        format!("({reader},{author})")
    });
}

/// Compares each procedure's page and everything that the call leaves.
fn ask(twin: &mut Twin, reader: u64) {
    twin.run(&format!("CALL fetch_timeline_ids({reader})"));
    twin.run("SELECT message.id, user_id, body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20");
    twin.run("SELECT id FROM fetch_timeline_tt ORDER BY id DESC");
    twin.run(&format!("CALL fetch_timeline_ids2({reader}, {BOUND})"));
    twin.run("SELECT id FROM fetch_timeline_tt ORDER BY id DESC");
    twin.run_unordered("SELECT * FROM max_ids_of_followers");
    twin.run(&format!(
        "CALL build_max_ids_of_followers({reader}, {BOUND})"
    ));
    twin.run_unordered("SELECT * FROM max_ids_of_followers");
}

#[test]
fn readers_of_many_authors_have_lookups_answer() {
    const CALLS: u64 = 3;
    let Some(spread) = Spread::start(2, false) else {
        return;
    };
    let mut direct = spread.direct();
    fill(&mut direct);
    // The procedure is slow, which a flag of its reply would show.
    direct.ok("SET GLOBAL long_query_time = 3600");
    let proxy = spread.without_memory();
    let mut twin = Twin::between(spread.direct(), proxy.login(&spread.login));
    let mut asked = 0;
    for round in 0..2 {
        for (reader, count) in FOLLOWED {
            ask(&mut twin, reader);
            asked += CALLS;
            // On the data nodes: removes a follow, adds one, and inserts a message of an author who had none.
            direct.ok(&format!(
                "DELETE FROM follower WHERE user_id = {reader} AND follower_id = {}",
                2 + round
            ));
            direct.ok(&format!(
                "INSERT INTO follower VALUES ({reader}, {})",
                6_000 + round
            ));
            let (id, author) = (10_000 + 10 * round + reader, count - round);
            spread.data_node_of(author).ok(&format!(
                "INSERT INTO message VALUES ({id}, {author}, 'late')"
            ));
        }
    }
    let counts = proxy.counts();
    assert_eq!(counts.relayed(), 0, "{counts:?}");
    assert_eq!(counts.of("calls_owned"), asked, "{counts:?}");
    ask(&mut twin, TOO_MANY.0);
    let counts = proxy.counts();
    assert_eq!(
        counts.of("calls_relayed[too_many_ids]"),
        CALLS,
        "{counts:?}"
    );
    assert_eq!(counts.relayed(), CALLS, "{counts:?}");
}
