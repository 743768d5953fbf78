//! The state that all sessions share: the settings in force, shared knowledge, counters. See [`super::current_generation`].

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::account_advice::AccountAdvice;
use super::follow_up_select::FollowUpTemplates;
use super::login_errors::LoginErrorCounter;
use super::measurements::SessionMeasurements;
use super::quota::SessionQuota;
use super::session_counters::{self, SessionCounters};
use super::session_registry::SessionRegistry;
use super::show_statements::ShowStatements;
use crate::binlog::Binlog;
use crate::catalogue::Catalogue;
use crate::feeds::FeedRegistry;
use crate::limits::ProcessLimits;
use crate::logging::LogState;
use crate::shadow::Shadow;
use crate::spread::SpreadMemory;
use crate::tls::TlsAcceptor;
use crate::upstreams::Upstreams;
use headwater_feed::tally::StatementTally;
use headwater_session::account_rights::AccountRights;
use headwater_session::login::SessionPolicy;
use headwater_sql::NameCase;

/// The state that all sessions share.
#[derive(Debug)]
pub struct SharedState {
    /// Definitions, and the results of their checks on this server.
    pub catalogue: Catalogue,
    /// The limits.
    pub limits: ProcessLimits,
    /// How long a verified privilege is assumed to hold.
    pub privileges_ttl: Duration,
    /// Rights that sessions proved.
    pub account_rights: AccountRights,
    /// The servers, and which of several is followed.
    pub upstreams: Arc<Upstreams>,
    /// Settings of a session's two connections.
    pub transport: TransportSettings,
    /// Memory, if there is a service account.
    pub binlog: Option<Arc<Binlog>>,
    /// Memory of the data nodes' timelines.
    pub spread: Option<Arc<SpreadMemory>>,
    /// Cached rows of follow-up SELECTs, if rows are cached.
    pub follow_ups: Option<FollowUpTemplates>,
    /// Feeds, if there are any.
    pub feeds: Option<Arc<FeedRegistry>>,
    /// The classic definition is the only one, by default: that its tables are missing is then not logged.
    pub classic_by_default: bool,
    /// Columns of feeds' statements are described exactly as by the relayed statement.
    pub exact_columns: bool,
    /// Feeds' statements are narrowed whatever they cost.
    pub narrow_always: bool,
    /// Comparisons with the real procedure, if switched on.
    pub shadow: Option<Arc<Shadow>>,
    /// False: every call is relayed.
    pub accelerate: bool,
    /// How the server compares names of databases and tables.
    pub name_case: NameCase,
    /// Counts SELECTs, for `headwater discover`.
    pub tally: Option<Arc<Mutex<StatementTally>>>,
    /// The registry of sessions.
    pub sessions: Arc<SessionRegistry>,
    /// `SHOW HEADWATER ...` statements.
    pub show_statements: ShowStatements,
    /// The settings in force, by name; secrets are left out.
    pub settings: Vec<(String, String)>,
    /// Sessions by account, if that is limited.
    pub accounts: Arc<SessionQuota<Box<[u8]>>>,
    /// Sessions by client address, if that is limited.
    pub addresses: Arc<SessionQuota<IpAddr>>,
    /// Permits of sessions, and their total.
    pub session_permits: (Arc<Semaphore>, usize),
    /// Limit of all memory of the process, in bytes.
    pub memory_limit: usize,
    /// Start of service.
    pub started_at: Instant,
    /// Statements that take at least so long are logged.
    pub slow_threshold: Option<Duration>,
    /// The process's log, if it is counted.
    pub log_state: Arc<OnceLock<Arc<LogState>>>,
    /// Another process accepts clients: sessions with session state continue while this one drains.
    pub handed_over: Arc<AtomicBool>,
    /// The time for those sessions is over.
    pub grace_period_over: Arc<AtomicBool>,
    /// Counters.
    pub counters: Arc<SessionCounters>,
    /// Answer times.
    pub measurements: Arc<SessionMeasurements>,
    /// Advice given about accounts.
    pub advice: Arc<AccountAdvice>,
    /// Logins that the server counts as errors of this host.
    pub login_errors: Arc<LoginErrorCounter>,
}

/// Settings of a session's two connections.
#[derive(Debug)]
pub struct TransportSettings {
    /// When there is TLS, and what else may differ between them.
    pub session_policy: SessionPolicy,
    /// The TLS of clients.
    pub acceptor: Option<TlsAcceptor>,
}

/// The contents of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexUsage {
    /// Number of timelines.
    pub timelines: usize,
    /// Bytes, follows, authors and messages.
    pub sizes: [usize; 4],
    /// The limit, in bytes.
    pub max_bytes: usize,
    /// Authors and readers that were evicted.
    pub evicted: u64,
}

impl SharedState {
    /// True if feeds are served.
    #[must_use]
    pub fn has_feeds(&self) -> bool {
        self.feeds.as_ref().is_some_and(|feeds| feeds.has_feeds())
    }

    /// The contents of the index, data nodes included; `None`: there is none.
    #[must_use]
    pub fn index_usage(&self) -> Option<IndexUsage> {
        let (binlog, spread) = (self.binlog.as_ref()?, self.spread.as_ref());
        let mut held = IndexUsage {
            timelines: binlog.timeline_count(),
            sizes: binlog.sizes(),
            max_bytes: binlog.max_bytes(),
            evicted: binlog.evicted(),
        };
        if let Some(spread) = spread {
            let more = held.sizes.iter_mut().zip(spread.sizes());
            more.for_each(|(total, more)| *total += more);
            held.max_bytes = held.max_bytes.saturating_add(spread.max_bytes());
            held.evicted += spread.evicted();
        }
        Some(held)
    }

    /// True if the server is known to be a node of a Galera cluster.
    pub(super) fn is_galera(&self) -> bool {
        let binlog = self.binlog.as_ref();
        binlog.is_some_and(|binlog| binlog.is_galera())
    }

    /// Serves definitions again that were distrusted after an answer differed, from memory that is filled anew. Returns how many.
    pub fn trust_again(&self) -> usize {
        let Some(shadow) = self.shadow.as_ref().filter(|shadow| shadow.distrusts_any()) else {
            return 0;
        };
        // Before the trust: no answer may come from wrong memory.
        if let Some(binlog) = &self.binlog {
            binlog.refill();
        }
        shadow.restore_trust()
    }

    /// Outcomes of feeds' statements, by feed and by template: a line each.
    #[must_use]
    pub fn tallies(&self) -> Vec<String> {
        let feeds = self.feeds.as_ref();
        feeds.map(|feeds| feeds.tallies()).unwrap_or_default()
    }

    /// Every counter as `name=value`, and how fresh answers from memory are.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut line = self.counters.summary();
        if let Some(shadow) = &self.shadow {
            line = format!("{line} {}", shadow.summary());
        }
        if let Some(binlog) = &self.binlog {
            line = format!("{line} freshness={}", binlog.mode());
            for (counter, count) in [
                (session_counters::UNREADABLE, binlog.unreadable()),
                (session_counters::CONTRADICTIONS, binlog.contradictions()),
                (session_counters::DIFFERENT_ROWS, binlog.confirmed()[1]),
            ] {
                if count > 0 {
                    line = format!("{line} {}={count}", counter.name);
                }
            }
        }
        line
    }
}
