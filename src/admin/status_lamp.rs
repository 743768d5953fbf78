//! The page's lamp: who answers now, why, and the statement that changes it.

use serde::Serialize;

use super::AdminState;
use super::health::{self, HealthStatus};
use crate::clock;
use crate::version;

/// How Headwater answers now.
#[derive(Debug, Serialize)]
pub(super) struct StatusLamp {
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
pub(super) async fn status_lamp(state: &AdminState) -> StatusLamp {
    let seen = &state.context;
    let ready = health::readiness(state).await;
    let (light, reason, text, cure) = match (&ready, health::acceleration(seen).await) {
        (
            HealthStatus::Unhealthy {
                reason: reason @ ("server_away" | "no_tls"),
                text,
            },
            _,
        ) => ("away", *reason, text.clone(), None),
        (_, HealthStatus::Healthy(_)) => match ready {
            HealthStatus::Unhealthy { reason, ref text } => ("memory", reason, text.clone(), None),
            HealthStatus::Healthy(_) => (
                "memory",
                "",
                "memory is up to date with the server's log, as was proved just now".to_owned(),
                None,
            ),
        },
        (_, HealthStatus::Unhealthy { reason, text }) => {
            (fallback_state(state), reason, text, cure(state, reason))
        }
    };
    StatusLamp {
        state: light,
        reason,
        text,
        cure,
        ready: matches!(ready, HealthStatus::Healthy(_)),
        version: version::NUMBER,
        upstream: seen.upstreams.address_list().to_owned(),
        seconds: clock::since(seen.shared().started_at).as_secs(),
    }
}

/// Lookups answer where a definition was found to be as known, and nothing else does without memory.
fn fallback_state(state: &AdminState) -> &'static str {
    let shared = &state.context.shared();
    match shared.accelerate && health::serves_calls(shared) {
        true => "lookups",
        false => "relaying",
    }
}

fn cure(state: &AdminState, reason: &str) -> Option<String> {
    let binlog = state.context.shared().binlog.clone();
    let told = match reason {
        "switched_off" => "accelerate = true",
        "no_service_account" => "headwater check --upstream HOST:PORT --service-user NAME",
        "no_memory" => "index.memory_bytes = 268435456",
        "nothing_served" => "headwater check",
        _ => return binlog.and_then(|binlog| binlog.suspension())?.cure,
    };
    Some(told.to_owned())
}
