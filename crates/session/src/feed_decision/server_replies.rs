//! Handles the server's replies: a relayed statement's, to sample it, or a narrowed one's, to judge it and make it equal a direct reply.

use headwater_feed::Template;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::result_metadata::ServerPlan;
use headwater_feed::template::RetirementReason;
use headwater_timeline::index::{KeyedMessage, MessageRange};
use headwater_wire::reply::ReplyOutcome;

use super::{
    CandidateQuery, ChosenCandidates, FeedAction, FeedContext, FeedKnowledge, FeedRelayReason,
    FeedReply, FeedStage, FeedTransition, INTERRUPTED, InternalReply, ServedStatement,
    candidate_request, reply_metadata,
};

/// How often changed candidates are requested again.
const MAX_RETAKES: u32 = 2;

impl<K: FeedKnowledge> FeedContext<'_, K> {
    /// Takes the server's own reply: the client receives it, and its column definitions are recorded.
    pub(super) fn sampled(
        &mut self,
        subject: &ServedStatement,
        bucket: AuthorCountBucket,
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
                if let Some(metadata) =
                    reply_metadata::read_metadata(&bytes, self.session.capabilities)
                    && let Some(columns) = metadata.columns
                {
                    template.record_sample(
                        (bucket, self.plan_settings()),
                        plan,
                        took,
                        columns,
                        metadata.ends,
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
        let feed_reply = FeedReply {
            narrowed: false,
            ..FeedReply::narrowed(bytes, outcome)
        };
        Ok((FeedStage::Ended, FeedAction::Reply(feed_reply)))
    }

    pub(super) fn narrowed_ran(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: ChosenCandidates,
        reply: InternalReply,
    ) -> FeedTransition {
        let template = &subject.template;
        let outcome = reply.outcome.ok_or(FeedRelayReason::Failed)?;
        // The statement may have opened a transaction.
        self.session.observe(&outcome);
        let bytes = reply.bytes.ok_or(FeedRelayReason::Failed)?;
        match &outcome {
            ReplyOutcome::Ok(ok) if ok.warnings == 0 => self.session.state.clear_older_conditions(),
            ReplyOutcome::Err(error) if error.code == INTERRUPTED => {
                let feed_reply = FeedReply::narrowed(bytes, outcome);
                return Ok((FeedStage::Ended, FeedAction::Reply(feed_reply)));
            }
            _ => {
                if let Some(executed) = self.executed {
                    self.session.prepared_mut().internal_failed(&executed.feed);
                }
                return Err(FeedRelayReason::Failed);
            }
        }
        let rows = usize::try_from(reply.rows).unwrap_or(usize::MAX);
        let limit = match template.shape.page_in_outer {
            Some(_) => 1,
            None => usize::try_from(query.bound.limit).unwrap_or(usize::MAX),
        };
        if rows < limit && !candidates.exhaustive {
            template.record_shortfall(candidates.count, query.passed_filter(rows));
            if candidates.tied {
                template.record_failed_narrowing(candidates.bucket, self.microseconds());
                return Err(FeedRelayReason::Ties);
            }
            let Some(wider) = self.widened(&query) else {
                template.record_failed_narrowing(candidates.bucket, self.microseconds());
                return Err(FeedRelayReason::Filtered);
            };
            let query = CandidateQuery {
                range: wider,
                was_short: true,
                ..query
            };
            return Ok(candidate_request(subject, query));
        }
        let bytes = self.with_direct_columns(template, &query, &candidates, bytes)?;
        let fill = self.cache_fill(&subject, &query, &candidates, &bytes);
        let told = FeedReply {
            fill: fill.map(Box::new),
            ..FeedReply::narrowed(bytes, outcome)
        };
        let waiting = FeedStage::CheckingUnchanged(subject, query, candidates, told);
        Ok((waiting, FeedAction::CheckUnchanged))
    }

    /// The same range with more messages. `None`: there may be no more.
    pub(super) fn widened(&self, query: &CandidateQuery) -> Option<MessageRange<KeyedMessage>> {
        let limit = Template::widen(query.range.limit, self.policy.candidates)?;
        Some(MessageRange {
            limit,
            ..query.range
        })
    }

    /// The narrowed reply with the columns of a direct one.
    fn with_direct_columns(
        &mut self,
        template: &Template,
        query: &CandidateQuery,
        candidates: &ChosenCandidates,
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, FeedRelayReason> {
        let differ = match query.plan {
            Some(_) => FeedRelayReason::ColumnsUnsure,
            None => FeedRelayReason::Retired(RetirementReason::Columns),
        };
        let (capabilities, settings) = (self.session.capabilities, self.plan_settings());
        let metadata = reply_metadata::read_metadata(&bytes, capabilities).ok_or(differ)?;
        let columns_sent = self
            .internal_columns(metadata.columns, candidates)
            .ok_or(differ)?;
        // If the columns differ from those last sent for the client's own statement, the server sets a flag.
        if let Some(executed) = self.executed
            && executed.columns != columns_sent.count()
        {
            return Err(differ);
        }
        let (bucket, plan) = (candidates.bucket, query.plan.as_ref());
        let direct_columns = template.restore_columns(bucket, settings, plan, &columns_sent);
        let (columns, ends) = direct_columns.ok_or(differ)?;
        match reply_metadata::restore_metadata(&mut bytes, capabilities, &columns, ends) {
            true => self.for_client(bytes, &columns),
            false => Err(differ),
        }
    }

    pub(super) fn changes_checked(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: &ChosenCandidates,
        reply: FeedReply,
        unchanged: bool,
    ) -> FeedTransition {
        let template = &subject.template;
        if !unchanged {
            if !self.is_certain() {
                return self.begin();
            }
            // What a snapshot hides stays hidden at every retry.
            if query.retakes == MAX_RETAKES || self.session.state.reads_a_snapshot() {
                template.record_failed_narrowing(candidates.bucket, self.microseconds());
                return Err(FeedRelayReason::Changed);
            }
            let anew = query.retakes + 1;
            return Ok(candidate_request(
                subject,
                CandidateQuery {
                    retakes: anew,
                    ..query
                },
            ));
        }
        // Where candidates did not suffice, their number is not estimated yet: that is rare, and no cost of narrowing.
        if !query.was_short {
            let keeps = query.cache_scope.is_some();
            template.record_narrowed(candidates.bucket, self.microseconds(), keeps);
        }
        if !candidates.exhaustive {
            template.record_sufficient();
        }
        Ok((FeedStage::Ended, FeedAction::Reply(reply)))
    }
}

impl CandidateQuery {
    /// How many candidates passed the filter, as far as is known: a page with rows has those that OFFSET skipped.
    fn passed_filter(&self, rows: usize) -> usize {
        let offset = usize::try_from(self.bound.offset).unwrap_or(usize::MAX);
        match rows {
            0 => 0,
            _ => offset.saturating_add(rows),
        }
    }
}
