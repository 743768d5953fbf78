//! What moves and answers a client's statements: sessions, memory that follows the server's log, and the connections of both sides.
//!
//! | module | what it is |
//! |---|---|
//! | [`limits`] | every limit, by the name of its setting |
//! | [`session`] | moves one client's bytes, and carries out the steps of its protocol state |
//! | [`link`] | one side of a session: a socket, and the bytes it has not taken yet |
//! | [`tls`] | certificates: those shown to clients, and the verification of the server's |
//! | [`backend`] | one server connection |
//! | [`account`] | connections of the service account: queries, and the server's log |
//! | [`binlog`] | keeps the index equal to the server: follows its log, loads what is missing, proves freshness |
//! | [`spread`] | pages from Spider's data nodes |
//! | [`upstreams`] | the servers, and which of several is the primary |
//! | [`shadow`] | runs the real procedure for a share of the calls, and compares |
//! | [`catalogue`] | definitions and the verdicts on them, shared by all sessions |
//! | [`feeds`] | feeds, whether each can be served, and the templates of their statements |
//! | [`logging`] | the process's own log: counted, and throttled by call site |
//! | [`clock`], [`drain`], [`counter_definition`] | the one place that reads the time; the end of all sessions; names of counters |
pub mod account;
pub mod backend;
pub mod binlog;
pub mod catalogue;
pub mod clock;
pub mod counter_definition;
pub mod drain;
pub mod feeds;
pub mod latency;
pub mod limits;
pub mod link;
pub mod logging;
pub mod reachability;
pub mod session;
pub mod shadow;
pub mod size;
pub mod spread;
mod sync;
pub mod tls;
pub mod upstreams;
