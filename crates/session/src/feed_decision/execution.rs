//! Narrows an execution of a prepared statement: the narrowed statement is prepared, too, with each id as a parameter.
//!
//! Headwater prepares the narrowed text in the client's session, once for each text, form and list size, and executes it with the client's
//! parameters and the ids. The reply has the client's rows in the binary format. The client's own statement is not executed; parameter
//! types of this execution are remembered for the next one that the server gets.

use std::sync::Arc;

use headwater_feed::binding::{ParameterType, ParameterValue};
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::narrowed_text::NarrowingForm;
use headwater_feed::result_metadata::ColumnFingerprint;
use headwater_feed::words::StatementWords;
use headwater_feed::{NarrowingRefusal, Template};
use headwater_timeline::DatetimeValue;
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{self, BoundValue, Command, ExecutePacket};
use headwater_wire::reply::ReplyOutcome;

use super::reply_metadata;
use super::{
    CandidateQuery, ChosenCandidates, FeedAction, FeedContext, FeedKnowledge, FeedRelayReason,
    FeedReply, FeedStage, FeedTransition, INTERRUPTED, InternalReply, NamedFeedExecution,
    ServedStatement,
};
use crate::prepared_statements::close_packets;
use crate::prepared_statements::{CachedColumns, FeedExecution, NarrowedKey};

/// A text to prepare.
#[derive(Debug)]
pub struct PrepareRequest {
    /// Packets without a reply that precede it.
    pub before: Vec<u8>,
    /// The payload of its packet.
    pub payload: Vec<u8>,
}

/// The execution of a prepared narrowed statement.
#[derive(Debug)]
pub(super) struct NarrowedExecution {
    statement_key: NarrowedKey,
    ids: Vec<u64>,
    /// How many of the client's parameters precede the ids.
    before: usize,
    /// How many of them are omitted.
    replaced: usize,
}

impl<K: FeedKnowledge> FeedContext<'_, K> {
    pub(super) fn executed_words(
        &self,
        executed: &FeedExecution,
    ) -> Result<Option<StatementWords>, FeedRelayReason> {
        if !executed.plain || self.caches_columns() && executed.cached_columns.is_none() {
            return Err(FeedRelayReason::Execution);
        }
        Ok(executed.feed.words().map(StatementWords::executed))
    }

    /// The values of an execution; none for a text.
    pub(super) fn parameters(
        &self,
        subject: &ServedStatement,
    ) -> Result<Vec<ParameterValue>, FeedRelayReason> {
        let Some(executed) = self.executed else {
            let named = self.named.as_deref();
            return Ok(named.map_or(Vec::new(), NamedFeedExecution::parameters));
        };
        self.with_parameters(executed, |each| {
            let all = each.len() == subject.words.parameters;
            all.then(|| each.iter().map(parameter).collect())
        })
    }

    /// The parameter types of an execution; none for a text.
    pub(super) fn parameter_types(&self) -> Result<Vec<ParameterType>, FeedRelayReason> {
        let Some(executed) = self.executed else {
            return Ok(Vec::new());
        };
        self.with_parameters(executed, |each| {
            let kind = |one: &command::BoundParameter<'_>| one.type_word.first_chunk().copied();
            each.iter().map(kind).collect()
        })
    }

    fn with_parameters<T>(
        &self,
        executed: &FeedExecution,
        show: impl FnOnce(&[command::BoundParameter<'_>]) -> Option<T>,
    ) -> Result<T, FeedRelayReason> {
        let statements = self.session.prepared();
        let (count, types) = statements
            .types(executed.statement)
            .ok_or(FeedRelayReason::Failed)?;
        let execute = ExecutePacket::parse(self.payload, count, self.session.capabilities);
        let each = execute.and_then(|execute| execute.split_parameters(types));
        let each = each.map_err(|_| FeedRelayReason::Execution)?;
        show(&each).ok_or(FeedRelayReason::Execution)
    }

    /// True where the known columns are those last sent for the client's statement, so that they need not be sent again.
    pub(super) fn knows_columns(&self, template: &Template, bucket: AuthorCountBucket) -> bool {
        if !self.caches_columns() {
            return true;
        }
        let sent_columns = self
            .executed
            .and_then(|executed| executed.cached_columns.as_ref());
        sent_columns
            .is_some_and(|told| template.matches_metadata(bucket, self.plan_settings(), told))
    }

    /// The columns of a narrowed reply, whether sent in it or before.
    pub(super) fn internal_columns(
        &mut self,
        sent_columns: Option<ColumnFingerprint>,
        candidates: &ChosenCandidates,
    ) -> Option<ColumnFingerprint> {
        match candidates
            .internal_statement
            .filter(|_| self.caches_columns())
        {
            None => sent_columns,
            Some(own) => self
                .session
                .prepared_mut()
                .internal_columns(own, sent_columns),
        }
    }

    /// Makes the column definitions those of a direct reply; omits them where the client has them.
    pub(super) fn for_client(
        &self,
        bytes: Vec<u8>,
        columns: &ColumnFingerprint,
    ) -> Result<Vec<u8>, FeedRelayReason> {
        match self.executed.filter(|_| self.caches_columns()) {
            None => Ok(bytes),
            Some(executed) if executed.cached_columns.as_ref() == Some(columns) => Ok(
                reply_metadata::omit_columns(bytes, self.session.capabilities),
            ),
            Some(_) => Err(FeedRelayReason::Execution),
        }
    }

    /// True where the client caches its statement's column definitions.
    pub(super) fn caches_columns(&self) -> bool {
        let capabilities = self.session.capabilities;
        self.executed.is_some() && capabilities.contains(Capabilities::MARIADB_CACHE_METADATA)
    }

    /// The payload that has the server run the client's own statement.
    pub(super) fn original_payload(&mut self) -> Vec<u8> {
        let with_types = self.executed.and_then(|executed| {
            self.session
                .payload_with_types(executed.statement, self.payload)
        });
        with_types.unwrap_or_else(|| self.payload.to_vec())
    }

    pub(super) fn run_prepared(
        &mut self,
        executed: &FeedExecution,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: ChosenCandidates,
        mut ids: Vec<u64>,
        form: NarrowingForm,
    ) -> FeedTransition {
        let template = &subject.template;
        let size = list_size(ids.len(), self.policy.candidates);
        // A repeated id has no effect.
        let last = ids.last().copied().ok_or(FeedRelayReason::Failed)?;
        ids.resize(size, last);
        let (text, words, names) = (executed.feed.text(), &subject.words, &template.feed_names);
        let open = template
            .shape
            .narrow_prepared(text, words, names, size, form);
        let open = open.ok_or(NarrowingRefusal::NotUnderstood)?;
        let plan = NarrowedExecution {
            statement_key: NarrowedKey {
                client_statement: Arc::clone(&executed.feed),
                template: Arc::clone(template),
                form,
                ids: size,
            },
            ids,
            before: open.parameters_before,
            replaced: open.parameters_replaced,
        };
        let statements = self.session.prepared_mut();
        if let Some(statement_id) = statements.internal(&plan.statement_key) {
            return self.execute_narrowed(
                executed,
                statement_id,
                subject,
                query,
                candidates,
                &plan,
            );
        }
        let before = close_packets(statements.make_room().ok_or(FeedRelayReason::Failed)?);
        let payload = [&[Command::StmtPrepare.byte()], &*open.text].concat();
        Ok((
            FeedStage::Preparing(subject, query, candidates, plan),
            FeedAction::Prepare(PrepareRequest { before, payload }),
        ))
    }

    pub(super) fn narrowed_prepared(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: ChosenCandidates,
        plan: NarrowedExecution,
        reply: InternalReply,
    ) -> FeedTransition {
        let executed = self.executed.ok_or(FeedRelayReason::Failed)?;
        let outcome = reply.outcome.ok_or(FeedRelayReason::Failed)?;
        let capabilities = self.session.capabilities;
        let statements = self.session.prepared_mut();
        let number = match &outcome {
            ReplyOutcome::Prepared(prepared) => Some(prepared.statement_id),
            _ => None,
        };
        let bytes = reply.bytes.as_deref().unwrap_or_default();
        let columns = CachedColumns::of_prepared(bytes, capabilities);
        statements.internal_prepared(
            plan.statement_key.clone(),
            number.map(|number| (number, columns)),
        );
        match (number, &outcome) {
            (Some(statement_id), _) => {
                self.execute_narrowed(executed, statement_id, subject, query, candidates, &plan)
            }
            (None, ReplyOutcome::Err(error)) if error.code == INTERRUPTED => {
                statements.executed_locally(executed.statement);
                let feed_reply =
                    FeedReply::narrowed(reply.bytes.ok_or(FeedRelayReason::Failed)?, outcome);
                Ok((FeedStage::Ended, FeedAction::Reply(feed_reply)))
            }
            _ => Err(FeedRelayReason::Failed),
        }
    }

    fn execute_narrowed(
        &mut self,
        executed: &FeedExecution,
        statement_id: u32,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: ChosenCandidates,
        plan: &NarrowedExecution,
    ) -> FeedTransition {
        let candidates = ChosenCandidates {
            internal_statement: Some(statement_id),
            ..candidates
        };
        let capabilities = self.session.capabilities;
        let kind = command::BoundParameter::type_word_of_u64(
            subject.template.types.id.signed,
            capabilities,
        );
        let ids: Vec<[u8; 8]> = plan.ids.iter().map(|id| id.to_le_bytes()).collect();
        let ids = ids.iter().map(|id| command::BoundParameter {
            type_word: kind,
            bytes: Some(id),
        });
        let payload = self.with_parameters(executed, |each| {
            let before = each.get(..plan.before)?;
            let after = each.get(plan.before.checked_add(plan.replaced)?..)?;
            let all: Vec<_> = [before, &ids.collect::<Vec<_>>(), after].concat();
            Some(command::execute_payload(statement_id, &all, capabilities))
        })?;
        self.session
            .prepared_mut()
            .executed_locally(executed.statement);
        Ok((
            FeedStage::Running(subject, query, candidates),
            FeedAction::Run(payload),
        ))
    }
}

/// The size of the narrowed text's id list: one of few sizes, so that not every count needs its own PREPARE.
fn list_size(ids: usize, max: usize) -> usize {
    let power = ids.next_power_of_two();
    let between = power / 4 * 3;
    let size = match between >= ids && between >= 2 {
        true => between,
        false => power,
    };
    size.min(max).max(ids)
}

fn parameter(parameter: &command::BoundParameter<'_>) -> ParameterValue {
    match parameter.value() {
        BoundValue::Null => ParameterValue::Null,
        BoundValue::Integer(value) => ParameterValue::Integer(value),
        BoundValue::WholeNumber(value) => ParameterValue::Whole(value.into()),
        BoundValue::Text(text) => ParameterValue::Text(text.to_vec()),
        BoundValue::DateTime {
            date,
            time,
            microseconds,
        } => DatetimeValue::from_parts(date, time, microseconds)
            // A text that is no date is compared by other rules.
            .filter(|moment| moment.day_number().is_some())
            .map_or(ParameterValue::Other, ParameterValue::Moment),
        BoundValue::Other => ParameterValue::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::list_size;

    #[test]
    fn lists_have_few_sizes_and_room_for_all() {
        let mut sizes: Vec<usize> = (2..=900).map(|ids| list_size(ids, 900)).collect();
        assert!(
            (2..=900)
                .zip(&sizes)
                .all(|(ids, size)| ids <= *size && *size <= 900)
        );
        sizes.dedup();
        assert_eq!(
            sizes,
            [
                2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 900
            ]
        );
        assert_eq!(list_size(7, 5), 7);
    }
}
