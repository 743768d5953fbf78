//! Settings: flags, environment and file mean the same, in that order of precedence.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::feed::{FeedLimits, FeedSection, Freshness, IndexSection, Mode};
use crate::limits::Limits;
use crate::timeline::definition::{Definition, DefinitionError};

/// Flags of `headwater serve` and `headwater check`; each also has an environment variable and, but for `--config`, a key in the file.
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
    #[command(flatten)]
    #[allow(missing_docs)]
    pub service: ServiceFlags,
    /// Memory for each timeline in each database, in bytes; 0: none, every call is answered by lookups.
    /// Needs the service account [default: 268435456]
    #[arg(long, env = "HEADWATER_INDEX_MEMORY_BYTES", value_name = "BYTES")]
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
    pub freshness: Option<Mode>,
    /// Share of the calls, from 0 to 1, for which the procedure itself runs as well, on a connection of the service
    /// account, to compare the answers; a difference is logged, and has the definition relayed until the next start
    /// [default: 0]
    #[arg(long, env = "HEADWATER_SHADOW", value_name = "RATE")]
    pub shadow: Option<f64>,
    /// Relay every call: nothing is answered by Headwater
    #[arg(long, env = "HEADWATER_RELAY_ONLY", value_parser = clap::builder::BoolishValueParser::new())]
    pub relay_only: bool,
    /// Threads that move bytes; 0: half of the machine's processors, at least one [default: 0]
    #[arg(long, env = "HEADWATER_THREADS", value_name = "N")]
    pub threads: Option<usize>,
    /// How much to log
    #[arg(long, env = "HEADWATER_LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,
    /// Form of the log
    #[arg(long, env = "HEADWATER_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
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
    /// Threads that move bytes (`threads`); 0: half of the machine's processors, at least one.
    pub threads: usize,
    /// The timelines to accelerate (`definition`); the classic one when the file names none.
    pub definitions: Vec<Definition>,
    /// The log (`log.level`, `log.format`).
    pub log: Log,
    /// Bounds on everything that could grow (`limits`).
    pub limits: Limits,
    /// When memory may answer (`freshness`).
    pub freshness: Freshness,
    /// Bounds of memory and of what fills it (`index`, `feed`).
    pub feed: FeedLimits,
    /// How long a right that was seen is taken to be there (`privileges.ttl_s`).
    pub privileges: Privileges,
    /// Which calls are compared with the procedure (`shadow`).
    pub shadow: ShadowSection,
}

/// Which calls are compared with the procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShadowSection {
    /// The share of the calls, from 0 (none) to 1 (all).
    pub rate: f64,
}

/// How long rights are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Privileges {
    /// After so many seconds a session's right to execute the procedure is proved again; 0: at every call.
    pub ttl_s: u64,
}

impl Default for Privileges {
    fn default() -> Self {
        Privileges { ttl_s: 1 }
    }
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
    #[error("cannot read the settings file {path} (--config names it)")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or has an unknown key or a wrong type.
    #[error("{path}, line {line}, {setting}: {message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key on it, with its section in front.
        setting: String,
        /// What is wrong.
        message: String,
    },
    /// A definition is not usable.
    #[error("definition {name:?}: {reason}")]
    Definition {
        /// Its name.
        name: String,
        /// Why.
        reason: DefinitionError,
    },
    /// A password without a user.
    #[error(
        "a service password is set without a user: set --service-user (HEADWATER_SERVICE_USER, service.user) too"
    )]
    PasswordWithoutUser,
    /// A share below none, or above all.
    #[error("shadow.rate = {0} (--shadow, HEADWATER_SHADOW) is no share: from 0 (none) to 1 (all)")]
    ShadowRate(f64),
    /// Comparing, without what it takes.
    #[error(
        "shadow.rate (--shadow, HEADWATER_SHADOW) needs {0}: answers are compared on its connection, beside the server's log"
    )]
    ShadowWithout(&'static str),
    /// An address without a port.
    #[error("{setting} = {value:?} is not an address: write HOST:PORT, such as 127.0.0.1:3306")]
    Address {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
    },
    /// A timeline that no call could be answered for.
    #[error(
        "definition {name}: n = {n} leaves up to {ids} ids, more than limits.pending_ids = {most}: raise that"
    )]
    PendingIds {
        /// Its name.
        name: String,
        /// Its n.
        n: u32,
        /// n times n.
        ids: usize,
        /// The limit.
        most: usize,
    },
    /// A limit beyond what is known to work.
    #[error("limits.{limit} = {value} is above the most that works, {most}")]
    LimitAbove {
        /// The key.
        limit: &'static str,
        /// Its value.
        value: usize,
        /// The greatest value.
        most: usize,
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

/// More ids than these may not fit a MEMORY table of the smallest size that sessions are accelerated with.
const MOST_PENDING: usize = 30_000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<String>,
    upstream: Option<String>,
    accelerate: Option<bool>,
    threads: Option<usize>,
    service: Option<Account>,
    log: Log,
    limits: Limits,
    index: IndexSection,
    freshness: Freshness,
    feed: FeedSection,
    privileges: Privileges,
    shadow: ShadowSection,
    definition: Vec<Definition>,
}

impl Settings {
    /// How many threads move bytes. Measured on two cores shared with the server, one does better than
    /// two: with fewer threads fewer of them have to be woken.
    #[must_use]
    pub fn worker_threads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match self.threads {
            0 => (processors / 2).max(1),
            threads => threads,
        }
    }

    /// Reads every setting and reports every kind of mistake before a port is opened.
    ///
    /// # Errors
    /// The first mistake found, naming the setting.
    pub fn load(flags: &ServeFlags) -> Result<Settings, ConfigError> {
        let file = match &flags.config {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let ServiceFlags {
            service_user,
            service_password,
        } = flags.service.clone();
        let service = match (service_user, service_password) {
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
            threads: flags.threads.or(file.threads).unwrap_or(0),
            definitions,
            log,
            limits: file.limits,
            freshness: Freshness {
                mode: flags.freshness.unwrap_or(file.freshness.mode),
                ..file.freshness
            },
            feed: FeedLimits {
                memory_bytes: flags.index_memory_bytes.unwrap_or(file.index.memory_bytes),
                preload: flags.preload || file.index.preload,
                wait_ms: file.index.wait_ms,
                transaction_rows: file.feed.transaction_rows,
                keep_recent: flags.shadow.unwrap_or(file.shadow.rate) > 0.0,
            },
            privileges: file.privileges,
            shadow: ShadowSection {
                rate: flags.shadow.unwrap_or(file.shadow.rate),
            },
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
                .map_err(|reason| ConfigError::Definition {
                    name: definition.name.clone(),
                    reason,
                })?;
        }
        let rate = self.shadow.rate;
        if !(0.0..=1.0).contains(&rate) {
            return Err(ConfigError::ShadowRate(rate));
        }
        if rate > 0.0 && self.service.is_none() {
            return Err(ConfigError::ShadowWithout(
                "the service account (--service-user)",
            ));
        }
        if rate > 0.0 && self.feed.memory_bytes == 0 {
            return Err(ConfigError::ShadowWithout(
                "memory (index.memory_bytes above 0)",
            ));
        }
        let limits = &self.limits;
        for (limit, value, least) in [
            ("sessions", limits.sessions, 1),
            (
                "connect_ms",
                usize::try_from(limits.connect_ms).unwrap_or(usize::MAX),
                1,
            ),
            ("statement_bytes", limits.statement_bytes, 256),
            ("in_flight", limits.in_flight, 1),
            ("statements", limits.statements, 1),
            ("authors", limits.authors, 1),
            ("follow_edges", limits.follow_edges, 1),
            ("databases", limits.databases, 1),
            (
                "check_ms",
                usize::try_from(limits.check_ms).unwrap_or(usize::MAX),
                1,
            ),
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
        if limits.pending_ids > MOST_PENDING {
            return Err(ConfigError::LimitAbove {
                limit: "pending_ids",
                value: limits.pending_ids,
                most: MOST_PENDING,
            });
        }
        for definition in &self.definitions {
            let ids = definition.max_ids();
            if ids > limits.pending_ids {
                return Err(ConfigError::PendingIds {
                    name: definition.name.clone(),
                    n: definition.n,
                    ids,
                    most: limits.pending_ids,
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
    toml::from_str(&text).map_err(|error| mistake(path, &text, &error))
}

/// The parser's own text takes several lines, and shows the value: it may be a password.
fn mistake(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count();
    let on_line = text.lines().nth(line).unwrap_or_default().trim();
    let section_of = |line: &str| line.trim().trim_matches(['[', ']']).to_owned();
    let setting = if on_line.starts_with('[') {
        section_of(on_line)
    } else {
        let key = on_line.split('=').next().unwrap_or_default().trim();
        match text
            .lines()
            .take(line)
            .filter(|line| line.trim().starts_with('['))
            .last()
        {
            Some(section) => format!("{}.{key}", section_of(section)),
            None => key.to_owned(),
        }
    };
    ConfigError::Parse {
        path: path.to_owned(),
        line: line + 1,
        setting,
        message: error.message().replace('\n', " "),
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/headwater.example.toml");

    fn load(text: &str) -> Result<Settings, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headwater.toml");
        std::fs::write(&path, text).unwrap();
        Settings::load(&ServeFlags {
            config: Some(path),
            ..ServeFlags::default()
        })
    }

    fn example() -> String {
        std::fs::read_to_string(EXAMPLE).unwrap()
    }

    #[test]
    fn the_example_says_what_the_defaults_are() {
        let settings = load(&example()).unwrap();
        let defaults = Settings::load(&ServeFlags::default()).unwrap();
        assert_eq!(format!("{settings:?}"), format!("{defaults:?}"));
    }

    #[test]
    fn a_timeline_longer_than_what_may_be_held_is_refused_by_name() {
        let text = "[limits]\npending_ids = 399\n";
        let error = load(text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("limits.pending_ids = 399"), "{error}");
        load("[limits]\npending_ids = 400\n").unwrap();
    }

    #[test]
    fn the_example_has_every_key() {
        let table: toml::Table = example().parse().unwrap();
        let limits = table.get("limits").and_then(toml::Value::as_table).unwrap();
        let fields = format!("{:?}", Limits::default()).matches(": ").count();
        assert_eq!(limits.len(), fields);
        let classic = toml::Table::try_from(Definition::classic()).unwrap();
        let definition = table
            .get("definition")
            .and_then(|list| list.get(0))
            .unwrap();
        for (key, value) in &classic {
            assert_eq!(definition.get(key), Some(value), "{key}");
        }
    }

    #[test]
    fn the_keys_that_the_example_leaves_out_exist() {
        let text: String = example()
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(key) if !key.starts_with(' ') && !key.is_empty() => format!("{key}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let settings = load(&text).unwrap();
        assert_eq!(settings.service.unwrap().user, "headwater");
        let database = settings.definitions.first().unwrap().database.clone();
        assert_eq!(database.as_deref(), Some("social"));
    }

    #[test]
    fn a_mistake_in_the_file_is_one_line_with_the_setting_and_without_its_value() {
        for (text, line, setting) in [
            ("lisen = \"x\"", 1, "lisen"),
            ("\n[limits]\nsession = 3", 3, "limits.session"),
            ("[limits]\nsessions = \"many\"", 2, "limits.sessions"),
            ("[log]\nlevel = \"loud\"", 2, "log.level"),
            ("[service]\npassword = \"s3cret\"", 1, "service"),
            (
                "[service]\nuser = \"a\"\npassword = 12345",
                3,
                "service.password",
            ),
            (
                "[[definition]]\n[definition.message]\nids = \"id\"",
                3,
                "definition.message.ids",
            ),
            ("listen = ", 1, "listen"),
        ] {
            let error = load(text).unwrap_err().to_string();
            let place = format!(", line {line}, {setting}: ");
            assert!(error.contains(&place), "{error} lacks {place}");
            assert!(!error.contains('\n'), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_value_that_cannot_work_is_named() {
        for (text, named) in [
            ("listen = \"here\"", "listen"),
            ("upstream = \"127.0.0.1\"", "upstream"),
            ("upstream = \":3306\"", "upstream"),
            ("[limits]\nsessions = 0", "limits.sessions"),
            ("[limits]\nconnect_ms = 0", "limits.connect_ms"),
            ("[[definition]]\nn = 0", "n = 0"),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(named), "{error} lacks {named}");
        }
    }

    #[test]
    fn flags_go_before_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headwater.toml");
        let text =
            "upstream = \"a:1\"\nlisten = \"b:2\"\n[service]\nuser = \"u\"\npassword = \"p\"";
        std::fs::write(&path, text).unwrap();
        let settings = Settings::load(&ServeFlags {
            config: Some(path),
            upstream: Some("c:3".into()),
            service: ServiceFlags {
                service_user: Some("v".into()),
                service_password: None,
            },
            ..ServeFlags::default()
        })
        .unwrap();
        assert_eq!(
            (settings.upstream.as_str(), settings.listen.as_str()),
            ("c:3", "b:2")
        );
        let service = settings.service.unwrap();
        assert_eq!(
            (service.user.as_str(), service.password.as_str()),
            ("v", "p")
        );
    }

    #[test]
    fn a_password_alone_is_a_mistake() {
        let error = Settings::load(&ServeFlags {
            service: ServiceFlags {
                service_user: None,
                service_password: Some(String::new()),
            },
            ..ServeFlags::default()
        });
        assert!(matches!(error, Err(ConfigError::PasswordWithoutUser)));
    }
}
