//! What is aimed at: it depends on where Headwater's answers come from, and on how fast the product's procedures are.

use serde::Serialize;

use super::flags::BenchFlags;

/// CALL + tail with everything relayed over the procedure's asked directly, whatever the source.
pub const RELAY_RATIO: f64 = 0.8;
/// Connections at which that, and the aims of the pull source, hold.
pub const CONNECTIONS: usize = 4;
/// Connections at which the aims of the index hold.
pub const INDEX_CONNECTIONS: usize = 8;
/// Resident memory of an idle session, in KiB.
pub const IDLE_KIB: f64 = 24.0;

/// Timelines a second while somebody looks in at the admin port, by those while nobody does.
pub const SCRAPED_RATIO: f64 = 0.99;

/// Resident memory of everything that is kept in memory, for each id and each follow, in bytes.
pub const INDEX_BYTES: f64 = 16.0;

/// Where the Headwater under measurement has its answers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyAnswerSource {
    /// Lookups on the client's connection: there is no service account.
    Pull,
    /// Memory kept up to date from the binary log, by a service account.
    Index,
}

impl ProxyAnswerSource {
    /// As the flags have it.
    #[must_use]
    pub const fn from_flags(flags: &BenchFlags) -> ProxyAnswerSource {
        match flags.service.service_user {
            Some(_) => ProxyAnswerSource::Index,
            None => ProxyAnswerSource::Pull,
        }
    }
}

/// The ratios aimed at; `None` where there is no aim.
#[derive(Clone, Copy, Debug)]
pub struct TargetRatios {
    /// Connections at which they hold.
    pub connections: usize,
    /// CALL alone, by the procedure's.
    pub call: Option<f64>,
    /// CALL + tail, by the procedure's.
    pub call_and_follow_up: f64,
    /// Both in one command, by the same asked directly.
    pub at_once: Option<f64>,
    /// A feed's join, by the push model's mailbox.
    pub mailbox: Option<f64>,
    /// The server's processor time of a page from memory, in microseconds.
    pub server_us: Option<f64>,
    /// CALL + tail at random pages, by its own rate at page 1.
    pub random: Option<f64>,
    /// Inserts through Headwater while it is read, by inserts while the procedure is asked.
    pub inserts: Option<f64>,
    /// Whether, while messages are written, the p99 of CALL is to be below the procedure's p50.
    pub p99_below_p50: bool,
}

impl TargetRatios {
    /// The aims for a source on a product.
    #[must_use]
    pub const fn for_source(source: ProxyAnswerSource, mariadb: bool) -> TargetRatios {
        match (source, mariadb) {
            (ProxyAnswerSource::Pull, true) => TargetRatios::pull(1.2),
            (ProxyAnswerSource::Pull, false) => TargetRatios::pull(1.8),
            (ProxyAnswerSource::Index, true) => TargetRatios {
                at_once: Some(14.0),
                mailbox: Some(1.5),
                server_us: Some(6.0),
                ..TargetRatios::index(20.0, 9.0)
            },
            (ProxyAnswerSource::Index, false) => TargetRatios {
                at_once: Some(35.0),
                mailbox: Some(4.0),
                server_us: Some(12.0),
                ..TargetRatios::index(38.0, 22.0)
            },
        }
    }

    const fn pull(call_and_tail: f64) -> TargetRatios {
        TargetRatios {
            connections: CONNECTIONS,
            call: None,
            call_and_follow_up: call_and_tail,
            at_once: None,
            mailbox: None,
            server_us: None,
            random: None,
            inserts: None,
            p99_below_p50: false,
        }
    }

    const fn index(call: f64, call_and_tail: f64) -> TargetRatios {
        TargetRatios {
            connections: INDEX_CONNECTIONS,
            call: Some(call),
            call_and_follow_up: call_and_tail,
            at_once: None,
            mailbox: None,
            server_us: None,
            random: Some(0.8),
            inserts: Some(1.0),
            p99_below_p50: true,
        }
    }
}
