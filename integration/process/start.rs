//! The start: what it reports about itself, and which other commands there are.

use crate::kit::database::Database;
use crate::kit::proxy::{Proxy, ROOT_SERVICE, headwater};
use crate::kit::servers::{mariadb, on_each_quiet_server, on_each_server};

#[test]
fn it_says_where_it_listens_and_what_it_is_in_front_of() {
    on_each_server(|server| {
        let proxy = Proxy::start(server.addr(), &[]);
        proxy.wait_for_log(&format!("listening on {}", proxy.addr()));
        let product = if server.is_mariadb() {
            "MariaDB 10."
        } else {
            "MySQL 9.7"
        };
        proxy.wait_for_log(&format!("in front of {product}"));
        proxy.wait_for_log("no service account (--service-user)");
        let proxy = Proxy::start(server.addr(), &["--relay-only"]);
        proxy.wait_for_log("every statement is relayed (--relay-only, accelerate = false)");
    });
}

#[test]
fn with_a_service_account_it_says_what_it_accelerates_and_why_not() {
    on_each_server(|server| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(
            &path,
            "[[definition]]\nname = \"nobodys\"\n[definition.message]\ntable = \"hw_none\"",
        )
        .unwrap();
        let flags = [
            "--upstream",
            &server.addr().to_string(),
            "--config",
            path.to_str().unwrap(),
        ];
        let environment = [("HEADWATER_SERVICE_USER", "root")];
        let proxy = Proxy::start_with(&flags, &environment);
        proxy.wait_for_log("definition nobodys: no database has the tables follower and hw_none");
        proxy.wait_for_log("the server's log is followed");
        assert!(!proxy.log().contains("followed again"), "{}", proxy.log());
    });
}

/// Several tasks try the login again and again, and the log reports the failure once.
#[test]
fn a_service_account_that_is_not_let_in_is_said_once_with_the_setting_and_the_way_out() {
    on_each_server(|server| {
        let mut root = server.connect();
        root.ok("CREATE USER IF NOT EXISTS hw_locked@'127.0.0.1' IDENTIFIED BY 'geheim'");
        for user in ["hw_locked", "hw_nobody", "hw_nobody_else", "hw_absent"] {
            let flags = ["--service-user", user, "--service-password", "wrong"];
            let settings = "[limits]\nrecheck_ms = 100\n";
            let proxy = Proxy::configured(server.addr(), settings, &flags);
            proxy.wait_for_log("nothing is answered from memory: ");
            // The waits between attempts to follow the log double from 50 ms.
            std::thread::sleep(std::time::Duration::from_millis(1_500));
            let log = proxy.log();
            let warnings: Vec<&str> = log
                .lines()
                .filter(|line| line.contains(" WARN ") && !line.contains("there is room"))
                // On a busy machine, logins wait for each other.
                .filter(|line| !line.contains("(the log) are taken"))
                .collect();
            assert_eq!(warnings.len(), 1, "{log}");
            for part in [
                &format!("\"{user}\""),
                "service.user",
                "--service-user",
                "headwater check",
            ] {
                assert!(warnings[0].contains(part), "no {part} in {log}");
            }
        }
        root.ok("DROP USER hw_locked@'127.0.0.1'");
    });
}

#[test]
fn a_definition_that_is_known_in_part_is_told_to_be() {
    on_each_quiet_server(|server| {
        let database = Database::classic(server, "in_part");
        let mut root = database.connect();
        root.ok("DROP PROCEDURE fetch_timeline_ids2");
        root.ok(
            "CREATE PROCEDURE fetch_timeline_ids2(IN a int unsigned, IN b int unsigned) SELECT a",
        );
        let settings = format!("[[definition]]\ndatabase = \"{}\"\n", database.name());
        let proxy = Proxy::configured(server.addr(), &settings, ROOT_SERVICE);
        proxy.wait_for_log("accelerated in part");
        let log = proxy.log();
        let line = log.lines().find(|line| line.contains("in part")).unwrap();
        for part in [
            " WARN ",
            "newest page: procedure as known",
            "bounded page: relayed, ",
        ] {
            assert!(line.contains(part), "no {part} in {line}");
        }
    });
}

#[test]
fn log_lines_may_be_json() {
    let proxy = Proxy::start(
        mariadb().addr(),
        &["--log-format", "json", "--log-level", "debug"],
    );
    drop(proxy.login(&crate::kit::wire_client::Login::default()));
    proxy.wait_for_log("a session ended");
    let (status, log) = proxy.terminate();
    assert!(status.success());
    let mut lines = 0;
    for line in log.lines().filter(|line| !line.contains(" counts: ")) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(
            value["fields"]["message"].is_string() && value["level"].is_string(),
            "{line}"
        );
        lines += 1;
    }
    assert!(lines >= 3, "{log}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let first = Proxy::start(mariadb().addr(), &[]);
    let addr = first.addr().to_string();
    let output = headwater(&[])
        .args(["serve", "--listen", &addr])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    for part in [&addr, "--listen", "HEADWATER_LISTEN", "in use"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn help_is_there_for_all_of_it() {
    let help = |arguments: &[&str]| {
        let output = headwater(&[]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let all = help(&["--help"]);
    for command in ["serve", "check", "demo", "bench"] {
        assert!(all.contains(command), "{all}");
        assert!(help(&[command, "--help"]).contains("Usage: headwater"));
    }
    let serve = help(&["serve", "--help"]);
    for setting in [
        "CONFIG",
        "LISTEN",
        "UPSTREAM",
        "SERVICE_USER",
        "SERVICE_PASSWORD",
        "RELAY_ONLY",
        "LOG_LEVEL",
    ] {
        let flag = format!("--{}", setting.to_lowercase().replace('_', "-"));
        assert!(serve.contains(&flag), "{flag} is missing");
        assert!(
            serve.contains(&format!("HEADWATER_{setting}")),
            "{setting} is missing"
        );
    }
    assert!(help(&["--version"]).starts_with("headwater 0."));
}
