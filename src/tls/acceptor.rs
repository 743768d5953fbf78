//! TLS towards clients.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

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

/// What clients are shown; read anew when that is asked for.
#[derive(Debug)]
pub struct Acceptor {
    source: Source,
    client_ca: Option<PathBuf>,
    config: RwLock<Arc<ServerConfig>>,
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
    pub fn new(settings: &TlsSection) -> Result<Option<Acceptor>, TlsError> {
        let source = match (&settings.cert, &settings.key) {
            (Some(cert), Some(key)) => Source::Files {
                cert: cert.clone(),
                key: key.clone(),
            },
            _ if settings.self_signed => Source::SelfSigned,
            _ => return Ok(None),
        };
        let client_ca = settings.client_ca.clone();
        let config = config(&source, client_ca.as_ref())?;
        Ok(Some(Acceptor {
            source,
            client_ca,
            config: RwLock::new(config),
        }))
    }

    /// What the next client is shown.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&config)
    }

    /// Reads the files again. Whoever is connected keeps what it has.
    ///
    /// # Errors
    /// As [`Acceptor::new`]; then clients are shown what they were shown before.
    pub fn reload(&self) -> Result<(), TlsError> {
        if let Source::Files { .. } = self.source {
            let config = config(&self.source, self.client_ca.as_ref())?;
            *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        }
        Ok(())
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
