//! Compares replies to random statements over random rows.

use super::app::{FEED, large, settings};
use super::pair::Pair;
use super::served::{PATIENT, served};
use super::statements::Drawn;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::Counts;
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};

/// The number of statements to compare on each server: `HEADWATER_FEEDS`, or enough for a test.
fn statements() -> u64 {
    how_many("HEADWATER_FEEDS", 1_000)
}

/// The number of templates.
const TEMPLATES: u64 = 60;

/// Types of message ids and of user ids.
const TYPES: [(&str, &str); 3] = [
    ("BIGINT UNSIGNED", "BIGINT UNSIGNED"),
    ("INT", "INT"),
    ("MEDIUMINT UNSIGNED", "SMALLINT"),
];

#[test]
fn statements_of_feeds_are_answered_as_directly() {
    on_each_server(|server| {
        for (id, user) in TYPES {
            let count = statements() / TYPES.len() as u64;
            compare(server, (id, user), &settings(), count, Pair::ask);
        }
    });
}

#[test]
fn columns_are_described_exactly_as_directly_where_that_is_wanted() {
    on_each_server(|server| {
        let settings = [PATIENT, "columns = \"exact\"\n", FEED].concat();
        let count = statements() / 2;
        let ask = |pair: &mut Pair, _, statement: &str| pair.ask_exactly(statement);
        compare(server, TYPES[0], &settings, count, ask);
    });
}

/// Runs this many statements on both sides. At least a sixth must be narrowed.
fn compare(
    server: &'static Server,
    (id, user): (&'static str, &'static str),
    settings: &str,
    count: u64,
    ask: impl Fn(&mut Pair, u64, &str),
) {
    let mut random = Random(20_261_123);
    let app = large(id, user);
    let database = Database::empty(server, "feeds");
    app.make(&mut database.connect(), &mut random);
    let proxy = served(server, &database, "home", settings);
    let mut pair = Pair::new(database.connect(), proxy.login(&database.login()));
    let quota = Quota::new(&proxy, count, count / 6, Counts::feeds_answered);
    while quota.take().is_some() {
        let template = random.below(TEMPLATES);
        let statement = Drawn {
            random: Random(template),
            values: &mut random,
            app: &app,
            key: None,
        }
        .statement();
        ask(&mut pair, template, &statement.text);
    }
    println!("{} turns: {:?}", quota.taken(), proxy.counts());
}
