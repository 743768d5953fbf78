//! Pages of readers who have blocked authors, or only some of whose edges count (`accepted = 1`): Headwater queries the server for these
//! authors, and changes of edges and blocks are visible at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::app::{settings, steady_statistics};
use super::kept::{kept, same_rows};
use super::kept_joined;
use super::linear::checks;
use super::rules::app;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::quota::{Quota, kept_pages};
use crate::kit::random::Random;
use crate::kit::servers::{on_each_quiet_server, on_each_server};
use crate::kit::threads::wait_for;
use crate::kit::twin::Twin;

/// Conditions on edges and blocks in each shape; reader 9 has no edge that counts, or no edge at all.
const PAGES: [&str; 10] = [
    "SELECT s.id, s.caption FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 AND f.accepted = 1 \
     ORDER BY s.id DESC LIMIT 7",
    "SELECT s.*, p.name FROM statuses s JOIN followers f ON f.following_id = s.profile_id AND f.accepted = 1 JOIN profiles p \
     ON p.id = s.profile_id WHERE f.profile_id = 2 AND s.deleted_at IS NULL ORDER BY s.id DESC LIMIT 5",
    "SELECT id FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 2 AND accepted <> 0) \
     AND kind = 'photo' ORDER BY id DESC LIMIT 4",
    "SELECT id, likes FROM statuses WHERE (profile_id = 3 OR profile_id IN (SELECT following_id FROM followers WHERE profile_id = 3 AND accepted = 1)) \
     ORDER BY id DESC LIMIT 9",
    "SELECT caption FROM statuses s WHERE EXISTS (SELECT 1 FROM followers f WHERE f.following_id = s.profile_id AND f.profile_id = 1 \
     AND (f.accepted = 1 OR f.following_id = 7)) ORDER BY s.id DESC LIMIT 8",
    "SELECT s.id FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 9 AND f.accepted = 2 \
     ORDER BY s.id DESC LIMIT 3",
    "SELECT id, caption FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND profile_id NOT IN \
     (SELECT blocked_id FROM blocks WHERE profile_id = 1) ORDER BY id DESC LIMIT 6",
    "SELECT s.id, p.name FROM statuses s JOIN followers f ON f.following_id = s.profile_id AND f.profile_id = 2 JOIN profiles p ON p.id = s.profile_id \
     LEFT JOIN blocks b ON b.profile_id = 2 AND b.blocked_id = s.profile_id WHERE f.accepted = 1 AND b.blocked_id IS NULL AND s.profile_id NOT IN \
     (SELECT profile_id FROM blocks WHERE blocked_id = 2) ORDER BY s.id DESC LIMIT 5",
    "SELECT id FROM statuses s WHERE profile_id IN (1, 2, 3, 4, 5) AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.blocked_id = s.profile_id \
     AND b.profile_id = 3 AND b.blocked_id <> 2) AND likes > 5 ORDER BY id DESC LIMIT 5 OFFSET 2",
    "SELECT id FROM statuses WHERE (profile_id = 3 OR profile_id IN (SELECT following_id FROM followers WHERE profile_id = 3)) AND profile_id NOT IN \
     (SELECT blocked_id FROM blocks WHERE profile_id = 3) ORDER BY id DESC LIMIT 8",
];

#[test]
fn a_change_of_an_edge_is_seen() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptchosen");
        let mut root = database.connect();
        root.ok("UPDATE followers SET accepted = id MOD 3 > 0");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        let mut random = Random(12);
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
        }
        for turn in 0..200 {
            let (reader, author) = (1 + random.below(3), 1 + random.below(12));
            let id = 2_900 + random.below(120);
            if turn % 40 == 0 {
                let image = ["FULL", "MINIMAL", "NOBLOB"][(turn / 40 % 3) as usize];
                other.ok(&format!("SET SESSION binlog_row_image = {image}"));
            }
            other.query(&match random.below(11) {
                0..=2 => format!("UPDATE followers SET accepted = 1 - accepted WHERE profile_id = {reader} AND following_id = {author}"),
                3 => format!("INSERT IGNORE INTO followers VALUES (DEFAULT, {reader}, {author}, {})", turn % 2),
                4 => format!("DELETE FROM followers WHERE profile_id = {reader} AND following_id = {author}"),
                5 => format!("UPDATE IGNORE followers SET profile_id = 1 + profile_id MOD 4 WHERE profile_id = {reader} AND following_id = {author}"),
                6 => format!("UPDATE statuses SET kind = IF(kind = 'photo', 'text', 'photo'), likes = {turn} WHERE id = {id}"),
                7 => format!("INSERT IGNORE INTO blocks VALUES ({reader}, {author}), ({author}, {reader})"),
                8 => format!("DELETE FROM blocks WHERE profile_id = {reader} OR blocked_id = {reader} LIMIT 2"),
                9 => format!("UPDATE IGNORE blocks SET profile_id = {reader}, blocked_id = {author} LIMIT 3"),
                _ => format!("UPDATE statuses SET profile_id = {author} WHERE id = {id}"),
            });
            for statement in PAGES {
                same_rows(&mut twin, statement);
            }
        }
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
            other.ok("UPDATE followers SET accepted = 1 - accepted");
            same_rows(&mut twin, statement);
        }
        for statement in [
            "ALTER TABLE followers ADD COLUMN since DATETIME FIRST",
            "UPDATE followers SET accepted = 1 - accepted",
            "ALTER TABLE followers MODIFY accepted INT NULL",
            "UPDATE followers SET accepted = NULL WHERE following_id MOD 2 = 0",
            "TRUNCATE TABLE blocks",
            "INSERT INTO blocks SELECT profile_id, following_id FROM followers WHERE id MOD 5 = 0",
            "ALTER TABLE blocks DROP PRIMARY KEY",
            "INSERT INTO blocks SELECT * FROM blocks",
            "ALTER TABLE blocks MODIFY blocked_id BIGINT NULL",
        ] {
            for statement in [PAGES[0], PAGES[6]] {
                kept(&proxy, &mut twin, statement);
            }
            other.ok(statement);
            for statement in [PAGES[0], PAGES[6], PAGES[0], PAGES[6]] {
                same_rows(&mut twin, statement);
            }
        }
        // A NOT IN list with NULL lets no row pass, and is not cached.
        other.ok("INSERT INTO blocks VALUES (1, NULL)");
        for _ in 0..40 {
            assert!(twin.rows(PAGES[6]).is_empty());
        }
    });
}

/// The parameters of an execution select the edges that count.
#[test]
fn executions_choose_edges_by_their_parameters() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptchosenbinary");
        let mut root = database.connect();
        root.ok("UPDATE followers SET accepted = id MOD 3");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let statement = twin.prepare(&PAGES[0].replace("= 1", "= ?"));
        for turn in 0..12 {
            for accepted in ["1", "2", "0"] {
                let before = proxy.counts().of("feeds_kept");
                for _ in 0..2_000 {
                    twin.execute(statement, &[Some("1"), Some(accepted)]);
                    if proxy.counts().of("feeds_kept") > before {
                        break;
                    }
                }
                assert!(
                    proxy.counts().of("feeds_kept") > before,
                    "{:?}",
                    proxy.counts()
                );
            }
            root.ok(&format!(
                "UPDATE followers SET accepted = (accepted + 1) MOD 3 WHERE following_id MOD 2 = {}",
                turn % 2
            ));
            for accepted in ["1", "2", "0"] {
                twin.execute(statement, &[Some("1"), Some(accepted)]);
            }
        }
    });
}

/// Headwater queries an oversized list once, and narrows its reader's statements.
#[test]
fn a_reader_of_too_many_is_narrowed() {
    on_each_server(|server| {
        let database = Database::empty(server, "keptchosenmany");
        super::app::SMALL.make(&mut database.connect(), &mut Random(5));
        let settings = format!("{}\n[rows]\nmemory_bytes = 1048576\n", settings());
        let proxy = super::served::served(server, &database, "home", &settings);
        let mut root = database.connect();
        let edges: Vec<String> = (1..=3_000).map(|it| format!("(1, {it}, 1)")).collect();
        root.ok(&format!(
            "INSERT IGNORE INTO followers (profile_id, following_id, accepted) VALUES {}",
            edges.join(",")
        ));
        let mut twin = Twin::new(server, &proxy, &database.login());
        kept(&proxy, &mut twin, PAGES[2]);
        let before = proxy.counts().of("feeds_kept");
        for _ in 0..60 {
            same_rows(&mut twin, PAGES[0]);
        }
        assert_eq!(proxy.counts().of("feeds_kept"), before);
    });
}

/// Covers lists from the pages' own tables, and from temporary tables that shadow others in a session.
#[test]
fn lists_may_be_of_any_table_that_the_log_tells_of() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptlistsodd");
        let mut root = database.connect();
        root.ok("CREATE TABLE mutes (who INT UNSIGNED NOT NULL, whom INT, kind ENUM('all','photos') NOT NULL, until DATE NOT NULL, KEY (who))");
        root.ok("INSERT INTO mutes VALUES (1, 2, 'all', '2030-01-01'), (1, 2, 'all', '2031-01-01'), (1, 3, 'photos', '2020-01-01'), (2, 4, 'all', '2030-01-01')");
        steady_statistics(&mut root, &["mutes"]);
        let of = |condition: &str| {
            format!(
                "SELECT id, caption FROM statuses s WHERE profile_id IN (1, 2, 3, 4, 5, 6) AND {condition} ORDER BY id DESC LIMIT 6"
            )
        };
        let mut twin = Twin::new(server, &proxy, &database.login());
        for (condition, changes) in [
            (
                "profile_id NOT IN (SELECT m.whom FROM mutes m WHERE m.who = 1 AND m.kind = 'all' AND m.until > '2026-01-01')",
                &[
                    "UPDATE mutes SET whom = 5 WHERE until = '2031-01-01'",
                    "UPDATE mutes SET kind = 'all' WHERE whom = 3",
                    "UPDATE mutes SET until = '2027-01-01' WHERE whom = 3",
                    "UPDATE mutes SET who = 2 WHERE who = 1",
                    "DELETE FROM mutes WHERE who = 2 AND whom = 4",
                    "UPDATE mutes SET who = 1",
                ][..],
            ),
            (
                "NOT EXISTS (SELECT 1 FROM statuses t WHERE t.profile_id = s.profile_id AND t.id = 2990)",
                &[
                    "UPDATE statuses SET profile_id = 2 WHERE id = 2990",
                    "UPDATE statuses SET profile_id = 3 WHERE id = 2990",
                    "DELETE FROM statuses WHERE id = 2990",
                    "INSERT INTO statuses VALUES (2990, 4, 'again', 'text', 'public', 0, NULL, NOW(), NULL)",
                ],
            ),
            (
                "profile_id NOT IN (SELECT id FROM profiles WHERE private = 1 AND name <> 'user 3')",
                &[
                    "UPDATE profiles SET private = 1 WHERE id = 2",
                    "UPDATE profiles SET name = 'another', private = 1 WHERE id = 3",
                    "UPDATE profiles SET private = 0",
                ],
            ),
        ] {
            kept(&proxy, &mut twin, &of(condition));
            for change in changes {
                root.ok(change);
                same_rows(&mut twin, &of(condition));
                kept(&proxy, &mut twin, &of(condition));
            }
        }
        // Temporary tables affect the pages of their own session only.
        let mut other = Twin::new(server, &proxy, &database.login());
        let blocked = of("profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 1)");
        for statement in [&blocked, &kept_joined::PAGES[0].to_owned()] {
            kept(&proxy, &mut twin, statement);
        }
        for session in [&mut twin.direct, &mut twin.proxied] {
            session.ok("CREATE TEMPORARY TABLE blocks (profile_id INT, blocked_id INT)");
            session.ok("INSERT INTO blocks VALUES (1, 6), (1, 5), (1, 4)");
            session.ok("CREATE TEMPORARY TABLE profiles (id INT PRIMARY KEY, name VARCHAR(20), private INT)");
            session.ok("INSERT INTO profiles VALUES (1, 'temporary', 0), (2, 'temporary', 0)");
        }
        for _ in 0..3 {
            for statement in [&blocked, &kept_joined::PAGES[0].to_owned()] {
                same_rows(&mut twin, statement);
                same_rows(&mut other, statement);
            }
        }
        for session in [&mut twin.direct, &mut twin.proxied] {
            session.ok("DROP TEMPORARY TABLE blocks, profiles");
        }
        for statement in [&blocked, &kept_joined::PAGES[0].to_owned()] {
            same_rows(&mut twin, statement);
            same_rows(&mut other, statement);
        }
    });
}

/// At each moment exactly one of two authors counts: the page shows that one, and COUNT(*) counts its messages.
#[test]
fn no_edge_is_stale_while_edges_change() {
    on_each_quiet_server(|server| {
        let (database, proxy) = app(server, "keptchosenlinear");
        edges_beside_a_writer(&database, &proxy);
    });
}

fn edges_beside_a_writer(database: &Database, proxy: &Proxy) {
    let mut root = database.connect();
    root.ok("DELETE FROM followers WHERE profile_id = 20");
    root.ok("INSERT INTO followers (profile_id, following_id, accepted) VALUES (20, 1, 0), (20, 2, 1), (20, 3, 1)");
    root.ok("DELETE FROM blocks WHERE profile_id = 20");
    root.ok("INSERT INTO blocks VALUES (20, 1)");
    root.ok("DELETE FROM statuses WHERE profile_id = 1 ORDER BY id LIMIT 3");
    let mut number_of = |author: u32| -> u64 {
        let count = format!("SELECT COUNT(*) FROM statuses WHERE profile_id = {author}");
        root.column(&count)[0].parse().unwrap()
    };
    let numbers = [1, 2].map(|author| number_of(author) + number_of(3));
    assert_ne!(numbers[0], numbers[1]);
    let (begun, committed) = (AtomicU64::new(0), AtomicU64::new(0));
    let done = AtomicBool::new(false);
    let quota = Quota::new(proxy, checks() / 2, 1, kept_pages);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = database.connect();
            while !done.load(Ordering::Relaxed) {
                let turn = begun.fetch_add(1, Ordering::SeqCst) + 1;
                client.ok("BEGIN");
                client.ok("UPDATE followers SET accepted = 1 - accepted WHERE profile_id = 20 AND following_id = 1");
                client.ok("UPDATE followers SET accepted = 1 - accepted WHERE profile_id = 20 AND following_id = 2");
                client.ok("UPDATE blocks SET blocked_id = 3 - blocked_id WHERE profile_id = 20");
                client.ok("COMMIT");
                committed.store(turn, Ordering::SeqCst);
                client.ok(&format!(
                    "INSERT INTO statuses VALUES ({}, 30, 'behind', 'text', 'private', 0, NULL, NOW(), NULL)",
                    1_000_000 + turn
                ));
                thread::sleep(Duration::from_millis(60));
            }
        });
        let readers: Vec<_> = (0..4_u64)
            .map(|number| {
                let (begun, committed, quota) = (&begun, &committed, &quota);
                scope.spawn(move || {
                    let mut client = proxy.login(&database.login());
                    let mut turn = number;
                    while quota.take().is_some() {
                        turn += 1;
                        let join = match turn % 3 {
                            0 => "JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 20 AND f.accepted = 1",
                            1 => "WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = 20 AND accepted = 1)",
                            _ => "JOIN followers f ON f.following_id = s.profile_id AND f.profile_id = 20 WHERE s.profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 20)",
                        };
                        let before = committed.load(Ordering::SeqCst);
                        let shown = match turn % 2 {
                            0 => {
                                let authors = client.column(&format!(
                                    "SELECT s.profile_id FROM statuses s {join} ORDER BY s.id DESC LIMIT 60"
                                ));
                                [1, 2].map(|author: u64| authors.contains(&author.to_string()))
                            }
                            _ => {
                                let count =
                                    client.column(&format!("SELECT COUNT(*) FROM statuses s {join}"));
                                numbers.map(|number| count == [number.to_string()])
                            }
                        };
                        let behind = begun.load(Ordering::SeqCst);
                        assert_ne!(shown[0], shown[1], "two moments, or none: {join}");
                        if before == behind {
                            // Initially the second author counts.
                            assert_eq!(shown[0], before % 2 == 1, "turn {before} of edges");
                        }
                    }
                })
            })
            .collect();
        wait_for(readers, &done);
    });
    println!("{} turns: {:?}", quota.taken(), proxy.counts());
}
