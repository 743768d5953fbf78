//! Columns whose description depends on the plan in more than key flags: Headwater sends the server's current description, or relays.

use headwater_lab::private_server::ServerKind;

use super::app::{SMALL, settings, settings_in};
use super::kept::kept;
use super::pair::Pair;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::Counts;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::quota::{Quota, kept_pages};
use crate::kit::random::Random;
use crate::kit::servers::{on_each_server, on_servers_of_its_own};
use crate::kit::twin::Twin;
use crate::kit::wire_client::WireClient;
use crate::memory::prepare;

/// The number of statements to compare on each server: `HEADWATER_FEEDS`, or enough for a test.
fn statements() -> u64 {
    how_many("HEADWATER_FEEDS", 3_000)
}

/// The number of templates.
const TEMPLATES: u64 = 90;

/// Columns of messages alone.
const OWN: [&str; 8] = [
    "IFNULL(s.caption, 'none')",
    "COALESCE(s.likes, 1) AS c",
    "IFNULL(s.in_reply_to, 0) AS c",
    "COALESCE(s.deleted_at, s.created_at) d",
    "IFNULL(s.kind, 'x') k, IFNULL(s.visibility, 'y') v",
    "s.*",
    "s.caption, s.likes, 5, 'abc', -3 n, NULL, TRUE t",
    "s.kind",
];
/// Columns of joined tables.
const JOINED: [&str; 6] = [
    "p.name",
    "IFNULL(p.name, 'nobody') n",
    "COALESCE(p.name, s.caption) n, p.private",
    "p.*",
    "COALESCE(p.private, s.likes, 0) x",
    "s.*, p.id",
];
const JOINS: [&str; 4] = [
    "",
    "LEFT JOIN profiles p ON p.id = s.profile_id",
    "JOIN profiles p ON p.id = s.profile_id",
    "LEFT JOIN profiles p ON p.id = s.likes",
];
const AUTHORS: [&str; 7] = [
    "s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = {reader})",
    "s.profile_id IN ({list})",
    "EXISTS (SELECT 1 FROM followers f WHERE f.following_id = s.profile_id AND f.profile_id = {reader})",
    "(s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = {reader}) OR s.profile_id = {reader})",
    "s.profile_id = {reader}",
    "",
    "s.profile_id IN ({list}) AND s.profile_id NOT IN (SELECT blocked_id FROM blocks WHERE profile_id = {reader})",
];
const FILTERS: [&str; 12] = [
    "",
    "",
    "s.kind = 'photo'",
    "s.deleted_at IS NULL",
    "s.likes > {number}",
    "s.id < {id}",
    "s.id < {id} AND s.id > {other}",
    "s.likes IN ({number})",
    "s.id = {id}",
    "s.id IN ({id})",
    "s.id BETWEEN {id} AND {other}",
    "s.id BETWEEN {id} AND {id}",
];

/// Conditions on joined tables. Most of them turn a LEFT JOIN into an inner join.
const JOINED_FILTERS: [&str; 7] = [
    "",
    "",
    "p.private = 0",
    "p.name IS NOT NULL",
    "(p.private = {number} OR p.name > 'b')",
    "(p.id IS NULL OR s.likes > {number})",
    "p.id > 3",
];

/// A template; its values stand in braces.
fn template(random: &mut Random) -> String {
    let join = *random.pick(&JOINS);
    let columns = match join.is_empty() || random.one_in(2) {
        true => *random.pick(&OWN),
        false => *random.pick(&JOINED),
    };
    let (authors, filter) = (*random.pick(&AUTHORS), *random.pick(&FILTERS));
    let edges = "JOIN followers f ON f.following_id = s.profile_id AND f.profile_id = {reader}";
    let edges = if authors.is_empty() { edges } else { "" };
    let joined = match join.is_empty() {
        true => "",
        false => *random.pick(&JOINED_FILTERS),
    };
    let conditions = [authors, filter, joined]
        .into_iter()
        .filter(|one| !one.is_empty());
    let conditions: Vec<&str> = conditions.collect();
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!("WHERE {}", conditions.join(" AND ")),
    };
    let distinct = if random.one_in(5) { "DISTINCT " } else { "" };
    if random.one_in(8) {
        return format!(
            "SELECT {distinct}d.id, d.c FROM (SELECT s.id, s.caption AS c FROM statuses s {join} {edges} {filter}) d ORDER BY d.id DESC LIMIT {{rows}}"
        );
    }
    format!(
        "SELECT {distinct}s.id, {columns} FROM statuses s {join} {edges} {filter} ORDER BY s.id DESC LIMIT {{rows}}"
    )
}

fn statement(template: &str, random: &mut Random) -> String {
    let count = *random.pick(&[1, 1, 2, 3, 10, 20]);
    let list: Vec<String> = (0..count)
        .map(|_| (1 + random.below(32)).to_string())
        .collect();
    template
        .replace("{list}", &list.join(", "))
        .replace("{reader}", &(1 + random.below(32)).to_string())
        .replace("{number}", &random.below(50).to_string())
        .replace("{id}", &random.below(3_100).to_string())
        .replace("{other}", &random.below(3_100).to_string())
        .replace("{rows}", random.pick::<&str>(&["1", "5", "20"]))
}

#[test]
fn columns_are_described_as_the_plan_at_hand_has_them() {
    on_each_server(|server| {
        let database = Database::empty(server, "feeddescribed");
        SMALL.make(&mut database.connect(), &mut Random(5));
        let mut root = database.connect();
        // Some authors have no profile, so that a LEFT JOIN finds none.
        root.ok("DELETE FROM profiles WHERE id % 7 = 0");
        root.query("ANALYZE TABLE profiles");
        let proxy = served(server, &database, "home", &settings_in(&database));
        let mut pair = Pair::new(database.connect(), proxy.login(&database.login()));
        let mut random = Random(20_261_127);
        let quota = Quota::new(&proxy, statements() / 2, statements() / 10, kept_pages).and(
            &proxy,
            statements() / 3,
            Counts::feeds_answered,
        );
        while quota.take().is_some() {
            let number = random.below(TEMPLATES);
            let template = template(&mut Random(number));
            let statement = statement(&template, &mut random);
            // The second execution can use the rows that the first one cached.
            pair.ask(number, &statement);
            pair.ask(number, &statement);
        }
        println!("{} turns: {:?}", quota.taken(), proxy.counts());
    });
}

/// No variable shows the collation of a session's result strings. The login or SET NAMES determines it, whatever is set afterwards.
#[test]
fn strings_are_told_in_the_collation_of_their_session() {
    on_servers_of_its_own(
        |mariadb| match mariadb {
            true => &[
                "--character-set-server=utf8mb4",
                "--collation-server=utf8mb4_uca1400_as_cs",
            ],
            false => &["--collation-server=utf8mb4_0900_as_cs"],
        },
        |server| {
            let login = prepare(server.addr());
            let mut root = WireClient::login(server.addr(), &login);
            SMALL.make(&mut root, &mut Random(5));
            let proxy = Proxy::configured(server.addr(), &settings(), ROOT_SERVICE);
            proxy.wait_for_log("feed home in database tl: served");
            let statement = "SELECT id, caption, 'x', IFNULL(caption, 'none') FROM statuses WHERE profile_id IN (1, 2, 3) ORDER BY id DESC LIMIT 5";
            let mut twins = [(), ()].map(|()| {
                let direct = WireClient::login(server.addr(), &login);
                Twin::between(direct, proxy.login(&login))
            });
            let mut collations = vec![
                "SET NAMES utf8mb4",
                "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
                "SET collation_connection = utf8mb4_general_ci",
                "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
                "SET collation_connection = utf8mb4_bin",
                "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
                "SET NAMES latin1 COLLATE latin1_bin",
                "SET character_set_results = utf8mb4",
                "SET character_set_results = NULL",
            ];
            if server.kind() == ServerKind::Mariadb {
                collations.push("SET NAMES utf8mb4 COLLATE utf8mb4_uca1400_ai_ci");
                collations.push("SET sql_mode = 'EMPTY_STRING_IS_NULL'");
            }
            for collation in &collations {
                for twin in &mut twins {
                    twin.run(collation);
                    for _ in 0..3 {
                        twin.run(statement);
                    }
                    kept(&proxy, twin, statement);
                    twin.run(statement);
                }
            }
            let counts = proxy.counts();
            assert_eq!(counts.of("feeds_relayed[columns_differ]"), 0, "{counts:?}");
        },
    );
}
