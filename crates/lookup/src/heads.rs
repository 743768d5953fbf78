//! First step of a lookup: each followed author's newest id, and the n authors with the greatest ones.
//!
//! The follow list and the newest ids come from one statement, hence from one moment, as the procedure's do.
//! MySQL can return those authors' newest n ids in the same statement (a derived table may refer to the outer
//! row), where it costs no more than the page alone. MariaDB cannot; a second statement reads them (`lists`).

use super::hints::{AuthorRangeHints, HintScope};
use super::lookup::CallLookup;
use crate::LookupError;
use headwater_sql::quoted;
use headwater_timeline::AuthorHead;
use headwater_timeline::check::ServerProduct;
use headwater_timeline::definition::{ProcedureForm, TimelineDefinition};
use headwater_timeline::merge;
use headwater_wire::resultset::ResultSet;

/// The result of the first step.
#[derive(Debug, Default)]
pub struct LookupHeads {
    /// Every head when the call is bounded, else the greatest n. Descending.
    pub heads: Vec<AuthorHead>,
    /// The n authors with the greatest heads; empty where no page is requested.
    pub top: Vec<TopAuthor>,
}

/// One of the n authors whose newest ids make up the result set.
#[derive(Clone, Debug)]
pub struct TopAuthor {
    /// Its newest id.
    pub head: AuthorHead,
    /// Its newest n ids, descending, if known already.
    pub list: Option<Vec<u64>>,
}

impl CallLookup<'_> {
    /// The statement for the heads; a row is an author, its newest id, and on MySQL its newest n ids.
    ///
    /// Because of the aliases the statement fails under LOCK TABLES, as the procedure would.
    pub(super) fn heads_query(&self) -> String {
        let TimelineDefinition { follower, n, .. } = self.definition;
        let heads = format!(
            "SELECT hw_f.{author} hw_a,({newest}) hw_h FROM {table} hw_f WHERE hw_f.{reader}={uid}",
            author = quoted(&follower.author),
            newest = self.newest_ids(&format!("hw_f.{}", quoted(&follower.author)), 1),
            table = self.table_name(&follower.table),
            reader = quoted(&follower.reader),
            uid = self.call.reader,
        );
        let most = self.max_heads.saturating_add(1);
        match (self.facts.product, self.call.form) {
            (ServerProduct::Mariadb, ProcedureForm::Newest) => {
                format!("{heads} ORDER BY hw_h DESC LIMIT {n}")
            }
            (ServerProduct::Mariadb, ProcedureForm::Bounded) | (_, ProcedureForm::Heads) => {
                format!("{heads} LIMIT {most}")
            }
            (ServerProduct::Mysql, ProcedureForm::Newest) => format!(
                "SELECT hw_t.hw_a,hw_t.hw_h,{} FROM ({heads} ORDER BY hw_h DESC LIMIT {n}) hw_t",
                self.list_column()
            ),
            // The heads table needs every author's head; lists are computed for the greatest n alone.
            (ServerProduct::Mysql, ProcedureForm::Bounded) => format!(
                "SELECT hw_t.hw_a,hw_t.hw_h,IF(hw_t.hw_r<={n},{},NULL) FROM (\
                 SELECT hw_g.hw_a,hw_g.hw_h,ROW_NUMBER() OVER (ORDER BY hw_g.hw_h DESC) hw_r \
                 FROM ({heads}) hw_g) hw_t WHERE hw_t.hw_h IS NOT NULL LIMIT {most}",
                self.list_column()
            ),
        }
    }

    /// The column with an author's newest n ids as JSON.
    fn list_column(&self) -> String {
        format!(
            "(SELECT JSON_ARRAYAGG(hw_l.{}) FROM ({}) hw_l)",
            quoted(&self.definition.message.id),
            self.newest_ids("hw_t.hw_a", self.definition.n)
        )
    }

    /// A subquery for an author's ids at or below the bound, newest first.
    fn newest_ids(&self, author: &str, limit: u32) -> String {
        let message = &self.definition.message;
        let (id, by) = (quoted(&message.id), quoted(&message.author));
        let bound = match self.call.bound {
            Some(bound) => format!(" AND hw_m.{id}<={bound}"),
            None => String::new(),
        };
        // Without the author in ORDER BY, MySQL sorts all of the author's messages.
        format!(
            "SELECT hw_m.{id} FROM {} hw_m WHERE hw_m.{by}={author}{bound} \
             ORDER BY hw_m.{by} DESC,hw_m.{id} DESC LIMIT {limit}",
            self.table_name(&message.table),
        )
    }

    /// Reads the rows of [`Self::heads_query`].
    ///
    /// # Errors
    /// When there are more heads than the limit, or a value is no id (negative ones are not).
    pub(super) fn read_heads(
        &self,
        rows: &ResultSet,
        scope: HintScope,
        range_hints: &mut AuthorRangeHints,
    ) -> Result<LookupHeads, LookupError> {
        if rows.len() > self.max_heads {
            return Err(LookupError::TooManyIds);
        }
        let mut authors = Vec::with_capacity(rows.len());
        for row in rows.iter() {
            let number = |column| row.u64(column).ok_or(LookupError::Malformed);
            if row.cell(1).is_none() {
                // An author without messages contributes nothing.
                if self.call.form == ProcedureForm::Newest {
                    range_hints.remember_empty(scope, number(0)?);
                }
                continue;
            }
            authors.push(TopAuthor {
                head: AuthorHead {
                    author: number(0)?,
                    id: number(1)?,
                },
                list: match row.cell(2) {
                    Some(json) => Some(merge::newest(read_list(json)?, self.n())),
                    None => None,
                },
            });
        }
        self.rank(authors)
    }

    /// Sorts the heads, and takes the n greatest as the top authors.
    ///
    /// # Errors
    /// When two of the n + 1 greatest heads are the same id.
    pub(super) fn rank(&self, mut authors: Vec<TopAuthor>) -> Result<LookupHeads, LookupError> {
        authors.sort_unstable_by_key(|author| std::cmp::Reverse(author.head.id));
        let heads = authors.iter().map(|author| author.head).collect();
        if self.call.form.fills_result() {
            let first = authors.iter().take(self.n().saturating_add(1));
            let ids: Vec<u64> = first.map(|author| author.head.id).collect();
            self.require_unique(&ids)?;
        }
        authors.truncate(match self.call.form {
            ProcedureForm::Newest | ProcedureForm::Bounded => self.n(),
            ProcedureForm::Heads => 0,
        });
        Ok(LookupHeads {
            heads,
            top: authors,
        })
    }
}

/// Reads a JSON array of ids.
///
/// # Errors
/// When an element is no id.
fn read_list(json: &[u8]) -> Result<Vec<u64>, LookupError> {
    let inner = json
        .strip_prefix(b"[")
        .and_then(|json| json.strip_suffix(b"]"));
    inner
        .ok_or(LookupError::Malformed)?
        .split(|byte| *byte == b',')
        .map(|number| {
            let digits = std::str::from_utf8(number.trim_ascii()).ok();
            digits.and_then(|digits| digits.parse().ok())
        })
        .collect::<Option<_>>()
        .ok_or(LookupError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_whole_or_not_at_all() {
        assert_eq!(
            read_list(b"[18446744073709551615, 7,3]"),
            Ok(vec![u64::MAX, 7, 3])
        );
        for wrong in [
            "[3, -5]",
            "[]",
            "",
            "[1,,2]",
            "[18446744073709551616]",
            "[1.0]",
            "[1",
        ] {
            assert_eq!(read_list(wrong.as_bytes()), Err(LookupError::Malformed));
        }
    }
}
