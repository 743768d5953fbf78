//! Why a feed is not answered from memory: the log, `SHOW HEADWATER`, metrics and `check` report the nearest cause with its cure.

use std::time::Instant;

use super::app::{SMALL, settings, settings_in};
use super::narrowed::narrowed;
use super::rules::LISTED;
use super::served::PATIENT;
use crate::admin::http::Admin;
use crate::check::check;
use crate::kit::database::Database;
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::random::Random;
use crate::kit::servers::{Server, on_each_server, on_servers_of_its_own};
use crate::kit::wire_client::{Login, WireClient};

/// The answer of `SHOW HEADWATER WHY FOR`.
#[derive(Debug)]
struct Told {
    from: String,
    reason: String,
    means: String,
    cure: String,
    feed: String,
}

#[track_caller]
fn why(client: &mut WireClient, statement: &str) -> Told {
    let rows = client.rows(&format!("SHOW HEADWATER WHY FOR {statement}"));
    let mut cells = rows[0].iter().map(|cell| cell.clone().unwrap_or_default());
    let mut next = || cells.next().unwrap();
    Told {
        from: next(),
        reason: next(),
        means: next(),
        cure: next(),
        feed: next(),
    }
}

/// Repeats the statement until metrics count statements of the feed as relayed for the reason.
#[track_caller]
fn counted(admin: Admin, client: &mut WireClient, statement: &str, feed: &str, reason: &str) {
    let sample = format!(
        "headwater_statements_total{{feed=\"{feed}\",answer=\"relayed\",reason=\"{reason}\"}}"
    );
    let deadline = patience();
    loop {
        client.query(statement);
        let metrics = admin.get("/metrics").body;
        if metrics.contains(&sample) {
            return;
        }
        assert!(Instant::now() < deadline, "no {sample}:\n{metrics}");
    }
}

/// The row of `SHOW HEADWATER FEEDS` for the feed in that database: who answers, the obstacle, its counter's name, and the cure.
#[track_caller]
fn row(client: &mut WireClient, feed: &str, database: &str) -> [String; 4] {
    let rows = client.rows("SHOW HEADWATER FEEDS");
    let is = |row: &&Vec<Option<String>>| {
        row[0].as_deref() == Some(feed) && row[2].as_deref() == Some(database)
    };
    let row = rows.iter().find(is);
    let row = row.unwrap_or_else(|| panic!("{rows:?}"));
    [3, 4, 8, 9].map(|cell| row[cell].clone().unwrap_or_default())
}

#[test]
fn a_log_that_is_off_is_the_cause_wherever_it_is_asked_for() {
    on_servers_of_its_own(
        |_| &["--skip-log-bin"],
        |server| {
            let addr = server.addr();
            let login = Login::default().database("app");
            WireClient::login(addr, &Login::default()).ok("CREATE DATABASE app");
            SMALL.make(&mut WireClient::login(addr, &login), &mut Random(5));
            let (proxy, admin) = Admin::beside(addr, &settings(), ROOT_SERVICE);
            proxy.wait_for_log(
                "feed home in database app: relayed until the server's log is followed, log_bin",
            );
            let mut client = proxy.login(&login);
            // The same cause is reported even if the statement or the session has other obstacles.
            for before in ["DO 0", "SET SESSION sql_select_limit = 5", "BEGIN"] {
                client.ok(before);
                counted(admin, &mut client, LISTED, "home", "log_not_followed");
                let told = why(&mut client, LISTED);
                assert_eq!(
                    (&*told.from, &*told.reason, &*told.feed),
                    ("server", "log_not_followed", "home"),
                    "{told:?}"
                );
                assert!(told.means.contains("log_bin"), "{told:?}");
                assert!(told.cure.contains("log_bin"), "{told:?}");
            }
            let [from, why_not, reason, cure] = row(&mut client, "home", "app");
            assert_eq!((&*from, &*reason), ("server", "log_not_followed"));
            assert!(why_not.contains("log_bin") && cure.contains("log_bin"));
            let counts = proxy.counts();
            assert_eq!(counts.of("feeds_relayed[not_in_memory]"), 0, "{counts:?}");
            let log = proxy.log();
            assert!(!log.contains("feed home in database app: served"), "{log}");
            check(addr, &settings(), ROOT_SERVICE).says("log_bin = \"OFF\"");
            // No setting asks for the classic timeline, so its missing tables are no problem for a user of feeds.
            assert!(!log.contains("no database has the tables"), "{log}");
            let unnamed = Proxy::start(addr, ROOT_SERVICE);
            unnamed.wait_for_log("no database has the tables follower and message");
            let log = unnamed.log();
            let mut lines = log.lines().filter(|line| line.contains("no database has"));
            assert!(lines.all(|line| line.contains(" INFO ")), "{log}");
        },
    );
}

#[test]
fn an_index_that_a_migration_drops_is_the_cause_until_it_is_there_again() {
    on_each_server(|server| {
        let database = Database::empty(server, "causeindex");
        let name = database.name();
        let mut root = database.connect();
        SMALL.make(&mut root, &mut Random(5));
        let settings = settings_in(&database);
        let (proxy, admin) = Admin::beside(server.addr(), &settings, ROOT_SERVICE);
        proxy.wait_for_log(&format!("feed home in database {name}: served"));
        let mut client = proxy.login(&database.login());
        narrowed(&proxy, &mut client, LISTED);
        root.ok("ALTER TABLE statuses DROP KEY profile_id");
        let mends = "ALTER TABLE `statuses` ADD INDEX (`profile_id`)";
        proxy.wait_for_log(&format!(
            "feed home in database {name}: relayed, no index leads to the rows that are asked for: {mends}"
        ));
        counted(admin, &mut client, LISTED, "home", "feed_refused");
        for before in ["DO 0", "SET SESSION sql_select_limit = 5"] {
            client.ok(before);
            let told = why(&mut client, LISTED);
            assert_eq!(
                (&*told.from, &*told.reason, &*told.feed),
                ("server", "feed_refused", "home"),
                "{told:?}"
            );
            assert!(told.means.contains("no index leads"), "{told:?}");
            assert_eq!(told.cure, mends);
        }
        let [from, why_not, reason, cure] = row(&mut client, "home", name);
        assert_eq!(
            (&*from, &*reason, &*cure),
            ("server", "feed_refused", mends)
        );
        assert!(why_not.contains("no index leads"), "{why_not}");
        check(server.addr(), &settings, ROOT_SERVICE).says(mends);
        let counts = proxy.counts();
        assert_eq!(counts.of("feeds_relayed[names]"), 0, "{counts:?}");
        root.ok(mends);
        let mut client = proxy.login(&database.login());
        narrowed(&proxy, &mut client, LISTED);
        assert_eq!(row(&mut client, "home", name)[0], "memory");
    });
}

/// A service account that may read these tables and follow the log.
fn service(server: &'static Server, database: &Database, tables: &[&str]) -> String {
    let user = database.account("CREATE", "").user;
    let (name, mut root) = (database.name(), server.connect());
    root.ok(&format!("REVOKE CREATE ON {name}.* FROM {user}@'%'"));
    root.ok(&format!(
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO {user}@'%'"
    ));
    for table in tables {
        root.ok(&format!("GRANT SELECT ON {name}.{table} TO {user}@'%'"));
    }
    user
}

const JOINED: &str = "SELECT s.id, p.name FROM statuses s JOIN followers f ON f.following_id = s.profile_id \
                      JOIN profiles p ON p.id = s.profile_id WHERE f.profile_id = 3 ORDER BY s.id DESC LIMIT 10";

#[test]
fn a_joined_table_that_the_service_account_may_not_see_is_named() {
    on_each_server(|server| {
        let database = Database::empty(server, "causejoined");
        let name = database.name();
        let mut root = database.connect();
        SMALL.make(&mut root, &mut Random(5));
        for (feeds, feed, settings) in [
            ("in the settings", "home", settings_in(&database)),
            ("found", "", format!("{PATIENT}auto = \"on\"\n")),
        ] {
            let user = service(server, &database, &["statuses", "followers"]);
            let settings = format!("{settings}[limits]\nrecheck_ms = 500\n");
            let flags = ["--service-user", &user];
            let (proxy, admin) = Admin::beside(server.addr(), &settings, &flags);
            let mut client = proxy.login(&database.login());
            counted(admin, &mut client, JOINED, feed, "table_unseen");
            let grant = format!("GRANT SELECT ON `{name}`.`profiles` TO `{user}`");
            proxy.wait_for_log(&format!(
                "statements of database {name} look like a feed's and are relayed, no such table (correct its name), or the service \
                 account may not see it: `profiles`: {grant}@`HOST`"
            ));
            let told = why(&mut client, JOINED);
            assert_eq!(
                (&*told.from, &*told.reason, &*told.feed),
                ("server", "table_unseen", feed),
                "{feeds}: {told:?}"
            );
            assert!(told.means.contains("`profiles`"), "{told:?}");
            assert_eq!(told.cure, format!("{grant}@`HOST`"));
            root.ok(&format!("{grant}@`%`"));
            narrowed(&proxy, &mut client, JOINED);
            assert_eq!(proxy.log().matches("look like a feed's").count(), 1);
            // The log reports a revoked right for the feed that needs it.
            root.ok(&format!("REVOKE SELECT ON {name}.statuses FROM {user}@'%'"));
            let feed = if feed.is_empty() { "statuses" } else { feed };
            proxy.wait_for_log(&format!(
                "feed {feed} in database {name}: relayed, there is no table statuses, or the service account may not see it"
            ));
            counted(admin, &mut client, JOINED, feed, "feed_refused");
            let told = why(&mut client, JOINED);
            let grant = format!("GRANT SELECT ON `{name}`.`statuses` TO `{user}`@`HOST`");
            assert_eq!((&*told.reason, &*told.cure), ("feed_refused", &*grant));
            drop(proxy);
            root.ok(&format!("DROP USER {user}@'%'"));
        }
    });
}

/// A feed without a database is looked for until the service account is answered, though no statement comes.
#[test]
fn a_feed_that_could_not_be_looked_for_at_the_start_is_found_later() {
    on_each_server(|server| {
        let database = Database::empty(server, "causelate");
        SMALL.make(&mut database.connect(), &mut Random(5));
        let user = service(server, &database, &["statuses", "followers"]);
        let mut root = server.connect();
        root.ok(&format!("ALTER USER {user}@'%' ACCOUNT LOCK"));
        let settings = format!("{}[limits]\nrecheck_ms = 500\n", settings());
        let proxy = Proxy::configured(server.addr(), &settings, &["--service-user", &user]);
        // Its definitions of timelines were checked before: it has tried.
        proxy.wait_for_log("the service account");
        let served = format!("feed home in database {}: served", database.name());
        assert!(!proxy.log().contains(&served), "{}", proxy.log());
        root.ok(&format!("ALTER USER {user}@'%' ACCOUNT UNLOCK"));
        proxy.wait_for_log(&served);
        drop(proxy);
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

#[test]
fn a_statement_that_is_no_feeds_has_no_cause() {
    on_each_server(|server| {
        let database = Database::empty(server, "causenone");
        SMALL.make(&mut database.connect(), &mut Random(5));
        let proxy = Proxy::configured(server.addr(), &settings_in(&database), ROOT_SERVICE);
        let mut client = proxy.login(&database.login());
        for statement in [
            "SELECT id FROM profiles ORDER BY id DESC LIMIT 3",
            "SELECT id FROM nowhere ORDER BY id DESC LIMIT 3",
        ] {
            let told = why(&mut client, statement);
            assert_eq!((&*told.reason, &*told.feed), ("no_feed", ""), "{told:?}");
        }
        assert!(!proxy.log().contains("look like a feed's"));
    });
}
