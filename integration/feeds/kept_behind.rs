//! The session state after a page of cached rows: counts, warnings and errors are as after the server's own page.

use std::time::Instant;

use super::app::{SMALL, settings_in};
use super::kept::{PAGES, kept};
use super::rules::BEHIND;
use super::served::served;
use crate::kit::database::Database;
use crate::kit::patience;
use crate::kit::proxy::Proxy;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::{COM_PING, COM_STATISTICS};

/// An app with cached privileges that outlast the test.
fn app(server: &'static Server, story: &str) -> (Database, Proxy) {
    let database = Database::empty(server, story);
    SMALL.make(&mut database.connect(), &mut Random(5));
    let settings = format!("{}\n[privileges]\nttl_s = 600\n", settings_in(&database));
    let proxy = served(server, &database, "home", &settings);
    (database, proxy)
}

/// Runs a page of cached rows after the statements in `before`, and compares the replies to the statements in `behind`.
#[track_caller]
fn behind_kept(proxy: &Proxy, twin: &mut Twin, page: &str, before: &[&str], behind: &[&str]) {
    let deadline = patience();
    loop {
        // An unread statement may have set a level for the next transaction.
        twin.run("COMMIT");
        for statement in before {
            twin.run(statement);
        }
        let told = proxy.counts().of("feeds_kept");
        twin.run(page);
        let is_kept = proxy.counts().of("feeds_kept") > told;
        for statement in behind {
            twin.run(statement);
        }
        if is_kept {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "not kept: {page} behind {before:?}: {:?}",
            proxy.counts()
        );
        // Caches the page's rows and the account's right to them again.
        twin.run("COMMIT");
        kept(proxy, twin, page);
    }
}

/// FOUND_ROWS() counts the rows that OFFSET skips, and not those after the page.
#[test]
fn found_rows_behind_a_page_with_an_offset_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptfound");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut random = Random(36);
        // The lists match 3,000 messages, or the few of one author that are below a bound.
        let lists = [
            "profile_id IN (1, 2, 3, 4, 5)",
            "profile_id IN (1, 2) AND id < 60",
            "profile_id IN (1, 2) AND id < 90 AND kind = 'photo'",
            "profile_id IN (1, 2) AND kind = 'none'",
        ];
        let named = [(3, 2), (10, 50), (5, 20), (1, 0), (1, 1), (5, 0)];
        let drawn = (0..30).map(|_| (1 + random.below(12), random.below(24)));
        for (limit, offset) in named.into_iter().chain(drawn.collect::<Vec<_>>()) {
            for list in lists {
                let page = |limit, offset| {
                    format!(
                        "SELECT id, caption FROM statuses WHERE {list} ORDER BY id DESC LIMIT {limit} OFFSET {offset}"
                    )
                };
                // The skipped rows must have been read once.
                twin.run(&page(limit + offset, 0));
                twin.run(&page(limit + offset, 0));
                let page = page(limit, offset);
                for _ in 0..2 {
                    twin.run(&page);
                    twin.run("SELECT FOUND_ROWS()");
                    twin.run("SELECT 1 UNION SELECT 2");
                    twin.run(&page);
                    twin.run("SET @a = 1");
                    twin.run("SELECT FOUND_ROWS(), ROW_COUNT()");
                }
            }
        }
        let counts = proxy.counts();
        assert!(counts.of("feeds_kept") > 100, "{counts:?}");
    });
}

/// An executed page leaves the same counts as a text page.
#[test]
fn found_rows_behind_an_execution_with_an_offset_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptfoundof");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let text = "SELECT id, caption FROM statuses WHERE profile_id IN (1, 2, 3) AND id < ? ORDER BY id DESC LIMIT 4 OFFSET 3";
        let statement = twin.prepare(text);
        let front = twin.prepare(&text.replace("LIMIT 4 OFFSET 3", "LIMIT 7"));
        for bound in ["2900", "40", "2"] {
            let deadline = patience();
            loop {
                assert!(Instant::now() < deadline, "{:?}", proxy.counts());
                for _ in 0..3 {
                    twin.execute(front, &[Some(bound)]);
                }
                let told = proxy.counts().of("feeds_kept");
                twin.execute(statement, &[Some(bound)]);
                let is_kept = proxy.counts().of("feeds_kept") > told;
                twin.run("SELECT FOUND_ROWS()");
                if is_kept {
                    break;
                }
            }
        }
    });
}

/// MariaDB keeps earlier warnings and errors if a statement reads no table: a page must clear them permanently.
#[test]
fn conditions_of_before_do_not_come_back_behind_a_page() {
    const RAISED: [&[&str]; 5] = [
        &["SELECT 1 + 'x'"],
        &["SELECT nothing FROM nowhere"],
        &["SELECT 1 + 'x'", "SELECT 2"],
        &["SELECT nothing FROM nowhere", "SELECT 2", "SET @a = 1"],
        &["SELECT 1 + 'x'", "BEGIN", "COMMIT"],
    ];
    const READ_NO_TABLE: [&str; 8] = [
        "SELECT 1",
        "SELECT @a",
        "SELECT DATABASE()",
        "SELECT 1 FROM DUAL",
        "SELECT 1 UNION SELECT 2",
        "SELECT YEAR('2026-01-01')",
        "SELECT TRIM(BOTH 'x' FROM 'xax')",
        "SELECT 1 LIMIT 0",
    ];
    // None of these clears the conditions that it reports; the last one may set anything.
    const ASK: [&str; 6] = [
        "SHOW WARNINGS",
        "SHOW ERRORS",
        "SHOW COUNT(*) WARNINGS",
        "SHOW WARNINGS",
        "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
        "SELECT @n, @r, @@warning_count, @@error_count",
    ];
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptconditions");
        let mut twin = Twin::new(server, &proxy, &database.login());
        for before in RAISED {
            for reads in READ_NO_TABLE {
                let behind = [&[reads][..], &ASK].concat();
                behind_kept(&proxy, &mut twin, PAGES[0], before, &behind);
            }
        }
    });
}

/// Whatever precedes and follows a page, the session state that statements report is the server's.
#[test]
fn drawn_statements_around_pages_leave_what_they_leave_directly() {
    const AROUND: [&str; 17] = [
        "SELECT 1",
        "SELECT 1 + 'x'",
        "SELECT 1 UNION SELECT 2 UNION SELECT 3",
        "SELECT id FROM profiles ORDER BY id LIMIT 4",
        "SELECT id FROM profiles WHERE name = 5 ORDER BY id LIMIT 4",
        "SELECT nothing FROM nowhere",
        "SELEC",
        "SET @a = 1",
        "SET @b = 1 + 'x'",
        "DO 1 + 'x'",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SHOW VARIABLES LIKE 'nothing'",
        "SELECT @@warning_count",
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'drawn'",
        "SELECT 1 FROM DUAL",
    ];
    on_each_server(|server| {
        let (database, proxy) = app(server, "keptaround");
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut random = Random(20_261_128);
        for statement in PAGES {
            kept(&proxy, &mut twin, statement);
        }
        for round in 1..=15_000 {
            let mut failed = false;
            twin.run("COMMIT");
            for _ in 0..random.below(4) {
                twin.run(random.pick::<&str>(&AROUND));
            }
            twin.run(random.pick::<&str>(&PAGES));
            for _ in 0..random.below(3) {
                match random.below(12) {
                    0 => drop(twin.command(&[COM_PING])),
                    1 => {
                        // COM_STATISTICS reports the current moment, not the session, so the replies are not compared.
                        for client in [&mut twin.direct, &mut twin.proxied] {
                            client.command(&[COM_STATISTICS]).unwrap();
                        }
                    }
                    _ => {
                        let statement = random.pick(&AROUND);
                        failed |= *statement == "SELECT nothing FROM nowhere";
                        twin.run(statement);
                    }
                }
            }
            // FOUND_ROWS() may differ after a SELECT that failed: this is a documented limit.
            let ask = match failed {
                true => "SHOW WARNINGS",
                false => *random.pick(&BEHIND),
            };
            twin.run(ask);
            twin.run("SHOW WARNINGS");
            // Other tests on the server may keep pages out of the cache for a while.
            if round >= 1_500 && proxy.counts().of("feeds_kept") > 40 {
                return;
            }
        }
        panic!("few pages were kept: {:?}", proxy.counts());
    });
}
