//! What is looked for in settings before a port is opened.

use std::net::SocketAddr;

use super::Settings;
use super::error::ConfigError;

/// More ids than these may not fit a MEMORY table of the smallest size that sessions are accelerated with.
const MOST_PENDING: usize = 30_000;

impl Settings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
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
