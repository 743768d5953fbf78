//! Where the statement is `EXECUTE name USING @a, @b`: its parameters are the values of variables, for which the session is asked.
//!
//! The narrowed statement is a query, with the values in the parameters' places.

use headwater_feed::bind::Parameter;
use headwater_feed::narrow::Open;
use headwater_feed::words::Words;
use headwater_sql::lexer::Lexer;
use headwater_wire::command::{self, DIGITS};
use headwater_wire::resultset::{Answer, Rows};

use super::{Feeds, Stage, Subject, Turn, Why, World, ask};
use crate::prepared::ExecutedByName;

/// Types of columns: BIGINT, and those that strings have by their lengths.
const LONGLONG: u8 = 8;
const STRINGS: [u8; 5] = [249, 250, 251, 252, 253];
/// The character set of what is none.
const BINARY: u16 = 63;

/// An execution by a name.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) executed: ExecutedByName,
    values: Vec<Value>,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Integer(i128),
    /// ASCII without quotes and backslashes: it means the same in every character set and under every `sql_mode`.
    Text(Vec<u8>),
    Null,
}

impl Named {
    pub(super) fn new(executed: ExecutedByName) -> Named {
        Named {
            executed,
            values: Vec::new(),
        }
    }

    /// The words of the statement that has this name.
    pub(super) fn words(&self) -> Result<Option<Words>, Why> {
        let words = self.executed.feed.words().map(Words::named);
        let given = self.executed.variables.len();
        match words.as_ref().is_none_or(|words| words.parameters == given) {
            true => Ok(words),
            false => Err(Why::Execution),
        }
    }

    pub(super) fn parameters(&self) -> Vec<Parameter> {
        self.values.iter().map(Value::parameter).collect()
    }

    /// True where a double may not tell a value from those beside it.
    pub(super) fn has_great(&self) -> bool {
        self.values.iter().any(|value| value.is_great())
    }

    /// The narrowed text with all values in it.
    pub(super) fn with_values(&self, open: &Open, ids: &[u64]) -> Option<Vec<u8>> {
        let literals = |values: &[Value]| values.iter().map(Value::literal).collect::<Vec<_>>();
        let before = self.values.get(..open.before)?;
        let behind = self.values.get(open.before.checked_add(open.replaced)?..)?;
        let ids: Vec<_> = ids.iter().map(|id| id.to_string().into_bytes()).collect();
        let all = [literals(before), ids, literals(behind)].concat();
        filled(&open.text, &all)
    }
}

impl<K: Feeds> World<'_, K> {
    /// Finds the values of variables, where the statement has any.
    pub(super) fn value(&mut self, subject: Subject) -> Turn {
        let variables = self.named.as_deref().map(|named| &named.executed.variables);
        match variables.filter(|variables| !variables.is_empty()) {
            None => self.look(subject),
            Some(variables) => {
                let query = format!("SELECT {}", variables.join(","));
                Ok((Stage::Valuing(subject), ask(vec![query])))
            }
        }
    }

    /// What the session says of them.
    pub(super) fn take_values(
        &mut self,
        subject: &Subject,
        answer: Option<&Answer>,
    ) -> Result<(), Why> {
        let Some(Answer::Rows(rows)) = answer else {
            return Err(Why::Execution);
        };
        self.session.standing.observe(rows.end());
        let named = self.named.as_deref_mut().ok_or(Why::Failed)?;
        let values = values(rows).ok_or(Why::Execution)?;
        named.values = values;
        match named.values.len() == subject.words.parameters {
            true => Ok(()),
            false => Err(Why::Execution),
        }
    }
}

fn values(rows: &Rows) -> Option<Vec<Value>> {
    let row = rows.row(0)?;
    let columns = rows.columns().iter().enumerate();
    columns
        .map(|(at, column)| Value::of(column, row.cell(at)))
        .collect()
}

impl Value {
    /// Of a column that is defined so.
    fn of(column: &[u8], cell: Option<&[u8]>) -> Option<Value> {
        let Some(cell) = cell else {
            return Some(Value::Null);
        };
        // From the end: two bytes of nothing, the decimals, the flags, the type, the length, the character set.
        let [.., low, high, _, _, _, _, kind, _, _, _, _, _] = column else {
            return None;
        };
        let text = std::str::from_utf8(cell).ok()?;
        let plain = |byte: u8| (b' '..0x7f).contains(&byte) && byte != b'\'' && byte != b'\\';
        match *kind {
            LONGLONG => text.parse().ok().map(Value::Integer),
            kind if STRINGS.contains(&kind) => {
                let is_text = u16::from_le_bytes([*low, *high]) != BINARY;
                let is_plain = is_text && cell.iter().copied().all(plain);
                // Longer numbers are compared as a double where they stand as a literal, and as a variable not.
                let is_long = cell.len() > DIGITS && cell.iter().all(u8::is_ascii_digit);
                let is_plain = is_plain && !is_long;
                is_plain.then(|| Value::Text(cell.to_vec()))
            }
            _ => None,
        }
    }

    fn parameter(&self) -> Parameter {
        match self {
            Value::Integer(value) => Parameter::Integer(*value),
            Value::Text(text) => Parameter::Text(text.clone()),
            Value::Null => Parameter::Null,
        }
    }

    fn is_great(&self) -> bool {
        match self {
            Value::Integer(value) => command::Value::Integer(*value).is_great(),
            Value::Text(text) => command::Value::Text(text).is_great(),
            Value::Null => false,
        }
    }

    fn literal(&self) -> Vec<u8> {
        match self {
            Value::Integer(value) => value.to_string().into_bytes(),
            Value::Text(text) => [b"'", &**text, b"'"].concat(),
            Value::Null => b"NULL".to_vec(),
        }
    }
}

/// A text with literals in the places of its parameters. `None`: there are not as many.
fn filled(text: &[u8], literals: &[Vec<u8>]) -> Option<Vec<u8>> {
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
        let of = |cell: &[u8]| Value::of(&number, Some(cell));
        assert_eq!(of(b"7"), Some(Value::Integer(7)));
        assert_eq!(of(b"-7"), Some(Value::Integer(-7)));
        let most = Value::Integer(u64::MAX.into());
        assert_eq!(of(b"18446744073709551615"), Some(most));
        assert_eq!(Value::of(&number, None), Some(Value::Null));
        let of = |charset: u8, cell: &[u8]| Value::of(&column(252, charset), Some(cell));
        assert_eq!(of(45, b"a b"), Some(Value::Text(b"a b".to_vec())));
        let fifteen = b"123456789012345";
        assert_eq!(of(45, fifteen), Some(Value::Text(fifteen.to_vec())));
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
            assert_eq!(Value::of(&column(kind, 63), Some(b"7")), None);
        }
    }

    #[test]
    fn literals_stand_where_parameters_stood() {
        let literals: Vec<Vec<u8>> = [&b"7"[..], b"'x'"].map(<[u8]>::to_vec).into();
        let text = b"SELECT '?' FROM `?` WHERE a = ? /* ? */ AND b = ? -- ?";
        let expected = b"SELECT '?' FROM `?` WHERE a = 7 /* ? */ AND b = 'x' -- ?";
        assert_eq!(filled(text, &literals).unwrap(), expected);
        assert_eq!(filled(b"a = ?", &literals), None);
        assert_eq!(filled(b"? ? ?", &literals), None);
    }
}
