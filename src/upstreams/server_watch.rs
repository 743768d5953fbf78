//! Asks every server again and again, follows the primary, and says in the log what has changed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, sleep_until};

use super::ListenerRole;
use super::role_probe::RoleProbe;
use super::{Upstreams, WatchedServers, follow_server};
use crate::account::UpstreamAccount;
use crate::clock;
use crate::cluster::{ClusterChange, ClusterView, GroupMembership, ServerObservation, ServerRole};

/// A server is asked no sooner after it was asked before, whoever wants it to be.
const MIN_PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// While there is no primary each is asked at least so often.
const PROBE_INTERVAL_WITHOUT_PRIMARY: Duration = Duration::from_millis(100);

/// Who has to know when another server is followed.
pub trait ServerChangeListener: Send + Sync {
    /// The server that was followed before is not any more, and no session is on it that will ask again; nobody is led to the next one
    /// before this returns.
    fn server_lost(&self);

    /// A server is followed: `other`, if it is not the one that was followed last.
    fn server_followed(&self, other: bool);
}

/// Those who follow the primary, and those of each port for replicas.
pub type ServerChangeListeners = Arc<[Box<dyn ServerChangeListener>]>;

/// Watches all servers for good, where there are several.
pub async fn run(
    upstreams: Arc<Upstreams>,
    account: UpstreamAccount,
    followers: ServerChangeListeners,
) {
    if upstreams.watched.is_none() {
        return;
    }
    let each = (0..upstreams.addresses.len()).filter_map(|place| {
        let account = account.with_target(upstreams.target.server_at(place)?);
        let (upstreams, followers) = (Arc::clone(&upstreams), Arc::clone(&followers));
        Some(watch_server(upstreams, place, account, followers))
    });
    futures_util::future::join_all(each).await;
}

/// What each of several servers is, asked once.
pub async fn probe_once(upstreams: &Upstreams, account: &UpstreamAccount) -> ClusterView {
    let patience = upstreams.watched.as_ref();
    let patience = patience.map_or(0, |watched| watched.section.patience_ms);
    let patience = Duration::from_millis(patience);
    let each = (0..upstreams.addresses.len()).filter_map(|place| {
        let account = account.with_target(upstreams.target.server_at(place)?);
        Some(async move { RoleProbe::new(account).probe(true, patience).await })
    });
    let seen = futures_util::future::join_all(each).await;
    let mut cluster = ClusterView::new(&upstreams.addresses, clock::now());
    for (place, seen) in seen.into_iter().enumerate() {
        cluster.observe(place, seen, clock::now());
    }
    cluster
}

async fn watch_server(
    upstreams: Arc<Upstreams>,
    place: usize,
    account: UpstreamAccount,
    followers: ServerChangeListeners,
) {
    let Some(watched) = &upstreams.watched else {
        return;
    };
    let Some(wake) = watched.wakes.get(place) else {
        return;
    };
    let patience = Duration::from_millis(watched.section.patience_ms);
    let every = Duration::from_millis(watched.section.check_ms);
    let mut look = RoleProbe::new(account);
    let mut unseen = false;
    loop {
        let begun = tokio::time::Instant::now();
        let sources = watched.cluster().needs_sources();
        let seen = look.probe(sources, patience).await;
        unseen = upstreams.log_unseen_group(place, &seen, unseen);
        upstreams.apply_observation(watched, place, seen, &followers);
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
    /// Concludes from what was seen of a server, and follows who is the primary now.
    fn apply_observation(
        &self,
        watched: &WatchedServers,
        place: usize,
        seen: ServerObservation,
        followers: &[Box<dyn ServerChangeListener>],
    ) {
        // Held to the end: one change follows another.
        let mut cluster = watched.cluster();
        let changes = cluster.observe(place, seen, clock::now());
        for change in &changes {
            match *change {
                ClusterChange::Lost { server } => {
                    watched.follow(None);
                    let seen = cluster
                        .servers()
                        .get(server)
                        .map(|it| unfit_reason(&it.observation));
                    tracing::warn!(
                        "{} is the primary no more: {}. Its sessions are ended; clients that come wait for a primary, up to \
                         limits.connect_ms",
                        self.address(server),
                        seen.unwrap_or_default()
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
        let posts = followers.get(1..).unwrap_or_default();
        self.assign_replica_ports(watched, &cluster, posts);
    }

    /// Has the ports for replicas lead to replicas.
    fn assign_replica_ports(
        &self,
        watched: &WatchedServers,
        cluster: &ClusterView,
        followers: &[Box<dyn ServerChangeListener>],
    ) {
        let now = |post: &super::ReplicaPort| post.follow.borrow().server;
        for (at, (post, follower)) in watched.replica_ports.iter().zip(followers).enumerate() {
            let others = watched.replica_ports.iter().enumerate();
            let others = others.filter(|(other, _)| *other != at);
            let taken: Vec<usize> = others.filter_map(|(_, other)| now(other)).collect();
            let before = now(post);
            let next = cluster.choose_replica(before, post.role == ListenerRole::Any, &taken);
            if next == before {
                continue;
            }
            if let Some(before) = before {
                follow_server(&post.follow, None);
                let (listen, before) = (&post.listen, self.address(before));
                tracing::warn!("the sessions of {listen} are ended: they were on {before}");
            }
            let Some(next) = next else { continue };
            let mut last = post
                .last_followed
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let other = last.replace(next).is_some_and(|last| last != next);
            if other {
                follower.server_lost();
            }
            let (listen, address) = (&post.listen, self.address(next));
            tracing::info!("clients of {listen} are led to {address}");
            follow_server(&post.follow, Some(next));
            follower.server_followed(other);
        }
    }

    fn log_role(&self, server: usize, role: ServerRole, cluster: &ClusterView) {
        let address = self.address(server);
        let says = || {
            let status = cluster.servers().get(server);
            status
                .map(|it| unfit_reason(&it.observation))
                .unwrap_or_default()
        };
        match role {
            // Told of as changes of their own.
            ServerRole::Unknown | ServerRole::Primary | ServerRole::Stray => {}
            ServerRole::Replica => tracing::info!("{address} is a replica"),
            ServerRole::Unfit(fault) => tracing::warn!("{address} is of no use: {fault}"),
            ServerRole::Silent => tracing::warn!("{address} does not say what it is: {}", says()),
            ServerRole::Away => tracing::warn!("{address} does not answer: {}", says()),
        }
    }

    /// Says once that the account may not see whether a server is in a replication group.
    fn log_unseen_group(&self, place: usize, seen: &ServerObservation, said: bool) -> bool {
        let unseen = matches!(seen, ServerObservation::Reported(facts) if facts.group == GroupMembership::Hidden);
        if unseen && !said {
            tracing::warn!(
                "the service account may not see the replication group of {}, so that a member that has lost its group is not noticed: \
                 GRANT SELECT ON performance_schema.replication_group_members TO the account",
                self.address(place)
            );
        }
        said || unseen
    }
}

/// The primary's follower does this.
fn notify_primary_listener(
    followers: &[Box<dyn ServerChangeListener>],
    does: impl FnOnce(&dyn ServerChangeListener),
) {
    if let Some(follower) = followers.first() {
        does(&**follower);
    }
}

/// Why a server is no primary, for people.
#[must_use]
pub fn unfit_reason(seen: &ServerObservation) -> String {
    match seen {
        ServerObservation::Unasked => "it was not asked yet".to_owned(),
        ServerObservation::Unreachable(text) | ServerObservation::Refused(text) => text.clone(),
        ServerObservation::Reported(facts) => match facts.primary_fault() {
            Some(fault) => fault.to_string(),
            None => "another one is followed".to_owned(),
        },
    }
}
