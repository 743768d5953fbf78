//! What tests use: real servers, a client that hides nothing, Headwater as a process.
// Each test uses only a part of the kit.
#![allow(dead_code)]

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
pub(crate) fn pause_since(begun: std::time::Instant) {
    let most = std::time::Duration::from_millis(30);
    std::thread::sleep((begun.elapsed() / 10).min(most));
}

/// The deadline of a wait. It is generous, so that a busy machine does not fail a test.
pub(crate) fn patience() -> std::time::Instant {
    std::time::Instant::now() + std::time::Duration::from_secs(180)
}
