//! Explains a statement: decides about it as if it had arrived, up to the point where the server would run something for it.

use headwater_session::plain_text::plain_text;
use std::time::{Duration, Instant};

use super::decision_driver::{CallOutcome, DecisionPurpose, FeedOutcome};
use super::overview_table::{OverviewCell, OverviewTable};
use super::state::{Session, SessionEnd};
use crate::clock;
use crate::feeds::RelayCause;
use headwater_feed::parser::refused_words;
use headwater_feed::words::StatementWords;
use headwater_session::call_decision::{CallDecision, ServedCallSource};
use headwater_session::call_relay_reason::CallRelayReason;
use headwater_session::call_request::{CallPacketForm, CallRequest, RequestedCall};
use headwater_session::feed_decision::{FeedDecision, FeedRelayReason};
use headwater_statement::StatementClass;
use headwater_timeline::check::DefinitionVerdict as CheckVerdict;
use headwater_timeline::definition::DefinitionId;
use headwater_wire::command::query_payload;

/// Time to probe a statement's form that is new.
const EXPLANATION_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What would answer a statement, and why.
#[derive(Debug)]
struct StatementExplanation {
    answered_from: &'static str,
    reason: &'static str,
    means: String,
    cure: String,
}

impl StatementExplanation {
    fn answered(answered_from: &'static str, means: &str) -> StatementExplanation {
        StatementExplanation {
            answered_from,
            reason: "",
            means: means.to_owned(),
            cure: String::new(),
        }
    }

    fn relayed((reason, means, cure): (&'static str, &str, &str)) -> StatementExplanation {
        StatementExplanation {
            answered_from: "server",
            reason,
            means: plain_text(means),
            cure: plain_text(cure),
        }
    }

    fn from_cause(cause: RelayCause) -> StatementExplanation {
        StatementExplanation {
            answered_from: "server",
            reason: cause.reason,
            means: cause.text,
            cure: cause.cure,
        }
    }

    fn into_table(self, of: Option<String>) -> OverviewTable {
        let mut table = OverviewTable::with_columns(&[
            "answered_from",
            "reason",
            "means",
            "cure",
            "definition_or_feed",
        ]);
        table.add([
            self.answered_from.into(),
            self.reason.into(),
            self.means.into(),
            self.cure.into(),
            of.map_or(OverviewCell::Null, OverviewCell::from),
        ]);
        table
    }
}

impl Session {
    /// Explains this statement in this session.
    pub(super) async fn explain(&mut self, text: &[u8]) -> Result<OverviewTable, SessionEnd> {
        let none = self.update_function_knowledge();
        let class = self.shared.catalogue.classify(text, none);
        let (verdict, of) = match class {
            StatementClass::Call(call) => {
                self.explain_call(RequestedCall::Call(call), text).await?
            }
            StatementClass::UnboundCall(open) if open.parameter_count() == 0 => {
                self.explain_call(RequestedCall::in_session(open), text)
                    .await?
            }
            StatementClass::Feed(_) => self.explain_feed(text).await?,
            StatementClass::FollowUp(_) => (
                StatementExplanation::answered(
                    "memory",
                    "it is a tail: behind a call that was answered from memory it is made of rows that are kept, or asked as a SELECT by ids",
                ),
                None,
            ),
            StatementClass::UnboundCall(_) => (
                StatementExplanation::relayed((
                    "parameters",
                    "it has parameters",
                    "put numbers in their places, and ask again",
                )),
                None,
            ),
            StatementClass::CallBatch(..) | StatementClass::FeedBatch(_) => (
                StatementExplanation::relayed((
                    "several",
                    "there are several statements",
                    "ask for each by itself",
                )),
                None,
            ),
            StatementClass::Dynamic(_) => (
                StatementExplanation::relayed((
                    "dynamic",
                    "it prepares or executes a statement by its name",
                    "ask for that statement itself",
                )),
                None,
            ),
            StatementClass::ShowHeadwater(_) | StatementClass::Other(_) => {
                (self.explain_other(text), None)
            }
        };
        Ok(verdict.into_table(of))
    }

    async fn explain_call(
        &mut self,
        requested_call: RequestedCall,
        text: &[u8],
    ) -> Result<(StatementExplanation, Option<String>), SessionEnd> {
        let request = CallRequest {
            length: 0,
            call: requested_call,
            packet_form: CallPacketForm::Indirect,
        };
        let number = self.definition_of(&request);
        let definitions = self.shared.catalogue.definitions();
        let of = number.and_then(|number| Some(number.resolve(definitions)?.name.clone()));
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Ok((StatementExplanation::relayed(UNFOLLOWED), of));
        };
        let payload = query_payload(text, capabilities);
        let mut decision = CallDecision::new(request, payload, self.call_policy());
        let explained = self.drive_call(&mut decision, DecisionPurpose::Explain);
        let verdict = match explained.await? {
            CallOutcome::ProvesRights => StatementExplanation::answered(
                "memory",
                "first the server runs the procedure once, which proves what its definer may do; that is done each privileges.ttl_s",
            ),
            CallOutcome::Relayed(reason) => {
                StatementExplanation::from_cause(self.cause_of_call(reason, number))
            }
            CallOutcome::Interrupted(_) => {
                StatementExplanation::relayed(CallRelayReason::LookupFailed.explanation())
            }
            CallOutcome::Answered(answered, _) => match answered.source {
                ServedCallSource::Memory => StatementExplanation::answered(
                    "memory",
                    "the page is in memory, which was proved to be fresh",
                ),
                ServedCallSource::Lookups => self.explain_lookups(),
                ServedCallSource::Procedure => {
                    StatementExplanation::answered("server", "the procedure runs")
                }
            },
            CallOutcome::LoginPending => StatementExplanation::relayed(UNFOLLOWED),
        };
        Ok((verdict, of))
    }

    async fn explain_feed(
        &mut self,
        text: &[u8],
    ) -> Result<(StatementExplanation, Option<String>), SessionEnd> {
        let named = self
            .shared
            .feeds
            .as_ref()
            .is_some_and(|feeds| feeds.names_feed_messages(text));
        let begun = clock::now();
        if !named {
            return Ok((self.explain_unnamed(text, begun).await, None));
        }
        let until = begun + EXPLANATION_TIMEOUT;
        loop {
            let (verdict, of) = self.explain_feed_once(text).await?;
            let waits =
                [FeedRelayReason::New, FeedRelayReason::Unchecked].map(FeedRelayReason::label);
            if !waits.contains(&verdict.reason) || clock::now() > until {
                return Ok((verdict, of));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Why a call is relayed.
    fn cause_of_call(
        &mut self,
        reason: CallRelayReason,
        number: Option<DefinitionId>,
    ) -> RelayCause {
        let cause = RelayCause::of_reason(reason);
        let commands = self.machine.commands();
        let database = commands.and_then(|it| it.state.database());
        let known = number.zip(database).and_then(|(number, database)| {
            let (verdict, _) = self.shared.catalogue.last_verdict(number, database)?;
            Some(verdict)
        });
        match (reason, known.as_deref()) {
            (CallRelayReason::Definition, Some(CheckVerdict::Relay(relay_reason))) => {
                cause.with_text(relay_reason.to_string())
            }
            _ => cause,
        }
    }

    /// A call that memory does not answer, and why.
    fn explain_lookups(&self) -> StatementExplanation {
        let binlog = self.shared.binlog.as_ref();
        match binlog.and_then(|binlog| binlog.suspension()) {
            Some(suspension) => StatementExplanation {
                answered_from: "lookups",
                ..StatementExplanation::from_cause(RelayCause::log_suspended(suspension))
            },
            None => StatementExplanation::answered(
                "lookups",
                "the page is not in memory, or not in time: it is found by lookups on this connection; memory begins to keep it",
            ),
        }
    }

    /// Whether a text that names no known feed's messages belongs to a feed that no setting names.
    async fn explain_unnamed(&mut self, text: &[u8], begun: Instant) -> StatementExplanation {
        let commands = self.machine.commands();
        let database = commands.and_then(|it| Some(it.state.database()?.to_vec()));
        if let (Some(feeds), Some(database)) = (self.shared.feeds.clone(), database) {
            while clock::since(begun) < EXPLANATION_TIMEOUT {
                if let Some(kind) = feeds.unmatched_kind_since(&database, text, begun) {
                    let cause = feeds.unmatched_cause(&database, &kind);
                    return cause.map_or_else(
                        || self.explain_other(text),
                        StatementExplanation::from_cause,
                    );
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        self.explain_other(text)
    }

    /// Why a feed's statement is relayed, and its feed, if known.
    fn cause_of_feed(&mut self, text: &[u8], why: FeedRelayReason) -> (RelayCause, Option<String>) {
        let commands = self.machine.commands();
        let database = commands.and_then(|it| it.state.database());
        let known = self.shared.feeds.as_ref().zip(database);
        let words = StatementWords::read(text);
        let (cause, of) = match (known, &words) {
            (Some((feeds, database)), Some(words)) => feeds.cause(database, words, why),
            _ => (RelayCause::of_explanation(why), None),
        };
        let place = words
            .filter(|_| matches!(why, FeedRelayReason::Text(_)))
            .and_then(|words| refused_words(text, &words));
        let cause = match place {
            Some(place) => {
                let text = format!("{}; read as far as {place}", cause.text);
                cause.with_text(text)
            }
            None => cause,
        };
        (cause, of)
    }

    async fn explain_feed_once(
        &mut self,
        text: &[u8],
    ) -> Result<(StatementExplanation, Option<String>), SessionEnd> {
        let Some(capabilities) = self.machine.commands().map(|it| it.capabilities) else {
            return Ok((StatementExplanation::relayed(UNFOLLOWED), None));
        };
        let payload = query_payload(text, capabilities);
        let mut decision = FeedDecision::new(payload, self.feed_policy());
        let explained = self.drive_feed(&mut decision, DecisionPurpose::Explain, None);
        let outcome = explained.await?;
        let template = decision.template();
        let is_count = template.is_some_and(|template| template.shape.count.is_some());
        let verdict = match outcome {
            FeedOutcome::Cached => StatementExplanation::answered(
                "memory",
                match is_count {
                    true => {
                        "the numbers of all its authors are kept, and memory was proved to be fresh"
                    }
                    false => "all rows of the page are kept, and memory was proved to be fresh",
                },
            ),
            FeedOutcome::Sampled => StatementExplanation::answered(
                "server",
                "it runs as it is, and Headwater learns from the reply how long it takes and how its columns are described; the next ones of its form are narrowed",
            ),
            FeedOutcome::Narrowed => StatementExplanation::answered(
                "memory and server",
                match is_count {
                    true => {
                        "memory names the authors, and the server is asked for the numbers of those that are not kept"
                    }
                    false => {
                        "memory names the messages, and the server shows them: it is asked by their ids"
                    }
                },
            ),
            FeedOutcome::Relayed { reason, .. } => {
                let (cause, of) = self.cause_of_feed(text, reason);
                return Ok((StatementExplanation::from_cause(cause), of));
            }
            // Only executions, which are not explained, lead to these.
            FeedOutcome::Replied(..) | FeedOutcome::RelayedSampled(_) => {
                StatementExplanation::relayed(FeedRelayReason::Execution.explanation())
            }
            FeedOutcome::LoginPending => StatementExplanation::relayed(UNFOLLOWED),
        };
        let of = decision.template().and_then(|template| {
            let feeds = self.shared.feeds.as_ref()?;
            feeds.name_of(template.feed)
        });
        Ok((verdict, of))
    }

    /// A statement of no definition and no feed.
    fn explain_other(&self, text: &[u8]) -> StatementExplanation {
        let feeds = self.shared.feeds.as_ref();
        let verb = text.get(..6).unwrap_or_default();
        if text
            .get(..4)
            .is_some_and(|verb| verb.eq_ignore_ascii_case(b"CALL"))
        {
            return StatementExplanation::relayed((
                "no_definition",
                "it calls no procedure of a definition, or passes something else than whole numbers and user variables",
                "SHOW HEADWATER FEEDS names the definitions; pass whole numbers",
            ));
        }
        if feeds.is_some_and(|feeds| feeds.names_feed_messages(text))
            && verb.eq_ignore_ascii_case(b"SELECT")
        {
            return StatementExplanation::relayed((
                "no_page",
                "it reads a feed's messages, and is no page of them and no count: a feed's SELECT has ORDER BY ... DESC and LIMIT, or begins with COUNT",
                "nothing, if it is meant so",
            ));
        }
        StatementExplanation::relayed((
            "no_feed",
            "it is neither a call of a definition nor a SELECT of a feed's messages",
            "if it is a page of the newest messages of several authors: `headwater discover` prints the section for the settings file",
        ))
    }
}

const UNFOLLOWED: (&str, &str, &str) = (
    "not_followed",
    "what this session does is not followed",
    "connect anew",
);
