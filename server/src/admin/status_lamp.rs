//! The page's status lamp: what answers now, why, and the statement that changes it.

use serde::Serialize;

use super::AdminState;
use super::health::{self, HealthStatus};
use crate::version;
use headwater_proxy::clock;

/// What answers now.
#[derive(Debug, Serialize)]
pub(super) struct StatusLamp {
    /// `memory`, `lookups`, `relaying`, or `away` if the server does not answer.
    state: &'static str,
    /// One of a fixed set; empty if memory answers.
    reason: &'static str,
    /// For people.
    text: String,
    /// A statement to run on the server, or a setting.
    cure: Option<String>,
    /// Whether a new client can log in.
    ready: bool,
    version: &'static str,
    upstream: String,
    seconds: u64,
}

/// Computes the current status.
pub(super) async fn status_lamp(state: &AdminState) -> StatusLamp {
    let context = &state.context;
    let ready = health::readiness(state).await;
    let (light, reason, text, cure) = match (&ready, health::acceleration(context).await) {
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
        upstream: context.upstreams.address_list().to_owned(),
        seconds: clock::since(context.shared().started_at).as_secs(),
    }
}

/// Without memory, lookups answer the definitions whose check passed; everything else is relayed.
fn fallback_state(state: &AdminState) -> &'static str {
    let shared = &state.context.shared();
    match shared.accelerate && health::serves_calls(shared) {
        true => "lookups",
        false => "relaying",
    }
}

fn cure(state: &AdminState, reason: &str) -> Option<String> {
    let binlog = state.context.shared().binlog.clone();
    let remedy = match reason {
        "switched_off" => "accelerate = true",
        "no_service_account" => "headwater check --upstream HOST:PORT --service-user NAME",
        "no_memory" => "index.memory_bytes = 268435456",
        "nothing_served" => "headwater check",
        _ => return binlog.and_then(|binlog| binlog.suspension())?.cure,
    };
    Some(remedy.to_owned())
}
