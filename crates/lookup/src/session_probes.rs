//! Queries beside the lookup: whether temporary tables hide the real ones, who may execute the procedure, and how
//! many rows a result table holds.

use super::lookup::CallLookup;
use crate::LookupError;
use headwater_sql::{hex_literal, quoted};
use headwater_statement::TimelineCall;
use headwater_timeline::ProcedureForm;
use headwater_timeline::check::{CheckQueryResult, ServerError};
use headwater_timeline::definition::{HeadsTable, ResultTable, TimelineDefinition};
use headwater_wire::response::ErrPacket;
use headwater_wire::resultset::QueryReply;

/// Which of the two result tables exist as temporary tables of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemporaryResultTables {
    /// The table of ids.
    pub result: bool,
    /// The table of heads.
    pub heads: bool,
}

/// True when the error means that no temporary table of the name exists: no such table (ER_NO_SUCH_TABLE), or none
/// that this account may see (a session may always see its temporary tables).
#[must_use]
pub fn is_table_absent(error: &ErrPacket) -> bool {
    const NO_SUCH_TABLE: u16 = 1146;
    const DENIED: [u16; 3] = [1044, 1142, 1143];
    error.code == NO_SUCH_TABLE || DENIED.contains(&error.code)
}

impl CallLookup<'_> {
    /// The statements whose answers show whether temporary tables hide the real ones.
    #[must_use]
    pub fn temporary_table_queries(&self) -> Vec<String> {
        let TimelineDefinition {
            follower,
            message,
            result,
            heads,
            ..
        } = self.definition;
        [&follower.table, &message.table, &result.table, &heads.table]
            .map(|table| format!("SHOW CREATE TABLE {}", quoted(table)))
            .to_vec()
    }

    /// Checks the answers to [`Self::temporary_table_queries`].
    ///
    /// # Errors
    /// When a temporary table hides one of the definition's tables, or a result table has another form.
    pub fn check_temporary_tables(
        &self,
        answers: &[QueryReply],
    ) -> Result<TemporaryResultTables, LookupError> {
        let mut tables = TemporaryResultTables::default();
        for (index, answer) in answers.iter().enumerate() {
            let is_result = index >= 2;
            let text = match answer {
                QueryReply::Rows(rows) => rows.iter().next().and_then(|row| row.cell(1)),
                // A result table that does not exist yet, or that this account may not describe.
                QueryReply::Err(error) if is_result && is_table_absent(error) => continue,
                QueryReply::Err(_) => return Err(LookupError::Malformed),
                QueryReply::Ok(_) => None,
            };
            let text = text.ok_or(LookupError::TemporaryTables)?;
            if !text.starts_with(b"CREATE TEMPORARY TABLE") {
                continue;
            }
            if !(is_result && self.is_result_table(index == 2, text)) {
                return Err(LookupError::TemporaryTables);
            }
            tables.result |= index == 2;
            tables.heads |= index == 3;
        }
        Ok(tables)
    }

    /// True when the statement creates the table as the procedure does: exactly these columns and this key, and no
    /// limits.
    fn is_result_table(&self, result: bool, text: &[u8]) -> bool {
        let TimelineDefinition {
            result: ids,
            heads,
            id_type,
            user_type,
            ..
        } = self.definition;
        let id = quoted(&ids.id);
        let (columns, key) = if result {
            let key = format!("PRIMARY KEY ({id})");
            (vec![(id, id_type)], Some(key))
        } else {
            let columns = vec![
                (quoted(&heads.author), user_type),
                (quoted(&heads.head), id_type),
            ];
            (columns, None)
        };
        let mut lines = text.split(|byte| *byte == b'\n').skip(1).map(|line| {
            line.trim_ascii()
                .strip_suffix(b",")
                .unwrap_or(line.trim_ascii())
        });
        let columns_fit = columns.iter().all(|(name, int)| {
            let described = |int: &str| format!("{name} {int} NOT NULL").into_bytes();
            lines.next().is_some_and(|line| {
                line == described(int.sql()) || line == described(int.sql_with_width())
            })
        });
        let key_fits = key.is_none_or(|key| lines.next() == Some(key.as_bytes()));
        let engine_fits = lines.next().is_some_and(|line| {
            line.starts_with(b") ENGINE=MEMORY")
                && line.split(|byte| *byte == b' ').skip(2).all(|option| {
                    option == b"DEFAULT"
                        || option.starts_with(b"CHARSET=")
                        || option.starts_with(b"COLLATE=")
                })
        });
        columns_fit && key_fits && engine_fits && lines.next().is_none()
    }

    /// A call without arguments: its error shows who may execute the procedure, and nothing is run.
    #[must_use]
    pub fn execute_probe(&self, form: ProcedureForm) -> String {
        format!(
            "CALL {}()",
            self.table_name(self.definition.procedure_name(form))
        )
    }

    /// The call, written independently of the session's variables and quoting.
    #[must_use]
    pub fn call_statement(&self) -> String {
        let TimelineCall {
            form,
            reader,
            bound,
            ..
        } = self.call;
        let procedure = self.table_name(self.definition.procedure_name(*form));
        let bound = bound.map_or_else(String::new, |id| format!(",{id}"));
        format!("CALL {procedure}({reader}{bound})")
    }

    /// A call of this form for a reader who probably follows no author.
    #[must_use]
    pub fn empty_call_statement(&self, form: ProcedureForm) -> String {
        let procedure = self.table_name(self.definition.procedure_name(form));
        let bound = if form.is_bounded() { ",0" } else { "" };
        format!("CALL {procedure}(0{bound})")
    }

    /// The query whether all procedures exist and have one definer, as far as the account sees them.
    #[must_use]
    pub fn one_definer_query(&self) -> String {
        let names =
            ProcedureForm::ALL.map(|form| hex_literal(self.definition.procedure_name(form)));
        format!(
            "SELECT COUNT(DISTINCT HEX(DEFINER))=1 AND COUNT(*)={} FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA={} \
             AND ROUTINE_TYPE={} AND ROUTINE_NAME IN ({})",
            names.len(),
            hex_literal(&String::from_utf8_lossy(self.database)),
            hex_literal("PROCEDURE"),
            names.join(","),
        )
    }

    /// The query for the ids that a call left; its limit is one above the maximum, so that too many are noticed.
    #[must_use]
    pub fn ids_left(&self) -> String {
        let ResultTable { table, id } = &self.definition.result;
        self.all_of(&[id], table)
    }

    /// The query for the heads that a call left, with the same limit.
    #[must_use]
    pub fn heads_left(&self) -> String {
        let HeadsTable {
            table,
            author,
            head,
        } = &self.definition.heads;
        self.all_of(&[author, head], table)
    }

    /// Statements that give the table of ids this many rows, whatever their content.
    pub fn ids_put_back(&self, rows: u64) -> Vec<String> {
        let row = |number| format!("({number})");
        self.put_back(&self.definition.result.table, rows, row)
    }

    /// Statements that give the table of heads this many rows, whatever their content.
    pub fn heads_put_back(&self, rows: u64) -> Vec<String> {
        let row = |number| format!("({number},{number})");
        self.put_back(&self.definition.heads.table, rows, row)
    }

    fn put_back(&self, table: &str, rows: u64, row: impl Fn(u64) -> String) -> Vec<String> {
        let table = self.table_name(table);
        let values: Vec<String> = (0..rows).map(row).collect();
        let filled = format!("INSERT INTO {table} VALUES {}", values.join(","));
        let filled = (rows > 0).then_some(filled);
        let emptied = [format!("DELETE FROM {table}")];
        emptied.into_iter().chain(filled).collect()
    }

    fn all_of(&self, columns: &[&str], table: &str) -> String {
        let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
        let limit = self.max_heads.saturating_add(1);
        format!(
            "SELECT {} FROM {} LIMIT {limit}",
            columns.join(","),
            self.table_name(table)
        )
    }

    /// The query for a result table's row count.
    #[must_use]
    pub fn count_query(&self, table: &str) -> String {
        format!("SELECT COUNT(*) FROM {}", self.table_name(table))
    }
}

/// Converts the answer to an internal query for the definition's check.
pub fn to_check_reply(answer: QueryReply) -> CheckQueryResult {
    match answer {
        QueryReply::Ok(_) => Ok(Vec::new()),
        QueryReply::Err(error) => Err(ServerError {
            code: error.code,
            message: String::from_utf8_lossy(&error.message).into_owned(),
        }),
        QueryReply::Rows(rows) => Ok(rows.cells()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certain_errors_mean_that_a_table_is_absent() {
        let error = |code| ErrPacket {
            code,
            sqlstate: None,
            message: Vec::new(),
        };
        assert!(
            [1146, 1142]
                .iter()
                .all(|code| is_table_absent(&error(*code)))
        );
        // KILL QUERY, a lock that was not granted, a lost connection.
        assert!(
            ![1317, 1205, 1927, 2027]
                .iter()
                .any(|code| is_table_absent(&error(*code)))
        );
    }
}
