//! Certificates and keys in PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read {
        setting,
        path: path.to_owned(),
        source,
    })
}

/// Every certificate of a file; at least one.
pub(super) fn certificates(
    setting: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(setting, path)?;
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let parsed = parsed.and_then(|found| match found.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(found),
    });
    parsed.map_err(|source| TlsError::Pem {
        setting,
        path: path.to_owned(),
        expected: "certificate",
        source,
    })
}

/// The first private key of a file.
pub(super) fn key(setting: &'static str, path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(setting, path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|source| TlsError::Pem {
        setting,
        path: path.to_owned(),
        expected: "private key",
        source,
    })
}

/// Certificate and key in one text.
pub(super) fn identity(
    text: &str,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), pem::Error> {
    let certificate = CertificateDer::from_pem_slice(text.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes())?;
    Ok((vec![certificate], key))
}

/// A file's certificates, as trust anchors.
pub(super) fn roots(setting: &'static str, path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(setting, path)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::unfit(setting, error))?;
    }
    Ok(roots)
}
