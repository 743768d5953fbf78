//! What all sessions share: the settings that are in force, and what is known and counted by all. See [`super::current_generation`].

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::account_advice::AccountAdvice;
use super::follow_up_select::FollowUpTemplates;
use super::login::SessionPolicy;
use super::login_errors::LoginErrorCounter;
use super::measurements::SessionMeasurements;
use super::quota::SessionQuota;
use super::session_counters::{self, SessionCounters};
use super::session_registry::SessionRegistry;
use super::show_statements::ShowStatements;
use crate::binlog::Binlog;
use crate::catalogue::Catalogue;
use crate::feed::tally::StatementTally;
use crate::feeds::FeedRegistry;
use crate::limits::ProcessLimits;
use crate::logging::LogState;
use crate::shadow::Shadow;
use crate::spread::SpreadMemory;
use crate::sql::NameCase;
use crate::tls::TlsAcceptor;
use crate::upstreams::Upstreams;

/// What all sessions share.
#[derive(Debug)]
pub struct SharedState {
    /// Definitions, and what their check on this server said.
    pub catalogue: Catalogue,
    /// Bounds.
    pub limits: ProcessLimits,
    /// How long a right that was seen is taken to be there.
    pub privileges_ttl: Duration,
    /// The servers, and which of several is followed.
    pub upstreams: Arc<Upstreams>,
    /// What a session's two connections are made of.
    pub transport: TransportSettings,
    /// Memory, where there is a service account to keep it.
    pub binlog: Option<Arc<Binlog>>,
    /// Memory of what is on data nodes, beside it.
    pub spread: Option<Arc<SpreadMemory>>,
    /// What is kept of replies to tails, where rows are kept.
    pub follow_ups: Option<FollowUpTemplates>,
    /// Feeds, where there are any.
    pub feeds: Option<Arc<FeedRegistry>>,
    /// There is the classic definition alone, as there is unasked: where its tables are nowhere, nothing is said.
    pub classic_by_default: bool,
    /// Columns of feeds' statements are described exactly as directly.
    pub exact_columns: bool,
    /// Feeds' statements are narrowed whatever they cost.
    pub narrow_always: bool,
    /// The real procedure beside some of the calls, where that is wished for.
    pub shadow: Option<Arc<Shadow>>,
    /// False: every call is relayed.
    pub accelerate: bool,
    /// How the server compares names of databases and tables.
    pub name_case: NameCase,
    /// SELECTs are counted here as they go by, where somebody wants to know which there are.
    pub tally: Option<Arc<Mutex<StatementTally>>>,
    /// The sessions that there are.
    pub sessions: Arc<SessionRegistry>,
    /// What clients may be told of Headwater.
    pub show_statements: ShowStatements,
    /// Settings as they are in force, by their names; secrets are left out.
    pub settings: Vec<(String, String)>,
    /// Sessions by the account that logged in, where that is limited.
    pub accounts: Arc<SessionQuota<Box<[u8]>>>,
    /// Sessions by the address that they come from, where that is limited.
    pub addresses: Arc<SessionQuota<IpAddr>>,
    /// Room for sessions, and how much of it there is at most.
    pub session_permits: (Arc<Semaphore>, usize),
    /// What all memory of the process is held to, in bytes.
    pub memory_limit: usize,
    /// When the process began to serve.
    pub started_at: Instant,
    /// Statements that take so long are told of in the log.
    pub slow_threshold: Option<Duration>,
    /// What the process's log was told, where it is followed.
    pub log_state: Arc<OnceLock<Arc<LogState>>>,
    /// Another process takes the clients that come: sessions with something of their own are let be while this one drains.
    pub handed_over: Arc<AtomicBool>,
    /// Their time is over.
    pub grace_period_over: Arc<AtomicBool>,
    /// Counters.
    pub counters: Arc<SessionCounters>,
    /// How long answers took.
    pub measurements: Arc<SessionMeasurements>,
    /// What was said of accounts.
    pub advice: Arc<AccountAdvice>,
    /// What the server holds against this host.
    pub login_errors: Arc<LoginErrorCounter>,
}

/// What a session's two connections are made of.
#[derive(Debug)]
pub struct TransportSettings {
    /// When there is TLS, and what else may differ between them.
    pub session_policy: SessionPolicy,
    /// What clients are shown.
    pub acceptor: Option<TlsAcceptor>,
}

/// What the index holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexUsage {
    /// How many timelines there are.
    pub timelines: usize,
    /// Bytes, follows, authors and messages.
    pub sizes: [usize; 4],
    /// What it may take, in bytes.
    pub max_bytes: usize,
    /// Authors and readers that have made room for others.
    pub evicted: u64,
}

impl SharedState {
    /// True where feeds are served.
    #[must_use]
    pub fn has_feeds(&self) -> bool {
        self.feeds.as_ref().is_some_and(|feeds| feeds.has_feeds())
    }

    /// What the index holds, with that of data nodes; `None`: there is none.
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
            more.for_each(|(own, more)| *own += more);
            held.max_bytes = held.max_bytes.saturating_add(spread.max_bytes());
            held.evicted += spread.evicted();
        }
        Some(held)
    }

    /// The server is a node of a Galera cluster, as far as is known.
    pub(super) fn is_galera(&self) -> bool {
        let binlog = self.binlog.as_ref();
        binlog.is_some_and(|binlog| binlog.is_galera())
    }

    /// Has definitions be answered again that were relayed for an answer that differed: from memory that is filled anew.
    /// Returns how many there were.
    pub fn trust_again(&self) -> usize {
        let Some(shadow) = self.shadow.as_ref().filter(|shadow| shadow.distrusts_any()) else {
            return 0;
        };
        // First, so that nobody is answered from what was wrong.
        if let Some(binlog) = &self.binlog {
            binlog.refill();
        }
        shadow.restore_trust()
    }

    /// What became of feeds' statements, by feed and by template: a line each.
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
