//! Whether Headwater is well: by asking, and not by what was so a while ago.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::{Seen, State};
use crate::account::Aim;
use crate::clock;
use crate::server::{greet, has_tls, try_tls};
use crate::session::shared::Shared;

/// What of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Well(&'static str),
    Not {
        /// One of few words, for those who count.
        reason: &'static str,
        /// For people, with the way out.
        text: String,
    },
}

impl Health {
    fn not(reason: &'static str, text: impl Into<String>) -> Health {
        Health::Not {
            reason,
            text: text.into(),
        }
    }
}

/// What the server said last, so that many askers do not ask it each.
#[derive(Debug, Default)]
pub(super) struct Reachable(Mutex<Option<(Instant, Option<Fault>)>>);

/// Why no client can log in to the server.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// It does not answer.
    Away(String),
    /// There is no TLS with it, which the settings want.
    NoTls(String),
}

/// An answer of the server's counts so long.
const LASTS: Duration = Duration::from_millis(500);
/// The server has to greet within it.
const GREETS: Duration = Duration::from_secs(2);

impl Reachable {
    /// `None`: clients can log in, as far as that can be known without one.
    pub(super) async fn fault(&self, seen: &Seen) -> Option<Fault> {
        let mut last = self.0.lock().await;
        if let Some((at, fault)) = &*last
            && clock::since(*at) < LASTS
        {
            return fault.clone();
        }
        let limit = GREETS.min(Duration::from_millis(seen.shared().limits.connect_ms));
        let fault = match seen.upstreams.target().aim() {
            Some(aim) => match greet(aim.server.address(), limit).await {
                Ok(greeting) => tls_fault(seen, &aim, has_tls(&greeting), limit).await,
                Err(error) => Some(Fault::Away(error.to_string())),
            },
            None => Some(Fault::Away("none of them is the primary".to_owned())),
        };
        *last = Some((clock::now(), fault.clone()));
        fault
    }
}

/// Where every session needs TLS to the server, it is tried.
async fn tls_fault(seen: &Seen, aim: &Aim, server_has: bool, limit: Duration) -> Option<Fault> {
    let legs = seen.shared().transport.ways.legs;
    if !legs.need_servers_tls() {
        return None;
    }
    if let Some(void) = legs.void(server_has) {
        return Some(Fault::NoTls(void.to_owned()));
    }
    let (address, connector) = (aim.server.address(), aim.server.connector());
    let error = try_tls(address, connector, limit).await.err()?;
    Some(Fault::NoTls(format!(
        "TLS with the server at {address} fails (upstream_tls.mode = {}), so that no client can log in: {error}. Look at upstream_tls.ca and \
         upstream_tls.name, and at the certificate that the server shows",
        connector.mode
    )))
}

/// Whether a client that comes now can log in.
pub(super) async fn ready(state: &State) -> Health {
    let seen = &state.seen;
    if seen.draining.is_given() {
        return Health::not(
            "draining",
            "Headwater takes no more clients: it is being stopped",
        );
    }
    let (room, most) = seen.shared().room.clone();
    if room.available_permits() == 0 {
        return Health::not(
            "full",
            format!(
                "there are {most} sessions already: raise limits.sessions, or have the app close connections"
            ),
        );
    }
    match state.reachable.fault(seen).await {
        None => Health::Well("ready"),
        Some(Fault::NoTls(text)) => Health::not("no_tls", text),
        Some(Fault::Away(error)) => Health::not(
            "server_away",
            format!(
                "the server at {} does not answer: {error}",
                seen.upstreams.shown()
            ),
        ),
    }
}

/// Whether calls and feeds are answered from memory, by a proof that is begun now.
pub(super) async fn accelerating(seen: &Seen) -> Health {
    let shared = &seen.shared();
    if !shared.accelerate {
        return Health::not("switched_off", "accelerate = false, or --relay-only");
    }
    if shared.catalogue.service.is_none() {
        return Health::not(
            "no_service_account",
            "nothing is answered from memory: set service.user, see docs/service-account.md",
        );
    }
    let Some(binlog) = &shared.binlog else {
        return Health::not(
            "no_memory",
            "nothing is answered from memory: set index.memory_bytes above 0",
        );
    };
    if let Some(aside) = binlog.aside() {
        return Health::not(aside.reason, aside.text);
    }
    if !serves(seen) {
        return Health::not(
            "nothing_served",
            "no definition and no feed is answered from memory on this server: `headwater check` says why",
        );
    }
    let binlog = Arc::clone(binlog);
    let proved = seen
        .runtime
        .spawn(async move { binlog.is_fresh_now().await });
    match proved.await {
        Ok(true) => Health::Well("accelerating"),
        _ => Health::not(
            "not_proved",
            "whether memory is up to date could not be proved within freshness.wait_ms: look at the log, at the server's load and long transactions; \
             `headwater check` names rights that are missing",
        ),
    }
}

/// True where a definition is answered in some database, or a feed is served.
fn serves(seen: &Seen) -> bool {
    let shared = &seen.shared();
    let feeds = || shared.feeds.as_ref().is_some_and(|feeds| feeds.serve_any());
    calls_are_answered(shared) || feeds()
}

/// True where a definition is answered in some database.
pub(super) fn calls_are_answered(shared: &Shared) -> bool {
    let distrusted = |definition| {
        shared
            .shadow
            .as_ref()
            .is_some_and(|shadow| shadow.distrusts(definition))
    };
    let mut answered = shared.catalogue.accelerated().into_iter();
    answered.any(|definition| !distrusted(definition))
}
