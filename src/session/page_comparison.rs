//! Has the server look over a page of kept rows, for the share of them that `shadow.rate` says: it answers the same statement in the same
//! session, and the whole replies are compared.
//!
//! The two are of one moment where the page, made once more behind the server's reply, is still the same. Whoever is compared waits for
//! the server, and is told a page that was found to be the server's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_rows::template::ResultEnvelope;

use super::cached_rows::CachedPage;
use super::call_decision::ServedFollowUp;
use super::feed_decision::{CachedPageRequest, InternalReply};
use super::follow_up_select::FollowUpLocation;
use super::log_span::log_in;
use super::reply_difference::{ReplyDifference, difference};
use super::state::{Session, SessionEnd};
use crate::clock;
use crate::shadow::ComparisonOutcome;
use crate::statement::FollowUpSelect;
use crate::wire::packet::HEADER_BYTES;
use crate::wire::reply::ReplyOutcome;

/// A difference counts if it comes so often one behind the other: a row may have been changed, and changed back.
const MAX_TRIES: usize = 3;

/// Whose page it is.
#[derive(Clone, Copy)]
enum PageOrigin<'a> {
    Feed(&'a CachedPageRequest),
    FollowUp(&'a ServedFollowUp, &'a FollowUpLocation),
}

/// A page, and what stands around its rows.
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

impl Session {
    /// A feed's page of kept rows, looked over if it is one of those; `length`: of the packet that waits, where it is the statement
    /// `alone`. `None`: there is none.
    pub(super) async fn compared_feed_page(
        &mut self,
        want: &CachedPageRequest,
        length: usize,
        alone: bool,
    ) -> Result<Option<CachedPage>, SessionEnd> {
        let of = PageOrigin::Feed(want);
        let made = self.build_page(of).await;
        let takes = || {
            let (directly, _) = want.candidates.template.times()?;
            Some(Duration::from_secs_f64(directly / 1e6))
        };
        let payload = match alone && self.is_compared(made.as_ref(), takes) {
            true => {
                let packet = self.client_in.get(HEADER_BYTES..length);
                let commands = self.machine.commands().zip(packet);
                commands.and_then(|(commands, packet)| commands.original_payload(packet))
            }
            false => None,
        };
        let made = self.compare_page(of, made, payload.as_deref()).await?;
        Ok(made.map(|made| made.page))
    }

    /// The same of a tail, whose packet waits and has this length.
    pub(super) async fn compared_follow_up_page(
        &mut self,
        own: &ServedFollowUp,
        memory: &FollowUpLocation,
        (length, tail): (usize, &FollowUpSelect),
    ) -> Result<Option<EnvelopedPage>, SessionEnd> {
        let of = PageOrigin::FollowUp(own, memory);
        let made = self.build_page(of).await;
        let statement = match self.is_compared(made.as_ref(), || None) {
            true => self.follow_up_statement(own, length, tail),
            false => None,
        };
        let payload = statement.as_ref().map(|(payload, _)| &payload[..]);
        self.compare_page(of, made, payload).await
    }

    /// True if this page is one to compare, for whose statement the server takes so long.
    fn is_compared(
        &self,
        made: Option<&EnvelopedPage>,
        takes: impl FnOnce() -> Option<Duration>,
    ) -> bool {
        let shadow = self.shared.shadow.as_ref();
        made.is_some() && shadow.is_some_and(|shadow| shadow.is_page_sampled(takes))
    }

    async fn build_page(&mut self, of: PageOrigin<'_>) -> Option<EnvelopedPage> {
        match of {
            PageOrigin::Feed(want) => {
                let paged = self.cached_page(want).await?;
                let frame = Arc::clone(&want.envelope);
                Some(EnvelopedPage {
                    page: paged,
                    envelope: frame,
                })
            }
            PageOrigin::FollowUp(own, memory) => self.cached_follow_up(own, memory).await,
        }
    }

    /// Compares a page with what the server answers to this; without one, none is compared.
    async fn compare_page(
        &mut self,
        of: PageOrigin<'_>,
        mut made: Option<EnvelopedPage>,
        payload: Option<&[u8]>,
    ) -> Result<Option<EnvelopedPage>, SessionEnd> {
        let Some(payload) = payload else {
            return Ok(made);
        };
        let begun = clock::now();
        let mut last = None;
        for _ in 0..MAX_TRIES {
            let mut reply = self.run_in_place(payload).await?;
            let again = self.build_page(of).await;
            let same = made.is_some() && again == made;
            let told = again.as_ref().filter(|_| same).map(EnvelopedPage::reply);
            let difference = told.and_then(|told| self.page_difference(of, &told, &mut reply));
            made = again;
            let went = match difference {
                None => ComparisonOutcome::Unsure,
                Some(None) => ComparisonOutcome::Same,
                Some(Some(difference)) => {
                    last = Some(difference);
                    continue;
                }
            };
            self.record_comparison(went, begun);
            return Ok(made);
        }
        if let Some(difference) = last {
            self.record_comparison(ComparisonOutcome::Different, begun);
            self.report_page(&difference);
        }
        Ok(None)
    }

    /// How a page differs from the server's reply. `None`: the server did not answer well, or at too great a length.
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
        if let PageOrigin::FollowUp(own, _) = of {
            own.put_flags(bytes, capabilities);
        }
        Some(difference(page, bytes, capabilities))
    }

    /// True once a page was wrong: then none is told.
    pub(super) fn distrusts_rows(&self) -> bool {
        let shadow = self.shared.shadow.as_ref();
        shadow.is_some_and(|shadow| shadow.distrusts_rows())
    }

    fn record_comparison(&self, went: ComparisonOutcome, begun: Instant) {
        if let Some(shadow) = &self.shared.shadow {
            shadow.record_page(went, clock::since(begun));
        }
    }

    /// A page was wrong: no rows are kept from now on.
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
