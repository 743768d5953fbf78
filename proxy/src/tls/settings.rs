//! The settings of TLS.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// TLS towards clients (`tls`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSection {
    /// The certificate that clients see, followed by its intermediates (PEM).
    pub cert: Option<PathBuf>,
    /// Its private key (PEM).
    pub key: Option<PathBuf>,
    /// If no certificate is set, clients are offered TLS with a generated one, as far as the server has TLS. They cannot verify it.
    pub own: bool,
    /// Where the generated one is stored (PEM).
    pub own_file: Option<PathBuf>,
    /// Generate a certificate at each start, in place of a file; clients cannot verify it.
    pub self_signed: bool,
    /// Clients have to show a certificate that one of these CAs has signed (PEM).
    pub client_ca: Option<PathBuf>,
    /// Clients without TLS are refused, except on the Unix socket.
    pub required: bool,
    /// TLS ends at the server, not here; then nothing can be served.
    pub passthrough: bool,
}

impl Default for TlsSection {
    fn default() -> Self {
        TlsSection {
            cert: None,
            key: None,
            own: true,
            own_file: None,
            self_signed: false,
            client_ca: None,
            required: false,
            passthrough: false,
        }
    }
}

impl TlsSection {
    /// True if the settings name a certificate.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.self_signed || self.cert.is_some()
    }

    /// True if clients are offered TLS with the generated certificate, given the settings of the server's side.
    #[must_use]
    pub fn offers_generated(&self, upstream: &UpstreamTlsSection) -> bool {
        let may_mirror = upstream.mirror && upstream.mode != TlsMode::Disabled;
        self.own && may_mirror && !self.is_set() && !self.passthrough
    }

    /// True if clients are offered TLS that ends here, as far as the server has it.
    #[must_use]
    pub fn is_offered(&self, upstream: &UpstreamTlsSection) -> bool {
        self.is_set() || self.offers_generated(upstream)
    }
}

/// TLS towards the server (`upstream_tls`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamTlsSection {
    /// When there is TLS, and what the server has to prove.
    pub mode: TlsMode,
    /// The connection to the server has TLS exactly when the client's has.
    pub mirror: bool,
    /// CAs, or the server's own certificate (PEM).
    pub ca: Option<PathBuf>,
    /// The certificate shown to the server (PEM).
    pub cert: Option<PathBuf>,
    /// Its private key (PEM).
    pub key: Option<PathBuf>,
    /// The name in the server's certificate, where it is not the host of `upstream`.
    pub name: Option<String>,
}

impl Default for UpstreamTlsSection {
    fn default() -> Self {
        UpstreamTlsSection {
            mode: TlsMode::default(),
            mirror: true,
            ca: None,
            cert: None,
            key: None,
            name: None,
        }
    }
}

/// When there is TLS to the server, and what it has to prove: as `--ssl-mode` of the `mysql` command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Never.
    Disabled,
    /// Where the server has it; it proves nothing.
    #[default]
    Preferred,
    /// Always; it proves nothing.
    Required,
    /// Always, with a certificate that a CA of `upstream_tls.ca` has signed.
    VerifyCa,
    /// Always, and that certificate has the server's name.
    VerifyIdentity,
}

impl TlsMode {
    /// True if connections without TLS are refused.
    #[must_use]
    pub fn is_required(self) -> bool {
        matches!(
            self,
            TlsMode::Required | TlsMode::VerifyCa | TlsMode::VerifyIdentity
        )
    }

    /// True if the server's certificate is verified.
    #[must_use]
    pub fn verifies(self) -> bool {
        matches!(self, TlsMode::VerifyCa | TlsMode::VerifyIdentity)
    }
}

/// As written in the settings file.
impl std::fmt::Display for TlsMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TlsMode::Disabled => "disabled",
            TlsMode::Preferred => "preferred",
            TlsMode::Required => "required",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyIdentity => "verify-identity",
        })
    }
}
