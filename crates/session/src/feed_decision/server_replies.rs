//! What the server has answered: a statement as it is, to be learned from, or a narrowed one, to be judged and told as it would be directly.

use headwater_feed::Template;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::result_metadata::ServerPlan;
use headwater_feed::template::RetirementReason;
use headwater_timeline::index::MessageRange;
use headwater_wire::reply::ReplyOutcome;

use super::{
    CandidateQuery, ChosenCandidates, FeedAction, FeedContext, FeedKnowledge, FeedRelayReason,
    FeedReply, FeedStage, FeedTransition, INTERRUPTED, InternalReply, ServedStatement,
    candidate_request, reply_metadata,
};

/// So often candidates that have changed are taken anew.
const MAX_RETAKES: u32 = 2;

impl<K: FeedKnowledge> FeedContext<'_, K> {
    /// The server's own answer: the client is told it, and what it says of its columns is remembered.
    pub(super) fn sampled(
        &mut self,
        subject: &ServedStatement,
        crowd: AuthorCountBucket,
        plan: Option<ServerPlan>,
        reply: InternalReply,
    ) -> FeedTransition {
        let template = &subject.template;
        let Some(bytes) = reply.bytes else {
            template.retire(RetirementReason::TooLong);
            return Err(FeedRelayReason::Retired(RetirementReason::TooLong));
        };
        let outcome = reply.outcome.ok_or(FeedRelayReason::Failed)?;
        self.session.observe(&outcome);
        match &outcome {
            ReplyOutcome::Ok(ok) if ok.warnings == 0 => {
                self.session.state.clear_older_conditions();
                let took = self.microseconds();
                if let Some(said) = reply_metadata::read_metadata(&bytes, self.session.capabilities)
                    && let Some(columns) = said.columns
                {
                    template.record_sample(
                        (crowd, self.plan_settings()),
                        plan,
                        took,
                        columns,
                        said.ends,
                    );
                }
            }
            ReplyOutcome::Ok(_) => template.retire(RetirementReason::Warns),
            _ => {
                if let Some(executed) = self.executed {
                    self.session.prepared_mut().failed(executed.statement);
                }
            }
        }
        let told = FeedReply {
            narrowed: false,
            ..FeedReply::narrowed(bytes, outcome)
        };
        Ok((FeedStage::Ended, FeedAction::Reply(told)))
    }

    /// Judges the narrowed answer.
    pub(super) fn narrowed_ran(
        &mut self,
        subject: ServedStatement,
        wishes: CandidateQuery,
        candidates: ChosenCandidates,
        reply: InternalReply,
    ) -> FeedTransition {
        let template = &subject.template;
        let outcome = reply.outcome.ok_or(FeedRelayReason::Failed)?;
        // It may have opened a transaction.
        self.session.observe(&outcome);
        let bytes = reply.bytes.ok_or(FeedRelayReason::Failed)?;
        match &outcome {
            ReplyOutcome::Ok(ok) if ok.warnings == 0 => self.session.state.clear_older_conditions(),
            ReplyOutcome::Err(error) if error.code == INTERRUPTED => {
                let told = FeedReply::narrowed(bytes, outcome);
                return Ok((FeedStage::Ended, FeedAction::Reply(told)));
            }
            _ => {
                if let Some(executed) = self.executed {
                    self.session.prepared_mut().internal_failed(&executed.feed);
                }
                return Err(FeedRelayReason::Failed);
            }
        }
        let rows = usize::try_from(reply.rows).unwrap_or(usize::MAX);
        let limit = usize::try_from(wishes.bound.limit).unwrap_or(usize::MAX);
        if rows < limit && !candidates.exhaustive {
            template.record_shortfall(candidates.count, wishes.passed_filter(rows));
            if candidates.tied {
                template.record_failed_narrowing(candidates.bucket, self.microseconds());
                return Err(FeedRelayReason::Ties);
            }
            let wider = Template::widen(candidates.count, self.policy.candidates);
            let Some(most) = wider else {
                template.record_failed_narrowing(candidates.bucket, self.microseconds());
                return Err(FeedRelayReason::Filtered);
            };
            let range = MessageRange {
                limit: most,
                ..wishes.range
            };
            let short = true;
            return Ok(candidate_request(
                subject,
                CandidateQuery {
                    range,
                    was_short: short,
                    ..wishes
                },
            ));
        }
        let bytes = self.with_direct_columns(template, &wishes, &candidates, bytes)?;
        let fill = self.cache_fill(&subject, &wishes, &candidates, &bytes);
        let told = FeedReply {
            fill: fill.map(Box::new),
            ..FeedReply::narrowed(bytes, outcome)
        };
        let waiting = FeedStage::CheckingUnchanged(subject, wishes, candidates, told);
        Ok((waiting, FeedAction::CheckUnchanged))
    }

    /// The narrowed answer with its columns as the server describes them directly.
    fn with_direct_columns(
        &mut self,
        template: &Template,
        wishes: &CandidateQuery,
        candidates: &ChosenCandidates,
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, FeedRelayReason> {
        let differ = match wishes.plan {
            Some(_) => FeedRelayReason::ColumnsUnsure,
            None => FeedRelayReason::Retired(RetirementReason::Columns),
        };
        let (capabilities, under) = (self.session.capabilities, self.plan_settings());
        let said = reply_metadata::read_metadata(&bytes, capabilities).ok_or(differ)?;
        let own = self
            .internal_columns(said.columns, candidates)
            .ok_or(differ)?;
        // Of other columns than those that were told of the client's own statement, the server tells it with a flag.
        if let Some(executed) = self.executed
            && executed.columns != own.count()
        {
            return Err(differ);
        }
        let (crowd, plan) = (candidates.bucket, wishes.plan.as_ref());
        let told = template.restore_columns(crowd, under, plan, &own);
        let (columns, ends) = told.ok_or(differ)?;
        match reply_metadata::restore_metadata(&mut bytes, capabilities, &columns, ends) {
            true => self.for_client(bytes, &columns),
            false => Err(differ),
        }
    }

    pub(super) fn changes_checked(
        &mut self,
        subject: ServedStatement,
        wishes: CandidateQuery,
        candidates: &ChosenCandidates,
        told: FeedReply,
        unchanged: bool,
    ) -> FeedTransition {
        let template = &subject.template;
        if !unchanged {
            if !self.is_certain() {
                return self.begin();
            }
            // What a snapshot does not show stays hidden however often it is asked.
            if wishes.retakes == MAX_RETAKES || self.session.state.reads_a_snapshot() {
                template.record_failed_narrowing(candidates.bucket, self.microseconds());
                return Err(FeedRelayReason::Changed);
            }
            let anew = wishes.retakes + 1;
            return Ok(candidate_request(
                subject,
                CandidateQuery {
                    retakes: anew,
                    ..wishes
                },
            ));
        }
        // How many candidates are needed is still being learned where they did not suffice: that is rare, and no cost of this way.
        if !wishes.was_short {
            let keeps = wishes.cache_scope.is_some();
            template.record_narrowed(candidates.bucket, self.microseconds(), keeps);
        }
        if !candidates.exhaustive {
            template.record_sufficient();
        }
        Ok((FeedStage::Ended, FeedAction::Reply(told)))
    }
}

impl CandidateQuery {
    /// How many candidates passed the filter, as far as is known: OFFSET passed over some, where a page was begun.
    fn passed_filter(&self, rows: usize) -> usize {
        let offset = usize::try_from(self.bound.offset).unwrap_or(usize::MAX);
        match rows {
            0 => 0,
            _ => offset.saturating_add(rows),
        }
    }
}
