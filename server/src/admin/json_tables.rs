//! Tables as JSON: an array with one object for each row; its keys are the columns, in order.

use serde::{Serialize, Serializer};

use headwater_proxy::session::overview_table::{OverviewCell, OverviewTable};

/// The table's first `most` rows as JSON.
pub(super) fn json(table: &OverviewTable, most: usize) -> String {
    let rows = table.rows.iter().take(most);
    let rows: Vec<_> = rows.map(|row| JsonRow(table.columns, row)).collect();
    // Serialization of texts and numbers does not fail.
    serde_json::to_string(&rows).unwrap_or_default()
}

struct JsonRow<'a>(&'a [&'static str], &'a [OverviewCell]);

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let JsonRow(columns, cells) = self;
        to.collect_map(columns.iter().zip(cells.iter().map(JsonCell)))
    }
}

struct JsonCell<'a>(&'a OverviewCell);

impl Serialize for JsonCell<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            OverviewCell::Null => to.serialize_none(),
            OverviewCell::Number(number) => to.serialize_u64(*number),
            // JSON has no infinity.
            OverviewCell::Fraction(number) if !number.is_finite() => to.serialize_none(),
            OverviewCell::Fraction(number) => to.serialize_f64(*number),
            OverviewCell::Text(text) => to.serialize_str(text),
        }
    }
}
