//! The grants: the printed ones suffice, none of them can be omitted, and the README lists the same.

use std::time::{Duration, Instant};

use super::{check, only_in};
use crate::kit::database::{Database, one_message};
use crate::kit::patience;
use crate::kit::proxy::Proxy;
use crate::kit::servers::on_each_quiet_server;
use crate::kit::wire_client::WireClient;
use crate::memory::warm;

#[test]
fn the_printed_grants_are_enough_and_each_of_them_is_needed() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "grants");
        let user = format!("{}_service", database.name());
        let mut root = database.connect();
        root.ok(&format!("CREATE USER {user}@'127.0.0.1' IDENTIFIED BY ''"));
        one_message(&mut root);
        let settings = only_in(database.name());
        let flags = ["--service-user", user.as_str()];

        let nothing = check(server.addr(), &settings, &flags);
        assert_eq!(nothing.status, 1);
        assert_eq!(nothing.words(), ["relay"; 3]);
        let grants = nothing.grants();
        assert_eq!(nothing.missing(), grants);
        assert_eq!(grants.len(), 6);
        for grant in &grants {
            root.ok(grant);
        }

        let all = check(server.addr(), &settings, &flags);
        assert_eq!((all.status, all.said.as_str()), (0, ""));
        assert_eq!(all.words(), ["memory"; 3]);
        assert_eq!((all.grants(), all.missing()), (grants.clone(), vec![]));
        all.says("Every call of every timeline is answered from memory.");
        let proxy = Proxy::configured(server.addr(), &settings, &flags);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        assert_eq!(client.column("SELECT id FROM fetch_timeline_tt"), ["10"]);

        for grant in &grants {
            let revoke = grant.replace("GRANT ", "REVOKE ").replace(" TO ", " FROM ");
            root.ok(&revoke);
            let without = check(server.addr(), &settings, &flags);
            assert_eq!(without.status, 1, "{revoke}");
            assert_eq!(without.missing(), std::slice::from_ref(grant));
            root.ok(grant);
        }
        root.ok(&format!("DROP USER {user}@'127.0.0.1'"));
    });
}

#[test]
fn an_account_that_sees_nothing_is_told_what_to_fill_in() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "blind");
        let user = format!("{}_service", database.name());
        let mut root = database.connect();
        root.ok(&format!("CREATE USER {user}@'127.0.0.1' IDENTIFIED BY ''"));
        let flags = ["--service-user", user.as_str()];
        let checked = check(server.addr(), "", &flags);
        assert_eq!(checked.status, 1);
        assert_eq!(checked.missing(), checked.grants());
        checked.says("Rights missing: 4, and SELECT on the tables, if they are there.");
        for grant in checked.grants() {
            root.ok(&grant.replace("DATABASE", database.name()));
        }
        assert_eq!(check(server.addr(), "", &flags).status, 0);
        let reads_one = checked
            .grants()
            .into_iter()
            .find(|grant| grant.contains("`message`"));
        let reads_one = reads_one.unwrap().replace("DATABASE", database.name());
        root.ok(&reads_one
            .replace("GRANT ", "REVOKE ")
            .replace(" TO ", " FROM "));
        let checked = check(server.addr(), "", &flags);
        assert_eq!(checked.status, 1);
        checked.says("Rights missing: SELECT on the tables, if they are there.");
        root.ok(&format!("DROP USER {user}@'127.0.0.1'"));
    });
}

#[test]
fn to_compare_answers_the_account_is_told_to_be_let_run_the_procedures() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "compares");
        let user = format!("{}_service", database.name());
        let mut root = database.connect();
        root.ok(&format!("CREATE USER {user}@'127.0.0.1' IDENTIFIED BY ''"));
        let settings = only_in(database.name());
        let flags = ["--service-user", user.as_str(), "--shadow", "0.5"];
        let checked = check(server.addr(), &settings, &flags);
        let grants = checked.grants();
        let executes = |grant: &&String| grant.contains("GRANT EXECUTE ON PROCEDURE");
        assert_eq!(grants.iter().filter(executes).count(), 3);
        assert_eq!(checked.missing(), grants);
        for grant in &grants {
            root.ok(grant);
        }
        let checked = check(server.addr(), &settings, &flags);
        assert_eq!((checked.status, checked.missing()), (0, vec![]));
        root.ok(&format!("DROP USER {user}@'127.0.0.1'"));
    });
}

/// Without configured comparisons, the grant for them is offered, and its absence is no fault.
#[test]
fn a_few_calls_are_compared_unasked_where_the_account_may_run_the_procedures() {
    on_each_quiet_server(|server| {
        const CALL: &str = "CALL fetch_timeline_ids(1)";
        let database = Database::classic(server, "unasked");
        let user = format!("{}_service", database.name());
        let mut root = database.connect();
        root.ok(&format!("CREATE USER {user}@'127.0.0.1' IDENTIFIED BY ''"));
        root.ok("INSERT INTO follower VALUES (1, 2)");
        let settings = format!("[shadow]\n{}", only_in(database.name()));
        let flags = ["--service-user", user.as_str()];
        for grant in check(server.addr(), &settings, &flags).grants() {
            root.ok(&grant);
        }
        let without = check(server.addr(), &settings, &flags);
        assert_eq!((without.status, without.missing()), (0, vec![]));
        let offered = without.part("Not needed: with these as well, a few of the calls");
        assert_eq!(offered.len(), 3, "{offered:?}");
        let executes = |grant: &&str| grant.starts_with("GRANT EXECUTE ON PROCEDURE");
        assert!(offered.iter().all(executes), "{offered:?}");

        // The default rate is one in 10,000.
        let calls = |client: &mut WireClient| {
            let call = client.query_payload(CALL.as_bytes(), &[]);
            for _ in 0..100 {
                (0..100).for_each(|_| client.send(&call).unwrap());
                // Each reply is one OK packet.
                (0..100).for_each(|_| assert_eq!(client.read_packet().unwrap().payload[0], 0));
            }
        };
        let compared = |proxy: &Proxy| {
            let counts = proxy.counts();
            ["shadow_same", "shadow_unsure", "shadow_different"].map(|name| counts.of(name))
        };
        let said = "calls are not compared with the server's procedures: ";
        let proxy = Proxy::configured(server.addr(), &settings, &flags);
        proxy.wait_for_log(said);
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, CALL);
        calls(&mut client);
        assert_eq!(compared(&proxy), [0; 3]);
        let (_, log) = proxy.terminate();
        assert_eq!(log.matches("not compared").count(), 1, "{log}");
        assert!(!log.contains("cannot be compared"), "{log}");

        for grant in &offered {
            root.ok(grant.trim_end_matches(';'));
        }
        let with = check(server.addr(), &settings, &flags);
        assert_eq!(with.status, 0);
        assert!(!with.report.contains("Not needed: "), "{}", with.report);
        let proxy = Proxy::configured(server.addr(), &settings, &flags);
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, CALL);
        calls(&mut client);
        let deadline = patience();
        while compared(&proxy) != [1, 0, 0] {
            assert!(
                Instant::now() < deadline,
                "{:?} {}",
                compared(&proxy),
                proxy.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        // After the right is revoked, nothing is reported either.
        for grant in &offered {
            let revoke = grant.replace("GRANT ", "REVOKE ").replace(" TO ", " FROM ");
            root.ok(revoke.trim_end_matches(';'));
        }
        calls(&mut client);
        assert_eq!(compared(&proxy), [1, 0, 0]);
        let log = proxy.log();
        assert!(!log.contains("compared"), "{log}");
        root.ok(&format!("DROP USER {user}@'127.0.0.1'"));
    });
}

#[test]
fn the_readme_has_the_grants_that_are_printed() {
    let readme = include_str!("../../README.md");
    let (_, behind) = readme.split_once("```sql\nCREATE USER").unwrap();
    let (block, _) = behind.split_once("```").unwrap();
    let of_readme: Vec<&str> = block
        .lines()
        .filter(|line| !line.is_empty())
        .skip(1)
        .collect();
    on_each_quiet_server(|server| {
        let checked = check(server.addr(), &only_in("app"), &[]);
        let printed = checked.part("To make a service account");
        assert!(printed[0].starts_with("CREATE USER `headwater`@`HOST` IDENTIFIED BY "));
        let other = if server.is_mariadb() {
            "-- MySQL only"
        } else {
            "-- MariaDB only"
        };
        let own: Vec<String> = of_readme
            .iter()
            .filter(|line| !line.contains(other))
            .map(|line| {
                format!("{};", line.split(';').next().unwrap()).replace("127.0.0.1", "HOST")
            })
            .collect();
        assert_eq!(printed[1..], own);
    });
}
