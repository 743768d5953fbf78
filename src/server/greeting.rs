//! The server's version and product, from its greeting.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::account::SelectedServer;
use crate::account::login::{LoginCredentials, handshake_response};
use crate::backend::BackendConnection;
use crate::session::shared_state::SharedState;
use crate::tls::{TlsAcceptor, TlsConnector, is_disagreement};
use crate::upstreams::ListenerRoute;
use crate::wire::capability::Capabilities;
use crate::wire::handshake::{ServerGreeting, login_with_flags, ssl_request};
use crate::wire::packet;

/// Logs the server's version and the settings that it makes void, or that no server answers.
pub(super) async fn announce_server(entry: &ListenerRoute, shared: &SharedState) {
    let limit = Duration::from_millis(shared.limits.connect_ms);
    let Some(aim) = entry.target.select_within(limit).await else {
        return tracing::warn!(
            "none of the servers {} is the primary yet (--upstream, HEADWATER_UPSTREAM, upstream)",
            entry.upstreams.address_list()
        );
    };
    let upstream = aim.server.address();
    match greet(upstream, limit).await {
        Ok(greeting) => {
            tracing::info!("in front of {} at {upstream}", product_version(&greeting));
            if let Some(void) = shared
                .transport
                .session_policy
                .tls
                .voided_settings(has_tls(&greeting))
            {
                tracing::warn!("{void}");
            }
            if has_tls(&greeting) {
                announce_generated_certificate(&aim, shared, limit).await;
            }
        }
        Err(error) => tracing::warn!(
            "the server at {} cannot be reached yet: {error} (--upstream, HEADWATER_UPSTREAM, upstream)",
            upstream
        ),
    }
}

/// Logs that clients are offered TLS by a generated certificate; withdraws it if the server's side cannot have TLS.
async fn announce_generated_certificate(
    aim: &SelectedServer,
    shared: &SharedState,
    limit: Duration,
) {
    let transport = &shared.transport;
    let Some(certificate) = transport.acceptor.as_ref().and_then(TlsAcceptor::generated) else {
        return;
    };
    let server = &aim.server;
    match try_tls(server.address(), server.connector(), limit).await {
        Err(error)
            if is_disagreement(&error)
                && transport.session_policy.tls.is_optional()
                && certificate.withdraw() =>
        {
            tracing::warn!(
                "no TLS with the server (upstream_tls): {error}; {}",
                certificate.withdrawal()
            );
        }
        Err(error) => tracing::warn!("no TLS with the server (upstream_tls): {error}"),
        Ok(()) => tracing::info!(
            "clients are offered TLS by a certificate that Headwater has made, {}. Those who verify it need another one (tls.cert, tls.key)",
            certificate.location_text()
        ),
    }
}

/// Tries a TLS handshake with a server, as a session makes it.
pub(crate) async fn try_tls(
    upstream: &str,
    connector: &TlsConnector,
    limit: Duration,
) -> io::Result<()> {
    let mut backend = BackendConnection::dial(upstream, limit).await?;
    let tried = async {
        let greeting = read_greeting(&mut backend).await?;
        if !has_tls(&greeting) {
            return Err(io::Error::other("the server offers no TLS"));
        }
        let nobody = LoginCredentials {
            user: "",
            password: "",
            database: None,
        };
        let (response, _) = handshake_response(&greeting, &nobody);
        let ssl = Capabilities::SSL;
        let request = ssl_request(
            &login_with_flags(&response, ssl, ssl),
            Capabilities::NONE,
            Capabilities::NONE,
        );
        let mut packet = Vec::new();
        packet::encode(1, &request, &mut packet);
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

/// True if the server offers TLS.
pub(crate) fn has_tls(greeting: &ServerGreeting) -> bool {
    greeting.capabilities.contains(Capabilities::SSL)
}

/// Product and version of a server.
pub(crate) fn product_version(greeting: &ServerGreeting) -> String {
    let product = if greeting.is_mariadb() {
        "MariaDB"
    } else {
        "MySQL"
    };
    let version = String::from_utf8_lossy(&greeting.server_version);
    format!("{product} {}", version.trim_start_matches("5.5.5-"))
}

/// Connects, and reads the server's greeting.
pub(crate) async fn greet(upstream: &str, limit: Duration) -> io::Result<ServerGreeting> {
    let mut backend = BackendConnection::dial(upstream, limit).await?;
    let greeted = tokio::time::timeout(limit, read_greeting(&mut backend)).await;
    greeted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

async fn read_greeting(backend: &mut BackendConnection) -> io::Result<ServerGreeting> {
    loop {
        if let Some(payload) = packet::complete_payload(&backend.inbox) {
            return ServerGreeting::parse(payload).map_err(io::Error::other);
        }
        backend.fill().await?;
    }
}
