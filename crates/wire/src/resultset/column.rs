//! Names in a column definition, and a column's value if it is a whole number.

use crate::cursor::PacketCursor;

/// Names in a column definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDefinitionNames<'a> {
    /// The database.
    pub schema: &'a [u8],
    /// The table as the statement names it: its alias, if any.
    pub table: &'a [u8],
    /// The table's real name.
    pub original_table: &'a [u8],
    /// The column's real name; empty for a computed one.
    pub original_name: &'a [u8],
}

/// The names in the payload of a column definition. `None`: it is malformed.
#[must_use]
pub fn definition_names(definition: &[u8]) -> Option<ColumnDefinitionNames<'_>> {
    let mut cursor = PacketCursor::new(definition);
    let mut next = || cursor.lenenc_bytes().ok();
    let [
        _catalogue,
        schema,
        table,
        original_table,
        _name,
        original_name,
    ] = [next()?, next()?, next()?, next()?, next()?, next()?];
    Some(ColumnDefinitionNames {
        schema,
        table,
        original_table,
        original_name,
    })
}

/// Position of a column's collation number in its definition, from the end.
const CHARACTER_SET_FROM_END: usize = 12;

/// The number of a column's character set and collation, as sent. `None`: the definition is malformed.
#[must_use]
pub fn character_set(definition: &[u8]) -> Option<u16> {
    let at = definition.len().checked_sub(CHARACTER_SET_FROM_END)?;
    let bytes = definition.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

/// Position of a column's type in its definition, from the end.
const TYPE_FROM_END: usize = 6;

/// The type of each column. `None`: a definition is malformed.
#[must_use]
pub fn column_types(reply: &[u8], definitions: &[std::ops::Range<usize>]) -> Option<Vec<u8>> {
    let kind = |range: &std::ops::Range<usize>| {
        let definition = reply.get(range.clone())?;
        let at = definition.len().checked_sub(TYPE_FROM_END)?;
        definition.get(at).copied()
    };
    definitions.iter().map(kind).collect()
}

/// A column's value in a row, if it is a whole number from 0 on; `binary`: the row is of the binary protocol.
#[must_use]
pub fn id_cell(row: &[u8], index: usize, kinds: &[u8], binary: bool) -> Option<u64> {
    cell_value(row, index, kinds, binary)?.as_u64()
}

/// Like [`id_cell`], with `Some(None)` for NULL. A number that may be negative gives `None`.
#[must_use]
pub fn nullable_id_cell(
    row: &[u8],
    index: usize,
    kinds: &[u8],
    binary: bool,
) -> Option<Option<u64>> {
    let value = cell_value(row, index, kinds, binary)?;
    match value {
        ResultCellValue::Null => Some(None),
        ResultCellValue::Integer(bytes)
            if bytes.last().is_some_and(|highest| highest & 0x80 != 0) =>
        {
            None
        }
        ResultCellValue::Text(_) | ResultCellValue::Integer(_) => value.as_u64().map(Some),
    }
}

/// A value in a row.
#[derive(Clone, Copy)]
enum ResultCellValue<'a> {
    Null,
    /// Of the text protocol.
    Text(&'a [u8]),
    /// An integer of the binary protocol, little-endian.
    Integer(&'a [u8]),
}

impl ResultCellValue<'_> {
    fn as_u64(self) -> Option<u64> {
        match self {
            ResultCellValue::Null => None,
            ResultCellValue::Text(text) => {
                let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
                let text = std::str::from_utf8(text).ok().filter(|_| digits)?;
                text.parse().ok()
            }
            ResultCellValue::Integer(bytes) => {
                let bytes = bytes.iter().rev();
                Some(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
        }
    }
}

fn cell_value<'a>(
    row: &'a [u8],
    index: usize,
    kinds: &[u8],
    binary: bool,
) -> Option<ResultCellValue<'a>> {
    match binary {
        false => text_value(row, index),
        true => binary_value(row, index, kinds),
    }
}

fn text_value(row: &[u8], index: usize) -> Option<ResultCellValue<'_>> {
    const NULL: u8 = 0xfb;
    let mut cursor = PacketCursor::new(row);
    for column in 0..=index {
        let mut ahead = cursor;
        let value = match ahead.u8().ok()? {
            NULL => {
                cursor = ahead;
                ResultCellValue::Null
            }
            _ => ResultCellValue::Text(cursor.lenenc_bytes().ok()?),
        };
        if column == index {
            return Some(value);
        }
    }
    None
}

/// Types with a fixed width; values of all others begin with their length.
const WIDTHS: [(u8, usize); 8] = [
    (TINY, 1),
    (SHORT, 2),
    (YEAR, 2),
    (INT24, 4),
    (LONG, 4),
    (LONGLONG, 8),
    (FLOAT, 4),
    (DOUBLE, 8),
];
const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const FLOAT: u8 = 4;
const DOUBLE: u8 = 5;
const NULL: u8 = 6;
const LONGLONG: u8 = 8;
const INT24: u8 = 9;
const YEAR: u8 = 13;

fn binary_value<'a>(row: &'a [u8], index: usize, kinds: &[u8]) -> Option<ResultCellValue<'a>> {
    // The null bitmap begins with two reserved bits.
    const RESERVED: usize = 2;
    let mut cursor = PacketCursor::new(row);
    (cursor.u8().ok()? == 0).then_some(())?;
    let nulls = cursor.take((kinds.len() + RESERVED).div_ceil(8)).ok()?;
    let is_null = |column: usize| {
        let bit = column + RESERVED;
        nulls
            .get(bit / 8)
            .is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
    };
    for (column, kind) in kinds.iter().enumerate().take(index + 1) {
        if is_null(column) || *kind == NULL {
            if column == index {
                return Some(ResultCellValue::Null);
            }
            continue;
        }
        let width = WIDTHS.iter().find(|(code, _)| code == kind);
        let value = match width {
            Some((_, width)) => cursor.take(*width).ok()?,
            None => cursor.lenenc_bytes().ok()?,
        };
        if column == index {
            let whole = matches!(*kind, TINY | SHORT | INT24 | LONG | LONGLONG);
            return whole.then_some(ResultCellValue::Integer(value));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_definition() {
        let definition =
            b"\x03def\x03app\x01m\x07message\x01i\x02id\x0c\x3f\0\x0b\0\0\0\x03\x03\x42\0\0\0";
        let names = definition_names(definition);
        let expected = ColumnDefinitionNames {
            schema: b"app",
            table: b"m",
            original_table: b"message",
            original_name: b"id",
        };
        assert_eq!(names, Some(expected));
        let whole = 0..definition.len();
        assert_eq!(
            column_types(definition, std::slice::from_ref(&whole)),
            Some(vec![LONG])
        );
        assert_eq!(definition_names(b"\x03def\x03ap"), None);
    }

    #[test]
    fn an_id_is_read_from_a_text_row() {
        let row = b"\xfb\x03abc\x0242";
        assert_eq!(id_cell(row, 2, &[], false), Some(42));
        assert_eq!(id_cell(row, 0, &[], false), None);
        assert_eq!(id_cell(row, 1, &[], false), None);
        assert_eq!(id_cell(row, 3, &[], false), None);
        assert_eq!(id_cell(b"\x02-1", 0, &[], false), None);
        assert_eq!(id_cell(b"\0", 0, &[], false), None);
    }

    #[test]
    fn a_reference_may_be_to_nothing() {
        let of = |row: &[u8], index| nullable_id_cell(row, index, &[LONG, LONG], false);
        assert_eq!(of(b"\xfb\x0242", 0), Some(None));
        assert_eq!(of(b"\xfb\x0242", 1), Some(Some(42)));
        assert_eq!(of(b"\xfb\x02-1", 1), None);
        assert_eq!(of(b"\xfb", 1), None);
        let of = |row: &[u8], index| nullable_id_cell(row, index, &[LONG, LONG], true);
        assert_eq!(of(b"\0\x04\x2a\0\0\0", 0), Some(None));
        assert_eq!(of(b"\0\x04\x2a\0\0\0", 1), Some(Some(42)));
        // Negative or not: the sign is not in these bytes.
        assert_eq!(of(b"\0\x04\x2a\0\0\x80", 1), None);
    }

    #[test]
    fn an_id_is_read_from_a_binary_row() {
        let kinds = [253, DOUBLE, 12, LONG, LONGLONG];
        // A string, NULL, a date of four bytes, two numbers.
        let row = b"\0\x08\x02hi\x04\xea\x07\x01\x1f\x2a\0\0\0\x07\x01\0\0\0\0\0\0";
        assert_eq!(id_cell(row, 3, &kinds, true), Some(42));
        assert_eq!(id_cell(row, 4, &kinds, true), Some(0x107));
        assert_eq!(id_cell(row, 0, &kinds, true), None);
        assert_eq!(id_cell(row, 1, &kinds, true), None);
        assert_eq!(id_cell(&row[..12], 4, &kinds, true), None);
    }
}
