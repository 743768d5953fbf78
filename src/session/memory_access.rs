//! What a call needs of memory: whether its page is there, the page, and the comparison behind it.

use std::sync::Arc;

use super::call_decision::{AnsweredCall, TimelineRequest};
use super::state::{RequestedPage, Session};
use crate::binlog::{CachedTimeline, PageResidency};
use crate::index::TimelinePage;
use crate::shadow::ComparedAnswer;
use crate::spread::SpreadMemory;
use crate::timeline::definition::TimelineDefinition;

impl Session {
    /// Whether the page is likely to be in memory, and whether the answer is to be compared.
    pub(super) async fn look_up_page(&mut self, want: TimelineRequest) -> (PageResidency, bool) {
        self.requested_node_page = None;
        if want.spread {
            self.requested_page = None;
            return (self.look_up_on_nodes(want), false);
        }
        let Some(binlog) = self.shared.binlog.clone() else {
            return (PageResidency::No, false);
        };
        let Some(place) = self.cached_timeline(&want) else {
            return (PageResidency::No, false);
        };
        let shadow = self.shared.shadow.as_ref();
        let compares = shadow.is_some_and(|shadow| {
            shadow.is_sampled() && shadow.may_compare(want.definition, place.database())
        });
        let mark = if compares { binlog.mark() } else { None };
        let likely = match want.wants_page {
            true => {
                let server = self.server_identity();
                let page = (want.reader, want.bound, want.n);
                binlog.page_residency(&place, server.as_deref(), page).await
            }
            false => PageResidency::No,
        };
        let compared = mark.is_some();
        self.requested_page = Some(RequestedPage {
            timeline: place,
            request: want,
            mark,
        });
        (likely, compared)
    }

    /// The same of a timeline whose messages are on data nodes.
    fn look_up_on_nodes(&mut self, want: TimelineRequest) -> PageResidency {
        let server = self.server_identity();
        let likely = want.wants_page && {
            let of = self.timeline_of(&want);
            of.is_some_and(|(spread, definition, database)| {
                spread.is_likely_resident(definition, database, server.as_deref())
            })
        };
        match likely {
            true => {
                self.requested_node_page = Some(want);
                PageResidency::Resident
            }
            false => PageResidency::No,
        }
    }

    fn timeline_of<'a>(
        &'a self,
        want: &'a TimelineRequest,
    ) -> Option<(&'a SpreadMemory, &'a TimelineDefinition, &'a str)> {
        let definition = want
            .definition
            .resolve(self.shared.catalogue.definitions())?;
        let database = std::str::from_utf8(&want.database).ok()?;
        Some((self.shared.spread.as_deref()?, definition, database))
    }

    /// The page that was looked for last.
    pub(super) async fn load_page(&mut self, likely: PageResidency) -> Option<TimelinePage> {
        if let Some(want) = self.requested_node_page.take() {
            let server = self.server_identity()?;
            let (spread, definition, database) = self.timeline_of(&want)?;
            let page = (want.reader, want.bound, want.n);
            let page = spread.page(definition, database, &server, page).await?;
            return self.confirm_trust(true).then_some(page);
        }
        let binlog = self.shared.binlog.clone()?;
        let server = self.server_identity()?;
        let proves = binlog.must_prove(self.server_was_queried) || self.relies_on_trust();
        let RequestedPage {
            timeline: place,
            request: want,
            ..
        } = self.requested_page.as_ref()?;
        let page = (want.reader, want.bound, want.n);
        let page = binlog.page(place, Some(&server), page, proves, likely);
        let page = page.await?;
        self.confirm_trust(proves).then_some(page)
    }

    /// Has the procedure look over the answer, where that was decided before it.
    ///
    /// It runs on the server whose log is followed: an answer of another server, behind the same address, is none to compare.
    pub(super) fn compare(&mut self, answered: &AnsweredCall) {
        let server = self.server_identity();
        let (Some(found), Some(shadow)) = (&answered.compared_result, &self.shared.shadow) else {
            return;
        };
        let Some(RequestedPage {
            timeline: place,
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
            timeline: Arc::clone(place),
            form: answered.call.form,
            reader: answered.call.reader,
            bound: answered.call.bound,
            mark: *mark,
            answer: found.clone(),
        });
    }

    /// Which server this session's connection leads to, once it was asked.
    fn server_identity(&mut self) -> Option<Vec<u8>> {
        let server = self.machine.commands()?.state.server();
        server.map(<[u8]>::to_vec)
    }

    /// The timeline's place in memory, which is listened to from here on.
    fn cached_timeline(&mut self, want: &TimelineRequest) -> Option<Arc<CachedTimeline>> {
        if let Some(RequestedPage {
            timeline: place,
            request: last,
            ..
        }) = &self.requested_page
            && last.definition == want.definition
            && last.database == want.database
        {
            return Some(Arc::clone(place));
        }
        let database = std::str::from_utf8(&want.database).ok()?;
        let names = want
            .definition
            .resolve(self.shared.catalogue.definitions())?;
        let binlog = self.shared.binlog.as_ref()?;
        binlog.timeline_of(names, database)
    }
}
