//! Queries the server's plan (EXPLAIN) first, where column definitions must be exactly as direct ones, or where they depend on the plan in
//! more than key flags.
//!
//! The definitions under one plan are sampled from statements that were relayed unchanged.

use headwater_feed::Template;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::result_metadata::{PlanKnowledge, PlanSettings, ServerPlan};
use headwater_feed::template::ExecutionChoice;
use headwater_wire::capability::Capabilities;
use headwater_wire::cursor::PacketCursor;
use headwater_wire::resultset::{QueryReply, ResultSet};

use super::metadata_samples::SampleKey;
use super::{
    CandidateQuery, CandidateSet, FeedContext, FeedKnowledge, FeedRelayReason, FeedTransition,
    ServedStatement, query_session,
};

/// Columns of EXPLAIN that hold estimates.
const ESTIMATES: [&[u8]; 2] = [b"rows", b"filtered"];

impl<K: FeedKnowledge> FeedContext<'_, K> {
    /// The settings that the server's column definitions depend on in this session.
    pub(super) fn plan_settings(&self) -> PlanSettings {
        const READ: [Capabilities; 3] = [
            Capabilities::DEPRECATE_EOF,
            Capabilities::OPTIONAL_RESULTSET_METADATA,
            Capabilities::MARIADB_EXTENDED_METADATA,
        ];
        let plans = self.session.state.plan_settings();
        let read = READ.iter().fold(0, |read, one| {
            read << 1 | u64::from(self.session.capabilities.contains(*one))
        });
        PlanSettings(plans << READ.len() | read)
    }

    pub(super) fn is_planned(&self, template: &Template) -> bool {
        let mariadb = self.session.probed_server(false).mariadb;
        self.policy.exact || template.shape.plan_dependence.is_by_plan(mariadb)
    }

    /// True where EXPLAIN works: an execution has no text, and MariaDB does not show what it decides by a SELECT of constants.
    pub(super) fn is_explainable(&self, template: &Template) -> bool {
        if template.shape.has_constant_subquery && self.session.probed_server(false).mariadb {
            return false;
        }
        let is_text = self.executed.is_none() && self.named.is_none();
        let text = self.text().filter(|_| is_text);
        text.is_some_and(|text| std::str::from_utf8(text).is_ok())
    }

    pub(super) fn explain(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: CandidateSet,
        choice: ExecutionChoice,
    ) -> FeedTransition {
        let text = self.text().and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or(FeedRelayReason::ColumnsUnsure)?;
        let question = format!("EXPLAIN FORMAT=TRADITIONAL {text}");
        let stage = super::FeedStage::Explaining(subject, query, candidates, choice);
        Ok((stage, query_session(vec![question])))
    }

    /// Continues by what is known of that plan.
    pub(super) fn explained(
        &mut self,
        subject: ServedStatement,
        query: CandidateQuery,
        candidates: CandidateSet,
        choice: ExecutionChoice,
        answers: Vec<QueryReply>,
    ) -> FeedTransition {
        let plan_rows = match answers.first() {
            Some(QueryReply::Rows(rows)) => {
                self.session.state.observe(rows.end());
                plan_of(rows)
            }
            _ => None,
        };
        let planned = plan_rows.map(|plan| {
            (
                subject.template.plan_knowledge(self.plan_settings(), &plan),
                plan,
            )
        });
        let (choice, plan) = match planned {
            Some((PlanKnowledge::Known, plan)) => (choice, plan),
            Some((PlanKnowledge::Unknown, plan)) => (ExecutionChoice::Sample, plan),
            Some((PlanKnowledge::Differs, _)) | None => {
                // No statement must wait for a sample that may not come.
                let of = SampleKey::new(
                    &subject.template,
                    AuthorCountBucket::of(candidates.authors),
                    self.plan_settings(),
                );
                if let Some(samples) = self.knowledge.metadata_samples() {
                    samples.end(of, false, self.now);
                }
                return Err(FeedRelayReason::ColumnsUnsure);
            }
        };
        let plan = Some(plan);
        self.execute_choice(
            subject,
            CandidateQuery { plan, ..query },
            candidates,
            choice,
        )
    }
}

/// The output of EXPLAIN without estimates.
fn plan_of(rows: &ResultSet) -> Option<ServerPlan> {
    let is_estimate = |name: &[u8]| {
        let mut estimates = ESTIMATES.iter();
        estimates.any(|estimate| name.eq_ignore_ascii_case(estimate))
    };
    let columns = rows.columns().iter().enumerate();
    let certain = columns.filter(|(_, own)| !column_name(own).is_some_and(is_estimate));
    let mut plan_bytes = Vec::new();
    for row in rows.iter() {
        for (column, _) in certain.clone() {
            plan_bytes.extend_from_slice(row.cell(column).unwrap_or(b"\\N"));
            plan_bytes.push(0);
        }
        plan_bytes.push(1);
    }
    (!plan_bytes.is_empty()).then(|| ServerPlan::new(plan_bytes))
}

/// A column's name, which follows four other strings in its definition.
fn column_name(definition: &[u8]) -> Option<&[u8]> {
    let mut cursor = PacketCursor::new(definition);
    for _ in 0..4 {
        cursor.lenenc_bytes().ok()?;
    }
    cursor.lenenc_bytes().ok()
}
