//! Verification of a server's certificate without its name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Verifies the chain if certificates are trusted; otherwise accepts any certificate, which prevents eavesdropping but not impersonation.
#[derive(Debug)]
pub(super) struct LenientVerifier {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) trusted: Option<TrustedCertificates>,
}

/// Trusted CAs, and pinned certificates.
#[derive(Debug)]
pub(super) struct TrustedCertificates {
    pub(super) pinned: Vec<CertificateDer<'static>>,
    pub(super) roots: RootCertStore,
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        cert: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // A self-signed certificate is usually a CA's, with which no chain may end.
        let trusted = self.trusted.as_ref();
        if let Some(trusted) =
            trusted.filter(|trusted| !trusted.pinned.iter().any(|certificate| certificate == cert))
        {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(cert)?,
                &trusted.roots,
                between,
                now,
                self.provider.signature_verification_algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
