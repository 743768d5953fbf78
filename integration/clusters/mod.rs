//! Several servers behind Headwater: replicas, groups, clusters; who is the primary, and what becomes of sessions and memory.

mod upstreams;
