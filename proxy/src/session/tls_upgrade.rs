//! Starts TLS on one or both legs of a session.

use std::io;
use std::time::Duration;

use super::log_span::log_in;
use super::state::{Session, SessionEnd};
use crate::tls::{GeneratedCertificate, TlsAcceptor, is_disagreement};
use headwater_session::tls_policy::refusal;

impl Session {
    /// Consumes the client's SSL request of `length` bytes, and starts TLS with the client, and with the server if it is sent this request.
    pub(super) async fn upgrade_tls(
        &mut self,
        length: usize,
        client: bool,
        server: Option<&[u8]>,
    ) -> Result<(), SessionEnd> {
        let limit = Duration::from_millis(self.shared.limits.connect_ms);
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        if client {
            self.client_in.drain(..length);
            let begun = std::mem::take(&mut self.client_in);
            let done = tokio::time::timeout(limit, self.accept_tls(&begun)).await;
            if let Err(error) = done.map_err(late).and_then(|done| done) {
                log_in!(self.span(), DEBUG, "no TLS with a client: {error}");
                if is_refusal(&error) {
                    self.remember_refusal(&error.to_string());
                }
                return Err(SessionEnd::ClientLeft);
            }
        }
        let Some(request) = server else {
            return Ok(());
        };
        let done = tokio::time::timeout(limit, self.connect_tls(request)).await;
        let Err(error) = done.map_err(late).and_then(|done| done) else {
            return Ok(());
        };
        log_in!(
            self.span(),
            WARN,
            "no TLS with the server (upstream_tls): {error}"
        );
        if is_disagreement(&error)
            && let Some(certificate) = self.optional_certificate().filter(|own| own.withdraw())
        {
            tracing::warn!("{}", certificate.withdrawal());
        }
        let mode = self.aim.server.connector().mode;
        let why = format!(
            "TLS with the server behind Headwater failed (upstream_tls.mode = {mode}): {error}"
        );
        // After the login packet, which a client with TLS is about to send.
        let seq = if client { 3 } else { 2 };
        self.send_to_client(&refusal(seq, &why))?;
        Err(SessionEnd::Refused)
    }

    /// The generated certificate, if TLS is optional.
    fn optional_certificate(&self) -> Option<&GeneratedCertificate> {
        let transport = &self.shared.transport;
        let certificate = transport.acceptor.as_ref().and_then(TlsAcceptor::generated);
        certificate.filter(|_| transport.session_policy.tls.is_optional())
    }

    /// A client has rejected the generated certificate: clients of its address are served without TLS, as before there was one. A client
    /// that requires TLS then ends the login itself.
    pub(super) fn remember_refusal(&self, why: &str) {
        let (Some(certificate), Some(source)) = (self.optional_certificate(), self.source) else {
            return;
        };
        if certificate.record_refusal(source.ip()) {
            log_in!(
                self.span(),
                WARN,
                "a client turned down the certificate that Headwater made ({why}): clients of its address are offered no TLS from here on, \
                 until settings are read again. Show clients a certificate that they trust (tls.cert, tls.key), or set tls.own = false"
            );
        }
    }

    async fn accept_tls(&mut self, begun: &[u8]) -> io::Result<()> {
        let acceptor = self.shared.transport.acceptor.as_ref();
        let config = acceptor.ok_or_else(|| io::Error::other("there is no certificate"))?;
        self.client.accept_tls(config.config(), begun).await
    }

    async fn connect_tls(&mut self, request: &[u8]) -> io::Result<()> {
        let connector = self.aim.server.connector();
        let link = &mut self.backend.link;
        link.send_all(request).await?;
        let config = std::sync::Arc::clone(&connector.config);
        link.connect_tls(config, connector.name.clone()).await
    }
}

/// True if a client rejects the certificate or the ciphers; false for timeouts, broken connections and bytes that are not TLS. Clients that
/// check the certificate after the handshake just leave without a login.
fn is_refusal(error: &io::Error) -> bool {
    use rustls::Error;
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(
        error,
        Some(Error::AlertReceived(_) | Error::PeerIncompatible(_))
    )
}
