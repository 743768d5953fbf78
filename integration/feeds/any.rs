//! Whether there is a message, and which is the newest: `EXISTS`, `SELECT 1 ... LIMIT 1`, `MAX(id)`.

use super::counts::{change, change_row_image};
use super::kept::kept;
use super::rules::{BEHIND, app};
use super::unread::execute_from;
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;

/// As apps and ORMs write them; `{at}` is where the reader has read up to.
const STATEMENTS: [&str; 14] = [
    "SELECT EXISTS(SELECT 1 FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND id > {at})",
    "select exists(select * from `statuses` inner join `followers` on `followers`.`following_id` = `statuses`.`profile_id` where `followers`.`profile_id` = 2 and `statuses`.`id` > {at} and `likes` > 20) as `exists`",
    "SELECT EXISTS (SELECT s.id FROM statuses s WHERE s.profile_id IN (1, 2) AND s.id > {at} AND s.kind = 'photo' LIMIT 1) AS newer",
    "SELECT 1 AS one FROM statuses WHERE profile_id IN (1, 2, 3) AND id > {at} AND deleted_at IS NULL LIMIT 1",
    "SELECT 1 AS `a` FROM `statuses` INNER JOIN `followers` ON (`followers`.`following_id` = `statuses`.`profile_id`) WHERE (`followers`.`profile_id` = 1 AND `statuses`.`id` > {at}) LIMIT 1",
    "SELECT 1 FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (3, 4, 5) AND p.private = 0 AND s.id >= {at} LIMIT 1",
    "SELECT MAX(id) FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5)",
    "SELECT MAX(s.id) AS newest FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1 AND s.deleted_at IS NULL",
    "SELECT MAX(`statuses`.`id`) AS `id__max` FROM `statuses` WHERE `statuses`.`profile_id` IN (SELECT U0.`following_id` FROM `followers` U0 WHERE U0.`profile_id` = 3)",
    "SELECT MAX(id) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND id > {at} AND kind = 'photo'",
    "SELECT MAX(id) FROM statuses WHERE profile_id = 4 AND likes > 45",
    "SELECT MAX(id) FROM statuses WHERE profile_id IN (77777, 88888)",
    "SELECT MAX(s.id) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 2 AND f.accepted = 1 AND s.visibility = 'public'",
    "SELECT MAX(id) FROM statuses WHERE profile_id IN (SELECT following_id FROM followers WHERE profile_id = 1) AND profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = 1)",
];

/// The same with parameters, of which the last is where the reader has read up to.
const EXECUTED: [(&str, &[&str]); 4] = [
    (
        "SELECT EXISTS(SELECT 1 FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = ? AND s.id > ?)",
        &["1"],
    ),
    (
        "SELECT 1 AS one FROM statuses WHERE profile_id IN (?, ?) AND likes > ? AND id > ? LIMIT 1",
        &["1", "2", "10"],
    ),
    (
        "SELECT MAX(id) FROM statuses WHERE profile_id IN (?, ?) AND likes > ?",
        &["3", "4"],
    ),
    (
        "SELECT MAX(s.id) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = ? AND s.kind = 'photo' AND s.id > ?",
        &["2"],
    ),
];

#[test]
fn a_page_of_one_is_the_servers_whatever_changes_between_them() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "any");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let (mut other, mut random) = (database.connect(), Random(47));
        for statement in STATEMENTS {
            kept(&proxy, &mut twin, &statement.replace("{at}", "2950"));
        }
        let prepared = EXECUTED.map(|(text, _)| twin.prepare(text));
        let before = proxy.counts();
        for turn in 0..150 {
            change_row_image(&mut other, turn);
            other.query(&change(&mut random, turn));
            // What is newest goes, or moves.
            if turn % 3 == 0 {
                other.ok("DELETE FROM statuses ORDER BY id DESC LIMIT 1");
            }
            let at = match random.below(4) {
                0 => 20_000,
                _ => 2_850 + random.below(200),
            }
            .to_string();
            for statement in STATEMENTS {
                twin.run(&statement.replace("{at}", &at));
                if turn % 5 == 0 {
                    twin.run(random.pick::<&str>(&BEHIND[1..]));
                }
            }
            for (statement, (_, values)) in prepared.iter().zip(&EXECUTED) {
                execute_from(&mut twin, *statement, values, &at);
            }
        }
        let counts = proxy.counts();
        let kept = counts.of("feeds_kept") - before.of("feeds_kept");
        assert!(kept > 300, "{counts:?}");
        other.ok("DELETE FROM statuses WHERE profile_id IN (1, 2, 3, 4, 5)");
        for statement in STATEMENTS.iter().chain(&STATEMENTS) {
            twin.run(&statement.replace("{at}", "1"));
        }
        // What is no page of one, or not of a feed's messages, is the server's.
        for statement in [
            "SELECT 2 FROM statuses WHERE profile_id IN (1, 6) LIMIT 1",
            "SELECT 1 FROM statuses WHERE profile_id IN (1, 6) LIMIT 3",
            "SELECT 1 FROM statuses WHERE profile_id IN (1, 6) LIMIT 0",
            "SELECT 1 FROM statuses WHERE profile_id IN (1, 6) LIMIT 1 OFFSET 1",
            "SELECT 1, 2 FROM statuses WHERE profile_id IN (1, 6) LIMIT 1",
            "SELECT 1 + 1 FROM statuses WHERE profile_id IN (1, 6) LIMIT 1",
            "SELECT EXISTS(SELECT none FROM statuses WHERE profile_id IN (1, 6))",
            "SELECT EXISTS(SELECT 1 FROM statuses WHERE profile_id IN (1, 6) LIMIT 0)",
            "SELECT NOT EXISTS(SELECT 1 FROM statuses WHERE profile_id IN (1, 6))",
            "SELECT EXISTS(SELECT 1 FROM statuses WHERE profile_id IN (1, 6)), 1",
            "SELECT EXISTS(SELECT 1 FROM statuses WHERE profile_id IN (1, 6) GROUP BY kind HAVING COUNT(*) > 900)",
            "SELECT MAX(likes) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT MAX(id) + 1 FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT MAX(id) FROM statuses WHERE profile_id IN (1, 6) GROUP BY kind",
            "SELECT MAX(id), MIN(id) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT MAX(DISTINCT id) FROM statuses WHERE profile_id IN (1, 6)",
            "SELECT MAX(f.id) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = 1",
        ] {
            for _ in 0..3 {
                twin.run(statement);
                twin.run("SHOW WARNINGS");
            }
        }
    });
}
