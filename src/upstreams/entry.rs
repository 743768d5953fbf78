//! Where the clients of a port are led to: the primary, or a replica.

use std::sync::Arc;

use super::{ListenerRole, Upstreams};
use crate::account::Target;

/// A way in for clients.
#[derive(Debug)]
pub struct Entry {
    /// The servers.
    pub upstreams: Arc<Upstreams>,
    /// The one that is followed.
    pub target: Target,
    role: ListenerRole,
}

impl Upstreams {
    /// The way to the primary.
    #[must_use]
    pub fn entry(self: &Arc<Self>) -> Entry {
        Entry {
            upstreams: Arc::clone(self),
            target: self.target.clone(),
            role: ListenerRole::Primary,
        }
    }

    /// The ways to replicas, in the order of their ports.
    pub fn entries(self: &Arc<Self>) -> impl Iterator<Item = Entry> {
        let posts = self.watched.iter().flat_map(|watched| &watched.posts);
        posts.map(|post| Entry {
            upstreams: Arc::clone(self),
            target: post.target.clone(),
            role: post.role,
        })
    }
}

impl Entry {
    /// Why nobody is led anywhere.
    #[must_use]
    pub fn nowhere(&self) -> &'static str {
        match self.role {
            ListenerRole::Primary => "none of them is the primary",
            ListenerRole::Replica => "none of them is a replica",
            ListenerRole::Any => "none of them can be used",
        }
    }
}
