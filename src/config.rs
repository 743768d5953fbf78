//! Settings: flags, environment and file mean the same, in that order of precedence.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::limits::Limits;
use crate::timeline::definition::{Definition, DefinitionError};

/// Flags of `headwater serve`; each also has an environment variable and, but for `--config`, a key in the file.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeFlags {
    /// Settings file (TOML); headwater.example.toml documents each key
    #[arg(long, env = "HEADWATER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address on which MySQL clients connect [default: 127.0.0.1:3307]
    #[arg(long, env = "HEADWATER_LISTEN", value_name = "ADDR")]
    pub listen: Option<String>,
    /// Address of the MySQL or MariaDB server [default: 127.0.0.1:3306]
    #[arg(long, env = "HEADWATER_UPSTREAM", value_name = "ADDR")]
    pub upstream: Option<String>,
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
    /// Relay every call: nothing is answered by Headwater
    #[arg(long, env = "HEADWATER_RELAY_ONLY")]
    pub relay_only: bool,
    /// How much to log
    #[arg(long, env = "HEADWATER_LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,
    /// Form of the log
    #[arg(long, env = "HEADWATER_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// How much to log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Every setting of `headwater serve`, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address on which clients connect (`listen`).
    pub listen: String,
    /// Address of the database server (`upstream`).
    pub upstream: String,
    /// The service account (`service.user`, `service.password`).
    pub service: Option<Account>,
    /// False: every call is relayed (`accelerate`).
    pub accelerate: bool,
    /// The timelines to accelerate (`definition`); the classic one when the file names none.
    pub definitions: Vec<Definition>,
    /// The log (`log.level`, `log.format`).
    pub log: Log,
    /// Bounds on everything that could grow (`limits`).
    pub limits: Limits,
}

/// A database account.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// User name.
    pub user: String,
    /// Password; may be empty.
    #[serde(default)]
    pub password: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({:?})", self.user)
    }
}

/// The log's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// How much (`log.level`).
    pub level: LogLevel,
    /// In which form (`log.format`).
    pub format: LogFormat,
}

/// What is wrong with the settings, and where.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the settings file {path}: {source} (--config names it)")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or has an unknown key or a wrong type.
    #[error("{path}: {source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A definition is not usable.
    #[error("definition {name:?}: {source}")]
    Definition {
        /// Its name.
        name: String,
        /// Why.
        source: DefinitionError,
    },
    /// A password without a user.
    #[error(
        "a service password is set without a user: set --service-user (HEADWATER_SERVICE_USER, service.user) too"
    )]
    PasswordWithoutUser,
    /// An address without a port.
    #[error("{setting} = {value:?} is not an address: write HOST:PORT, such as 127.0.0.1:3306")]
    Address {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
    },
    /// A limit that cannot work.
    #[error("limits.{limit} = {value} is below the least that works, {least}")]
    Limit {
        /// The key.
        limit: &'static str,
        /// Its value.
        value: usize,
        /// The least value.
        least: usize,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<String>,
    upstream: Option<String>,
    accelerate: Option<bool>,
    service: Option<Account>,
    log: Log,
    limits: Limits,
    definition: Vec<Definition>,
}

impl Settings {
    /// Reads every setting and reports every kind of mistake before a port is opened.
    ///
    /// # Errors
    /// The first mistake found, naming the setting.
    pub fn load(flags: &ServeFlags) -> Result<Settings, ConfigError> {
        let file = match &flags.config {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let user = flags.service_user.clone();
        let service = match (user, flags.service_password.clone()) {
            (Some(user), password) => {
                let password = password
                    .or_else(|| {
                        file.service
                            .as_ref()
                            .map(|account| account.password.clone())
                    })
                    .unwrap_or_default();
                Some(Account { user, password })
            }
            (None, Some(password)) => match file.service {
                Some(account) => Some(Account {
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
        let definitions = if file.definition.is_empty() {
            vec![Definition::classic()]
        } else {
            file.definition
        };
        let settings = Settings {
            listen: flags
                .listen
                .clone()
                .or(file.listen)
                .unwrap_or("127.0.0.1:3307".into()),
            upstream: flags
                .upstream
                .clone()
                .or(file.upstream)
                .unwrap_or("127.0.0.1:3306".into()),
            service,
            accelerate: !flags.relay_only && file.accelerate.unwrap_or(true),
            definitions,
            log,
            limits: file.limits,
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), ConfigError> {
        address("listen", &self.listen)?;
        address("upstream", &self.upstream)?;
        for definition in &self.definitions {
            definition
                .validate()
                .map_err(|source| ConfigError::Definition {
                    name: definition.name.clone(),
                    source,
                })?;
        }
        let limits = &self.limits;
        for (limit, value, least) in [
            ("sessions", limits.sessions, 1),
            ("statement_bytes", limits.statement_bytes, 256),
            ("in_flight", limits.in_flight, 1),
            ("statements", limits.statements, 1),
            ("databases", limits.databases, 1),
            ("tail_bytes", limits.tail_bytes, 1024),
        ] {
            if value < least {
                return Err(ConfigError::Limit {
                    limit,
                    value,
                    least,
                });
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|source| ConfigError::Parse {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

fn address(setting: &'static str, value: &str) -> Result<(), ConfigError> {
    let valid = value.parse::<SocketAddr>().is_ok()
        || value
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if valid {
        Ok(())
    } else {
        Err(ConfigError::Address {
            setting,
            value: value.to_owned(),
        })
    }
}
