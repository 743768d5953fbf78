//! Isolation levels and access modes as drivers set them: for the session or for the next transaction, in all forms.

use std::time::Instant;

use super::kept::PAGES;
use super::narrowed::{equal, narrowed, relayed};
use super::rules::{LISTED, app};
use crate::kit::patience;
use crate::kit::proxy::{Counts, Proxy};
use crate::kit::quota::Quota;
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_quiet_server, on_each_server};
use crate::kit::twin::Twin;
use crate::kit::wire_client::capability;

fn variable(server: &Server) -> [&'static str; 2] {
    match server.is_mariadb() {
        true => ["tx_isolation", "tx_read_only"],
        false => ["transaction_isolation", "transaction_read_only"],
    }
}

/// Reads a page within a transaction that begins with these statements, until the page is narrowed.
#[track_caller]
fn narrowed_within(proxy: &Proxy, twin: &mut Twin, begin: &[&str], end: &str) {
    let deadline = patience();
    loop {
        for statement in begin {
            twin.ok(statement);
        }
        let before = proxy.counts().feeds_answered();
        twin.run(LISTED);
        let is_narrowed = proxy.counts().feeds_answered() > before;
        twin.ok(end);
        if is_narrowed {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "never narrowed behind {begin:?}: {:?}",
            proxy.counts()
        );
    }
}

/// Covers Spring's `readOnly`, go-sql-driver's DSN, Rails and TypeORM: Headwater still serves each of them.
#[test]
fn sessions_whose_drivers_set_levels_and_access_are_served() {
    on_each_quiet_server(|server| {
        let (database, proxy) = app(server, "feeddrivers");
        let [level, access] = variable(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        for set in [
            "SET SESSION TRANSACTION READ ONLY".to_owned(),
            "SET SESSION TRANSACTION READ WRITE".to_owned(),
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY".to_owned(),
            format!("SET SESSION {access} = 1"),
            format!("SET @@session.{access} = DEFAULT"),
            format!("SET @@SESSION.{level} = 'READ-COMMITTED'"),
            format!("SET {level} = 'REPEATABLE-READ'"),
            format!("SET LOCAL {level} = \"READ-COMMITTED\", autocommit = 1"),
            format!("SET @@local.{level} := 2"),
            format!("SET SESSION {level} = DEFAULT"),
        ] {
            twin.ok(&set);
            equal(&proxy, &mut twin, LISTED);
            for begin in ["BEGIN", "START TRANSACTION READ ONLY"] {
                narrowed_within(&proxy, &mut twin, &[begin], "COMMIT");
            }
            equal(&proxy, &mut twin, LISTED);
        }
        // With autocommit off, as Connector/J sets it.
        for access in ["READ ONLY", "READ WRITE"] {
            twin.ok("SET autocommit = 0");
            let set = format!("SET SESSION TRANSACTION {access}");
            narrowed_within(&proxy, &mut twin, &[&set], "COMMIT");
            twin.ok("SET autocommit = 1");
        }
        // Settings for the next transaction alone.
        for set in [
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "SET TRANSACTION READ ONLY",
        ] {
            for begin in ["BEGIN", "START TRANSACTION"] {
                for end in ["COMMIT", "ROLLBACK", "COMMIT WORK"] {
                    narrowed_within(&proxy, &mut twin, &[set, begin], end);
                    equal(&proxy, &mut twin, LISTED);
                }
            }
        }
    });
}

/// Only the server answers dirty reads and SELECTs that lock.
#[test]
fn levels_at_which_reads_are_dirty_or_lock_are_the_servers() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feeddirty");
        let [level, _] = variable(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut writer = database.connect();
        narrowed(&proxy, &mut twin.proxied, LISTED);
        writer.ok("BEGIN");
        writer.ok("DELETE FROM statuses WHERE id > 2950");
        for set in [
            format!("SET @@SESSION.{level} = 'READ-UNCOMMITTED'"),
            format!("SET {level} = 0"),
        ] {
            twin.ok(&set);
            relayed(&proxy, &mut twin, LISTED, "session_settings");
            twin.ok(&format!("SET SESSION {level} = 'REPEATABLE-READ'"));
            equal(&proxy, &mut twin, LISTED);
        }
        for set in [
            "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED".to_owned(),
            format!("SET @@{level} = 'READ-UNCOMMITTED'"),
        ] {
            twin.ok(&set);
            twin.ok("BEGIN");
            relayed(&proxy, &mut twin, LISTED, "one_shot_transaction");
            twin.ok("COMMIT");
            equal(&proxy, &mut twin, LISTED);
        }
        writer.ok("ROLLBACK");
        twin.ok(&format!("SET @@SESSION.{level} = 'SERIALIZABLE'"));
        equal(&proxy, &mut twin, LISTED);
        twin.ok("BEGIN");
        relayed(&proxy, &mut twin, LISTED, "in_transaction");
        twin.ok("COMMIT");
        equal(&proxy, &mut twin, LISTED);
    });
}

/// Replies are equal whatever level is set before, and whether or not a writer commits meanwhile.
#[test]
fn drawn_levels_show_what_they_show_directly() {
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedleveldrawn");
        let [level, access] = variable(server);
        let mut twin = Twin::new(server, &proxy, &database.login());
        let mut writer = database.connect();
        let mut random = Random(20_261_129);
        let levels = ["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ"];
        for page in PAGES {
            narrowed(&proxy, &mut twin.proxied, page);
        }
        let quota = Quota::new(&proxy, 1_500, 50, Counts::feeds_answered);
        while let Some(turn) = quota.take() {
            let chosen = *random.pick(&levels);
            let words = chosen.replace('-', " ");
            match random.below(24) {
                0 => drop(twin.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {words}"))),
                1 => drop(twin.run(&format!("SET TRANSACTION ISOLATION LEVEL {words}"))),
                2 => drop(twin.run(&format!("SET {level} = '{chosen}'"))),
                3 => drop(twin.run(&format!("SET @@{level} = '{chosen}'"))),
                4 => drop(twin.run(&format!("SET @@SESSION.{level} = '{chosen}'"))),
                5 => drop(twin.run(&format!("SET @@{access} = {}", turn % 2))),
                6 => drop(twin.run(&format!("SET SESSION {access} = {}", turn % 2))),
                7 => drop(twin.run("BEGIN")),
                8 => drop(twin.run("START TRANSACTION READ ONLY")),
                9 | 10 => drop(twin.run("COMMIT")),
                11 => drop(twin.run("ROLLBACK")),
                12 => drop(twin.run(&format!("SET autocommit = {}", u8::from(turn % 3 > 0)))),
                13 => drop(twin.run("SELECT nothing FROM nowhere")),
                14 | 15 => {
                    let id = 2_900 + random.below(100);
                    writer.ok(&format!(
                        "UPDATE statuses SET caption = 'turn {turn}', profile_id = 1 + profile_id MOD 6 WHERE id = {id}"
                    ));
                }
                16 => drop(writer.query("BEGIN")),
                17 => drop(writer.query("COMMIT")),
                _ => {
                    let page = *random.pick(&PAGES);
                    let (direct, proxied) = (twin.direct.rows(page), twin.proxied.rows(page));
                    assert_eq!(direct, proxied, "{}\n{page}", twin.story());
                }
            }
        }
    });
}

/// The end of a reply reports changes of session and transaction state: pages report the same, byte by byte.
#[test]
fn sessions_whose_state_is_told_are_served_and_told_the_same() {
    const TRACKERS: [&str; 3] = [
        "SET SESSION session_track_state_change = ON",
        "SET SESSION session_track_transaction_info = 'STATE'",
        "SET SESSION session_track_transaction_info = 'STATE', session_track_state_change = ON",
    ];
    const AROUND: [&str; 14] = [
        "SELECT 1",
        "SET @a = 1",
        "SELECT nothing FROM nowhere",
        "CALL changes_and_fails()",
        "BEGIN",
        "START TRANSACTION READ ONLY",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION TRANSACTION READ ONLY",
        "SET SESSION TRANSACTION READ WRITE",
        "SELECT id FROM profiles ORDER BY id LIMIT 2",
        "SET autocommit = 0",
        "SET autocommit = 1",
        "COMMIT",
        "COMMIT",
    ];
    on_each_server(|server| {
        let (database, proxy) = app(server, "feedtrackers");
        let mut root = database.connect();
        root.ok("CREATE PROCEDURE changes_and_fails() BEGIN SET @changed = 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'fails'; END");
        let mut random = Random(20_261_130);
        let each = TRACKERS.iter().map(|it| (it, true));
        let with_eof = [(&TRACKERS[0], false), (&TRACKERS[1], false)];
        for (tracker, deprecated) in each.chain(with_eof) {
            let login = database.login().with(capability::SESSION_TRACK);
            let login = match deprecated {
                true => login,
                false => login.without(capability::DEPRECATE_EOF),
            };
            let mut twin = Twin::new(server, &proxy, &login);
            twin.run(tracker);
            // An EOF packet has no room for state changes.
            let is_served = deprecated || tracker.ends_with("ON");
            for page in PAGES.iter().filter(|_| is_served) {
                narrowed(&proxy, &mut twin.proxied, page);
            }
            let before = proxy.counts().feeds_answered();
            let answered = || proxy.counts().feeds_answered() - before;
            let mut turns = 0;
            // Other tests on this server may have a feed examined again for a while.
            while turns < 200 || is_served && turns < 5_000 && answered() <= 10 {
                turns += 1;
                for _ in 0..random.below(3) {
                    twin.run(random.pick::<&str>(&AROUND));
                }
                twin.run(random.pick::<&str>(&PAGES));
            }
            assert_eq!(answered() > 10, is_served, "{:?}", proxy.counts());
        }
    });
}
