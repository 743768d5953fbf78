//! Rows that are kept: a page made of them, and what an answer of the server's tells of each message.
//!
//! A row that was kept is what the server would send now, as long as the log tells no change of its message. So such a page needs no
//! question to the server but the proof that memory is up to date. Outside transactions only: inside, the snapshot decides.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::bind::Statement;
use headwater_feed::cost::Crowd;
use headwater_rows::Variant;
use headwater_rows::template::Frame;
use headwater_wire::reply::layout::Parts;

use super::{Candidates, Feeds, Found, Need, Stage, Subject, Told, Turn, Want, Wishes, World};
use crate::kept::{self, Among, Fill, IdColumn, Paged};

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
}

/// Rows of statements with longer literals beside those that are apart are not kept.
const LITERAL_BYTES: usize = 1024;

impl<K: Feeds> World<'_, K> {
    /// Under what rows of the statement may be kept, if they may.
    pub(super) fn keeping(&self, template: &Template, statement: Statement<'_>) -> Option<Keeping> {
        let standing = &self.session.standing;
        let may = self.policy.rows
            && !self.policy.exact
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
            && standing.may_read_template(kept.number, ttl, self.now)
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
        if let Some(executed) = self.executed {
            self.session.statements().owned(executed.statement);
        }
        // Behind a call it is among what runs once more where somebody asks for counts.
        if self.session.tables.pending.is_none() {
            self.session.answered_aside(paged.rows);
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
            standing.template_answered(template.kept.number, begun);
        }
        let (names, words) = (&template.names, &subject.words);
        let id = IdColumn {
            database: &template.database,
            table: &names.message,
            called: words.text(template.shape.qualifier, self.text()?),
            name: &names.id,
        };
        let among = Among {
            ids: &found.ids,
            all: found.all,
            offset: wishes.asked.offset,
            limit: wishes.asked.limit,
        };
        let parts = Parts::read(bytes, self.session.capabilities)?;
        let (frame, rows) = kept::read(bytes, parts, self.executed.is_some(), id, among)?;
        Some(Fill {
            kept: Arc::clone(&template.kept),
            key: keeping.under(found),
            kind: candidates.crowd.number(),
            frame,
            rows,
        })
    }
}

impl Keeping {
    /// In this stream of the log: what was told in another one is of other tables, perhaps.
    fn under(&self, found: &Found) -> Vec<u8> {
        [&found.generation.to_le_bytes()[..], &self.key].concat()
    }
}
