//! Serves a follow-up SELECT whose result table is pending, with the ids in the statement itself.

use headwater_statement::{FollowUpForm, FollowUpSelect};
use headwater_timeline::check::{DefinitionFacts, DefinitionVerdict, ServerProduct};
use headwater_wire::capability::Capabilities;
use headwater_wire::command;
use headwater_wire::reply::{ReplyOutcome, layout};
use headwater_wire::status;

use super::cached_follow_up::FollowUpCacheScope;
use super::{CallKnowledge, INTERRUPTED};
use crate::commands::CommandPhase;
use crate::settings_probe;

/// MySQL is known to read the result table first from this many messages on (optimizer estimate).
const MANY_MESSAGES: u64 = 4_000;
/// It also takes this many messages for each row of the result table.
const MESSAGES_PER_ROW: u64 = 10;

/// A follow-up SELECT that can be answered with ids instead of its result table.
#[derive(Debug)]
pub struct ServedFollowUp {
    /// The newest ids of the result set.
    pub ids: Vec<u64>,
    /// They are the whole result set.
    pub whole: bool,
    /// Its LIMIT.
    pub limit: u64,
    form: FollowUpForm,
    /// How many rows the whole result set has.
    pub(super) rows: usize,
    pub(super) cache_scope: Option<FollowUpCacheScope>,
}

/// What to do with the reply to a [`ServedFollowUp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUpReply {
    /// Equals the real reply: send it to the client.
    Send,
    /// The client's statement was interrupted: send the error.
    SendInterruption,
    /// It could differ from the real join's: flush the table, then relay the client's own text.
    Discard,
}

impl ServedFollowUp {
    /// `None` where the reply could differ from the real join's in more than [`Self::judge`] detects.
    pub fn new(
        follow_up: &FollowUpSelect,
        session: &CommandPhase,
        knowledge: &impl CallKnowledge,
    ) -> Option<ServedFollowUp> {
        let pending = session.tables.pending.as_deref()?;
        let definition = pending.definition.resolve(knowledge.definitions())?;
        if !follow_up.belongs_to(definition) || !session.state.are_settings_proven() {
            return None;
        }
        let database = session.state.database()?;
        let all = pending.ids.as_deref()?;
        // At least two ids, even for `LIMIT 1`: with a single one the server plans otherwise.
        let ids = newest_ids(all, follow_up.limit.max(2))?;
        let verdict = knowledge.verdict(pending.definition, database)?;
        let DefinitionVerdict::Accelerate(facts) = &*verdict else {
            return None;
        };
        let form = rewrite_form(facts, all.len() as u64)?;
        if ids.len() >= usize::from(settings_probe::LONG_LIST) {
            return None;
        }
        Some(ServedFollowUp {
            ids: ids.to_vec(),
            whole: ids.len() == all.len(),
            limit: follow_up.limit,
            form,
            rows: all.len(),
            cache_scope: FollowUpCacheScope::new(
                follow_up, form, definition, facts, session, knowledge,
            ),
        })
    }

    /// The payload of the internal statement; `payload` is the client's.
    pub fn statement(
        &self,
        follow_up: &FollowUpSelect,
        payload: &[u8],
        capabilities: Capabilities,
    ) -> Option<Vec<u8>> {
        let rewritten = follow_up.rewrite(self.form, &self.ids)?;
        command::with_query_text(payload, capabilities, rewritten.as_bytes())
    }

    /// Sets the real join's plan flags in the reply: a result table of two rows is read whole, one of fewer is not.
    pub fn put_flags(&self, reply: &mut [u8], capabilities: Capabilities) {
        if self.rows > 1 {
            layout::set_status_flags(reply, capabilities, status::NO_INDEX);
        }
    }

    /// Judges the reply: its outcome, its row count, and whether its bytes were kept in memory.
    #[must_use]
    pub fn judge(
        &self,
        outcome: Option<&ReplyOutcome>,
        rows: u64,
        complete: bool,
    ) -> FollowUpReply {
        // A page shorter than its limit may lack an id that the rest of the result set has.
        let full = self.whole || rows == self.limit;
        match outcome {
            // A warning comes from the rewritten form, or belongs to the server's own text.
            Some(ReplyOutcome::Ok(ok)) if complete && full && ok.warnings == 0 => {
                FollowUpReply::Send
            }
            Some(ReplyOutcome::Err(error)) if complete && error.code == INTERRUPTED => {
                FollowUpReply::SendInterruption
            }
            _ => FollowUpReply::Discard,
        }
    }
}

/// The form whose reply has the real join's column definitions; `None` where that is not certain.
///
/// They depend on the join's plan. MariaDB reports the same columns under every plan as long as both
/// tables' ids are of one type (which the check demands). MySQL reports columns without their key
/// flags where it reads the result table first and sorts through a temporary table: as soon as there
/// are two rows in it, and many more messages. Measured over sizes of both tables: docs/calls.md.
fn rewrite_form(facts: &DefinitionFacts, rows: u64) -> Option<FollowUpForm> {
    match facts.product {
        // By an index, Spider asks each data node for one id after the other. Without one the reply reports that no index was used, as
        // the real join's does of a result table of two rows.
        ServerProduct::Mariadb if facts.is_spread() && rows > 1 => Some(FollowUpForm::SpreadList),
        ServerProduct::Mariadb => Some(FollowUpForm::List),
        ServerProduct::Mysql if rows <= 1 => Some(FollowUpForm::List),
        ServerProduct::Mysql => {
            let needed = MANY_MESSAGES.max(rows.saturating_mul(MESSAGES_PER_ROW));
            facts
                .message_rows
                .is_some_and(|messages| messages >= needed)
                .then_some(FollowUpForm::BufferedList)
        }
    }
}

/// The newest ids of the result set, as many as the follow-up SELECT can show; `None` when there are none.
fn newest_ids(all: &[u64], limit: u64) -> Option<&[u64]> {
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let ids = all.get(..wanted.min(all.len()))?;
    (!ids.is_empty()).then_some(ids)
}
