//! A tail with the ids of its call in the result table's place.

use std::fmt::Write;

use super::tail::Tail;
use crate::timeline::check::Product;
use crate::timeline::definition::quoted;

/// Where the ids stand in a rewritten tail. The column definitions of the answer depend on it and on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TailForm {
    /// As a common table expression in front: `WITH fetch_timeline_tt(id) AS (VALUES ...) SELECT ...`.
    Cte,
    /// The same, and the tables joined in the order in which they are written: `WITH ... SELECT STRAIGHT_JOIN ...`.
    CteStraightJoin,
    /// As a list, without the join: `SELECT ... FROM message WHERE message.id IN (...)`.
    InList,
}

impl Tail {
    /// The text that asks the same of these ids. The client's own text stays as written around them.
    ///
    /// `None`: there are no ids, and no form of it says so.
    pub fn rewrite(&self, form: TailForm, product: Product, ids: &[u64]) -> Option<String> {
        if ids.is_empty() {
            return None;
        }
        let mut text = String::with_capacity(self.text.len() + 80 + 24 * ids.len());
        match form {
            TailForm::Cte => {
                self.with(product, ids, &mut text);
                text.push_str(&self.text);
            }
            TailForm::CteStraightJoin => {
                self.with(product, ids, &mut text);
                text.push_str("SELECT STRAIGHT_JOIN");
                text.push_str(self.text.get(self.select_end..)?);
            }
            TailForm::InList => {
                text.push_str("SELECT");
                text.push_str(self.text.get(self.select_end..self.from_at)?);
                text.push_str("FROM ");
                text.push_str(&self.message);
                text.push_str(" WHERE ");
                text.push_str(&self.qualifier);
                text.push('.');
                text.push_str(&quoted(&self.names.id));
                text.push_str(" IN (");
                list(ids, "", "", &mut text);
                text.push_str(") ");
                text.push_str(self.text.get(self.order_at..)?);
            }
        }
        Some(text)
    }

    fn with(&self, product: Product, ids: &[u64], text: &mut String) {
        text.push_str("WITH ");
        text.push_str(&quoted(&self.names.result));
        text.push('(');
        text.push_str(&quoted(&self.names.result_id));
        text.push_str(") AS (VALUES ");
        match product {
            Product::Mariadb => list(ids, "(", ")", text),
            Product::Mysql => list(ids, "ROW(", ")", text),
        }
        text.push_str(") ");
    }
}

fn list(ids: &[u64], before: &str, after: &str, text: &mut String) {
    for (at, id) in ids.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Writing into a String does not fail.
        let _ = write!(text, "{comma}{before}{id}{after}");
    }
}
