//! Probes all servers repeatedly, follows the primary, and logs changes.

use futures_util::future::BoxFuture;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, sleep_until};

use super::ListenerRole;
use super::role_probe::RoleProbe;
use super::{Upstreams, WatchedServers, follow_server};
use crate::account::UpstreamAccount;
use crate::clock;
use headwater_cluster::{
    ClusterChange, ClusterView, GroupMembership, ServerObservation, ServerRole,
};

/// Least time between two probes of a server.
const MIN_PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// Most time between two probes while there is no primary.
const PROBE_INTERVAL_WITHOUT_PRIMARY: Duration = Duration::from_millis(100);

/// A component that must know when another server is followed.
pub trait ServerChangeListener: Send + Sync {
    /// The followed server is lost, and no session on it will send another query; clients are routed to the next server only after this
    /// returns.
    fn server_lost(&self);

    /// A server is followed. `other`: it is not the one that was followed last.
    fn server_followed(&self, other: bool);
}

/// The listener for the primary, then one for each replica port.
pub type ServerChangeListeners = Arc<[Box<dyn ServerChangeListener>]>;

/// Watches all servers forever; returns at once if there is only one.
///
/// Boxed, so that no other package compiles it again.
pub fn run(
    upstreams: Arc<Upstreams>,
    account: UpstreamAccount,
    followers: ServerChangeListeners,
) -> BoxFuture<'static, ()> {
    Box::pin(watch_all(upstreams, account, followers))
}

async fn watch_all(
    upstreams: Arc<Upstreams>,
    account: UpstreamAccount,
    followers: ServerChangeListeners,
) {
    if upstreams.watched.is_none() {
        return;
    }
    let each = (0..upstreams.addresses.len()).filter_map(|index| {
        let account = account.with_target(upstreams.target.server_at(index)?);
        let (upstreams, followers) = (Arc::clone(&upstreams), Arc::clone(&followers));
        Some(watch_server(upstreams, index, account, followers))
    });
    futures_util::future::join_all(each).await;
}

/// Probes each server once.
pub async fn probe_once(upstreams: &Upstreams, account: &UpstreamAccount) -> ClusterView {
    let patience = upstreams.watched.as_ref();
    let patience = patience.map_or(0, |watched| watched.section.patience_ms);
    let patience = Duration::from_millis(patience);
    let each = (0..upstreams.addresses.len()).filter_map(|index| {
        let account = account.with_target(upstreams.target.server_at(index)?);
        Some(async move { RoleProbe::new(account).probe(true, patience).await })
    });
    let observations = futures_util::future::join_all(each).await;
    let mut cluster = ClusterView::new(&upstreams.addresses, clock::now());
    for (index, observation) in observations.into_iter().enumerate() {
        cluster.observe(index, observation, clock::now());
    }
    cluster
}

async fn watch_server(
    upstreams: Arc<Upstreams>,
    index: usize,
    account: UpstreamAccount,
    followers: ServerChangeListeners,
) {
    let Some(watched) = &upstreams.watched else {
        return;
    };
    let Some(wake) = watched.wakes.get(index) else {
        return;
    };
    let patience = Duration::from_millis(watched.section.patience_ms);
    let every = Duration::from_millis(watched.section.check_ms);
    let mut look = RoleProbe::new(account);
    let mut unseen = false;
    loop {
        let begun = tokio::time::Instant::now();
        let sources = watched.cluster().needs_sources();
        let observation = look.probe(sources, patience).await;
        unseen = upstreams.log_unseen_group(index, &observation, unseen);
        upstreams.apply_observation(watched, index, observation, &followers);
        let has_primary = watched.cluster().primary().is_some();
        let next = match has_primary {
            true => every,
            false => every.min(PROBE_INTERVAL_WITHOUT_PRIMARY),
        };
        tokio::select! {
            biased;
            () = sleep(next) => {}
            () = wake.notified() => {}
            () = look.ended() => {}
        }
        sleep_until(begun + MIN_PROBE_INTERVAL).await;
    }
}

impl Upstreams {
    /// Applies an observation of a server, and follows the primary that results.
    fn apply_observation(
        &self,
        watched: &WatchedServers,
        index: usize,
        observation: ServerObservation,
        followers: &[Box<dyn ServerChangeListener>],
    ) {
        // Locked to the end: changes are applied in order.
        let mut cluster = watched.cluster();
        let changes = cluster.observe(index, observation, clock::now());
        for change in &changes {
            match *change {
                ClusterChange::Lost { server } => {
                    watched.follow(None);
                    let reason = cluster
                        .servers()
                        .get(server)
                        .map(|it| unfit_reason(&it.observation));
                    tracing::warn!(
                        "{} is the primary no more: {}. Its sessions are ended; clients that come wait for a primary, up to \
                         limits.connect_ms",
                        self.address(server),
                        reason.unwrap_or_default()
                    );
                }
                ClusterChange::Primary { server, before } => {
                    if let Some(before) = before {
                        watched.failovers.fetch_add(1, Ordering::Relaxed);
                        notify_primary_listener(followers, |follower| follower.server_lost());
                        tracing::warn!(
                            "{} is the primary now, {} was before",
                            self.address(server),
                            self.address(before)
                        );
                    } else {
                        tracing::info!("{} is the primary", self.address(server));
                    }
                    watched.follow(Some(server));
                    notify_primary_listener(followers, |follower| {
                        follower.server_followed(before.is_some())
                    });
                }
                ClusterChange::Split { followed, other } => tracing::error!(
                    "{0} and {1} both take writes, and neither gets the other's: {0} is followed, since it was before, or has replicas, or \
                     comes first in upstream. Set read_only on the one that is not to be the primary",
                    self.address(followed),
                    self.address(other)
                ),
                ClusterChange::Role { server, role } => self.log_role(server, role, &cluster),
            }
        }
        let replica_followers = followers.get(1..).unwrap_or_default();
        self.assign_replica_ports(watched, &cluster, replica_followers);
    }

    fn assign_replica_ports(
        &self,
        watched: &WatchedServers,
        cluster: &ClusterView,
        followers: &[Box<dyn ServerChangeListener>],
    ) {
        let now = |followed_by: &super::ReplicaPort| followed_by.follow.borrow().server;
        for (at, (port, follower)) in watched.replica_ports.iter().zip(followers).enumerate() {
            let others = watched.replica_ports.iter().enumerate();
            let others = others.filter(|(other, _)| *other != at);
            let taken: Vec<usize> = others.filter_map(|(_, other)| now(other)).collect();
            let before = now(port);
            let next = cluster.choose_replica(before, port.role == ListenerRole::Any, &taken);
            if next == before {
                continue;
            }
            if let Some(before) = before {
                follow_server(&port.follow, None);
                let (listen, before) = (&port.listen, self.address(before));
                tracing::warn!("the sessions of {listen} are ended: they were on {before}");
            }
            let Some(next) = next else { continue };
            let mut last = port
                .last_followed
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let other = last.replace(next).is_some_and(|last| last != next);
            if other {
                follower.server_lost();
            }
            let (listen, address) = (&port.listen, self.address(next));
            tracing::info!("clients of {listen} are led to {address}");
            follow_server(&port.follow, Some(next));
            follower.server_followed(other);
        }
    }

    fn log_role(&self, server: usize, role: ServerRole, cluster: &ClusterView) {
        let address = self.address(server);
        let reason = || {
            let status = cluster.servers().get(server);
            status
                .map(|it| unfit_reason(&it.observation))
                .unwrap_or_default()
        };
        match role {
            // Logged as changes of their own.
            ServerRole::Unknown | ServerRole::Primary | ServerRole::Stray => {}
            ServerRole::Replica => tracing::info!("{address} is a replica"),
            ServerRole::Unfit(fault) => tracing::warn!("{address} is of no use: {fault}"),
            ServerRole::Silent => tracing::warn!("{address} does not say what it is: {}", reason()),
            ServerRole::Away => tracing::warn!("{address} does not answer: {}", reason()),
        }
    }

    /// Logs once that the account may not see whether a server is in a replication group.
    fn log_unseen_group(
        &self,
        index: usize,
        observation: &ServerObservation,
        already_logged: bool,
    ) -> bool {
        let unseen = matches!(observation, ServerObservation::Reported(facts) if facts.group == GroupMembership::Hidden);
        if unseen && !already_logged {
            tracing::warn!(
                "the service account may not see the replication group of {}, so that a member that has lost its group is not noticed: \
                 GRANT SELECT ON performance_schema.replication_group_members TO the account",
                self.address(index)
            );
        }
        already_logged || unseen
    }
}

fn notify_primary_listener(
    followers: &[Box<dyn ServerChangeListener>],
    does: impl FnOnce(&dyn ServerChangeListener),
) {
    if let Some(follower) = followers.first() {
        does(&**follower);
    }
}

/// Why a server is not the primary, for display.
#[must_use]
pub fn unfit_reason(observation: &ServerObservation) -> String {
    match observation {
        ServerObservation::Unasked => "it was not asked yet".to_owned(),
        ServerObservation::Unreachable(text) | ServerObservation::Refused(text) => text.clone(),
        ServerObservation::Reported(facts) => match facts.primary_fault() {
            Some(fault) => fault.to_string(),
            None => "another one is followed".to_owned(),
        },
    }
}
