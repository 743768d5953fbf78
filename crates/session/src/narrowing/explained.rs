//! Where columns have to be described exactly as directly: the server is asked first how it would go about the statement.
//!
//! Key flags follow the plan. What they are under one plan is learned from statements that went as they are.

use headwater_feed::template::Choice;
use headwater_feed::variants::{Plan, Planned};
use headwater_wire::cursor::Cursor;
use headwater_wire::resultset::{Answer, Rows};

use super::{Feeds, Found, Subject, Turn, Why, Wishes, World, ask};

/// Columns of EXPLAIN that hold estimates.
const ESTIMATES: [&[u8]; 2] = [b"rows", b"filtered"];

impl<K: Feeds> World<'_, K> {
    /// Asks for the plan.
    pub(super) fn explain(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        found: Found,
        choice: Choice,
    ) -> Turn {
        // An execution has no text that can be asked about.
        let is_text = self.executed.is_none() && self.named.is_none();
        let text = self.text().filter(|_| is_text);
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or(Why::ColumnsUnsure)?;
        let question = format!("EXPLAIN FORMAT=TRADITIONAL {text}");
        let stage = super::Stage::Explaining(subject, wishes, found, choice);
        Ok((stage, ask(vec![question])))
    }

    /// Goes on by what is known of that plan.
    pub(super) fn explained(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        found: Found,
        choice: Choice,
        answers: Vec<Answer>,
    ) -> Turn {
        let rows = match answers.first() {
            Some(Answer::Rows(rows)) => rows,
            _ => return Err(Why::ColumnsUnsure),
        };
        self.session.standing.observe(rows.end());
        let plan = plan(rows).ok_or(Why::ColumnsUnsure)?;
        let choice = match subject.template.planned(self.under(), &plan) {
            Planned::Known => choice,
            Planned::Unknown => Choice::Learn,
            Planned::Differs => return Err(Why::ColumnsUnsure),
        };
        let plan = Some(plan);
        self.carry_out(subject, Wishes { plan, ..wishes }, found, choice)
    }
}

/// All that EXPLAIN says, but for estimates.
fn plan(rows: &Rows) -> Option<Plan> {
    let is_estimate = |name: &[u8]| {
        let mut estimates = ESTIMATES.iter();
        estimates.any(|own| name.eq_ignore_ascii_case(own))
    };
    let columns = rows.columns().iter().enumerate();
    let certain = columns.filter(|(_, own)| !name(own).is_some_and(is_estimate));
    let mut said = Vec::new();
    for row in rows.iter() {
        for (column, _) in certain.clone() {
            said.extend_from_slice(row.cell(column).unwrap_or(b"\\N"));
            said.push(0);
        }
        said.push(1);
    }
    (!said.is_empty()).then(|| Plan::new(said))
}

/// The name of a column, which stands behind four other texts of its definition.
fn name(definition: &[u8]) -> Option<&[u8]> {
    let mut cursor = Cursor::new(definition);
    for _ in 0..4 {
        cursor.lenenc_bytes().ok()?;
    }
    cursor.lenenc_bytes().ok()
}
