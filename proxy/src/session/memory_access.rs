//! A session's access to memory: the page of a call, the candidates and cached rows of a feed's statement.

use std::sync::Arc;

use headwater_rows::PageSource;

use super::counts::{CountScope, NewestScope, cached_newest};
use super::decision_driver::DecisionPurpose;
use super::feed_statements::page_reply;
use super::state::Session;
use crate::binlog::{
    Binlog, CachedTimeline, CandidateMessages, CandidateRequest, PageResidency, ReplicationMark,
};
use crate::shadow::ComparedAnswer;
use crate::spread::SpreadMemory;
use headwater_session::author_lists::passing_messages;
use headwater_session::cached_rows::{CacheFill, CachedPage};
use headwater_session::call_decision::{AnsweredCall, TimelineRequest};
use headwater_session::feed_decision::{
    CachedPageRequest, CandidateSelection, CandidateSet, FeedCandidateRequest, FeedCountRequest,
    FeedRelayReason,
};
use headwater_timeline::definition::{DefinitionId, TimelineDefinition};
use headwater_timeline::index::TimelinePage;

/// Where a call's page is looked for.
#[derive(Debug)]
pub(super) enum PageLocation {
    /// It is in no memory.
    Nowhere,
    /// In the index of this timeline.
    Timeline {
        timeline: Arc<CachedTimeline>,
        request: TimelineRequest,
        residency: PageResidency,
        /// The moment before the answer, if it is to be compared with the procedure's.
        mark: Option<ReplicationMark>,
    },
    /// In the memory of a timeline whose messages are on data nodes.
    DataNodes(TimelineRequest),
}

impl PageLocation {
    /// True if the page is likely there.
    pub(super) fn is_likely(&self) -> bool {
        match self {
            PageLocation::Nowhere => false,
            PageLocation::Timeline { residency, .. } => *residency != PageResidency::No,
            PageLocation::DataNodes(_) => true,
        }
    }

    /// True if the answer is to be compared with the procedure's.
    pub(super) fn is_compared(&self) -> bool {
        matches!(self, PageLocation::Timeline { mark: Some(_), .. })
    }
}

/// The timeline of the last call.
#[derive(Debug)]
pub(super) struct CalledTimeline {
    pub(super) definition: DefinitionId,
    pub(super) database: Vec<u8>,
    pub(super) timeline: Arc<CachedTimeline>,
}

/// What the candidates of an answer depend on.
#[derive(Debug)]
pub(super) struct CandidateScope {
    own: CandidateSource,
    /// The lists of other feeds.
    others: Vec<CandidateSource>,
    /// What the newest messages of single authors depend on besides.
    newest: Option<NewestScope>,
}

/// A timeline, the readers and authors whose messages are candidates, and the moment at which memory named them.
#[derive(Debug)]
struct CandidateSource {
    timeline: Arc<CachedTimeline>,
    readers: Vec<u64>,
    authors: Vec<u64>,
    mark: ReplicationMark,
}

impl CandidateSource {
    fn is_unchanged(&self, binlog: &Binlog, mark: ReplicationMark) -> bool {
        binlog.is_unchanged_since(&self.timeline, mark, &self.readers, &self.authors)
    }
}

impl CandidateScope {
    /// The scope of the newest messages of single authors.
    pub(super) fn of_newest(
        timeline: Arc<CachedTimeline>,
        mark: ReplicationMark,
        (readers, authors): (Vec<u64>, Vec<u64>),
        numbers: &FeedCountRequest,
    ) -> CandidateScope {
        CandidateScope {
            newest: Some(NewestScope::of(&timeline, numbers, &authors)),
            own: CandidateSource {
                timeline,
                readers,
                authors,
                mark,
            },
            others: Vec::new(),
        }
    }

    /// Where numbers of its authors are to be cached.
    pub(super) fn count_scope(&self) -> CountScope {
        CountScope {
            timeline: Arc::clone(&self.own.timeline),
            mark: self.own.mark,
        }
    }

    /// True if nothing that it depends on has changed since memory named the candidates.
    fn is_unchanged(&self, binlog: &Binlog) -> bool {
        let mut sources = self.sources();
        sources.all(|source| source.is_unchanged(binlog, source.mark))
            && self
                .newest
                .as_ref()
                .is_none_or(|newest| newest.is_unchanged(binlog, self.own.mark))
    }

    fn sources(&self) -> impl Iterator<Item = &CandidateSource> {
        std::iter::once(&self.own).chain(&self.others)
    }
}

/// The moment since which the candidates of an answer are proved unchanged.
#[derive(Debug)]
pub(super) struct ProofMoment {
    timeline: Arc<CachedTimeline>,
    mark: ReplicationMark,
}

fn candidate_query(request: &FeedCandidateRequest) -> CandidateRequest {
    CandidateRequest {
        readers: request.readers.clone(),
        authors: request.authors.clone(),
        range: request.range,
        untied: request.untied,
        whole_keys: request.whole_keys,
    }
}

impl Session {
    /// Finds where the page is, and keeps its timeline in memory from here on.
    pub(super) async fn locate_page(
        &mut self,
        request: TimelineRequest,
        purpose: DecisionPurpose,
    ) -> PageLocation {
        if request.spread {
            self.called_timeline = None;
            return self.locate_on_nodes(request);
        }
        let Some(binlog) = self.shared.binlog.clone() else {
            return PageLocation::Nowhere;
        };
        let Some(timeline) = self.cached_timeline(&request) else {
            return PageLocation::Nowhere;
        };
        let shadow = self.shared.shadow.as_ref();
        let compares = purpose == DecisionPurpose::Serve
            && shadow.is_some_and(|shadow| {
                shadow.is_sampled() && shadow.may_compare(request.definition, timeline.database())
            });
        let mark = if compares { binlog.mark() } else { None };
        let residency = match request.wants_page {
            true => {
                let server = self.server_identity();
                let page = (request.reader, request.bound, request.n);
                binlog
                    .page_residency(&timeline, server.as_deref(), page)
                    .await
            }
            false => PageResidency::No,
        };
        PageLocation::Timeline {
            timeline,
            request,
            residency,
            mark,
        }
    }

    /// The same for a timeline whose messages are on data nodes.
    fn locate_on_nodes(&mut self, request: TimelineRequest) -> PageLocation {
        let server = self.server_identity();
        let likely = request.wants_page && {
            let of = self.timeline_of(&request);
            of.is_some_and(|(spread, definition, database)| {
                spread.is_likely_resident(definition, database, server.as_deref())
            })
        };
        match likely {
            true => PageLocation::DataNodes(request),
            false => PageLocation::Nowhere,
        }
    }

    fn timeline_of<'a>(
        &'a self,
        request: &'a TimelineRequest,
    ) -> Option<(&'a SpreadMemory, &'a TimelineDefinition, &'a str)> {
        let definition = request
            .definition
            .resolve(self.shared.catalogue.definitions())?;
        let database = std::str::from_utf8(&request.database).ok()?;
        Some((self.shared.spread.as_deref()?, definition, database))
    }

    /// The page, proved to be fresh.
    pub(super) async fn page_from_memory(
        &mut self,
        location: &PageLocation,
    ) -> Option<TimelinePage> {
        let server = self.server_identity()?;
        match location {
            PageLocation::Nowhere => None,
            PageLocation::DataNodes(request) => {
                let (spread, definition, database) = self.timeline_of(request)?;
                let page = (request.reader, request.bound, request.n);
                let page = spread.page(definition, database, &server, page).await?;
                self.confirm_no_functions(true).then_some(page)
            }
            PageLocation::Timeline {
                timeline,
                request,
                residency,
                ..
            } => {
                let binlog = self.shared.binlog.clone()?;
                let proves = self.must_prove(&binlog);
                let page = (request.reader, request.bound, request.n);
                let page = binlog.page(timeline, Some(&server), page, proves, *residency);
                let page = page.await?;
                self.confirm_no_functions(proves).then_some(page)
            }
        }
    }

    /// Has the procedure check the answer, if that was decided before it.
    ///
    /// It runs on the followed server. An answer of another server behind the same address is not compared.
    pub(super) fn compare(&mut self, answered: &AnsweredCall, location: &PageLocation) {
        let server = self.server_identity();
        let (Some(result), Some(shadow)) = (&answered.compared_result, &self.shared.shadow) else {
            return;
        };
        let PageLocation::Timeline {
            timeline,
            mark: Some(mark),
            ..
        } = location
        else {
            return;
        };
        let followed = self.shared.binlog.as_ref();
        let is_followed = |server: &Vec<u8>| followed.is_some_and(|binlog| binlog.follows(server));
        if !server.as_ref().is_some_and(is_followed) {
            return;
        }
        shadow.compare(ComparedAnswer {
            definition: answered.call.definition,
            timeline: Arc::clone(timeline),
            form: answered.call.form,
            reader: answered.call.reader,
            bound: answered.call.bound,
            mark: *mark,
            answer: result.clone(),
        });
    }

    /// The server that this session is connected to, once known.
    fn server_identity(&mut self) -> Option<Vec<u8>> {
        let server = self.machine.commands()?.state.server();
        server.map(<[u8]>::to_vec)
    }

    /// The cached timeline, which is followed from here on.
    fn cached_timeline(&mut self, request: &TimelineRequest) -> Option<Arc<CachedTimeline>> {
        if let Some(called) = &self.called_timeline
            && called.definition == request.definition
            && called.database == request.database
        {
            return Some(Arc::clone(&called.timeline));
        }
        let database = std::str::from_utf8(&request.database).ok()?;
        let names = request
            .definition
            .resolve(self.shared.catalogue.definitions())?;
        let binlog = self.shared.binlog.as_ref()?;
        let timeline = binlog.timeline_of(names, database)?;
        self.called_timeline = Some(CalledTimeline {
            definition: request.definition,
            database: request.database.clone(),
            timeline: Arc::clone(&timeline),
        });
        Some(timeline)
    }

    /// The candidates of a request, or why there are none.
    pub(super) async fn candidates(
        &mut self,
        request: &FeedCandidateRequest,
    ) -> Result<(CandidateSet, CandidateScope), FeedRelayReason> {
        self.find_candidates(request)
            .await
            .ok_or(FeedRelayReason::NotInMemory)?
    }

    async fn find_candidates(
        &mut self,
        request: &FeedCandidateRequest,
    ) -> Option<Result<(CandidateSet, CandidateScope), FeedRelayReason>> {
        let feeds = Arc::clone(self.shared.feeds.as_ref()?);
        let binlog = Arc::clone(self.shared.binlog.as_ref()?);
        let state = &self.machine.commands()?.state;
        let identity = state.server()?.to_vec();
        let snapshot = state.reads_a_snapshot();
        let database = &request.template.database;
        let timeline = feeds.cached_timeline(request.template.feed, database)?;
        if let CandidateSelection::Ids(ids) = &request.selection {
            let mark = binlog.mark_of(&timeline, &identity)?;
            let candidates = CandidateSet {
                ids: ids.clone(),
                exhaustive: true,
                tied: false,
                // Their number decides the server's plan, as that of authors does.
                authors: ids.len(),
                written_by: Vec::new(),
                author_lists: Vec::new(),
                generation: mark.generation(),
                gaps: None,
            };
            let scope = CandidateScope {
                own: CandidateSource {
                    timeline,
                    readers: Vec::new(),
                    authors: Vec::new(),
                    mark,
                },
                others: Vec::new(),
                newest: None,
            };
            return Some(Ok((candidates, scope)));
        }
        if let CandidateSelection::Newest(newest) = &request.selection {
            return self.newest_candidates(newest).await;
        }
        let mut own_request = candidate_query(request);
        // Lists of several feeds are cut once they are merged.
        let whole_request = (!request.postings.is_empty()).then(|| own_request.clone());
        if let Some(whole) = &whole_request {
            own_request.range.limit = whole.required_count();
            (own_request.untied, own_request.whole_keys) = (false, false);
        }
        let mut candidates = binlog
            .candidates(&timeline, &identity, &own_request)
            .await?;
        let mut scope = CandidateScope {
            own: CandidateSource {
                timeline,
                readers: own_request.readers,
                authors: std::mem::take(&mut candidates.authors),
                mark: candidates.mark,
            },
            others: Vec::new(),
            newest: None,
        };
        if let Some(whole) = &whole_request {
            let mut lists = vec![candidates.messages];
            for posting in &request.postings {
                let timeline = feeds.cached_timeline(posting.feed, database)?;
                let list = CandidateRequest {
                    readers: posting.readers.clone(),
                    authors: posting.authors.clone(),
                    range: own_request.range,
                    untied: false,
                    whole_keys: false,
                };
                let found = binlog.candidates(&timeline, &identity, &list).await?;
                lists.push(found.messages);
                scope.others.push(CandidateSource {
                    timeline,
                    readers: list.readers,
                    authors: found.authors,
                    mark: found.mark,
                });
            }
            candidates.messages = CandidateMessages::merge(&lists, whole);
        }
        let generation = candidates.mark.generation();
        let candidate_set = CandidateSet {
            ids: candidates.messages.ids,
            exhaustive: candidates.messages.is_complete,
            tied: candidates.messages.ends_before_tie,
            authors: scope.sources().map(|source| source.authors.len()).sum(),
            written_by: candidates.messages.authors,
            author_lists: request
                .lists
                .iter()
                .map(|list| {
                    let list = list.cache_key(&request.template, generation);
                    list.lookup(binlog.row_cache()?)
                })
                .collect(),
            generation,
            gaps: None,
        };
        if snapshot {
            // Current candidates are valid for the snapshot if nothing has changed since before it.
            let opened = self.transaction_mark?;
            if !scope
                .sources()
                .all(|source| source.is_unchanged(&binlog, opened))
            {
                return Some(Err(FeedRelayReason::Changed));
            }
            scope.own.mark = opened;
            for source in &mut scope.others {
                source.mark = opened;
            }
        }
        Some(Ok((candidate_set, scope)))
    }

    /// Proves that nothing about the candidates has changed since memory named them. `None`: something has, or may have.
    pub(super) async fn prove_unchanged(&mut self, scope: CandidateScope) -> Option<ProofMoment> {
        let binlog = self.shared.binlog.clone()?;
        let unchanged = binlog.prove().await && scope.is_unchanged(&binlog);
        let CandidateSource { timeline, mark, .. } = scope.own;
        (unchanged && self.confirm_no_functions(true)).then_some(ProofMoment { timeline, mark })
    }

    /// A page of cached rows. If a row is missing among those already named, skips the freshness proof.
    pub(super) async fn cached_page(
        &mut self,
        request: &CachedPageRequest,
        scope: &CandidateScope,
    ) -> Option<CachedPage> {
        let binlog = Arc::clone(self.shared.binlog.as_ref()?);
        let rows = Arc::clone(binlog.row_cache()?);
        let timeline = &scope.own.timeline;
        let identity = self.machine.commands()?.state.server()?.to_vec();
        let of = PageSource {
            timeline_id: timeline.id(),
            cache_key: request.cache_key,
            joined_tables: &request.joined_tables,
        };
        let part = (request.offset, request.limit);
        let authors = request.lists.as_ref().map(|(_, authors)| &**authors);
        let listed_ids_of = |ids: &[u64], authors: &[u64]| match &request.lists {
            None => Some(None),
            Some((lists, _)) => {
                let lists = lists.iter().map(|list| list.lookup(&rows)?);
                let lists: Vec<_> = lists.collect::<Option<_>>()?;
                Some(Some(passing_messages(&lists, ids, authors)))
            }
        };
        let listed_ids = listed_ids_of(&request.named, authors.unwrap_or_default())?;
        let listed_ids = listed_ids.as_deref().unwrap_or(&request.named);
        if !rows.has_page(of, listed_ids, request.exhaustive, part) {
            return None;
        }
        let frame = &request.envelope;
        let make = |named: &CandidateMessages| {
            let listed_ids = listed_ids_of(&named.ids, &named.authors)?;
            let listed_ids = listed_ids.as_deref().unwrap_or(&named.ids);
            let front = (frame.head_packets.clone(), frame.sequence);
            rows.page(of, listed_ids, named.is_complete, part, front)
        };
        let need = self.take_proof_need(&binlog);
        let proves = need.is_open;
        let front = || (frame.head_packets.clone(), frame.sequence);
        let page = match &request.candidates.selection {
            CandidateSelection::Ids(ids) => {
                let make = || rows.page(of, ids, true, part, front());
                let page = binlog.read_consistently(timeline, &identity, proves, make);
                page.await?
            }
            CandidateSelection::Newest(newest) => {
                let make = || {
                    let newest = (newest, request.generation);
                    let (ids, all) = cached_newest(&binlog, timeline, &rows, newest)?;
                    rows.page(of, &ids, all, part, front())
                };
                let page = binlog.read_consistently(timeline, &identity, proves, make);
                page.await?
            }
            CandidateSelection::Range => {
                let candidates = candidate_query(&request.candidates);
                let page = binlog.cached_page(timeline, &identity, &candidates, proves, make);
                page.await?
            }
        };
        self.confirm_no_functions(need.is_needed)
            .then(|| page_reply(page))
    }

    /// Caches the rows of an answer that was proved.
    pub(super) fn cache_reply(&mut self, fill: &CacheFill, answer: &[u8], proof: &ProofMoment) {
        let state = self.machine.commands().map(|it| &it.state);
        if let Some(binlog) = &self.shared.binlog
            && let Some(identity) = state.and_then(|state| state.server())
        {
            binlog.cache_rows(&proof.timeline, identity, proof.mark, fill, answer);
        }
    }
}
