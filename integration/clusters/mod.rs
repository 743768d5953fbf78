//! Several servers behind Headwater: replicas, groups, clusters; which is the primary, what happens to sessions and memory, and what one
//! member's log proves.

mod attack;
mod failover;
mod galera;
mod group;
mod machine;
mod operators;
mod scene;
mod traffic;
mod upstreams;
