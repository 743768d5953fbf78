//! The sections of the settings file that belong to no other module.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use headwater_proxy::feeds::FeedDiscoveryMode;
use headwater_proxy::link::proxy_header::ProxyHeaderVersion;

/// How much to log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The settings file's section `shadow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShadowSection {
    /// The share of the calls, from 0 (none) to 1 (all).
    pub rate: Option<f64>,
}

/// Which calls are compared with the procedure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowSampling {
    /// The share of the calls, from 0 (none) to 1 (all).
    pub rate: f64,
    /// The settings do not name a rate: if the service account may not run the procedures, nothing is compared and nothing is blocked.
    pub by_default: bool,
}

impl ShadowSampling {
    /// The rate if none is set.
    const DEFAULT_RATE: f64 = 0.0001;

    /// Takes the rate that is set, or the default if comparing is `possible`.
    pub(super) fn new(set: Option<f64>, possible: bool) -> ShadowSampling {
        let default_rate = match possible {
            true => ShadowSampling::DEFAULT_RATE,
            false => 0.0,
        };
        ShadowSampling {
            rate: set.unwrap_or(default_rate),
            by_default: set.is_none(),
        }
    }
}

/// Which feeds are narrowed, and which of their SELECTs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedsSection {
    /// See [`NarrowPolicy`].
    pub narrow: NarrowPolicy,
    /// See [`FeedColumns`].
    pub columns: FeedColumns,
    /// What to do about feeds that the settings do not name.
    pub auto: FeedDiscoveryMode,
}

/// Which of the statements that can be narrowed are narrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NarrowPolicy {
    /// Statements of forms that narrowing makes cheaper.
    #[default]
    Cheaper,
    /// All of them.
    Always,
}

/// How columns of narrowed statements are described where the description depends on the server's plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedColumns {
    /// As the server described them for a statement of the same form with about as many authors.
    #[default]
    Learned,
    /// As the server would describe them now: Headwater asks for its plan each time.
    Exact,
}

/// The PROXY protocol on either side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxyProtocolSection {
    /// Connections from these networks must send a header that names their client; without one they are refused.
    pub trusted: Vec<TrustedNetwork>,
    /// Which header the server gets about clients.
    pub send: ProxyHeaderVersion,
}

impl ProxyProtocolSection {
    /// True if a connection from this address must send a header.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted
            .iter()
            .any(|network| network.0.contains(&address))
    }
}

/// An address, or a network of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrustedNetwork(IpNet);

impl From<TrustedNetwork> for String {
    fn from(network: TrustedNetwork) -> String {
        network.0.to_string()
    }
}

impl TryFrom<String> for TrustedNetwork {
    type Error = String;

    fn try_from(text: String) -> Result<TrustedNetwork, String> {
        let address = text.parse::<IpAddr>().map(IpNet::from);
        let network = address.or_else(|_| text.parse::<IpNet>());
        network
            .map(TrustedNetwork)
            .map_err(|_| "neither an address nor a network such as 10.0.0.0/8".to_owned())
    }
}

/// What happens to a server's `redirect_url`, which makes clients log in elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedirectPolicy {
    /// Clients do not see it and stay.
    #[default]
    Drop,
    /// Clients see it and may bypass Headwater.
    Pass,
}

/// How long privileges are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrivilegesSection {
    /// After this many seconds, a session's privilege to execute the procedure and its definer's privileges are verified again; 0: at every
    /// call.
    pub ttl_s: u64,
}

impl Default for PrivilegesSection {
    fn default() -> Self {
        PrivilegesSection { ttl_s: 1 }
    }
}

/// How one process takes over from another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TakeoverSection {
    /// Path of the socket where the next process asks this one for its sockets, and this one asked its predecessor.
    pub socket: Option<PathBuf>,
    /// Time that a new process has to warm its memory, in milliseconds; then it takes over anyway.
    pub warm_ms: u64,
}

impl Default for TakeoverSection {
    fn default() -> Self {
        TakeoverSection {
            socket: None,
            warm_ms: 60_000,
        }
    }
}

/// A database account.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSection {
    /// User name.
    pub user: String,
    /// Password; may be empty.
    #[serde(default)]
    pub password: String,
}

impl std::fmt::Debug for ServiceSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({:?})", self.user)
    }
}

/// The log's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// How much (`log.level`).
    pub level: LogLevel,
    /// In which form (`log.format`).
    pub format: LogFormat,
    /// Log a command that takes this many milliseconds; 0: none (`log.slow_ms`).
    pub slow_ms: u64,
}
