//! The flags of `headwater discover`: those of `serve` that lead to the server, and the source of statements.

use std::path::{Path, PathBuf};

use clap::Args;

use headwater_proxy::tls::TlsMode;
use headwater_server::config::{
    ConfigError, LogFormat, LogLevel, ServeFlags, ServeSettings, ServiceFlags,
};

/// Flags of `headwater discover`. Those of the server have their environment variables and keys, as for `serve`.
#[derive(Args, Clone, Debug)]
pub struct DiscoverFlags {
    /// Settings file (TOML) of `serve`: where the server is, and which feeds it has already
    #[arg(long, env = "HEADWATER_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the MySQL or MariaDB server, or the path of its socket; of several, the primary is looked at [default: 127.0.0.1:3306]
    #[arg(
        long,
        env = "HEADWATER_UPSTREAM",
        value_name = "ADDR",
        value_delimiter = ','
    )]
    upstream: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    service: ServiceFlags,
    /// Relay on this address and look at what goes by, instead of asking performance_schema
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Relay for so many seconds; Ctrl-C ends it earlier. Either prints what was found
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 60, requires = "listen", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// With --listen: write the SELECTs of one page of the app into this file, to be played and measured (docs/performance.md). It holds values that the app sends
    #[arg(long, value_name = "FILE", requires = "listen")]
    request: Option<PathBuf>,
    /// With --listen: the certificate that clients see (PEM), for apps that want TLS
    #[arg(
        long,
        env = "HEADWATER_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key"
    )]
    tls_cert: Option<PathBuf>,
    /// With --listen: its private key (PEM)
    #[arg(
        long,
        env = "HEADWATER_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    tls_key: Option<PathBuf>,
    /// With --listen: TLS with a certificate that is made at the start
    #[arg(long, env = "HEADWATER_TLS_SELF_SIGNED", value_parser = clap::builder::BoolishValueParser::new())]
    tls_self_signed: bool,
    /// TLS to the server: disabled, preferred, required, verify-ca, verify-identity [default: preferred]
    #[arg(
        long,
        env = "HEADWATER_UPSTREAM_TLS",
        value_name = "MODE",
        hide_possible_values = true
    )]
    upstream_tls: Option<TlsMode>,
    /// CAs that may have signed the server's certificate, or that certificate itself (PEM)
    #[arg(long, env = "HEADWATER_UPSTREAM_TLS_CA", value_name = "FILE")]
    upstream_tls_ca: Option<PathBuf>,
    /// How much to log
    #[arg(long, env = "HEADWATER_LOG_LEVEL", value_name = "LEVEL")]
    log_level: Option<LogLevel>,
    /// Form of the log
    #[arg(long, env = "HEADWATER_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

/// The source of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementSource {
    /// The server's digests.
    Digests,
    /// Statements relayed during this time.
    Listen {
        /// In seconds.
        seconds: u64,
    },
}

impl DiscoverFlags {
    /// Where a request of the app is written.
    #[must_use]
    pub fn request_file(&self) -> Option<&Path> {
        self.request.as_deref()
    }

    /// The source of statements.
    #[must_use]
    pub fn source(&self) -> StatementSource {
        match self.listen {
            Some(_) => StatementSource::Listen {
                seconds: self.seconds,
            },
            None => StatementSource::Digests,
        }
    }

    /// The settings of `serve`, as far as they matter here.
    ///
    /// # Errors
    /// As [`headwater_server::config::ServeSettings::load`].
    pub fn settings(&self) -> Result<ServeSettings, ConfigError> {
        let mut settings = ServeSettings::load(&ServeFlags {
            config: self.config.clone(),
            listen: self.listen.clone(),
            upstream: self.upstream.clone(),
            service: self.service.clone(),
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            tls_self_signed: self.tls_self_signed,
            upstream_tls: self.upstream_tls,
            upstream_tls_ca: self.upstream_tls_ca.clone(),
            log_level: self.log_level.or(Some(LogLevel::Warn)),
            log_format: self.log_format,
            ..ServeFlags::default()
        })?;
        // Feeds are served from memory: the server is checked for that.
        settings.binlog.memory_bytes = settings.binlog.memory_bytes.max(1);
        Ok(settings)
    }
}
