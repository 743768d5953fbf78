//! A decision's input besides its statement and session: shared knowledge, and settings.

use std::sync::Arc;
use std::time::Duration;

use headwater_feed::Template;
use headwater_feed::template::OutcomeCounters;
use headwater_feed::words::StatementWords;

use super::FeedRelayReason;
use super::metadata_samples::MetadataSamples;
use crate::account_rights::AccountRights;

/// The result of a template lookup.
#[derive(Clone, Debug)]
pub enum TemplateLookup {
    /// It is served.
    Ready(Arc<Template>),
    /// It is not served, or not yet; the counters take its statements' outcomes.
    Unserved(FeedRelayReason, Option<OutcomeCounters>),
}

/// The shared knowledge of feeds.
pub trait FeedKnowledge {
    /// The template of a text in a database.
    fn template(&self, database: &[u8], words: &StatementWords, text: &[u8]) -> TemplateLookup;
    /// Rights that sessions proved.
    fn account_rights(&self) -> &AccountRights;
    /// The server's log is not followed: memory answers no request.
    fn are_suspended(&self) -> bool {
        false
    }
    /// The server is a node of a Galera cluster, as the service account found.
    fn is_galera(&self) -> bool {
        false
    }
    /// The pending metadata samples; `None`: none may begin and no statement waits, as in a dry run of the decision.
    fn metadata_samples(&self) -> Option<&MetadataSamples> {
        None
    }
}

/// The settings of a decision.
#[derive(Clone, Copy, Debug)]
pub struct FeedPolicy {
    /// False: everything is relayed (`accelerate`).
    pub accelerate: bool,
    /// The most authors that a statement may name (`limits.list_authors`).
    pub list_authors: usize,
    /// The most candidates (`limits.candidates`).
    pub candidates: usize,
    /// How long a seen right counts as held (`privileges.ttl_s`).
    pub privileges_ttl: Duration,
    /// Narrow whatever the cost (`feeds.narrow`).
    pub always: bool,
    /// Column definitions are exactly as direct ones, or the statement is relayed (`feeds.columns`).
    pub exact: bool,
    /// Rows are cached (`rows.memory_bytes`).
    pub rows: bool,
}
