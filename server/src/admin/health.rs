//! Health checks: by a probe at the time of the request, not by an earlier state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::{AdminContext, AdminState};
use headwater_proxy::account::SelectedServer;
use headwater_proxy::account::greeting::{greet, has_tls, try_tls};
use headwater_proxy::clock;
use headwater_proxy::session::shared_state::SharedState;

/// The result of a health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HealthStatus {
    Healthy(&'static str),
    Unhealthy {
        /// One of a fixed set, for metrics.
        reason: &'static str,
        /// For people, with the remedy.
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

/// The last result of probing the server, so that many requests share one probe.
#[derive(Debug, Default)]
pub(super) struct ReachabilityCache(Mutex<Option<(Instant, Option<LoginFault>)>>);

/// Why clients cannot log in to the server.
#[derive(Clone, Debug)]
pub(super) enum LoginFault {
    /// The server does not answer.
    Unreachable(String),
    /// TLS with the server fails, and the settings require it.
    NoTls(String),
}

/// Time for which a probe's result is reused.
const FAULT_TTL: Duration = Duration::from_millis(500);
/// Time in which the server has to send its greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

impl ReachabilityCache {
    /// `None`: clients can log in, as far as a probe without a client can know.
    pub(super) async fn fault(&self, context: &AdminContext) -> Option<LoginFault> {
        let mut last = self.0.lock().await;
        if let Some((at, fault)) = &*last
            && clock::since(*at) < FAULT_TTL
        {
            return fault.clone();
        }
        let limit = GREETING_TIMEOUT.min(Duration::from_millis(context.shared().limits.connect_ms));
        let fault = match context.upstreams.target().select() {
            Some(aim) => match greet(aim.server.address(), limit).await {
                Ok(greeting) => tls_fault(context, &aim, has_tls(&greeting), limit).await,
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

/// Tries TLS with the server, where every session needs it.
async fn tls_fault(
    context: &AdminContext,
    aim: &SelectedServer,
    server_has: bool,
    limit: Duration,
) -> Option<LoginFault> {
    let legs = context.shared().transport.session_policy.tls;
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

/// Whether a new client can log in.
pub(super) async fn readiness(state: &AdminState) -> HealthStatus {
    let context = &state.context;
    if context.draining.is_given() {
        return HealthStatus::unhealthy(
            "draining",
            "Headwater takes no more clients: it is being stopped",
        );
    }
    let (room, most) = context.shared().session_permits.clone();
    if room.available_permits() == 0 {
        return HealthStatus::unhealthy(
            "full",
            format!(
                "there are {most} sessions already: raise limits.sessions, or have the app close connections"
            ),
        );
    }
    match state.reachable.fault(context).await {
        None => HealthStatus::Healthy("ready"),
        Some(LoginFault::NoTls(text)) => HealthStatus::unhealthy("no_tls", text),
        Some(LoginFault::Unreachable(error)) => HealthStatus::unhealthy(
            "server_away",
            format!(
                "the server at {} does not answer: {error}",
                context.upstreams.address_list()
            ),
        ),
    }
}

/// Whether calls and feeds are answered from memory; requests a new freshness proof.
pub(super) async fn acceleration(context: &AdminContext) -> HealthStatus {
    let shared = &context.shared();
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
    if let Some(suspension) = binlog.suspension() {
        return HealthStatus::unhealthy(suspension.reason, suspension.text);
    }
    if !serves_anything(context) {
        return HealthStatus::unhealthy(
            "nothing_served",
            "no definition and no feed is answered from memory on this server: `headwater check` says why",
        );
    }
    let binlog = Arc::clone(binlog);
    let proved = context
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

/// True if a definition is answered in some database, or a feed is served.
fn serves_anything(context: &AdminContext) -> bool {
    let shared = &context.shared();
    let feeds = || {
        shared
            .feeds
            .as_ref()
            .is_some_and(|feeds| feeds.serves_any())
    };
    serves_calls(shared) || feeds()
}

/// True if a definition is answered in some database.
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
