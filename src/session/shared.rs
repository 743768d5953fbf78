//! What all sessions share: the settings that are in force, and what is known and counted by all. See [`super::current`].

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::advice::Advice;
use super::counts::{self, Counts};
use super::listed::Sessions;
use super::login::Ways;
use super::login_errors::LoginErrors;
use super::own::Shows;
use super::quota::Quota;
use super::tail::Tails;
use super::watched::Watched;
use crate::binlog::Binlog;
use crate::catalogue::Catalogue;
use crate::feed::tally::Tally;
use crate::feeds::Feeds;
use crate::limits::Limits;
use crate::logging::Messages;
use crate::shadow::Shadow;
use crate::spread::Spread;
use crate::sql::NameCase;
use crate::tls::Acceptor;
use crate::upstreams::Upstreams;

/// What all sessions share.
#[derive(Debug)]
pub struct Shared {
    /// Definitions, and what their check on this server said.
    pub catalogue: Catalogue,
    /// Bounds.
    pub limits: Limits,
    /// How long a right that was seen is taken to be there.
    pub privileges_ttl: Duration,
    /// The servers, and which of several is followed.
    pub upstreams: Arc<Upstreams>,
    /// What a session's two connections are made of.
    pub transport: Transport,
    /// Memory, where there is a service account to keep it.
    pub binlog: Option<Arc<Binlog>>,
    /// Memory of what is on data nodes, beside it.
    pub spread: Option<Arc<Spread>>,
    /// What is kept of replies to tails, where rows are kept.
    pub tails: Option<Tails>,
    /// Feeds, where there are any.
    pub feeds: Option<Arc<Feeds>>,
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
    pub case: NameCase,
    /// SELECTs are counted here as they go by, where somebody wants to know which there are.
    pub tally: Option<Arc<Mutex<Tally>>>,
    /// The sessions that there are.
    pub sessions: Arc<Sessions>,
    /// What clients may be told of Headwater.
    pub shows: Shows,
    /// Settings as they are in force, by their names; secrets are left out.
    pub settings: Vec<(String, String)>,
    /// Sessions by the account that logged in, where that is limited.
    pub accounts: Arc<Quota<Box<[u8]>>>,
    /// Sessions by the address that they come from, where that is limited.
    pub addresses: Arc<Quota<IpAddr>>,
    /// Room for sessions, and how much of it there is at most.
    pub room: (Arc<Semaphore>, usize),
    /// What all memory of the process is held to, in bytes.
    pub memory_limit: usize,
    /// When the process began to serve.
    pub begun: Instant,
    /// Statements that take so long are told of in the log.
    pub slow: Option<Duration>,
    /// What the process's log was told, where it is followed.
    pub messages: Arc<OnceLock<Arc<Messages>>>,
    /// Another process takes the clients that come: sessions with something of their own are let be while this one drains.
    pub handed_over: Arc<AtomicBool>,
    /// Their time is over.
    pub last_call: Arc<AtomicBool>,
    /// Counters.
    pub counts: Arc<Counts>,
    /// How long answers took.
    pub watched: Arc<Watched>,
    /// What was said of accounts.
    pub advice: Arc<Advice>,
    /// What the server holds against this host.
    pub login_errors: Arc<LoginErrors>,
}

/// What a session's two connections are made of.
#[derive(Debug)]
pub struct Transport {
    /// When there is TLS, and what else may differ between them.
    pub ways: Ways,
    /// What clients are shown.
    pub acceptor: Option<Acceptor>,
}

/// What the index holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// How many timelines there are.
    pub timelines: usize,
    /// Bytes, follows, authors and messages.
    pub sizes: [usize; 4],
    /// What it may take, in bytes.
    pub most_bytes: usize,
    /// Authors and readers that have made room for others.
    pub evicted: u64,
}

impl Shared {
    /// True where feeds are served.
    #[must_use]
    pub fn has_feeds(&self) -> bool {
        self.feeds.as_ref().is_some_and(|feeds| feeds.are_any())
    }

    /// What the index holds, with that of data nodes; `None`: there is none.
    #[must_use]
    pub fn held(&self) -> Option<Held> {
        let (binlog, spread) = (self.binlog.as_ref()?, self.spread.as_ref());
        let mut held = Held {
            timelines: binlog.timelines(),
            sizes: binlog.sizes(),
            most_bytes: binlog.most_bytes(),
            evicted: binlog.evicted(),
        };
        if let Some(spread) = spread {
            let more = held.sizes.iter_mut().zip(spread.sizes());
            more.for_each(|(own, more)| *own += more);
            held.most_bytes = held.most_bytes.saturating_add(spread.most_bytes());
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
            binlog.empty();
        }
        shadow.trust_again()
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
        let mut line = self.counts.summary();
        if let Some(shadow) = &self.shadow {
            line = format!("{line} {}", shadow.summary());
        }
        if let Some(binlog) = &self.binlog {
            line = format!("{line} freshness={}", binlog.mode());
            for (counter, count) in [
                (counts::UNREADABLE, binlog.unreadable()),
                (counts::CONTRADICTIONS, binlog.contradictions()),
                (counts::DIFFERENT_ROWS, binlog.confirmed()[1]),
            ] {
                if count > 0 {
                    line = format!("{line} {}={count}", counter.name);
                }
            }
        }
        line
    }
}
