//! Faults that are known: what shows them is not drawn, so that others are found behind them. `HEADWATER_FAULTS` names those that are to
//! be drawn all the same (`all`: each).

/// Two spellings of an expression without a name, of which the server makes two names of a column.
pub(super) const SPELLED_EXPRESSION: &str = "spelled_expression";
/// A text that the server refuses, and that is told apart from a right one by white space alone: `< =`, `1 .5`.
pub(super) const SPLIT_OPERATOR: &str = "split_operator";
/// `LIMIT 0` and `LIMIT 1` in a subquery.
pub(super) const SUBQUERY_LIMIT: &str = "subquery_limit";
/// Two upper bounds of a time, of which one has more digits than the column.
pub(super) const TWO_BOUNDS: &str = "two_bounds";
/// A parameter whose type on the wire changes its value.
pub(super) const PARAMETER_TYPE: &str = "parameter_type";
/// `FOUND_ROWS()` behind a page with OFFSET.
pub(super) const FOUND_BEHIND_OFFSET: &str = "found_behind_offset";
/// MariaDB: warnings of before behind a page and a SELECT without tables.
pub(super) const OLD_CONDITIONS: &str = "old_conditions";
/// Another `sql_mode` at EXECUTE than at PREPARE.
pub(super) const MODE_AT_PREPARE: &str = "mode_at_prepare";
/// Other character sets at an execution without types than when the types came, with one that Headwater answered (docs/limits.md).
pub(super) const CHARACTER_SET_OF_TYPES: &str = "character_set_of_types";
/// `FOUND_ROWS()` behind a SELECT that failed, and that did not come right behind a page.
pub(super) const FOUND_BEHIND_ERROR: &str = "found_behind_error";
/// More than key flags differs in the description of a column.
pub(super) const COLUMN_DESCRIPTION: &str = "column_description";

/// True where what shows this fault is left out.
pub(super) fn left_out(fault: &str) -> bool {
    let shown = std::env::var("HEADWATER_FAULTS").unwrap_or_default();
    !shown.split(',').any(|name| name == fault || name == "all")
}
