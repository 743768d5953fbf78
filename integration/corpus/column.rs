//! A column of a table, and its test values.

#[derive(Debug)]
pub(super) struct Column {
    pub(super) definition: String,
    /// As SQL literals; NULL is added to every column.
    pub(super) values: Vec<String>,
}

pub(super) fn column(definition: impl Into<String>, values: &[&str]) -> Column {
    Column {
        definition: definition.into(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    }
}
