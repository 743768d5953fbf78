//! Proves the session's state before a statement is narrowed, in one write.

use headwater_feed::Template;
use headwater_feed::template::TableName;
use headwater_sql::quoted;
use headwater_wire::resultset::QueryReply;

use super::{
    FeedContext, FeedKnowledge, FeedRelayReason, FeedStage, FeedTransition, ServedStatement,
    prepared, query_session,
};
use crate::call_relay_reason::CallRelayReason;
use crate::session_state::ReadRight;

#[derive(Debug)]
pub(super) struct MissingProofs {
    /// Tables that a temporary one may hide.
    shadowable: Vec<TableName>,
    /// The right to read the column that an author list is compared with: without it the list must not be left out.
    read_right: bool,
}

impl MissingProofs {
    fn queries(&self, subject: &ServedStatement) -> Vec<String> {
        let tables = self.shadowable.iter().map(quoted_name);
        let mut queries: Vec<String> = tables
            .map(|table| format!("SHOW CREATE TABLE {table}"))
            .collect();
        if self.read_right {
            let template = &subject.template;
            queries.push(format!(
                "SELECT {} FROM {}.{} LIMIT 0",
                quoted(&template.feed_names.author),
                quoted(&template.database),
                quoted(&template.feed_names.message)
            ));
        }
        queries
    }
}

impl<K: FeedKnowledge> FeedContext<'_, K> {
    pub(super) fn take_settings(
        &mut self,
        answer: Option<&QueryReply>,
    ) -> Result<(), FeedRelayReason> {
        match answer {
            Some(QueryReply::Rows(rows)) => {
                self.session.state.note_server_contact(self.now);
                Ok(self.session.apply_settings(rows)?)
            }
            _ => Err(CallRelayReason::LookupFailed.into()),
        }
    }

    pub(super) fn prove(&mut self, subject: ServedStatement) -> FeedTransition {
        // The reply may have revealed a new obstacle.
        if let Some(reason) = self.session.state.feed_obstacle() {
            return Err(reason.into());
        }
        let prepared = prepared(self.executed, self.named.as_deref());
        let current = self.session.state.current();
        let zoned = subject.template.compares_timestamps();
        if prepared.is_some_and(|feed| !feed.is_read_alike(current, zoned)) {
            return Err(FeedRelayReason::Execution);
        }
        // A server continues to read text by the settings of when its type came.
        let typed = self
            .executed
            .and_then(|executed| executed.types_settings.as_deref());
        if typed.is_some_and(|typed| !typed.is_like(current, false)) {
            return Err(FeedRelayReason::Execution);
        }
        let unproved = self.missing_proofs(&subject);
        let queries = unproved.queries(&subject);
        match queries.is_empty() {
            true => self.read_variables(subject),
            false => Ok((
                FeedStage::Proving(subject, unproved),
                query_session(queries),
            )),
        }
    }

    fn missing_proofs(&self, subject: &ServedStatement) -> MissingProofs {
        let template = &subject.template;
        let state = &self.session.state;
        let holds = |right: &ReadRight| {
            right.is_of(
                &template.database,
                &template.feed_names.message,
                &template.feed_names.author,
            ) && self.now.duration_since(right.at) < self.policy.privileges_ttl
        };
        let tables = template.tables.iter();
        MissingProofs {
            shadowable: tables
                .filter(|named| !state.is_unshadowed(named))
                .cloned()
                .collect(),
            read_right: template.shape.replaceable_list.is_some()
                && !state.may_read().is_some_and(holds)
                && !self.may_read_template(template),
        }
    }

    /// True where the session may read the template's tables, as it or another session of its account proved.
    pub(super) fn may_read_template(&self, template: &Template) -> bool {
        let ttl = self.policy.privileges_ttl;
        let rights = self.knowledge.account_rights();
        rights.may_read(
            &self.session.state,
            template.row_cache.template,
            ttl,
            self.now,
        )
    }

    pub(super) fn take_proofs(
        &mut self,
        subject: &ServedStatement,
        unproved: MissingProofs,
        answers: Vec<QueryReply>,
    ) -> Result<(), FeedRelayReason> {
        let mut answers = answers.into_iter().map(|answer| match answer {
            QueryReply::Rows(rows) => Ok(rows),
            QueryReply::Err(_) => Err(CallRelayReason::LookupDenied),
            QueryReply::Ok(_) => Err(CallRelayReason::LookupFailed),
        });
        let mut next = || answers.next().unwrap_or(Err(CallRelayReason::LookupFailed));
        for named in unproved.shadowable {
            let rows = next()?;
            // A query may open a transaction, as the statement after it would.
            self.session.state.observe(rows.end());
            let row = rows.iter().next();
            let created = row.and_then(|row| row.cell(1)).unwrap_or_default();
            if !created.starts_with(b"CREATE TABLE") {
                return Err(CallRelayReason::TemporaryTables.into());
            }
            self.session.state.mark_unshadowed(named);
        }
        if unproved.read_right {
            let rows = next()?;
            self.session.state.observe(rows.end());
            let template = &subject.template;
            self.session.state.read_right_proved(ReadRight {
                database: template.database.clone(),
                table: template.feed_names.message.clone(),
                column: template.feed_names.author.clone(),
                at: self.now,
            });
        }
        self.session.state.set_conditions(false);
        Ok(())
    }
}

fn quoted_name(named: &TableName) -> String {
    let table = quoted(&named.table);
    match &named.database {
        Some(database) => format!("{}.{table}", quoted(database)),
        None => table,
    }
}
