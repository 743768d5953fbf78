//! Where columns have to be described exactly as directly, or the plan says more of them than key flags: the server is asked first how it would
//! go about the statement.
//!
//! What they are under one plan is learned from statements that went as they are.

use headwater_feed::Template;
use headwater_feed::cost::Crowd;
use headwater_feed::template::Choice;
use headwater_feed::variants::{Plan, Planned};
use headwater_wire::cursor::Cursor;
use headwater_wire::resultset::{Answer, Rows};

use super::lessons::Of;
use super::{Feeds, Found, Subject, Turn, Why, Wishes, World, ask};

/// Columns of EXPLAIN that hold estimates.
const ESTIMATES: [&[u8]; 2] = [b"rows", b"filtered"];

impl<K: Feeds> World<'_, K> {
    /// True where the plan is asked for.
    pub(super) fn is_planned(&self, template: &Template) -> bool {
        let mariadb = self.session.asked(false).mariadb;
        self.policy.exact || template.shape.described.is_by_plan(mariadb)
    }

    /// An execution has no text that can be asked about, and what MariaDB decides by a SELECT of constants it does not tell.
    pub(super) fn can_be_explained(&self, template: &Template) -> bool {
        if template.shape.constant_select && self.session.asked(false).mariadb {
            return false;
        }
        let is_text = self.executed.is_none() && self.named.is_none();
        let text = self.text().filter(|_| is_text);
        text.is_some_and(|text| std::str::from_utf8(text).is_ok())
    }

    /// Asks for the plan.
    pub(super) fn explain(
        &mut self,
        subject: Subject,
        wishes: Wishes,
        found: Found,
        choice: Choice,
    ) -> Turn {
        let text = self.text().and_then(|text| std::str::from_utf8(text).ok());
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
        let told = match answers.first() {
            Some(Answer::Rows(rows)) => {
                self.session.standing.observe(rows.end());
                plan(rows)
            }
            _ => None,
        };
        let planned = told.map(|plan| (subject.template.planned(self.under(), &plan), plan));
        let (choice, plan) = match planned {
            Some((Planned::Known, plan)) => (choice, plan),
            Some((Planned::Unknown, plan)) => (Choice::Learn, plan),
            Some((Planned::Differs, _)) | None => {
                // Nobody is to wait for what it might have taught.
                let of = Of::new(&subject.template, Crowd::of(found.authors), self.under());
                if let Some(lessons) = self.known.lessons() {
                    lessons.end(of, false, self.now);
                }
                return Err(Why::ColumnsUnsure);
            }
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
