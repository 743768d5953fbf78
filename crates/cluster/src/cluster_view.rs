//! The conclusion: which server is the primary, what the others are, and what has changed since the last one.
//!
//! - A server that does not answer, or refuses writes, is no primary.
//! - Who is followed stays so while it takes writes: another one that takes writes too is told of, and is not followed.
//! - Where nobody is followed and several take writes, one that another server replicates comes first, then the order of the list. In a
//!   group or a Galera cluster they share their writes, and nothing is said.
//! - While a member of a group or of a Galera cluster answers, a server that is none is not chosen.
//! - Who was followed before another one was, and has not refused writes since, may lack what came after: it is not chosen while there
//!   is a replica that may be promoted.

use std::time::Instant;

use crate::server_report::{PrimaryFault, ServerReport};

/// What was seen of a server when it was asked last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerObservation {
    /// It was not asked yet.
    #[default]
    Unasked,
    /// It does not answer, and why.
    Unreachable(String),
    /// It answers, and says nothing of itself: what it says instead.
    Refused(String),
    /// What it says.
    Reported(Box<ServerReport>),
}

/// What a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerRole {
    /// Nobody knows yet.
    #[default]
    Unknown,
    /// Sessions go there.
    Primary,
    /// It refuses writes, and answers reads.
    Replica,
    /// It takes writes that the primary does not get.
    Stray,
    /// It answers, and is of no use.
    Unfit(PrimaryFault),
    /// It answers, and does not say what it is.
    Silent,
    /// It does not answer.
    Away,
}

/// A server, as it was seen last.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// What it is.
    pub role: ServerRole,
    /// Since when.
    pub since: Instant,
    /// What was seen.
    pub observation: ServerObservation,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// A server is something else now.
    Role {
        /// Which, in the order of the list.
        server: usize,
        /// What it is.
        role: ServerRole,
    },
    /// There is no primary any more.
    Lost {
        /// Who was.
        server: usize,
    },
    /// There is a primary now.
    Primary {
        /// Who is.
        server: usize,
        /// Who was before, if it is another one.
        before: Option<usize>,
    },
    /// Two servers take writes that the other one does not get.
    Split {
        /// The one that is followed.
        followed: usize,
        /// The other one.
        other: usize,
    },
}

/// All servers.
#[derive(Clone, Debug)]
pub struct ClusterView {
    servers: Vec<ServerStatus>,
    /// Their addresses, by which replicas may name them.
    addresses: Vec<String>,
    /// Who is followed.
    primary: Option<usize>,
    /// Who was followed last.
    last_primary: Option<usize>,
    /// Whose writes were told of that the primary does not get.
    reported_splits: Vec<usize>,
    /// Who was followed before another one was, and has not refused writes since.
    former_primaries: Vec<usize>,
}

impl ClusterView {
    /// Servers of which nothing is known.
    #[must_use]
    pub fn new(addresses: &[String], now: Instant) -> ClusterView {
        let unknown = ServerStatus {
            role: ServerRole::Unknown,
            since: now,
            observation: ServerObservation::Unasked,
        };
        ClusterView {
            servers: vec![unknown; addresses.len()],
            addresses: addresses.to_vec(),
            primary: None,
            last_primary: None,
            reported_splits: Vec::new(),
            former_primaries: Vec::new(),
        }
    }

    /// Every server, in the order of the list.
    #[must_use]
    pub fn servers(&self) -> &[ServerStatus] {
        &self.servers
    }

    /// Who is the primary.
    #[must_use]
    pub fn primary(&self) -> Option<usize> {
        self.primary
    }

    /// True while it matters who replicates whom: before anybody is followed. Later a server is not asked that, which would not answer
    /// while it is made to stop replicating, and is to be followed then.
    #[must_use]
    pub fn needs_sources(&self) -> bool {
        self.last_primary.is_none()
    }

    /// Whom clients of a port for replicas are led to, who are on `now`: they stay while it is a replica. `taken`: those that other
    /// ports lead to. `any`: the primary will do as well, where there is no replica.
    #[must_use]
    pub fn choose_replica(&self, now: Option<usize>, any: bool, taken: &[usize]) -> Option<usize> {
        let role = |at: usize| self.servers.get(at).map(|it| it.role);
        let is_primary = |at: &usize| any && role(*at) == Some(ServerRole::Primary);
        let is_replica = |at: &usize| role(*at) == Some(ServerRole::Replica);
        if now.is_some_and(|now| is_replica(&now) || is_primary(&now)) {
            return now;
        }
        // One of which nothing is known may be a replica, and the primary be left alone.
        if self
            .servers
            .iter()
            .any(|it| it.observation == ServerObservation::Unasked)
        {
            return None;
        }
        let all = || 0..self.servers.len();
        let others = |at: &usize| taken.iter().filter(|taken| *taken == at).count();
        let replicas = all().filter(is_replica);
        replicas.min_by_key(others).or(all().find(is_primary))
    }

    /// Takes in what was seen of a server, and says what has changed by that.
    pub fn observe(
        &mut self,
        server: usize,
        seen: ServerObservation,
        now: Instant,
    ) -> Vec<ClusterChange> {
        match self.servers.get_mut(server) {
            Some(status) => status.observation = seen,
            None => return Vec::new(),
        }
        if self
            .report(server)
            .is_some_and(|it| it.primary_fault().is_some())
        {
            self.former_primaries.retain(|fallen| *fallen != server);
        }
        let mut changes = Vec::new();
        let primary = self.choose_primary();
        if primary != self.primary {
            if let Some(lost) = self.primary {
                changes.push(ClusterChange::Lost { server: lost });
            }
            self.primary = primary;
            self.reported_splits.clear();
            if let Some(server) = primary {
                let before = self.last_primary.replace(server);
                let before = before.filter(|before| *before != server);
                let refuses = |at| {
                    self.report(at)
                        .is_some_and(|it| it.primary_fault().is_some())
                };
                let fell = before.filter(|before| !refuses(*before));
                self.former_primaries.retain(|fallen| *fallen != server);
                self.former_primaries.extend(fell);
                changes.push(ClusterChange::Primary { server, before });
            }
        }
        let roles: Vec<ServerRole> = (0..self.servers.len())
            .map(|at| self.derive_role(at))
            .collect();
        for (server, (status, role)) in self.servers.iter_mut().zip(roles).enumerate() {
            if status.role != role {
                (status.role, status.since) = (role, now);
                changes.push(ClusterChange::Role { server, role });
            }
            let told = self.reported_splits.contains(&server);
            if let (ServerRole::Stray, Some(followed), false) = (role, self.primary, told) {
                self.reported_splits.push(server);
                let other = server;
                changes.push(ClusterChange::Split { followed, other });
            }
        }
        // Who has stopped may begin again.
        let servers = &self.servers;
        let stray = |at: &usize| {
            servers
                .get(*at)
                .is_some_and(|it| it.role == ServerRole::Stray)
        };
        self.reported_splits.retain(stray);
        changes
    }

    fn report(&self, server: usize) -> Option<&ServerReport> {
        match &self.servers.get(server)?.observation {
            ServerObservation::Reported(facts) => Some(facts),
            ServerObservation::Unasked
            | ServerObservation::Unreachable(_)
            | ServerObservation::Refused(_) => None,
        }
    }

    /// Those that take writes.
    fn writable(&self) -> Vec<usize> {
        let all = 0..self.servers.len();
        let takes = |at: &usize| {
            self.report(*at)
                .is_some_and(|it| it.primary_fault().is_none())
        };
        all.filter(takes).collect()
    }

    fn choose_primary(&self) -> Option<usize> {
        let mut writable = self.writable();
        if let Some(primary) = self.primary {
            let says_nothing = self
                .servers
                .get(primary)
                .is_some_and(|it| matches!(it.observation, ServerObservation::Refused(_)));
            if writable.contains(&primary) || says_nothing && writable.is_empty() {
                return Some(primary);
            }
        }
        // Who answers first shall not be followed for that alone.
        let begins = self.last_primary.is_none();
        if begins
            && self
                .servers
                .iter()
                .any(|it| it.observation == ServerObservation::Unasked)
        {
            return None;
        }
        let all = || (0..self.servers.len()).filter_map(|at| self.report(at));
        if all().any(ServerReport::is_cluster_member) {
            writable.retain(|at| {
                self.report(*at)
                    .is_some_and(ServerReport::is_cluster_member)
            });
        }
        let may_come = all().any(|it| it.primary_fault().is_some() && it.cluster_fault().is_none());
        let stood = |at: &usize| !self.former_primaries.contains(at);
        if may_come || writable.iter().any(stood) {
            writable.retain(stood);
        }
        let replicated = writable.iter().find(|at| self.is_replicated(**at));
        replicated.or(writable.first()).copied()
    }

    /// True where another server replicates this one.
    fn is_replicated(&self, server: usize) -> bool {
        let own = self.report(server).map_or(0, |facts| facts.server_id);
        let address = self.addresses.get(server);
        let others = (0..self.servers.len()).filter(|at| *at != server);
        let mut sources = others.filter_map(|at| self.report(at)?.source.as_ref());
        sources.any(|source| {
            let named = address.is_some_and(|own| own.eq_ignore_ascii_case(&source.address));
            named || own != 0 && source.server_id == own
        })
    }

    fn derive_role(&self, server: usize) -> ServerRole {
        if self.primary == Some(server) {
            return ServerRole::Primary;
        }
        let facts = match self.servers.get(server).map(|it| &it.observation) {
            Some(ServerObservation::Reported(facts)) => facts,
            Some(ServerObservation::Unreachable(_)) => return ServerRole::Away,
            Some(ServerObservation::Refused(_)) => return ServerRole::Silent,
            Some(ServerObservation::Unasked) | None => return ServerRole::Unknown,
        };
        if let Some(fault) = facts.cluster_fault() {
            return ServerRole::Unfit(fault);
        }
        if facts.primary_fault().is_some() {
            return ServerRole::Replica;
        }
        let Some(primary) = self.primary else {
            // It is chosen once all were asked.
            return ServerRole::Unknown;
        };
        let shares = |at| self.report(at).is_some_and(ServerReport::is_multi_primary);
        match shares(primary) && shares(server) {
            true => ServerRole::Replica,
            false => ServerRole::Stray,
        }
    }
}

impl ServerRole {
    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ServerRole::Unknown => "unknown",
            ServerRole::Primary => "primary",
            ServerRole::Replica => "replica",
            ServerRole::Stray => "stray",
            ServerRole::Unfit(_) => "unfit",
            ServerRole::Silent => "silent",
            ServerRole::Away => "away",
        }
    }

    /// Every word.
    pub const NAMES: [&str; 7] = [
        "unknown", "primary", "replica", "stray", "unfit", "silent", "away",
    ];
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::disallowed_methods)]
mod tests;
