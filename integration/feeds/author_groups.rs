//! A row for each author, as unread messages by conversation and likes by post: from memory, as the server has them.

use std::time::Instant;

use super::counts::{change, compare_whatever_changes};
use super::id_lists::app_with_ties;
use super::rules::app;
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;
use crate::kit::wire_client::Param;
use crate::kit::{patience, pause_since, wait_until};

/// Their order is theirs.
const STATEMENTS: [&str; 11] = [
    "SELECT profile_id, COUNT(*) FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) GROUP BY profile_id ORDER BY profile_id",
    "SELECT profile_id, MAX(id) AS id FROM statuses WHERE profile_id IN (1, 2, 3) GROUP BY profile_id ORDER BY id DESC",
    "SELECT COUNT(*) AS count_all, `statuses`.`profile_id` AS statuses_profile_id FROM `statuses` WHERE `statuses`.`profile_id` IN (2, 3, 4) AND `statuses`.`kind` = 'photo' GROUP BY `statuses`.`profile_id` ORDER BY `statuses`.`profile_id` DESC",
    "SELECT profile_id AS whose, COUNT(id) AS total, MAX(created_at) AS last FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND likes > 5 GROUP BY whose ORDER BY total DESC, whose LIMIT 3",
    "SELECT s.profile_id, COUNT(*) AS unread, MAX(s.id) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 2 AND s.id > 2000 GROUP BY s.profile_id ORDER BY MAX(s.id) DESC LIMIT 2, 4",
    "SELECT f.following_id, MAX(s.created_at) AS last, COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 3 AND f.accepted = 1 AND s.deleted_at IS NULL GROUP BY f.following_id ORDER BY last DESC, f.following_id DESC LIMIT 5",
    "SELECT MAX(deleted_at), profile_id FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5, 6, 7) GROUP BY profile_id ORDER BY MAX(deleted_at), profile_id",
    "SELECT COUNT(*) FROM statuses WHERE profile_id IN (5, 6, 7) AND visibility = 'public' GROUP BY profile_id ORDER BY profile_id",
    "SELECT profile_id, COUNT(*) AS n FROM statuses WHERE profile_id IN (77777, 88888) GROUP BY profile_id ORDER BY n DESC, profile_id",
    "SELECT s.profile_id, COUNT(*) FROM statuses s WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND s.profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 1) GROUP BY s.profile_id ORDER BY s.profile_id ASC",
    // One author has one order.
    "SELECT profile_id, COUNT(*) FROM statuses WHERE profile_id IN (4) GROUP BY profile_id",
];

const EXECUTED: [(&str, &[&str]); 3] = [
    (
        "SELECT profile_id, COUNT(*) AS n FROM statuses WHERE profile_id IN (?, ?) AND likes > ? GROUP BY profile_id ORDER BY profile_id",
        &["1", "2", "10"],
    ),
    (
        "SELECT profile_id, MAX(created_at) AS last, COUNT(*) AS n FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = ?) GROUP BY profile_id ORDER BY last DESC, profile_id LIMIT ?",
        &["1", "4"],
    ),
    (
        "SELECT profile_id, MAX(id) AS last, COUNT(*) AS n FROM statuses WHERE profile_id IN (?, ?, ?) GROUP BY profile_id ORDER BY last DESC",
        &["3", "4", "5"],
    ),
];

/// What the server orders, where no feed does.
const TIED: [&str; 5] = [
    "SELECT profile_id, COUNT(*) FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) GROUP BY profile_id",
    "SELECT `statuses`.`profile_id`, COUNT(`statuses`.`id`) AS `n` FROM `statuses` WHERE `statuses`.`profile_id` IN (3, 4, 5) AND `statuses`.`kind` = 'photo' GROUP BY `statuses`.`profile_id` ORDER BY NULL",
    "SELECT COUNT(*) AS count_all, statuses.profile_id AS statuses_profile_id FROM statuses WHERE statuses.profile_id IN (2, 3, 8, 9) GROUP BY statuses.profile_id",
    "SELECT profile_id, MAX(created_at) AS last FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 2) GROUP BY profile_id ORDER BY last DESC",
    "SELECT profile_id, COUNT(*) AS n FROM statuses WHERE profile_id IN (6, 7, 8, 9, 10) AND likes > 20 GROUP BY profile_id ORDER BY n",
];

#[test]
fn groups_are_the_servers_whatever_changes_between_them() {
    on_each_server(|server| {
        let kept = compare_whatever_changes(
            server,
            ("groups", 71),
            (&STATEMENTS, &EXECUTED),
            |writer, turn| {
                writer.ok(match turn % 5 {
                    0 => "UPDATE statuses SET deleted_at = '2026-05-05 05:05:05' WHERE profile_id IN (2, 6) ORDER BY id DESC LIMIT 3",
                    1 => "DELETE FROM statuses WHERE profile_id = 5",
                    2 => "INSERT INTO statuses (id, profile_id, caption, kind, visibility, likes, created_at) SELECT MAX(id) + 1, 5, 'x', 'photo', 'public', 30, '2026-07-07 07:07:07' FROM statuses",
                    _ => "DO 1",
                });
            },
        );
        assert!(kept > 200, "{kept}");
    });
}

/// Rows that ORDER BY leaves equal come by author, where the feed says so; each is the server's.
#[test]
fn the_feed_orders_what_the_server_would() {
    on_each_server(|server| {
        let (database, proxy) = app_with_ties(server, "groupties", true);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let (mut other, mut random) = (database.connect(), Random(72));
        for statement in TIED {
            let before = proxy.counts().of("feeds_kept");
            let (begun, deadline) = (Instant::now(), patience());
            while proxy.counts().of("feeds_kept") == before {
                twin.run_unordered(statement);
                assert!(
                    Instant::now() < deadline,
                    "never kept: {statement}: {:?}",
                    proxy.counts()
                );
                pause_since(begun);
            }
        }
        for turn in 0..60 {
            other.query(&change(&mut random, turn));
            for statement in TIED.iter().chain(&TIED) {
                twin.run_unordered(statement);
            }
        }
    });
}

/// Who gave the server the choice gets the server's.
#[test]
fn the_server_orders_what_nobody_else_does() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "grouporder");
        let mut other = database.connect();
        other.ok("UPDATE statuses SET created_at = '2026-01-01 10:00:00', likes = 30");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for statement in &TIED[..4] {
            let sampled = || proxy.counts().of("feeds_learned");
            let before = sampled();
            wait_until("a sample", || {
                twin.run_unordered(statement);
                sampled() > before
            });
            for _ in 0..20 {
                twin.run_unordered(statement);
            }
        }
        assert_eq!(proxy.counts().of("feeds_kept"), 0, "{:?}", proxy.counts());
    });
}

/// A fault that was found: MariaDB describes columns of an author in an integer otherwise than of one in a string.
#[test]
fn columns_are_the_servers_for_parameters_of_each_type() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "grouptypes");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let texts = [
            "SELECT s.profile_id AS id, COUNT(*) AS c FROM statuses s WHERE s.profile_id = ? GROUP BY s.profile_id ORDER BY s.profile_id",
            "SELECT profile_id, COUNT(*) AS n, MAX(id) FROM statuses WHERE profile_id = ? GROUP BY profile_id ORDER BY n",
        ];
        for text in texts {
            let statement = twin.prepare(text);
            let number = |author: u64| Param::new(8, 0, &author.to_le_bytes());
            let string = |author: u64| Param::text(Some(&author.to_string()));
            for kind in [&number as &dyn Fn(u64) -> Param, &string, &number, &string] {
                let before = proxy.counts().of("feeds_kept");
                let begun = Instant::now();
                let mut executed = 0;
                // Where the server's plan is another for these, none may be kept.
                while proxy.counts().of("feeds_kept") < before + 4 && executed < 40 {
                    executed += 1;
                    twin.execute_with(statement, &[kind(1 + executed % 5)], 0, true);
                    pause_since(begun);
                }
            }
            assert!(proxy.counts().of("feeds_kept") > 0, "{:?}", proxy.counts());
        }
    });
}
