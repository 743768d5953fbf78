//! Pages whose messages are in posting lists of several columns: posts of whom I follow, or of the groups that I joined.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;
use std::time::Duration;

use super::linear::checks;
use super::pair::Pair;
use super::served::{PATIENT, served};
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::wire_client::{Param, WireClient};
use crate::memory::world::World;

/// Two feeds over the same posts.
fn settings(database: &Database, order: &str) -> String {
    let feed = |name: &str, author: &str, follow: &str| {
        format!(
            "[[feed]]\nname = \"{name}\"\ndatabase = \"{}\"\n{}[feed.message]\ntable = \"post\"\nauthor = \"{author}\"\norder = {order}\n\
             [feed.follow]\ntable = \"{follow}\"\nreader = \"user_id\"\nauthor = \"{author}\"\n",
            database.name(),
            if order.contains("made") {
                "ties = \"id\"\n"
            } else {
                ""
            },
        )
    };
    let authors = feed("authors", "author_id", "follows");
    let groups = feed("groups", "group_id", "members");
    [PATIENT, &authors, &groups].concat()
}

fn made(server: &'static Server, story: &str, order: &str) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    let mut root = database.connect();
    root.ok("CREATE TABLE post (id INT NOT NULL PRIMARY KEY, author_id INT, group_id INT, body VARCHAR(20) NOT NULL, made DATETIME NOT NULL, \
             KEY (author_id, made), KEY (group_id, made), KEY a (author_id), KEY g (group_id))");
    root.ok("CREATE TABLE follows (user_id INT NOT NULL, author_id INT NOT NULL, PRIMARY KEY (user_id, author_id))");
    root.ok("CREATE TABLE members (user_id INT NOT NULL, group_id INT NOT NULL, banned BOOLEAN NOT NULL DEFAULT 0, PRIMARY KEY (user_id, group_id))");
    root.ok("INSERT INTO follows VALUES (1, 2), (1, 3), (2, 4)");
    root.ok("INSERT INTO members VALUES (1, 5, 0), (1, 2, 1), (2, 6, 0)");
    let proxy = served(server, &database, "groups", &settings(&database, order));
    proxy.wait_for_log(&format!(
        "feed authors in database {}: served",
        database.name()
    ));
    (database, proxy)
}

fn write(root: &mut WireClient, random: &mut Random, next: &mut u64) {
    let one = |random: &mut Random| match random.below(8) {
        0 => "NULL".to_owned(),
        one => one.to_string(),
    };
    let (author, group, old) = (one(random), one(random), 1 + random.below(*next));
    let (user, other) = (1 + random.below(2), 1 + random.below(6));
    root.ok(&match random.below(12) {
        0 => format!("UPDATE post SET author_id = {author} WHERE id = {old}"),
        1 => format!("UPDATE post SET group_id = {group}, body = 'moved' WHERE id = {old}"),
        2 => format!("UPDATE post SET made = made + INTERVAL 1 MINUTE WHERE id = {old}"),
        3 => format!("DELETE FROM post WHERE id = {old}"),
        4 => format!("REPLACE INTO follows VALUES ({user}, {other})"),
        5 => format!("DELETE FROM follows WHERE user_id = {user} AND author_id = {other}"),
        6 => format!("REPLACE INTO members VALUES ({user}, {other}, {})", random.below(2)),
        7 => format!("DELETE FROM members WHERE user_id = {user} AND group_id = {other}"),
        _ => {
            *next += 1;
            format!("INSERT INTO post VALUES ({next}, {author}, {group}, 'post {next}', '2026-01-01' + INTERVAL {next} DIV 3 MINUTE)")
        }
    });
}

/// A reader's page. `?` for the reader where it is prepared.
fn page(random: &mut Random, order: &str) -> String {
    let user = "?";
    let followed = format!("SELECT author_id FROM follows WHERE follows.user_id = {user}");
    let joined = format!("SELECT group_id FROM members WHERE members.user_id = {user}");
    let condition = match random.below(6) {
        0 => format!("p.author_id IN ({followed}) OR p.group_id IN ({joined})"),
        1 => format!(
            "(p.group_id IN ({joined} AND NOT banned) OR p.author_id = {user}) AND p.body <> 'moved'"
        ),
        2 => format!("p.author_id = {user} OR p.author_id IN ({followed}) OR p.group_id IN (1, 5)"),
        3 => format!(
            "p.id < 900 AND (p.author_id IN (2, 3) OR (p.body LIKE 'post%' AND EXISTS ({joined} AND members.group_id = p.group_id)))"
        ),
        4 => format!("p.author_id IN ({followed}) OR (p.group_id IN ({joined}) OR p.group_id = 3)"),
        _ => format!(
            "p.author_id IN ({followed}) OR p.group_id IN ({joined}) AND p.author_id IS NOT NULL"
        ),
    };
    let (from, limit) = (
        random.pick(&[
            "SELECT p.* FROM post p",
            "SELECT DISTINCT p.id, p.group_id, p.made FROM post p",
        ]),
        random.pick(&["LIMIT 3", "LIMIT 20", "LIMIT 7 OFFSET 4", "LIMIT 400"]),
    );
    format!("{from} WHERE {condition} ORDER BY {order} {limit}")
}

#[test]
fn pages_of_two_columns_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = made(server, "feedpostings", "[\"id\"]");
        let login = database.login();
        let mut root = database.connect();
        let mut pair = Pair::new(database.connect(), proxy.login(&login));
        let (mut random, mut next) = (Random(20_261_130), 0);
        for _ in 0..120 {
            write(&mut root, &mut random, &mut next);
        }
        let mut statements: HashMap<String, [u32; 2]> = HashMap::new();
        let turns = how_many("HEADWATER_FEEDS", 160);
        let quota = Quota::new(&proxy, turns, turns / 3, Counts::feeds_answered);
        while quota.take().is_some() {
            if random.one_in(2) {
                write(&mut root, &mut random, &mut next);
            }
            let (text, reader) = (page(&mut random, "p.id DESC"), 1 + random.below(2));
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let template = hasher.finish();
            if random.one_in(3) {
                let statement = *statements
                    .entry(text.clone())
                    .or_insert_with(|| pair.prepare(&text));
                let params =
                    vec![Param::long(i32::try_from(reader).unwrap()); text.matches('?').count()];
                pair.execute(template ^ 1, &text, statement, &params, true);
            } else {
                pair.ask(template, &text.replace('?', &reader.to_string()));
            }
        }
        eprintln!("{:?}", proxy.counts());
    });
}

#[test]
fn of_equal_times_the_larger_id_comes_first_in_lists_of_two_columns() {
    on_each_server(|server| {
        let (database, proxy) = made(server, "feedpostingstied", "[\"made\", \"id\"]");
        let (mut root, mut client) = (database.connect(), proxy.login(&database.login()));
        let (mut random, mut next) = (Random(20_261_201), 0);
        for _ in 0..120 {
            write(&mut root, &mut random, &mut next);
        }
        let quota = Quota::new(&proxy, 100, 40, Counts::feeds_answered);
        while quota.take().is_some() {
            if random.one_in(2) {
                write(&mut root, &mut random, &mut next);
            }
            let text = page(&mut random, "p.made DESC").replace('?', "1");
            // Until its columns are known, the server's order of equal times is shown.
            let relayed = proxy.counts().feeds_answered();
            let rows = client.rows(&text);
            if proxy.counts().feeds_answered() > relayed {
                let total = text.replace("p.made DESC", "p.made DESC, p.id DESC");
                assert_eq!(rows, root.rows(&total), "{text}");
            }
        }
    });
}

/// A transaction takes a post from one list and adds one to the other: an answer with only one of the changes never was the state of the
/// table.
#[test]
fn a_page_of_two_columns_is_of_one_moment() {
    const KEPT: u64 = 12;
    on_each_server(|server| {
        let (database, proxy) = made(server, "feedpostingsmoment", "[\"id\"]");
        let mut root = database.connect();
        let post = |id: u64| match id % 2 {
            0 => format!("INSERT INTO post VALUES ({id}, 2, NULL, 'x', '2026-01-01')"),
            _ => format!("INSERT INTO post VALUES ({id}, 7, 5, 'x', '2026-01-01')"),
        };
        for id in 1..=KEPT {
            root.ok(&post(id));
        }
        let (login, addr) = (database.login(), server.addr());
        let quota = Quota::new(&proxy, checks(), checks() / 4, Counts::feeds_answered);
        let world = World::new(1);
        thread::scope(|scope| {
            let running = world.run();
            let writer = scope.spawn(|| {
                let mut client = WireClient::login(addr, &login);
                let mut next = KEPT;
                while !world.is_stopping() {
                    next += 1;
                    client.ok("BEGIN");
                    client.ok(&format!("DELETE FROM post WHERE id = {}", next - KEPT));
                    client.ok(&post(next));
                    client.ok("COMMIT");
                    thread::sleep(Duration::from_micros(next % 7 * 1_500));
                }
            });
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    let (quota, proxy, login) = (&quota, &proxy, &login);
                    scope.spawn(move || {
                        let mut client = proxy.login(login);
                        while let Some(turn) = quota.take() {
                            let limit = [KEPT, 5, 50][(turn % 3) as usize];
                            let statement = format!(
                                "SELECT id FROM post WHERE author_id IN (SELECT author_id FROM follows WHERE follows.user_id = 1) \
                                 OR group_id IN (SELECT group_id FROM members WHERE members.user_id = 1) ORDER BY id DESC LIMIT {limit}"
                            );
                            let ids = client.column(&statement);
                            let ids: Vec<u64> = ids.iter().map(|id| id.parse().unwrap()).collect();
                            let newest = *ids.first().unwrap();
                            let oldest = newest + 1 - limit.min(KEPT);
                            assert_eq!(ids, (oldest..=newest).rev().collect::<Vec<_>>());
                        }
                    })
                })
                .collect();
            running.outlast(readers, vec![writer]);
        });
        eprintln!("{:?}", proxy.counts());
    });
}
