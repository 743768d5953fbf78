//! Asks every server again and again, follows the primary, and says in the log what has changed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, sleep_until};

use super::ListenerRole;
use super::look::Look;
use super::{Upstreams, Watched, lead};
use crate::account::Account;
use crate::clock;
use crate::cluster::{Change, Cluster, Group, Role, Seen};

/// A server is asked no sooner after it was asked before, whoever wants it to be.
const LEAST: Duration = Duration::from_millis(20);
/// While there is no primary each is asked at least so often.
const WITHOUT_PRIMARY: Duration = Duration::from_millis(100);

/// Who has to know when another server is followed.
pub trait Follower: Send + Sync {
    /// The server that was followed before is not any more, and no session is on it that will ask again; nobody is led to the next one
    /// before this returns.
    fn leaves(&self);

    /// A server is followed: `other`, if it is not the one that was followed last.
    fn arrives(&self, other: bool);
}

/// Those who follow the primary, and those of each port for replicas.
pub type Followers = Arc<[Box<dyn Follower>]>;

/// Watches all servers for good, where there are several.
pub async fn run(upstreams: Arc<Upstreams>, account: Account, followers: Followers) {
    if upstreams.watched.is_none() {
        return;
    }
    let each = (0..upstreams.addresses.len()).filter_map(|place| {
        let account = account.at(upstreams.target.only(place)?);
        let (upstreams, followers) = (Arc::clone(&upstreams), Arc::clone(&followers));
        Some(watch(upstreams, place, account, followers))
    });
    futures_util::future::join_all(each).await;
}

/// What each of several servers is, asked once.
pub async fn look_once(upstreams: &Upstreams, account: &Account) -> Cluster {
    let patience = upstreams.watched.as_ref();
    let patience = patience.map_or(0, |watched| watched.section.patience_ms);
    let patience = Duration::from_millis(patience);
    let each = (0..upstreams.addresses.len()).filter_map(|place| {
        let account = account.at(upstreams.target.only(place)?);
        Some(async move { Look::new(account).look(true, patience).await })
    });
    let seen = futures_util::future::join_all(each).await;
    let mut cluster = Cluster::new(&upstreams.addresses, clock::now());
    for (place, seen) in seen.into_iter().enumerate() {
        cluster.observe(place, seen, clock::now());
    }
    cluster
}

async fn watch(upstreams: Arc<Upstreams>, place: usize, account: Account, followers: Followers) {
    let Some(watched) = &upstreams.watched else {
        return;
    };
    let Some(wake) = watched.wakes.get(place) else {
        return;
    };
    let patience = Duration::from_millis(watched.section.patience_ms);
    let every = Duration::from_millis(watched.section.check_ms);
    let mut look = Look::new(account);
    let mut unseen = false;
    loop {
        let begun = tokio::time::Instant::now();
        let sources = watched.cluster().wants_sources();
        let seen = look.look(sources, patience).await;
        unseen = upstreams.says_unseen(place, &seen, unseen);
        upstreams.take_in(watched, place, seen, &followers);
        let has_primary = watched.cluster().primary().is_some();
        let next = match has_primary {
            true => every,
            false => every.min(WITHOUT_PRIMARY),
        };
        tokio::select! {
            biased;
            () = sleep(next) => {}
            () = wake.notified() => {}
            () = look.ended() => {}
        }
        sleep_until(begun + LEAST).await;
    }
}

impl Upstreams {
    /// Concludes from what was seen of a server, and follows who is the primary now.
    fn take_in(
        &self,
        watched: &Watched,
        place: usize,
        seen: Seen,
        followers: &[Box<dyn Follower>],
    ) {
        // Held to the end: one change follows another.
        let mut cluster = watched.cluster();
        let changes = cluster.observe(place, seen, clock::now());
        for change in &changes {
            match *change {
                Change::Lost { server } => {
                    watched.follow(None);
                    let seen = cluster.servers().get(server).map(|it| why(&it.seen));
                    tracing::warn!(
                        "{} is the primary no more: {}. Its sessions are ended; clients that come wait for a primary, up to \
                         limits.connect_ms",
                        self.address(server),
                        seen.unwrap_or_default()
                    );
                }
                Change::Primary { server, before } => {
                    if let Some(before) = before {
                        watched.failovers.fetch_add(1, Ordering::Relaxed);
                        first(followers, |follower| follower.leaves());
                        tracing::warn!(
                            "{} is the primary now, {} was before",
                            self.address(server),
                            self.address(before)
                        );
                    } else {
                        tracing::info!("{} is the primary", self.address(server));
                    }
                    watched.follow(Some(server));
                    first(followers, |follower| follower.arrives(before.is_some()));
                }
                Change::Split { followed, other } => tracing::error!(
                    "{0} and {1} both take writes, and neither gets the other's: {0} is followed, since it was before, or has replicas, or \
                     comes first in upstream. Set read_only on the one that is not to be the primary",
                    self.address(followed),
                    self.address(other)
                ),
                Change::Role { server, role } => self.say_role(server, role, &cluster),
            }
        }
        let posts = followers.get(1..).unwrap_or_default();
        self.lead_posts(watched, &cluster, posts);
    }

    /// Has the ports for replicas lead to replicas.
    fn lead_posts(&self, watched: &Watched, cluster: &Cluster, followers: &[Box<dyn Follower>]) {
        let now = |post: &super::Post| post.follow.borrow().server;
        for (at, (post, follower)) in watched.posts.iter().zip(followers).enumerate() {
            let others = watched.posts.iter().enumerate();
            let others = others.filter(|(other, _)| *other != at);
            let taken: Vec<usize> = others.filter_map(|(_, other)| now(other)).collect();
            let before = now(post);
            let next = cluster.replica(before, post.role == ListenerRole::Any, &taken);
            if next == before {
                continue;
            }
            if let Some(before) = before {
                lead(&post.follow, None);
                let (listen, before) = (&post.listen, self.address(before));
                tracing::warn!("the sessions of {listen} are ended: they were on {before}");
            }
            let Some(next) = next else { continue };
            let mut last = post.last.lock().unwrap_or_else(PoisonError::into_inner);
            let other = last.replace(next).is_some_and(|last| last != next);
            if other {
                follower.leaves();
            }
            let (listen, address) = (&post.listen, self.address(next));
            tracing::info!("clients of {listen} are led to {address}");
            lead(&post.follow, Some(next));
            follower.arrives(other);
        }
    }

    fn say_role(&self, server: usize, role: Role, cluster: &Cluster) {
        let address = self.address(server);
        let says = || {
            let status = cluster.servers().get(server);
            status.map(|it| why(&it.seen)).unwrap_or_default()
        };
        match role {
            // Told of as changes of their own.
            Role::Unknown | Role::Primary | Role::Stray => {}
            Role::Replica => tracing::info!("{address} is a replica"),
            Role::Unfit(fault) => tracing::warn!("{address} is of no use: {fault}"),
            Role::Silent => tracing::warn!("{address} does not say what it is: {}", says()),
            Role::Away => tracing::warn!("{address} does not answer: {}", says()),
        }
    }

    /// Says once that the account may not see whether a server is in a replication group.
    fn says_unseen(&self, place: usize, seen: &Seen, said: bool) -> bool {
        let unseen = matches!(seen, Seen::Told(facts) if facts.group == Group::Unseen);
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
fn first(followers: &[Box<dyn Follower>], does: impl FnOnce(&dyn Follower)) {
    if let Some(follower) = followers.first() {
        does(&**follower);
    }
}

/// Why a server is no primary, for people.
#[must_use]
pub fn why(seen: &Seen) -> String {
    match seen {
        Seen::Not => "it was not asked yet".to_owned(),
        Seen::Away(text) | Seen::Refuses(text) => text.clone(),
        Seen::Told(facts) => match facts.fault() {
            Some(fault) => fault.to_string(),
            None => "another one is followed".to_owned(),
        },
    }
}
