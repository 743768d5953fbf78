//! Which server it is, by its greeting.

use std::io;
use std::time::Duration;

use crate::backend::Backend;
use crate::session::shared::Shared;
use crate::upstreams::Entry;
use crate::wire::capability::Capabilities;
use crate::wire::frame;
use crate::wire::handshake::Greeting;

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
        }
        Err(error) => tracing::warn!(
            "the server at {} cannot be reached yet: {error} (--upstream, HEADWATER_UPSTREAM, upstream)",
            upstream
        ),
    }
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
    tokio::time::timeout(limit, async {
        loop {
            if let Some(payload) = frame::whole(&backend.inbox) {
                return Greeting::parse(payload).map_err(io::Error::other);
            }
            backend.fill().await?;
        }
    })
    .await
    .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
