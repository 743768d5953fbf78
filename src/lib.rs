//! Headwater: a MySQL proxy that answers timeline procedures itself and relays everything else.
//!
//! Code without IO is in packages under `crates/`, re-exported here: [`wire`], [`sql`], [`timeline`], [`statement`],
//! [`lookup`], and the protocol half of [`session`]. The modules here do IO.
//!
//! | module | what it is | ring |
//! |---|---|---|
//! | [`limits`] | every limit, by the name of its setting | 0 |
//! | [`session`] | moves one client's bytes, and carries out the steps of its protocol state | 1 |
//! | [`link`] | one side of a session: a socket, and the bytes it has not taken yet | 1 |
//! | [`tls`] | certificates: those shown to clients, and the verification of the server's | 1 |
//! | [`backend`] | one server connection | 1 |
//! | [`account`] | connections of the service account: queries, and the server's log | 1 |
//! | [`binlog`] | keeps the index equal to the server: follows its log, loads what is missing, proves freshness | 1 |
//! | [`upstreams`] | the servers, and which of several is the primary | 1 |
//! | [`shadow`] | runs the real procedure for a share of the calls, and compares | 1 |
//! | [`catalogue`] | definitions and the verdicts on them, shared by all sessions | 1 |
//! | [`feeds`] | feeds, whether each can be served, and the templates of their statements | 1 |
//! | [`logging`] | the process's own log: counted, and throttled by call site | 1 |
//! | [`overview`] | Headwater's state, as tables | 2 |
//! | [`config`], [`server`], `listener`, [`sockets`], [`shards`] | the process | 2 |
//! | [`version`] | version, commit and build | 2 |
//! | [`check`] | the subcommand that reports what will be answered from memory | 2 |
//! | [`discover`] | the subcommand that finds an app's feeds | 2 |
//! | [`verify`] | the subcommand that compares every reader's answer with the server's | 2 |
//! | `report` | the format of reports for people | 2 |
//! | [`lab`] | the subcommands to try and to measure (cargo feature `lab`, on by default) | 2 |
//!
//! Imports point inward only: ring 2 uses 1 and 0, ring 1 uses 0.
pub mod account;
pub mod admin;
pub mod backend;
pub mod binlog;
pub mod catalogue;
pub mod check;
pub mod clock;
pub mod config;
pub mod discover;
mod drain;
pub mod feeds;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(not(feature = "lab"))]
#[path = "no_lab.rs"]
pub mod lab;
pub mod latency;
pub mod limits;
pub mod link;
mod listener;
pub mod logging;
pub mod overview;
mod reachability;
pub mod report;
pub mod server;
pub mod session;
pub mod session_capacity;
pub mod shadow;
pub mod shards;
pub mod size;
pub mod sockets;
pub mod spread;
mod sync;
pub mod systemd;
pub mod tls;
pub mod upstreams;
pub mod verify;
pub mod version;

pub use headwater_cluster as cluster;
pub use headwater_feed as feed;
pub use headwater_log as log;
pub use headwater_lookup as lookup;
pub use headwater_sql as sql;
pub use headwater_statement as statement;
pub use headwater_timeline as timeline;
pub use headwater_wire as wire;
