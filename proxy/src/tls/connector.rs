//! TLS towards the server.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;

use super::certificate_verifier::{LenientVerifier, TrustedCertificates};
use super::error::TlsError;
use super::pem_files;
use super::settings::{TlsMode, UpstreamTlsSection};

const CA: &str = "upstream_tls.ca";
const CERT: &str = "upstream_tls.cert";
const KEY: &str = "upstream_tls.key";
const NAME: &str = "upstream_tls.name";

/// The TLS configuration towards the server.
#[derive(Clone, Debug)]
pub struct TlsConnector {
    /// When there is TLS.
    pub mode: TlsMode,
    /// The certificate shown to the server, and the verification of the server's.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate has to have.
    pub name: ServerName<'static>,
}

impl TlsConnector {
    /// Reads the files that the settings name. `host`: the server's, as it is connected to.
    ///
    /// # Errors
    /// If a file cannot be read or does not fit, or the name is invalid.
    pub fn new(settings: &UpstreamTlsSection, host: &str) -> Result<TlsConnector, TlsError> {
        let name = settings.name.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name).map_err(|error| TlsError::unfit(NAME, error))?;
        let builder = ClientConfig::builder();
        let provider = Arc::clone(builder.crypto_provider());
        let verifier = verifier(settings, provider)?;
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match (&settings.cert, &settings.key) {
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(
                    pem_files::certificates(CERT, cert)?,
                    pem_files::key(KEY, key)?,
                )
                .map_err(|error| {
                    TlsError::unfit("upstream_tls.cert and upstream_tls.key", error)
                })?,
            _ => builder.with_no_client_auth(),
        };
        Ok(TlsConnector {
            mode: settings.mode,
            config: Arc::new(config),
            name,
        })
    }
}

fn verifier(
    settings: &UpstreamTlsSection,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let ca = settings.ca.as_ref().filter(|_| settings.mode.verifies());
    let Some(ca) = ca else {
        let trusted = None;
        return Ok(Arc::new(LenientVerifier { provider, trusted }));
    };
    let roots = pem_files::roots(CA, ca)?;
    if settings.mode == TlsMode::VerifyIdentity {
        let verifier = WebPkiServerVerifier::builder(roots.into()).build();
        return verifier
            .map(|verifier| verifier as _)
            .map_err(|error| TlsError::unfit(CA, error));
    }
    let pinned = pem_files::certificates(CA, ca)?;
    let trusted = Some(TrustedCertificates { pinned, roots });
    Ok(Arc::new(LenientVerifier { provider, trusted }))
}
