//! Rows that are kept: a page made of them, and what an answer of the server's tells of each message.
//!
//! A row that was kept is what the server would send now, as long as the log tells no change of its message. So such a page needs no
//! question to the server but the proof that memory is up to date. Outside transactions only: inside, the snapshot decides.

use std::collections::HashMap;
use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::bind::Statement;
use headwater_feed::cost::Crowd;
use headwater_feed::refers::{By, Refer};
use headwater_rows::Variant;
use headwater_rows::template::Frame;
use headwater_timeline::index::PlaceId;
use headwater_wire::reply::layout::Parts;
use headwater_wire::resultset::column;

use super::{
    Candidates, Feeds, Found, List, Need, Stage, Subject, Told, Turn, Want, Wishes, World,
};
use crate::kept::{self, Among, Fill, OfMessage, OwnColumn, Paged, Says};
use crate::lists::{ListOf, passing};

/// A page that may be made of rows that are kept.
#[derive(Clone, Debug)]
pub struct PageWant {
    /// Whose messages.
    pub want: Want,
    /// As they were named without a proof: if nothing is kept of these, none is needed.
    pub named: Vec<u64>,
    /// There are no others.
    pub all: bool,
    /// Under which number rows are kept.
    pub variant: Variant,
    /// The places of rows that they are made of.
    pub referred: Arc<[PlaceId]>,
    /// Lists of authors beside those whom a reader follows, and whose the messages are, one by one.
    pub lists: Option<(Vec<ListOf>, Vec<u64>)>,
    /// What stands in front of the rows, and which number the first of them has.
    pub frame: Arc<Frame>,
    /// OFFSET.
    pub offset: u64,
    /// LIMIT.
    pub limit: u64,
}

/// Under what rows of a statement are kept.
#[derive(Clone, Debug)]
pub(super) struct Keeping {
    /// All that rows depend on but the template and the messages.
    key: Vec<u8>,
    /// What the session's settings are of that.
    pub(super) settings: Vec<u8>,
    /// Lists of authors beside those whom a reader follows.
    pub(super) lists: Vec<List>,
}

/// Rows of statements with longer literals beside those that are apart are not kept.
const LITERAL_BYTES: usize = 1024;

impl<K: Feeds> World<'_, K> {
    /// Under what rows of the statement may be kept, if they may.
    pub(super) fn keeping(&self, template: &Template, statement: Statement<'_>) -> Option<Keeping> {
        let standing = &self.session.standing;
        let may = self.policy.rows
            && !self.is_planned(template)
            && !self.keeps_columns()
            && self.named.is_none()
            && !standing.reads_a_snapshot();
        let keep = template.shape.keep.as_ref().filter(|_| may)?;
        let follow = standing.rows_follow()?;
        let literals = keep.literals(statement, template.types)?;
        let literals = (literals.len() <= LITERAL_BYTES).then_some(literals)?;
        let around = self.session.framing();
        Some(Keeping {
            key: [&around[..], follow, &[0], &literals].concat(),
            settings: follow.to_vec(),
            lists: Vec::new(),
        })
    }

    /// The page that may be there already.
    pub(super) fn page_want(
        &self,
        subject: &Subject,
        wishes: &Wishes,
        found: &Found,
    ) -> Option<PageWant> {
        let keeping = wishes.keeping.as_ref()?;
        let template = &subject.template;
        let kept = &template.kept;
        let first = wishes.anew == 0 && !wishes.short;
        let ttl = self.policy.privileges_ttl;
        let standing = &self.session.standing;
        let may = first
            && !template.is_retired()
            && standing.was_heard(self.now)
            && standing.may_read_template(kept.template, ttl, self.now)
            && kept.is_tried();
        if !may {
            return None;
        }
        let key = keeping.under(found);
        let (variant, frame) = kept.variant(&key, Crowd::of(found.authors).number())?;
        // Of other columns than those that were told of the client's own statement, the server tells it with a flag.
        if let Some(executed) = self.executed
            && executed.columns != frame.columns
        {
            return None;
        }
        Some(PageWant {
            want: wishes.want(subject),
            named: found.ids.clone(),
            all: found.all,
            variant,
            referred: Arc::clone(&template.referred),
            lists: (!keeping.lists.is_empty())
                .then(|| (keeping.lists_of(template, found), found.written_by.clone())),
            frame,
            offset: wishes.asked.offset,
            limit: wishes.asked.limit,
        })
    }

    /// The page was made of kept rows, or could not be.
    pub(super) fn paged(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        found: Found,
        frame: &Frame,
        paged: Option<Paged>,
    ) -> Turn {
        subject.template.kept.tried(paged.is_some());
        let Some(paged) = paged else {
            return self.go_to_server(subject, wishes, found);
        };
        let crowd = Crowd::of(found.authors);
        subject.template.made_of_kept(crowd, self.microseconds());
        if let Some(executed) = self.executed {
            self.session.statements().owned(executed.statement);
        }
        // Behind a call it is among what runs once more where somebody asks for counts.
        if self.session.tables.pending.is_none() {
            self.session.answered_aside(paged.found);
        }
        let (packets, outcome) = paged.reply(frame);
        let told = Told {
            kept: true,
            ..Told::narrowed(packets, outcome)
        };
        Ok((Stage::Ended, Need::Tell(told)))
    }

    /// What a narrowed answer tells of the messages among which the server looked.
    pub(super) fn fill(
        &mut self,
        subject: &Subject,
        wishes: &Wishes,
        candidates: &Candidates,
        bytes: &[u8],
    ) -> Option<Fill> {
        let template = &subject.template;
        let keeping = wishes.keeping.as_ref()?;
        let found = candidates.found.as_ref()?;
        if let Some(begun) = *self.begun {
            let standing = &mut self.session.standing;
            standing.template_answered(template.kept.template, begun);
        }
        let (names, words) = (&template.names, &subject.words);
        let id = OwnColumn {
            database: &template.database,
            table: &names.message,
            called: words.text(template.shape.qualifier, self.text()?),
            name: &names.id,
        };
        // Whom a list has not pass is not shown, whatever else holds.
        let authors = wishes.authors(found)?;
        let too_many = authors.is_none();
        let lists = authors.filter(|lists| !lists.is_empty());
        let passing = lists.map(|lists| passing(&lists, &found.ids, &found.written_by));
        let among = Among {
            ids: passing.as_deref().unwrap_or(&found.ids),
            all: found.all,
            offset: wishes.asked.offset,
            limit: wishes.asked.limit,
        };
        let parts = Parts::read(bytes, self.session.capabilities)?;
        let binary = self.executed.is_some();
        let (frame, rows) = kept::read(bytes, &parts, binary, id, among)?;
        let refers = &template.shape.keep.as_ref()?.refers;
        let others = (&refers[..], &template.referred[..]);
        let others = Others::read(bytes, &parts, binary, (id, found), others)?;
        Some(Fill {
            kept: Arc::clone(&template.kept),
            key: keeping.under(found),
            kind: candidates.crowd.number(),
            frame,
            rows: rows
                .into_iter()
                .filter(|_| !too_many)
                .filter_map(|told| others.of(bytes, told))
                .collect(),
            lists: wishes.asked_lists(keeping.lists_of(template, found)),
        })
    }
}

impl Keeping {
    /// In this stream of the log: what was told in another one is of other tables, perhaps.
    fn under(&self, found: &Found) -> Vec<u8> {
        [&found.generation.to_le_bytes()[..], &self.key].concat()
    }
}

/// The other rows that those of a reply are made of.
struct Others {
    each: Vec<Other>,
    /// Of each message its author, where that matters.
    authors: HashMap<u64, u64>,
    kinds: Vec<u8>,
    binary: bool,
}

/// Rows of one table.
struct Other {
    place: PlaceId,
    /// Which column of the reply has its key; `None`: the message's author.
    column: Option<usize>,
    decides: bool,
}

impl Others {
    /// `None`: a key is not among the columns.
    fn read(
        bytes: &[u8],
        parts: &Parts,
        binary: bool,
        (message, found): (OwnColumn<'_>, &Found),
        (refers, places): (&[Refer], &[PlaceId]),
    ) -> Option<Others> {
        let each = refers.iter().zip(places).map(|(refer, place)| {
            let column = match &refer.by {
                By::Author => None,
                By::Column(name) => Some(OwnColumn { name, ..message }.place(bytes, parts)?),
            };
            Some(Other {
                place: *place,
                column,
                decides: refer.decides,
            })
        });
        let authors = found.ids.iter().zip(&found.written_by);
        let authors = authors.filter(|_| !refers.is_empty());
        Some(Others {
            authors: authors.map(|(id, author)| (*id, *author)).collect(),
            each: each.collect::<Option<_>>()?,
            kinds: column::kinds(bytes, &parts.definitions)?,
            binary,
        })
    }

    /// What is told of a message, with the rows that it is made of. `None`: these are not known.
    fn of(&self, bytes: &[u8], (id, says): (u64, Says)) -> Option<OfMessage> {
        if self.each.is_empty() {
            return Some(OfMessage::alone((id, says)));
        }
        let row = match &says {
            Says::Row(range) => Some(bytes.get(range.clone())?),
            Says::Passes | Says::FilteredOut => None,
        };
        let made_of = self.each.iter().map(|other| {
            let key = match (other.column, row) {
                // That it passes, or does not, is no matter of theirs.
                (_, None) if !other.decides => None,
                (None, _) => Some(*self.authors.get(&id)?),
                (Some(place), Some(row)) => {
                    column::reference(row, place, &self.kinds, self.binary)?
                }
                (Some(_), None) => return None,
            };
            Some(key.map(|key| (other.place, key)))
        });
        Some(OfMessage {
            made_of: made_of.collect::<Option<_>>()?,
            id,
            says,
        })
    }
}
