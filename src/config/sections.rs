//! The sections of the settings file that belong to no other room.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::feeds::FeedDiscoveryMode;
use crate::link::proxy_header::ProxyHeaderVersion;

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

/// Which calls are compared with the procedure, as the file says it.
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
    /// Nobody asked for it: where the service account may not run the procedures, nothing is in the way of anything.
    pub by_default: bool,
}

impl ShadowSampling {
    /// The share where none is set.
    const DEFAULT_RATE: f64 = 0.0001;

    /// Those that are set; else few, where it is `possible` at all.
    pub(super) fn new(set: Option<f64>, possible: bool) -> ShadowSampling {
        let unasked = match possible {
            true => ShadowSampling::DEFAULT_RATE,
            false => 0.0,
        };
        ShadowSampling {
            rate: set.unwrap_or(unasked),
            by_default: set.is_none(),
        }
    }
}

/// Which SELECTs of feeds are narrowed, and of which feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedsSection {
    /// See [`NarrowPolicy`].
    pub narrow: NarrowPolicy,
    /// See [`FeedColumns`].
    pub columns: FeedColumns,
    /// What is done about feeds that the settings do not name.
    pub auto: FeedDiscoveryMode,
}

/// Which statements of a feed are narrowed, of those that can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NarrowPolicy {
    /// Those of forms that cost less so.
    #[default]
    Cheaper,
    /// All.
    Always,
}

/// How columns of narrowed statements are described, where that follows the server's plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedColumns {
    /// As the server has described them for a statement of the same form with about as many authors.
    #[default]
    Learned,
    /// As it would describe them now: it is asked for its plan each time.
    Exact,
}

/// The PROXY protocol on either side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxyProtocolSection {
    /// Who connects from these networks says with a header whom it speaks for, and is not served without.
    pub trusted: Vec<TrustedNetwork>,
    /// What the server is told about clients.
    pub send: ProxyHeaderVersion,
}

impl ProxyProtocolSection {
    /// True when who connects from this address has to send a header.
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

/// What becomes of a server's `redirect_url`, which has clients log in elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedirectPolicy {
    /// Clients do not see it, and stay.
    #[default]
    Drop,
    /// Clients see it, and may go past Headwater.
    Pass,
}

/// How long rights are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrivilegesSection {
    /// After so many seconds a session's right to execute the procedure, and its definer's to do what it does, are proved
    /// again; 0: at every call.
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
    /// Path of the socket where the next process asks for the sockets of this one, and this one asks the one before it.
    pub socket: Option<PathBuf>,
    /// Time that a process that takes over has to warm its memory, in milliseconds; then it takes over as it is.
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
    /// A command that takes so many milliseconds is logged; 0: none (`log.slow_ms`).
    pub slow_ms: u64,
}
