//! TLS begins on one leg of a session, or on both.

use std::io;
use std::time::Duration;

use super::legs::refusal;
use super::state::{Ended, Session};
use super::who::log_in;

impl Session {
    /// Forgets the client's request of so many bytes, and begins TLS: with the client, and with a server that is asked for it by
    /// this packet.
    pub(super) async fn secure(
        &mut self,
        length: usize,
        client: bool,
        server: Option<&[u8]>,
    ) -> Result<(), Ended> {
        let limit = Duration::from_millis(self.shared.limits.connect_ms);
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        if client {
            self.client_in.drain(..length);
            let begun = std::mem::take(&mut self.client_in);
            let done = tokio::time::timeout(limit, self.accept(&begun)).await;
            if let Err(error) = done.map_err(late).and_then(|done| done) {
                log_in!(self.span(), DEBUG, "no TLS with a client: {error}");
                return Err(Ended::Client);
            }
        }
        let Some(request) = server else {
            return Ok(());
        };
        let done = tokio::time::timeout(limit, self.connect(request)).await;
        let Err(error) = done.map_err(late).and_then(|done| done) else {
            return Ok(());
        };
        log_in!(
            self.span(),
            WARN,
            "no TLS with the server (upstream_tls): {error}"
        );
        let mode = self.aim.server.connector().mode;
        let why = format!(
            "TLS with the server behind Headwater failed (upstream_tls.mode = {mode}): {error}"
        );
        // Behind the login, which a client with TLS is about to send.
        let seq = if client { 3 } else { 2 };
        self.tell_client(&refusal(seq, &why))?;
        Err(Ended::Refused)
    }

    async fn accept(&mut self, begun: &[u8]) -> io::Result<()> {
        let acceptor = self.shared.transport.acceptor.as_ref();
        let config = acceptor.ok_or_else(|| io::Error::other("there is no certificate"))?;
        self.client.accept_tls(config.config(), begun).await
    }

    async fn connect(&mut self, request: &[u8]) -> io::Result<()> {
        let connector = self.aim.server.connector();
        let link = &mut self.backend.link;
        link.send_all(request).await?;
        let config = std::sync::Arc::clone(&connector.config);
        link.connect_tls(config, connector.name.clone()).await
    }
}
