//! Tables as JSON: an array with an object for each row, whose keys are the columns in their order.

use serde::{Serialize, Serializer};

use crate::session::table::{Cell, Table};

/// A table as JSON, or its first rows.
pub(super) fn json(table: &Table, most: usize) -> String {
    let rows = table.rows.iter().take(most);
    let rows: Vec<_> = rows.map(|row| Row(table.columns, row)).collect();
    // What holds texts and numbers alone can be written.
    serde_json::to_string(&rows).unwrap_or_default()
}

struct Row<'a>(&'a [&'static str], &'a [Cell]);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Row(columns, cells) = self;
        to.collect_map(columns.iter().zip(cells.iter().map(Value)))
    }
}

struct Value<'a>(&'a Cell);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Cell::Null => to.serialize_none(),
            Cell::Number(number) => to.serialize_u64(*number),
            // JSON has no infinity.
            Cell::Fraction(number) if !number.is_finite() => to.serialize_none(),
            Cell::Fraction(number) => to.serialize_f64(*number),
            Cell::Text(text) => to.serialize_str(text),
        }
    }
}
