//! Equal and different answers.

use super::{READERS, Scene, Verified, start};
use crate::kit::servers::on_each_quiet_server;
use crate::memory::warm;

#[test]
fn every_reader_is_compared_and_the_report_says_what_answered() {
    on_each_quiet_server(|server| {
        let scene = Scene::of(server, "verify_equal");
        let mut client = scene.proxy.login(&scene.database.login());
        warm(&scene.proxy, &mut client, "CALL fetch_timeline_ids(1)");
        let verified = scene.verify(&[]);
        verified.is_equal();
        let name = scene.database.name();
        let all = format!("{READERS} of {READERS} readers");
        verified.says(&format!("definition classic, database {name}: {all}"));
        verified.says(&format!("feed home, database {name}: {all}"));
        // Three calls, and two pages and two counts of the feed.
        let answers = 7 * READERS;
        verified.says(&format!("{answers} answers compared: {answers} equal"));
        verified.says("CALL `fetch_timeline_ids2`(READER, BOUND), and the page behind it");
        verified.says("answered from, of 2 that Headwater was asked about: memory 2\n");
        // Each of them went through Headwater.
        let counts = scene.proxy.counts();
        assert!(counts.of("calls_from_memory") > 2 * READERS, "{counts:?}");
    });
}

/// An unlogged row is the only way to make memory wrong.
#[test]
fn a_difference_is_told_with_both_answers() {
    on_each_quiet_server(|server| {
        let mut scene = Scene::of(server, "verify_differs");
        scene.root.ok("INSERT INTO follower VALUES (900, 901)");
        scene
            .root
            .ok("INSERT INTO message (id, user_id, body) VALUES (9000, 901, 'seen')");
        let mut client = scene.proxy.login(&scene.database.login());
        warm(&scene.proxy, &mut client, "CALL fetch_timeline_ids(900)");
        scene.verify(&["--readers", "899,900"]).is_equal();

        scene.root.ok("SET sql_log_bin = 0");
        scene
            .root
            .ok("INSERT INTO message (id, user_id, body) VALUES (9001, 901, 'unseen')");
        scene.root.ok("SET sql_log_bin = 1");
        let verified = scene.verify(&[]);
        assert_eq!(verified.status, 1);
        verified.says("DIFFERENCES: ");
        let name = scene.database.name();
        verified.says(&format!("definition classic, database {name}, reader 900"));
        verified.says(&format!(
            "USE `{name}`;\n    CALL `fetch_timeline_ids`(900);"
        ));
        verified.says("9000, 901, seen ");
        verified.says("| 9001, 901, unseen");
        let readers = READERS + 1;
        verified.says(&format!("{readers} of {readers} readers"));
        // No other reader's page differs.
        for (number, line) in (1..).zip(verified.report.lines()) {
            let differs = line.starts_with("Difference (");
            assert!(
                !differs || line.ends_with(", reader 900"),
                "{number}: {line}"
            );
        }
        scene.verify(&["--readers", "1,2"]).is_equal();
    });
}

/// Any server at the address is compared: another server's rows are a difference.
#[test]
fn what_stands_at_the_address_is_asked() {
    on_each_quiet_server(|server| {
        let scene = Scene::of(server, "verify_address");
        let address = server.addr().to_string();
        let (_folder, child) = start(
            server.addr(),
            &scene.settings,
            &["--headwater", &address, "--readers", "25%"],
        );
        let verified = Verified::of(child.wait_with_output().unwrap());
        // The server compared with itself, without SHOW HEADWATER.
        verified.is_equal();
        verified.says("it does not say what answers (SHOW HEADWATER: ERROR 1064");
        verified.says(&format!("{} of {} readers", READERS / 4, READERS / 4));
    });
}

#[test]
fn a_right_that_is_missing_is_named_and_nothing_is_called_equal() {
    on_each_quiet_server(|server| {
        let mut scene = Scene::of(server, "verify_rights");
        let login = scene.database.account("SELECT", "secret");
        let user = login.user.clone();
        let flags = ["--service-user", &user, "--service-password", "secret"];
        // The flags would be repeated, so these are set in the environment.
        let output = crate::kit::proxy::headwater(&[
            ("HEADWATER_SERVICE_USER", &user),
            ("HEADWATER_SERVICE_PASSWORD", "secret"),
        ])
        .args(["verify", "--upstream", &server.addr().to_string()])
        .args([
            "--headwater",
            &scene.proxy.addr().to_string(),
            "--readers",
            "3",
        ])
        .output()
        .unwrap();
        let verified = Verified::of(output);
        assert_eq!(verified.status, 1, "{flags:?}");
        verified.says("needs SELECT, EXECUTE and CREATE TEMPORARY TABLES");
        verified.says("Nothing was compared.");

        // The account for Headwater's side may be another one, with its own password.
        let asks = scene
            .database
            .account("SELECT, EXECUTE, CREATE TEMPORARY TABLES", "other");
        let flags = ["--readers", "3", "--user", &asks.user];
        let verified = scene.verify(&[&flags[..], &["--password", "other"]].concat());
        verified.is_equal();
        verified.says("it does not say what answers (SHOW HEADWATER: ERROR 1227");
        verified.says(&format!("asked by {}", asks.user));
        let verified = scene.verify(&[&flags[..], &["--password", "wrong"]].concat());
        assert_eq!((verified.status, verified.report.as_str()), (1, ""));
        assert!(
            verified.said.contains("through Headwater at") && verified.said.contains("--user"),
            "{}",
            verified.said
        );
        for user in [&user, &asks.user] {
            scene.root.ok(&format!("DROP USER {user}@'%'"));
        }
    });
}
