//! Narrows `EXECUTE name USING @a, @b`: its parameters are the values of variables, which the session is queried for.
//!
//! The narrowed statement is a query, with the values as literals.

use headwater_feed::binding::ParameterValue;
use headwater_feed::narrowed_text::PreparedNarrowedText;
use headwater_feed::words::StatementWords;
use headwater_sql::lexer::Lexer;
use headwater_wire::command::{self, DOUBLE_PRECISION_DIGITS};
use headwater_wire::resultset::{QueryReply, ResultSet};

use super::{
    FeedContext, FeedKnowledge, FeedRelayReason, FeedStage, FeedTransition, ServedStatement,
    query_session,
};
use crate::prepared_statements::NamedExecution;

/// Column types: BIGINT, and those of strings by length.
const LONGLONG: u8 = 8;
const STRING_TYPES: [u8; 5] = [249, 250, 251, 252, 253];
const BINARY_CHARSET: u16 = 63;

#[derive(Debug)]
pub(super) struct NamedFeedExecution {
    pub(super) executed: NamedExecution,
    values: Vec<VariableValue>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum VariableValue {
    Integer(i128),
    /// ASCII without quotes and backslashes: it means the same in every character set and `sql_mode`.
    Text(Vec<u8>),
    Null,
}

impl NamedFeedExecution {
    pub(super) fn new(executed: NamedExecution) -> NamedFeedExecution {
        NamedFeedExecution {
            executed,
            values: Vec::new(),
        }
    }

    pub(super) fn words(&self) -> Result<Option<StatementWords>, FeedRelayReason> {
        let words = self
            .executed
            .feed
            .words()
            .map(StatementWords::executed_by_name);
        let given = self.executed.variables.len();
        match words.as_ref().is_none_or(|words| words.parameters == given) {
            true => Ok(words),
            false => Err(FeedRelayReason::Execution),
        }
    }

    pub(super) fn parameters(&self) -> Vec<ParameterValue> {
        self.values.iter().map(VariableValue::parameter).collect()
    }

    /// True where a double may not represent a value exactly.
    pub(super) fn has_large_number(&self) -> bool {
        self.values.iter().any(|value| value.is_large_number())
    }

    /// The narrowed text with all values.
    pub(super) fn with_values(
        &self,
        narrowed: &PreparedNarrowedText,
        ids: &[u64],
    ) -> Option<Vec<u8>> {
        let literals = |values: &[VariableValue]| {
            values
                .iter()
                .map(VariableValue::literal)
                .collect::<Vec<_>>()
        };
        let before = self.values.get(..narrowed.parameters_before)?;
        let after = self.values.get(
            narrowed
                .parameters_before
                .checked_add(narrowed.parameters_replaced)?..,
        )?;
        let ids: Vec<_> = ids.iter().map(|id| id.to_string().into_bytes()).collect();
        let all = [literals(before), ids, literals(after)].concat();
        with_literals(&narrowed.text, &all)
    }
}

impl<K: FeedKnowledge> FeedContext<'_, K> {
    /// Queries the values of variables, if the statement has any.
    pub(super) fn read_variables(&mut self, subject: ServedStatement) -> FeedTransition {
        let variables = self.named.as_deref().map(|named| &named.executed.variables);
        match variables.filter(|variables| !variables.is_empty()) {
            None => self.request_candidates(subject),
            Some(variables) => {
                let query = format!("SELECT {}", variables.join(","));
                Ok((
                    FeedStage::ReadingVariables(subject),
                    query_session(vec![query]),
                ))
            }
        }
    }

    pub(super) fn take_values(
        &mut self,
        subject: &ServedStatement,
        answer: Option<&QueryReply>,
    ) -> Result<(), FeedRelayReason> {
        let Some(QueryReply::Rows(rows)) = answer else {
            return Err(FeedRelayReason::Execution);
        };
        self.session.state.observe(rows.end());
        let named = self.named.as_deref_mut().ok_or(FeedRelayReason::Failed)?;
        let values = values(rows).ok_or(FeedRelayReason::Execution)?;
        named.values = values;
        match named.values.len() == subject.words.parameters {
            true => Ok(()),
            false => Err(FeedRelayReason::Execution),
        }
    }
}

fn values(rows: &ResultSet) -> Option<Vec<VariableValue>> {
    let row = rows.row(0)?;
    let columns = rows.columns().iter().enumerate();
    columns
        .map(|(at, column)| VariableValue::of(column, row.cell(at)))
        .collect()
}

impl VariableValue {
    /// A value in a column with this definition.
    fn of(column: &[u8], cell: Option<&[u8]>) -> Option<VariableValue> {
        let Some(cell) = cell else {
            return Some(VariableValue::Null);
        };
        // From the end: two filler bytes, decimals, flags, type, length, character set.
        let [.., low, high, _, _, _, _, kind, _, _, _, _, _] = column else {
            return None;
        };
        let text = std::str::from_utf8(cell).ok()?;
        let plain = |byte: u8| (b' '..0x7f).contains(&byte) && byte != b'\'' && byte != b'\\';
        match *kind {
            LONGLONG => text.parse().ok().map(VariableValue::Integer),
            kind if STRING_TYPES.contains(&kind) => {
                let is_text = u16::from_le_bytes([*low, *high]) != BINARY_CHARSET;
                let is_plain = is_text && cell.iter().copied().all(plain);
                // Longer numbers are compared as doubles where they are literals, but not where they are variables.
                let is_long =
                    cell.len() > DOUBLE_PRECISION_DIGITS && cell.iter().all(u8::is_ascii_digit);
                let is_plain = is_plain && !is_long;
                is_plain.then(|| VariableValue::Text(cell.to_vec()))
            }
            _ => None,
        }
    }

    fn parameter(&self) -> ParameterValue {
        match self {
            VariableValue::Integer(value) => ParameterValue::Integer(*value),
            VariableValue::Text(text) => ParameterValue::Text(text.clone()),
            VariableValue::Null => ParameterValue::Null,
        }
    }

    fn is_large_number(&self) -> bool {
        match self {
            VariableValue::Integer(value) => {
                command::BoundValue::Integer(*value).exceeds_double_precision()
            }
            VariableValue::Text(text) => command::BoundValue::Text(text).exceeds_double_precision(),
            VariableValue::Null => false,
        }
    }

    fn literal(&self) -> Vec<u8> {
        match self {
            VariableValue::Integer(value) => value.to_string().into_bytes(),
            VariableValue::Text(text) => [b"'", &**text, b"'"].concat(),
            VariableValue::Null => b"NULL".to_vec(),
        }
    }
}

/// A text with literals in place of its parameters. `None`: their counts differ.
fn with_literals(text: &[u8], literals: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut filled = Vec::with_capacity(text.len());
    let mut from = 0;
    let mut literals = literals.iter();
    for token in Lexer::new(text).filter(|token| token.is_punct(b'?')) {
        filled.extend_from_slice(text.get(from..token.at)?);
        filled.extend_from_slice(literals.next()?);
        from = token.at + 1;
    }
    filled.extend_from_slice(text.get(from..)?);
    literals.next().is_none().then_some(filled)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn column(kind: u8, charset: u8) -> Vec<u8> {
        let mut column = b"name\x0c".to_vec();
        column.extend_from_slice(&[charset, 0, 20, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
        column
    }

    #[test]
    fn values_of_variables_are_numbers_and_plain_strings() {
        let number = column(LONGLONG, 63);
        let of = |cell: &[u8]| VariableValue::of(&number, Some(cell));
        assert_eq!(of(b"7"), Some(VariableValue::Integer(7)));
        assert_eq!(of(b"-7"), Some(VariableValue::Integer(-7)));
        let most = VariableValue::Integer(u64::MAX.into());
        assert_eq!(of(b"18446744073709551615"), Some(most));
        assert_eq!(VariableValue::of(&number, None), Some(VariableValue::Null));
        let of = |charset: u8, cell: &[u8]| VariableValue::of(&column(252, charset), Some(cell));
        assert_eq!(of(45, b"a b"), Some(VariableValue::Text(b"a b".to_vec())));
        let fifteen = b"123456789012345";
        assert_eq!(of(45, fifteen), Some(VariableValue::Text(fifteen.to_vec())));
        for (charset, cell) in [
            (45, "1234567890123456"),
            (63, "a"),
            (45, "it's"),
            (45, "\\"),
            (45, "\u{e4}"),
            (45, "\n"),
        ] {
            assert_eq!(of(charset, cell.as_bytes()), None, "{cell}");
        }
        // DOUBLE and DECIMAL.
        for kind in [5, 246] {
            assert_eq!(VariableValue::of(&column(kind, 63), Some(b"7")), None);
        }
    }

    #[test]
    fn literals_stand_where_parameters_stood() {
        let literals: Vec<Vec<u8>> = [&b"7"[..], b"'x'"].map(<[u8]>::to_vec).into();
        let text = b"SELECT '?' FROM `?` WHERE a = ? /* ? */ AND b = ? -- ?";
        let expected = b"SELECT '?' FROM `?` WHERE a = 7 /* ? */ AND b = 'x' -- ?";
        assert_eq!(with_literals(text, &literals).unwrap(), expected);
        assert_eq!(with_literals(b"a = ?", &literals), None);
        assert_eq!(with_literals(b"? ? ?", &literals), None);
    }
}
