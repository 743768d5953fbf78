//! The newest message of each author, as the last one of each conversation, in its common spellings: from memory, as the server has them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use headwater_lab::private_server::ServerKind;

use super::counts::{change, change_row_image, classic, compare_whatever_changes};
use super::kept::{kept, same_rows};
use super::linear::checks;
use super::rules::{BEHIND, app};
use crate::kit::proxy::Counts;
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{on_each_quiet_server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wait_until;
use crate::kit::wire_client::WireClient;
use crate::memory::world::World;

const STATEMENTS: [&str; 14] = [
    "SELECT profile_id, MAX(id) AS last FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) GROUP BY profile_id ORDER BY last DESC",
    "SELECT MAX(`statuses`.`id`), `statuses`.`profile_id` FROM `statuses` WHERE `statuses`.`profile_id` IN (SELECT `following_id` FROM `followers` WHERE `profile_id` = 1) AND deleted_at IS NULL GROUP BY `statuses`.`profile_id` ORDER BY MAX(`statuses`.`id`) DESC LIMIT 4",
    "SELECT s.* FROM statuses s WHERE s.id IN (SELECT MAX(id) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) GROUP BY profile_id) ORDER BY s.id DESC LIMIT 20",
    "select * from `statuses` where `id` in (select max(id) from `statuses` where `profile_id` in (1, 2, 3, 4) and `visibility` = 'public' group by `profile_id`) order by `id` desc",
    "SELECT s.id, s.caption, s.profile_id, p.name FROM statuses s JOIN (SELECT t.profile_id, MAX(t.id) AS last FROM statuses t JOIN followers f ON f.following_id = t.profile_id WHERE f.profile_id = 2 GROUP BY t.profile_id) d ON d.last = s.id JOIN profiles p ON p.id = s.profile_id ORDER BY d.last DESC LIMIT 10",
    "SELECT s.id, s.likes FROM statuses s INNER JOIN (SELECT profile_id, MAX(id) AS last FROM statuses WHERE profile_id IN (2, 3, 5, 7) AND kind = 'photo' GROUP BY profile_id) d ON s.profile_id = d.profile_id AND s.id = d.last WHERE s.likes > 10 ORDER BY s.id DESC",
    "SELECT t.id, t.caption FROM (SELECT s.*, ROW_NUMBER() OVER (PARTITION BY s.profile_id ORDER BY s.id DESC) AS n FROM statuses s WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = 3)) t WHERE t.n = 1 ORDER BY t.id DESC LIMIT 7",
    "WITH ranked AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY profile_id ORDER BY id DESC) AS rn FROM statuses WHERE profile_id IN (1, 2, 3) AND deleted_at IS NULL) SELECT * FROM ranked WHERE rn = 1 ORDER BY id DESC",
    "SELECT s.id, s.caption FROM statuses s WHERE s.profile_id IN (1, 2, 3, 4, 9) AND NOT EXISTS (SELECT 1 FROM statuses n WHERE n.profile_id = s.profile_id AND n.id > s.id) ORDER BY s.id DESC LIMIT 20",
    "SELECT s.* FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 AND f.accepted = 1 AND NOT EXISTS (SELECT * FROM statuses n WHERE n.profile_id = s.profile_id AND n.id > s.id) AND s.visibility = 'public' ORDER BY s.id DESC LIMIT 3",
    "SELECT s.id, s.kind FROM statuses s LEFT JOIN statuses n ON n.profile_id = s.profile_id AND n.id > s.id WHERE n.id IS NULL AND s.profile_id IN (4, 5, 6) ORDER BY s.id DESC",
    "SELECT s.id, s.caption FROM statuses s WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND s.profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 1) \
     AND NOT EXISTS (SELECT 1 FROM statuses n WHERE n.profile_id = s.profile_id AND n.id > s.id) ORDER BY s.id DESC LIMIT 20",
    "SELECT s.id, s.caption FROM statuses s WHERE s.id IN (SELECT MAX(id) FROM statuses WHERE profile_id IN (77777, 88888) GROUP BY profile_id) ORDER BY s.id",
    "SELECT s.id, s.profile_id, s.caption FROM statuses s JOIN (SELECT MAX(t.id) AS last FROM statuses t JOIN profiles p ON p.id = t.profile_id WHERE t.profile_id IN (1, 2, 3, 4, 5) AND p.private = 0 GROUP BY t.profile_id) d ON d.last = s.id ORDER BY s.id LIMIT 3",
];

/// Ordered by a time of the newest message.
const BY_TIME: [&str; 6] = [
    "SELECT s.* FROM statuses s JOIN (SELECT profile_id, MAX(id) AS last FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5) GROUP BY profile_id) d ON d.last = s.id ORDER BY s.created_at DESC, s.id DESC LIMIT 3",
    "SELECT s.id, s.caption FROM statuses s WHERE s.id IN (SELECT MAX(id) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND kind = 'photo' GROUP BY profile_id) ORDER BY s.created_at, s.id DESC LIMIT 2, 5",
    "SELECT t.id, t.created_at FROM (SELECT s.*, ROW_NUMBER() OVER (PARTITION BY s.profile_id ORDER BY s.id DESC) AS n FROM statuses s WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = 3)) t WHERE t.n = 1 ORDER BY t.created_at DESC, t.id",
    "SELECT s.id, s.deleted_at, p.name FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (1, 2, 3, 4, 9) AND NOT EXISTS (SELECT 1 FROM statuses n WHERE n.profile_id = s.profile_id AND n.id > s.id) AND s.likes < 45 ORDER BY s.deleted_at DESC, s.id LIMIT 20",
    "SELECT s.id, s.caption FROM statuses s WHERE s.profile_id IN (4) AND NOT EXISTS (SELECT 1 FROM statuses n WHERE n.profile_id = s.profile_id AND n.id > s.id) ORDER BY s.created_at DESC LIMIT 20",
    "SELECT s.id, s.caption FROM statuses s JOIN (SELECT MAX(id) AS last FROM statuses WHERE profile_id IN (2, 3, 4) GROUP BY profile_id) d ON d.last = s.id ORDER BY s.created_at DESC",
];

const WITH_A_STRING: &str = "SELECT s.*, 'aa' AS x FROM statuses s JOIN (SELECT profile_id, MAX(id) AS last FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5, 6, 7) GROUP BY profile_id) d ON d.last = s.id ORDER BY s.created_at DESC, s.id DESC LIMIT 4";

const EXECUTED: [(&str, &[&str]); 3] = [
    (
        "SELECT profile_id, MAX(id) AS last FROM statuses WHERE profile_id IN (?, ?) AND likes > ? GROUP BY profile_id ORDER BY last DESC",
        &["1", "2", "10"],
    ),
    (
        "SELECT s.id, s.caption FROM statuses s WHERE s.id IN (SELECT MAX(id) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = ?) GROUP BY profile_id) ORDER BY s.id DESC LIMIT 20",
        &["1"],
    ),
    (
        "SELECT s.id FROM statuses s WHERE s.profile_id IN (?, ?, ?) AND NOT EXISTS (SELECT 1 FROM statuses n WHERE n.profile_id = s.profile_id AND n.id > s.id) ORDER BY s.id DESC LIMIT 20",
        &["3", "4", "5"],
    ),
];

#[test]
fn the_newest_of_each_is_the_servers_whatever_changes_between_them() {
    on_each_server(|server| {
        let kept = compare_whatever_changes(
            server,
            ("newest", 53),
            (&STATEMENTS, &EXECUTED),
            |writer, turn| {
                // What is newest goes, moves, or changes.
                writer.ok(match turn % 6 {
                    0 => "DELETE FROM statuses WHERE profile_id = 3 ORDER BY id DESC LIMIT 1",
                    1 => "UPDATE statuses SET profile_id = 2 WHERE profile_id = 4 ORDER BY id DESC LIMIT 1",
                    2 => "UPDATE statuses SET visibility = IF(visibility = 'public', 'private', 'public') WHERE profile_id IN (1, 2) ORDER BY id DESC LIMIT 2",
                    _ => "DO 1",
                });
            },
        );
        assert!(kept > 300, "{kept}");
    });
}

/// A fault that was found: an error had a session forget its locked tables, of which a second reference needs a lock of its own.
#[test]
fn locked_tables_are_the_servers_whatever_fails_meanwhile() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "newestlocks");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for statement in [STATEMENTS[2], STATEMENTS[8], STATEMENTS[10]] {
            kept(&proxy, &mut twin, statement);
            for lock in [
                "LOCK TABLES statuses READ",
                "LOCK TABLES statuses READ, followers READ",
            ] {
                twin.ok(lock);
                twin.run("SELECT * FROM nothing_of_this_name");
                for _ in 0..4 {
                    twin.run(statement);
                }
                // It fails, and gives back what was locked.
                twin.run("LOCK TABLES nothing_of_this_name READ");
                for _ in 0..2 {
                    twin.run(statement);
                }
                twin.ok("UNLOCK TABLES");
                kept(&proxy, &mut twin, statement);
            }
        }
    });
}

/// A transaction writes one message, by the authors in turn, and its number into three others: what is shown is of one moment between what was
/// committed before the statement and what was begun by its reply.
#[test]
fn nothing_shown_is_stale_or_of_two_moments_while_others_write() {
    on_each_quiet_server(|server| {
        let (database, proxy) = classic(server, "newestlinear");
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
                    client.ok("BEGIN");
                    client.ok(&format!(
                        "INSERT INTO message (id, user_id, body) VALUES ({id}, {author}, 'x')"
                    ));
                    client.ok(&format!(
                        "UPDATE message SET body = '{id}' WHERE id IN (10, 11, 12)"
                    ));
                    client.ok("COMMIT");
                    done.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_micros(id % 11 * 2_000));
                }
            });
            let readers: Vec<_> = (0..4_usize)
                .map(|number| {
                    let (quota, proxy, login) = (&quota, &proxy, &login);
                    let (begun, done) = (&begun, &done);
                    scope.spawn(move || {
                        let mut client = proxy.login(login);
                        let text = MOMENTS[number];
                        while quota.take().is_some() {
                            let least = done.load(Ordering::SeqCst);
                            let shown: Vec<u64> = client
                                .column(text)
                                .iter()
                                .map(|cell| cell.parse().unwrap_or(30))
                                .collect();
                            let most = begun.load(Ordering::SeqCst);
                            let [newest, second, third] = shown[..] else {
                                panic!("{shown:?}: {text}");
                            };
                            let expected = match number {
                                0 => [newest; 3],
                                _ => [newest, newest - 1, newest - 2],
                            };
                            assert_eq!([newest, second, third], expected, "{text}");
                            assert!(
                                (least..=most).contains(&newest),
                                "{newest}, of {least} to {most}: {text}"
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

/// The numbers that were written, or the newest ids.
const MOMENTS: [&str; 4] = [
    "SELECT body, id FROM message WHERE id IN (10, 11, 12) ORDER BY id",
    "SELECT MAX(message.id) AS last, message.user_id FROM message JOIN follower ON follower.follower_id = message.user_id WHERE follower.user_id = 1 GROUP BY message.user_id ORDER BY last DESC",
    "SELECT id, body FROM message WHERE id IN (SELECT MAX(id) FROM message WHERE user_id IN (SELECT follower_id FROM follower WHERE user_id = 1) GROUP BY user_id) ORDER BY id DESC",
    "SELECT m.id, m.body FROM message m JOIN follower ON follower.follower_id = m.user_id WHERE follower.user_id = 1 AND NOT EXISTS (SELECT 1 FROM message n WHERE n.user_id = m.user_id AND n.id > m.id) ORDER BY m.id DESC LIMIT 20",
];

/// The times of messages are of every order, with equal ones among them.
#[test]
fn the_newest_of_each_come_in_the_order_of_their_times() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "newesttimes");
        let (mut other, mut random) = (database.connect(), Random(83));
        other.ok("UPDATE statuses SET created_at = '2026-01-01 10:00:00' + INTERVAL (id * 7919 MOD 3001) MINUTE");
        for column in ["DATETIME", "TIMESTAMP(3)", "DATE"] {
            other.ok(&format!(
                "ALTER TABLE statuses MODIFY created_at {column} NOT NULL, MODIFY deleted_at {column} NULL"
            ));
            let mut twin = Twin::new(server, &proxy, &database.login());
            twin.ok("SET time_zone = '+02:00'");
            // Where the server orders equal times, none may be equal.
            let last = BY_TIME.len() - 1;
            for statement in &BY_TIME[..last] {
                kept(&proxy, &mut twin, statement);
            }
            let before = proxy.counts().of("feeds_kept");
            for turn in 0..50 {
                change_row_image(&mut other, turn);
                other.query(&change(&mut random, turn));
                let author = 1 + random.below(6);
                other.query(&match turn % 4 {
                    0 => format!(
                        "UPDATE statuses SET created_at = created_at + INTERVAL {turn} DAY WHERE profile_id = {author} ORDER BY id DESC LIMIT 1"
                    ),
                    1 => format!("DELETE FROM statuses WHERE profile_id = {author} ORDER BY id DESC LIMIT 1"),
                    2 => format!(
                        "UPDATE statuses SET deleted_at = IF(deleted_at IS NULL, created_at, NULL) WHERE profile_id IN (1, 2, {author}) ORDER BY id DESC LIMIT 4"
                    ),
                    _ => "DO 1".to_owned(),
                });
                // Key flags follow the server's plan, which is another for other rows.
                for statement in BY_TIME[..last].iter().chain(&BY_TIME[..last]) {
                    same_rows(&mut twin, statement);
                    if turn.is_multiple_of(5) {
                        twin.run(random.pick::<&str>(&BEHIND));
                    }
                }
                twin.run_unordered(BY_TIME[last]);
            }
            let kept = proxy.counts().of("feeds_kept") - before;
            assert!(kept > 100, "{column}: {:?}", proxy.counts());
        }
        // Equal times, which the server orders.
        other.ok("UPDATE statuses SET created_at = '2026-01-01'");
        let mut twin = Twin::new(server, &proxy, &database.login());
        kept(&proxy, &mut twin, BY_TIME[4]);
        let before = proxy.counts().of("feeds_kept");
        for _ in 0..20 {
            twin.proxied.rows(BY_TIME[5]);
        }
        assert_eq!(proxy.counts().of("feeds_kept"), before);
        for statement in BY_TIME[..4].iter().cycle().take(16) {
            same_rows(&mut twin, statement);
        }
    });
}

/// A fault that was found: MySQL warns of a date that is none where it sorts by it, whether its row is shown or not.
#[test]
fn warnings_of_times_that_are_none_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "newestnodates");
        let mut other = database.connect();
        other.ok("SET sql_mode = 'ALLOW_INVALID_DATES'");
        other.ok("ALTER TABLE statuses MODIFY created_at DATETIME(3) NULL");
        other.ok("UPDATE statuses SET created_at = '2026-01-01 10:00:00' + INTERVAL (id * 7919 MOD 3001) MINUTE");
        let mut twin = Twin::new(server, &proxy, &database.login());
        kept(&proxy, &mut twin, WITH_A_STRING);
        let mut warned = 0;
        for (author, date) in [(3, "0000-00-00"), (2, "2026-02-31"), (4, "2026-00-10")] {
            other.ok(&format!(
                "UPDATE statuses SET created_at = '{date}' WHERE profile_id = {author} ORDER BY id DESC LIMIT 1"
            ));
            let changed = || proxy.counts().of("feeds_relayed[changed_meanwhile]");
            wait_until("the change is readable", || {
                let before = changed();
                same_rows(&mut twin, WITH_A_STRING);
                changed() == before
            });
            for _ in 0..6 {
                same_rows(&mut twin, WITH_A_STRING);
                let [direct, proxied] = [&mut twin.direct, &mut twin.proxied]
                    .map(|client| client.rows("SHOW WARNINGS"));
                warned += direct.len();
                assert_eq!(direct, proxied);
            }
        }
        assert!(warned > 0 || server.kind() == ServerKind::Mariadb);
    });
}
