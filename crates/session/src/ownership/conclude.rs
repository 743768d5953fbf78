//! From ids to an answer: what the call leaves in the session, and what the client is told.

use std::sync::Arc;

use headwater_lookup::lookup::Found;
use headwater_timeline::Form;
use headwater_timeline::check::{ParseWarnings, Product};
use headwater_wire::status;

use super::stage::{Stage, Subject, Turn, World};
use super::{Answered, Knowledge, Need, Source};
use crate::reason::Reason;
use crate::result_table::{Pending, Rows};

/// What an owned call found.
#[derive(Debug)]
pub struct Owned {
    /// Its ids, as they are pending in the session from here on.
    pub pending: Pending,
    /// Rows that the procedure would have deleted and inserted, where the server counts them.
    pub affected_rows: u64,
    /// The status flags that the procedure's OK packet would have had.
    pub status: u16,
}

impl<K: Knowledge> World<'_, K> {
    /// With the ids known, the right to execute may have to be proved still.
    pub(super) fn found(&mut self, subject: Subject, found: Found, source: Source) -> Turn {
        if self.are_too_many(subject.call.form, &found) {
            return Err(Reason::TooManyIds.into());
        }
        let warns = subject.facts.parse_warnings != ParseWarnings::None;
        if warns && self.plan(&subject).execute_last {
            return self.execute_last(subject, found, source);
        }
        Ok(self.conclude(subject, found, source, 0))
    }

    /// More than a session may have pending, with what stays so of the calls before.
    pub(super) fn are_too_many(&self, form: Form, found: &Found) -> bool {
        let kept = self.session.tables.pending.as_ref().map_or(0, |pending| {
            let ids = pending.ids.as_ref().filter(|_| !form.fills_result());
            let heads = pending.heads.as_ref().filter(|_| !form.fills_heads());
            ids.map_or(0, Vec::len) + heads.map_or(0, Vec::len)
        });
        found.ids.len() + found.heads.len() + kept > self.policy.pending_ids
    }

    /// The answer.
    pub(super) fn conclude(
        &mut self,
        subject: Subject,
        found: Found,
        source: Source,
        warnings: u16,
    ) -> (Stage, Need) {
        let compared = subject.compared.then(|| found.clone());
        let (call, ran) = (subject.call.clone(), subject.ran);
        let owned = self.owned(subject, found, warnings);
        let answered = Answered {
            owned,
            call,
            source,
            ran,
            found: compared,
        };
        (Stage::Ended, Need::Answer(Box::new(answered)))
    }

    fn owned(&mut self, subject: Subject, found: Found, warnings: u16) -> Owned {
        let Found { ids, mut heads } = found;
        let (form, product) = (subject.call.form, subject.facts.product);
        let tables = &mut self.session.tables;
        let (ids_before, heads_before, before) = match tables.pending.take() {
            Some(mut pending) => (pending.ids.take(), pending.heads.take(), pending.history()),
            None => (None, None, Vec::new()),
        };
        let mut rows = 0;
        let ids = if form.fills_result() {
            rows += rows_before(ids_before.as_deref(), tables.result) + ids.len() as u64;
            Some(ids)
        } else {
            ids_before
        };
        let heads = if form.fills_heads() {
            rows += rows_before(heads_before.as_deref(), tables.heads) + heads.len() as u64;
            // As the procedure finds them, by the follower table's key.
            heads.sort_unstable_by_key(|head| head.author);
            Some(heads)
        } else {
            heads_before
        };
        let affected_rows = match product {
            Product::Mariadb => rows,
            Product::Mysql => 0,
        };
        Owned {
            pending: Pending {
                definition: subject.call.definition,
                options: Arc::clone(&subject.facts.options),
                form,
                call: subject.payload,
                ids,
                heads,
                before,
                tail: None,
                spared: Vec::new(),
                warnings,
                aside: None,
            },
            affected_rows,
            status: self.flags(product),
        }
    }

    /// The status flags of the procedure's OK packet: the session's, and those that its last SELECT leaves.
    fn flags(&self, product: Product) -> u16 {
        const KEPT: u16 = status::AUTOCOMMIT | status::NO_BACKSLASH_ESCAPES | status::ANSI_QUOTES;
        let flags = self.session.standing.flags().unwrap_or(status::AUTOCOMMIT);
        let noise = match product {
            Product::Mariadb => status::NO_INDEX,
            Product::Mysql => status::NO_INDEX | status::CURSOR_EXISTS | status::LAST_ROW_SENT,
        };
        flags & KEPT | noise
    }
}

/// The rows that a call deletes from a table which it fills anew: those that are pending, or else the server's.
fn rows_before<T>(pending: Option<&[T]>, there: Rows) -> u64 {
    match pending {
        Some(rows) => rows.len() as u64,
        None => there.known().unwrap_or(0),
    }
}
