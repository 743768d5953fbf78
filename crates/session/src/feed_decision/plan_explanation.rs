//! Where columns have to be described exactly as directly, or the plan says more of them than key flags: the server is asked first how it would
//! go about the statement.
//!
//! What they are under one plan is learned from statements that went as they are.

use headwater_feed::Template;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::result_metadata::{PlanKnowledge, ServerPlan};
use headwater_feed::template::ExecutionChoice;
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
    /// True where the plan is asked for.
    pub(super) fn is_planned(&self, template: &Template) -> bool {
        let mariadb = self.session.probed_server(false).mariadb;
        self.policy.exact || template.shape.plan_dependence.is_by_plan(mariadb)
    }

    /// An execution has no text that can be asked about, and what MariaDB decides by a SELECT of constants it does not tell.
    pub(super) fn is_explainable(&self, template: &Template) -> bool {
        if template.shape.has_constant_subquery && self.session.probed_server(false).mariadb {
            return false;
        }
        let is_text = self.executed.is_none() && self.named.is_none();
        let text = self.text().filter(|_| is_text);
        text.is_some_and(|text| std::str::from_utf8(text).is_ok())
    }

    /// Asks for the plan.
    pub(super) fn explain(
        &mut self,
        subject: ServedStatement,
        wishes: CandidateQuery,
        found: CandidateSet,
        choice: ExecutionChoice,
    ) -> FeedTransition {
        let text = self.text().and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or(FeedRelayReason::ColumnsUnsure)?;
        let question = format!("EXPLAIN FORMAT=TRADITIONAL {text}");
        let stage = super::FeedStage::Explaining(subject, wishes, found, choice);
        Ok((stage, query_session(vec![question])))
    }

    /// Goes on by what is known of that plan.
    pub(super) fn explained(
        &mut self,
        subject: ServedStatement,
        wishes: CandidateQuery,
        found: CandidateSet,
        choice: ExecutionChoice,
        answers: Vec<QueryReply>,
    ) -> FeedTransition {
        let told = match answers.first() {
            Some(QueryReply::Rows(rows)) => {
                self.session.state.observe(rows.end());
                plan_of(rows)
            }
            _ => None,
        };
        let planned = told.map(|plan| {
            (
                subject.template.plan_knowledge(self.plan_settings(), &plan),
                plan,
            )
        });
        let (choice, plan) = match planned {
            Some((PlanKnowledge::Known, plan)) => (choice, plan),
            Some((PlanKnowledge::Unknown, plan)) => (ExecutionChoice::Sample, plan),
            Some((PlanKnowledge::Differs, _)) | None => {
                // Nobody is to wait for what it might have taught.
                let of = SampleKey::new(
                    &subject.template,
                    AuthorCountBucket::of(found.authors),
                    self.plan_settings(),
                );
                if let Some(lessons) = self.knowledge.metadata_samples() {
                    lessons.end(of, false, self.now);
                }
                return Err(FeedRelayReason::ColumnsUnsure);
            }
        };
        let plan = Some(plan);
        self.execute_choice(subject, CandidateQuery { plan, ..wishes }, found, choice)
    }
}

/// All that EXPLAIN says, but for estimates.
fn plan_of(rows: &ResultSet) -> Option<ServerPlan> {
    let is_estimate = |name: &[u8]| {
        let mut estimates = ESTIMATES.iter();
        estimates.any(|own| name.eq_ignore_ascii_case(own))
    };
    let columns = rows.columns().iter().enumerate();
    let certain = columns.filter(|(_, own)| !column_name(own).is_some_and(is_estimate));
    let mut said = Vec::new();
    for row in rows.iter() {
        for (column, _) in certain.clone() {
            said.extend_from_slice(row.cell(column).unwrap_or(b"\\N"));
            said.push(0);
        }
        said.push(1);
    }
    (!said.is_empty()).then(|| ServerPlan::new(said))
}

/// The name of a column, which stands behind four other texts of its definition.
fn column_name(definition: &[u8]) -> Option<&[u8]> {
    let mut cursor = PacketCursor::new(definition);
    for _ in 0..4 {
        cursor.lenenc_bytes().ok()?;
    }
    cursor.lenenc_bytes().ok()
}
