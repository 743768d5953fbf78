//! What stories are told with: real servers, a client that hides nothing, Headwater as a process.
// Each story takes the part it needs.
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

/// How much a story is to try: as an environment variable says, or enough for a test.
pub(crate) fn how_many(variable: &str, enough: u64) -> u64 {
    let set = std::env::var(variable);
    set.ok().and_then(|set| set.parse().ok()).unwrap_or(enough)
}

/// A pause of a wait that began then: the longer that lasts, the seldomer it is looked, and the more is left to those who are waited for.
pub(crate) fn pause_since(begun: std::time::Instant) {
    let most = std::time::Duration::from_millis(30);
    std::thread::sleep((begun.elapsed() / 10).min(most));
}

/// Until when a story waits for what has to come: what never comes fails it, and no machine is too busy for it.
pub(crate) fn patience() -> std::time::Instant {
    std::time::Instant::now() + std::time::Duration::from_secs(180)
}
