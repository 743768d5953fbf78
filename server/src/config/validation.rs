//! Validates settings before a port is opened.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::ServeSettings;
use super::error::ConfigError;
use super::memory::MIN_LIMIT;
use super::upstream::MOST_SERVERS;
use headwater_proxy::feeds::FeedDiscoveryMode;
use headwater_proxy::link::is_path;
use headwater_proxy::tls::TlsMode;
use headwater_proxy::upstreams::ListenerRole;
use headwater_session::compression_frames::{ClientCompression, CompressionPolicy};

/// Less memory holds no useful number of rows, and is surely a mistake: the value is in bytes, not mebibytes.
const MIN_ROWS_BYTES: usize = 1 << 20;
/// Ports for clients beside `listen`.
pub(crate) const MOST_LISTENERS: usize = 16;

impl ServeSettings {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check_address("listen", &self.listen)?;
        self.check_upstream()?;
        self.check_tls()?;
        if self.takes_over && self.takeover.socket.is_none() {
            return Err(ConfigError::TakeoverWithoutSocket);
        }
        if let Some(admin) = self.admin.address() {
            check_address("admin.listen", admin)?;
        }
        if let Some(problem) = self.admin.problem() {
            return Err(ConfigError::Admin(problem));
        }
        if self.tls.passthrough && self.compression != CompressionPolicy::MIRROR {
            let setting = match self.compression.clients {
                ClientCompression::Mirror => "compression.server",
                _ => "compression.clients",
            };
            return Err(ConfigError::CompressionPassedThrough { setting });
        }
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
        if rate > 0.0 && self.binlog.memory_bytes == 0 {
            return Err(ConfigError::ShadowWithout(
                "memory (index.memory_bytes above 0)",
            ));
        }
        if self.memory.limit < MIN_LIMIT {
            return Err(ConfigError::MemoryLimit {
                value: self.memory.limit,
                least: MIN_LIMIT,
            });
        }
        self.limits.validate()?;
        let mut names = BTreeSet::new();
        for feed in &self.feeds {
            let fault = |reason: String| ConfigError::Feed {
                name: feed.name.clone(),
                reason,
            };
            feed.validate().map_err(|error| fault(error.to_string()))?;
            if !names.insert(&feed.name) {
                return Err(fault("two feeds have this name: give each its own".into()));
            }
        }
        let auto = self.narrow.auto == FeedDiscoveryMode::On;
        if auto && self.service.is_none() {
            return Err(ConfigError::AutoWithout(
                "the service account (--service-user, HEADWATER_SERVICE_USER, service.user)",
            ));
        }
        if auto && self.binlog.memory_bytes == 0 {
            return Err(ConfigError::AutoWithout(
                "memory (index.memory_bytes above 0)",
            ));
        }
        if !self.feeds.is_empty() && self.service.is_none() {
            return Err(ConfigError::FeedWithout(
                "the service account (--service-user, HEADWATER_SERVICE_USER, service.user)",
            ));
        }
        if !self.feeds.is_empty() && self.binlog.memory_bytes == 0 {
            return Err(ConfigError::FeedWithout(
                "memory (index.memory_bytes above 0)",
            ));
        }
        self.check_rows()?;
        for definition in &self.definitions {
            let ids = definition.max_ids();
            if ids > self.limits.pending_ids {
                return Err(ConfigError::PendingIds {
                    name: definition.name.clone(),
                    n: definition.n,
                    ids,
                    most: self.limits.pending_ids,
                });
            }
        }
        Ok(())
    }
}

impl ServeSettings {
    /// Checks the servers, and the ports routed to them, for contradictions.
    fn check_upstream(&self) -> Result<(), ConfigError> {
        let servers = self.upstream.all();
        let several = self.upstream.are_several();
        if servers.is_empty() || servers.len() > MOST_SERVERS {
            return Err(ConfigError::Servers(servers.len()));
        }
        for (at, server) in servers.iter().enumerate() {
            check_address("upstream", server)?;
            if several && is_path(server) {
                return Err(ConfigError::SocketAmongServers(server.clone()));
            }
            let mut before = servers.iter().take(at);
            if before.any(|before| before.eq_ignore_ascii_case(server)) {
                return Err(ConfigError::SameServer(server.clone()));
            }
        }
        if several && self.service.is_none() {
            return Err(ConfigError::ServersWithoutAccount);
        }
        for (setting, value, least, most) in [
            ("failover.check_ms", self.failover.check_ms, 10, 60_000),
            (
                "failover.patience_ms",
                self.failover.patience_ms,
                50,
                60_000,
            ),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ConfigError::Failover {
                    setting,
                    value,
                    least,
                    most,
                });
            }
        }
        if self.listeners.len() > MOST_LISTENERS {
            return Err(ConfigError::Listeners {
                count: self.listeners.len(),
                most: MOST_LISTENERS,
            });
        }
        let mut ports = vec![&self.listen];
        for listener in &self.listeners {
            check_address("listener.listen", &listener.listen)?;
            if ports.contains(&&listener.listen) {
                return Err(ConfigError::SamePort(listener.listen.clone()));
            }
            ports.push(&listener.listen);
            if listener.role != ListenerRole::Primary && !several {
                return Err(ConfigError::ListenerRole {
                    listen: listener.listen.clone(),
                    role: listener.role.name(),
                });
            }
        }
        Ok(())
    }

    /// Checks `rows.memory_bytes` and `rows.tables`.
    fn check_rows(&self) -> Result<(), ConfigError> {
        let bytes = self.rows.memory_bytes;
        if (1..MIN_ROWS_BYTES).contains(&bytes) {
            return Err(ConfigError::RowsBytes {
                bytes,
                least: MIN_ROWS_BYTES,
            });
        }
        // Feeds discovered while serving are not known yet.
        let known = self.narrow.auto != FeedDiscoveryMode::On;
        for entry in self.rows.tables.iter().filter(|_| known) {
            let table = entry.rsplit_once('.').map_or(&**entry, |(_, table)| table);
            let feeds = self.feeds.iter().map(|feed| &feed.message.table);
            let timelines = self
                .definitions
                .iter()
                .map(|definition| &definition.message.table);
            if !feeds
                .chain(timelines)
                .any(|known_table| known_table == table)
            {
                return Err(ConfigError::RowsTable(entry.clone()));
            }
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), ConfigError> {
        let (tls, upstream) = (&self.tls, &self.upstream_tls);
        let offered = tls.is_offered(upstream);
        let problems = [
            (
                tls.cert.is_some() != tls.key.is_some(),
                "tls.cert",
                "and tls.key (--tls-cert, --tls-key) go together: set both, or neither",
            ),
            (
                tls.cert.is_some() && tls.self_signed,
                "tls.self_signed",
                "(--tls-self-signed) makes a certificate in place of tls.cert: set one of them",
            ),
            (
                tls.passthrough && (tls.is_set() || tls.required),
                "tls.passthrough",
                "leaves TLS to client and server: it goes with none of tls.cert, tls.self_signed and tls.required",
            ),
            (
                tls.passthrough && is_path(self.upstream.first()),
                "tls.passthrough",
                "hides from Headwater who logs in, and where upstream is a socket the server would take anyone for the user that \
                 Headwater runs as: set upstream = HOST:PORT, or leave tls.passthrough out",
            ),
            (
                !offered && tls.required,
                "tls.required",
                "refuses every client while none is offered TLS: set tls.cert and tls.key, or tls.own = true",
            ),
            (
                !offered && tls.client_ca.is_some(),
                "tls.client_ca",
                "asks clients for certificates that they can show with TLS only: set tls.cert and tls.key, or tls.own = true",
            ),
            (
                tls.is_set() && upstream.mirror && upstream.mode == TlsMode::Disabled,
                "upstream_tls.mode",
                "= \"disabled\" (--upstream-tls) has no client use TLS while the server's side mirrors the client's: set \
                 upstream_tls.mirror = false, or leave tls.cert and tls.self_signed out",
            ),
            (
                !offered && !tls.passthrough && upstream.mirror && upstream.mode.is_required(),
                "upstream_tls.mode",
                "(--upstream-tls) wants TLS to the server, which has it only where the client has it: set tls.cert and \
                 tls.key, tls.own = true, or upstream_tls.mirror = false",
            ),
            (
                upstream.mode.verifies() && upstream.ca.is_none(),
                "upstream_tls.mode",
                "(--upstream-tls) verifies the server's certificate: set upstream_tls.ca (--upstream-tls-ca)",
            ),
            (
                upstream.ca.is_some() && !upstream.mode.verifies(),
                "upstream_tls.ca",
                "(--upstream-tls-ca) is of use with upstream_tls.mode = \"verify-ca\" or \"verify-identity\" only",
            ),
            (
                upstream.cert.is_some() != upstream.key.is_some(),
                "upstream_tls.cert",
                "and upstream_tls.key go together: set both, or neither",
            ),
        ];
        match problems.into_iter().find(|(wrong, ..)| *wrong) {
            Some((_, setting, problem)) => Err(ConfigError::Tls { setting, problem }),
            None => Ok(()),
        }
    }
}

fn check_address(setting: &'static str, value: &str) -> Result<(), ConfigError> {
    let valid = setting == "upstream" && is_path(value)
        || value.parse::<SocketAddr>().is_ok()
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
