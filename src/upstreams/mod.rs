//! The servers behind Headwater: where sessions and the service account connect to. Of several servers one is the primary, which
//! [`crate::cluster`] concludes from what each says of itself.
//!
//! | module | what it is |
//! |---|---|
//! | `listener_route` | where the clients of a port are led to |
//! | `role_probe` | asks a server what it is |
//! | `server_watch` | does so again and again, and says what has changed |
//! | `failover_section` | the settings |
//!
//! With one server nothing is asked, and nothing runs.

mod failover_section;
mod listener_route;
mod role_probe;
mod server_watch;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, watch::Sender};

pub use self::failover_section::{FailoverSection, ListenerRole};
pub use self::listener_route::ListenerRoute;
pub use self::server_watch::{
    ServerChangeListener, ServerChangeListeners, probe_once, run, unfit_reason,
};
use crate::account::{FollowedServer, UpstreamTarget, host};
use crate::clock;
use crate::cluster::{ClusterView, ServerStatus};
use crate::reachability::UpstreamReachability;
use crate::tls::{TlsConnector, TlsError, UpstreamTlsSection};

/// The port whose clients are led to the primary, as the setting is named.
const LISTEN: &str = "listen";

/// All servers, and which one is followed.
#[derive(Debug)]
pub struct Upstreams {
    target: UpstreamTarget,
    addresses: Vec<String>,
    /// Whether connections can be made, for the log.
    pub(crate) reach: UpstreamReachability,
    watched: Option<WatchedServers>,
}

/// What there is where there are several.
#[derive(Debug)]
struct WatchedServers {
    follow: Sender<FollowedServer>,
    /// Ports for replicas.
    replica_ports: Vec<ReplicaPort>,
    cluster: Mutex<ClusterView>,
    /// Has a server be asked now.
    wakes: Vec<Notify>,
    failovers: AtomicU64,
    section: FailoverSection,
}

/// A port for replicas.
#[derive(Debug)]
struct ReplicaPort {
    listen: String,
    role: ListenerRole,
    follow: Sender<FollowedServer>,
    target: UpstreamTarget,
    /// Who was followed last.
    last_followed: Mutex<Option<usize>>,
}

impl Upstreams {
    /// Those at these addresses. Of several none is followed until they are watched ([`run`]).
    ///
    /// # Errors
    /// When the settings of TLS cannot be used.
    pub fn new(
        servers: &[String],
        tls: &UpstreamTlsSection,
        section: FailoverSection,
        posts: &[(&str, ListenerRole)],
    ) -> Result<Upstreams, TlsError> {
        let (target, watched) = match servers {
            [server] => {
                let connector = TlsConnector::new(tls, host(server))?;
                (UpstreamTarget::one(server, &connector), None)
            }
            _ => {
                let follow = Sender::new(FollowedServer::default());
                let followed = follow.subscribe();
                let target = UpstreamTarget::of(servers, tls, followed)?;
                let post = |(listen, role): &(&str, ListenerRole)| {
                    let follow = Sender::new(FollowedServer::default());
                    let followed = follow.subscribe();
                    Ok(ReplicaPort {
                        listen: (*listen).to_owned(),
                        role: *role,
                        follow,
                        target: UpstreamTarget::of(servers, tls, followed)?,
                        last_followed: Mutex::default(),
                    })
                };
                let posts: Result<Vec<_>, TlsError> = posts.iter().map(post).collect();
                let watched = WatchedServers {
                    follow,
                    replica_ports: posts?,
                    cluster: Mutex::new(ClusterView::new(servers, clock::now())),
                    wakes: servers.iter().map(|_| Notify::new()).collect(),
                    failovers: AtomicU64::new(0),
                    section,
                };
                (target, Some(watched))
            }
        };
        Ok(Upstreams {
            target,
            addresses: servers.to_vec(),
            reach: UpstreamReachability::new(&servers.join(", ")),
            watched,
        })
    }

    /// Where connections are made to.
    #[must_use]
    pub fn target(&self) -> &UpstreamTarget {
        &self.target
    }

    /// All of them, as they are shown to people.
    #[must_use]
    pub fn address_list(&self) -> &str {
        &self.reach.address
    }

    /// True where there are several.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.watched.is_some()
    }

    /// Every server's address, and what it is; nothing is known of one that is the only one.
    #[must_use]
    pub fn statuses(&self) -> Vec<(&str, Option<ServerStatus>)> {
        let statuses = self.watched.as_ref().map(|watched| {
            let cluster = watched.cluster();
            cluster.servers().to_vec()
        });
        let status = |at: usize| statuses.as_ref()?.get(at).cloned();
        let addresses = self.addresses.iter().enumerate();
        addresses
            .map(|(at, address)| (address.as_str(), status(at)))
            .collect()
    }

    /// Whose clients are led to a server by its place now, each with since when: `listen`, and the addresses of ports for replicas.
    #[must_use]
    pub fn ports_led_to(&self, place: usize) -> Vec<(&str, Option<Instant>)> {
        let Some(watched) = &self.watched else {
            return Vec::new();
        };
        let posts = watched.replica_ports.iter();
        let posts = posts.map(|post| (post.listen.as_str(), *post.follow.borrow()));
        let all = [(LISTEN, *watched.follow.borrow())]
            .into_iter()
            .chain(posts);
        all.filter(|(_, followed)| followed.server == Some(place))
            .map(|(port, followed)| (port, followed.since))
            .collect()
    }

    /// How often another server became the primary.
    #[must_use]
    pub fn failovers(&self) -> u64 {
        let watched = self.watched.as_ref();
        watched.map_or(0, |watched| watched.failovers.load(Ordering::Relaxed))
    }

    /// Has a server be looked at now: a connection to it has ended, or could not be made.
    pub fn wake(&self, place: usize) {
        let watched = self.watched.as_ref();
        if let Some(wake) = watched.and_then(|watched| watched.wakes.get(place)) {
            wake.notify_one();
        }
    }

    fn address(&self, place: usize) -> &str {
        self.addresses.get(place).map_or("", String::as_str)
    }
}

impl WatchedServers {
    fn cluster(&self) -> MutexGuard<'_, ClusterView> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, server: Option<usize>) {
        follow_server(&self.follow, server);
    }
}

/// Has all that listens follow this server from now on, or none.
fn follow_server(follow: &Sender<FollowedServer>, server: Option<usize>) {
    follow.send_modify(|followed| {
        followed.server = server;
        followed.generation += 1;
        followed.since = Some(clock::now());
    });
}
