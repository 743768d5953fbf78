//! Statements that are meant to be expensive: replies are as from the server, costs are bounded, and other sessions are not held up.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::app::{SMALL, settings};
use super::narrowed::{equal, narrowed, relayed_beside};
use super::rules::LISTED;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;

/// Far more than 100 templates need, and less than 10,000 would need.
const GROWTH_KIB: u64 = 48 * 1024;
const STATEMENT_BYTES: usize = 256 * 1024;

fn bounded(server: &'static Server, story: &str) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    SMALL.make(&mut database.connect(), &mut Random(5));
    let limits = "[limits]\ntemplates = 100\ncandidates = 500\n";
    let proxy = served(server, &database, "home", &[limits, &settings()].concat());
    (database, proxy)
}

/// Sets the flag when dropped, even by a failure.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// While `goes_on` runs, another session's queries are answered correctly.
fn beside(database: &Database, proxy: &Proxy, goes_on: impl FnOnce()) {
    let expected = database.connect().column(LISTED);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut client = proxy.login(&database.login());
            let mut answers = 0;
            while !done.load(Ordering::Relaxed) {
                assert_eq!(client.column(LISTED), expected);
                answers += 1;
            }
            answers
        });
        let ends = Done(&done);
        goes_on();
        drop(ends);
        let answers = other.join().unwrap();
        assert!(answers > 0);
    });
}

/// A page of this many authors, and the number of their messages.
fn authors(count: u32) -> [String; 2] {
    let mut list = String::from("1");
    for author in 2..=count {
        let _ = write!(list, ",{author}");
    }
    let of = format!("FROM statuses WHERE profile_id IN ({list})");
    [
        format!("SELECT id {of} ORDER BY id DESC LIMIT 5"),
        format!("SELECT COUNT(*) {of}"),
    ]
}

fn with(condition: &str) -> String {
    format!(
        "SELECT id FROM statuses WHERE profile_id IN (1, 2, 3) AND {condition} ORDER BY id DESC LIMIT 5"
    )
}

/// Within `limits.list_authors` statements are narrowed; beyond it, and beyond `limits.statement_bytes`, they are relayed.
#[test]
fn lists_of_very_many_authors_are_answered_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = bounded(server, "feedcrowd");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for statement in authors(10_000) {
            equal(&proxy, &mut twin, &statement);
        }
        beside(&database, &proxy, || {
            for statement in [10_001, 40_000].map(authors).as_flattened() {
                relayed_beside(&proxy, &mut twin, statement, "too_many");
            }
            for statement in authors(100_000) {
                for _ in 0..3 {
                    twin.run(&statement);
                }
            }
        });
    });
}

/// Templates are evicted, so the memory for them is bounded.
#[test]
fn ten_thousand_forms_of_a_statement_are_answered_and_forgotten() {
    on_each_server(|server| {
        let (database, proxy) = bounded(server, "feedforms");
        let mut client = proxy.login(&database.login());
        narrowed(&proxy, &mut client, LISTED);
        let expected = database.connect().column(LISTED);
        let before = proxy.resident_kib();
        beside(&database, &proxy, || {
            for form in 0..10_000 {
                let statement = LISTED.replace("SELECT id", &format!("SELECT id AS form{form}"));
                assert_eq!(client.column(&statement), expected);
            }
        });
        let grown = proxy.resident_kib().saturating_sub(before);
        assert!(grown < GROWTH_KIB, "{grown} KiB");
        narrowed(&proxy, &mut client, LISTED);
        let counts = proxy.counts();
        assert!(
            counts.of("feeds_relayed[new_template]") > 1_000,
            "{counts:?}"
        );
    });
}

/// Covers large offsets, and filters that no message passes.
#[test]
fn pages_that_candidates_cannot_fill_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = bounded(server, "feedfar");
        let mut twin = Twin::new(server, &proxy, &database.login());
        beside(&database, &proxy, || {
            for offset in ["1000000000", "4294967296", "18446744073709551615", "496"] {
                let far = LISTED.replace("LIMIT 5", &format!("LIMIT 5 OFFSET {offset}"));
                relayed_beside(&proxy, &mut twin, &far, "too_many");
            }
            let all = LISTED.replace("LIMIT 5", "LIMIT 18446744073709551615");
            relayed_beside(&proxy, &mut twin, &all, "too_many");
            for none in [
                "caption = 'no such'",
                "id < 0",
                "likes > 999",
                "caption LIKE '%no such%'",
            ] {
                twin.run(&with(none));
                twin.run(&with(none));
            }
            relayed_beside(&proxy, &mut twin, &with("likes = 999"), "filtered");
        });
        // The page is not full, because no more rows match.
        let few = "SELECT id FROM statuses WHERE profile_id IN (29, 30) AND likes = 999 ORDER BY id DESC LIMIT 5";
        equal(&proxy, &mut twin, few);
    });
}

/// Covers conditions of any nesting depth.
#[test]
fn conditions_within_conditions_are_answered_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = bounded(server, "feeddeep");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let deep = |depth: usize, open: &str, inner: &str, close: &str| {
            with(&[&open.repeat(depth), inner, &close.repeat(depth)].concat())
        };
        let either = |count: usize| {
            let all: Vec<String> = (0..count).map(|n| format!("likes = {n}")).collect();
            with(&format!("({})", all.join(" OR ")))
        };
        equal(&proxy, &mut twin, &deep(8, "(", "likes > 3", ")"));
        equal(&proxy, &mut twin, &deep(8, "NOT (", "likes > 3", ")"));
        equal(&proxy, &mut twin, &either(150));
        beside(&database, &proxy, || {
            for depth in [40, 400, 900, 4_000] {
                for statement in [
                    deep(depth, "(", "likes > 3", ")"),
                    deep(depth, "NOT (", "likes > 3", ")"),
                    deep(depth.min(400), "COALESCE(", "likes", ", 1)"),
                    deep(
                        depth.min(60),
                        "EXISTS (SELECT 1 FROM profiles WHERE ",
                        "id = 1",
                        ")",
                    ),
                ] {
                    for _ in 0..2 {
                        twin.run(&statement);
                    }
                }
            }
            for _ in 0..2 {
                twin.run(&either(9_000));
            }
        });
    });
}

/// Covers texts just within and just beyond the longest that Headwater reads.
#[test]
fn statements_about_as_long_as_are_looked_at_are_answered_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = bounded(server, "feedlong");
        let mut twin = Twin::new(server, &proxy, &database.login());
        beside(&database, &proxy, || {
            for (front, fills, back) in [
                ("likes > 3", " ", ""),
                ("likes > 3 /*", "*", "*/"),
                ("caption <> '", "x", "'"),
                ("", "(", "likes > 3"),
            ] {
                for length in STATEMENT_BYTES - 2..=STATEMENT_BYTES + 1 {
                    let rest = length - with(&[front, back].concat()).len();
                    let statement = with(&[front, &fills.repeat(rest), back].concat());
                    assert_eq!(statement.len(), length);
                    for _ in 0..2 {
                        twin.run(&statement);
                    }
                }
            }
        });
        // A comparison with a long string is narrowed if Headwater reads its text. Unread statements may set something in their session.
        let mut twin = Twin::new(server, &proxy, &database.login());
        let long = with(&format!("caption <> '{}'", "x".repeat(200_000)));
        equal(&proxy, &mut twin, &long);
    });
}
