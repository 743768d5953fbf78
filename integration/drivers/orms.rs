//! ORMs of many languages read an app's home feed in their own idioms: pages by cursor and by offset, with the author of each post, by a
//! list of authors, a subquery, a join, EXISTS, in transactions and outside. Each has a program that prints what it reads. The test runs
//! it directly and through Headwater.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use headwater_lab::private_server::ServerKind;

use super::program::{self, is_here};
use crate::feeds::PATIENT;
use crate::kit::database::run;
use crate::kit::proxy::{Counts, Proxy, ROOT_SERVICE};
use crate::kit::servers::on_servers_of_its_own;
use crate::kit::wire_client::WireClient;

/// The maximum number of runs of a program until all its statements are known.
const RUNS: usize = 6;

const TABLES: &str = include_str!("feed.sql");

/// The decisions on each ORM's feeds once every form is known, on MariaDB and on MySQL: how many are narrowed, and how many are sent
/// unchanged, to sample metadata or for which reasons.
const SHARES: &[(&str, &str, &str)] = &[
    ("orm_django", "narrowed=154", "narrowed=154"),
    ("orm_sqlalchemy", "narrowed=219", "narrowed=219"),
    ("orm_active_record", "narrowed=189", "narrowed=189"),
    ("orm_eloquent", "narrowed=294", "narrowed=294"),
    ("orm_doctrine", "narrowed=196", "narrowed=196"),
    // Counts of a SELECT with an include are joined by other columns than the author.
    (
        "orm_sequelize",
        "narrowed=161 relayed[count]=7",
        "narrowed=161 relayed[count]=7",
    ),
    ("orm_typeorm", "narrowed=185", "narrowed=185"),
    ("orm_knex", "narrowed=168", "narrowed=168"),
    // MariaDB's own client caches the column metadata of the preparation. Where the server describes columns otherwise, it does so at the
    // first execution.
    ("orm_diesel", "learned=96 narrowed=121", "narrowed=217"),
];

/// Private servers: tables that other tests create on a shared one cause the feeds' tables to be inspected again.
#[test]
fn feeds_of_orms_are_read_as_they_are_directly() {
    on_servers_of_its_own(
        |_| &[],
        |server| {
            let orms: Vec<_> = SHARES.iter().filter(|(orm, ..)| is_here(orm)).collect();
            for (orm, ..) in &orms {
                make(server.addr(), orm);
            }
            let others: Vec<String> = orms
                .into_iter()
                .filter_map(|(orm, mariadb, mysql)| {
                    let share = match server.kind() {
                        ServerKind::Mariadb => mariadb,
                        ServerKind::Mysql => mysql,
                    };
                    reads_the_same(server.addr(), orm, share)
                })
                .collect();
            assert!(others.is_empty(), "{others:#?}");
        },
    );
}

#[track_caller]
fn make(server: SocketAddr, orm: &str) {
    let mut root = WireClient::connect(server);
    root.ok(&format!("CREATE DATABASE {orm}"));
    root.ok(&format!("USE {orm}"));
    run(&mut root, TABLES);
    root.query("ANALYZE TABLE users, follows, posts");
}

/// What its share is, if it is not this one.
#[track_caller]
fn reads_the_same(server: SocketAddr, orm: &str, share: &str) -> Option<String> {
    let proxy = Proxy::configured(server, &settings(orm), ROOT_SERVICE);
    for feed in ["home", "by_time"] {
        proxy.wait_for_log(&format!("feed {feed} in database {orm}: served"));
    }
    let tell = |addr: SocketAddr| {
        let (host, port) = (addr.ip().to_string(), addr.port().to_string());
        program::run(&[orm, &host, &port, orm])
    };
    let direct = tell(server).unwrap_or_else(|why| panic!("{orm}, directly: {why}"));
    assert!(direct.lines().count() > 500, "{orm}: {direct}");
    let mut found = String::new();
    // In the first runs, metadata is sampled.
    for _ in 0..RUNS {
        let before = proxy.counts();
        let through = tell(proxy.addr())
            .unwrap_or_else(|why| panic!("{orm}, through Headwater: {why}{}", proxy.log()));
        if let Some(difference) = super::difference(&direct, &through) {
            panic!("{orm} reads something else:\n{difference}");
        }
        found = feeds(&before, &proxy.counts());
        if found == share {
            return None;
        }
    }
    Some(format!("{orm}: {found}, not {share}"))
}

/// The same posts in two orders.
fn settings(database: &str) -> String {
    let feed = |name: &str, order: &[&str]| {
        format!(
            r#"
[[feed]]
name = "{name}"
database = "{database}"
message = {{ table = "posts", id = "id", author = "user_id", order = {order:?} }}
follow = {{ table = "follows", reader = "follower_id", author = "followed_id" }}
"#
        )
    };
    [
        PATIENT,
        &feed("home", &["id"]),
        &feed("by_time", &["created_at", "id"]),
    ]
    .concat()
}

/// The decisions on feeds between two counts. Whether rows were cached depends on timing, so these count as narrowed.
fn feeds(before: &Counts, after: &Counts) -> String {
    let mut feeds = BTreeMap::new();
    for (name, count) in after.since(before) {
        let what = match name.strip_prefix("feeds_") {
            Some("kept") => "narrowed",
            Some(what) => what,
            None => continue,
        };
        *feeds.entry(what).or_insert(0) += count;
    }
    let shown = feeds.iter().map(|(what, count)| format!("{what}={count}"));
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_orm_has_its_share() {
    let names: Vec<_> = SHARES.iter().map(|(orm, ..)| *orm).collect();
    assert_eq!(program::orms(), names);
}
