//! The process of `headwater serve`: settings, ports, reload, takeover, and what operators see of it.
//!
//! | module | what it is |
//! |---|---|
//! | [`config`] | settings: flags, environment, file |
//! | [`server`], `listener`, [`sockets`], [`shards`] | accepts, drains, reloads, hands over |
//! | [`admin`] | HTTP for operators |
//! | [`overview`] | Headwater's state, as tables |
//! | [`session_capacity`] | what the machine has room for |
//! | [`systemd`] | what the service manager is told |
//! | [`report`] | the format of reports for people |
//! | [`version`] | version, commit and build |
pub mod admin;
pub mod config;
mod listener;
pub mod overview;
pub mod report;
pub mod server;
pub mod session_capacity;
pub mod shards;
pub mod sockets;
pub mod systemd;
pub mod version;
