//! SELECTs are watched only where a consumer wants them.

use std::time::{Duration, Instant};

use super::*;
use crate::commands::WatchedSelect;

const FEED: &str = "SELECT a FROM t WHERE b IN (1, 2) ORDER BY a DESC LIMIT 5";

fn watching() -> MachineHarness {
    let mut world = MachineHarness::new();
    world.machine.watch();
    world.server_sends(&encoded(0, &greeting()));
    world.client_sends(&encoded(1, &login(LOGIN_FLAGS)));
    world.server_sends(&encoded(2, OK));
    world
}

/// Some moment.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

fn sent(world: &mut MachineHarness, now: Instant) {
    world.machine.commands().unwrap().sent(now);
}

fn seen(world: &mut MachineHarness) -> Vec<(String, Instant, u64, bool)> {
    let seen = world.machine.commands().unwrap().take_watched_selects();
    let told = |seen: WatchedSelect| {
        let text = String::from_utf8(seen.text.to_vec()).unwrap();
        (text, seen.sent, seen.rows, seen.prepared)
    };
    seen.into_iter().map(told).collect()
}

#[test]
fn a_text_is_noted_with_its_rows_once_its_reply_has_ended() {
    let mut world = watching();
    let now = now();
    let later = now + Duration::from_secs(1);
    world.client_sends(&[query("SELECT 1"), query(FEED)].concat());
    sent(&mut world, now);
    world.client_sends(&query(FEED));
    sent(&mut world, later);
    assert_eq!(seen(&mut world), []);
    for _ in 0..3 {
        world.server_sends(&rows());
    }
    let noted = |at| (FEED.to_owned(), at, 1, false);
    assert_eq!(seen(&mut world), [noted(now), noted(later)]);
    assert_eq!(seen(&mut world), []);
    // The time of a failed one means nothing.
    world.client_sends(&query(FEED));
    sent(&mut world, now);
    world.server_sends(&encoded(1, ERR));
    assert_eq!(seen(&mut world), []);
}

#[test]
fn an_execution_is_noted_by_the_text_that_was_prepared() {
    let mut world = watching();
    let now = now();
    world.client_sends(&encoded(0, format!("\x16{FEED}").as_bytes()));
    sent(&mut world, now);
    let prepared = [
        encoded(1, b"\0\x07\0\0\0\x01\0\0\0\0\0\0"),
        encoded(2, b"\x03def\0\0\0\x01a\0\x0c\x2d\0\x04\0\0\0\xfd\0\0\0\0\0"),
    ];
    world.server_sends(&prepared.concat());
    for id in [7, 8] {
        world.client_sends(&encoded(0, &[0x17, id, 0, 0, 0, 0, 1, 0, 0, 0]));
        sent(&mut world, now);
        world.server_sends(&rows());
    }
    assert_eq!(seen(&mut world), [(FEED.to_owned(), now, 1, true)]);
}

#[test]
fn nothing_is_watched_without_a_consumer() {
    let mut world = MachineHarness::logged_in();
    world.client_sends(&query(FEED));
    sent(&mut world, now());
    world.server_sends(&rows());
    assert_eq!(seen(&mut world), []);
}
