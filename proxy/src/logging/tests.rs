#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Instant;

use std::io::{self, Write};
use std::sync::Arc;

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use super::throttle::INTERVAL;
use super::*;

#[derive(Clone, Debug, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogBuffer {
    type Writer = LogBuffer;

    fn make_writer(&'a self) -> LogBuffer {
        self.clone()
    }
}

/// Runs the closure, and returns the lines that were written.
fn lines(level: LevelFilter, log: impl FnOnce(&LogState)) -> Vec<String> {
    let (messages, written) = (Arc::new(LogState::new(level)), LogBuffer::default());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(messages.required_level())
        .with_target(false)
        .with_ansi(false)
        .without_time()
        .fmt_fields(fields())
        .with_writer(written.clone())
        .finish()
        .with(ThrottleLayer(Arc::clone(&messages)));
    tracing::subscriber::with_default(subscriber, || log(&messages));
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

fn refuse(number: u32) {
    tracing::error_span!("session", number).in_scope(|| tracing::warn!("client {number} goes"));
}

#[test]
fn a_flood_is_written_in_part_and_counted_in_whole() {
    let lines = lines(LevelFilter::INFO, |messages| {
        (0..1_000).for_each(refuse);
        tracing::warn!("another");
        assert_eq!(messages.message_counts(), [("warn", 1_001), ("error", 0)]);
        assert_eq!(messages.suppressed(), 990);
        // Not over yet.
        assert_eq!(messages.sites().take_finished(Instant::now()), []);
        let over = messages.sites().take_finished(Instant::now() + INTERVAL);
        over.iter().for_each(log_suppressed);
        // Neither counted nor left out.
        assert_eq!(messages.message_counts(), [("warn", 1_001), ("error", 0)]);
        // The next interval begins with the next line.
        (0..3).for_each(refuse);
    });
    assert_eq!(lines.len(), 10 + 1 + 1 + 3, "{lines:?}");
    assert!(
        lines[0].ends_with("session{number=0}: client 0 goes"),
        "{lines:?}"
    );
    let summary = "WARN … and 990 more like it in the last 60 s: client 10 goes suppressed=990";
    assert_eq!(lines[11], summary);
}

#[test]
fn what_no_client_causes_is_written_more_often_and_bounded_too() {
    let lines = lines(LevelFilter::INFO, |messages| {
        (0..150).for_each(|number| tracing::info!("database {number}"));
        messages.report_remainder();
        messages.report_remainder();
    });
    assert_eq!(lines.len(), 101, "{lines:?}");
    assert!(lines[100].starts_with("INFO … and 50 more like it in the last 1 s: database 100"));
}

#[test]
fn errors_and_debug_lines_keep_their_levels() {
    let written = lines(LevelFilter::DEBUG, |messages| {
        (0..200).for_each(|number| tracing::debug!("detail {number}"));
        (0..101).for_each(|_| tracing::error!("bad"));
        messages.report_remainder();
        assert_eq!(messages.message_counts(), [("warn", 0), ("error", 101)]);
    });
    assert_eq!(written.len(), 200 + 100 + 1);
    assert!(
        written[300].starts_with("ERROR … and 1 more"),
        "{written:?}"
    );
}

#[test]
fn warnings_are_counted_where_they_are_not_written() {
    let written = lines(LevelFilter::ERROR, |messages| {
        tracing::warn!("quiet");
        tracing::error!("loud");
        assert_eq!(messages.message_counts(), [("warn", 1), ("error", 1)]);
        assert_eq!(messages.suppressed(), 0);
    });
    assert_eq!(written, ["ERROR loud"]);
}

#[test]
fn an_interval_that_ends_with_the_next_line_is_reported_too() {
    let (mut sites, begun) = (CallSites::default(), Instant::now());
    let site = tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        let span = tracing::info_span!("anything");
        (span.metadata().unwrap().callsite(), Level::INFO)
    });
    let admit = |sites: &mut CallSites, after| {
        sites.admit(site.clone(), 2, begun + after, || "é".repeat(300))
    };
    for expected in [
        LineDecision::Write,
        LineDecision::Write,
        LineDecision::Suppress,
        LineDecision::Suppress,
    ] {
        assert_eq!(admit(&mut sites, Duration::ZERO), expected);
    }
    assert_eq!(admit(&mut sites, INTERVAL), LineDecision::Write);
    let over = sites.take_finished(begun + INTERVAL);
    assert_eq!(over.len(), 1);
    assert_eq!((over[0].count, over[0].example.chars().count()), (2, 200));
    assert_eq!(sites.take_remainder(begun + INTERVAL), []);
}

/// Texts of others, one for each control character and for what ends lines or turns the direction of writing.
fn forged() -> impl Iterator<Item = String> {
    let controls = ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}');
    let all = controls.chain(['\u{2028}', '\u{2029}', '\u{202e}', '\u{2066}']);
    all.map(|letter| format!("tl{letter}2026-01-01T00:00:00Z ERROR forged"))
}

#[test]
fn no_text_forges_a_line_of_the_text_log() {
    for text in forged() {
        let lines = lines(LevelFilter::INFO, |_| {
            tracing::error_span!("session", account = %text).in_scope(|| {
                let name: &str = &text;
                tracing::warn!(name, error = ?text, "in database {text}: {}", std::io::Error::other(text.clone()));
            });
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        let hidden = |letter: char| headwater_sql::display_escape::is_hidden(letter);
        assert!(!lines[0].contains(hidden), "{lines:?}");
        assert_eq!(lines[0].matches("ERROR forged").count(), 5, "{lines:?}");
    }
}

#[test]
fn no_text_forges_a_line_of_the_json_log() {
    for text in forged() {
        let written = LogBuffer::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(JsonLogWriter(written.clone()))
            .json()
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::error_span!("session", account = %text)
                .in_scope(|| tracing::warn!(name = %text, "in database {text}"));
        });
        let line = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        let shown = headwater_sql::escape_hidden(&text).into_owned();
        assert_eq!(json["fields"]["name"], shown);
        assert_eq!(json["fields"]["message"], format!("in database {shown}"));
        assert_eq!(json["span"]["account"], shown);
    }
}
