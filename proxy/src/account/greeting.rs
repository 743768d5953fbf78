//! The greeting of a server, read without a login: its product and version, and whether TLS with it succeeds.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::login::{LoginCredentials, handshake_response};
use crate::backend::BackendConnection;
use crate::tls::TlsConnector;
use headwater_wire::capability::Capabilities;
use headwater_wire::handshake::{ServerGreeting, login_with_flags, ssl_request};
use headwater_wire::packet;

/// Connects, and reads the server's greeting.
pub async fn greet(upstream: &str, limit: Duration) -> io::Result<ServerGreeting> {
    let mut backend = BackendConnection::dial(upstream, limit).await?;
    let greeted = tokio::time::timeout(limit, read_greeting(&mut backend)).await;
    greeted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Tries a TLS handshake with a server, as a session makes it.
pub async fn try_tls(upstream: &str, connector: &TlsConnector, limit: Duration) -> io::Result<()> {
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
pub fn has_tls(greeting: &ServerGreeting) -> bool {
    greeting.capabilities.contains(Capabilities::SSL)
}

/// Product and version of a server.
pub fn product_version(greeting: &ServerGreeting) -> String {
    let product = if greeting.is_mariadb() {
        "MariaDB"
    } else {
        "MySQL"
    };
    let version = String::from_utf8_lossy(&greeting.server_version);
    format!("{product} {}", version.trim_start_matches("5.5.5-"))
}

async fn read_greeting(backend: &mut BackendConnection) -> io::Result<ServerGreeting> {
    loop {
        if let Some(payload) = packet::complete_payload(&backend.inbox) {
            return ServerGreeting::parse(payload).map_err(io::Error::other);
        }
        backend.fill().await?;
    }
}
