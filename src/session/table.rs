//! A table that Headwater tells of itself: to a client as a result set, to others as they read it.

use std::fmt::Write as _;

use crate::sql::{hex, is_like, quoted, shown, shown_lines};

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names, in lower case, words joined by `_`.
    pub columns: &'static [&'static str],
    /// One cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// It is not known, or means nothing here.
    Null,
    /// A whole number.
    Number(u64),
    /// Another one.
    Fraction(f64),
    /// A text, as it is shown: what is not seen in it is escaped.
    Text(String),
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Number(number)
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Cell {
        Cell::Number(number as u64)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::Fraction(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(shown(text).into_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(shown(&text).into_owned())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map_or(Cell::Null, Into::into)
    }
}

impl Cell {
    /// A text in lines that Headwater has written.
    #[must_use]
    pub fn lines(text: &str) -> Cell {
        Cell::Text(shown_lines(text))
    }

    /// Writes it as a literal; numbers of a column that has both kinds `as_text`, or all would get digits behind the point.
    fn push(&self, as_text: bool, sql: &mut String) {
        let quote = if as_text { "'" } else { "" };
        let _ = match self {
            Cell::Null => write!(sql, "NULL"),
            Cell::Number(number) => write!(sql, "{quote}{number}{quote}"),
            // As a number of three digits behind the point: all of these are seconds, milliseconds or shares.
            Cell::Fraction(number) if number.is_finite() => {
                write!(sql, "{quote}{number:.3}{quote}")
            }
            Cell::Fraction(_) => write!(sql, "NULL"),
            Cell::Text(text) if text.is_empty() => write!(sql, "''"),
            Cell::Text(text) => write!(sql, "CONVERT({} USING utf8mb4)", hex(text)),
        };
    }
}

impl Table {
    /// Nothing in it yet.
    #[must_use]
    pub fn of(columns: &'static [&'static str]) -> Table {
        Table {
            columns,
            rows: Vec::new(),
        }
    }

    /// One row more.
    pub fn add<const N: usize>(&mut self, row: [Cell; N]) {
        self.rows.push(row.into());
    }

    /// Those rows alone whose first cell is like this.
    #[must_use]
    pub fn like(mut self, pattern: &str) -> Table {
        self.rows
            .retain(|row| matches!(row.first(), Some(Cell::Text(text)) if is_like(text, pattern)));
        self
    }

    /// A SELECT that the server answers with the table, or with the first rows of it that make `most` bytes.
    #[must_use]
    pub fn select(&self, most: usize) -> String {
        let has = |at: usize, is: fn(&Cell) -> bool| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.any(is)
        };
        let mixed = |at: usize| {
            has(at, |cell| matches!(cell, Cell::Number(_)))
                && has(at, |cell| matches!(cell, Cell::Fraction(_) | Cell::Text(_)))
        };
        let mixed: Vec<bool> = (0..self.columns.len()).map(mixed).collect();
        let named = |((name, cell), as_text): ((&&str, &Cell), &bool)| {
            let mut sql = String::new();
            cell.push(*as_text, &mut sql);
            format!("{sql} AS {}", quoted(name))
        };
        let Some((first, others)) = self.rows.split_first() else {
            let empty = Cell::from("");
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
                cell.push(*as_text, &mut sql);
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

    fn table(rows: &[[Cell; 2]]) -> Table {
        let mut table = Table::of(&["name", "value"]);
        rows.iter().for_each(|row| table.add(row.clone()));
        table
    }

    #[test]
    fn a_table_is_what_a_select_without_tables_says() {
        let told = table(&[
            ["it's".into(), 7_u64.into()],
            ["".into(), Cell::Null],
            ["b".into(), 0.25.into()],
        ]);
        assert_eq!(
            told.select(1_000),
            "SELECT CONVERT(0x69742773 USING utf8mb4) AS `name`, '7' AS `value` UNION ALL SELECT '', NULL UNION ALL SELECT \
             CONVERT(0x62 USING utf8mb4), '0.250'"
        );
        assert_eq!(
            table(&[]).select(1_000),
            "SELECT '' AS `name`, '' AS `value` FROM DUAL WHERE 1 = 0"
        );
    }

    #[test]
    fn what_is_not_seen_is_escaped() {
        let forged = "tl\n2026 ERROR \u{1b}[31m\u{202e}";
        for cell in [Cell::from(forged), Cell::from(forged.to_owned())] {
            assert_eq!(
                cell,
                Cell::Text(r"tl\n2026 ERROR \u{1b}[31m\u{202e}".into())
            );
        }
        assert_eq!(Cell::lines("a\nb\u{7f}"), Cell::Text("a\nb\\u{7f}".into()));
    }

    #[test]
    fn what_is_too_long_ends_behind_a_row() {
        let row = |number: u64| ["x".into(), number.into()];
        let told = table(&[row(1), row(2), row(3)]);
        let two = told.select(1_000).len() - 10;
        assert_eq!(told.select(two), table(&[row(1), row(2)]).select(1_000));
        assert_eq!(told.select(0), table(&[row(1)]).select(1_000));
    }

    #[test]
    fn rows_are_chosen_by_their_first_cell() {
        let told = table(&[["ab".into(), 1_u64.into()], ["cb".into(), 2_u64.into()]]);
        assert_eq!(told.like("a%").rows.len(), 1);
    }
}
