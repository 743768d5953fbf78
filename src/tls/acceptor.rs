//! TLS towards clients.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use super::error::TlsError;
use super::files;
use super::settings::TlsSection;

const CERT: &str = "tls.cert";
const KEY: &str = "tls.key";
const CLIENT_CA: &str = "tls.client_ca";

/// What clients are shown.
#[derive(Debug)]
pub struct Acceptor(Arc<ServerConfig>);

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
    pub fn new(settings: &TlsSection) -> Result<Option<Acceptor>, TlsError> {
        let source = match (&settings.cert, &settings.key) {
            (Some(cert), Some(key)) => Source::Files {
                cert: cert.clone(),
                key: key.clone(),
            },
            _ if settings.self_signed => Source::SelfSigned,
            _ => return Ok(None),
        };
        let config = config(&source, settings.client_ca.as_ref())?;
        Ok(Some(Acceptor(config)))
    }

    /// What the next client is shown.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0)
    }
}

fn config(source: &Source, client_ca: Option<&PathBuf>) -> Result<Arc<ServerConfig>, TlsError> {
    let (chain, key) = match source {
        Source::Files { cert, key } => (files::certificates(CERT, cert)?, files::key(KEY, key)?),
        Source::SelfSigned => self_signed()?,
    };
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
        .map_err(|error| TlsError::unfit("tls.cert and tls.key", error))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate for a first try.
fn self_signed() -> Result<Identity, TlsError> {
    let unfit = |error| TlsError::unfit("tls.self_signed", error);
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).map_err(unfit)?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der())
        .map_err(|error| TlsError::unfit("tls.self_signed", error))?;
    Ok((vec![cert.der().clone()], key))
}
