//! Tables as JSON: an array with an object for each row, whose keys are the columns.

use serde_json::{Map, Number, Value};

use crate::session::table::{Cell, Table};

/// A table as JSON.
pub(super) fn json(table: Table) -> String {
    let columns = table.columns;
    let rows = table.rows.into_iter().map(|row| {
        let cells = columns.iter().zip(row);
        let cells = cells.map(|(name, cell)| ((*name).to_owned(), value(cell)));
        Value::Object(cells.collect::<Map<_, _>>())
    });
    Value::Array(rows.collect()).to_string()
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(number) => Value::Number(number.into()),
        Cell::Fraction(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        Cell::Text(text) => Value::String(text),
    }
}
