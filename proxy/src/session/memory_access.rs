//! Memory access of a call: whether its page is there, the page, and the comparison afterwards.

use std::sync::Arc;

use super::state::{RequestedPage, Session};
use crate::binlog::{CachedTimeline, PageResidency};
use crate::shadow::ComparedAnswer;
use crate::spread::SpreadMemory;
use headwater_session::call_decision::{AnsweredCall, TimelineRequest};
use headwater_timeline::definition::TimelineDefinition;
use headwater_timeline::index::TimelinePage;

impl Session {
    /// Whether the page is likely to be in memory, and whether the answer is to be compared.
    pub(super) async fn probe_page(&mut self, request: TimelineRequest) -> (PageResidency, bool) {
        self.requested_node_page = None;
        if request.spread {
            self.requested_page = None;
            return (self.look_up_on_nodes(request), false);
        }
        let Some(binlog) = self.shared.binlog.clone() else {
            return (PageResidency::No, false);
        };
        let Some(timeline) = self.cached_timeline(&request) else {
            return (PageResidency::No, false);
        };
        let shadow = self.shared.shadow.as_ref();
        let compares = shadow.is_some_and(|shadow| {
            shadow.is_sampled() && shadow.may_compare(request.definition, timeline.database())
        });
        let mark = if compares { binlog.mark() } else { None };
        let likely = match request.wants_page {
            true => {
                let server = self.server_identity();
                let page = (request.reader, request.bound, request.n);
                binlog
                    .page_residency(&timeline, server.as_deref(), page)
                    .await
            }
            false => PageResidency::No,
        };
        let compared = mark.is_some();
        self.requested_page = Some(RequestedPage {
            timeline,
            request,
            mark,
        });
        (likely, compared)
    }

    /// The same for a timeline whose messages are on data nodes.
    fn look_up_on_nodes(&mut self, request: TimelineRequest) -> PageResidency {
        let server = self.server_identity();
        let likely = request.wants_page && {
            let of = self.timeline_of(&request);
            of.is_some_and(|(spread, definition, database)| {
                spread.is_likely_resident(definition, database, server.as_deref())
            })
        };
        match likely {
            true => {
                self.requested_node_page = Some(request);
                PageResidency::Resident
            }
            false => PageResidency::No,
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

    /// Loads the page that was looked up last.
    pub(super) async fn page_from_memory(&mut self, likely: PageResidency) -> Option<TimelinePage> {
        if let Some(request) = self.requested_node_page.take() {
            let server = self.server_identity()?;
            let (spread, definition, database) = self.timeline_of(&request)?;
            let page = (request.reader, request.bound, request.n);
            let page = spread.page(definition, database, &server, page).await?;
            return self.confirm_no_functions(true).then_some(page);
        }
        let binlog = self.shared.binlog.clone()?;
        let server = self.server_identity()?;
        let proves = binlog.must_prove(self.server_was_queried) || self.assumes_no_functions();
        let RequestedPage {
            timeline, request, ..
        } = self.requested_page.as_ref()?;
        let page = (request.reader, request.bound, request.n);
        let page = binlog.page(timeline, Some(&server), page, proves, likely);
        let page = page.await?;
        self.confirm_no_functions(proves).then_some(page)
    }

    /// Has the procedure check the answer, if that was decided before it.
    ///
    /// It runs on the followed server. An answer of another server behind the same address is not compared.
    pub(super) fn compare(&mut self, answered: &AnsweredCall) {
        let server = self.server_identity();
        let (Some(result), Some(shadow)) = (&answered.compared_result, &self.shared.shadow) else {
            return;
        };
        let Some(RequestedPage {
            timeline,
            mark: Some(mark),
            ..
        }) = &self.requested_page
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
        if let Some(RequestedPage {
            timeline,
            request: last,
            ..
        }) = &self.requested_page
            && last.definition == request.definition
            && last.database == request.database
        {
            return Some(Arc::clone(timeline));
        }
        let database = std::str::from_utf8(&request.database).ok()?;
        let names = request
            .definition
            .resolve(self.shared.catalogue.definitions())?;
        let binlog = self.shared.binlog.as_ref()?;
        binlog.timeline_of(names, database)
    }
}
