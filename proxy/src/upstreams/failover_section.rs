//! The settings of `failover`, and the role of a port.

use serde::{Deserialize, Serialize};

/// How the loss of a server is detected, with several servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FailoverSection {
    /// Interval between probes of a server, in milliseconds.
    pub check_ms: u64,
    /// A server that has not replied for this many milliseconds is lost.
    pub patience_ms: u64,
}

impl Default for FailoverSection {
    fn default() -> FailoverSection {
        FailoverSection {
            check_ms: 250,
            patience_ms: 1_000,
        }
    }
}

/// Which server the clients of a port are routed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListenerRole {
    /// The primary.
    #[default]
    Primary,
    /// One replica, the same for all clients while it is available.
    Replica,
    /// As `Replica`, or the primary if there is no replica.
    Any,
}

impl ListenerRole {
    /// The name in the settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ListenerRole::Primary => "primary",
            ListenerRole::Replica => "replica",
            ListenerRole::Any => "any",
        }
    }
}
