//! From ids to an answer: what the call leaves in the session, and what the client receives.

use std::sync::Arc;

use headwater_lookup::lookup::LookupResult;
use headwater_timeline::ProcedureForm;
use headwater_timeline::check::{ParseWarnings, ServerProduct};
use headwater_wire::status;

use super::call_stage::{CallContext, CallStage, CallTransition, EligibleCall};
use super::{AnsweredCall, CallAction, CallKnowledge, ServedCallSource};
use crate::call_relay_reason::CallRelayReason;
use crate::result_table::{PendingIds, TableRowCount};

/// The result of a served call.
#[derive(Debug)]
pub struct ServedCall {
    /// Its ids, pending in the session from here on.
    pub pending: PendingIds,
    /// Rows that the procedure would have deleted and inserted, on servers that count them.
    pub affected_rows: u64,
    /// The status flags that the procedure's OK packet would have had.
    pub status: u16,
}

impl<K: CallKnowledge> CallContext<'_, K> {
    /// With the ids known, the right to execute may still need proof.
    pub(super) fn ids_found(
        &mut self,
        subject: EligibleCall,
        result: LookupResult,
        source: ServedCallSource,
    ) -> CallTransition {
        if self.are_too_many(subject.call.form, &result) {
            return Err(CallRelayReason::TooManyIds.into());
        }
        let warns = subject.facts.parse_warnings != ParseWarnings::None;
        if warns && self.plan(&subject).execute_last {
            return self.execute_last(subject, result, source);
        }
        Ok(self.conclude(subject, result, source, 0))
    }

    /// True for more ids than a session may have pending, with those that stay pending from earlier calls.
    pub(super) fn are_too_many(&self, form: ProcedureForm, result: &LookupResult) -> bool {
        let still_pending = self.session.tables.pending.as_ref().map_or(0, |pending| {
            let ids = pending.ids.as_ref().filter(|_| !form.fills_result());
            let heads = pending.heads.as_ref().filter(|_| !form.fills_heads());
            ids.map_or(0, Vec::len) + heads.map_or(0, Vec::len)
        });
        result.ids.len() + result.heads.len() + still_pending > self.policy.pending_ids
    }

    pub(super) fn conclude(
        &mut self,
        subject: EligibleCall,
        result: LookupResult,
        source: ServedCallSource,
        warnings: u16,
    ) -> (CallStage, CallAction) {
        let compared = subject.compared.then(|| result.clone());
        let (call, ran) = (subject.call.clone(), subject.run_proved);
        let owned = self.served_call(subject, result, warnings);
        let answered = AnsweredCall {
            served: owned,
            call,
            source,
            ran,
            compared_result: compared,
        };
        (CallStage::Ended, CallAction::Answer(Box::new(answered)))
    }

    fn served_call(
        &mut self,
        subject: EligibleCall,
        result: LookupResult,
        warnings: u16,
    ) -> ServedCall {
        let LookupResult { ids, mut heads } = result;
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
            // In the procedure's order, by the follower table's key.
            heads.sort_unstable_by_key(|head| head.author);
            Some(heads)
        } else {
            heads_before
        };
        let affected_rows = match product {
            ServerProduct::Mariadb => rows,
            ServerProduct::Mysql => 0,
        };
        ServedCall {
            pending: PendingIds {
                definition: subject.call.definition,
                options: Arc::clone(&subject.facts.table_options),
                form,
                call: subject.payload,
                ids,
                heads,
                earlier_calls: before,
                follow_up: None,
                replayable: Vec::new(),
                warnings,
                count_reset: None,
            },
            affected_rows,
            status: self.ok_flags(product),
        }
    }

    /// The status flags of the procedure's OK packet: the session's, and those of its last SELECT.
    fn ok_flags(&self, product: ServerProduct) -> u16 {
        const KEPT: u16 = status::AUTOCOMMIT | status::NO_BACKSLASH_ESCAPES | status::ANSI_QUOTES;
        let flags = self.session.state.flags().unwrap_or(status::AUTOCOMMIT);
        let noise = match product {
            ServerProduct::Mariadb => status::NO_INDEX,
            ServerProduct::Mysql => {
                status::NO_INDEX | status::CURSOR_EXISTS | status::LAST_ROW_SENT
            }
        };
        flags & KEPT | noise
    }
}

/// The rows that a call deletes from a table before it fills it: the pending ones, else the server's.
fn rows_before<T>(pending: Option<&[T]>, there: TableRowCount) -> u64 {
    match pending {
        Some(rows) => rows.len() as u64,
        None => there.known_count().unwrap_or(0),
    }
}
