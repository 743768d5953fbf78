//! The targets: they depend on the source of Headwater's answers, and on the speed of the product's procedures.

use serde::Serialize;

use super::flags::BenchFlags;

/// CALL + follow-up with everything relayed, divided by the direct procedure, whatever the source.
pub const RELAY_RATIO: f64 = 0.8;
/// Connections for this target and those of the pull source.
pub const CONNECTIONS: usize = 4;
/// Connections for the targets of the index.
pub const INDEX_CONNECTIONS: usize = 8;
/// Resident memory of an idle session, in KiB.
pub const IDLE_KIB: f64 = 24.0;

/// Timelines a second with scrapes at the admin port, divided by those without.
pub const SCRAPED_RATIO: f64 = 0.99;

/// Resident memory of the full index, for each id and each follow, in bytes.
pub const INDEX_BYTES: f64 = 16.0;

/// The source of the measured Headwater's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyAnswerSource {
    /// Lookups on the client's connection: there is no service account.
    Pull,
    /// Memory that a service account keeps up to date from the binary log.
    Index,
}

impl ProxyAnswerSource {
    /// The source by the flags.
    #[must_use]
    pub const fn from_flags(flags: &BenchFlags) -> ProxyAnswerSource {
        match flags.service.service_user {
            Some(_) => ProxyAnswerSource::Index,
            None => ProxyAnswerSource::Pull,
        }
    }
}

/// The target ratios; `None` if there is no target.
#[derive(Clone, Copy, Debug)]
pub struct TargetRatios {
    /// Connections for which they apply.
    pub connections: usize,
    /// CALL alone, divided by the procedure's rate.
    pub call: Option<f64>,
    /// CALL + follow-up, divided by the procedure's rate.
    pub call_and_follow_up: f64,
    /// Both in one command, divided by the same queried directly.
    pub at_once: Option<f64>,
    /// A feed's join, divided by the push model's mailbox.
    pub mailbox: Option<f64>,
    /// The server's processor time of a page from memory, in microseconds.
    pub server_us: Option<f64>,
    /// CALL + follow-up at random pages, divided by its own rate at page 1.
    pub random: Option<f64>,
    /// Inserts while timelines are read through Headwater, divided by inserts while the procedure is called.
    pub inserts: Option<f64>,
    /// Whether, during inserts, the p99 of CALL has to be below the procedure's p50.
    pub p99_below_p50: bool,
}

impl TargetRatios {
    /// The targets for a source on a product.
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
