//! What a server reports of itself, and whether it takes writes.

use std::fmt;

/// A server's state, as it reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Its number as a source of replicas (`server_id`).
    pub server_id: u64,
    /// Its identity, where it has one (MySQL's `server_uuid`).
    pub uuid: String,
    /// It refuses writes of clients (`read_only`, `super_read_only`).
    pub read_only: bool,
    /// Its membership in a replication group.
    pub group: GroupMembership,
    /// Its membership in a Galera cluster.
    pub node: GaleraMembership,
    /// The server it replicates, where that was queried.
    pub source: Option<ReplicationSource>,
    /// The transactions it has executed.
    pub gtids: ReportedGtids,
}

/// A MySQL server's membership in a replication group, as it sees itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupMembership {
    /// In none, or it has left.
    #[default]
    None,
    /// The account may not see that.
    Hidden,
    /// It is a member.
    Member {
        /// It takes part: `ONLINE`.
        online: bool,
        /// Its role is `PRIMARY`.
        primary: bool,
        /// Members whose role is `PRIMARY`: in a multi-primary group all are.
        primaries: usize,
        /// Members that it reaches.
        reachable: usize,
        /// All members of its view.
        members: usize,
    },
}

/// A MariaDB server's membership in a Galera cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GaleraMembership {
    /// In none.
    #[default]
    None,
    /// It is a node.
    Member {
        /// It takes statements (`wsrep_ready`).
        ready: bool,
        /// It has all transactions of the cluster (`wsrep_local_state` 4).
        synced: bool,
        /// Its part of the cluster has the quorum (`wsrep_cluster_status` Primary).
        quorum: bool,
    },
    /// It is a node whose state was not queried; the next round queries it.
    NotQueried,
}

/// The source of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationSource {
    /// Host and port, as configured on the replica.
    pub address: String,
    /// The source's `server_id`; 0: the replica has not reached it.
    pub server_id: u64,
}

/// The GTIDs that a server has executed, as it reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedGtids {
    /// MySQL's `gtid_executed`, MariaDB's `gtid_binlog_state`.
    pub executed: String,
    /// MariaDB's `gtid_current_pos`.
    pub current: String,
}

/// Why a server is no primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrimaryFault {
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

impl ServerReport {
    /// Why it is no primary; `None`: it takes writes.
    #[must_use]
    pub fn primary_fault(&self) -> Option<PrimaryFault> {
        self.cluster_fault().or(match self.group {
            GroupMembership::Member { primary: false, .. } => Some(PrimaryFault::Secondary),
            _ if self.read_only => Some(PrimaryFault::ReadOnly),
            _ => None,
        })
    }

    /// Why its cluster does not count it; `None`: what it answers is what the cluster has, or will have.
    #[must_use]
    pub fn cluster_fault(&self) -> Option<PrimaryFault> {
        match self.group {
            GroupMembership::Member { online: false, .. } => return Some(PrimaryFault::Offline),
            GroupMembership::Member {
                reachable: reached,
                members,
                ..
            } if reached * 2 <= members => return Some(PrimaryFault::NoQuorum),
            GroupMembership::None | GroupMembership::Hidden | GroupMembership::Member { .. } => {}
        }
        match self.node {
            GaleraMembership::Member { quorum: false, .. } => Some(PrimaryFault::NoQuorum),
            GaleraMembership::Member {
                ready: true,
                synced: true,
                ..
            }
            | GaleraMembership::None => None,
            GaleraMembership::Member { .. } | GaleraMembership::NotQueried => {
                Some(PrimaryFault::NotSynced)
            }
        }
    }

    /// True where every member of its cluster takes writes.
    pub(crate) fn is_multi_primary(&self) -> bool {
        matches!(self.group, GroupMembership::Member { primaries, .. } if primaries > 1)
            || self.node != GaleraMembership::None
    }

    /// True for a member of a cluster that decides by itself who takes writes.
    pub(crate) fn is_cluster_member(&self) -> bool {
        matches!(self.group, GroupMembership::Member { .. }) || self.node != GaleraMembership::None
    }
}

impl PrimaryFault {
    /// The fault in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PrimaryFault::ReadOnly => "read_only",
            PrimaryFault::Offline => "offline",
            PrimaryFault::Secondary => "secondary",
            PrimaryFault::NoQuorum => "no_quorum",
            PrimaryFault::NotSynced => "not_synced",
        }
    }
}

impl fmt::Display for PrimaryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PrimaryFault::ReadOnly => "it refuses writes (read_only)",
            PrimaryFault::Offline => "it does not take part in its replication group",
            PrimaryFault::Secondary => "it is a secondary member of its replication group",
            PrimaryFault::NoQuorum => "its part of the cluster has no majority",
            PrimaryFault::NotSynced => "it is a Galera node that is not synced",
        })
    }
}
