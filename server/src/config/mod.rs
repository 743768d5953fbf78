//! Settings: flags, environment and file hold the same keys; flags win over the environment, the environment over the file.

mod admin;
mod changes;
mod environment;
mod error;
mod file;
mod flags;
pub mod memory;
mod sections;
mod setting_values;
mod upstream;
mod validation;

use std::path::PathBuf;

pub use admin::{AdminSection, DEFAULT_ADMIN_ADDRESS};
pub use changes::{ReloadOutcome, SettingChange, SettingChanges};
pub use environment::unknown_variables;
pub use error::ConfigError;
use file::ConfigFile;
pub use flags::{ServeFlags, ServiceFlags};
pub use memory::MemorySection;
pub use sections::{
    FeedColumns, FeedsSection, LogFormat, LogLevel, LogSection, NarrowPolicy, PrivilegesSection,
    ProxyProtocolSection, RedirectPolicy, ServiceSection, ShadowSampling, ShadowSection,
    TakeoverSection, TrustedNetwork,
};
pub(crate) use validation::MOST_LISTENERS;

pub use upstream::{ListenerSection, MOST_SERVERS, UpstreamList};

use headwater_feed::FeedDefinition;
use headwater_proxy::binlog::{BinlogLimits, FreshnessSection, RowsSection};
use headwater_proxy::feeds::FeedDiscoveryMode;
use headwater_proxy::limits::ProcessLimits;
use headwater_proxy::tls::{TlsSection, UpstreamTlsSection};
use headwater_proxy::upstreams::FailoverSection;
use headwater_session::compression_frames::CompressionPolicy;
use headwater_sql::NameCase;
use headwater_timeline::definition::TimelineDefinition;

/// Every setting of `headwater serve`, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeSettings {
    /// Address on which clients connect (`listen`).
    pub listen: String,
    /// Path of a socket on which clients connect too (`socket`).
    pub socket: Option<PathBuf>,
    /// Addresses of the database servers (`upstream`).
    pub upstream: UpstreamList,
    /// How the loss of a server is detected (`failover`).
    pub failover: FailoverSection,
    /// Further ports for clients (`listener`).
    pub listeners: Vec<ListenerSection>,
    /// The service account (`service.user`, `service.password`).
    pub service: Option<ServiceSection>,
    /// The PROXY protocol (`proxy_protocol`).
    pub proxy_protocol: ProxyProtocolSection,
    /// TLS towards clients (`tls`).
    pub tls: TlsSection,
    /// TLS towards the server (`upstream_tls`).
    pub upstream_tls: UpstreamTlsSection,
    /// What happens to a server's `redirect_url` (`redirect_url`).
    pub redirect_url: RedirectPolicy,
    /// Compression on either side (`compression`).
    pub compression: CompressionPolicy,
    /// False: every call is relayed (`accelerate`).
    pub accelerate: bool,
    /// Threads that move bytes (`threads`); 0: as many as the machine has processors.
    pub threads: usize,
    /// The timelines to accelerate (`definition`); the classic one if the file names none.
    pub definitions: Vec<TimelineDefinition>,
    /// The file names no timeline, so the classic one is there by default.
    pub classic_by_default: bool,
    /// Feeds whose SELECTs are narrowed (`feed`).
    pub feeds: Vec<FeedDefinition>,
    /// Which feeds are narrowed, and how (`feeds`).
    pub narrow: FeedsSection,
    /// The log (`log.level`, `log.format`).
    pub log: LogSection,
    /// Bounds on everything that could grow (`limits`).
    pub limits: ProcessLimits,
    /// One cap for the memory of the process (`memory.limit`), resolved.
    pub memory: MemorySection,
    /// The memory bounds as the settings request them, before they are fitted into `memory.limit`.
    pub requested_limits: BinlogLimits,
    /// When memory may answer (`freshness`).
    pub freshness: FreshnessSection,
    /// The tables whose rows are cached (`rows`).
    pub rows: RowsSection,
    /// Bounds of memory and of what fills it (`index`, `binlog`), fitted into `memory.limit`.
    pub binlog: BinlogLimits,
    /// How long a verified privilege is trusted (`privileges.ttl_s`).
    pub privileges: PrivilegesSection,
    /// Which calls are compared with the procedure (`shadow`).
    pub shadow: ShadowSampling,
    /// The admin HTTP endpoint (`admin`).
    pub admin: AdminSection,
    /// How another process takes over (`takeover`).
    pub takeover: TakeoverSection,
    /// This process takes over from the one that runs (`--takeover`).
    pub takes_over: bool,
    /// How the server compares names of databases and tables, as far as known.
    pub case: NameCase,
}

impl ServeSettings {
    /// Returns the settings with names of databases and tables folded for a server that compares them this way.
    #[must_use]
    pub fn folded(&self, case: NameCase) -> ServeSettings {
        let definitions = self.definitions.iter();
        let feeds = self.feeds.iter();
        ServeSettings {
            definitions: definitions
                .map(|definition| definition.with_name_case(case))
                .collect(),
            feeds: feeds.map(|feed| feed.folded(case)).collect(),
            case,
            ..self.clone()
        }
    }

    /// True if the settings ask for feeds only: the classic timeline need not exist.
    #[must_use]
    pub fn are_feeds_alone(&self) -> bool {
        self.classic_by_default
            && (!self.feeds.is_empty() || self.narrow.auto == FeedDiscoveryMode::On)
    }

    /// The timelines that the settings ask for.
    pub fn named_definitions(&self) -> impl Iterator<Item = &TimelineDefinition> {
        let definitions = self.definitions.iter();
        definitions.filter(|_| !self.are_feeds_alone())
    }

    /// Number of threads that move bytes.
    #[must_use]
    pub fn worker_threads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match self.threads {
            0 => processors,
            threads => threads,
        }
    }

    /// Reads and validates every setting before a port is opened.
    ///
    /// # Errors
    /// The first mistake found, naming the setting.
    pub fn load(flags: &ServeFlags) -> Result<ServeSettings, ConfigError> {
        let file = match &flags.config {
            Some(path) => file::read(path)?,
            None => ConfigFile::default(),
        };
        let ServiceFlags {
            service_user,
            service_password,
            ..
        } = flags.service.resolved()?;
        let admin_token = secret(
            "admin-token-file",
            flags.admin_token.clone(),
            flags.admin_token_file.clone(),
        )?;
        let service = match (service_user, service_password) {
            (Some(user), password) => {
                let password = password
                    .or_else(|| {
                        file.service
                            .as_ref()
                            .map(|account| account.password.clone())
                    })
                    .unwrap_or_default();
                Some(ServiceSection { user, password })
            }
            (None, Some(password)) => match file.service {
                Some(account) => Some(ServiceSection {
                    password,
                    ..account
                }),
                None => return Err(ConfigError::PasswordWithoutUser),
            },
            (None, None) => file.service,
        };
        let mut log = file.log;
        log.level = flags.log_level.unwrap_or(log.level);
        log.format = flags.log_format.unwrap_or(log.format);
        log.slow_ms = flags.log_slow_ms.unwrap_or(log.slow_ms);
        let classic_by_default = file.definition.is_empty();
        let definitions = match classic_by_default {
            true => vec![TimelineDefinition::classic()],
            false => file.definition,
        };
        let feeds = file.feed.0;
        let accelerate = !flags.relay_only && file.accelerate.unwrap_or(true);
        let memory_bytes = flags.index_memory_bytes.unwrap_or(file.index.memory_bytes);
        let can_compare = accelerate && service.is_some() && memory_bytes > 0;
        let shadow = ShadowSampling::new(flags.shadow.or(file.shadow.rate), can_compare);
        let requested = BinlogLimits {
            memory_bytes,
            index_bytes: memory_bytes,
            preload: flags.preload || file.index.preload,
            wait_ms: file.index.wait_ms,
            transaction_rows: file.binlog.transaction_rows,
            event_bytes: file.binlog.event_bytes,
            data_nodes: file.binlog.data_nodes,
            rows_bytes: file.rows.memory_bytes,
            load_bytes: usize::MAX,
        };
        let limit = match flags.memory_limit.unwrap_or(file.memory.limit) {
            0 => memory::default_limit(),
            limit => limit,
        };
        let settings = ServeSettings {
            listen: flags
                .listen
                .clone()
                .or(file.listen)
                .unwrap_or("127.0.0.1:3307".into()),
            socket: flags.socket.clone().or(file.socket),
            upstream: UpstreamList::of(&flags.upstream)
                .or(file.upstream)
                .unwrap_or_default(),
            failover: file.failover,
            listeners: file.listener,
            service,
            proxy_protocol: file.proxy_protocol,
            tls: TlsSection {
                cert: flags.tls_cert.clone().or(file.tls.cert),
                key: flags.tls_key.clone().or(file.tls.key),
                own: flags.tls_own.unwrap_or(file.tls.own),
                own_file: flags.tls_own_file.clone().or(file.tls.own_file),
                self_signed: flags.tls_self_signed || file.tls.self_signed,
                ..file.tls
            },
            upstream_tls: UpstreamTlsSection {
                mode: flags.upstream_tls.unwrap_or(file.upstream_tls.mode),
                ca: flags.upstream_tls_ca.clone().or(file.upstream_tls.ca),
                ..file.upstream_tls
            },
            redirect_url: file.redirect_url,
            compression: file.compression,
            accelerate,
            threads: flags.threads.or(file.threads).unwrap_or(0),
            definitions,
            log,
            limits: file.limits,
            freshness: FreshnessSection {
                mode: flags.freshness.unwrap_or(file.freshness.mode),
                ..file.freshness
            },
            memory: MemorySection { limit },
            binlog: memory::fit_limits(limit, requested),
            requested_limits: requested,
            rows: file.rows,
            classic_by_default,
            feeds,
            narrow: file.feeds,
            privileges: file.privileges,
            shadow,
            admin: AdminSection {
                listen: flags.admin_listen.clone().or(file.admin.listen),
                token: admin_token.unwrap_or(file.admin.token),
                show: file.admin.show,
            },
            takeover: TakeoverSection {
                socket: flags.takeover_socket.clone().or(file.takeover.socket),
                ..file.takeover
            },
            takes_over: flags.takeover,
            case: NameCase::Sensitive,
        };
        settings.validate()?;
        Ok(settings)
    }
}

impl ServiceFlags {
    /// Resolves the password file, if one is named.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn resolved(&self) -> Result<ServiceFlags, ConfigError> {
        let ServiceFlags {
            service_user,
            service_password,
            service_password_file,
        } = self.clone();
        Ok(ServiceFlags {
            service_user,
            service_password: secret(
                "service-password-file",
                service_password,
                service_password_file,
            )?,
            service_password_file: None,
        })
    }
}

/// Reads a secret: the value given, or the one line of a file. An empty file means none: the package's unit names a file before an account
/// exists.
pub fn secret(
    flag: &'static str,
    given: Option<String>,
    path: Option<PathBuf>,
) -> Result<Option<String>, ConfigError> {
    let Some(path) = path else {
        return Ok(given);
    };
    let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Secret {
        flag,
        path: path.clone(),
        source,
    })?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    match secret {
        "" => Ok(None),
        secret if secret.contains('\n') => Err(ConfigError::SecretOfLines { flag, path }),
        secret => Ok(Some(secret.to_owned())),
    }
}

#[cfg(test)]
mod tests;
