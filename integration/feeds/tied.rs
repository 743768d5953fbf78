//! Pages ordered by a key alone, where the feed puts the larger id first among equal keys (`ties = "id"`).

use super::app::{SMALL, settings_in, steady_statistics};
use super::kept::kept;
use super::narrowed::narrowed;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;

/// A database in which ten messages have each time, and a Headwater for it.
fn tied(server: &'static Server, story: &str, more: &str) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    let mut root = database.connect();
    SMALL.make(&mut root, &mut Random(5));
    root.ok("ALTER TABLE statuses ADD KEY feed (profile_id, created_at)");
    root.ok("UPDATE statuses SET created_at = '2026-01-01' + INTERVAL FLOOR(id / 10) SECOND");
    let settings = settings_in(&database)
        .replace("order = [\"id\"]", "order = [\"created_at\", \"id\"]")
        .replace("name = \"home\"", "name = \"home\"\nties = \"id\"");
    let proxy = served(server, &database, "home", &[more, &settings].concat());
    (database, proxy)
}

/// A random page, up to its order, and its end.
fn page(random: &mut Random) -> (String, String) {
    let second = random.below(30);
    let authors = *random.pick(&[
        "s.profile_id IN (1, 2, 3)",
        "s.profile_id IN (SELECT f.following_id FROM followers f WHERE f.profile_id = 3)",
        "(s.profile_id = 3 OR s.profile_id IN (SELECT f.following_id FROM followers f WHERE f.profile_id = 3))",
    ]);
    let bound = match random.below(3) {
        0 => String::new(),
        1 => format!(" AND s.created_at < '2026-01-01 00:00:{second:02}'"),
        _ => format!(" AND s.created_at <= '2026-01-01 00:00:{second:02}'"),
    };
    let filter = *random.pick(&["", " AND s.deleted_at IS NULL", " AND s.likes > 3"]);
    let from = *random.pick(&[
        "SELECT s.id, s.created_at FROM statuses s",
        "SELECT DISTINCT s.* FROM statuses s",
    ]);
    let limit = random.pick(&[
        "LIMIT 7",
        "-- so\n LIMIT 20",
        "LIMIT 5 OFFSET 4",
        "LIMIT 3, 9",
    ]);
    (
        format!("{from} WHERE {authors}{bound}{filter} ORDER BY s.created_at DESC"),
        format!(" {limit}"),
    )
}

fn relayed(counts: &Counts, before: &Counts) -> bool {
    let mut rose = counts.since(before);
    rose.any(|(name, _)| name.starts_with("feeds_relayed"))
}

fn write(root: &mut WireClient, random: &mut Random, id: u64) {
    let second = random.below(30);
    root.ok(&match random.below(4) {
        0 => format!("DELETE FROM statuses WHERE id = {}", random.below(400)),
        1 => format!(
            "UPDATE statuses SET created_at = '2026-01-01 00:00:{second:02}' WHERE id = {}",
            random.below(400)
        ),
        _ => format!(
            "INSERT INTO statuses (id, profile_id, kind, visibility, likes, created_at) \
             VALUES ({id}, {}, 'a', 'public', 5, '2026-01-01 00:00:{second:02}')",
            random.below(6)
        ),
    });
}

/// Each page that is not relayed is the server's own with the id after the key, and so is the page whose columns are sampled.
#[test]
fn the_larger_id_comes_first_in_every_page() {
    on_each_server(|server| {
        let (database, proxy) = tied(server, "feedtied", "[shadow]\nrate = 0.2\n");
        let mut root = database.connect();
        let mut client = proxy.login(&database.login());
        let mut random = Random(20_261_130);
        let quota = Quota::new(&proxy, 400, 200, Counts::feeds_answered);
        while let Some(turn) = quota.take() {
            if random.one_in(4) {
                write(&mut root, &mut random, 100_000 + turn);
            }
            let (text, end) = page(&mut random);
            let before = proxy.counts();
            let answer = client.rows(&format!("{text}{end}"));
            if !relayed(&proxy.counts(), &before) {
                let expected = root.rows(&format!("{text}, s.id DESC {end}"));
                assert_eq!(answer, expected, "{text}{end}");
            }
        }
        let counts = proxy.counts();
        for name in ["feeds_kept", "feeds_narrowed", "shadow_same"] {
            assert!(counts.of(name) > 0, "{counts:?}");
        }
        assert_eq!(counts.of("feeds_relayed[ties]"), 0, "{counts:?}");
        assert_eq!(counts.of("shadow_different"), 0, "{}", proxy.log());
    });
}

/// A page of a join in which a message has several rows, up to its order; the keys behind it, and its end.
fn joined_page(random: &mut Random) -> (String, &'static str, &'static str) {
    let second = random.below(30);
    let (from, keys) = *random.pick(&[
        (
            "SELECT s.id, s.caption, f.id, f.profile_id FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id IN (1, 2, 3)",
            "s.id DESC, f.id",
        ),
        (
            "SELECT s.id, t.label, t.n FROM statuses s LEFT JOIN labels t ON t.status = s.id AND t.n > 1 \
             WHERE s.profile_id IN (SELECT f.following_id FROM followers f WHERE f.profile_id = 3)",
            "s.id DESC, t.n",
        ),
        (
            "SELECT DISTINCT s.id, s.created_at, f.id AS edge FROM statuses s JOIN labels t ON t.status = s.id \
             JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id IN (1, 3)",
            "s.id DESC, f.id",
        ),
        (
            "SELECT p.name, s.*, t.*, f.* FROM followers f LEFT JOIN statuses s ON s.profile_id = f.following_id \
             LEFT JOIN profiles p ON p.id = f.profile_id JOIN labels t ON t.status = s.id WHERE f.profile_id IN (2, 3) AND s.likes > 2",
            "s.id DESC, f.id, t.n",
        ),
    ]);
    let bound = match random.below(2) {
        0 => String::new(),
        _ => format!(" AND s.created_at <= '2026-01-01 00:00:{second:02}'"),
    };
    let end = random.pick(&["LIMIT 7", "-- so\n LIMIT 20", "LIMIT 5 OFFSET 4"]);
    let text = format!("{from}{bound} ORDER BY s.created_at DESC");
    (text, keys, end)
}

/// Rows of one message come by the keys of the tables that it is joined with.
#[test]
fn rows_of_one_message_come_in_the_order_of_their_keys() {
    on_each_server(|server| {
        let (database, proxy) = tied(server, "feedtiedrows", "");
        let mut root = database.connect();
        root.ok("CREATE TABLE labels (n INT NOT NULL AUTO_INCREMENT PRIMARY KEY, status BIGINT UNSIGNED NOT NULL, label VARCHAR(9) NOT NULL, KEY (status))");
        root.ok("INSERT INTO labels (status, label) SELECT id, 'odd' FROM statuses WHERE id % 3 > 0 ORDER BY id DESC");
        root.ok(
            "INSERT INTO labels (status, label) SELECT id, 'even' FROM statuses WHERE id % 2 = 0",
        );
        steady_statistics(&mut root, &["labels"]);
        let mut client = proxy.login(&database.login());
        let mut random = Random(20_261_130);
        let quota = Quota::new(&proxy, 300, 150, Counts::feeds_answered);
        while let Some(turn) = quota.take() {
            match random.below(6) {
                0 => write(&mut root, &mut random, 100_000 + turn),
                1 => {
                    let status = random.below(400);
                    root.ok(&format!(
                        "INSERT INTO labels (status, label) VALUES ({status}, 'new')"
                    ));
                }
                _ => {}
            }
            let (text, keys, end) = joined_page(&mut random);
            let before = proxy.counts();
            let answer = client.rows(&format!("{text} {end}"));
            if !relayed(&proxy.counts(), &before) {
                let expected = root.rows(&format!("{text}, {keys} {end}"));
                assert_eq!(answer, expected, "{text} {end}");
            }
        }
        assert_eq!(proxy.counts().of("feeds_relayed[joins]"), 0);
    });
}

/// The rows of an execution, as sent. Definitions and ends of a reply begin with other bytes.
fn binary_rows(client: &mut WireClient, statement: u32, values: &[Option<&str>]) -> Vec<Vec<u8>> {
    let reply = client.execute(statement, values, 0).unwrap();
    let payloads = reply.packets.into_iter().map(|packet| packet.payload);
    payloads
        .filter(|payload| payload.first() == Some(&0))
        .collect()
}

/// The same for executions. With the id in the text nothing is added.
#[test]
fn executions_and_texts_with_the_id_are_ordered_as_well() {
    on_each_server(|server| {
        let (database, proxy) = tied(server, "feedtiedprepared", "");
        let mut root = database.connect();
        let text = "SELECT s.id, s.caption FROM statuses s WHERE s.profile_id IN (?, ?) AND s.created_at <= ? ORDER BY s.created_at DESC";
        let mut client = proxy.login(&database.login());
        let statement = client.prepare(&format!("{text} LIMIT 9"));
        let by_id = root.prepare(&format!("{text}, s.id DESC LIMIT 9"));
        let quota = Quota::new(&proxy, 60, 40, Counts::feeds_answered);
        while let Some(turn) = quota.take() {
            let bound = format!("2026-01-01 00:00:{:02}", 10 + turn % 20);
            let values = [Some("1"), Some("2"), Some(&*bound)];
            let before = proxy.counts();
            let answer = binary_rows(&mut client, statement, &values);
            if !relayed(&proxy.counts(), &before) {
                assert_eq!(answer, binary_rows(&mut root, by_id, &values), "{bound}");
            }
        }
        let mut twin = Twin::new(server, &proxy, &database.login());
        kept(
            &proxy,
            &mut twin,
            "SELECT id FROM statuses WHERE profile_id IN (1, 2) ORDER BY created_at DESC, id DESC LIMIT 9",
        );
        narrowed(
            &proxy,
            &mut client,
            "SELECT s.id FROM statuses s JOIN profiles p ON p.id = s.profile_id WHERE p.id IN (1, 2) ORDER BY created_at DESC LIMIT 9",
        );
    });
}
