//! What has to be proved of the session before a statement is narrowed, asked for in one write.

use headwater_feed::template::Named;
use headwater_sql::quoted;
use headwater_wire::resultset::Answer;

use super::{Feeds, Stage, Subject, Turn, Why, World, ask, is_zoned, prepared};
use crate::reason::Reason;
use crate::standing::ReadRight;

/// What is not known of the session.
#[derive(Debug)]
pub(super) struct Unproved {
    /// Tables that a temporary one may hide.
    hidden: Vec<Named>,
    /// Whether it may read the column that a list of authors is compared with: who may not must not have the list left out.
    right: bool,
}

impl Unproved {
    fn queries(&self, subject: &Subject) -> Vec<String> {
        let tables = self.hidden.iter().map(name);
        let mut queries: Vec<String> = tables
            .map(|table| format!("SHOW CREATE TABLE {table}"))
            .collect();
        if self.right {
            let template = &subject.template;
            queries.push(format!(
                "SELECT {} FROM {}.{} LIMIT 0",
                quoted(&template.names.author),
                quoted(&template.database),
                quoted(&template.names.message)
            ));
        }
        queries
    }
}

impl<K: Feeds> World<'_, K> {
    pub(super) fn take_settings(&mut self, answer: Option<&Answer>) -> Result<(), Why> {
        match answer {
            Some(Answer::Rows(rows)) => Ok(self.session.settings_told(rows)?),
            _ => Err(Reason::LookupFailed.into()),
        }
    }

    /// Asks for what is not known of the session.
    pub(super) fn prove(&mut self, subject: Subject) -> Turn {
        // The answer may have told more than was known.
        if let Some(reason) = self.session.standing.feed_obstacle() {
            return Err(reason.into());
        }
        let prepared = prepared(self.executed, self.named.as_deref());
        let current = self.session.standing.current();
        let zoned = is_zoned(&subject.template);
        if prepared.is_some_and(|feed| !feed.is_read_alike(current, zoned)) {
            return Err(Why::Execution);
        }
        // A server goes on reading text as it did when its type came.
        let typed = self.executed.and_then(|executed| executed.typed.as_deref());
        if typed.is_some_and(|typed| !typed.is_like(current, false)) {
            return Err(Why::Execution);
        }
        let unproved = self.unproved(&subject);
        let queries = unproved.queries(&subject);
        match queries.is_empty() {
            true => self.value(subject),
            false => Ok((Stage::Proving(subject, unproved), ask(queries))),
        }
    }

    fn unproved(&self, subject: &Subject) -> Unproved {
        let template = &subject.template;
        let standing = &self.session.standing;
        let holds = |right: &ReadRight| {
            right.is_of(
                &template.database,
                &template.names.message,
                &template.names.author,
            ) && self.now.duration_since(right.at) < self.policy.privileges_ttl
        };
        let tables = template.tables.iter();
        Unproved {
            hidden: tables
                .filter(|named| !standing.is_plain(named))
                .cloned()
                .collect(),
            right: template.shape.list.is_some() && !standing.may_read().is_some_and(holds),
        }
    }

    /// Takes in the answers to what was asked.
    pub(super) fn take_proofs(
        &mut self,
        subject: &Subject,
        unproved: Unproved,
        answers: Vec<Answer>,
    ) -> Result<(), Why> {
        let mut answers = answers.into_iter().map(|answer| match answer {
            Answer::Rows(rows) => Ok(rows),
            Answer::Err(_) => Err(Reason::LookupDenied),
            Answer::Ok(_) => Err(Reason::LookupFailed),
        });
        let mut next = || answers.next().unwrap_or(Err(Reason::LookupFailed));
        for named in unproved.hidden {
            let rows = next()?;
            // A question may open a transaction, as the statement behind it does.
            self.session.standing.observe(rows.end());
            let row = rows.iter().next();
            let created = row.and_then(|row| row.cell(1)).unwrap_or_default();
            if !created.starts_with(b"CREATE TABLE") {
                return Err(Reason::TemporaryTables.into());
            }
            self.session.standing.plain(named);
        }
        if unproved.right {
            let rows = next()?;
            self.session.standing.observe(rows.end());
            let template = &subject.template;
            self.session.standing.read_proved(ReadRight {
                database: template.database.clone(),
                table: template.names.message.clone(),
                column: template.names.author.clone(),
                at: self.now,
            });
        }
        self.session.standing.leaves_conditions(false);
        Ok(())
    }
}

fn name(named: &Named) -> String {
    let table = quoted(&named.table);
    match &named.database {
        Some(database) => format!("{}.{table}", quoted(database)),
        None => table,
    }
}
