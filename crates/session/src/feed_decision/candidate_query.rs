//! A statement's request for candidates.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::binding::{FeedPageRequest, PostingRequest};
use headwater_feed::result_metadata::ServerPlan;
use headwater_timeline::index::{KeyedMessage, MessageRange};

use super::newest::NewestQuery;
use super::{
    CandidateSelection, CandidateSet, FeedAction, FeedCacheScope, FeedCandidateRequest, FeedStage,
    ServedStatement,
};

/// A statement's request for candidates, and how often it was repeated.
#[derive(Debug)]
pub(super) struct CandidateQuery {
    pub(super) bound: FeedPageRequest,
    pub(super) postings: Vec<PostingRequest>,
    pub(super) selection: CandidateSelection<NewestQuery>,
    pub(super) rows_needed: usize,
    pub(super) range: MessageRange<KeyedMessage>,
    pub(super) retakes: u32,
    /// The server's plan for it, if that was queried.
    pub(super) plan: Option<ServerPlan>,
    /// The first candidates did not suffice.
    pub(super) was_short: bool,
    /// The rows' cache scope, if they may be cached.
    pub(super) cache_scope: Option<Box<FeedCacheScope>>,
    /// The server's reply for each list, if that was queried.
    pub(super) list_replies: Vec<Option<crate::cached_rows::AuthorListReply>>,
}

impl CandidateQuery {
    pub(super) fn request(&self, subject: &ServedStatement) -> FeedCandidateRequest {
        FeedCandidateRequest {
            template: Arc::clone(&subject.template),
            readers: self.bound.readers.clone(),
            authors: self.bound.authors.clone(),
            postings: self.postings.clone(),
            selection: match &self.selection {
                CandidateSelection::Range => CandidateSelection::Range,
                CandidateSelection::Ids(ids) => CandidateSelection::Ids(ids.clone()),
                CandidateSelection::Newest(newest) => {
                    CandidateSelection::Newest(newest.request.clone())
                }
            },
            range: self.range,
            untied: subject.template.shape.ties,
            whole_keys: subject.template.shape.whole_keys,
            lists: self
                .cache_scope
                .as_ref()
                .map_or(Vec::new(), |it| it.lists.clone()),
        }
    }
}

pub(super) fn candidate_request(
    subject: ServedStatement,
    mut query: CandidateQuery,
) -> (FeedStage, FeedAction) {
    // Replies about lists are older than the new candidates.
    query.list_replies.clear();
    let request = query.request(&subject);
    (
        FeedStage::RequestingCandidates(subject, query),
        FeedAction::Candidates(request),
    )
}

/// At least two different ids: with one, or none, the server plans otherwise. Where all messages are named, no other passes the statement's own
/// conditions, so that any id may be added. Else it is one that no message has: behind the largest of its type no table goes on.
pub(super) fn padded(candidates: &CandidateSet, template: &Template) -> Vec<u64> {
    let mut padded = candidates.ids.clone();
    let largest = template.types.id.largest();
    let others = match candidates.exhaustive {
        true => [0, 1],
        false => [largest, largest - 1],
    };
    for id in others {
        if padded.len() < 2 && !padded.contains(&id) {
            padded.push(id);
        }
    }
    padded
}
