//! What is known of a statement and its tables besides their form: which literals never vary, and which columns hold few values.

use std::collections::{BTreeMap, BTreeSet};

use headwater_sql::quoted;

use crate::catalogue::{CatalogueRows, cell, tables_condition};
use crate::query::{Literal, LiteralList};

/// A column with at most so many different values is a mark, such as a kind or a state.
const MOST_MARKS: u64 = 8;
/// Its table has so many rows of each value.
const ROWS_OF_MARK: u64 = 100;

/// What guides the choice of a feed's columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposalEvidence {
    /// Words that are the same literal in all of the statement's texts, where other literals varied.
    pub constants: BTreeSet<usize>,
    /// Columns that hold few values, by table.
    pub marks: BTreeSet<(String, String)>,
}

impl ProposalEvidence {
    /// True if readers are named, and each of them by what never varies.
    pub(super) fn are_constant(&self, readers: &[LiteralList]) -> bool {
        let is_constant = |list: &LiteralList| match list {
            LiteralList::Whole(at) => self.constants.contains(at),
            LiteralList::Each(literals) => literals.iter().all(|one| self.is_constant_literal(one)),
        };
        !readers.is_empty() && readers.iter().all(is_constant)
    }

    /// True for a literal that never varies.
    pub(super) fn is_constant_literal(&self, literal: &Literal) -> bool {
        match literal {
            Literal::Number(at) | Literal::Negative(at) | Literal::Text(at) => {
                self.constants.contains(at)
            }
            Literal::Truth(_) => true,
            Literal::Decimal | Literal::Moment(_) | Literal::Parameter(_) | Literal::Null => false,
        }
    }
}

/// The sizes of tables and indexes, as the server estimates them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStatistics {
    /// The rows of each table.
    pub rows: BTreeMap<String, u64>,
    /// The columns with which indexes begin, by table, that may hold few values: estimates may be old.
    pub suspects: BTreeSet<(String, String)>,
}

/// The query for the statistics of these tables of a database. [`TableStatistics::read`] takes its reply.
#[must_use]
pub fn statistics_query(database: &str, tables: &[String]) -> String {
    let those = tables_condition(database, tables);
    format!(
        "SELECT t.TABLE_NAME, t.TABLE_ROWS, s.COLUMN_NAME, s.CARDINALITY FROM \
         (SELECT * FROM information_schema.TABLES WHERE {those}) t LEFT JOIN \
         (SELECT * FROM information_schema.STATISTICS WHERE {those} AND SEQ_IN_INDEX = 1) s ON s.TABLE_NAME = t.TABLE_NAME"
    )
}

/// The query whether a column is a mark. [`is_mark`] takes its reply.
#[must_use]
pub fn mark_query(database: &str, (table, column): &(String, String)) -> String {
    let (database, table, column) = (quoted(database), quoted(table), quoted(column));
    let most = MOST_MARKS + 1;
    // Servers read the index from value to value; where one does not, it gives up after a second.
    format!(
        "/*M! SET STATEMENT max_statement_time = 1 FOR */ SELECT /*+ MAX_EXECUTION_TIME(1000) */ COUNT(*) FROM (SELECT DISTINCT {column} FROM {database}.{table} LIMIT {most}) headwater_values"
    )
}

/// True if the reply to [`mark_query`] says so.
#[must_use]
pub fn is_mark(reply: &CatalogueRows) -> bool {
    let count = reply.first().map(|row| cell(row, 0).parse::<u64>());
    count.is_some_and(|count| count.is_ok_and(|count| count <= MOST_MARKS))
}

impl TableStatistics {
    /// Reads the reply.
    #[must_use]
    pub fn read(reply: &CatalogueRows) -> TableStatistics {
        let mut read = TableStatistics::default();
        for row in reply {
            let number = |at: usize| cell(row, at).parse::<u64>().unwrap_or_default();
            let (table, rows) = (cell(row, 0), number(1));
            let column = cell(row, 2);
            if !column.is_empty()
                && rows >= ROWS_OF_MARK
                && rows >= number(3).saturating_mul(ROWS_OF_MARK)
            {
                read.suspects.insert((table.clone(), column));
            }
            read.rows.insert(table, rows);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_few_values_in_many_rows_is_a_mark() {
        let row = |cells: [&str; 4]| {
            let bytes = |cell: &str| (cell != "NULL").then(|| cell.as_bytes().to_vec());
            cells.map(bytes).to_vec()
        };
        let read = TableStatistics::read(&vec![
            row(["follows", "5000", "id", "5000"]),
            row(["follows", "5000", "kind", "3"]),
            row(["follows", "5000", "reader", "51"]),
            row(["small", "40", "kind", "3"]),
            row(["new", "5000", "state", "0"]),
            row(["bare", "NULL", "NULL", "NULL"]),
        ]);
        let suspects = [("follows", "kind"), ("new", "state")];
        let suspects = suspects.map(|(table, column)| (table.to_owned(), column.to_owned()));
        assert_eq!(read.suspects, BTreeSet::from(suspects));
        assert_eq!(read.rows.get("follows"), Some(&5000));
        assert_eq!(read.rows.get("bare"), Some(&0));
        for (values, expected) in [("8", true), ("9", false)] {
            assert_eq!(
                is_mark(&vec![vec![Some(values.as_bytes().to_vec())]]),
                expected
            );
        }
        assert!(!is_mark(&Vec::new()));
    }
}
