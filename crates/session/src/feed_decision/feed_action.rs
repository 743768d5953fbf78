//! What a decision about a feed's SELECT asks of the driver, and what the driver gives it.

use std::sync::Arc;

use super::*;

/// What a statement needs next.
#[derive(Debug)]
pub enum FeedAction {
    /// Ask these on the client's own connection: [`FeedInput::Answers`].
    Query(InternalQueries),
    /// Have memory name candidates: [`FeedInput::Candidates`].
    Candidates(FeedCandidateRequest),
    /// Make a page of rows that are kept: [`FeedInput::CachedPage`].
    Page(Box<CachedPageRequest>),
    /// Send this payload in the statement's place, and keep the whole reply: [`FeedInput::Reply`].
    Run(Vec<u8>),
    /// Prepare a narrowed text in the session: [`FeedInput::Reply`].
    Prepare(PrepareRequest),
    /// Say whether nothing has changed about the candidates since they were named: [`FeedInput::Unchanged`].
    CheckUnchanged,
    /// Wait while this awaits something: [`FeedInput::SampleAwaited`].
    AwaitSample(SampleWait),
    /// The end: this reply is the statement's.
    Reply(FeedReply),
    /// The end: the statement goes on as it is.
    Relay(FeedRelayReason),
    /// The end: the execution goes on as it is, and is learned from.
    RelaySampled(MetadataSample),
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
    /// See [`FeedAction::Page`]; `None`: not all of it is kept, or memory is not up to date in time.
    CachedPage(Option<CachedPage>),
    /// See [`FeedAction::Run`] and [`FeedAction::Prepare`].
    Reply(InternalReply),
    /// See [`FeedAction::CheckUnchanged`].
    Unchanged(bool),
    /// See [`FeedAction::AwaitSample`].
    SampleAwaited,
}

/// Candidates that are wanted.
#[derive(Clone, Debug)]
pub struct FeedCandidateRequest {
    /// Of which template.
    pub template: Arc<Template>,
    /// Whom these follow.
    pub readers: Vec<u64>,
    /// And these, ascending.
    pub authors: Vec<u64>,
    /// Which messages. Where the id alone orders, keys are 0.
    pub range: MessageRange<KeyedMessage>,
    /// The key alone orders them: none that share one may be among them.
    pub untied: bool,
    /// Lists of authors beside those whom the readers follow.
    pub lists: Vec<AuthorListQuery>,
}

/// Candidates that were named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSet {
    /// Descending.
    pub ids: Vec<u64>,
    /// There are no others.
    pub exhaustive: bool,
    /// They end in front of messages that share a key, where the key alone orders.
    pub tied: bool,
    /// How many authors there are.
    pub authors: usize,
    /// Whose the messages are, one by one.
    pub written_by: Vec<u64>,
    /// The authors of each list: `None`: it is not known; `Some(None)`: it cannot be kept, as there are too many.
    pub author_lists: Vec<Option<Option<ListedAuthors>>>,
    /// In which stream of the log they were named.
    pub generation: u64,
}

/// The reply to a statement of ours.
#[derive(Debug)]
pub struct InternalReply {
    /// Its bytes, where they are not too many to be kept.
    pub bytes: Option<Vec<u8>>,
    /// How many rows it has.
    pub rows: u64,
    /// How it ended.
    pub outcome: Option<ReplyOutcome>,
}

/// A reply that the client is told.
#[derive(Debug)]
pub struct FeedReply {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it ends.
    pub outcome: ReplyOutcome,
    /// The statement that was sent was a narrowed one.
    pub narrowed: bool,
    /// None was sent: the rows were kept.
    pub from_cache: bool,
    /// What may be kept of it, if nothing has changed since candidates were named.
    pub fill: Option<Box<CacheFill>>,
}

impl FeedReply {
    /// The reply to a narrowed statement, of which nothing is kept.
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
