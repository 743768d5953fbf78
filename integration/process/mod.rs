//! Tests of the process: how it starts, what it refuses to start with, and how it ends.

pub(crate) mod bench;
mod burst;
mod counters;
mod limits;
mod log;
mod machine;
mod manual;
mod package;
mod reload;
mod restart;
mod settings;
mod signals;
mod slow;
mod sockets;
mod start;
mod strategies;
mod systemd;
mod takeover;
mod version;
