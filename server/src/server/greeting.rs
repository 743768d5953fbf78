//! What the log says at the start about the server, and about TLS with it.

use std::time::Duration;

use headwater_proxy::account::SelectedServer;
use headwater_proxy::account::greeting::{greet, has_tls, product_version, try_tls};
use headwater_proxy::session::shared_state::SharedState;
use headwater_proxy::tls::{TlsAcceptor, is_disagreement};
use headwater_proxy::upstreams::ListenerRoute;

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
