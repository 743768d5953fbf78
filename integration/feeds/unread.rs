//! Counts that say where their messages begin, as of unread ones: each new beginning is answered from what is cached of single messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::app::large;
use super::counts::{change, change_row_image, classic};
use super::kept::kept;
use super::keys::KEYS;
use super::linear::checks;
use super::rules::{BEHIND, app};
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::Counts;
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{on_each_quiet_server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;
use crate::memory::world::World;

/// As apps write them; `{at}` is where the reader has read up to.
const UNREAD: [&str; 14] = [
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND id > {at}",
    "SELECT COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 2 AND s.id > {at}",
    "SELECT COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 AND s.deleted_at IS NULL AND s.id > {at}",
    "SELECT COUNT(id) FROM statuses WHERE profile_id IN (1, 2, 3, 4) AND kind = 'photo' AND id >= {at}",
    "SELECT COUNT(DISTINCT s.id) FROM statuses s JOIN followers f ON s.profile_id = f.following_id WHERE f.profile_id = 3 AND {at} < s.id AND s.likes > 10",
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) AND id BETWEEN {at} AND 3050 AND likes < 40",
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) AND id > {at} AND id <= 3100 AND visibility = 'public'",
    "SELECT COUNT(*) FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = 2) AND p.private = 0 AND s.id > {at}",
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 1) AND id > {at}",
    "SELECT COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 AND f.accepted = 1 AND s.id > {at}",
    "SELECT COUNT(*) FROM (SELECT s.id, s.caption FROM statuses s WHERE s.profile_id IN (1, 2, 3) AND s.id > {at} AND s.kind <> 'text' ORDER BY s.id DESC) t",
    "SELECT COUNT(*) FROM statuses WHERE (profile_id = 1 OR profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1)) AND id > {at} AND in_reply_to IS NULL",
    "SELECT COUNT(*) FROM statuses s LEFT JOIN blocks b ON b.profile_id = 2 AND b.blocked_id = s.profile_id WHERE s.profile_id IN (1, 2, 3, 4) AND b.blocked_id IS NULL AND s.id > {at}",
    "SELECT COUNT(*) FROM statuses WHERE (profile_id = 1 OR (visibility = 'public' AND profile_id IN (2, 3))) AND id > {at} AND id > 2500",
];

/// The same with parameters, of which the last is where the reader has read up to.
const EXECUTED: [(&str, &[&str]); 3] = [
    (
        "SELECT COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = ? AND s.id > ?",
        &["1"],
    ),
    (
        "SELECT COUNT(*) FROM statuses WHERE profile_id IN (?, ?, ?) AND likes > ? AND deleted_at IS NULL AND id > ?",
        &["1", "2", "3", "10"],
    ),
    (
        "SELECT COUNT(*) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = ? AND accepted = ?) AND kind = 'photo' AND id >= ?",
        &["2", "1"],
    ),
];

/// Executes a statement whose last parameter is where the reader has read up to.
pub(super) fn execute_from(twin: &mut Twin, statement: [u32; 2], values: &[&str], at: &str) {
    let values = values.iter().copied().chain([at]).map(Some);
    twin.execute(statement, &values.collect::<Vec<Option<&str>>>());
}

#[test]
fn unread_ones_are_the_servers_whatever_changes_between_them() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "unread");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let (mut other, mut random) = (database.connect(), Random(44));
        for statement in UNREAD {
            kept(&proxy, &mut twin, &statement.replace("{at}", "2950"));
        }
        let prepared = EXECUTED.map(|(text, _)| twin.prepare(text));
        let before = proxy.counts();
        for turn in 0..150 {
            change_row_image(&mut other, turn);
            let ends = ["COMMIT", "COMMIT", "ROLLBACK"][(turn % 3) as usize];
            other.ok("BEGIN");
            other.query(&change(&mut random, turn));
            if turn % 2 == 0 {
                other.query(&change(&mut random, turn));
            }
            other.ok(ends);
            // Mostly near the newest; sometimes there are none, or more than are counted singly.
            let at = match random.below(10) {
                0 => 1 + random.below(3_000),
                1 => 20_000,
                _ => 2_800 + random.below(300),
            }
            .to_string();
            for statement in UNREAD {
                twin.run(&statement.replace("{at}", &at));
                if turn % 5 == 0 {
                    twin.run(random.pick::<&str>(&BEHIND));
                }
            }
            for (statement, (_, values)) in prepared.iter().zip(&EXECUTED) {
                execute_from(&mut twin, *statement, values, &at);
                twin.run(random.pick::<&str>(&BEHIND));
            }
        }
        let counts = proxy.counts();
        let kept = counts.of("feeds_kept") - before.of("feeds_kept");
        assert!(kept > 300, "{counts:?}");
        for statement in [
            "ALTER TABLE statuses ADD COLUMN extra INT NULL",
            "TRUNCATE TABLE followers",
            "INSERT INTO followers (profile_id, following_id) SELECT 1, id FROM profiles WHERE id < 9",
            "DELETE FROM statuses WHERE id > 2900",
            "TRUNCATE TABLE statuses",
        ] {
            other.ok(statement);
            for statement in UNREAD.iter().chain(&UNREAD) {
                twin.run(&statement.replace("{at}", "2850"));
            }
        }
    });
}

/// Where a time or a number orders the feed, with equal values, NULL and dates that are none: the beginning is exact.
#[test]
fn a_beginning_by_a_key_is_exact() {
    on_each_server(|server| {
        for key in &KEYS {
            let mut random = Random(45);
            let database = Database::empty(server, "unreadkeys");
            let mut root = database.connect();
            large("BIGINT UNSIGNED", "INT").make(&mut root, &mut random);
            key.add(&mut root);
            let proxy = served(server, &database, "home", &key.settings());
            let zone = format!(
                "SET time_zone = '{}', sql_mode = 'ALLOW_INVALID_DATES'",
                key.zone
            );
            let mut twin = Twin::new(server, &proxy, &database.login());
            twin.ok(&zone);
            let name = key.name;
            let from = "FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = {reader}";
            let counts = [
                format!("SELECT COUNT(*) {from} AND s.{name} > {{a}}"),
                format!("SELECT COUNT(*) {from} AND s.{name} >= {{a}} AND s.kind = 'photo'"),
                format!("SELECT COUNT(*) {from} AND s.{name} BETWEEN {{a}} AND {{b}}"),
                format!(
                    "SELECT COUNT(*) {from} AND s.{name} > {{a}} AND s.{name} < {{b}} AND s.likes > 3"
                ),
                format!("SELECT COUNT(*) {from} AND (s.{name}, s.id) > ({{a}}, {{id}})"),
                format!(
                    "SELECT COUNT(*) {from} AND (s.{name} > {{a}} OR (s.{name} = {{a}} AND s.id > {{id}})) AND s.deleted_at IS NULL"
                ),
                format!(
                    "SELECT COUNT(*) {from} AND (s.{name} > {{a}} OR (s.{name} = {{a}} AND s.id >= {{id}}))"
                ),
                format!("SELECT COUNT(*) {from} AND s.{name} > {{a}} AND s.id > {{id}}"),
            ];
            // A value that some messages have, so that the ends of the window are tried.
            let some = format!(
                "SELECT {name} FROM statuses WHERE {name} > 0 ORDER BY {name} DESC LIMIT 500"
            );
            let values = twin.direct.column(&some);
            for turn in 0..60 {
                let literal = |random: &mut Random| match random.below(3) {
                    0 => key.literal(random),
                    _ => format!("'{}'", random.pick(&values)),
                };
                let [mut a, b] = [0, 1].map(|_| literal(&mut random));
                if name == "score" {
                    a = a.replace('\'', "");
                }
                for count in &counts {
                    let reader = 1 + random.below(3);
                    let text = count
                        .replace("{reader}", &reader.to_string())
                        .replace("{a}", &a)
                        .replace("{b}", &b)
                        .replace("{id}", &random.below(3_000).to_string());
                    twin.run(&text);
                    if turn % 4 == 0 {
                        twin.run(&text);
                    }
                }
            }
            let counts = proxy.counts();
            assert!(counts.feeds_answered() > 50, "{name}: {counts:?}");
        }
    });
}

/// The number of messages above the thirtieth is between what was acknowledged before the statement and what was begun by its reply.
#[test]
fn no_unread_message_is_missed_while_others_write() {
    on_each_quiet_server(|server| {
        let (database, proxy) = classic(server, "unreadlinear");
        let (login, addr) = (database.login(), server.addr());
        let quota = Quota::new(&proxy, checks(), checks() / 4, Counts::feeds_answered);
        let world = World::new(1);
        let (begun, done) = (AtomicU64::new(30), AtomicU64::new(30));
        thread::scope(|scope| {
            let running = world.run();
            let writer = scope.spawn(|| {
                let mut client = WireClient::login(addr, &login);
                while !world.is_stopping() {
                    let id = begun.fetch_add(1, Ordering::SeqCst) + 1;
                    let author = 2 + id % 3;
                    let body = if id % 4 == 0 { "hidden" } else { "x" };
                    client.ok(&format!(
                        "INSERT INTO message (id, user_id, body) VALUES ({id}, {author}, '{body}')"
                    ));
                    done.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_micros(id % 11 * 2_000));
                }
            });
            let readers: Vec<_> = (0..4_u64)
                .map(|number| {
                    let (quota, proxy, login) = (&quota, &proxy, &login);
                    let (begun, done) = (&begun, &done);
                    scope.spawn(move || {
                        let mut client = proxy.login(login);
                        let filtered = number % 2 == 0;
                        while quota.take().is_some() {
                            let least = done.load(Ordering::SeqCst);
                            let at = least.saturating_sub(20).max(30);
                            let filter = if filtered { "AND body <> 'hidden'" } else { "" };
                            let unread = format!(
                                "SELECT COUNT(*) FROM message JOIN follower ON message.user_id = follower.follower_id \
                                 WHERE follower.user_id = 1 AND message.id > {at} {filter}"
                            );
                            let unread: u64 = client.column(&unread)[0].parse().unwrap();
                            let most = begun.load(Ordering::SeqCst);
                            let number = |to: u64| {
                                let shown = |id: &u64| !filtered || !id.is_multiple_of(4);
                                (at + 1..=to).filter(shown).count() as u64
                            };
                            assert!(
                                (number(least)..=number(most)).contains(&unread),
                                "{unread} above {at}, of {least} to {most}"
                            );
                        }
                    })
                })
                .collect();
            running.outlast(readers, vec![writer]);
        });
        eprintln!("{:?}", proxy.counts());
    });
}
