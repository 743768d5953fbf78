//! What tests use: real servers, a client that hides nothing, Headwater as a process.
// Each test uses only a part of the kit.
#![allow(dead_code)]

use std::thread;
use std::time::{Duration, Instant};

pub(crate) mod browser;
pub(crate) mod certificates;
pub(crate) mod cluster;
pub(crate) mod database;
pub(crate) mod fake_replica;
pub(crate) mod haproxy;
pub(crate) mod machine;
pub(crate) mod peer;
pub(crate) mod proxy;
pub(crate) mod quota;
pub(crate) mod random;
pub(crate) mod relay;
pub(crate) mod replica;
pub(crate) mod semi_sync;
pub(crate) mod servers;
pub(crate) mod spider;
mod stories;
pub(crate) mod threads;
pub(crate) mod timeline;
pub(crate) mod twin;
pub(crate) mod wire_client;

/// The size of a test: the value of an environment variable, or else the default.
pub(crate) fn how_many(variable: &str, enough: u64) -> u64 {
    let set = std::env::var(variable);
    set.ok().and_then(|set| set.parse().ok()).unwrap_or(enough)
}

/// Sleeps between two polls. The pause grows with the time since `begun`, so that polling does not slow the awaited work.
pub(crate) fn pause_since(begun: Instant) {
    let most = Duration::from_millis(30);
    thread::sleep((begun.elapsed() / 10).min(most));
}

/// The deadline of a wait. It is generous, so that a busy machine does not fail a test.
pub(crate) fn patience() -> Instant {
    Instant::now() + Duration::from_secs(180)
}

/// Waits until this holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = patience();
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        // InnoDB renews the list of open transactions only after a pause in its reads.
        thread::sleep(Duration::from_millis(150));
    }
}
