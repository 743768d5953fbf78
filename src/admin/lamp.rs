//! The page's lamp: who answers now, why, and the statement that changes it.

use serde::Serialize;

use super::State;
use super::health::{self, Health};
use crate::clock;
use crate::version;

/// How Headwater answers now.
#[derive(Debug, Serialize)]
pub(super) struct Lamp {
    /// `memory`, `lookups`, `relaying`, or `away` where the server does not answer.
    state: &'static str,
    /// One of few words; empty where memory answers.
    reason: &'static str,
    /// For people.
    text: String,
    /// What to run on the server, or to set.
    cure: Option<String>,
    /// Whether a client that comes now can log in.
    ready: bool,
    version: &'static str,
    upstream: String,
    seconds: u64,
}

/// As it is now.
pub(super) async fn lamp(state: &State) -> Lamp {
    let seen = &state.seen;
    let ready = health::ready(state).await;
    let (light, reason, text, cure) = match (&ready, health::accelerating(seen).await) {
        (
            Health::Not {
                reason: reason @ ("server_away" | "no_tls"),
                text,
            },
            _,
        ) => ("away", *reason, text.clone(), None),
        (_, Health::Well(_)) => match ready {
            Health::Not { reason, ref text } => ("memory", reason, text.clone(), None),
            Health::Well(_) => (
                "memory",
                "",
                "memory is up to date with the server's log, as was proved just now".to_owned(),
                None,
            ),
        },
        (_, Health::Not { reason, text }) => {
            (without_memory(state), reason, text, cure(state, reason))
        }
    };
    Lamp {
        state: light,
        reason,
        text,
        cure,
        ready: matches!(ready, Health::Well(_)),
        version: version::NUMBER,
        upstream: seen.upstreams.shown().to_owned(),
        seconds: clock::since(seen.shared().begun).as_secs(),
    }
}

/// Lookups answer where a definition was found to be as known, and nothing else does without memory.
fn without_memory(state: &State) -> &'static str {
    let shared = &state.seen.shared();
    match shared.accelerate && health::calls_are_answered(shared) {
        true => "lookups",
        false => "relaying",
    }
}

fn cure(state: &State, reason: &str) -> Option<String> {
    let binlog = state.seen.shared().binlog.clone();
    let told = match reason {
        "switched_off" => "accelerate = true",
        "no_service_account" => "headwater check --upstream HOST:PORT --service-user NAME",
        "no_memory" => "index.memory_bytes = 268435456",
        "nothing_served" => "headwater check",
        _ => return binlog.and_then(|binlog| binlog.aside())?.cure,
    };
    Some(told.to_owned())
}
