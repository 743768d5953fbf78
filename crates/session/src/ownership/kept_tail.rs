//! A tail's page of rows that are kept: then the server is asked nothing but the proof that they are up to date.
//!
//! The ids are the session's own already. So a tail's rows follow its text, the session's settings and the messages, and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_rows::Variant;
use headwater_rows::template::{Frame, KeptRows};
use headwater_statement::{Tail, TailForm};
use headwater_timeline::Definition;
use headwater_timeline::check::Facts;
use headwater_wire::reply::layout::Parts;

use super::{Knowledge, OwnTail};
use crate::commands::Commands;
use crate::kept::{self, Among, Fill, OfMessage, OwnColumn};

/// Under what the rows of a tail are kept.
#[derive(Debug)]
pub(super) struct Keeping {
    rows: Arc<KeptRows>,
    /// All that rows depend on but the text and the messages.
    key: Vec<u8>,
    database: String,
    message: String,
    id: String,
    /// The message table's columns that are what they were written as.
    stored: Arc<[String]>,
}

/// A page that may be made of rows that are kept.
#[derive(Clone, Debug)]
pub struct TailWant {
    /// Under which number rows are kept.
    pub variant: Variant,
    /// What stands around the rows.
    pub frame: Arc<Frame>,
}

impl Keeping {
    /// `None`: rows of this tail are not kept in this session.
    pub(super) fn new(
        tail: &Tail,
        form: TailForm,
        definition: &Definition,
        facts: &Facts,
        session: &Commands,
        known: &impl Knowledge,
    ) -> Option<Keeping> {
        let standing = &session.standing;
        let follow = standing
            .rows_follow()
            .filter(|_| !standing.reads_a_snapshot())?;
        let database = std::str::from_utf8(standing.database()?).ok()?;
        let table = &definition.message.table;
        let rows = known.rows_of(database, table, tail.template())?;
        let form = [matches!(form, TailForm::BufferedList).into()];
        let around = session.framing();
        Some(Keeping {
            rows,
            key: [&form[..], &around, follow].concat(),
            database: database.to_owned(),
            message: table.clone(),
            id: definition.message.id.clone(),
            stored: Arc::clone(&facts.stored_columns),
        })
    }

    /// In this stream of the log: what was told in another one is of other tables, perhaps.
    fn under(&self, generation: u64) -> Vec<u8> {
        [&generation.to_le_bytes()[..], &self.key].concat()
    }
}

impl OwnTail {
    /// Replies are framed alike where the real join's flags are.
    fn kind(&self) -> usize {
        self.rows.min(2)
    }

    /// The page that may be there already, in this stream of the log. `ttl`: so long a right that was seen is taken to be there.
    pub fn page_want(
        &self,
        session: &Commands,
        generation: u64,
        ttl: Duration,
        now: Instant,
    ) -> Option<TailWant> {
        let keeping = self.keeping.as_ref()?;
        let (rows, standing) = (&keeping.rows, &session.standing);
        let may = standing.was_heard(now)
            && standing.may_read_template(rows.template, ttl, now)
            && rows.is_tried();
        if !may {
            return None;
        }
        let (variant, frame) = rows.variant(&keeping.under(generation), self.kind())?;
        Some(TailWant { variant, frame })
    }

    /// A page was made of kept rows, or could not be.
    pub fn tried(&self, made: bool) {
        if let Some(keeping) = &self.keeping {
            keeping.rows.tried(made);
        }
    }

    /// What the server's reply tells of the messages: it was sent at `begun`, in this stream of the log.
    pub fn fill(
        &self,
        tail: &Tail,
        reply: &[u8],
        session: &mut Commands,
        generation: u64,
        begun: Instant,
    ) -> Option<Fill> {
        let keeping = self.keeping.as_ref()?;
        let standing = &mut session.standing;
        standing.is_heard(begun);
        standing.template_answered(keeping.rows.template, begun);
        let id = OwnColumn {
            database: &keeping.database,
            table: &keeping.message,
            called: tail.qualifier(),
            name: &keeping.id,
        };
        // What is computed when it is read may follow the time, or who reads it.
        let stored = |name: &[u8]| {
            let mut stored = keeping.stored.iter();
            stored.any(|own| name.eq_ignore_ascii_case(own.as_bytes()))
        };
        let parts = Parts::read(reply, session.capabilities)?;
        if !kept::shows_only(reply, &parts, stored) {
            return None;
        }
        let among = Among {
            ids: &self.ids,
            all: self.whole,
            offset: 0,
            limit: self.limit,
        };
        let (frame, rows) = kept::read(reply, &parts, false, id, among)?;
        Some(Fill {
            kept: Arc::clone(&keeping.rows),
            key: keeping.under(generation),
            kind: self.kind(),
            frame,
            rows: rows.into_iter().map(OfMessage::alone).collect(),
            lists: Vec::new(),
        })
    }
}
