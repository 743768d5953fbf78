//! What a server says of itself, and whether it takes writes.

use std::fmt;

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its number as a source of replicas (`server_id`).
    pub server_id: u64,
    /// Its identity, where it has one (MySQL's `server_uuid`).
    pub uuid: String,
    /// It refuses writes of clients (`read_only`, `super_read_only`).
    pub read_only: bool,
    /// What it is in a replication group.
    pub group: Group,
    /// What it is in a Galera cluster.
    pub node: Node,
    /// Whom it replicates, where that was asked.
    pub source: Option<SourceOf>,
    /// What it has executed.
    pub gtids: Gtids,
}

/// What a MySQL server is in a replication group, as it sees itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// In none, or it has left.
    #[default]
    None,
    /// The account may not see that.
    Unseen,
    /// A member.
    Member {
        /// It takes part: `ONLINE`.
        online: bool,
        /// Its role is `PRIMARY`.
        primary: bool,
        /// Members whose role is `PRIMARY`: in a multi-primary group all are.
        primaries: usize,
        /// Members that it reaches.
        reached: usize,
        /// All members of its view.
        members: usize,
    },
}

/// What a MariaDB server is in a Galera cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Node {
    /// In none.
    #[default]
    None,
    /// A node.
    Member {
        /// It takes statements (`wsrep_ready`).
        ready: bool,
        /// It has all that the cluster has (`wsrep_local_state` 4).
        synced: bool,
        /// Its part of the cluster has the quorum (`wsrep_cluster_status` Primary).
        quorum: bool,
    },
    /// It is one, and what it is was not asked: it is with the next question.
    Unasked,
}

/// Whom a replica replicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceOf {
    /// Host and port, as the replica was told.
    pub address: String,
    /// The source's number; 0: the replica has not reached it.
    pub server_id: u64,
}

/// What a server has executed, as it tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gtids {
    /// MySQL's `gtid_executed`, MariaDB's `gtid_binlog_state`.
    pub executed: String,
    /// MariaDB's `gtid_current_pos`.
    pub current: String,
}

/// Why a server is no primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It refuses writes.
    ReadOnly,
    /// It is a member of a replication group that does not take part.
    Offline,
    /// It is a member of a replication group, and not its primary.
    Secondary,
    /// Its replication group, or its part of a Galera cluster, is no majority.
    NoQuorum,
    /// It is a Galera node that is not synced, or not ready.
    NotSynced,
}

impl Facts {
    /// Why it is no primary; `None`: it takes writes.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.apart().or(match self.group {
            Group::Member { primary: false, .. } => Some(Fault::Secondary),
            _ if self.read_only => Some(Fault::ReadOnly),
            _ => None,
        })
    }

    /// Why its cluster does not count it; `None`: what it answers is what the cluster has, or will have.
    #[must_use]
    pub fn apart(&self) -> Option<Fault> {
        match self.group {
            Group::Member { online: false, .. } => return Some(Fault::Offline),
            Group::Member {
                reached, members, ..
            } if reached * 2 <= members => return Some(Fault::NoQuorum),
            Group::None | Group::Unseen | Group::Member { .. } => {}
        }
        match self.node {
            Node::Member { quorum: false, .. } => Some(Fault::NoQuorum),
            Node::Member {
                ready: true,
                synced: true,
                ..
            }
            | Node::None => None,
            Node::Member { .. } | Node::Unasked => Some(Fault::NotSynced),
        }
    }

    /// True where every member of its cluster takes writes.
    pub(crate) fn shares_writes(&self) -> bool {
        matches!(self.group, Group::Member { primaries, .. } if primaries > 1)
            || self.node != Node::None
    }

    /// True for a member of a cluster that decides by itself who takes writes.
    pub(crate) fn is_member(&self) -> bool {
        matches!(self.group, Group::Member { .. }) || self.node != Node::None
    }
}

impl Fault {
    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::ReadOnly => "read_only",
            Fault::Offline => "offline",
            Fault::Secondary => "secondary",
            Fault::NoQuorum => "no_quorum",
            Fault::NotSynced => "not_synced",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::ReadOnly => "it refuses writes (read_only)",
            Fault::Offline => "it does not take part in its replication group",
            Fault::Secondary => "it is a secondary member of its replication group",
            Fault::NoQuorum => "its part of the cluster has no majority",
            Fault::NotSynced => "it is a Galera node that is not synced",
        })
    }
}
