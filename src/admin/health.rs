//! Whether Headwater is well: by asking, and not by what was so a while ago.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::{AdminContext, AdminState};
use crate::account::SelectedServer;
use crate::clock;
use crate::server::{greet, has_tls, try_tls};
use crate::session::shared_state::SharedState;

/// What of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HealthStatus {
    Healthy(&'static str),
    Unhealthy {
        /// One of few words, for those who count.
        reason: &'static str,
        /// For people, with the way out.
        text: String,
    },
}

impl HealthStatus {
    fn unhealthy(reason: &'static str, text: impl Into<String>) -> HealthStatus {
        HealthStatus::Unhealthy {
            reason,
            text: text.into(),
        }
    }
}

/// What the server said last, so that many askers do not ask it each.
#[derive(Debug, Default)]
pub(super) struct ReachabilityCache(Mutex<Option<(Instant, Option<LoginFault>)>>);

/// Why no client can log in to the server.
#[derive(Clone, Debug)]
pub(super) enum LoginFault {
    /// It does not answer.
    Unreachable(String),
    /// There is no TLS with it, which the settings want.
    NoTls(String),
}

/// An answer of the server's counts so long.
const FAULT_TTL: Duration = Duration::from_millis(500);
/// The server has to greet within it.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

impl ReachabilityCache {
    /// `None`: clients can log in, as far as that can be known without one.
    pub(super) async fn fault(&self, seen: &AdminContext) -> Option<LoginFault> {
        let mut last = self.0.lock().await;
        if let Some((at, fault)) = &*last
            && clock::since(*at) < FAULT_TTL
        {
            return fault.clone();
        }
        let limit = GREETING_TIMEOUT.min(Duration::from_millis(seen.shared().limits.connect_ms));
        let fault = match seen.upstreams.target().select() {
            Some(aim) => match greet(aim.server.address(), limit).await {
                Ok(greeting) => tls_fault(seen, &aim, has_tls(&greeting), limit).await,
                Err(error) => Some(LoginFault::Unreachable(error.to_string())),
            },
            None => Some(LoginFault::Unreachable(
                "none of them is the primary".to_owned(),
            )),
        };
        *last = Some((clock::now(), fault.clone()));
        fault
    }
}

/// Where every session needs TLS to the server, it is tried.
async fn tls_fault(
    seen: &AdminContext,
    aim: &SelectedServer,
    server_has: bool,
    limit: Duration,
) -> Option<LoginFault> {
    let legs = seen.shared().transport.session_policy.tls;
    if !legs.requires_server_tls() {
        return None;
    }
    if let Some(void) = legs.voided_settings(server_has) {
        return Some(LoginFault::NoTls(void.to_owned()));
    }
    let (address, connector) = (aim.server.address(), aim.server.connector());
    let error = try_tls(address, connector, limit).await.err()?;
    Some(LoginFault::NoTls(format!(
        "TLS with the server at {address} fails (upstream_tls.mode = {}), so that no client can log in: {error}. Look at upstream_tls.ca and \
         upstream_tls.name, and at the certificate that the server shows",
        connector.mode
    )))
}

/// Whether a client that comes now can log in.
pub(super) async fn readiness(state: &AdminState) -> HealthStatus {
    let seen = &state.context;
    if seen.draining.is_given() {
        return HealthStatus::unhealthy(
            "draining",
            "Headwater takes no more clients: it is being stopped",
        );
    }
    let (room, most) = seen.shared().session_permits.clone();
    if room.available_permits() == 0 {
        return HealthStatus::unhealthy(
            "full",
            format!(
                "there are {most} sessions already: raise limits.sessions, or have the app close connections"
            ),
        );
    }
    match state.reachable.fault(seen).await {
        None => HealthStatus::Healthy("ready"),
        Some(LoginFault::NoTls(text)) => HealthStatus::unhealthy("no_tls", text),
        Some(LoginFault::Unreachable(error)) => HealthStatus::unhealthy(
            "server_away",
            format!(
                "the server at {} does not answer: {error}",
                seen.upstreams.address_list()
            ),
        ),
    }
}

/// Whether calls and feeds are answered from memory, by a proof that is begun now.
pub(super) async fn acceleration(seen: &AdminContext) -> HealthStatus {
    let shared = &seen.shared();
    if !shared.accelerate {
        return HealthStatus::unhealthy("switched_off", "accelerate = false, or --relay-only");
    }
    if shared.catalogue.service.is_none() {
        return HealthStatus::unhealthy(
            "no_service_account",
            "nothing is answered from memory: set service.user, see docs/service-account.md",
        );
    }
    let Some(binlog) = &shared.binlog else {
        return HealthStatus::unhealthy(
            "no_memory",
            "nothing is answered from memory: set index.memory_bytes above 0",
        );
    };
    if let Some(aside) = binlog.suspension() {
        return HealthStatus::unhealthy(aside.reason, aside.text);
    }
    if !serves_anything(seen) {
        return HealthStatus::unhealthy(
            "nothing_served",
            "no definition and no feed is answered from memory on this server: `headwater check` says why",
        );
    }
    let binlog = Arc::clone(binlog);
    let proved = seen
        .runtime
        .spawn(async move { binlog.prove_freshness_now().await });
    match proved.await {
        Ok(true) => HealthStatus::Healthy("accelerating"),
        _ => HealthStatus::unhealthy(
            "not_proved",
            "whether memory is up to date could not be proved within freshness.wait_ms: look at the log, at the server's load and long transactions; \
             `headwater check` names rights that are missing",
        ),
    }
}

/// True where a definition is answered in some database, or a feed is served.
fn serves_anything(seen: &AdminContext) -> bool {
    let shared = &seen.shared();
    let feeds = || {
        shared
            .feeds
            .as_ref()
            .is_some_and(|feeds| feeds.serves_any())
    };
    serves_calls(shared) || feeds()
}

/// True where a definition is answered in some database.
pub(super) fn serves_calls(shared: &SharedState) -> bool {
    let distrusted = |definition| {
        shared
            .shadow
            .as_ref()
            .is_some_and(|shadow| shadow.distrusts(definition))
    };
    let mut answered = shared.catalogue.accelerated().into_iter();
    answered.any(|definition| !distrusted(definition))
}
