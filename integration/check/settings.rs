//! Findings that need little from the server: settings, no account, no server, and mistakes.

use std::net::SocketAddr;

use super::check;
use crate::kit::proxy::{ROOT_SERVICE, free_addr, headwater};
use crate::kit::servers::{mariadb, on_each_server};

#[test]
fn without_a_service_account_it_says_what_one_would_give_and_how_to_make_it() {
    on_each_server(|server| {
        let checked = check(server.addr(), "", &[]);
        assert_eq!((checked.status, checked.said.as_str()), (0, ""));
        let statements = checked.part("To make a service account");
        assert_eq!(statements.len(), 7);
        assert!(
            statements
                .iter()
                .all(|line| line.contains("`headwater`@`HOST`"))
        );
        checked.says("definition classic, any database: lookups");
        checked.says("No service account is set (--service-user");
        checked.says("With one, feeds and calls are, and this command says which");
        let relayed = check(server.addr(), "", &["--relay-only"]);
        assert_eq!(relayed.status, 0);
        relayed.says("Every statement is relayed, as the settings say (--relay-only");
    });
}

#[test]
fn an_account_that_is_not_there_is_an_error_and_told_how_to_make() {
    on_each_server(|server| {
        let checked = check(server.addr(), "", &["--service-user", "hw_nobody"]);
        assert_eq!(checked.status, 1);
        assert_eq!(checked.said.lines().count(), 1, "{}", checked.said);
        for part in ["cannot log in", "--service-user", "--service-password"] {
            assert!(checked.said.contains(part), "{}", checked.said);
        }
        checked.says("CREATE USER `hw_nobody`@`HOST`");
    });
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_names_the_setting() {
    let nowhere = free_addr();
    let checked = check(nowhere, "", ROOT_SERVICE);
    assert_eq!((checked.status, checked.report.as_str()), (1, ""));
    assert_eq!(checked.said.lines().count(), 1, "{}", checked.said);
    for part in [&nowhere.to_string(), "--upstream", "HEADWATER_UPSTREAM"] {
        assert!(checked.said.contains(part), "{}", checked.said);
    }
}

#[test]
fn mistakes_in_settings_end_with_status_2() {
    let server: SocketAddr = mariadb().addr();
    assert_eq!(check(server, "upstreem = \"x\"", &[]).status, 2);
    assert_eq!(check(server, "", &["--freshness", "stale"]).status, 2);
    assert_eq!(check(server, "", &["--nothing-such"]).status, 2);
    let unread = headwater(&[])
        .args(["check", "--config", "no/such/file.toml"])
        .output()
        .unwrap();
    assert_eq!(unread.status.code(), Some(2));
    assert!(unread.stdout.is_empty());
}

#[test]
fn settings_that_matter_are_named() {
    let server = mariadb().addr();
    let settings =
        "[freshness]\nbounded_ms = 250\n[index]\nmemory_bytes = 1048576\n[privileges]\nttl_s = 5\n";
    for (mode, said) in [
        (
            "strict",
            "strict: with every commit that anyone was told of",
        ),
        ("bounded", "bounded: with every commit older than 250 ms"),
        (
            "session",
            "session: with every commit that the session itself",
        ),
    ] {
        let checked = check(server, settings, &["--freshness", mode]);
        checked.says(&format!("freshness.mode      {said}"));
        checked.says("index.memory_bytes  1048576 (1 MiB)");
        checked.says("privileges.ttl_s    5");
    }
    check(server, "", &[]).says("freshness.mode      strict");
    let root = ["--service-user", "root", "--service-password", ""];
    let more = check(
        server,
        "",
        &[&root[..], &["--preload", "--shadow", "0.25"]].concat(),
    );
    more.says("index.preload       true");
    more.says("shadow.rate         0.25");
}

#[test]
fn help_says_what_each_exit_status_means() {
    let output = headwater(&[]).args(["check", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for part in [
        "exit status",
        "0: ",
        "1: ",
        "2: ",
        "--service-user",
        "--config",
    ] {
        assert!(help.contains(part), "{help}");
    }
}
