//! A table about Headwater: a client gets it as a result set, others as JSON.

use std::fmt::Write as _;

use headwater_sql::{escape_hidden, escape_hidden_in_lines, hex_literal, is_like, quoted};

/// A table of the overview.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverviewTable {
    /// Column names, in lower case, words joined by `_`.
    pub columns: &'static [&'static str],
    /// One cell for each column.
    pub rows: Vec<Vec<OverviewCell>>,
}

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum OverviewCell {
    /// Unknown, or not applicable.
    Null,
    /// A whole number.
    Number(u64),
    /// A number with a fraction.
    Fraction(f64),
    /// A text, with hidden characters escaped.
    Text(String),
}

impl From<u64> for OverviewCell {
    fn from(number: u64) -> OverviewCell {
        OverviewCell::Number(number)
    }
}

impl From<usize> for OverviewCell {
    fn from(number: usize) -> OverviewCell {
        OverviewCell::Number(number as u64)
    }
}

impl From<f64> for OverviewCell {
    fn from(number: f64) -> OverviewCell {
        OverviewCell::Fraction(number)
    }
}

impl From<&str> for OverviewCell {
    fn from(text: &str) -> OverviewCell {
        OverviewCell::Text(escape_hidden(text).into_owned())
    }
}

impl From<String> for OverviewCell {
    fn from(text: String) -> OverviewCell {
        OverviewCell::Text(escape_hidden(&text).into_owned())
    }
}

impl<T: Into<OverviewCell>> From<Option<T>> for OverviewCell {
    fn from(cell: Option<T>) -> OverviewCell {
        cell.map_or(OverviewCell::Null, Into::into)
    }
}

impl OverviewCell {
    /// A text of several lines, written by Headwater.
    #[must_use]
    pub fn lines(text: &str) -> OverviewCell {
        OverviewCell::Text(escape_hidden_in_lines(text))
    }

    /// Writes it as an SQL literal. A column of both kinds writes numbers `as_text`, or all would get decimals.
    fn write_literal(&self, as_text: bool, sql: &mut String) {
        let quote = if as_text { "'" } else { "" };
        let _ = match self {
            OverviewCell::Null => write!(sql, "NULL"),
            OverviewCell::Number(number) => write!(sql, "{quote}{number}{quote}"),
            // With three decimals: all of these are seconds, milliseconds or shares.
            OverviewCell::Fraction(number) if number.is_finite() => {
                write!(sql, "{quote}{number:.3}{quote}")
            }
            OverviewCell::Fraction(_) => write!(sql, "NULL"),
            OverviewCell::Text(text) if text.is_empty() => write!(sql, "''"),
            OverviewCell::Text(text) => write!(sql, "CONVERT({} USING utf8mb4)", hex_literal(text)),
        };
    }
}

impl OverviewTable {
    /// An empty table.
    #[must_use]
    pub fn with_columns(columns: &'static [&'static str]) -> OverviewTable {
        OverviewTable {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn add<const N: usize>(&mut self, row: [OverviewCell; N]) {
        self.rows.push(row.into());
    }

    /// Keeps the rows whose first cell matches the LIKE pattern.
    #[must_use]
    pub fn filtered_like(mut self, pattern: &str) -> OverviewTable {
        self.rows.retain(
            |row| matches!(row.first(), Some(OverviewCell::Text(text)) if is_like(text, pattern)),
        );
        self
    }

    /// A SELECT that the server answers with the table, cut to the first rows that fit in `most` bytes.
    #[must_use]
    pub fn select_statement(&self, most: usize) -> String {
        let has = |at: usize, is: fn(&OverviewCell) -> bool| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.any(is)
        };
        let mixed = |at: usize| {
            has(at, |cell| matches!(cell, OverviewCell::Number(_)))
                && has(at, |cell| {
                    matches!(cell, OverviewCell::Fraction(_) | OverviewCell::Text(_))
                })
        };
        let mixed: Vec<bool> = (0..self.columns.len()).map(mixed).collect();
        let named = |((name, cell), as_text): ((&&str, &OverviewCell), &bool)| {
            let mut sql = String::new();
            cell.write_literal(*as_text, &mut sql);
            format!("{sql} AS {}", quoted(name))
        };
        let Some((first, others)) = self.rows.split_first() else {
            let empty = OverviewCell::from("");
            let columns = self
                .columns
                .iter()
                .map(|name| named(((name, &empty), &false)));
            let columns: Vec<String> = columns.collect();
            return format!("SELECT {} FROM DUAL WHERE 1 = 0", columns.join(", "));
        };
        let columns = self.columns.iter().zip(first).zip(&mixed).map(named);
        let columns: Vec<String> = columns.collect();
        let mut sql = format!("SELECT {}", columns.join(", "));
        for row in others {
            let length = sql.len();
            for (at, (cell, as_text)) in row.iter().zip(&mixed).enumerate() {
                sql.push_str(if at == 0 { " UNION ALL SELECT " } else { ", " });
                cell.write_literal(*as_text, &mut sql);
            }
            if sql.len() > most {
                sql.truncate(length);
                break;
            }
        }
        sql
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[OverviewCell; 2]]) -> OverviewTable {
        let mut table = OverviewTable::with_columns(&["name", "value"]);
        rows.iter().for_each(|row| table.add(row.clone()));
        table
    }

    #[test]
    fn a_table_is_what_a_select_without_tables_says() {
        let told = table(&[
            ["it's".into(), 7_u64.into()],
            ["".into(), OverviewCell::Null],
            ["b".into(), 0.25.into()],
        ]);
        assert_eq!(
            told.select_statement(1_000),
            "SELECT CONVERT(0x69742773 USING utf8mb4) AS `name`, '7' AS `value` UNION ALL SELECT '', NULL UNION ALL SELECT \
             CONVERT(0x62 USING utf8mb4), '0.250'"
        );
        assert_eq!(
            table(&[]).select_statement(1_000),
            "SELECT '' AS `name`, '' AS `value` FROM DUAL WHERE 1 = 0"
        );
    }

    #[test]
    fn what_is_not_seen_is_escaped() {
        let forged = "tl\n2026 ERROR \u{1b}[31m\u{202e}";
        for cell in [
            OverviewCell::from(forged),
            OverviewCell::from(forged.to_owned()),
        ] {
            assert_eq!(
                cell,
                OverviewCell::Text(r"tl\n2026 ERROR \u{1b}[31m\u{202e}".into())
            );
        }
        assert_eq!(
            OverviewCell::lines("a\nb\u{7f}"),
            OverviewCell::Text("a\nb\\u{7f}".into())
        );
    }

    #[test]
    fn a_long_table_ends_after_a_row() {
        let row = |number: u64| ["x".into(), number.into()];
        let told = table(&[row(1), row(2), row(3)]);
        let two = told.select_statement(1_000).len() - 10;
        assert_eq!(
            told.select_statement(two),
            table(&[row(1), row(2)]).select_statement(1_000)
        );
        assert_eq!(
            told.select_statement(0),
            table(&[row(1)]).select_statement(1_000)
        );
    }

    #[test]
    fn rows_are_chosen_by_their_first_cell() {
        let told = table(&[["ab".into(), 1_u64.into()], ["cb".into(), 2_u64.into()]]);
        assert_eq!(told.filtered_like("a%").rows.len(), 1);
    }
}
