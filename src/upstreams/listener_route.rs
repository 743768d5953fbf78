//! Where the clients of a port are led to: the primary, or a replica.

use std::sync::Arc;

use super::{ListenerRole, Upstreams};
use crate::account::UpstreamTarget;

/// A way in for clients.
#[derive(Debug)]
pub struct ListenerRoute {
    /// The servers.
    pub upstreams: Arc<Upstreams>,
    /// The one that is followed.
    pub target: UpstreamTarget,
    role: ListenerRole,
}

impl Upstreams {
    /// The way to the primary.
    #[must_use]
    pub fn primary_route(self: &Arc<Self>) -> ListenerRoute {
        ListenerRoute {
            upstreams: Arc::clone(self),
            target: self.target.clone(),
            role: ListenerRole::Primary,
        }
    }

    /// The ways to replicas, in the order of their ports.
    pub fn replica_routes(self: &Arc<Self>) -> impl Iterator<Item = ListenerRoute> {
        let posts = self
            .watched
            .iter()
            .flat_map(|watched| &watched.replica_ports);
        posts.map(|post| ListenerRoute {
            upstreams: Arc::clone(self),
            target: post.target.clone(),
            role: post.role,
        })
    }
}

impl ListenerRoute {
    /// Why nobody is led anywhere.
    #[must_use]
    pub fn unavailable_reason(&self) -> &'static str {
        match self.role {
            ListenerRole::Primary => "none of them is the primary",
            ListenerRole::Replica => "none of them is a replica",
            ListenerRole::Any => "none of them can be used",
        }
    }
}
