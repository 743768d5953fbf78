//! Every strategy for timelines is measured on each server, and returns the procedure's pages.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::Value;

use headwater_lab::private_server::redis::RedisServer;

use crate::kit::proxy::headwater;
use crate::kit::servers::{if_here, leaves_nothing, mysql};

/// The strategies that each server has.
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
    let mut bench = headwater(&[]);
    bench.args(["bench", "strategies", "--quick", "--users", "60"]);
    bench.args(["--messages", "2000", "--readers", "30"]);
    bench.args(["--connections", "2", "--seconds", "0.05"]);
    if mysql().is_none() {
        bench.args(["--server", "mariadb"]);
    }
    bench.arg("--json").arg(&json).arg("--report").arg(&report);
    // The settings of another bench, which may be in the environment, have no effect here.
    bench.env("HEADWATER_UPSTREAM", "nowhere:1");
    let (told, _) = succeeds(&mut bench);
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
            looks_right(it, 1_000);
        }
    }
    let lateral = strategies.iter().filter(|it| it["name"] == "sql-lateral");
    assert_eq!(lateral.count(), engines.len() - 1, "{told}");
    is_readable(&report, engines.len());
}

/// An article's figures appear beside what is measured on its data, by the strategies that it compared.
#[test]
fn what_an_article_told_is_measured_again() {
    if if_here(RedisServer::start()).is_none() {
        return;
    }
    let mut bench = headwater(&[]);
    bench.args(["bench", "strategies", "--run", "rails"]);
    bench.args(["--server", "mariadb", "--readers", "20"]);
    bench.args(["--connections", "1", "--seconds", "0.05"]);
    let folder = tempfile::tempdir().unwrap();
    bench.arg("--report").arg(folder.path());
    let (told, _) = succeeds(&mut bench);
    let then = "then 11.84 ms push, 30.6 ms pull (pull 2.6x); now ";
    assert!(told.contains(then), "{told}");
    for (name, count) in [
        ("sql-join", 1),
        ("redis-push", 1),
        ("headwater-kept", 1),
        ("push-mailbox", 0),
    ] {
        assert_eq!(told.matches(name).count(), count, "{name}: {told}");
    }
    let page = std::fs::read_to_string(folder.path().join("rails.md")).unwrap();
    let row = "| time for a page | 11.84 ms | 30.6 ms | pull 2.6 | ";
    assert!(page.contains(row), "{page}");
    assert!(folder.path().join("rails.json").exists());
}

/// Each size is loaded and measured, and the report is written after each.
#[test]
fn growth_is_measured_size_by_size() {
    if if_here(RedisServer::start()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut bench = headwater(&[]);
    bench.args(["bench", "strategies", "--growth=follows", "--quick"]);
    bench.args(["--only", "sql-list,headwater-kept,push-mailbox"]);
    bench.args(["--server", "mariadb", "--readers", "20"]);
    bench.args(["--connections", "2", "--seconds", "0.05"]);
    bench.arg("--report").arg(folder.path());
    let (told, _) = succeeds(&mut bench);
    assert_eq!(told.matches(" us an author |").count(), 3, "{told}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let growth: Value = serde_json::from_str(&read("growth.json")).unwrap();
    let points = growth["points"].as_array().unwrap();
    assert_eq!(points.len(), 3 * 3, "{growth}");
    for point in points {
        let it = &point["measured"];
        assert_eq!(it["compared_pages"], 20, "{it}");
        assert_eq!(it["equal_pages"], 20, "{it}");
        let follows = point["engine"]["follows_per_reader"].as_f64().unwrap();
        let at = point["at"].as_f64().unwrap();
        assert!((at * 0.9..at * 1.1).contains(&follows), "{follows} of {at}");
    }
    assert_eq!(growth["left_out"], Value::Array(Vec::new()));
    let page = read("growth.md");
    assert!(page.contains("| pages/s | 10 | 40 | 160 |"), "{page}");
    assert!(page.contains("](growth-follows-mariadb.svg)"), "{page}");
    assert!(read("growth-follows-mariadb.svg").contains("headwater-kept"));

    // Existing points stay as they are, and missing ones are measured.
    let mut fewer = growth.clone();
    let at = |point: &Value| point["at"].as_f64().unwrap();
    let kept = fewer["points"].as_array_mut().unwrap();
    kept.retain(|point| at(point) < 100.0);
    std::fs::write(folder.path().join("growth.json"), fewer.to_string()).unwrap();
    let (_, complained) = succeeds(bench.arg("--resume"));
    assert_eq!(complained.matches("measured before").count(), 2);
    let again: Value = serde_json::from_str(&read("growth.json")).unwrap();
    let again = again["points"].as_array().unwrap();
    assert_eq!(again.len(), 3 * 3);
    assert_eq!(&again[..6], fewer["points"].as_array().unwrap().as_slice());
    assert!(again[6..].iter().all(|point| at(point) > 100.0));

    std::fs::write(folder.path().join("growth.json"), "{}").unwrap();
    let output = bench.output().unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{complained}");
    assert!(complained.contains("growth.json: remove it, or leave out --resume"));
}

/// Whether a page costs more where there are more messages: alternating reads show it, whatever else the machine does.
#[test]
fn pages_of_headwater_are_read_in_turn_with_those_of_the_smallest_size() {
    if if_here(RedisServer::start()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut bench = headwater(&[]);
    bench.args(["bench", "strategies", "--growth=messages", "--quick"]);
    bench.args(["--only", "sql-list,headwater-kept"]);
    bench.args(["--server", "mariadb", "--readers", "20"]);
    bench.args(["--connections", "2", "--seconds", "0.05"]);
    bench.args(["--buffer-pool", "2"]);
    bench.arg("--report").arg(folder.path());
    let (told, _) = succeeds(&mut bench);
    assert_eq!(told.matches(" times, in turn |").count(), 1, "{told}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let growth: Value = serde_json::from_str(&read("growth.json")).unwrap();
    let points = growth["points"].as_array().unwrap();
    assert_eq!(points.len(), 3 * 2, "{growth}");
    for point in points {
        assert_eq!(point["engine"]["buffer_pool_gb"], 2, "{point}");
        let it = &point["measured"];
        let beside = it.get("beside");
        assert_eq!(beside.is_some(), it["name"] == "headwater-kept", "{point}");
        let Some(beside) = beside else { continue };
        for figure in [
            "pages_per_s",
            "page_p50_us",
            "smallest_pages_per_s",
            "smallest_page_p50_us",
        ] {
            assert!(beside[figure].as_f64() > Some(0.0), "{figure}: {beside}");
        }
    }
    let page = read("growth.md");
    assert_eq!(page.matches("headwater-kept, read in turn").count(), 1);
}

/// A server and a strategy's table take long to fill: a signal ends the bench there as well, and nothing remains.
#[test]
fn a_signal_ends_it_while_something_is_filled() {
    if if_here(RedisServer::start()).is_none() {
        return;
    }
    let mut server = on_mariadb("procedure");
    server.args(["--users", "50", "--messages", "10000000"]);
    let rest = signalled(&mut server, " 10000000 messages");
    assert!(!rest.contains("built"), "{rest}");
    let mut table = on_mariadb("push-mailbox");
    table.args(["--users", "10000", "--messages", "100000"]);
    let rest = signalled(&mut table, "push-mailbox: being built");
    assert!(!rest.contains("asked of the procedure"), "{rest}");
    let mut growth = on_mariadb("procedure");
    growth.arg("--growth=messages");
    let rest = signalled(&mut growth, " 100000 messages");
    assert!(!rest.contains("left out"), "{rest}");
}

fn on_mariadb(strategy: &str) -> Command {
    let mut bench = headwater(&[]);
    bench.args(["bench", "strategies", "--only", strategy]);
    bench.args(["--server", "mariadb"]);
    bench
}

/// Signals the bench as soon as it prints `begun`; returns what it prints after that.
fn signalled(bench: &mut Command, begun: &str) -> String {
    let mut bench = bench.stderr(Stdio::piped()).spawn().unwrap();
    let mut complained = BufReader::new(bench.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(begun) {
        line.clear();
        assert!(complained.read_line(&mut line).unwrap() > 0, "no {begun}");
    }
    let pid = bench.id();
    signal::kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGTERM).unwrap();
    let mut rest = String::new();
    complained.read_to_string(&mut rest).unwrap();
    assert!(!bench.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("stopped"), "{rest}");
    leaves_nothing(pid);
    rest
}

/// The operator's follows and messages, from files.
#[test]
fn ones_own_follows_and_messages_are_measured() {
    if if_here(RedisServer::start()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = ["follows", "messages", "figures.json"].map(|name| folder.path().join(name));
    let [follows, messages, json] = &files;
    // Each user follows the next ten, and writes every thirtieth message.
    let name = |user: u64| format!("u-{}", user % 30);
    let pairs = (0..30).flat_map(|reader| (1..=10).map(move |step| (reader, reader + step)));
    let lines = pairs.map(|(reader, author)| format!("{}\t{}\n", name(reader), name(author)));
    std::fs::write(follows, lines.collect::<String>()).unwrap();
    let lines = (0..1_500_u64).map(|at| {
        let (id, author, bytes) = (7_000_000_000_000 + at * 64, name(at * 7), at % 300);
        format!("{id},{author},{bytes}\n")
    });
    std::fs::write(messages, lines.collect::<String>()).unwrap();
    let run = |messages: &Path| {
        let mut bench = headwater(&[]);
        bench.args(["bench", "strategies", "--quick", "--server", "mariadb"]);
        bench.args([
            "--only",
            "procedure,headwater-kept,push-mailbox,redis-on-read",
        ]);
        bench.args(["--connections", "2", "--seconds", "0.05"]);
        bench.arg("--follows-from").arg(follows);
        bench.arg("--messages-from").arg(messages);
        bench.arg("--json").arg(json).output().unwrap()
    };
    let output = run(messages);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    let figures: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let engine = &figures["engines"][0];
    for (what, many) in [("users", 30), ("follows", 300), ("messages", 1_500)] {
        assert_eq!(engine[what], many, "{what}: {engine}");
    }
    assert_eq!(engine["followers_per_message"], 10.0, "{engine}");
    let strategies = figures["strategies"].as_array().unwrap();
    assert_eq!(strategies.len(), 4);
    for it in strategies {
        looks_right(it, 10);
        // Memory that reads have filled counts too.
        let remembers = it["name"] == "redis-on-read" || it["name"] == "headwater-kept";
        assert_eq!(it["memory_bytes"].as_u64().unwrap() > 0, remembers, "{it}");
    }
    // The files are exchanged: a user is not a message's id.
    let output = run(follows);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        complained.contains("line 1: a message's id (a number"),
        "{complained}"
    );
}

/// The output of a bench that succeeds, and its progress messages.
#[track_caller]
fn succeeds(bench: &mut Command) -> (String, String) {
    let output = bench.output().unwrap();
    let [told, complained] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{told}\n{complained}");
    (told, complained)
}

/// Asserts that a strategy was measured, and keeps its claims.
#[track_caller]
fn looks_right(it: &Value, most_followers: u64) {
    let number = |name: &str| it[name].as_f64().unwrap_or_else(|| panic!("{name}: {it}"));
    assert!(number("compared_pages") >= 30.0, "{it}");
    assert_eq!(it["compared_pages"], it["equal_pages"], "{it}");
    for name in ["pages_per_s", "deep_pages_per_s", "messages_per_s", "bytes"] {
        assert!(number(name) > 0.0, "{name}: {it}");
    }
    assert!(number("stale_looked") > 0.0, "{it}");
    // Among them is one by the author with the most followers.
    let posts = it["posts"].as_array().unwrap();
    let followers = posts.iter().map(|post| post["followers"].as_u64().unwrap());
    assert_eq!(followers.max(), Some(most_followers), "{it}");
    let times = posts.iter().map(|post| post["ms"].as_f64().unwrap());
    assert!(times.fold(f64::MAX, f64::min) > 0.0, "{it}");
    match it["claims"].as_str().unwrap() {
        // A cache returns old content: this figure may differ from 0.
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
