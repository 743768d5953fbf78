//! Pages ordered by a key and the id, for keys of every kind: many equal values, NULL, invalid dates.

use super::app::{App, large, settings};
use super::narrowed::narrowed;
use super::pair::Pair;
use super::served::served;
use super::statements::Drawn;
use crate::kit::database::Database;
use crate::kit::how_many;
use crate::kit::proxy::{Counts, Proxy, ROOT_SERVICE};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::wire_client::WireClient;

/// The number of templates.
const TEMPLATES: u64 = 40;

/// A column that orders pages.
pub(super) struct Key {
    pub(super) name: &'static str,
    sql: &'static str,
    /// The SQL expression of a message's value, from its id and chance.
    value: &'static str,
    /// The fractional digits of the seconds; `None`: a number.
    digits: Option<usize>,
    /// The time zone of the client's session.
    pub(super) zone: &'static str,
    /// The minimum number of statements in ten that are narrowed.
    narrowed: u64,
}

pub(super) const KEYS: [Key; 5] = [
    // As in most apps: ties within a second, and rows without a value.
    Key {
        name: "shown_at",
        sql: "DATETIME NULL",
        value: "CASE WHEN id % 31 = 0 THEN NULL WHEN id % 37 = 0 THEN '0000-00-00' WHEN id % 41 = 0 THEN '2026-02-31 12:00:00' \
                ELSE '2026-01-01' + INTERVAL FLOOR(RAND(7) * 90 * 86400) SECOND END",
        digits: Some(0),
        zone: "SYSTEM",
        narrowed: 3,
    },
    Key {
        name: "shown_at",
        sql: "DATETIME(6) NOT NULL",
        value: "'2026-01-01' + INTERVAL FLOOR(RAND(8) * 90 * 86400 * 1000) * 1000 MICROSECOND",
        digits: Some(6),
        zone: "+02:00",
        narrowed: 3,
    },
    Key {
        name: "shown_at",
        sql: "TIMESTAMP(3) NULL",
        value: "CASE WHEN id % 31 = 0 THEN NULL WHEN id % 37 = 0 THEN '0000-00-00' \
                ELSE '2026-01-01' + INTERVAL FLOOR(RAND(9) * 90 * 864000) * 100000 MICROSECOND END",
        digits: Some(3),
        zone: "-05:30",
        narrowed: 3,
    },
    // The system's time zone is UTC.
    Key {
        name: "shown_at",
        sql: "TIMESTAMP NOT NULL DEFAULT '2026-01-01'",
        value: "'2026-01-01' + INTERVAL FLOOR(RAND(10) * 90 * 86400) SECOND",
        digits: Some(0),
        zone: "SYSTEM",
        narrowed: 3,
    },
    Key {
        name: "score",
        sql: "INT NULL",
        value: "CASE WHEN id % 11 = 0 THEN NULL ELSE FLOOR(RAND(11) * 400) - 200 END",
        digits: None,
        zone: "SYSTEM",
        narrowed: 1,
    },
];

impl Key {
    /// A literal that a message may have, or sometimes one that no message can have.
    pub(super) fn literal(&self, random: &mut Random) -> String {
        let Some(digits) = self.digits else {
            return match random.below(20) {
                0 => "99999999999".to_owned(),
                1 => "-2147483648".to_owned(),
                _ => (random.below(420) as i64 - 210).to_string(),
            };
        };
        let (month, day) = (1 + random.below(3), 1 + random.below(28));
        let date = format!("2026-{month:02}-{day:02}");
        let time = format!("{:02}:{:02}:00", random.below(24), random.below(60));
        let fraction = match random.below(4) {
            // A literal with one digit too many is not read as a bound.
            0 => format!(
                ".{:0width$}",
                1 + random.below(9),
                width = (digits + 1).min(6)
            ),
            1 if digits > 0 => ".5".to_owned(),
            _ => String::new(),
        };
        match random.below(8) {
            0 => format!("'{date}'"),
            _ => format!("'{date} {time}{fraction}'"),
        }
    }

    /// Adds the column to the app's messages.
    pub(super) fn add(&self, root: &mut WireClient) {
        let Key {
            name, sql, value, ..
        } = self;
        root.ok("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'");
        root.ok(&format!(
            "ALTER TABLE statuses ADD COLUMN {name} {sql}, ADD INDEX feed (profile_id, {name})"
        ));
        root.ok(&format!("UPDATE statuses SET {name} = {value}"));
        root.query("ANALYZE TABLE statuses");
    }

    pub(super) fn settings(&self) -> String {
        let order = format!("order = [\"{}\", \"id\"]", self.name);
        let settings = settings().replace("order = [\"id\"]", &order);
        // Memory is filled at startup, or on demand by statements.
        match self.digits {
            None => settings.replace("[index]\n", "[index]\npreload = true\n"),
            Some(_) => settings,
        }
    }
}

#[test]
fn statements_of_feeds_ordered_by_keys_are_answered_as_directly() {
    on_each_server(|server| {
        for key in &KEYS {
            compare(server, key);
        }
    });
}

fn compare(server: &'static Server, key: &Key) {
    let mut random = Random(20_261_124);
    let app = large("BIGINT UNSIGNED", "INT");
    let database = Database::empty(server, "feedkeys");
    let mut root = database.connect();
    app.make(&mut root, &mut random);
    key.add(&mut root);
    let proxy = served(server, &database, "home", &key.settings());
    let (mut direct, mut proxied) = (database.connect(), proxy.login(&database.login()));
    for client in [&mut direct, &mut proxied] {
        // In other modes MySQL warns of each invalid date that it writes to a temporary table.
        client.ok(&format!(
            "SET time_zone = '{}', sql_mode = 'ALLOW_INVALID_DATES'",
            key.zone
        ));
    }
    let mut pair = Pair::new(direct, proxied);
    // `HEADWATER_FEEDS` is the number of comparisons on each server, over all keys.
    let count = how_many("HEADWATER_FEEDS", 1_000) / KEYS.len() as u64;
    let answered = (key.narrowed * count).div_ceil(10);
    let quota = Quota::new(&proxy, count, answered, Counts::feeds_answered);
    while quota.take().is_some() {
        let template = random.below(TEMPLATES);
        let statement = Drawn {
            random: Random(template),
            values: &mut random,
            app: &app,
            key: Some(key),
        }
        .statement();
        match &statement.either {
            None => pair.ask(template, &statement.text),
            Some(either) => {
                let narrowed = || proxy.counts().feeds_answered();
                pair.ask_untied(template, &statement.text, either, narrowed);
            }
        }
    }
    // All messages of the most active authors, down to those without a key.
    let whole = format!(
        "SELECT id, {name} FROM statuses WHERE profile_id IN (1,2,3,4,5,6) ORDER BY {name} DESC, id DESC LIMIT 899",
        name = key.name
    );
    let mut client = proxy.login(&database.login());
    narrowed(&proxy, &mut client, &whole);
    pair.ask(TEMPLATES, &whole);
    println!("{}: {:?}", key.sql, proxy.counts());
}

/// The check names the index that completeness needs, and serves the feed once the index exists.
#[test]
fn a_key_without_its_index_is_told_with_the_statement_that_mends_it() {
    on_each_server(|server| {
        let database = Database::empty(server, "feedkeyindex");
        let app = App {
            id: "INT",
            user: "INT",
            users: 20,
            messages: 500,
            follows: 100,
        };
        let mut root = database.connect();
        app.make(&mut root, &mut Random(5));
        let settings = settings().replace("order = [\"id\"]", "order = [\"created_at\", \"id\"]");
        let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
        let mends = "ALTER TABLE `statuses` ADD INDEX (`profile_id`, `created_at`)";
        proxy.wait_for_log(mends);
        root.ok(mends);
        // A statement triggers the next check.
        let page = "SELECT id FROM statuses WHERE profile_id IN (1, 2) ORDER BY created_at DESC, id DESC LIMIT 5";
        narrowed(&proxy, &mut proxy.login(&database.login()), page);
    });
}
