//! The servers, and further ports for clients.

use std::fmt;

use serde::{Deserialize, Serialize};

use headwater_proxy::upstreams::ListenerRole;

/// A longer list of servers is surely a mistake.
pub const MOST_SERVERS: usize = 16;

/// Addresses of the servers: one, or several of which one is the primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "UpstreamListInput", into = "UpstreamListInput")]
pub struct UpstreamList(Vec<String>);

/// The form in the file: one address, or a list.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected an address such as \"db1:3306\", or a list of them"
)]
enum UpstreamListInput {
    One(String),
    Several(Vec<String>),
}

impl From<UpstreamListInput> for UpstreamList {
    fn from(written: UpstreamListInput) -> UpstreamList {
        UpstreamList(match written {
            UpstreamListInput::One(address) => vec![address],
            UpstreamListInput::Several(addresses) => addresses,
        })
    }
}

impl From<UpstreamList> for UpstreamListInput {
    fn from(servers: UpstreamList) -> UpstreamListInput {
        match <[String; 1]>::try_from(servers.0) {
            Ok([address]) => UpstreamListInput::One(address),
            Err(addresses) => UpstreamListInput::Several(addresses),
        }
    }
}

impl Default for UpstreamList {
    fn default() -> UpstreamList {
        UpstreamList::one("127.0.0.1:3306")
    }
}

impl fmt::Display for UpstreamList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl UpstreamList {
    /// A list of one server.
    #[must_use]
    pub fn one(address: &str) -> UpstreamList {
        UpstreamList(vec![address.to_owned()])
    }

    /// These servers; `None` if the list is empty.
    #[must_use]
    pub fn of(addresses: &[String]) -> Option<UpstreamList> {
        (!addresses.is_empty()).then(|| UpstreamList(addresses.to_vec()))
    }

    /// Every address, in the order of the list.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.0
    }

    /// The first server.
    #[must_use]
    pub fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// True if there are several servers, one of which is the primary.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }
}

/// A further port for clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerSection {
    /// Its address.
    pub listen: String,
    /// Which server its clients are routed to.
    #[serde(default)]
    pub role: ListenerRole,
}
