//! Decides which server is the primary and what the others are, and reports what has changed since the last observation.
//!
//! - A server that does not answer, or refuses writes, is no primary.
//! - The followed primary stays while it takes writes. Another server that takes writes too is reported, and not followed.
//! - Where no server is followed and several take writes, one that another server replicates is preferred, then the order of the list.
//!   In a group or a Galera cluster the servers share their writes, and nothing is reported.
//! - While a member of a group or of a Galera cluster answers, only such members are chosen.
//! - A former primary that has not refused writes since may lack later writes. It is not chosen while a replica may be promoted.

use std::time::Instant;

use crate::server_report::{PrimaryFault, ServerReport};

/// The result of a server's last query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerObservation {
    /// Not queried yet.
    #[default]
    Unasked,
    /// It does not answer; the text is the reason.
    Unreachable(String),
    /// It answers with an error instead of a report; the text is the error.
    Refused(String),
    /// Its report.
    Reported(Box<ServerReport>),
}

/// The role of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerRole {
    /// Not known yet.
    #[default]
    Unknown,
    /// Sessions are connected to it.
    Primary,
    /// It refuses writes and answers reads.
    Replica,
    /// It takes writes that the primary does not get.
    Stray,
    /// It answers, and its group or Galera cluster does not count it.
    Unfit(PrimaryFault),
    /// It answers, and does not report its state.
    Silent,
    /// It does not answer.
    Away,
}

/// The role and the last observation of a server.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Its role.
    pub role: ServerRole,
    /// When it took this role.
    pub since: Instant,
    /// The last observation.
    pub observation: ServerObservation,
}

/// A change that an observation causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// A server has a new role.
    Role {
        /// Index in the list of servers.
        server: usize,
        /// The new role.
        role: ServerRole,
    },
    /// There is no primary any more.
    Lost {
        /// The former primary.
        server: usize,
    },
    /// There is a new primary.
    Primary {
        /// The new primary.
        server: usize,
        /// The primary before it, if that was another server.
        before: Option<usize>,
    },
    /// Two servers take writes that the other one does not get.
    Split {
        /// The primary.
        followed: usize,
        /// The other server.
        other: usize,
    },
}

/// The roles of all servers. Servers are named by their index in the list.
#[derive(Clone, Debug)]
pub struct ClusterView {
    servers: Vec<ServerStatus>,
    /// The servers' addresses, by which replicas may name them.
    addresses: Vec<String>,
    primary: Option<usize>,
    /// The last server that was primary.
    last_primary: Option<usize>,
    /// Servers whose split from the primary was reported.
    reported_splits: Vec<usize>,
    /// Servers that were followed before another one was, and have not refused writes since.
    former_primaries: Vec<usize>,
}

impl ClusterView {
    /// Starts with no server queried.
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

    /// The primary, if there is one.
    #[must_use]
    pub fn primary(&self) -> Option<usize> {
        self.primary
    }

    /// True while it matters which server replicates which: until a primary is followed. After that the query is left out: a server that is
    /// being made to stop replicating would not answer it, just when it is to be followed.
    #[must_use]
    pub fn needs_sources(&self) -> bool {
        self.last_primary.is_none()
    }

    /// Chooses the server for clients of a replica port, who are on `now`; they stay while it is a replica. `taken`: the servers of other
    /// such ports. `any`: the primary will do where there is no replica.
    #[must_use]
    pub fn choose_replica(&self, now: Option<usize>, any: bool, taken: &[usize]) -> Option<usize> {
        let role = |at: usize| self.servers.get(at).map(|it| it.role);
        let is_primary = |at: &usize| any && role(*at) == Some(ServerRole::Primary);
        let is_replica = |at: &usize| role(*at) == Some(ServerRole::Replica);
        if now.is_some_and(|now| is_replica(&now) || is_primary(&now)) {
            return now;
        }
        // A server not queried yet may be a replica; until then the primary is spared.
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

    /// Takes in the observation of a server, and returns what it changes.
    pub fn observe(
        &mut self,
        server: usize,
        observation: ServerObservation,
        now: Instant,
    ) -> Vec<ClusterChange> {
        match self.servers.get_mut(server) {
            Some(status) => status.observation = observation,
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
                let former = before.filter(|before| !refuses(*before));
                self.former_primaries.retain(|fallen| *fallen != server);
                self.former_primaries.extend(former);
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
            let reported = self.reported_splits.contains(&server);
            if let (ServerRole::Stray, Some(followed), false) = (role, self.primary, reported) {
                self.reported_splits.push(server);
                let other = server;
                changes.push(ClusterChange::Split { followed, other });
            }
        }
        // A server that has stopped taking writes is reported again if it resumes.
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
            let is_silent = self
                .servers
                .get(primary)
                .is_some_and(|it| matches!(it.observation, ServerObservation::Refused(_)));
            if writable.contains(&primary) || is_silent && writable.is_empty() {
                return Some(primary);
            }
        }
        // The server that answers first is not followed for that alone.
        let is_first_choice = self.last_primary.is_none();
        if is_first_choice
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
        let has_promotable_replica =
            all().any(|it| it.primary_fault().is_some() && it.cluster_fault().is_none());
        let is_not_former = |at: &usize| !self.former_primaries.contains(at);
        if has_promotable_replica || writable.iter().any(is_not_former) {
            writable.retain(is_not_former);
        }
        let replicated = writable.iter().find(|at| self.is_replicated(**at));
        replicated.or(writable.first()).copied()
    }

    /// True where another server replicates this one.
    fn is_replicated(&self, server: usize) -> bool {
        let server_id = self.report(server).map_or(0, |facts| facts.server_id);
        let address = self.addresses.get(server);
        let others = (0..self.servers.len()).filter(|at| *at != server);
        let mut sources = others.filter_map(|at| self.report(at)?.source.as_ref());
        sources.any(|source| {
            let named =
                address.is_some_and(|configured| configured.eq_ignore_ascii_case(&source.address));
            named || server_id != 0 && source.server_id == server_id
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
            // The primary is chosen once all were queried.
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
    /// The role in one word.
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

    /// Every name.
    pub const NAMES: [&str; 7] = [
        "unknown", "primary", "replica", "stray", "unfit", "silent", "away",
    ];
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::disallowed_methods)]
mod tests;
