//! A follow-up SELECT with its call's ids in place of the result table.

use super::follow_up::FollowUpSelect;
use headwater_sql::{push_list, quoted};

/// How the ids are put into a follow-up SELECT, so that its reply has the column definitions of the real join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FollowUpForm {
    /// As a list, without the join: read by key and in order, without a temporary table.
    List,
    /// The same through a temporary table, if the real join sorts through one: there the server reports columns without key flags.
    BufferedList,
    /// As a list where Spider keeps the messages on data nodes: each node receives the whole list once.
    SpreadList,
}

impl FollowUpSelect {
    /// The same SELECT for these ids: `SELECT ... FROM message WHERE message.id IN (...) ...`. The rest is the client's text.
    ///
    /// `None`: there are no ids, and no form can express that.
    pub fn rewrite(&self, form: FollowUpForm, ids: &[u64]) -> Option<String> {
        if ids.is_empty() {
            return None;
        }
        let mut text = String::with_capacity(self.text.len() + 80 + 24 * ids.len());
        text.push_str(match form {
            FollowUpForm::List | FollowUpForm::SpreadList => "SELECT",
            FollowUpForm::BufferedList => "SELECT SQL_BUFFER_RESULT",
        });
        text.push_str(self.text.get(self.select_end..self.from_at)?);
        text.push_str("FROM ");
        text.push_str(&self.message);
        if form == FollowUpForm::SpreadList {
            text.push_str(" USE INDEX ()");
        }
        text.push_str(" WHERE ");
        text.push_str(&self.qualifier);
        text.push('.');
        text.push_str(&quoted(&self.names.id));
        text.push_str(" IN (");
        push_list(&mut text, ids);
        text.push_str(") ");
        text.push_str(self.text.get(self.order_at..)?);
        Some(text)
    }
}
