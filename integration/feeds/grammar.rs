//! Statements that resemble a feed's but mean something else, or whose result is the server's choice.

use super::app::{settings, steady_statistics};
use super::narrowed::{equal, relayed, same};
use super::rules::app;
use super::served::served;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;

fn with(condition: &str) -> String {
    format!("SELECT id, likes FROM statuses WHERE {condition} ORDER BY id DESC LIMIT 7")
}

/// Only plain digits within the column's range select authors or bound the page.
#[test]
fn literals_that_are_not_plain_bound_nothing() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedliterals");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for list in [
            "'2x'",
            "'1', '2x'",
            "'1', '02'",
            "'1', ''",
            "1, '2'",
            "x'31', 2",
            "0x31, 2",
            "b'1', 2",
            "0.4, 2",
            "1.0, 2",
            "1e0, 2",
            "NULL",
            "1, NULL",
            "-1, 2",
            "1, 4294967297",
            "TRUE, 3",
            "1, (2)",
            "@@port, 2",
        ] {
            let statement = with(&format!("profile_id IN ({list})"));
            same(&mut twin, &statement, 3);
        }
        let counts = proxy.counts();
        assert_eq!(counts.feeds_answered(), 0, "{counts:?}");
        // A condition that is not certainly a bound stays in the text, and candidates start at the newest message.
        for bound in [
            "id < 2147483648",
            "id < 99999999999999999999",
            "id > -5",
            "id >= 0",
            "id < 00900",
            "id BETWEEN 900 AND 5",
            "id BETWEEN -7 AND 900",
            "900 > id",
            "id <> 2999",
            "NOT (id > 900)",
            "id < 900 AND id < 800",
            "(id < 900 OR id = 2999)",
            "id IN (1, 2, 2999)",
            "id < '900'",
            "likes < '20'",
        ] {
            equal(
                &proxy,
                &mut twin,
                &with(&format!("profile_id IN (1, 2, 3) AND {bound}")),
            );
        }
        for bound in [
            "id <= -1",
            "id < 0",
            "id < '0900'",
            "id < ' 900'",
            "likes < '20x'",
            "id < 900.5",
            "id < 9e2",
            "id < NULL",
            "id < 900 IS TRUE",
        ] {
            let statement = with(&format!("profile_id IN (1, 2, 3) AND {bound}"));
            same(&mut twin, &statement, 3);
        }
    });
}

/// SQL modes change what belongs together. A statement that only one of the servers reads in another way is relayed.
#[test]
fn what_modes_and_servers_read_otherwise_is_the_servers_to_read() {
    const WHERE: [&str; 11] = [
        "likes BETWEEN 0 AND profile_id IN (1,2)",
        "profile_id IN (1,2) /*!50000 OR 1 */",
        "profile_id IN (1,2) /*M!50000 OR 1 */",
        "profile_id IN (1,2) /*!99999 AND 0 */",
        "profile_id IN (1,2) || id = 9",
        "NOT profile_id IN (1,2)",
        "! profile_id IN (1,2)",
        "profile_id IN (1,2) XOR id > 9",
        "profile_id IN (1,2) = 0",
        "profile_id IN (1,2) IS NOT TRUE",
        "profile_id IN (1,2) AND caption <> 'a\\'b'",
    ];
    const WHOLE: [&str; 14] = [
        "(SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5)",
        "(SELECT id FROM statuses WHERE profile_id IN (1,2)) ORDER BY id DESC LIMIT 5",
        "WITH statuses AS (SELECT 9 AS id, 1 AS profile_id) SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC FETCH FIRST 5 ROWS WITH TIES",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5 ROWS EXAMINED 40",
        "SELECT id FROM statuses FOR SYSTEM_TIME ALL WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5 FOR SHARE",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5 LOCK IN SHARE MODE",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5 FOR UPDATE",
        "SELECT SQL_CALC_FOUND_ROWS id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) GROUP BY id WITH ROLLUP ORDER BY id DESC LIMIT 5",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC, (SELECT 1) LIMIT 5",
        "SELECT id FROM statuses WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5 UNION SELECT 1",
        "SELECT id FROM statuses USE INDEX () WHERE profile_id IN (1,2) ORDER BY id DESC LIMIT 5",
    ];
    const MODES: [&str; 5] = [
        "DEFAULT",
        "'HIGH_NOT_PRECEDENCE,PIPES_AS_CONCAT'",
        "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
        "'ANSI,IGNORE_SPACE'",
        "''",
    ];
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedmodes");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for mode in MODES {
            twin.ok(&format!("SET sql_mode = {mode}"));
            for condition in WHERE {
                same(&mut twin, &with(condition), 2);
            }
            for statement in WHOLE {
                same(&mut twin, statement, 2);
            }
        }
        let counts = proxy.counts();
        assert_eq!(counts.feeds_answered(), 0, "{counts:?}");
        // Modes that do not affect a statement do not prevent serving. Unread statements before may have set something in the session.
        let mut twin = Twin::new(server, &proxy, &database.login());
        for mode in MODES {
            twin.ok(&format!("SET sql_mode = {mode}"));
            equal(
                &proxy,
                &mut twin,
                &with("profile_id IN (1,2) AND NOT (likes = 3 OR caption = '')"),
            );
            // In double quotes it is a string, or a name.
            for condition in [
                "profile_id IN (1,2) AND caption <> \"caption 9\"",
                "profile_id IN (1,2) AND kind IN ('photo', \"kind\")",
            ] {
                let text = with(condition);
                match mode.contains("ANSI") {
                    true => relayed(&proxy, &mut twin, &text, "not_understood"),
                    false => equal(&proxy, &mut twin, &text),
                }
            }
        }
    });
}

/// A name in ORDER BY refers to a result column first, even if the table has a column of that name.
#[test]
fn an_order_by_the_name_of_another_column_is_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedalias");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let tail = "FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY";
        for order in [
            format!("SELECT likes AS id {tail} id DESC LIMIT 5"),
            format!("SELECT caption AS ID, id AS likes {tail} `id` DESC LIMIT 5"),
            format!("SELECT COALESCE(likes, 1) AS id {tail} id DESC LIMIT 5"),
            format!("SELECT id {tail} id LIMIT 5"),
            format!("SELECT id {tail} likes DESC, id DESC LIMIT 5"),
            format!("SELECT id {tail} 1 DESC LIMIT 5"),
        ] {
            relayed(&proxy, &mut twin, &order, "order");
        }
        for fine in [
            format!("SELECT likes AS id, id AS number {tail} statuses.id DESC LIMIT 5"),
            format!("SELECT id AS id {tail} ID DESC LIMIT 5"),
            format!("SELECT id AS other {tail} id DESC LIMIT 5"),
            // The id decides: what follows it sorts nothing.
            format!("SELECT id {tail} id DESC, likes LIMIT 5"),
        ] {
            equal(&proxy, &mut twin, &fine);
        }
        for merges in [
            "SELECT DISTINCT likes FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 5",
            "SELECT DISTINCT kind, statuses.id, f.accepted FROM statuses JOIN followers f ON f.following_id = statuses.profile_id \
             WHERE statuses.profile_id IN (1, 2, 3) ORDER BY statuses.id DESC LIMIT 5",
        ] {
            relayed(&proxy, &mut twin, merges, "joins");
        }
    });
}

/// Ties count from the row before OFFSET to the one after the page, whether they pass the filter or not.
#[test]
fn ties_beside_a_page_are_the_servers_to_order() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedties");
        let mut root = database.connect();
        root.ok("ALTER TABLE statuses ADD COLUMN score INT, ADD KEY feed (profile_id, score)");
        // Scores of author 1: 100, 90, 90, 80, 70, 60, ...
        root.ok("DELETE FROM statuses WHERE profile_id = 1");
        let rows: Vec<String> = [100, 90, 90, 80, 70, 60, 50, 40, 40, 30]
            .iter()
            .zip(10_001..)
            .map(|(score, id)| {
                format!(
                    "({id},1,'x','text','public',{},'2026-01-01',{score})",
                    id % 2
                )
            })
            .collect();
        root.ok(&format!(
            "INSERT INTO statuses (id, profile_id, caption, kind, visibility, likes, created_at, score) VALUES {}",
            rows.join(",")
        ));
        let by_score = settings().replace("order = [\"id\"]", "order = [\"score\", \"id\"]");
        drop(proxy);
        let proxy = served(server, &database, "home", &by_score);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let page = |filter: &str, limit: &str| {
            format!(
                "SELECT score FROM statuses WHERE profile_id = 1{filter} ORDER BY score DESC LIMIT {limit}"
            )
        };
        for limit in ["1", "2 OFFSET 2"] {
            equal(&proxy, &mut twin, &page(" AND score <= 80", limit));
        }
        equal(&proxy, &mut twin, &page("", "1"));
        for (filter, limit) in [
            ("", "2"),
            ("", "3"),
            ("", "1 OFFSET 2"),
            ("", "2 OFFSET 2"),
            // One of the two tied rows does not pass the filter.
            (" AND likes = 1", "3"),
            (" AND score <= 80", "5"),
        ] {
            relayed(&proxy, &mut twin, &page(filter, limit), "ties");
        }
    });
}

/// Covers nullable sides, keys that match several rows, and comparisons that hold for NULL.
#[test]
fn joins_that_may_lose_or_repeat_a_message_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedjoins");
        let mut root = database.connect();
        root.ok("CREATE TABLE tags (message INT, name VARCHAR(9), UNIQUE KEY (message, name))");
        root.ok("INSERT INTO tags SELECT id, 'a' FROM statuses WHERE id % 2 = 0");
        root.ok("INSERT INTO tags SELECT id, 'b' FROM statuses WHERE id % 4 = 0");
        steady_statistics(&mut root, &["tags"]);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let tail = "ORDER BY s.id DESC LIMIT 9";
        for (from, why) in [
            (
                "profiles p LEFT JOIN statuses s ON s.profile_id = p.id WHERE s.profile_id IN (1,2) OR p.id = 1",
                "joins",
            ),
            (
                "statuses s LEFT JOIN tags t ON t.message = s.id WHERE s.profile_id IN (1,2)",
                "joins",
            ),
            (
                "statuses s JOIN tags t ON t.message = s.id WHERE s.profile_id IN (1,2)",
                "joins",
            ),
            (
                "statuses s LEFT JOIN followers f ON f.following_id = s.profile_id AND f.profile_id = 1",
                "authors",
            ),
            (
                "statuses s JOIN statuses r ON r.id = s.in_reply_to WHERE s.profile_id IN (1,2)",
                "joins",
            ),
        ] {
            relayed(
                &proxy,
                &mut twin,
                &format!(
                    "SELECT s.id, {} FROM {from} {tail}",
                    if from.contains("tags") { "t.name" } else { "1" }
                ),
                why,
            );
        }
        for from in [
            "profiles p LEFT JOIN statuses s ON s.profile_id = p.id WHERE s.profile_id IN (1,2)",
            // Copies of a message are alike.
            "statuses s LEFT JOIN tags t ON t.message = s.id WHERE s.profile_id IN (1,2)",
            "statuses s JOIN tags t ON t.message = s.id WHERE s.profile_id IN (1,2)",
            "statuses s LEFT JOIN (followers f JOIN profiles r ON r.id = f.profile_id) ON f.following_id = s.profile_id WHERE r.id = 1",
            "statuses s LEFT JOIN profiles p ON p.id = s.profile_id AND p.private = 1 WHERE s.profile_id IN (1,2)",
            "statuses s JOIN profiles p ON p.id = s.profile_id JOIN followers f ON f.following_id = p.id AND f.profile_id = 1",
            "statuses s, followers f WHERE f.following_id = s.profile_id AND f.profile_id = 1 AND EXISTS (SELECT 1 FROM tags WHERE message = s.id)",
        ] {
            equal(
                &proxy,
                &mut twin,
                &format!("SELECT s.id FROM {from} {tail}"),
            );
        }
        for from in [
            "statuses s JOIN followers f ON f.following_id <=> s.profile_id AND f.profile_id = 1",
            "statuses s NATURAL JOIN profiles p WHERE s.profile_id IN (1,2)",
            "profiles p RIGHT JOIN statuses s ON s.profile_id = p.id WHERE s.profile_id IN (1,2)",
        ] {
            for _ in 0..3 {
                twin.run(&format!("SELECT s.id FROM {from} {tail}"));
            }
        }
    });
}

/// With one candidate or none, the list still has two ids, at least one of them of no message.
#[test]
fn authors_with_one_message_or_none_are_answered_as_directly() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedfew");
        let mut root = database.connect();
        root.ok("DELETE FROM statuses WHERE profile_id IN (7, 8)");
        root.ok(
            "INSERT INTO statuses (id, profile_id, caption, kind, visibility, likes, created_at) \
             VALUES (1000001, 8, 'x', 'text', 'public', 1, '2026-01-01')",
        );
        root.ok("DELETE FROM followers WHERE profile_id IN (20, 21)");
        root.ok("INSERT INTO followers (profile_id, following_id) VALUES (20, 8), (21, 7)");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for whose in [
            "profile_id IN (7)",
            "profile_id IN (8)",
            "profile_id IN (7, 8)",
            "profile_id IN (7, 999)",
            "profile_id = 8",
            "profile_id = 999",
            "profile_id IN (SELECT following_id FROM followers WHERE profile_id = 20)",
            "profile_id IN (SELECT following_id FROM followers WHERE profile_id = 21)",
            "profile_id IN (SELECT following_id FROM followers WHERE profile_id = 999)",
        ] {
            equal(&proxy, &mut twin, &with(whose));
        }
    });
}
