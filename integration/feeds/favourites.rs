//! Subqueries beside messages: how many like each, whether the reader does, how many answer it. Their rows are followed by the message's id.

use super::counts::{change, change_row_image, prepare_on_both, run_twice};
use super::kept::kept;
use super::narrowed::until_risen;
use super::rules::{BEHIND, app};
use crate::kit::proxy::Counts;
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::twin::Twin;

const TABLES: [&str; 2] = [
    "CREATE TABLE favourites (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, profile_id INT NOT NULL, status_id BIGINT, \
     weight INT NOT NULL DEFAULT 1, kind VARCHAR(9) NOT NULL DEFAULT 'like', KEY (status_id))",
    "INSERT INTO favourites (profile_id, status_id, weight) SELECT id % 7, id, id % 4 FROM statuses WHERE id > 2500 UNION ALL SELECT id % 5, id - id % 3, 2 FROM statuses WHERE id > 2700",
];

/// The fourth is Laravel's `loadCount`.
const STATEMENTS: [&str; 9] = [
    "SELECT s.id, s.caption, (SELECT COUNT(*) FROM favourites f WHERE f.status_id = s.id) AS n FROM statuses s WHERE s.profile_id IN (1, 2, 3) ORDER BY s.id DESC LIMIT 10",
    "SELECT s.*, (SELECT COUNT(*) FROM favourites f WHERE f.status_id = s.id AND f.kind = 'like') AS n, \
     EXISTS (SELECT 1 FROM favourites f WHERE f.status_id = s.id AND f.profile_id = 3) AS own FROM statuses s WHERE s.profile_id IN (2, 4, 5) AND s.visibility = 'public' ORDER BY s.id DESC LIMIT 7",
    "SELECT s.id, (SELECT COUNT(*) FROM statuses r WHERE r.in_reply_to = s.id) AS replies FROM statuses s WHERE s.profile_id = 4 ORDER BY s.id DESC LIMIT 12",
    "select `id`, (select count(*) from `favourites` where `statuses`.`id` = `favourites`.`status_id`) as `favourites_count` from `statuses` where `statuses`.`id` in (2990, 2991, 2993, 2995, 2998) order by `id`",
    "SELECT s.id, COALESCE((SELECT SUM(f.weight) FROM favourites f WHERE f.status_id = s.id), 0) AS weight, (SELECT MAX(f.profile_id) FROM favourites f WHERE f.status_id = s.id) AS last \
     FROM statuses s WHERE s.profile_id IN (1, 6) ORDER BY s.id DESC LIMIT 9",
    "SELECT s.id, s.caption, (SELECT p.name FROM profiles p WHERE p.id = s.profile_id) AS name FROM statuses s WHERE s.profile_id IN (1, 2, 3, 4, 5) ORDER BY s.id DESC LIMIT 10",
    "SELECT s.id, EXISTS (SELECT * FROM favourites f WHERE f.status_id = s.id AND f.profile_id = 2 AND f.weight > 1) AS liked FROM statuses s WHERE s.id IN (2994, 2996, 2997, 2999) ORDER BY s.id DESC",
    "SELECT s.id, s.kind, (SELECT COUNT(DISTINCT f.kind) FROM favourites f WHERE s.id = f.status_id AND f.weight <= s.likes) AS kinds FROM statuses s WHERE s.profile_id IN (3, 5) AND s.deleted_at IS NULL ORDER BY s.id DESC LIMIT 8",
    "SELECT s.id, (SELECT COUNT(*) FROM favourites f WHERE f.status_id = s.id) AS n, (SELECT COUNT(*) FROM statuses r WHERE r.in_reply_to = s.id AND r.kind = s.kind) AS r FROM statuses s WHERE s.profile_id IN (7, 8) ORDER BY s.id DESC LIMIT 10",
];

const EXECUTED: [(&str, &[&str]); 2] = [
    (
        "SELECT s.id, s.caption, (SELECT COUNT(*) FROM favourites f WHERE f.status_id = s.id) AS n, EXISTS (SELECT 1 FROM favourites f WHERE f.status_id = s.id AND f.profile_id = ?) AS own \
         FROM statuses s WHERE s.profile_id IN (?, ?) ORDER BY s.id DESC LIMIT 10",
        &["2", "1", "3"],
    ),
    (
        "SELECT s.id, (SELECT COUNT(*) FROM favourites f WHERE f.status_id = s.id AND f.weight > ?) AS n FROM statuses s WHERE s.id IN (?, ?, ?) ORDER BY s.id",
        &["1", "2990", "2992", "2999"],
    ),
];

fn favour(random: &mut Random) -> String {
    let (profile, status) = (random.below(7), 2_900 + random.below(110));
    match random.below(9) {
        0 => format!("DELETE FROM favourites WHERE status_id = {status} LIMIT 2"),
        1 => format!(
            "UPDATE favourites SET status_id = {status} WHERE profile_id = {profile} ORDER BY status_id DESC LIMIT 3"
        ),
        2 => format!("UPDATE favourites SET status_id = NULL WHERE status_id = {status} LIMIT 1"),
        3 => format!("UPDATE favourites SET status_id = {status} WHERE status_id IS NULL"),
        4 => format!(
            "UPDATE favourites SET kind = IF(kind = 'like', 'love', 'like'), weight = {profile} WHERE status_id = {status}"
        ),
        5 => format!(
            "UPDATE statuses SET in_reply_to = {status} WHERE id BETWEEN {status} AND {status} + 4"
        ),
        6 => format!("UPDATE statuses SET in_reply_to = NULL WHERE in_reply_to = {status} LIMIT 3"),
        _ => format!(
            "INSERT INTO favourites (profile_id, status_id, weight) VALUES ({profile}, {status}, {profile}), ({profile}, -{status}, 2)"
        ),
    }
}

#[test]
fn rows_with_subqueries_are_the_servers_whatever_changes_there() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "favourites");
        let mut other = database.connect();
        for table in TABLES {
            other.ok(table);
        }
        other.query("ANALYZE TABLE favourites");
        let (mut twin, mut random) = (Twin::new(server, &proxy, &database.login()), Random(67));
        for statement in STATEMENTS {
            kept(&proxy, &mut twin, statement);
        }
        let prepared = prepare_on_both(&mut twin, &EXECUTED);
        // What a parameter is compared with describes no column.
        let count = |counts: &Counts| counts.of("feeds_kept");
        for ((statement, values), (text, _)) in prepared.iter().zip(&EXECUTED) {
            until_risen(&proxy, text, count, || {
                drop(twin.execute(*statement, values))
            });
        }
        let before = proxy.counts();
        for turn in 0..150 {
            change_row_image(&mut other, turn);
            other.ok(&favour(&mut random));
            if turn % 3 == 0 {
                other.query(&change(&mut random, turn));
            }
            let all = (&STATEMENTS[..], &prepared[..]);
            run_twice(&mut twin, all, &BEHIND, (&mut random, turn));
        }
        let counts = proxy.counts();
        let kept = counts.of("feeds_kept") - before.of("feeds_kept");
        assert!(kept > 700, "{counts:?}");
        for statement in [
            "TRUNCATE TABLE favourites",
            TABLES[1],
            "ALTER TABLE favourites MODIFY status_id VARCHAR(20)",
            "INSERT INTO favourites (profile_id, status_id) VALUES (1, '2998x'), (2, '02999')",
            "DROP TABLE favourites",
            TABLES[0],
            TABLES[1],
            "DELETE FROM favourites WHERE status_id > 2990",
        ] {
            other.ok(statement);
            for statement in STATEMENTS.iter().chain(&STATEMENTS) {
                twin.run(statement);
            }
        }
        // Another table of the same name, that the session alone sees.
        twin.ok("CREATE TEMPORARY TABLE favourites (profile_id INT, status_id BIGINT, weight INT, kind VARCHAR(9))");
        twin.ok("INSERT INTO favourites VALUES (3, 2999, 5, 'x')");
        for statement in STATEMENTS {
            twin.run(statement);
        }
        twin.ok("DROP TEMPORARY TABLE favourites");
        // Without the right to read it, the server refuses the statement.
        let login = database.account("EXECUTE", "");
        for table in ["statuses", "profiles"] {
            let (name, user) = (database.name(), &login.user);
            other.ok(&format!("GRANT SELECT ON {name}.{table} TO {user}@'%'"));
        }
        let mut stranger = Twin::new(server, &proxy, &login);
        for statement in STATEMENTS {
            twin.run(statement);
            stranger.run(statement);
        }
        // What depends on more than rows of a column's value is narrowed, or the server's.
        for statement in [
            "SELECT s.id, (SELECT f.kind FROM favourites f WHERE f.status_id = s.id ORDER BY f.id LIMIT 1) AS first FROM statuses s WHERE s.profile_id IN (1, 2) ORDER BY s.id DESC LIMIT 6",
            "SELECT s.id, (SELECT COUNT(*) FROM favourites f WHERE f.status_id >= s.id) AS n FROM statuses s WHERE s.profile_id IN (1, 2) ORDER BY s.id DESC LIMIT 6",
            "SELECT s.id, (SELECT COUNT(*) FROM favourites f WHERE f.kind = s.kind) AS n FROM statuses s WHERE s.profile_id IN (1, 2) ORDER BY s.id DESC LIMIT 6",
            "SELECT s.id, (SELECT COUNT(*) FROM favourites f WHERE f.status_id = s.id AND f.weight < RAND() * 0) AS n FROM statuses s WHERE s.profile_id IN (1, 2) ORDER BY s.id DESC LIMIT 6",
            "SELECT s.id, (SELECT f.kind FROM favourites f WHERE f.status_id = s.id) AS only FROM statuses s WHERE s.profile_id IN (1, 2) ORDER BY s.id DESC LIMIT 6",
            "SELECT s.id, (SELECT COUNT(*) FROM favourites f JOIN profiles p ON p.id = f.profile_id WHERE f.status_id = s.id AND p.private = 0) AS n FROM statuses s WHERE s.profile_id IN (1, 2) ORDER BY s.id DESC LIMIT 6",
        ] {
            for _ in 0..6 {
                other.ok(&favour(&mut random));
                twin.run(statement);
                twin.run("SHOW WARNINGS");
            }
        }
    });
}

/// MariaDB's log does not contain rows that a foreign key removes.
#[test]
fn rows_that_a_foreign_key_removes_are_not_shown() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "favouritekeys");
        let mut other = database.connect();
        let made = other.column("SELECT COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'profiles' AND COLUMN_NAME = 'id'");
        other.ok(&format!(
            "CREATE TABLE favourites (profile_id {} NOT NULL, status_id BIGINT NOT NULL, PRIMARY KEY (profile_id, status_id), KEY (status_id), \
             FOREIGN KEY (profile_id) REFERENCES profiles (id) ON DELETE CASCADE)",
            made[0]
        ));
        other.ok("INSERT INTO favourites SELECT p.id, s.id FROM profiles p JOIN statuses s WHERE p.id <= 20 AND s.id > 2900 AND (s.id + p.id) % 3 = 0");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for profile in 1..=20 {
            for _ in 0..4 {
                twin.run(STATEMENTS[0]);
            }
            other.ok(&format!("DELETE FROM profiles WHERE id = {profile}"));
            twin.run(STATEMENTS[0]);
        }
    });
}
