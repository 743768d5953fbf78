//! What a decision about a feed's SELECT requests of the driver, and what the driver returns.

use std::sync::Arc;

use super::*;

/// A statement's next need.
#[derive(Debug)]
pub enum FeedAction {
    /// Send these on the client's own connection: [`FeedInput::Answers`].
    Query(InternalQueries),
    /// Get candidates from memory: [`FeedInput::Candidates`].
    Candidates(FeedCandidateRequest),
    /// Make a page of cached rows: [`FeedInput::CachedPage`].
    Page(Box<CachedPageRequest>),
    /// Read a count from memory: [`FeedInput::Count`].
    Count(Arc<FeedCountRequest>),
    /// Cache these numbers, if nothing has changed since memory was asked: [`FeedInput::CountsCached`].
    CacheCounts(Box<CountFill>),
    /// Send this payload instead of the statement, and keep the whole reply: [`FeedInput::Reply`].
    Run(Vec<u8>),
    /// Prepare a narrowed text in the session: [`FeedInput::Reply`].
    Prepare(PrepareRequest),
    /// Check that nothing about the candidates has changed since memory named them: [`FeedInput::Unchanged`].
    CheckUnchanged,
    /// Wait while this sample is pending: [`FeedInput::SampleAwaited`].
    AwaitSample(SampleWait),
    /// The end: this reply is the statement's.
    Reply(FeedReply),
    /// The end: the statement is relayed unchanged.
    Relay(FeedRelayReason),
    /// The end: the execution is relayed unchanged, and sampled.
    RelaySampled(MetadataSample),
}

impl FeedAction {
    /// True if the server runs a statement in the session that is not the client's.
    pub(super) fn reaches_session(&self) -> bool {
        matches!(
            self,
            FeedAction::Query(_) | FeedAction::Run(_) | FeedAction::Prepare(_)
        )
    }
}

/// What the driver has fetched.
#[derive(Debug)]
pub enum FeedInput {
    /// Nothing yet.
    Begin,
    /// See [`FeedAction::Query`].
    Answers(Vec<QueryReply>),
    /// See [`FeedAction::Candidates`], or why there are none.
    Candidates(Result<CandidateSet, FeedRelayReason>),
    /// See [`FeedAction::Page`]; `None`: not all rows are cached, or memory is not fresh in time.
    CachedPage(Option<CachedPage>),
    /// See [`FeedAction::Count`].
    Count(CountAnswer),
    /// See [`FeedAction::CacheCounts`].
    CountsCached,
    /// See [`FeedAction::Run`] and [`FeedAction::Prepare`].
    Reply(InternalReply),
    /// See [`FeedAction::CheckUnchanged`].
    Unchanged(bool),
    /// See [`FeedAction::AwaitSample`].
    SampleAwaited,
}

/// A request for candidates.
#[derive(Clone, Debug)]
pub struct FeedCandidateRequest {
    /// The template.
    pub template: Arc<Template>,
    /// The readers whose follows are the authors.
    pub readers: Vec<u64>,
    /// Further authors, ascending.
    pub authors: Vec<u64>,
    /// Messages by the columns of other feeds, too.
    pub postings: Vec<PostingRequest>,
    /// Which of their messages.
    pub selection: CandidateSelection<NewestRequest>,
    /// Where these are. Where the id alone orders them, keys are 0.
    pub range: MessageRange<KeyedMessage>,
    /// The key alone orders them: candidates may not share one.
    pub untied: bool,
    /// Other columns order messages of one key: candidates are all of its messages, or none.
    pub whole_keys: bool,
    /// Author lists besides the readers' follows.
    pub lists: Vec<AuthorListQuery>,
}

/// Which messages are candidates.
#[derive(Clone, Debug)]
pub enum CandidateSelection<Newest> {
    /// All of the authors' in a range.
    Range,
    /// These, in the order of the statement's rows, whoever wrote them.
    Ids(Vec<u64>),
    /// The newest of each author.
    Newest(Newest),
}

/// The candidates that memory named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSet {
    /// In the order of the statement's rows.
    pub ids: Vec<u64>,
    /// There are no others.
    pub exhaustive: bool,
    /// They end before messages that share a key, where the key alone orders.
    pub tied: bool,
    /// How many authors there are.
    pub authors: usize,
    /// The author of each message.
    pub written_by: Vec<u64>,
    /// The authors of each list. `None`: unknown. `Some(None)`: it has too many authors to be cached.
    pub author_lists: Vec<Option<Option<ListedAuthors>>>,
    /// The generation of the log in which they were named.
    pub generation: u64,
    /// What is not known of the authors' newest messages: there are no candidates then.
    pub gaps: Option<Box<CountGaps>>,
}

/// The reply to an internal statement.
#[derive(Debug)]
pub struct InternalReply {
    /// Its bytes, unless they are too many to hold in memory.
    pub bytes: Option<Vec<u8>>,
    /// How many rows it has.
    pub rows: u64,
    /// Its outcome.
    pub outcome: Option<ReplyOutcome>,
}

/// A reply for the client.
#[derive(Debug)]
pub struct FeedReply {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its outcome.
    pub outcome: ReplyOutcome,
    /// The server ran a narrowed statement.
    pub narrowed: bool,
    /// The server ran none: the rows were cached.
    pub from_cache: bool,
    /// What may be cached of it, if nothing has changed since the candidates were named.
    pub fill: Option<Box<CacheFill>>,
}

impl FeedReply {
    /// The reply to a narrowed statement, of which nothing is cached.
    pub(super) fn narrowed(bytes: Vec<u8>, outcome: ReplyOutcome) -> FeedReply {
        FeedReply {
            bytes,
            outcome,
            narrowed: true,
            from_cache: false,
            fill: None,
        }
    }
}
