//! Tests against real servers.
// A test fails by panicking, and indexes bytes that it has just counted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs
)]

mod admin;
mod bench_relay;
mod book;
mod check;
mod clusters;
mod compression;
mod corpus;
mod data;
mod differential;
mod doors;
mod drivers;
mod feeds;
mod kit;
mod many;
mod memory;
mod process;
mod relay;
mod replication;
mod sessions;
mod spider;
mod tidy;
mod tls;
mod verify;
