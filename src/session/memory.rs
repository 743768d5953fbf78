//! What a call needs of memory: whether its page is there, the page, and the comparison behind it.

use std::sync::Arc;

use super::ownership::{Answered, Want};
use super::state::{Session, Wanted};
use crate::binlog::{Likely, Place};
use crate::index::Page;
use crate::shadow::Compared;
use crate::spread::Spread;
use crate::timeline::definition::Definition;

impl Session {
    /// Whether the page is likely to be in memory, and whether the answer is to be compared.
    pub(super) async fn look(&mut self, want: Want) -> (Likely, bool) {
        self.spread = None;
        if want.spread {
            self.wanted = None;
            return (self.look_on_nodes(want), false);
        }
        let Some(binlog) = self.shared.binlog.clone() else {
            return (Likely::No, false);
        };
        let Some(place) = self.place_of(&want) else {
            return (Likely::No, false);
        };
        let shadow = self.shared.shadow.as_ref();
        let compares = shadow.is_some_and(|shadow| {
            shadow.chooses() && shadow.may_compare(want.definition, place.database())
        });
        let mark = if compares { binlog.mark() } else { None };
        let likely = match want.now {
            true => {
                let server = self.server();
                let page = (want.reader, want.bound, want.n);
                binlog.may_have(&place, server.as_deref(), page).await
            }
            false => Likely::No,
        };
        let compared = mark.is_some();
        self.wanted = Some(Wanted { place, want, mark });
        (likely, compared)
    }

    /// The same of a timeline whose messages are on data nodes.
    fn look_on_nodes(&mut self, want: Want) -> Likely {
        let server = self.server();
        let likely = want.now && {
            let of = self.timeline_of(&want);
            of.is_some_and(|(spread, definition, database)| {
                spread.may_have(definition, database, server.as_deref())
            })
        };
        match likely {
            true => {
                self.spread = Some(want);
                Likely::Resident
            }
            false => Likely::No,
        }
    }

    fn timeline_of<'a>(&'a self, want: &'a Want) -> Option<(&'a Spread, &'a Definition, &'a str)> {
        let definition = want.definition.of(self.shared.catalogue.definitions())?;
        let database = std::str::from_utf8(&want.database).ok()?;
        Some((self.shared.spread.as_deref()?, definition, database))
    }

    /// The page that was looked for last.
    pub(super) async fn page(&mut self, likely: Likely) -> Option<Page> {
        if let Some(want) = self.spread.take() {
            let server = self.server()?;
            let (spread, definition, database) = self.timeline_of(&want)?;
            let page = (want.reader, want.bound, want.n);
            let page = spread.page(definition, database, &server, page).await?;
            return self.is_trusted(true).then_some(page);
        }
        let binlog = self.shared.binlog.clone()?;
        let server = self.server()?;
        let proves = binlog.must_prove(self.sent) || self.is_to_be_trusted();
        let Wanted { place, want, .. } = self.wanted.as_ref()?;
        let page = (want.reader, want.bound, want.n);
        let page = binlog.page(place, Some(&server), page, proves, likely);
        let page = page.await?;
        self.is_trusted(proves).then_some(page)
    }

    /// Has the procedure look over the answer, where that was decided before it.
    ///
    /// It runs on the server whose log is followed: an answer of another server, behind the same address, is none to compare.
    pub(super) fn compare(&mut self, answered: &Answered) {
        let server = self.server();
        let (Some(found), Some(shadow)) = (&answered.found, &self.shared.shadow) else {
            return;
        };
        let Some(Wanted {
            place,
            mark: Some(mark),
            ..
        }) = &self.wanted
        else {
            return;
        };
        let followed = self.shared.binlog.as_ref();
        let is_followed = |server: &Vec<u8>| followed.is_some_and(|binlog| binlog.follows(server));
        if !server.as_ref().is_some_and(is_followed) {
            return;
        }
        shadow.compare(Compared {
            definition: answered.call.definition,
            place: Arc::clone(place),
            form: answered.call.form,
            reader: answered.call.reader,
            bound: answered.call.bound,
            mark: *mark,
            answer: found.clone(),
        });
    }

    /// Which server this session's connection leads to, once it was asked.
    fn server(&mut self) -> Option<Vec<u8>> {
        let server = self.machine.commands()?.standing.server();
        server.map(<[u8]>::to_vec)
    }

    /// The timeline's place in memory, which is listened to from here on.
    fn place_of(&mut self, want: &Want) -> Option<Arc<Place>> {
        if let Some(Wanted {
            place, want: last, ..
        }) = &self.wanted
            && last.definition == want.definition
            && last.database == want.database
        {
            return Some(Arc::clone(place));
        }
        let database = std::str::from_utf8(&want.database).ok()?;
        let names = want.definition.of(self.shared.catalogue.definitions())?;
        let binlog = self.shared.binlog.as_ref()?;
        binlog.place_of(names, database)
    }
}
