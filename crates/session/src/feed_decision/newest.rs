//! Statements whose candidates are exactly known: messages that they name by their ids, and the newest message of each author.
//!
//! Only cached rows make them faster. The newest ids are numbers of single authors, cached as those of counts; what is missing is asked for in the
//! client's session.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::binding::{FeedPageRequest, FeedStatement};
use headwater_feed::newest::NewestOrder;
use headwater_feed::refusal::NarrowingRefusal;
use headwater_wire::resultset::QueryReply;

use super::count_request::directed;
use super::{
    AuthorValue, CandidateQuery, CandidateSelection, CountGaps, FeedAction, FeedContext,
    FeedCountRequest, FeedKnowledge, FeedRelayReason, FeedStage, FeedTransition, ServedStatement,
    index_range, query_session,
};

/// A request for the newest message of each author.
#[derive(Clone, Debug)]
pub struct NewestRequest {
    /// The authors' numbers.
    pub numbers: Arc<FeedCountRequest>,
    /// Their order.
    pub order: NewestOrder,
    /// The most messages; `None`: all.
    pub limit: Option<usize>,
}

/// A request for the newest message of each author, and how often memory was asked.
#[derive(Debug)]
pub(super) struct NewestQuery {
    pub(super) request: NewestRequest,
    attempts: u32,
}

/// How often what is missing is asked for, before the server answers.
const MAX_ATTEMPTS: u32 = 3;

impl NewestRequest {
    /// The newest messages with their authors, in the statement's order, of what is known of each author. `None`: the server chooses their
    /// order.
    #[must_use]
    pub fn messages(&self, values: &[(u64, AuthorValue)]) -> Option<Vec<(u64, u64)>> {
        let newest = |(author, value): &(u64, AuthorValue)| {
            let time = self.order.time_descending.map_or(0, |_| value.largest);
            Some((time, value.number.checked_sub(1)?, *author))
        };
        let mut messages: Vec<(u64, u64, u64)> = values.iter().filter_map(newest).collect();
        let latest_first = self.order.time_descending == Some(true);
        let newest_first = self.order.id_descending == Some(true);
        messages.sort_unstable_by(|one, other| {
            let by_time = directed(one.0.cmp(&other.0), latest_first);
            by_time.then_with(|| directed(one.1.cmp(&other.1), newest_first))
        });
        let mut pairs = messages.iter().zip(messages.iter().skip(1));
        let is_tied = pairs.any(|(one, other)| one.0 == other.0);
        if is_tied && self.order.id_descending.is_none() {
            return None;
        }
        messages.truncate(self.limit.unwrap_or(usize::MAX));
        let each = messages.into_iter();
        Some(each.map(|(_, id, author)| (id, author)).collect())
    }
}

impl CandidateQuery {
    /// True if its candidates are all messages of its authors in a range.
    pub(super) fn is_of_range(&self) -> bool {
        matches!(self.selection, CandidateSelection::Range)
    }

    /// A query for known candidates.
    fn of_known(
        template: &Template,
        bound: FeedPageRequest,
        scope: super::FeedCacheScope,
        (selection, rows_needed): (CandidateSelection<NewestQuery>, usize),
    ) -> Result<CandidateQuery, FeedRelayReason> {
        Ok(CandidateQuery {
            bound,
            postings: Vec::new(),
            selection,
            rows_needed,
            range: index_range((None, None), template, rows_needed)?,
            retakes: 0,
            plan: None,
            was_short: false,
            cache_scope: Some(Box::new(scope)),
            list_replies: Vec::new(),
        })
    }
}

impl<K: FeedKnowledge> FeedContext<'_, K> {
    /// The request of a statement that names its messages by their ids.
    pub(super) fn listed_query(
        &self,
        template: &Template,
        statement: FeedStatement<'_>,
        bound: FeedPageRequest,
        ids: Vec<u64>,
    ) -> Result<CandidateQuery, FeedRelayReason> {
        if ids.len() > self.policy.candidates {
            return Err(FeedRelayReason::TooMany);
        }
        let scope = self.cache_scope(template, statement);
        let scope = scope.ok_or(FeedRelayReason::Cheaper)?;
        let count = ids.len();
        let selection = CandidateSelection::Ids(ids);
        CandidateQuery::of_known(template, bound, scope, (selection, count))
    }

    /// The request of a statement of the newest message of each author.
    pub(super) fn newest_query(
        &self,
        template: &Template,
        statement: FeedStatement<'_>,
        bound: FeedPageRequest,
    ) -> Result<CandidateQuery, FeedRelayReason> {
        let shape = template.shape.newest.as_ref();
        let shape = shape.filter(|shape| shape.fits(statement));
        let shape = shape.ok_or(NarrowingRefusal::Structure)?;
        let numbers = template.newest.as_ref().ok_or(FeedRelayReason::Cheaper)?;
        let numbers = self.count_request(numbers, statement)?;
        let scope = self.cache_scope(template, statement);
        let scope = scope.ok_or(FeedRelayReason::Cheaper)?;
        let wanted = bound.limit.saturating_add(bound.offset);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let request = NewestRequest {
            numbers: Arc::new(numbers),
            order: shape.order,
            // Where one may be excluded, another takes its place.
            limit: shape.shows_all.then_some(wanted),
        };
        let selection = CandidateSelection::Newest(NewestQuery {
            request,
            attempts: 0,
        });
        CandidateQuery::of_known(template, bound, scope, (selection, 0))
    }

    /// Queries which messages are the newest of authors, where memory does not know.
    pub(super) fn query_newest(
        &mut self,
        subject: ServedStatement,
        mut query: CandidateQuery,
        gaps: CountGaps,
    ) -> FeedTransition {
        if !self.is_certain() {
            return self.begin();
        }
        self.begun.get_or_insert(self.now);
        let CandidateSelection::Newest(newest) = &mut query.selection else {
            return Err(FeedRelayReason::Failed);
        };
        newest.attempts += 1;
        if newest.attempts > MAX_ATTEMPTS {
            return Err(FeedRelayReason::Changed);
        }
        let queries = self.count_queries(&subject, &newest.request.numbers, &gaps)?;
        self.session.state.note_server_contact(self.now);
        let querying = FeedStage::QueryingNewest(subject, query, gaps);
        Ok((querying, query_session(queries)))
    }

    /// The server has told which messages these are.
    pub(super) fn take_newest(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        gaps: &CountGaps,
        answers: Vec<QueryReply>,
    ) -> FeedTransition {
        let CandidateSelection::Newest(newest) = &query.selection else {
            return Err(FeedRelayReason::Failed);
        };
        let numbers = Arc::clone(&newest.request.numbers);
        let fill = self.count_fill(&numbers, gaps, answers)?;
        Ok((
            FeedStage::CachingNewest(subject, query),
            FeedAction::CacheCounts(Box::new(fill)),
        ))
    }
}
