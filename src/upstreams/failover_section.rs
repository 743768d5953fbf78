//! The settings of `failover`, and the role of a port.

use serde::{Deserialize, Serialize};

/// How it is noticed that a server is lost, where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FailoverSection {
    /// Each server is asked so often what it is, in milliseconds.
    pub check_ms: u64,
    /// A server that has not answered within so many milliseconds is lost.
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

/// Whom clients of a port are led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListenerRole {
    /// The primary.
    #[default]
    Primary,
    /// One of the replicas, the same for all while it is there.
    Replica,
    /// The same; the primary where there is no replica.
    Any,
}

impl ListenerRole {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ListenerRole::Primary => "primary",
            ListenerRole::Replica => "replica",
            ListenerRole::Any => "any",
        }
    }
}
