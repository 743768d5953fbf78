//! Many Headwaters before one server, and servers in replication topologies: Headwaters share nothing, and every answer is exact.

mod balanced;
mod cost;
mod fleet;
mod number;
mod replicas;
mod semi_sync;
mod split;
