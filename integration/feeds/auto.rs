//! An app whose feed is not in the settings: Headwater reports it, serves it, or leaves it to the server.

use std::time::Instant;

use super::app::App;
use super::narrowed::narrowed;
use super::pair::Pair;
use super::served::PATIENT;
use crate::kit::database::Database;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::wire_client::{Login, WireClient};

/// Slightly more statements of one form than Headwater needs before it examines the form.
const MANY: u64 = 30;

const APP: App = App {
    id: "BIGINT",
    user: "INT UNSIGNED",
    users: 50,
    messages: 5_000,
    follows: 600,
};

fn listed(reader: u64) -> String {
    let (a, b, c) = (reader, reader + 7, reader + 9);
    format!(
        "SELECT id, caption FROM statuses WHERE profile_id IN ({a}, {b}, {c}) AND deleted_at IS NULL ORDER BY id DESC LIMIT 10"
    )
}

fn joined(reader: u64) -> String {
    format!(
        "SELECT s.* FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = {reader} \
         AND s.kind = 'photo' ORDER BY s.id DESC LIMIT 10"
    )
}

fn counted(reader: u64) -> String {
    format!(
        "SELECT COUNT(*) FROM statuses s JOIN followers f ON f.following_id = s.profile_id WHERE f.profile_id = {reader} \
         AND s.kind = 'photo'"
    )
}

fn timed(reader: u64) -> String {
    format!(
        "SELECT s.id FROM statuses s WHERE s.profile_id IN (SELECT following_id FROM followers WHERE profile_id = {reader}) \
         ORDER BY s.created_at DESC, s.id DESC LIMIT 10"
    )
}

/// The app, and a Headwater whose settings do not mention its feed.
fn unconfigured(server: &'static Server, auto: &str) -> (Database, Proxy, Pair) {
    let database = Database::empty(server, "auto");
    let login = Login::default().database(database.name());
    let mut direct = WireClient::login(server.addr(), &login);
    APP.make(&mut direct, &mut Random(20_261_124));
    let settings = format!("{PATIENT}auto = \"{auto}\"\n[limits]\nrecheck_ms = 500\n");
    let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
    let through = proxy.login(&login);
    (database, proxy, Pair::new(direct, through))
}

#[test]
fn a_feed_that_nobody_described_is_served() {
    on_each_server(|server| {
        let (database, proxy, mut pair) = unconfigured(server, "on");
        let name = database.name();
        for (template, statement) in [(0, listed as fn(u64) -> String), (1, joined)] {
            for reader in 1..MANY {
                pair.ask(template, &statement(reader));
            }
            proxy.wait_for_log(&format!("feed statuses in database {name}: served"));
            narrowed(&proxy, pair.proxied(), &statement(3));
            let before = proxy.counts().feeds_answered();
            for reader in 1..MANY {
                pair.ask(template, &statement(reader));
            }
            assert!(proxy.counts().feeds_answered() > before);
        }
        // A fault that was found: its counts were not.
        let before = proxy.counts().of("feeds_kept");
        let deadline = patience();
        while proxy.counts().of("feeds_kept") < before + MANY {
            for reader in 1..MANY {
                pair.ask(3, &counted(reader));
            }
            assert!(Instant::now() < deadline, "{:?}", proxy.counts());
        }
        // Headwater reports what is missing, and serves the feed once that is corrected.
        for reader in 1..MANY {
            pair.ask(2, &timed(reader));
        }
        proxy.wait_for_log("ALTER TABLE");
        pair.direct()
            .ok("ALTER TABLE statuses ADD INDEX (profile_id, created_at)");
        narrowed(&proxy, pair.proxied(), &timed(3));
        proxy.wait_for_log(&format!("feed statuses_2 in database {name}: served"));
        for reader in 1..MANY {
            pair.ask(2, &timed(reader));
        }
        proxy.counts();
        let output = proxy.output();
        let feed = output
            .lines()
            .rfind(|line| line.contains(" feed statuses: "));
        assert!(
            feed.is_some_and(|feed| feed.contains(" narrowed=")),
            "{output}"
        );
        assert!(output.contains(" statements of statuses_2: "), "{output}");
    });
}

#[test]
fn a_feed_that_nobody_described_is_told_of_once() {
    on_each_server(|server| {
        let (database, proxy, mut pair) = unconfigured(server, "suggest");
        let suggested = || proxy.counts().of("feeds_relayed[suggested]");
        for reader in 1..MANY {
            pair.ask(1, &joined(reader));
        }
        let told = format!(
            "statements of database {} look like a feed (join of statuses with followers)",
            database.name()
        );
        proxy.wait_for_log(&told);
        let before = suggested();
        for reader in 1..MANY {
            pair.ask(1, &joined(reader));
            pair.ask(0, &listed(reader));
        }
        assert!(suggested() >= before + MANY - 1);
        let log = proxy.log();
        assert_eq!(log.matches("look like a feed").count(), 1, "{log}");
        // The logged section is a setting that serves the statements.
        let section = log.split_once("[[feed]]").unwrap().1;
        let lines = section.lines().take_while(|line| !line.starts_with("20"));
        let section: String = lines.flat_map(|line| [line, "\n"]).collect();
        let settings = format!("{PATIENT}\n[[feed]]{section}");
        let served = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
        let login = Login::default().database(database.name());
        narrowed(&served, &mut served.login(&login), &joined(3));
        assert_eq!(proxy.counts().feeds_answered(), 0);
    });
}

#[test]
fn what_nobody_wants_to_know_is_not_looked_at() {
    on_each_server(|server| {
        let (_database, proxy, mut pair) = unconfigured(server, "off");
        for reader in 1..MANY {
            pair.ask(1, &joined(reader));
        }
        let line = proxy.counts_line();
        assert!(!line.contains("feeds_"), "{line}");
        assert!(!proxy.log().contains("look like a feed"));
    });
}
