//! The page about counters explains each that is printed, in the words of the program.

use headwater::session::counts::{COMPARED, CONTRADICTIONS, Counter, Event, RELAYED, UNREADABLE};
use headwater::session::reason::Reason;

use crate::kit::proxy::Proxy;
use crate::kit::servers::mariadb;

const PAGE: &str = include_str!("../../docs/counters.md");

#[test]
fn every_counter_that_is_printed_is_explained() {
    let events = Event::ALL.iter().map(|(_, counter)| *counter);
    let named = |Counter { name, counts }: Counter| match name == RELAYED.name {
        true => format!("| `{name}[...]` | {counts} |"),
        false => format!("| `{name}` | {counts} |"),
    };
    let counters = events
        .chain([RELAYED])
        .chain(COMPARED)
        .chain([UNREADABLE, CONTRADICTIONS])
        .map(named);
    let reasons = Reason::ALL.iter().map(|reason| {
        let (label, means, cure) = reason.explained();
        format!("| `{label}` | {means} | {cure} |")
    });
    let expected: Vec<String> = counters.chain(reasons).collect();
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
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
