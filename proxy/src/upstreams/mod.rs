//! The servers that sessions and the service account connect to. Of several servers one is the primary; [`headwater_cluster`] infers which
//! from what each reports about itself.
//!
//! | module | what it is |
//! |---|---|
//! | `listener_route` | which server the clients of a port are routed to |
//! | `role_probe` | queries a server's role |
//! | `server_watch` | probes all servers repeatedly and applies changes |
//! | `failover_section` | the settings |
//!
//! With one server no query is sent, and no task runs.

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
use crate::reachability::UpstreamReachability;
use crate::tls::{TlsConnector, TlsError, UpstreamTlsSection};
use headwater_cluster::{ClusterView, ServerStatus};

/// The setting that names the port of the primary.
const LISTEN: &str = "listen";

/// All servers, and which of them is followed.
#[derive(Debug)]
pub struct Upstreams {
    target: UpstreamTarget,
    addresses: Vec<String>,
    /// Whether connections succeed, for the log.
    pub reach: UpstreamReachability,
    watched: Option<WatchedServers>,
}

#[derive(Debug)]
struct WatchedServers {
    follow: Sender<FollowedServer>,
    replica_ports: Vec<ReplicaPort>,
    cluster: Mutex<ClusterView>,
    /// Wakes the watcher of a server.
    wakes: Vec<Notify>,
    failovers: AtomicU64,
    section: FailoverSection,
}

#[derive(Debug)]
struct ReplicaPort {
    listen: String,
    role: ListenerRole,
    follow: Sender<FollowedServer>,
    target: UpstreamTarget,
    last_followed: Mutex<Option<usize>>,
}

impl Upstreams {
    /// The servers at these addresses. Of several, none is followed until they are watched ([`run`]).
    ///
    /// # Errors
    /// When the TLS settings cannot be used.
    pub fn new(
        servers: &[String],
        tls: &UpstreamTlsSection,
        section: FailoverSection,
        replica_ports: &[(&str, ListenerRole)],
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
                let replica_port = |(listen, role): &(&str, ListenerRole)| {
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
                let replica_ports: Result<Vec<_>, TlsError> =
                    replica_ports.iter().map(replica_port).collect();
                let watched = WatchedServers {
                    follow,
                    replica_ports: replica_ports?,
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

    /// All addresses, for display.
    #[must_use]
    pub fn address_list(&self) -> &str {
        &self.reach.address
    }

    /// True if there are several servers.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.watched.is_some()
    }

    /// Every server's address and status; `None` for a single server, whose status is not probed.
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

    /// The ports now routed to the server with this index, each with the time since when: `listen`, and the addresses of replica ports.
    #[must_use]
    pub fn ports_led_to(&self, index: usize) -> Vec<(&str, Option<Instant>)> {
        let Some(watched) = &self.watched else {
            return Vec::new();
        };
        let ports = watched.replica_ports.iter();
        let posts = ports.map(|post| (post.listen.as_str(), *post.follow.borrow()));
        let all = [(LISTEN, *watched.follow.borrow())]
            .into_iter()
            .chain(posts);
        all.filter(|(_, followed)| followed.server == Some(index))
            .map(|(port, followed)| (port, followed.since))
            .collect()
    }

    /// How many times another server became the primary.
    #[must_use]
    pub fn failovers(&self) -> u64 {
        let watched = self.watched.as_ref();
        watched.map_or(0, |watched| watched.failovers.load(Ordering::Relaxed))
    }

    /// Probes a server now: a connection to it has ended, or could not be made.
    pub fn wake(&self, index: usize) {
        let watched = self.watched.as_ref();
        if let Some(wake) = watched.and_then(|watched| watched.wakes.get(index)) {
            wake.notify_one();
        }
    }

    fn address(&self, index: usize) -> &str {
        self.addresses.get(index).map_or("", String::as_str)
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

/// Makes all connections of a port follow this server from now on, or none.
fn follow_server(follow: &Sender<FollowedServer>, server: Option<usize>) {
    follow.send_modify(|followed| {
        followed.server = server;
        followed.generation += 1;
        followed.since = Some(clock::now());
    });
}
