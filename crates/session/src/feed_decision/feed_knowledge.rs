//! What a decision heeds besides its statement and its session: what all sessions know, and settings.

use std::sync::Arc;
use std::time::Duration;

use headwater_feed::Template;
use headwater_feed::template::OutcomeCounters;
use headwater_feed::words::StatementWords;

use super::FeedRelayReason;
use super::metadata_samples::MetadataSamples;

/// What is known of a text's template.
#[derive(Clone, Debug)]
pub enum TemplateLookup {
    /// It is served.
    Ready(Arc<Template>),
    /// It is not, or not yet; what becomes of its statements is counted there.
    Unserved(FeedRelayReason, Option<OutcomeCounters>),
}

/// What all sessions know of feeds.
pub trait FeedKnowledge {
    /// The template of a text, in a database.
    fn template(&self, database: &[u8], words: &StatementWords, text: &[u8]) -> TemplateLookup;
    /// The server's log is not followed: memory answers nothing, whatever is asked.
    fn are_suspended(&self) -> bool {
        false
    }
    /// The server is a node of a Galera cluster, as the service account has found.
    fn is_galera(&self) -> bool {
        false
    }
    /// The lessons that are on their way; `None`: none is begun and nobody waits, as where it is only asked what would become of a statement.
    fn metadata_samples(&self) -> Option<&MetadataSamples> {
        None
    }
}

/// Settings that a decision heeds.
#[derive(Clone, Copy, Debug)]
pub struct FeedPolicy {
    /// False: everything is relayed (`accelerate`).
    pub accelerate: bool,
    /// Most authors that a statement may name (`limits.list_authors`).
    pub list_authors: usize,
    /// Most candidates (`limits.candidates`).
    pub candidates: usize,
    /// How long a right that was seen is taken to be there (`privileges.ttl_s`).
    pub privileges_ttl: Duration,
    /// Whatever it costs (`feeds.narrow`).
    pub always: bool,
    /// Columns are described exactly as directly, or the statement is relayed (`feeds.columns`).
    pub exact: bool,
    /// Rows are kept (`rows.memory_bytes`).
    pub rows: bool,
}
