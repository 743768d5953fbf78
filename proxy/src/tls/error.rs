//! What is wrong with certificates and keys, by the name of their setting.

use std::path::PathBuf;

use rustls::pki_types::pem;

/// Why TLS is impossible with these settings.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {setting} = {path}: {source}", path = .path.display())]
    Read {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {setting} = {path}: {source}", path = .path.display())]
    Write {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{setting} = {path} has no {expected} in PEM form: {source}", path = .path.display())]
    Pem {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// A certificate, or a private key.
        expected: &'static str,
        /// The cause.
        source: pem::Error,
    },
    /// The files do not fit together.
    #[error("{settings}: {reason}")]
    Unfit {
        /// The settings that name them.
        settings: &'static str,
        /// The cause.
        reason: String,
    },
}

/// True if the handshake failed by disagreement, which the next one would repeat; false for timeouts and broken connections.
#[must_use]
pub fn is_disagreement(error: &std::io::Error) -> bool {
    let cause = error.get_ref();
    cause.is_some_and(|cause| cause.is::<rustls::Error>())
}

impl TlsError {
    pub(super) fn unfit(settings: &'static str, reason: impl ToString) -> TlsError {
        TlsError::Unfit {
            settings,
            reason: reason.to_string(),
        }
    }
}
