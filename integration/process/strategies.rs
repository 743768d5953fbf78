//! Every strategy for timelines is measured on each server, and has the procedure's pages.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use headwater::lab::private_server::redis::RedisServer;

use crate::kit::servers::{if_here, mysql};

/// Those that each server has.
const NAMES: [&str; 15] = [
    "sql-join",
    "sql-list",
    "procedure",
    "headwater-call",
    "headwater-narrowed",
    "headwater-kept",
    "push-mailbox",
    "hybrid",
    "push-packed",
    "push-buckets-time",
    "push-buckets-size",
    "redis-push",
    "redis-on-read",
    "redis-pull",
    "redis-window",
];

#[test]
fn every_strategy_has_the_procedures_pages_and_says_how_stale_it_is() {
    if if_here(RedisServer::start()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (json, report) = (
        folder.path().join("figures.json"),
        folder.path().join("report"),
    );
    let mut bench = Command::new(env!("CARGO_BIN_EXE_headwater"));
    bench.args(["bench", "strategies", "--quick", "--users", "60"]);
    bench.args(["--messages", "2000", "--readers", "30"]);
    bench.args(["--connections", "2", "--seconds", "0.15"]);
    if mysql().is_none() {
        bench.args(["--server", "mariadb"]);
    }
    bench.arg("--json").arg(&json).arg("--report").arg(&report);
    // Another bench, whose settings may be in the environment, has nothing to say here.
    bench.env("HEADWATER_UPSTREAM", "nowhere:1");
    let output = bench.output().unwrap();
    let (told, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{told}\n{complained}");
    let figures: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let strategies = figures["strategies"].as_array().unwrap();
    let engines = figures["engines"].as_array().unwrap();
    for engine in engines {
        let engine = engine["engine"].as_str().unwrap();
        for name in NAMES {
            let found: Vec<_> = strategies
                .iter()
                .filter(|it| it["engine"] == engine && it["name"] == name)
                .collect();
            let [it] = found.as_slice() else {
                panic!("{name} on {engine}: {found:?}");
            };
            looks_right(it);
        }
    }
    let lateral = strategies.iter().filter(|it| it["name"] == "sql-lateral");
    assert_eq!(lateral.count(), engines.len() - 1, "{told}");
    is_readable(&report, engines.len());
}

/// What an article has told stands beside what is measured on its data, by the strategies that it compared.
#[test]
fn what_an_article_told_is_measured_again() {
    if if_here(RedisServer::start()).is_none() {
        return;
    }
    let mut bench = Command::new(env!("CARGO_BIN_EXE_headwater"));
    bench.args(["bench", "strategies", "--run", "rails"]);
    bench.args(["--server", "mariadb", "--readers", "20"]);
    bench.args(["--connections", "1", "--seconds", "0.15"]);
    let output = bench.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{complained}");
    let then = "then 11.84 ms push, 30.6 ms pull (2.6x); now ";
    assert!(told.contains(then), "{told}");
    for (name, count) in [
        ("sql-join", 1),
        ("redis-push", 1),
        ("headwater-kept", 1),
        ("push-mailbox", 0),
    ] {
        assert_eq!(told.matches(name).count(), count, "{name}: {told}");
    }
}

/// A strategy was measured, and keeps what it promises.
#[track_caller]
fn looks_right(it: &Value) {
    let number = |name: &str| it[name].as_f64().unwrap_or_else(|| panic!("{name}: {it}"));
    assert!(number("compared_pages") >= 30.0, "{it}");
    assert_eq!(it["compared_pages"], it["equal_pages"], "{it}");
    for name in ["pages_per_s", "deep_pages_per_s", "messages_per_s", "bytes"] {
        assert!(number(name) > 0.0, "{name}: {it}");
    }
    assert!(number("stale_looked") > 0.0, "{it}");
    match it["claims"].as_str().unwrap() {
        // A cache shows what it had: this is a figure that can be other than 0.
        "stale" if it["name"] == "redis-window" => assert!(number("stale_share") > 0.5, "{it}"),
        "stale" => {}
        _ => assert!(number("stale_share").abs() < f64::EPSILON, "{it}"),
    }
}

#[track_caller]
fn is_readable(report: &Path, engines: usize) {
    let text = std::fs::read_to_string(report.join("README.md")).unwrap();
    for name in NAMES {
        assert_eq!(
            text.matches(&format!("| {name} |")).count(),
            2 * engines,
            "{name}"
        );
    }
    let mut pictures = 0;
    for (at, _) in text.match_indices("](") {
        let name = text[at + 2..].split(')').next().unwrap();
        let picture = std::fs::read_to_string(report.join(name)).unwrap();
        assert!(
            picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"),
            "{name}"
        );
        pictures += 1;
    }
    assert_eq!(pictures, 3 + engines, "{text}");
}
