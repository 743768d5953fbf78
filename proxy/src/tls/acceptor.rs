//! TLS towards clients.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use super::error::TlsError;
use super::generated_certificate::GeneratedCertificate;
use super::pem_files;
use super::settings::{TlsSection, UpstreamTlsSection};

const CERT: &str = "tls.cert";
const KEY: &str = "tls.key";
const CLIENT_CA: &str = "tls.client_ca";

/// The TLS configuration that clients get.
#[derive(Debug)]
pub struct TlsAcceptor {
    config: Arc<ServerConfig>,
    /// The generated certificate, if no setting names one.
    generated: Option<GeneratedCertificate>,
}

#[derive(Debug)]
enum CertificateSource {
    Files { cert: PathBuf, key: PathBuf },
    SelfSigned,
}

impl TlsAcceptor {
    /// Reads certificate and key; `None`: clients are offered no TLS.
    ///
    /// # Errors
    /// If a file cannot be read, or certificate and key do not match.
    pub fn new(
        settings: &TlsSection,
        upstream: &UpstreamTlsSection,
    ) -> Result<Option<TlsAcceptor>, TlsError> {
        let client_ca = settings.client_ca.as_ref();
        if settings.offers_generated(upstream) {
            let (generated, identity) = GeneratedCertificate::new(settings)?;
            let config = server_config("tls.own_file", identity, client_ca)?;
            let generated = Some(generated);
            return Ok(Some(TlsAcceptor { config, generated }));
        }
        let source = match (&settings.cert, &settings.key) {
            (Some(cert), Some(key)) => CertificateSource::Files {
                cert: cert.clone(),
                key: key.clone(),
            },
            _ if settings.self_signed => CertificateSource::SelfSigned,
            _ => return Ok(None),
        };
        let (settings, identity) = match &source {
            CertificateSource::Files { cert, key } => (
                "tls.cert and tls.key",
                (
                    pem_files::certificates(CERT, cert)?,
                    pem_files::key(KEY, key)?,
                ),
            ),
            CertificateSource::SelfSigned => ("tls.self_signed", self_signed()?),
        };
        let config = server_config(settings, identity, client_ca)?;
        Ok(Some(TlsAcceptor {
            config,
            generated: None,
        }))
    }

    /// The configuration for the next client.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// The generated certificate, if no setting names one.
    #[must_use]
    pub fn generated(&self) -> Option<&GeneratedCertificate> {
        self.generated.as_ref()
    }
}

fn server_config(
    settings: &'static str,
    (chain, key): TlsIdentity,
    client_ca: Option<&PathBuf>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let builder = ServerConfig::builder();
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = pem_files::roots(CLIENT_CA, path)?;
            let verifier = WebPkiClientVerifier::builder(roots.into()).build();
            builder.with_client_cert_verifier(
                verifier.map_err(|error| TlsError::unfit(CLIENT_CA, error))?,
            )
        }
    };
    let config = builder.with_single_cert(chain, key);
    config
        .map(Arc::new)
        .map_err(|error| TlsError::unfit(settings, error))
}

/// A certificate with its intermediates, and its private key.
pub(super) type TlsIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Generates a certificate for a first try.
fn self_signed() -> Result<TlsIdentity, TlsError> {
    let unfit = |error| TlsError::unfit("tls.self_signed", error);
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).map_err(unfit)?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der())
        .map_err(|error| TlsError::unfit("tls.self_signed", error))?;
    Ok((vec![cert.der().clone()], key))
}
