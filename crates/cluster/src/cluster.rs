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

use crate::facts::{Facts, Fault};

/// What was seen of a server when it was asked last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// It was not asked yet.
    #[default]
    Not,
    /// It does not answer, and why.
    Away(String),
    /// It answers, and says nothing of itself: what it says instead.
    Refuses(String),
    /// What it says.
    Told(Box<Facts>),
}

/// What a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
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
    Unfit(Fault),
    /// It answers, and does not say what it is.
    Silent,
    /// It does not answer.
    Away,
}

/// A server, as it was seen last.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it is.
    pub role: Role,
    /// Since when.
    pub since: Instant,
    /// What was seen.
    pub seen: Seen,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A server is something else now.
    Role {
        /// Which, in the order of the list.
        server: usize,
        /// What it is.
        role: Role,
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
pub struct Cluster {
    servers: Vec<Status>,
    /// Their addresses, by which replicas may name them.
    addresses: Vec<String>,
    /// Who is followed.
    primary: Option<usize>,
    /// Who was followed last.
    last: Option<usize>,
    /// Whose writes were told of that the primary does not get.
    split: Vec<usize>,
    /// Who was followed before another one was, and has not refused writes since.
    fallen: Vec<usize>,
}

impl Cluster {
    /// Servers of which nothing is known.
    #[must_use]
    pub fn new(addresses: &[String], now: Instant) -> Cluster {
        let unknown = Status {
            role: Role::Unknown,
            since: now,
            seen: Seen::Not,
        };
        Cluster {
            servers: vec![unknown; addresses.len()],
            addresses: addresses.to_vec(),
            primary: None,
            last: None,
            split: Vec::new(),
            fallen: Vec::new(),
        }
    }

    /// Every server, in the order of the list.
    #[must_use]
    pub fn servers(&self) -> &[Status] {
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
    pub fn wants_sources(&self) -> bool {
        self.last.is_none()
    }

    /// Whom clients of a port for replicas are led to, who are on `now`: they stay while it is a replica. `taken`: those that other
    /// ports lead to. `any`: the primary will do as well, where there is no replica.
    #[must_use]
    pub fn replica(&self, now: Option<usize>, any: bool, taken: &[usize]) -> Option<usize> {
        let role = |at: usize| self.servers.get(at).map(|it| it.role);
        let is_primary = |at: &usize| any && role(*at) == Some(Role::Primary);
        let is_replica = |at: &usize| role(*at) == Some(Role::Replica);
        if now.is_some_and(|now| is_replica(&now) || is_primary(&now)) {
            return now;
        }
        // One of which nothing is known may be a replica, and the primary be left alone.
        if self.servers.iter().any(|it| it.seen == Seen::Not) {
            return None;
        }
        let all = || 0..self.servers.len();
        let others = |at: &usize| taken.iter().filter(|taken| *taken == at).count();
        let replicas = all().filter(is_replica);
        replicas.min_by_key(others).or(all().find(is_primary))
    }

    /// Takes in what was seen of a server, and says what has changed by that.
    pub fn observe(&mut self, server: usize, seen: Seen, now: Instant) -> Vec<Change> {
        match self.servers.get_mut(server) {
            Some(status) => status.seen = seen,
            None => return Vec::new(),
        }
        if self.facts(server).is_some_and(|it| it.fault().is_some()) {
            self.fallen.retain(|fallen| *fallen != server);
        }
        let mut changes = Vec::new();
        let primary = self.choose();
        if primary != self.primary {
            if let Some(lost) = self.primary {
                changes.push(Change::Lost { server: lost });
            }
            self.primary = primary;
            self.split.clear();
            if let Some(server) = primary {
                let before = self.last.replace(server);
                let before = before.filter(|before| *before != server);
                let refuses = |at| self.facts(at).is_some_and(|it| it.fault().is_some());
                let fell = before.filter(|before| !refuses(*before));
                self.fallen.retain(|fallen| *fallen != server);
                self.fallen.extend(fell);
                changes.push(Change::Primary { server, before });
            }
        }
        let roles: Vec<Role> = (0..self.servers.len()).map(|at| self.role(at)).collect();
        for (server, (status, role)) in self.servers.iter_mut().zip(roles).enumerate() {
            if status.role != role {
                (status.role, status.since) = (role, now);
                changes.push(Change::Role { server, role });
            }
            let told = self.split.contains(&server);
            if let (Role::Stray, Some(followed), false) = (role, self.primary, told) {
                self.split.push(server);
                let other = server;
                changes.push(Change::Split { followed, other });
            }
        }
        // Who has stopped may begin again.
        let servers = &self.servers;
        let stray = |at: &usize| servers.get(*at).is_some_and(|it| it.role == Role::Stray);
        self.split.retain(stray);
        changes
    }

    fn facts(&self, server: usize) -> Option<&Facts> {
        match &self.servers.get(server)?.seen {
            Seen::Told(facts) => Some(facts),
            Seen::Not | Seen::Away(_) | Seen::Refuses(_) => None,
        }
    }

    /// Those that take writes.
    fn writable(&self) -> Vec<usize> {
        let all = 0..self.servers.len();
        let takes = |at: &usize| self.facts(*at).is_some_and(|it| it.fault().is_none());
        all.filter(takes).collect()
    }

    fn choose(&self) -> Option<usize> {
        let mut writable = self.writable();
        if let Some(primary) = self.primary {
            let says_nothing = self
                .servers
                .get(primary)
                .is_some_and(|it| matches!(it.seen, Seen::Refuses(_)));
            if writable.contains(&primary) || says_nothing && writable.is_empty() {
                return Some(primary);
            }
        }
        // Who answers first shall not be followed for that alone.
        let begins = self.last.is_none();
        if begins && self.servers.iter().any(|it| it.seen == Seen::Not) {
            return None;
        }
        let all = || (0..self.servers.len()).filter_map(|at| self.facts(at));
        if all().any(Facts::is_member) {
            writable.retain(|at| self.facts(*at).is_some_and(Facts::is_member));
        }
        let may_come = all().any(|it| it.fault().is_some() && it.apart().is_none());
        let stood = |at: &usize| !self.fallen.contains(at);
        if may_come || writable.iter().any(stood) {
            writable.retain(stood);
        }
        let replicated = writable.iter().find(|at| self.is_replicated(**at));
        replicated.or(writable.first()).copied()
    }

    /// True where another server replicates this one.
    fn is_replicated(&self, server: usize) -> bool {
        let own = self.facts(server).map_or(0, |facts| facts.server_id);
        let address = self.addresses.get(server);
        let others = (0..self.servers.len()).filter(|at| *at != server);
        let mut sources = others.filter_map(|at| self.facts(at)?.source.as_ref());
        sources.any(|source| {
            let named = address.is_some_and(|own| own.eq_ignore_ascii_case(&source.address));
            named || own != 0 && source.server_id == own
        })
    }

    fn role(&self, server: usize) -> Role {
        if self.primary == Some(server) {
            return Role::Primary;
        }
        let facts = match self.servers.get(server).map(|it| &it.seen) {
            Some(Seen::Told(facts)) => facts,
            Some(Seen::Away(_)) => return Role::Away,
            Some(Seen::Refuses(_)) => return Role::Silent,
            Some(Seen::Not) | None => return Role::Unknown,
        };
        if let Some(fault) = facts.apart() {
            return Role::Unfit(fault);
        }
        if facts.fault().is_some() {
            return Role::Replica;
        }
        let Some(primary) = self.primary else {
            // It is chosen once all were asked.
            return Role::Unknown;
        };
        let shares = |at| self.facts(at).is_some_and(Facts::shares_writes);
        match shares(primary) && shares(server) {
            true => Role::Replica,
            false => Role::Stray,
        }
    }
}

impl Role {
    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Unknown => "unknown",
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Stray => "stray",
            Role::Unfit(_) => "unfit",
            Role::Silent => "silent",
            Role::Away => "away",
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
