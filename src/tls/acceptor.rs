//! TLS towards clients.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use super::error::TlsError;
use super::files;
use super::own::Own;
use super::settings::{TlsSection, UpstreamTlsSection};

const CERT: &str = "tls.cert";
const KEY: &str = "tls.key";
const CLIENT_CA: &str = "tls.client_ca";

/// What clients are shown.
#[derive(Debug)]
pub struct Acceptor {
    config: Arc<ServerConfig>,
    /// Nobody has asked for this certificate.
    own: Option<Own>,
}

#[derive(Debug)]
enum Source {
    Files { cert: PathBuf, key: PathBuf },
    SelfSigned,
}

impl Acceptor {
    /// Reads certificate and key; `None` where clients are offered no TLS.
    ///
    /// # Errors
    /// When a file cannot be read, or the key is another certificate's.
    pub fn new(
        settings: &TlsSection,
        upstream: &UpstreamTlsSection,
    ) -> Result<Option<Acceptor>, TlsError> {
        let client_ca = settings.client_ca.as_ref();
        if settings.offers_own(upstream) {
            let (own, identity) = Own::new(settings)?;
            let config = config("tls.own_file", identity, client_ca)?;
            let own = Some(own);
            return Ok(Some(Acceptor { config, own }));
        }
        let source = match (&settings.cert, &settings.key) {
            (Some(cert), Some(key)) => Source::Files {
                cert: cert.clone(),
                key: key.clone(),
            },
            _ if settings.self_signed => Source::SelfSigned,
            _ => return Ok(None),
        };
        let (settings, identity) = match &source {
            Source::Files { cert, key } => (
                "tls.cert and tls.key",
                (files::certificates(CERT, cert)?, files::key(KEY, key)?),
            ),
            Source::SelfSigned => ("tls.self_signed", self_signed()?),
        };
        let config = config(settings, identity, client_ca)?;
        Ok(Some(Acceptor { config, own: None }))
    }

    /// What the next client is shown.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// To whom a certificate is offered that nobody has asked for.
    #[must_use]
    pub fn own(&self) -> Option<&Own> {
        self.own.as_ref()
    }
}

fn config(
    settings: &'static str,
    (chain, key): Identity,
    client_ca: Option<&PathBuf>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let builder = ServerConfig::builder();
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = files::roots(CLIENT_CA, path)?;
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

/// A certificate, those between it and its CA, and its key.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate for a first try.
fn self_signed() -> Result<Identity, TlsError> {
    let unfit = |error| TlsError::unfit("tls.self_signed", error);
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).map_err(unfit)?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der())
        .map_err(|error| TlsError::unfit("tls.self_signed", error))?;
    Ok((vec![cert.der().clone()], key))
}
