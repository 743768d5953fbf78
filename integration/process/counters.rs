//! The page about counters explains each printed counter in the program's words.

use headwater_proxy::counter_definition::CounterDefinition;
use headwater_proxy::session::session_counters::{
    CONTRADICTIONS, DIFFERENT_ROWS, FEEDS_RELAYED, RELAYED, SessionEvent, UNREADABLE,
};
use headwater_proxy::shadow::COMPARED;
use headwater_session::call_relay_reason::CallRelayReason;
use headwater_session::feed_decision::FeedRelayReason;

use crate::kit::proxy::Proxy;
use crate::kit::servers::mariadb;

const PAGE: &str = include_str!("../../docs/counters.md");
const FEEDS: &str = include_str!("../../docs/feeds.md");

#[test]
fn every_counter_that_is_printed_is_explained() {
    let events = SessionEvent::ALL.iter().map(|(_, counter)| *counter);
    let labelled = [RELAYED.name, FEEDS_RELAYED.name];
    let named = |CounterDefinition {
                     name,
                     meaning: counts,
                 }: CounterDefinition| match labelled.contains(&name) {
        true => format!("| `{name}[...]` | {counts} |"),
        false => format!("| `{name}` | {counts} |"),
    };
    let counters = events
        .chain([RELAYED, FEEDS_RELAYED])
        .chain(COMPARED)
        .chain([UNREADABLE, CONTRADICTIONS, DIFFERENT_ROWS])
        .map(named);
    let reasons = CallRelayReason::ALL.iter().map(|reason| {
        let (label, means, cure) = reason.explanation();
        format!("| `{label}` | {means} | {cure} |")
    });
    let expected: Vec<String> = counters.chain(reasons).collect();
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn every_reason_for_which_a_feed_is_relayed_is_explained() {
    let expected: Vec<String> = FeedRelayReason::all()
        .map(|why| {
            let (label, means, cure) = why.explanation();
            format!("| `{label}` | {means} | {cure} |")
        })
        .collect();
    let rows = FEEDS.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn the_line_of_counters_has_the_time_in_front() {
    let proxy = Proxy::start(mariadb().addr(), &[]);
    let line = proxy.counts_line();
    let output = proxy.output();
    let whole = output.lines().find(|whole| whole.ends_with(&line)).unwrap();
    let (time, behind) = whole.split_once(' ').unwrap();
    assert!(behind.starts_with("counts: sessions="), "{whole}");
    assert!(
        time.starts_with("20") && time.contains('T') && time.ends_with('Z'),
        "{whole}"
    );
}
