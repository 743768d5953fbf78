//! Compares the settings in force with the settings that were read again.

use serde::{Deserialize, Serialize};

use super::{AdminSection, LogSection, ServeSettings};
use headwater_proxy::binlog::RowsSection;

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// Its name, as in the settings file.
    pub name: String,
    /// Old value; empty: not set. Secrets are masked.
    pub before: String,
    /// New value; empty: not set. Secrets are masked.
    pub after: String,
}

/// Result of reading the settings again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChanges {
    /// Changes that are in force now.
    pub changed: Vec<SettingChange>,
    /// Changes that take effect only after a restart.
    pub need_restart: Vec<SettingChange>,
}

/// The outcome of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadOutcome {
    /// The settings that differ.
    #[serde(flatten)]
    pub changes: SettingChanges,
    /// Number of definitions, and of cached rows, that are served again after an answer had differed.
    pub trusted_again: usize,
}

impl std::fmt::Display for SettingChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |value: &str| match value {
            "" => "not set".to_owned(),
            value => value.to_owned(),
        };
        let (before, after) = (shown(&self.before), shown(&self.after));
        write!(f, "{}: {before} -> {after}", self.name)
    }
}

impl ServeSettings {
    /// Computes what can take effect without a restart, and what differs. `relays_only`: the process was started with `--relay-only` and
    /// has no memory.
    #[must_use]
    pub fn reloaded(
        &self,
        requested: &ServeSettings,
        relays_only: bool,
    ) -> (ServeSettings, SettingChanges) {
        let mut next = requested.clone().retaining(self);
        // A relay-only process has nothing to accelerate with.
        next.accelerate &= !relays_only;
        let changes = SettingChanges {
            changed: differences(self, &next),
            need_restart: differences(&next, requested),
        };
        (next, changes)
    }

    /// These settings, but for what the process was built upon: ports, threads, connections to the server, and memory stay as they are
    /// `now`. A new setting does not compile until it says here, or in its section, which of the two it is.
    fn retaining(self, now: &ServeSettings) -> ServeSettings {
        let now = now.clone();
        ServeSettings {
            listen: now.listen,
            socket: now.socket,
            upstream: now.upstream,
            failover: now.failover,
            listeners: now.listeners,
            proxy_protocol: now.proxy_protocol,
            upstream_tls: now.upstream_tls,
            threads: now.threads,
            freshness: now.freshness,
            binlog: now.binlog,
            requested_limits: now.requested_limits,
            memory: now.memory,
            takeover: now.takeover,
            takes_over: now.takes_over,
            limits: self.limits.retaining(&now.limits),
            rows: RowsSection {
                memory_bytes: now.rows.memory_bytes,
                tables: self.rows.tables,
            },
            log: LogSection {
                level: self.log.level,
                format: now.log.format,
                slow_ms: self.log.slow_ms,
            },
            admin: AdminSection {
                listen: now.admin.listen,
                token: now.admin.token,
                show: self.admin.show,
            },
            service: match (now.service, self.service) {
                // The same account may have a new password.
                (Some(now), Some(requested)) if now.user == requested.user => Some(requested),
                (now, _) => now,
            },
            accelerate: self.accelerate,
            case: self.case,
            classic_by_default: self.classic_by_default,
            compression: self.compression,
            definitions: self.definitions,
            feeds: self.feeds,
            narrow: self.narrow,
            privileges: self.privileges,
            redirect_url: self.redirect_url,
            shadow: self.shadow,
            tls: self.tls,
        }
    }
}

/// Lists each setting that differs, sorted by name.
fn differences(before: &ServeSettings, after: &ServeSettings) -> Vec<SettingChange> {
    let (told_before, told_after) = (before.setting_values(), after.setting_values());
    let value = |values: &[(String, String)], name: &str| {
        let entry = values.iter().find(|(own, _)| own == name);
        entry.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let mut names: Vec<&String> = told_before
        .iter()
        .chain(&told_after)
        .map(|(name, _)| name)
        .collect();
    names.sort();
    names.dedup();
    let password = |settings: &ServeSettings| {
        let service = settings.service.as_ref();
        service.map(|account| account.password.clone())
    };
    // Secrets are masked in the values, so they are compared here.
    let secret = |name: &str| match name {
        "service.password" => password(before) != password(after),
        "admin.token" => before.admin.token != after.admin.token,
        _ => false,
    };
    let differs = names.into_iter().filter_map(|name| {
        let (before, after) = (value(&told_before, name), value(&told_after, name));
        (before != after || secret(name)).then(|| SettingChange {
            name: name.clone(),
            before,
            after: match secret(name) && !after.is_empty() {
                true => "(another one)".to_owned(),
                false => after,
            },
        })
    });
    differs.collect()
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::config::{ServeFlags, ServiceSection};
    use headwater_timeline::definition::TimelineDefinition;

    fn defaults() -> ServeSettings {
        ServeSettings::load(&ServeFlags::default()).expect("the defaults are right")
    }

    fn told(changes: &[SettingChange]) -> Vec<String> {
        changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn settings_that_are_the_same_change_nothing() {
        let (next, changes) = defaults().reloaded(&defaults(), false);
        assert_eq!(next, defaults());
        assert_eq!(changes, SettingChanges::default());
        // A relay-only process needs a restart to accelerate.
        let mut relaying = defaults();
        relaying.accelerate = false;
        let (next, changes) = relaying.reloaded(&defaults(), true);
        assert!(!next.accelerate);
        assert_eq!(told(&changes.need_restart), ["accelerate: false -> true"]);
    }

    #[test]
    fn each_change_is_reported_by_name_and_restart_settings_stay() {
        let now = defaults();
        let mut wished = now.clone();
        wished.limits.connect_ms = 7;
        wished.limits.sessions = 11;
        wished.privileges.ttl_s = 9;
        wished.listen = "127.0.0.1:1".to_owned();
        wished.definitions.push(TimelineDefinition {
            name: "second".to_owned(),
            ..TimelineDefinition::classic()
        });
        let (
            next,
            SettingChanges {
                changed,
                need_restart,
            },
        ) = now.reloaded(&wished, false);
        let changed = told(&changed);
        assert!(
            changed.contains(&"limits.connect_ms: 10000 -> 7".to_owned()),
            "{changed:?}"
        );
        assert!(
            changed.contains(&"privileges.ttl_s: 1 -> 9".to_owned()),
            "{changed:?}"
        );
        assert!(
            changed.contains(&"definition.second.n: not set -> 20".to_owned()),
            "{changed:?}"
        );
        assert_eq!(
            told(&need_restart),
            [
                "limits.sessions: 10000 -> 11",
                "listen: 127.0.0.1:3307 -> 127.0.0.1:1"
            ]
        );
        assert_eq!((next.limits.sessions, next.limits.connect_ms), (10_000, 7));
        assert_eq!(next.listen, now.listen);
    }

    #[test]
    fn another_password_takes_effect_masked_and_another_user_needs_a_restart() {
        let account = |user: &str, password: &str| {
            let (user, password) = (user.to_owned(), password.to_owned());
            Some(ServiceSection { user, password })
        };
        let mut now = defaults();
        now.service = account("headwater", "first");
        let mut wished = now.clone();
        wished.service = account("headwater", "second");
        let (next, changes) = now.reloaded(&wished, false);
        assert_eq!(next.service, wished.service);
        assert_eq!(
            told(&changes.changed),
            ["service.password: (set) -> (another one)"]
        );
        assert_eq!(changes.need_restart, []);
        wished.service = account("other", "second");
        let (next, changes) = now.reloaded(&wished, false);
        assert_eq!(next.service, now.service);
        assert_eq!(changes.changed, []);
        assert_eq!(
            told(&changes.need_restart)[1],
            "service.user: headwater -> other"
        );
    }
}
