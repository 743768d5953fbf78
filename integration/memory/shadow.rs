//! Headwater runs the real procedure next to calls: which differences it finds, and what follows from them.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{call_until_it_differs, warm};
use crate::kit::database::{Database, one_message};
use crate::kit::patience;
use crate::kit::proxy::{Proxy, ROOT_SERVICE};
use crate::kit::servers::on_each_quiet_server;

const ALL: &[&str] = &["--shadow", "1"];

fn until(proxy: &Proxy, name: &str, wanted: u64) {
    let deadline = patience();
    while proxy.counts().of(name) < wanted {
        assert!(
            Instant::now() < deadline,
            "{name} is not {wanted}: {}{}",
            proxy.output(),
            proxy.log()
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// An unlogged change makes memory wrong: only a comparison can notice.
#[test]
fn a_wrong_answer_is_found_named_and_not_repeated() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "shadow");
        let mut root = database.connect();
        one_message(&mut root);
        let proxy = Proxy::start(server.addr(), &[ROOT_SERVICE, ALL].concat());
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        warm(&proxy, &mut client, "CALL fetch_timeline_ids2(1, 50)");
        let helper = "CALL build_max_ids_of_followers(1, 50)";
        warm(&proxy, &mut client, helper);
        let counts = proxy.counts();
        until(&proxy, "shadow_same", counts.of("calls_from_memory"));
        assert_eq!(proxy.counts().of("shadow_different"), 0);

        root.ok("SET sql_log_bin = 0");
        // Above the bound: late comparisons of the other two still find them equal.
        root.ok("INSERT INTO message (id, user_id, body) VALUES (60, 2, 'unseen')");
        call_until_it_differs(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        let log = proxy.log();
        assert!(log.contains("Headwater: [10]; procedure: "), "{log}");
        assert!(
            log.contains("is relayed from now on") && log.contains("sql_log_bin = 0"),
            "{log}"
        );
        until(&proxy, "shadow_different", 1);

        let relayed = |proxy: &Proxy| proxy.counts().of("calls_relayed[answer_differed]");
        let before = relayed(&proxy);
        client.ok("CALL fetch_timeline_ids(1)");
        assert_eq!(
            client.column("SELECT id FROM fetch_timeline_tt ORDER BY id"),
            ["10", "60"]
        );
        assert_eq!(relayed(&proxy), before + 1, "{}", proxy.output());

        // The reload drops memory's content, which would be as wrong as before.
        proxy.signal(Signal::SIGHUP);
        proxy.wait_for_log("kept again");
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        assert_eq!(
            client.column("SELECT id FROM fetch_timeline_tt ORDER BY id"),
            ["10", "60"]
        );
        let counts = proxy.counts();
        assert_eq!(counts.of("shadow_different"), 1, "{}", proxy.output());
    });
}

#[test]
fn a_share_is_compared_and_no_more() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "share");
        database.connect().ok("INSERT INTO follower VALUES (1, 2)");
        let flags = [ROOT_SERVICE, &["--shadow", "0.25"]].concat();
        let proxy = Proxy::start(server.addr(), &flags);
        proxy.wait_for_log(&format!("in database {}: accelerated", database.name()));
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        let compared = |proxy: &Proxy| {
            let counts = proxy.counts();
            counts.of("shadow_same") + counts.of("shadow_unsure")
        };
        let before = compared(&proxy);
        for _ in 0..40 {
            client.ok("CALL fetch_timeline_ids(1)");
        }
        let deadline = patience();
        while compared(&proxy) < before + 10 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        let more = compared(&proxy) - before;
        assert!((10..=11).contains(&more), "{more}");
    });
}
