//! The service account: what it needs, and what happens to calls when it cannot query the server.

use std::time::{Duration, Instant};

use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::{Server, on_each_server};
use crate::kit::timeline::{Timeline, insert};

const CALL: &str = "CALL fetch_timeline_ids(1)";

fn timeline(server: &'static Server, story: &str) -> Database {
    let database = Database::empty(server, story);
    let mut client = database.connect();
    Timeline::SILENT.create(&mut client);
    insert(&mut client, "follower", &[(1, 2), (1, 3)], |(a, b)| {
        format!("({a},{b})")
    });
    insert(&mut client, "message", &[(1, 2), (2, 3)], |(id, author)| {
        format!("({id},{author},'')")
    });
    database
}

/// The rights to follow the log are for memory only.
#[test]
fn the_rights_to_see_the_bodies_and_to_read_are_enough_for_lookups() {
    on_each_server(|server| {
        let database = timeline(server, "readme");
        let account = database.account("SELECT", "s3cret");
        let right = if server.is_mariadb() {
            "SELECT ON mysql.proc"
        } else {
            "SHOW_ROUTINE ON *.*"
        };
        let mut root = server.connect();
        root.ok(&format!("GRANT {right} TO {}@'%'", account.user));
        let start = || {
            let flags = [
                "--service-user",
                account.user.as_str(),
                "--log-level",
                "info",
            ];
            let mut flags = flags.map(str::to_owned).to_vec();
            flags.extend(["--upstream".into(), server.addr().to_string()]);
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            Proxy::start_with(&flags, &[("HEADWATER_SERVICE_PASSWORD", "s3cret")])
        };
        let proxy = start();
        proxy.wait_for_log("procedure as known");
        proxy.login(&database.login()).ok(CALL);
        assert_eq!(proxy.counts().of("calls_owned"), 1, "{}", proxy.log());

        // Some servers have no procedures; the definition still applies there.
        for procedure in ["fetch_timeline_ids", "fetch_timeline_ids2"] {
            root.ok(&format!("DROP PROCEDURE {}.{procedure}", database.name()));
        }
        let proxy = start();
        proxy.wait_for_log("served without a procedure");
        let mut client = proxy.login(&database.login());
        client.ok(CALL);
        assert_eq!(
            client.column("SELECT id FROM fetch_timeline_tt ORDER BY id"),
            ["1", "2"]
        );
        assert_eq!(proxy.counts().of("calls_owned"), 1, "{}", proxy.log());
    });
}

/// Databases that could not be listed at the start are found later, though no call comes.
#[test]
fn a_timeline_that_could_not_be_looked_for_at_the_start_is_found_later() {
    on_each_server(|server| {
        let database = timeline(server, "late");
        let user = database.account("SELECT, EXECUTE", "").user;
        let mut root = server.connect();
        root.ok(&format!("ALTER USER {user}@'%' ACCOUNT LOCK"));
        let settings = "[limits]\nrecheck_ms = 200\n[index]\nmemory_bytes = 0\n";
        let flags = ["--service-user", &user];
        let proxy = Proxy::configured(server.addr(), settings, &flags);
        proxy.wait_for_log("account");
        let verdict = format!("in database {}:", database.name());
        assert!(!proxy.log().contains(&verdict), "{}", proxy.log());
        root.ok(&format!("ALTER USER {user}@'%' ACCOUNT UNLOCK"));
        proxy.wait_for_log(&verdict);
        drop(proxy);
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}

/// A locked table delays the check, but no calls for other timelines.
#[test]
fn a_check_that_is_held_up_does_not_hold_up_calls() {
    on_each_server(|server| {
        let database = timeline(server, "held_up");
        let other = timeline(server, "locked");
        let settings = "[limits]\nrecheck_ms = 200\ncheck_ms = 100\n";
        let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
        let mut client = proxy.login(&database.login());
        client.ok(CALL);
        let mut administrator = other.connect();
        administrator.ok("LOCK TABLES message WRITE");
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            let started = Instant::now();
            client.ok(CALL);
            // Far above Headwater's wait, far below the time that the lock is held.
            assert!(started.elapsed() < Duration::from_secs(10));
        }
        administrator.ok("UNLOCK TABLES");
        let owned = proxy.counts().of("calls_owned");
        let until = Instant::now() + Duration::from_secs(40);
        while proxy.counts().of("calls_owned") == owned {
            assert!(Instant::now() < until, "{}", proxy.log());
            client.ok(CALL);
        }
    });
}

/// Statements that drivers send all day do not cause a new check of the definitions.
#[test]
fn ordinary_statements_leave_the_verdict_alone() {
    on_each_server(|server| {
        let database = timeline(server, "ordinary");
        // Without memory: changes of other tests' tables in the log would cause a new check of definitions.
        let settings = "[limits]\nrecheck_ms = 3600000\n[index]\nmemory_bytes = 0\n";
        let proxy = Proxy::configured(server.addr(), settings, ROOT_SERVICE);
        // The check at the start, which continues after the process listens.
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&database.login());
        client.ok(CALL);
        // Directly on the server: only a new check could notice.
        let mut root = database.connect();
        root.ok("DROP PROCEDURE fetch_timeline_ids");
        root.ok("CREATE PROCEDURE fetch_timeline_ids(IN reader int unsigned) SELECT 1");
        let statement = client.prepare("INSERT INTO message VALUES (?, 3, 'it\\'s')");
        client.execute(statement, &[Some("6")], 0).unwrap();
        client.ok("INSERT INTO message VALUES (7, 3, 'it\\'s')");
        client.query("SELECT /*! 1 */ FROM message");
        client.ok(CALL);
        client.ok(CALL);
        assert_eq!(proxy.counts().of("calls_owned"), 3, "{}", proxy.log());
        // This statement causes a new check.
        client.ok("DROP PROCEDURE IF EXISTS nothing_such");
        client.query(CALL);
        client.query(CALL);
        assert_eq!(proxy.counts().of("calls_owned"), 3, "{}", proxy.log());
    });
}

/// The password is in clear text where it cannot be intercepted, encrypted where it could be; the server caches it for the second login.
#[test]
fn the_service_account_logs_in_by_its_password() {
    on_each_server(|server| {
        let database = timeline(server, "passwords");
        let mut root = server.connect();
        let user = format!("{}_service", database.name());
        let has_tls = !server.is_mariadb();
        for password in ["s", "a pässword with a ' and a \\", &"long ".repeat(24)] {
            let quoted = password.replace('\\', "\\\\").replace('\'', "''");
            for tls in [
                &[][..],
                &["--upstream-tls", "required", "--tls-self-signed"],
            ] {
                if !tls.is_empty() && !has_tls {
                    continue;
                }
                // The server has no cached password of a new account.
                root.ok(&format!("DROP USER IF EXISTS {user}@'%'"));
                root.ok(&format!("CREATE USER {user}@'%' IDENTIFIED BY '{quoted}'"));
                root.ok(&format!("GRANT ALL ON *.* TO {user}@'%'"));
                for _ in 0..2 {
                    let upstream = server.addr().to_string();
                    let flags = ["--upstream", &upstream, "--service-user", &user];
                    let flags = [&flags, tls].concat();
                    let proxy =
                        Proxy::start_with(&flags, &[("HEADWATER_SERVICE_PASSWORD", password)]);
                    proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
                }
            }
        }
        let proxy = Proxy::start(
            server.addr(),
            &["--service-user", &user, "--service-password", "wrong"],
        );
        proxy.wait_for_log("1045 (28000): Access denied");
        root.ok(&format!("DROP USER {user}@'%'"));
    });
}
