//! Compares pages of cached rows, and counts, with the server's, for the share that `shadow.rate` sets: the server runs the same statement in the same
//! session, and the whole replies are compared.
//!
//! Both are of one moment if the page, built again after the server's reply, is unchanged. The compared client waits for the server, and
//! gets a page that equals the server's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_feed::Template;
use headwater_feed::words::StatementWords;
use headwater_rows::template::ResultEnvelope;

use super::counts::CountScope;
use super::follow_up_select::FollowUpLocation;
use super::log_span::log_in;
use super::memory_access::CandidateScope;
use super::state::{Session, SessionEnd};
use crate::clock;
use crate::shadow::ComparisonOutcome;
use headwater_session::cached_rows::CachedPage;
use headwater_session::call_decision::ServedFollowUp;
use headwater_session::feed_decision::{
    CachedPageRequest, CountAnswer, FeedCountRequest, FeedRelayReason, InternalReply,
};
use headwater_session::reply_difference::{ReplyDifference, difference};
use headwater_statement::FollowUpSelect;
use headwater_wire::capability::Capabilities;
use headwater_wire::command;
use headwater_wire::packet::HEADER_BYTES;
use headwater_wire::reply::ReplyOutcome;

/// Differences in a row before one counts: a row may have been changed, and changed back.
const MAX_TRIES: usize = 3;

/// The statement that a page answers.
#[derive(Clone, Copy)]
enum PageOrigin<'a> {
    Feed(&'a CachedPageRequest, &'a CandidateScope),
    Count(&'a FeedCountRequest),
    FollowUp(&'a ServedFollowUp, &'a FollowUpLocation),
}

/// A page, and the envelope around its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EnvelopedPage {
    pub(super) page: CachedPage,
    pub(super) envelope: Arc<ResultEnvelope>,
}

impl EnvelopedPage {
    fn reply(&self) -> Vec<u8> {
        self.page.clone().reply(&self.envelope).0
    }
}

/// The statement that the server answers with the page's order of ties. `None`: an execution has no text for that.
fn comparable_payload(
    payload: Vec<u8>,
    capabilities: Capabilities,
    template: &Template,
) -> Option<Vec<u8>> {
    let shape = &template.shape;
    if !shape.orders_ties() {
        return Some(payload);
    }
    let text = payload.get(command::query_text_range(&payload, capabilities)?)?;
    let words = StatementWords::read(text)?;
    let ordered = shape.with_tie_break(text, &words, &template.feed_names)?;
    command::with_query_text(&payload, capabilities, &ordered)
}

/// The reply of a count that memory knows, with an envelope that the server sent.
fn count_page(request: &FeedCountRequest, answer: &CountAnswer) -> Option<EnvelopedPage> {
    let CountAnswer::Total(counted) = answer else {
        return None;
    };
    let (page, envelope) = request.page(counted)?;
    Some(EnvelopedPage { page, envelope })
}

impl Session {
    /// A feed's page of cached rows, compared if it is sampled. `comparable`: the length of the waiting packet, if it holds this
    /// statement alone. `None`: there is no page.
    pub(super) async fn compared_feed_page(
        &mut self,
        request: &CachedPageRequest,
        scope: &CandidateScope,
        comparable: Option<usize>,
    ) -> Result<Option<CachedPage>, SessionEnd> {
        let of = PageOrigin::Feed(request, scope);
        let built = self.build_page(of).await;
        let takes = || {
            let (directly, _) = request.candidates.template.times()?;
            Some(Duration::from_secs_f64(directly / 1e6))
        };
        let compared = comparable.filter(|_| self.is_compared(built.as_ref(), takes));
        let payload = compared.and_then(|length| {
            let payload = self.waiting_payload(length)?;
            let capabilities = self.machine.commands()?.capabilities;
            comparable_payload(payload, capabilities, &request.candidates.template)
        });
        let built = self.compare_page(of, built, payload.as_deref()).await?;
        Ok(built.map(|made| made.page))
    }

    /// A count, compared if it is sampled.
    pub(super) async fn compared_count(
        &mut self,
        request: &FeedCountRequest,
        comparable: Option<usize>,
    ) -> Result<(CountAnswer, Option<CountScope>), SessionEnd> {
        let of = PageOrigin::Count(request);
        let read = self.count(request).await;
        let takes = || Some(Duration::from_secs_f64(request.template.times()?.0 / 1e6));
        // The first count of a template is the server's, and gives the envelope.
        let has_page = count_page(request, &read.0).is_some();
        let shadow = self.shared.shadow.as_ref().filter(|_| has_page);
        let is_sampled = shadow.is_some_and(|shadow| shadow.is_page_sampled(takes));
        let payload = comparable
            .filter(|_| is_sampled)
            .and_then(|length| self.waiting_payload(length));
        let Some(payload) = payload else {
            return Ok(read);
        };
        let built = self.build_page(of).await;
        Ok(match self.compare_page(of, built, Some(&payload)).await? {
            // The number may be another one by now.
            Some(_) => self.count(request).await,
            None => (CountAnswer::Unavailable(FeedRelayReason::Changed), None),
        })
    }

    /// The payload that has the server run the waiting statement.
    fn waiting_payload(&mut self, length: usize) -> Option<Vec<u8>> {
        let packet = self.client_in.get(HEADER_BYTES..length)?;
        self.machine.commands()?.original_payload(packet)
    }

    /// As [`Self::compared_feed_page`], for a follow-up SELECT, whose waiting packet has this length.
    pub(super) async fn compared_follow_up_page(
        &mut self,
        served: &ServedFollowUp,
        memory: &FollowUpLocation,
        (length, tail): (usize, &FollowUpSelect),
    ) -> Result<Option<EnvelopedPage>, SessionEnd> {
        let of = PageOrigin::FollowUp(served, memory);
        let built = self.build_page(of).await;
        let statement = match self.is_compared(built.as_ref(), || None) {
            true => self.follow_up_statement(served, length, tail),
            false => None,
        };
        let payload = statement.as_ref().map(|(payload, _)| &payload[..]);
        self.compare_page(of, built, payload).await
    }

    /// True if this page is to be compared; `takes`: the server's time for its statement.
    fn is_compared(
        &self,
        built: Option<&EnvelopedPage>,
        takes: impl FnOnce() -> Option<Duration>,
    ) -> bool {
        let shadow = self.shared.shadow.as_ref();
        built.is_some() && shadow.is_some_and(|shadow| shadow.is_page_sampled(takes))
    }

    async fn build_page(&mut self, of: PageOrigin<'_>) -> Option<EnvelopedPage> {
        match of {
            PageOrigin::Feed(request, scope) => {
                let paged = self.cached_page(request, scope).await?;
                let frame = Arc::clone(&request.envelope);
                Some(EnvelopedPage {
                    page: paged,
                    envelope: frame,
                })
            }
            PageOrigin::Count(request) => {
                let (answer, _) = self.count(request).await;
                count_page(request, &answer)
            }
            PageOrigin::FollowUp(served, memory) => self.cached_follow_up(served, memory).await,
        }
    }

    /// Compares a page with the server's answer to `payload`; without one, compares nothing.
    async fn compare_page(
        &mut self,
        of: PageOrigin<'_>,
        mut built: Option<EnvelopedPage>,
        payload: Option<&[u8]>,
    ) -> Result<Option<EnvelopedPage>, SessionEnd> {
        let Some(payload) = payload else {
            return Ok(built);
        };
        let begun = clock::now();
        let mut last = None;
        for _ in 0..MAX_TRIES {
            let mut reply = self.run_in_place(payload).await?;
            let again = self.build_page(of).await;
            let same = built.is_some() && again == built;
            let built_reply = again.as_ref().filter(|_| same).map(EnvelopedPage::reply);
            let difference =
                built_reply.and_then(|told| self.page_difference(of, &told, &mut reply));
            built = again;
            let outcome = match difference {
                None => ComparisonOutcome::Unsure,
                Some(None) => ComparisonOutcome::Same,
                Some(Some(difference)) => {
                    last = Some(difference);
                    continue;
                }
            };
            self.record_comparison(outcome, begun);
            return Ok(built);
        }
        if let Some(difference) = last {
            self.record_comparison(ComparisonOutcome::Different, begun);
            self.report_page(&difference);
        }
        Ok(None)
    }

    /// How a page differs from the server's reply. `None`: the server's reply failed, or was too long.
    fn page_difference(
        &mut self,
        of: PageOrigin<'_>,
        page: &[u8],
        reply: &mut InternalReply,
    ) -> Option<Option<ReplyDifference>> {
        let capabilities = self.machine.commands()?.capabilities;
        let (Some(bytes), Some(ReplyOutcome::Ok(_))) = (&mut reply.bytes, &reply.outcome) else {
            return None;
        };
        if let PageOrigin::FollowUp(served, _) = of {
            served.put_flags(bytes, capabilities);
        }
        Some(difference(page, bytes, capabilities))
    }

    /// True once a page was wrong: then none is used.
    pub(super) fn distrusts_rows(&self) -> bool {
        let shadow = self.shared.shadow.as_ref();
        shadow.is_some_and(|shadow| shadow.distrusts_rows())
    }

    fn record_comparison(&self, outcome: ComparisonOutcome, begun: Instant) {
        if let Some(shadow) = &self.shared.shadow {
            shadow.record_page(outcome, clock::since(begun));
        }
    }

    /// A page was wrong: stops caching rows.
    fn report_page(&self, difference: &ReplyDifference) {
        if let Some(rows) = self
            .shared
            .binlog
            .as_ref()
            .and_then(|binlog| binlog.row_cache())
        {
            rows.clear();
        }
        let span = self.span();
        log_in!(
            span,
            ERROR,
            "a page made of kept rows is not the server's: {difference}"
        );
        log_in!(
            span,
            ERROR,
            "rows are not kept from now on. Either they were changed where the server's log does not tell it (look for sql_log_bin = 0), \
             or Headwater has a fault (please report the statement and the tables). SIGHUP empties memory and has rows kept again"
        );
    }
}
