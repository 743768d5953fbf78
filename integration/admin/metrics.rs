//! Metrics: each is documented, is exposed in Prometheus's format, and reflects what happened.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use headwater_proxy::binlog::REASONS;
use headwater_server::overview::metrics::{ALL, MetricKind};

use super::http::Admin;
use crate::kit::database::Database;
use crate::kit::patience;
use crate::kit::proxy::ROOT_SERVICE;
use crate::kit::servers::on_each_server;
use crate::memory::warm;

const PAGE: &str = include_str!("../../docs/metrics.md");
const OPENMETRICS: &str =
    "Accept: application/openmetrics-text; version=1.0.0,text/plain;q=0.5\r\n";

#[test]
fn every_metric_is_explained() {
    let expected: Vec<String> = ALL
        .iter()
        .map(|metric| {
            let labels = match metric.labels {
                [] => String::new(),
                labels => format!("{{{}}}", labels.join(",")),
            };
            format!("| `{}{labels}` | {} |", metric.full_name(), metric.help)
        })
        .collect();
    let told = |line: &&str| {
        let names = ["| `headwater_", "| `process_"];
        names.iter().any(|name| line.starts_with(name))
    };
    let rows: Vec<&str> = PAGE.lines().filter(told).collect();
    assert_eq!(rows, expected);
    let reasons = REASONS.map(|(reason, means)| format!("| `{reason}` | {means} |"));
    let (_, behind) = PAGE.split_once("## Why memory is not used").unwrap();
    let rows: Vec<&str> = behind
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert_eq!(rows, reasons);
}

/// Names of metrics in a text, including the suffixes of histograms and counters.
fn named(text: &str) -> Vec<&str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let own = |word: &&str| word.starts_with("headwater_") || word.starts_with("process_");
    words.filter(own).collect()
}

/// The dashboard and the alerts use existing metrics, and each alert has its entry in the book.
#[test]
fn the_board_and_the_alerts_ask_for_what_is_told() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let alerts = std::fs::read_to_string(root.join("ops/alerts.yaml")).unwrap();
    let board = std::fs::read_to_string(root.join("ops/grafana.json")).unwrap();
    let asked = named(&alerts).into_iter().chain(named(&board));
    let mut seen = 0;
    for name in asked {
        let is_told = ALL.iter().any(|metric| {
            let full = metric.full_name();
            let parts = ["_bucket", "_sum", "_count"].map(|part| format!("{full}{part}"));
            name == full
                || metric.kind == MetricKind::Histogram && parts.iter().any(|part| part == name)
        });
        assert!(is_told, "{name}");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
    let alerts = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let lines = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("| `Headwater")?.split('`').next());
    let lines: Vec<String> = lines.map(|name| format!("Headwater{name}")).collect();
    assert_eq!(alerts.collect::<Vec<_>>(), lines);
    // Prometheus parses each expression.
    let board: serde_json::Value = serde_json::from_str(&board).unwrap();
    let mut rules = "groups:\n  - name: board\n    rules:\n".to_owned();
    for target in board["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
    {
        let expression = target["expr"].as_str().unwrap();
        let expression = expression
            .replace("$__rate_interval", "5m")
            .replace("$instance", ".*");
        rules += &format!(
            "      - record: r{}\n        expr: {}\n",
            rules.len(),
            serde_json::json!(expression)
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("board.yaml");
    std::fs::write(&file, rules).unwrap();
    for arguments in [
        ["check", "rules", "ops/alerts.yaml"],
        ["test", "rules", "ops/alerts_test.yaml"],
        ["check", "rules", file.to_str().unwrap()],
    ] {
        let ended = Command::new(promtool())
            .args(arguments)
            .current_dir(root)
            .output()
            .unwrap();
        let said = [&ended.stdout[..], &ended.stderr].concat();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}

fn promtool() -> PathBuf {
    let own = std::env::var_os("HEADWATER_PROMETHEUS_PREFIX").map(PathBuf::from);
    let home = || {
        PathBuf::from(std::env::var_os("HOME").unwrap_or_default())
            .join(".cache/headwater/prometheus-2.42")
    };
    own.unwrap_or_else(home).join("usr/bin/promtool")
}

/// Runs promtool on a page, which must print nothing.
#[track_caller]
fn checked(page: &str) {
    let mut promtool = Command::new(promtool())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there: make setup gets it");
    promtool
        .stdin
        .take()
        .unwrap()
        .write_all(page.as_bytes())
        .unwrap();
    let ended = promtool.wait_with_output().unwrap();
    let said = [&ended.stdout[..], &ended.stderr].concat();
    assert!(
        ended.status.success() && said.is_empty(),
        "{}\n{page}",
        String::from_utf8_lossy(&said)
    );
}

/// The value of the sample with this name and these labels.
#[track_caller]
pub(super) fn value(page: &str, sample: &str) -> f64 {
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in:\n{page}"))
        .parse()
        .unwrap()
}

#[test]
fn metrics_say_what_has_happened() {
    on_each_server(|server| {
        let database = Database::classic(server, "adminmetrics");
        let name = database.name();
        let (proxy, admin) = Admin::beside(server.addr(), "[shadow]\nrate = 0.5\n", ROOT_SERVICE);
        checked(&admin.get("/metrics").body);
        proxy.wait_for_log(&format!("in database {name}: accelerated"));
        let mut client = proxy.login(&database.login());
        warm(&proxy, &mut client, "CALL fetch_timeline_ids(1)");
        for _ in 0..20 {
            client.ok("CALL fetch_timeline_ids(1)");
            client.rows("SELECT id FROM fetch_timeline_tt");
        }
        client.ok("BEGIN");
        client.ok("SET SESSION sql_notes = DEFAULT");
        for _ in 0..3 {
            client.ok("CALL fetch_timeline_ids(1)");
        }
        client.ok("COMMIT");
        let page = admin.get("/metrics").body;
        checked(&page);
        let counts = proxy.counts();
        let calls = |answer: &str, reason: &str| {
            value(
                &page,
                &format!(
                    "headwater_calls_total{{definition=\"classic\",answer=\"{answer}\",reason=\"{reason}\"}}"
                ),
            )
        };
        assert_eq!(calls("memory", ""), counts.of("calls_from_memory") as f64);
        assert_eq!(calls("relayed", "in_transaction"), 3.0);
        let owned: f64 = ["memory", "lookups", "procedure"]
            .map(|answer| calls(answer, ""))
            .iter()
            .sum();
        assert_eq!(owned, counts.of("calls_owned") as f64);
        let times = ["memory", "lookups", "procedure"].map(|answer| {
            value(
                &page,
                &format!("headwater_call_seconds_count{{answer=\"{answer}\"}}"),
            )
        });
        assert_eq!(times.iter().sum::<f64>(), owned);
        assert!(value(&page, "headwater_proof_seconds_count") > 0.0);
        assert_eq!(value(&page, "headwater_sessions"), 1.0);
        assert_eq!(
            value(&page, "headwater_binlog_state{reason=\"followed\"}"),
            1.0
        );
        assert_eq!(value(&page, "headwater_upstream_up"), 1.0);
        assert!(value(&page, "headwater_index_bytes") > 0.0);
        assert_eq!(
            value(&page, "headwater_index_entries{kind=\"timelines\"}"),
            1.0
        );
        let resident = value(&page, "process_resident_memory_bytes");
        assert!((resident / 1_024.0 - proxy.resident_kib() as f64).abs() < 20_000.0);
        // After a write, the next request brings memory to the log's position; heartbeats arrive all the time.
        let mut root = database.connect();
        for id in 1_000_001..1_000_100 {
            root.ok(&format!(
                "INSERT INTO message (id, user_id, body) VALUES ({id}, 2, 'text')"
            ));
        }
        client.ok("CALL fetch_timeline_ids(1)");
        let deadline = patience();
        loop {
            let page = admin.get("/metrics").body;
            let behind = ["lag_bytes", "waiting_changes", "waiting_seconds"];
            let behind = behind.map(|it| value(&page, &format!("headwater_binlog_{it}")));
            if behind == [0.0; 3] {
                break;
            }
            assert!(Instant::now() < deadline, "{behind:?}");
            client.ok("CALL fetch_timeline_ids(1)");
        }
        std::thread::sleep(Duration::from_millis(2_500));
        let page = admin.get("/metrics").body;
        assert!(
            value(&page, "headwater_binlog_silent_seconds") < 2.0,
            "{page}"
        );
        // The same metrics in OpenMetrics format.
        let open = admin.get_with("/metrics", OPENMETRICS);
        assert!(
            open.head.contains("application/openmetrics-text"),
            "{open:?}"
        );
        assert!(open.body.ends_with("# EOF\n"), "{open:?}");
        assert_eq!(
            value(
                &open.body,
                "headwater_calls_total{definition=\"classic\",answer=\"relayed\",reason=\"in_transaction\"}"
            ),
            3.0
        );
        // Each documented metric is exposed at some time, and no other is.
        for told in open
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
        {
            let told = told.split(' ').next().unwrap();
            let named = ALL
                .iter()
                .any(|metric| metric.full_name().starts_with(told));
            assert!(named, "{told}");
        }
    });
}
