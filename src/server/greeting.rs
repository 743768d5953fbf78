//! Which server it is, by its greeting.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::account::Aim;
use crate::account::login::{Login, response};
use crate::backend::Backend;
use crate::session::shared::Shared;
use crate::tls::{Acceptor, Connector, is_disagreement};
use crate::upstreams::Entry;
use crate::wire::capability::Capabilities;
use crate::wire::frame;
use crate::wire::handshake::{Greeting, login_with, ssl_request};

/// Says which server it is and what of the settings it makes void, or that there is none.
pub(super) async fn introduce(entry: &Entry, shared: &Shared) {
    let limit = Duration::from_millis(shared.limits.connect_ms);
    let Some(aim) = entry.target.aim_within(limit).await else {
        return tracing::warn!(
            "none of the servers {} is the primary yet (--upstream, HEADWATER_UPSTREAM, upstream)",
            entry.upstreams.shown()
        );
    };
    let upstream = aim.server.address();
    match greet(upstream, limit).await {
        Ok(greeting) => {
            tracing::info!("in front of {} at {upstream}", named(&greeting));
            if let Some(void) = shared.transport.ways.legs.void(has_tls(&greeting)) {
                tracing::warn!("{void}");
            }
            if has_tls(&greeting) {
                offer_own(&aim, shared, limit).await;
            }
        }
        Err(error) => tracing::warn!(
            "the server at {} cannot be reached yet: {error} (--upstream, HEADWATER_UPSTREAM, upstream)",
            upstream
        ),
    }
}

/// Says that clients are offered TLS by a certificate that nobody asked for; or takes it back, where the server's side cannot have TLS.
async fn offer_own(aim: &Aim, shared: &Shared, limit: Duration) {
    let transport = &shared.transport;
    let Some(own) = transport.acceptor.as_ref().and_then(Acceptor::own) else {
        return;
    };
    let server = &aim.server;
    match try_tls(server.address(), server.connector(), limit).await {
        Err(error)
            if is_disagreement(&error) && transport.ways.legs.are_free() && own.withdraw() =>
        {
            tracing::warn!(
                "no TLS with the server (upstream_tls): {error}; {}",
                own.withdrawal()
            );
        }
        Err(error) => tracing::warn!("no TLS with the server (upstream_tls): {error}"),
        Ok(()) => tracing::info!(
            "clients are offered TLS by a certificate that Headwater has made, {}. Those who verify it need another one (tls.cert, tls.key)",
            own.told()
        ),
    }
}

/// Whether TLS with a server begins, as with a client's sessions.
pub(crate) async fn try_tls(
    upstream: &str,
    connector: &Connector,
    limit: Duration,
) -> io::Result<()> {
    let mut backend = Backend::dial(upstream, limit).await?;
    let tried = async {
        let greeting = greeting_of(&mut backend).await?;
        if !has_tls(&greeting) {
            return Err(io::Error::other("the server offers no TLS"));
        }
        let nobody = Login {
            user: "",
            password: "",
            database: None,
        };
        let (response, _) = response(&greeting, &nobody);
        let ssl = Capabilities::SSL;
        let request = ssl_request(
            &login_with(&response, ssl, ssl),
            Capabilities::NONE,
            Capabilities::NONE,
        );
        let mut packet = Vec::new();
        frame::encode(1, &request, &mut packet);
        backend.link.send_all(&packet).await?;
        let config = Arc::clone(&connector.config);
        backend
            .link
            .connect_tls(config, connector.name.clone())
            .await
    };
    let tried = tokio::time::timeout(limit, tried).await;
    tried.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// True for a server that has TLS.
pub(crate) fn has_tls(greeting: &Greeting) -> bool {
    greeting.capabilities.contains(Capabilities::SSL)
}

/// Product and version of a server.
pub(crate) fn named(greeting: &Greeting) -> String {
    let product = if greeting.is_mariadb() {
        "MariaDB"
    } else {
        "MySQL"
    };
    let version = String::from_utf8_lossy(&greeting.server_version);
    format!("{product} {}", version.trim_start_matches("5.5.5-"))
}

/// Reads a server's greeting, to know it by name.
pub(crate) async fn greet(upstream: &str, limit: Duration) -> io::Result<Greeting> {
    let mut backend = Backend::dial(upstream, limit).await?;
    let greeted = tokio::time::timeout(limit, greeting_of(&mut backend)).await;
    greeted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

async fn greeting_of(backend: &mut Backend) -> io::Result<Greeting> {
    loop {
        if let Some(payload) = frame::whole(&backend.inbox) {
            return Greeting::parse(payload).map_err(io::Error::other);
        }
        backend.fill().await?;
    }
}
