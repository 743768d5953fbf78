//! Stories of the process: how it starts, what it refuses to start with, and how it ends.

mod bench;
mod burst;
mod counters;
mod limits;
mod log;
mod restart;
mod settings;
mod signals;
mod sockets;
mod start;
mod systemd;
mod takeover;
