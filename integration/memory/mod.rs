//! Answers from memory are never stale and never ahead, whatever happens to the server and its log.

mod contradictions;
mod crash;
mod definers;
mod drift;
mod failover;
mod faults;
mod filling;
mod freshness;
mod gap;
mod kept_linear;
mod kept_tails;
pub(crate) mod linear;
mod long_events;
mod long_statements;
mod negative;
mod redefinitions;
mod rights;
mod scene;
mod service;
mod shadow;
mod snapshot;
mod spellings;
pub(crate) mod stage;
mod statements;
mod topology;
mod two_phase;
mod unheard;
pub(crate) mod world;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::kit::database::classic_on;
use crate::kit::patience;
use crate::kit::proxy::Proxy;
use crate::kit::wire_client::{Login, WireClient};

/// The database of a test with its own server.
pub(crate) const CLASSIC: &str = "tl";

/// Creates the classic tables and procedures on a test's own server.
pub(crate) fn prepare(server: SocketAddr) -> Login {
    classic_on(server, CLASSIC)
}

/// Calls until a comparison reports a different answer from memory: answers from elsewhere are not compared.
#[track_caller]
pub(crate) fn call_until_it_differs(proxy: &Proxy, client: &mut WireClient, call: &str) {
    let deadline = patience();
    while !proxy
        .log()
        .contains("was answered otherwise than by the procedure")
    {
        assert!(Instant::now() < deadline, "{}", proxy.log());
        client.ok(call);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Calls until an answer comes from memory.
#[track_caller]
pub(crate) fn warm(proxy: &Proxy, client: &mut WireClient, call: &str) {
    let deadline = patience();
    let before = proxy.counts().of("calls_from_memory");
    while proxy.counts().of("calls_from_memory") == before {
        assert!(
            Instant::now() < deadline,
            "nothing from memory:\n{}",
            proxy.log()
        );
        client.ok(call);
        std::thread::sleep(Duration::from_millis(10));
    }
}
