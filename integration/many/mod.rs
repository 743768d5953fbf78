//! Many Headwaters in front of one server, and servers among others: nothing is shared, and every answer is exact.

mod balanced;
mod cost;
mod fleet;
mod number;
mod replicas;
mod semi_sync;
mod split;
