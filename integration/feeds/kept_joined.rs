//! Pages with rows of joined tables that Headwater finds by key: a change of the joined rows is visible at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::app::{SMALL, settings};
use super::kept::{kept, same_rows};
use super::linear::checks;
use super::narrowed::narrowed;
use super::rules::app;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::quota::{Quota, kept_pages};
use crate::kit::random::Random;
use crate::kit::servers::{on_each_quiet_server, on_each_server};
use crate::kit::threads::wait_for;
use crate::kit::twin::Twin;

/// Joins of each kind, with and without conditions on joined tables.
pub(super) const PAGES: [&str; 8] = [
    "SELECT s.*, p.name FROM statuses s LEFT JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (1, 2, 3, 4, 5) \
     ORDER BY s.id DESC LIMIT 5",
    "SELECT s.id, s.caption, p.name FROM statuses s JOIN followers f ON f.following_id = s.profile_id JOIN profiles p ON p.id = f.following_id \
     WHERE f.profile_id = 1 AND s.deleted_at IS NULL AND p.private = 0 ORDER BY s.id DESC LIMIT 7",
    "SELECT s.id, p.* FROM statuses s JOIN profiles p ON s.profile_id = p.id WHERE s.profile_id IN (SELECT following_id FROM followers \
     WHERE profile_id = 2) AND s.kind = 'photo' ORDER BY s.id DESC LIMIT 4",
    "SELECT s.id, s.likes, p.name, q.name FROM statuses s LEFT JOIN profiles q ON q.id = s.likes \
     JOIN profiles p ON p.id = s.profile_id WHERE s.profile_id IN (1, 2, 3) ORDER BY s.id DESC LIMIT 5",
    "SELECT s.id, s.caption FROM statuses s LEFT JOIN profiles p ON p.id = s.profile_id AND p.private = 0 WHERE s.profile_id IN (1, 2, 3, 4) \
     AND p.name IS NOT NULL ORDER BY s.id DESC LIMIT 5",
    "SELECT s.id, s.likes, q.private FROM statuses s LEFT JOIN profiles q ON q.id = s.likes WHERE EXISTS (SELECT 1 FROM followers f \
     WHERE f.following_id = s.profile_id AND f.profile_id = 3) ORDER BY s.id DESC LIMIT 6",
    // As Django names the authors of a relation: without its own row, an author does not count.
    "SELECT s.id, s.caption FROM statuses s WHERE s.profile_id IN (SELECT U0.id FROM profiles U0 INNER JOIN followers U1 ON (U0.id = U1.following_id) \
     WHERE U1.profile_id = 1) AND s.deleted_at IS NULL ORDER BY s.id DESC LIMIT 7",
    "SELECT s.* FROM statuses s WHERE s.profile_id IN (SELECT f.following_id FROM followers f, profiles p WHERE f.profile_id = 2 AND f.accepted = 1 \
     AND p.id = f.following_id) ORDER BY s.id DESC LIMIT 5",
];

#[test]
fn a_change_beside_a_message_is_shown() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptbeside");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        let mut random = Random(9);
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
        }
        let quota = Quota::new(&proxy, 300, 50, kept_pages);
        while let Some(turn) = quota.take() {
            let (user, id) = (1 + random.below(8), 2_900 + random.below(120));
            other.query(&match random.below(10) {
                0..=2 => format!("UPDATE profiles SET name = 'turn {turn}' WHERE id = {user}"),
                3 => format!("UPDATE profiles SET private = 1 - private WHERE id = {user}"),
                4 => format!("DELETE FROM profiles WHERE id = {user}"),
                5 => format!("REPLACE INTO profiles VALUES ({user}, 'again {turn}', 0)"),
                6 => format!("INSERT IGNORE INTO profiles VALUES ({user}, 'new {turn}', 1), ({}, 'new', 0)", user + 1),
                7 => format!("UPDATE profiles SET id = id + 1000 * IF(id < 1000, 1, -1) WHERE id MOD 1000 = {user}"),
                8 => format!("UPDATE statuses SET likes = {user} WHERE id BETWEEN {id} AND {id} + 9"),
                _ => format!("UPDATE statuses SET profile_id = {user} WHERE id = {id}"),
            });
            for statement in PAGES {
                same_rows(&mut twin, statement);
            }
        }
        // The session's own changes are visible, and also their rollback.
        let own = &mut twin.proxied;
        own.ok("UPDATE profiles SET name = 'own'");
        same_rows(&mut twin, PAGES[0]);
        let own = &mut twin.proxied;
        own.ok("BEGIN");
        own.ok("UPDATE profiles SET name = 'taken back'");
        let names = own
            .rows(PAGES[0])
            .into_iter()
            .filter_map(|row| row.into_iter().next_back()?);
        assert!(names.into_iter().all(|name| name == "taken back"));
        own.ok("ROLLBACK");
        same_rows(&mut twin, PAGES[0]);
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
        }
    });
}

/// Partial row images, and changes of many rows at once, invalidate joined rows.
#[test]
fn images_may_be_short_and_changes_may_be_of_all_rows() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptbesideshort");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        other.ok("INSERT INTO profiles SELECT id + 100000, 'many', 0 FROM statuses");
        for image in ["MINIMAL", "NOBLOB", "FULL"] {
            other.ok(&format!("SET SESSION binlog_row_image = {image}"));
            for turn in 0..2 {
                kept(&proxy, &mut twin, PAGES[0]);
                other.ok(&format!(
                    "UPDATE profiles SET name = '{image} {turn}' WHERE id < 6"
                ));
                same_rows(&mut twin, PAGES[0]);
                kept(&proxy, &mut twin, PAGES[2]);
                other.ok("UPDATE profiles SET id = id + 500 WHERE id = 2");
                same_rows(&mut twin, PAGES[2]);
                other.ok("UPDATE profiles SET id = id - 500 WHERE id = 502");
                same_rows(&mut twin, PAGES[2]);
                kept(&proxy, &mut twin, PAGES[0]);
                other.ok(&format!("UPDATE profiles SET name = '{image} all {turn}'"));
                same_rows(&mut twin, PAGES[0]);
            }
        }
    });
}

/// Each of these statements changes the joined table, so rows cached before are not sent.
#[test]
fn a_table_beside_messages_that_is_altered_has_other_rows() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptbesidealtered");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        other.ok("SET SESSION sql_mode = ''");
        for statement in [
            "ALTER TABLE profiles MODIFY name VARCHAR(60) CHARACTER SET latin1 NOT NULL",
            "ALTER TABLE profiles MODIFY name ENUM('user 1','user 2') NULL",
            "ALTER TABLE profiles MODIFY name VARCHAR(60) COLLATE utf8mb4_bin",
            "ALTER TABLE profiles ADD COLUMN first INT NOT NULL DEFAULT 7 FIRST",
            "UPDATE profiles SET name = 'behind' WHERE id = 1",
            "RENAME TABLE profiles TO old, old TO profiles",
            "CREATE TABLE fresh LIKE profiles",
            "INSERT INTO fresh SELECT * FROM profiles WHERE id MOD 2 = 0",
            "RENAME TABLE profiles TO old, fresh TO profiles",
            "DROP TABLE profiles",
            "CREATE TABLE profiles (name VARCHAR(50), private INT, id BIGINT PRIMARY KEY)",
            "INSERT INTO profiles VALUES ('one', 0, 1), ('two', 0, 2)",
            "UPDATE profiles SET name = 'other one' WHERE id = 1",
            "TRUNCATE TABLE profiles",
        ] {
            if !statement.starts_with("CREATE TABLE profiles") {
                kept(&proxy, &mut twin, PAGES[0]);
            }
            other.query(statement);
            for _ in 0..3 {
                twin.run(PAGES[0]);
            }
        }
    });
}

/// Rows of tables whose changes the log lacks, or contains too late, are not cached.
#[test]
fn tables_that_cannot_be_followed_are_asked_for() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptbesideodd");
        let mut root = database.connect();
        root.ok("CREATE TABLE teams (id INT PRIMARY KEY) ENGINE = InnoDB");
        root.ok("INSERT INTO teams VALUES (1), (2), (3)");
        root.ok(
            "CREATE TABLE members (id BIGINT PRIMARY KEY, team INT, CONSTRAINT of_team FOREIGN KEY (team) REFERENCES teams (id) ON DELETE SET NULL)",
        );
        root.ok("INSERT INTO members VALUES (1, 1), (2, 2), (3, 3)");
        root.ok("CREATE TABLE loose (id BIGINT PRIMARY KEY, name VARCHAR(20)) ENGINE = MyISAM");
        root.ok("INSERT INTO loose VALUES (1, 'a'), (2, 'b'), (3, 'c')");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let beside = |table: &str| {
            format!(
                "SELECT s.id, b.* FROM statuses s LEFT JOIN {table} b ON b.id = s.profile_id WHERE s.profile_id IN (1, 2, 3) ORDER BY s.id DESC LIMIT 5"
            )
        };
        for (table, change) in [
            ("members", "DELETE FROM teams WHERE id = 1"),
            ("loose", "UPDATE loose SET name = 'x'"),
        ] {
            narrowed(&proxy, &mut twin.proxied, &beside(table));
            let before = proxy.counts().of("feeds_kept");
            for _ in 0..20 {
                same_rows(&mut twin, &beside(table));
            }
            root.ok(change);
            for _ in 0..20 {
                same_rows(&mut twin, &beside(table));
            }
            assert_eq!(proxy.counts().of("feeds_kept"), before, "{table}");
        }
        let name = database.name();
        let said = format!("rows that show those of {name}.members are not kept");
        proxy.wait_for_log(&said);
        // Headwater logs this at most twice, however often it restarts following the server's log.
        for turn in 0..4 {
            root.ok(&format!("ALTER TABLE statuses COMMENT 'turn {turn}'"));
            kept(&proxy, &mut twin, PAGES[0]);
        }
        assert!(proxy.log().matches(&said).count() <= 2, "{}", proxy.log());
        // Pages of the other joined tables are still cached.
        kept(&proxy, &mut twin, PAGES[0]);
    });
}

/// Only followers see an author's messages, also where a joined row names the author.
#[test]
fn who_follows_decides_beside_an_author_who_is_named() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptbesidenamed");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut root = database.connect();
        root.ok("DELETE FROM followers WHERE profile_id IN (1, 2)");
        root.ok("INSERT INTO followers (profile_id, following_id) VALUES (1, 5), (1, 6), (2, 6)");
        let followed = "s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = R)";
        let edges = "JOIN followers f ON f.following_id = s.profile_id AND f.profile_id = R";
        let beside = "SELECT s.id, p.name FROM statuses s JOIN profiles p ON p.id = s.profile_id";
        for statement in [
            format!("{beside} WHERE {followed} AND p.id = 5"),
            format!("{beside} AND p.id IN (5, 6) WHERE {followed}"),
            format!("{beside} {edges} WHERE p.id = 5"),
            format!(
                "SELECT s.id FROM statuses s WHERE s.profile_id = s.likes AND s.likes = 5 AND {followed}"
            ),
        ] {
            let of = |reader| {
                let statement = statement.replace("= R", &format!("= {reader}"));
                format!("{statement} ORDER BY s.id DESC LIMIT 5")
            };
            narrowed(&proxy, &mut twin.proxied, &of(1));
            for turn in 0..160 {
                same_rows(&mut twin, &of(1 + turn / 40 % 2));
            }
        }
    });
}

/// A revoked right to a joined table takes effect within `privileges.ttl_s`.
#[test]
fn a_right_to_the_table_beside_counts_for_a_second() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptbesideright");
        narrowed(&proxy, &mut proxy.login(&database.login()), PAGES[0]);
        let login = database.account("EXECUTE", "");
        let (user, name) = (login.user.clone(), database.name());
        let mut root = database.connect();
        for table in ["statuses", "profiles"] {
            root.ok(&format!("GRANT SELECT ON {name}.{table} TO {user}@'%'"));
        }
        let mut twin = Twin::new(server, &proxy, &login);
        kept(&proxy, &mut twin, PAGES[0]);
        root.ok(&format!("REVOKE SELECT ON {name}.profiles FROM {user}@'%'"));
        thread::sleep(Duration::from_millis(1_100));
        for _ in 0..3 {
            assert_eq!(twin.error(PAGES[0]), 1142);
        }
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// Executions have their own cached rows, whose integer keys have other widths.
#[test]
fn executions_show_what_is_beside_messages() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptbesidebinary");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut other = database.connect();
        let text = PAGES[3].replace("IN (1, 2, 3)", "IN (?, ?, ?)");
        let statement = twin.prepare(&text);
        let values = [Some("1"), Some("2"), Some("3")];
        for turn in 0..20 {
            let kept = proxy.counts().of("feeds_kept");
            for _ in 0..400 {
                twin.execute(statement, &values);
                if proxy.counts().of("feeds_kept") > kept {
                    break;
                }
            }
            assert!(
                proxy.counts().of("feeds_kept") > kept,
                "{:?}",
                proxy.counts()
            );
            other.query(&match turn % 4 {
                0 => format!("UPDATE profiles SET name = 'turn {turn}'"),
                1 => "DELETE FROM profiles WHERE id IN (2, 17)".to_owned(),
                2 => format!(
                    "INSERT INTO profiles VALUES (2, 'two {turn}', 0), (17, 'seventeen {turn}', 1)"
                ),
                _ => {
                    "UPDATE statuses SET likes = IF(likes = 17, 40, 17) WHERE id > 2950".to_owned()
                }
            });
            twin.execute(statement, &values);
        }
        // Headwater does not follow negative keys.
        other.ok("UPDATE statuses SET likes = -17 WHERE id > 2950");
        other.ok("INSERT INTO profiles VALUES (-17, 'below', 0)");
        for turn in 0..20 {
            twin.execute(statement, &values);
            other.ok(&format!(
                "UPDATE profiles SET name = 'below {turn}' WHERE id < 0"
            ));
            twin.execute(statement, &values);
        }
    });
}

/// Pairs of users whose names change together.
const PAIRS: u64 = 8;

/// The progress of a pair's name.
#[derive(Default)]
struct Name {
    /// The highest number that was sent.
    begun: AtomicU64,
    /// The highest number that was committed.
    committed: AtomicU64,
}

/// A page shows the name that was committed before the query, or a later one; and both users of a pair have the same name.
#[test]
fn no_name_is_stale_while_names_change() {
    on_each_quiet_server(|server| {
        for memory_bytes in [256 << 20, 1 << 20] {
            let database = Database::empty(server, "keptbesidelinear");
            SMALL.make(&mut database.connect(), &mut Random(5));
            let settings = format!("{}\n[rows]\nmemory_bytes = {memory_bytes}\n", settings());
            let proxy = served(server, &database, "home", &settings);
            names_beside_writers(&database, &proxy);
        }
    });
}

fn names_beside_writers(database: &Database, proxy: &Proxy) {
    let names: Vec<Name> = (0..PAIRS).map(|_| Name::default()).collect();
    let mut root = database.connect();
    root.ok("UPDATE profiles SET name = '0'");
    let done = AtomicBool::new(false);
    let quota = Quota::new(proxy, checks() / 2, 1, kept_pages);
    thread::scope(|scope| {
        for (number, name) in (0..).zip(&names) {
            let done = &done;
            scope.spawn(move || {
                let mut client = database.connect();
                let mut turn = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    turn += 1;
                    name.begun.store(turn, Ordering::SeqCst);
                    client.ok("BEGIN");
                    let (first, second) = (1 + 2 * number, 2 + 2 * number);
                    client.ok(&format!("UPDATE profiles SET name = '{turn}' WHERE id = {first}"));
                    client.ok(&format!("UPDATE profiles SET name = '{turn}' WHERE id = {second}"));
                    client.ok("COMMIT");
                    name.committed.store(turn, Ordering::SeqCst);
                    // A later message proves that the change before it is readable.
                    let id = 1_000_000 * (1 + number) + turn;
                    client.ok(&format!(
                        "INSERT INTO statuses VALUES ({id}, 30, 'behind', 'text', 'private', 0, NULL, NOW(), NULL)"
                    ));
                    thread::sleep(Duration::from_millis(150 + 31 * number));
                }
            });
        }
        let readers: Vec<_> = (0..4_u64)
            .map(|reader| {
                let (names, quota) = (&names, &quota);
                scope.spawn(move || {
                    let mut client = proxy.login(&database.login());
                    let mut turn = reader;
                    while quota.take().is_some() {
                        turn += 1;
                        let join = ["LEFT JOIN", "JOIN"][(turn % 2) as usize];
                        let first = 1 + turn / 2 % 8;
                        let authors: Vec<String> = (first..first + 6).map(|id| id.to_string()).collect();
                        let load = |of: fn(&Name) -> &AtomicU64| -> Vec<u64> {
                            names.iter().map(|name| of(name).load(Ordering::SeqCst)).collect()
                        };
                        let before = load(|name| &name.committed);
                        let rows = client.rows(&format!(
                            "SELECT s.profile_id, p.name FROM statuses s {join} profiles p ON p.id = s.profile_id \
                             WHERE s.profile_id IN ({}) ORDER BY s.id DESC LIMIT 12",
                            authors.join(", ")
                        ));
                        let behind = load(|name| &name.begun);
                        let mut shown = vec![None; names.len()];
                        assert_eq!(rows.len(), 12);
                        for row in rows {
                            let [user, name] = [0, 1].map(|at| row[at].as_ref().unwrap().parse::<u64>().unwrap());
                            let pair = usize::try_from((user - 1) / 2).unwrap();
                            if pair >= shown.len() {
                                continue;
                            }
                            assert!(
                                (before[pair]..=behind[pair]).contains(&name),
                                "{name} of user {user}, committed {} and begun {}",
                                before[pair],
                                behind[pair]
                            );
                            assert_eq!(*shown[pair].get_or_insert(name), name, "a pair of two moments");
                        }
                    }
                })
            })
            .collect();
        wait_for(readers, &done);
    });
    println!("{} turns: {:?}", quota.taken(), proxy.counts());
}
