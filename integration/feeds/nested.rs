//! Pages of a UNION, and pages within another SELECT: beside writes, with filters that few candidates pass.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::app::{SMALL, settings_in};
use super::narrowed::until_risen;
use super::pair::Pair;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::Counts;
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::on_each_server;
use crate::kit::wire_client::WireClient;

/// A page of a reader's feed, without its order.
fn page(random: &mut Random, columns: &str) -> String {
    let filter = random.pick(&[
        "",
        " AND s.deleted_at IS NULL",
        // Few messages pass, or none.
        " AND s.likes = 49",
        " AND s.likes = 49 AND s.kind = 'photo' AND s.id % 1 = 0",
        " AND s.caption LIKE 'caption 1%'",
        " AND s.likes > 90",
        " AND s.id <= 900",
    ]);
    let filter = filter.replace(" AND s.id % 1 = 0", " AND s.in_reply_to IS NULL");
    let from = random.pick(&[
        "FROM statuses s WHERE s.profile_id IN (SELECT f.following_id FROM followers f WHERE f.profile_id = {r})",
        "FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = {r}",
        "FROM statuses s WHERE (s.profile_id = {r} OR EXISTS (SELECT 1 FROM followers f WHERE f.profile_id = {r} AND f.following_id = s.profile_id))",
        "FROM statuses s WHERE s.profile_id IN (1, 2, {r})",
    ]);
    format!("SELECT {columns} {from}{filter}")
}

fn statement(random: &mut Random) -> String {
    const COLUMNS: &str = "s.id, s.profile_id, s.caption, s.in_reply_to";
    let limit = random.pick(&["LIMIT 3", "LIMIT 20", "LIMIT 5 OFFSET 4", "LIMIT 60"]);
    let by_id = format!("ORDER BY s.id DESC {limit}");
    let whole = page(random, COLUMNS);
    let own = "SELECT s.id, s.profile_id, s.caption, s.in_reply_to FROM statuses s WHERE s.profile_id = {r}";
    match random.below(9) {
        0 => format!(
            "SELECT p.*, o.name FROM ({whole} {by_id}) p LEFT JOIN profiles o ON o.id = p.profile_id ORDER BY p.id DESC"
        ),
        1 => format!(
            "SELECT p.id, COUNT(r.id) AS replies FROM ({whole} {by_id}) p LEFT JOIN statuses r ON r.in_reply_to = p.id GROUP BY p.id ORDER BY p.id DESC"
        ),
        2 => format!(
            "WITH page AS ({whole} {by_id}) SELECT o.name, x.id FROM page x JOIN profiles o ON o.id = x.profile_id ORDER BY x.id DESC"
        ),
        3 => format!(
            "SELECT a.id, a.caption FROM statuses a WHERE a.likes >= 0 AND a.id IN (SELECT p.id FROM ({} {by_id}) p) ORDER BY a.id DESC",
            page(random, "s.id")
        ),
        4 => format!(
            "SELECT d.id, d.caption FROM ({own} UNION {whole}) d ORDER BY d.id DESC {limit}"
        ),
        5 => format!("SELECT * FROM ({whole} UNION ALL {own}) AS d ORDER BY d.id DESC {limit}"),
        6 => format!("{own} UNION {whole} ORDER BY id DESC {limit}"),
        7 => format!(
            "({own} ORDER BY s.id DESC LIMIT 60) UNION ({whole} ORDER BY s.id DESC LIMIT 64) ORDER BY id DESC {limit}"
        ),
        _ => format!(
            "SELECT p.caption, (SELECT COUNT(*) FROM statuses r WHERE r.in_reply_to = p.id) AS replies FROM ({whole} {by_id}) p"
        ),
    }
}

fn write(root: &mut WireClient, random: &mut Random) {
    let (id, user) = (1 + random.below(3_100), 1 + random.below(30));
    root.query(&match random.below(6) {
        0 => format!("DELETE FROM statuses WHERE id = {id}"),
        1 => format!("UPDATE statuses SET likes = 49, deleted_at = NULL WHERE id = {id}"),
        2 => format!("UPDATE statuses SET profile_id = {user} WHERE id = {id}"),
        3 => format!("DELETE FROM followers WHERE profile_id = {} AND following_id = {user}", 1 + random.below(4)),
        4 => format!("INSERT IGNORE INTO followers (profile_id, following_id) VALUES ({}, {user})", 1 + random.below(4)),
        _ => format!(
            "REPLACE INTO statuses VALUES ({}, {user}, 'caption {id}', 'photo', 'public', 49, NULL, '2026-01-01', NULL)",
            3_000 + random.below(200)
        ),
    });
}

#[test]
fn nested_pages_are_the_servers_own() {
    on_each_server(|server| {
        let database = Database::empty(server, "feednested");
        let mut root = database.connect();
        SMALL.make(&mut root, &mut Random(5));
        let proxy = served(server, &database, "home", &settings_in(&database));
        let mut pair = Pair::new(database.connect(), proxy.login(&database.login()));
        let mut random = Random(20_261_202);
        let mut counts: HashMap<String, u64> = HashMap::new();
        let turns = how_many("HEADWATER_FEEDS", 300);
        let quota = Quota::new(&proxy, turns, turns / 2, Counts::feeds_answered);
        while quota.take().is_some() {
            if random.one_in(2) {
                write(&mut root, &mut random);
            }
            let text = statement(&mut random);
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let reader = 1 + random.below(4);
            *counts.entry(text.clone()).or_default() += 1;
            pair.ask(hasher.finish(), &text.replace("{r}", &reader.to_string()));
        }
        eprintln!("{} templates, {:?}", counts.len(), proxy.counts());
        // A page without enough candidates is asked for again, until it has more of them or all.
        let few = "SELECT p.id FROM (SELECT s.id FROM statuses s WHERE s.profile_id IN (1, 2) AND s.likes = 49 ORDER BY s.id DESC LIMIT 4) p";
        let none = few.replace("= 49", "= 99");
        for text in [few, &none] {
            let narrowed = |counts: &Counts| counts.of("feeds_narrowed");
            let ask = || pair.ask(7, text);
            until_risen(&proxy, text, narrowed, ask);
        }
    });
}

/// Within a transaction the page is of its snapshot.
#[test]
fn a_nested_page_of_a_snapshot_is_older_than_a_commit() {
    on_each_server(|server| {
        let database = Database::empty(server, "feednestedsnapshot");
        let mut root = database.connect();
        SMALL.make(&mut root, &mut Random(5));
        let proxy = served(server, &database, "home", &settings_in(&database));
        let mut pair = Pair::new(database.connect(), proxy.login(&database.login()));
        let text = "SELECT p.id, o.name FROM (SELECT s.id, s.profile_id FROM statuses s WHERE s.profile_id IN (1, 2) ORDER BY s.id DESC LIMIT 4) p \
                    JOIN profiles o ON o.id = p.profile_id ORDER BY p.id DESC";
        let narrowed = |counts: &Counts| counts.of("feeds_narrowed");
        until_risen(&proxy, "narrowed", narrowed, || pair.ask(1, text));
        for id in 9_001..9_010 {
            pair.run("START TRANSACTION");
            pair.ask(1, text);
            root.ok(&format!("INSERT INTO statuses VALUES ({id}, 1, 'new', 'photo', 'public', 0, NULL, '2026-01-01', NULL)"));
            pair.ask(1, text);
            pair.run("COMMIT");
            pair.ask(1, text);
        }
    });
}
