//! The command line flags and their environment variables.

use std::path::PathBuf;

use clap::Args;

use super::sections::{LogFormat, LogLevel};
use headwater_proxy::binlog::FreshnessMode;
use headwater_proxy::size;
use headwater_proxy::tls::TlsMode;

/// Flags of `headwater serve` and `headwater check`; each also has an environment variable and, but for `--config`, a key in the file.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeFlags {
    /// Settings file (TOML); headwater.example.toml documents each key
    #[arg(long, env = "HEADWATER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address on which MySQL clients connect [default: 127.0.0.1:3307]
    #[arg(long, env = "HEADWATER_LISTEN", value_name = "ADDR")]
    pub listen: Option<String>,
    /// Path of a socket on which clients of this machine connect as well
    #[arg(long, env = "HEADWATER_SOCKET", value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Address of the MySQL or MariaDB server, or the path of its socket. Given several times (in the environment: with commas), the
    /// servers of which one is the primary [default: 127.0.0.1:3306]
    #[arg(
        long,
        env = "HEADWATER_UPSTREAM",
        value_name = "ADDR",
        value_delimiter = ','
    )]
    pub upstream: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub service: ServiceFlags,
    /// Memory for all of Headwater, in bytes, or as 1GiB; 0: the lesser of 1 GiB and a quarter of what the machine, or its control group,
    /// has [default: 0]
    #[arg(long, env = "HEADWATER_MEMORY_LIMIT", value_name = "BYTES", value_parser = size::parse)]
    pub memory_limit: Option<usize>,
    /// Memory for each timeline in each database, in bytes, or as 256MiB; 0: none, every call is answered by lookups.
    /// Needs the service account [default: 268435456]
    #[arg(long, env = "HEADWATER_INDEX_MEMORY_BYTES", value_name = "BYTES", value_parser = size::parse)]
    pub index_memory_bytes: Option<usize>,
    /// Load the timelines of all readers at the start, as far as they fit into memory, instead of with their first calls
    #[arg(long, env = "HEADWATER_PRELOAD", value_parser = clap::builder::BoolishValueParser::new())]
    pub preload: bool,
    /// How fresh an answer from memory has to be: with every commit before the call (strict), with
    /// every commit older than freshness.bounded_ms (bounded), with what the session itself was told of
    /// (session) [default: strict]
    #[arg(
        long,
        env = "HEADWATER_FRESHNESS",
        value_name = "MODE",
        hide_possible_values = true
    )]
    pub freshness: Option<FreshnessMode>,
    /// Share of the calls, from 0 to 1, for which the procedure itself runs as well, on a connection of the service
    /// account, to compare the answers; a difference is logged, and has the definition relayed until SIGHUP. The same share of
    /// pages that are made of kept rows is compared with the server's replies [default: 0.0001 where there is memory; of calls, where
    /// the account may run the procedures]
    #[arg(long, env = "HEADWATER_SHADOW", value_name = "RATE")]
    pub shadow: Option<f64>,
    /// The certificate that clients see, with those between it and its CA behind it (PEM): turns TLS on
    #[arg(
        long,
        env = "HEADWATER_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(
        long,
        env = "HEADWATER_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub tls_key: Option<PathBuf>,
    /// Where no certificate is set, offer TLS by one that Headwater makes, to clients of a server that has TLS [default: true]
    #[arg(
        long,
        env = "HEADWATER_TLS_OWN",
        value_name = "BOOL",
        value_parser = clap::builder::BoolishValueParser::new(),
        hide_possible_values = true
    )]
    pub tls_own: Option<bool>,
    /// File in which that one is kept, with its key [default: tls.pem in $STATE_DIRECTORY, in headwater of $XDG_STATE_HOME, or in
    /// ~/.local/state/headwater]
    #[arg(long, env = "HEADWATER_TLS_OWN_FILE", value_name = "FILE")]
    pub tls_own_file: Option<PathBuf>,
    /// TLS with a certificate that is made at the start, for a first try: clients cannot verify it
    #[arg(long, env = "HEADWATER_TLS_SELF_SIGNED", value_parser = clap::builder::BoolishValueParser::new())]
    pub tls_self_signed: bool,
    /// TLS to the server: disabled, preferred, required, verify-ca, verify-identity. A session has it exactly where its client
    /// has it, unless upstream_tls.mirror = false [default: preferred]
    #[arg(
        long,
        env = "HEADWATER_UPSTREAM_TLS",
        value_name = "MODE",
        hide_possible_values = true
    )]
    pub upstream_tls: Option<TlsMode>,
    /// CAs that may have signed the server's certificate, or that certificate itself (PEM)
    #[arg(long, env = "HEADWATER_UPSTREAM_TLS_CA", value_name = "FILE")]
    pub upstream_tls_ca: Option<PathBuf>,
    /// Relay every call: nothing is answered by Headwater
    #[arg(long, env = "HEADWATER_RELAY_ONLY", value_parser = clap::builder::BoolishValueParser::new())]
    pub relay_only: bool,
    /// Threads that move bytes; 0: as many as the machine has processors [default: 0]
    #[arg(long, env = "HEADWATER_THREADS", value_name = "N")]
    pub threads: Option<usize>,
    /// Address where operators look in by HTTP: /metrics, /ready, /accelerating; "" for none. One that is open to other machines needs
    /// a token [default: 127.0.0.1:9307]
    #[arg(long, env = "HEADWATER_ADMIN_LISTEN", value_name = "ADDR")]
    pub admin_listen: Option<String>,
    /// What askers have to show there. Prefer the environment: flags are visible to others
    #[arg(
        long,
        env = "HEADWATER_ADMIN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub admin_token: Option<String>,
    /// File with that token
    #[arg(
        long,
        env = "HEADWATER_ADMIN_TOKEN_FILE",
        value_name = "FILE",
        conflicts_with = "admin_token"
    )]
    pub admin_token_file: Option<PathBuf>,
    /// Take over from the Headwater that runs, without an error for its clients: get its listening sockets, warm the memory, then
    /// have it take no more clients and drain. Needs --takeover-socket; where no other one runs, this starts as usual
    #[arg(long, env = "HEADWATER_TAKEOVER", value_parser = clap::builder::BoolishValueParser::new())]
    pub takeover: bool,
    /// Path of the socket where the next process asks this one for its listening sockets; there is none by default
    #[arg(long, env = "HEADWATER_TAKEOVER_SOCKET", value_name = "PATH")]
    pub takeover_socket: Option<PathBuf>,
    /// How much to log
    #[arg(long, env = "HEADWATER_LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,
    /// Form of the log
    #[arg(long, env = "HEADWATER_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Log each command that takes so many milliseconds, with what became of it; 0: none [default: 0]
    #[arg(long, env = "HEADWATER_LOG_SLOW_MS", value_name = "MS")]
    pub log_slow_ms: Option<u64>,
}

/// The service account, wherever one can be named.
#[derive(Args, Clone, Debug, Default)]
pub struct ServiceFlags {
    /// Account with which Headwater checks definitions; without it the first client session that may
    /// see the procedures serves for that
    #[arg(long, env = "HEADWATER_SERVICE_USER", value_name = "USER")]
    pub service_user: Option<String>,
    /// Password of the service account; may be empty. Prefer the environment: flags are visible to others
    #[arg(
        long,
        env = "HEADWATER_SERVICE_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true,
        num_args = 0..=1,
        default_missing_value = ""
    )]
    pub service_password: Option<String>,
    /// File with that password, as systemd's LoadCredential and the secrets of containers give it
    #[arg(
        long,
        env = "HEADWATER_SERVICE_PASSWORD_FILE",
        value_name = "FILE",
        conflicts_with = "service_password"
    )]
    pub service_password_file: Option<PathBuf>,
}
