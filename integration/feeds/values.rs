//! Values that decide which rows pass, where similar values only give the authors, the start of the page or its length.

use super::app::{SMALL, settings_in};
use super::kept::kept;
use super::rules::app;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::proxy::Proxy;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server, on_each_server_alone};
use crate::kit::twin::Twin;
use crate::kit::wire_client::Param;

/// The number of rows in EXISTS makes no difference, unless it is zero.
#[test]
fn a_limit_of_no_rows_behind_exists_is_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedexists");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for (exists, other) in [
            (
                "EXISTS (SELECT 1 FROM followers f WHERE f.following_id = s.profile_id AND f.profile_id = 1 LIMIT {})",
                "",
            ),
            (
                "EXISTS (SELECT 1 FROM blocks b WHERE b.profile_id = s.profile_id AND b.blocked_id = 3 LIMIT {})",
                "s.profile_id IN (1, 2, 3) AND NOT ",
            ),
        ] {
            let page = |limit: &str| {
                let exists = exists.replace("{}", limit);
                format!(
                    "SELECT s.id, s.caption FROM statuses s WHERE {other}{exists} ORDER BY s.id DESC LIMIT 5"
                )
            };
            for limit in ["1", "0", "00", "2", "0, 1", "1, 1", "1 OFFSET 1"] {
                for _ in 0..4 {
                    twin.run(&page("1"));
                    twin.run(&page(limit));
                }
            }
            if other.is_empty() {
                kept(&proxy, &mut twin, &page("1"));
                twin.run(&page("0"));
            }
        }
    });
}

/// Numbers that the grammar reads are the same in all statements of a template.
#[test]
fn numbers_behind_interval_and_in_now_are_the_statements_own() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedinterval");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for (first, second) in [
            ("NOW() - INTERVAL 7 DAY", "NOW() - INTERVAL 99999999 DAY"),
            ("NOW() + INTERVAL 99999999 DAY", "NOW() + INTERVAL 7 DAY"),
            ("NOW(3)", "NOW(9)"),
            ("CURRENT_TIMESTAMP (9)", "CURRENT_TIMESTAMP (3)"),
        ] {
            for _ in 0..4 {
                for moment in [first, second] {
                    twin.run(&format!("SELECT id FROM statuses WHERE profile_id IN (1, 2, 3) AND created_at < {moment} ORDER BY id DESC LIMIT 5"));
                    twin.run("SHOW WARNINGS");
                }
            }
        }
    });
}

fn by_time(server: &'static Server, story: &str) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    let mut root = database.connect();
    SMALL.make(&mut root, &mut Random(5));
    root.ok("ALTER TABLE statuses ADD KEY feed (profile_id, created_at)");
    let order = "order = [\"created_at\", \"id\"]";
    let settings = settings_in(&database).replace("order = [\"id\"]", order);
    assert!(settings.contains(order));
    let proxy = served(server, &database, "home", &settings);
    (database, proxy)
}

/// The server evaluates a bound with more digits than its column has: which of the two bounds it is decides which rows pass.
#[test]
fn bounds_that_change_places_let_other_rows_pass() {
    on_each_server(|server| {
        let (database, proxy) = by_time(server, "feedbounds");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let page = |first: &str, second: &str| {
            format!(
                "SELECT id, created_at FROM statuses WHERE profile_id IN (1, 2, 3) AND created_at < '2026-01-01 10:00:{first}' \
                 AND created_at <= '2026-01-01 10:00:{second}' ORDER BY created_at DESC, id DESC LIMIT 60"
            )
        };
        for (exact, finer) in [("40", "30.000"), ("30", "30.0"), ("31", "30.5")] {
            for (one, other) in [(exact, finer), (finer, exact)] {
                kept(&proxy, &mut twin, &page(one, other));
                for _ in 0..3 {
                    twin.run(&page(other, one));
                    twin.run(&page(one, other));
                }
            }
        }
    });
}

/// A time as a parameter of an execution, in one of the types that carry a time.
fn moment(code: u8, second: u8) -> Param {
    let text = format!("2026-01-01 10:00:{second:02}");
    match code {
        7 | 10 | 12 => Param::new(code, 0, &[7, 0xea, 7, 1, 1, 10, 0, second]),
        _ => Param::new(
            code,
            0,
            &[&[text.len() as u8][..], text.as_bytes()].concat(),
        ),
    }
}

/// A whole number as a parameter of any type.
fn number(code: u8, sign: u8, value: u8) -> Param {
    let text = value.to_string();
    let bytes = match code {
        1 => vec![value],
        2 => u16::from(value).to_le_bytes().to_vec(),
        3 => u32::from(value).to_le_bytes().to_vec(),
        8 => u64::from(value).to_le_bytes().to_vec(),
        5 => f64::from(value).to_le_bytes().to_vec(),
        _ => [&[text.len() as u8][..], text.as_bytes()].concat(),
    };
    Param::new(code, sign, &bytes)
}

/// Servers compare a value differently if its type differs: MariaDB finds one of two TIMESTAMPs in a list, and no server reads the
/// time that comes with a DATE.
#[test]
fn values_of_other_types_let_other_rows_pass() {
    const MOMENTS: [u8; 6] = [12, 7, 10, 253, 254, 15];
    const NUMBERS: [(u8, u8); 11] = [
        (3, 0),
        (8, 0),
        (8, 0x80),
        (1, 0),
        (1, 0x80),
        (2, 0),
        (3, 0x80),
        (5, 0),
        (246, 0),
        (253, 0),
        (254, 0),
    ];
    // Where others change definitions all the time, a relayed SELECT may run a function of theirs, which ends the session's proof that it
    // may read the cached rows.
    on_each_server_alone(|server| {
        let (database, proxy) = by_time(server, "feedtypes");
        let mut root = database.connect();
        root.ok("SET time_zone = '+00:00'");
        root.ok("ALTER TABLE statuses ADD COLUMN seen_at TIMESTAMP NULL");
        root.ok("UPDATE statuses SET seen_at = created_at");
        let mut twin = Twin::new(server, &proxy, &database.login());
        twin.ok("SET time_zone = '+00:00'");
        let select = "SELECT id, created_at FROM statuses WHERE profile_id IN (1, ?, 3)";
        let order = "ORDER BY created_at DESC, id DESC LIMIT 9";
        let [seen, until, liked] = [
            "seen_at IN (?, ?)",
            "created_at <= ? AND created_at > ?",
            "likes < ? AND likes IN (?, ?, ?)",
        ]
        .map(|condition| twin.prepare(&format!("{select} AND {condition} {order}")));
        let mut random = Random(20_261_127);
        let mut turns = 0;
        // Rows are cached after a repeated request.
        while turns < 400 || proxy.counts().of("feeds_kept") <= 300 {
            turns += 1;
            assert!(turns < 4_000, "{:?}\n{}", proxy.counts(), proxy.log());
            let [one, other] = [random.pick(&MOMENTS), random.pick(&MOMENTS)].map(|code| *code);
            let author = number(3, 0, 2);
            twin.execute_with(
                seen,
                &[author.clone(), moment(one, 30), moment(one, 40)],
                0,
                true,
            );
            let bounds = [author.clone(), moment(one, 40), moment(other, 30)];
            twin.execute_with(until, &bounds, 0, true);
            let mut numbers = [2, 20, 5, 6, 7].map(|value| {
                let (code, sign) = *random.pick(&NUMBERS);
                number(code, sign, value)
            });
            if random.one_in(2) {
                let (code, sign) = *random.pick(&NUMBERS);
                numbers = [2, 20, 5, 6, 7].map(|value| number(code, sign, value));
            }
            twin.execute_with(liked, &numbers, 0, true);
        }
    });
}
