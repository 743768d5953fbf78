//! Which server the clients of a port are routed to: the primary, or a replica.

use std::sync::Arc;

use super::{ListenerRole, Upstreams};
use crate::account::UpstreamTarget;

/// A port's route.
#[derive(Debug)]
pub struct ListenerRoute {
    /// The servers.
    pub upstreams: Arc<Upstreams>,
    /// The one that is followed.
    pub target: UpstreamTarget,
    role: ListenerRole,
}

impl Upstreams {
    /// The route to the primary.
    #[must_use]
    pub fn primary_route(self: &Arc<Self>) -> ListenerRoute {
        ListenerRoute {
            upstreams: Arc::clone(self),
            target: self.target.clone(),
            role: ListenerRole::Primary,
        }
    }

    /// The routes to replicas, in the order of their ports.
    pub fn replica_routes(self: &Arc<Self>) -> impl Iterator<Item = ListenerRoute> {
        let ports = self
            .watched
            .iter()
            .flat_map(|watched| &watched.replica_ports);
        ports.map(|port| ListenerRoute {
            upstreams: Arc::clone(self),
            target: port.target.clone(),
            role: port.role,
        })
    }
}

impl ListenerRoute {
    /// Why no server is available.
    #[must_use]
    pub fn unavailable_reason(&self) -> &'static str {
        match self.role {
            ListenerRole::Primary => "none of them is the primary",
            ListenerRole::Replica => "none of them is a replica",
            ListenerRole::Any => "none of them can be used",
        }
    }
}
