//! The rows of a count's reply, made of its numbers.

use headwater_rows::template::ResultEnvelope;
use headwater_wire::cursor::PacketCursor;
use headwater_wire::packet::{HEADER_BYTES, PacketHeader};
use headwater_wire::resultset::column;

/// Types of whole numbers.
const TINYINT: u8 = 1;
const SMALLINT: u8 = 2;
const INT: u8 = 3;
const BIGINT: u8 = 8;
const MEDIUMINT: u8 = 9;
/// The first byte of a text row's NULL.
const NULL: u8 = 0xfb;

/// How many bytes each of the envelope's columns has in a binary row, if all are of types of whole numbers.
pub(super) fn envelope_widths(envelope: &ResultEnvelope) -> Option<Vec<usize>> {
    let head = &envelope.head_packets[..];
    let packet = |at: usize| {
        let header = PacketHeader::parse(head.get(at..)?)?;
        let start = at.checked_add(HEADER_BYTES)?;
        Some(start..start.checked_add(header.len)?)
    };
    // The packet with the number of columns comes first.
    let mut at = packet(0)?.end;
    let mut definitions = Vec::new();
    for _ in 0..envelope.columns {
        let definition = packet(at)?;
        at = definition.end;
        definitions.push(definition);
    }
    let types = column::column_types(head, &definitions)?;
    let width = |kind: u8| match kind {
        BIGINT => Some(8),
        INT | MEDIUMINT => Some(4),
        SMALLINT => Some(2),
        TINYINT => Some(1),
        _ => None,
    };
    types.into_iter().map(width).collect()
}

/// A row of these values. `widths`: the bytes of each in a binary row; `None`: the row is text.
pub(super) fn row_of_values(values: &[Option<u64>], widths: Option<&[usize]>) -> Vec<u8> {
    let Some(widths) = widths else {
        return values.iter().flat_map(|value| text_cell(*value)).collect();
    };
    // The first column has the third bit.
    let mut nulls = vec![0; (values.len() + 2).div_ceil(8)];
    let mut cells = Vec::new();
    for (number, (value, width)) in values.iter().zip(widths).enumerate() {
        let bit = number + 2;
        match value {
            Some(value) => {
                let bytes = value.to_le_bytes();
                cells.extend_from_slice(bytes.get(..*width).unwrap_or(&bytes));
            }
            None => {
                if let Some(byte) = nulls.get_mut(bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
            }
        }
    }
    [vec![0], nulls, cells].concat()
}

fn text_cell(value: Option<u64>) -> Vec<u8> {
    let Some(number) = value else {
        return vec![NULL];
    };
    let digits = number.to_string();
    // At most 20 digits: the length is one byte.
    let length = u8::try_from(digits.len()).unwrap_or(u8::MAX);
    [&[length], digits.as_bytes()].concat()
}

/// True for a row that is as it would be made of its values.
pub(super) fn is_row_of_values(row: &[u8], widths: &[usize], binary: bool) -> bool {
    let values = match binary {
        true => binary_values(row, widths),
        false => text_values(row, widths.len()),
    };
    values.is_some_and(|values| row_of_values(&values, binary.then_some(widths)) == row)
}

fn binary_values(row: &[u8], widths: &[usize]) -> Option<Vec<Option<u64>>> {
    let nulls = (widths.len() + 2).div_ceil(8);
    let mut rest = row.get(1 + nulls..)?;
    let mut values = Vec::new();
    for (number, width) in widths.iter().enumerate() {
        let bit = number + 2;
        if row.get(1 + bit / 8)? & (1 << (bit % 8)) != 0 {
            values.push(None);
            continue;
        }
        let mut bytes = [0; 8];
        let (own, others) = rest.split_at_checked(*width)?;
        bytes.get_mut(..*width)?.copy_from_slice(own);
        rest = others;
        values.push(Some(u64::from_le_bytes(bytes)));
    }
    Some(values)
}

fn text_values(row: &[u8], columns: usize) -> Option<Vec<Option<u64>>> {
    let mut cursor = PacketCursor::new(row);
    let value = |cursor: &mut PacketCursor<'_>| {
        let text = cursor.lenenc_bytes().ok()?;
        std::str::from_utf8(text).ok()?.parse().ok()
    };
    if row == [NULL] {
        return Some(vec![None]);
    }
    (0..columns).map(|_| value(&mut cursor).map(Some)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_numbers_that_it_was_made_of() {
        for number in [0, 1, 9, 10, 255, 256, 1 << 40, u64::MAX] {
            for binary in [false, true] {
                for widths in [&[8][..], &[8, 8], &[8, 8, 8, 8, 8, 8, 8]] {
                    let values = vec![Some(number); widths.len()];
                    let row = row_of_values(&values, binary.then_some(widths));
                    assert!(is_row_of_values(&row, widths, binary));
                }
            }
        }
        assert_eq!(row_of_values(&[Some(42)], None), b"\x0242");
        assert_eq!(row_of_values(&[Some(42), Some(7)], None), b"\x0242\x017");
        assert_eq!(row_of_values(&[Some(42)], Some(&[4])), [0, 0, 42, 0, 0, 0]);
        assert_eq!(
            row_of_values(&[Some(1), None, Some(2)], Some(&[1, 8, 2])),
            [0, 1 << 3, 1, 2, 0]
        );
        for binary in [false, true] {
            let widths = binary.then_some(&[8][..]);
            assert!(is_row_of_values(
                &row_of_values(&[None], widths),
                &[8],
                binary
            ));
        }
        assert!(!is_row_of_values(b"\x0205", &[8], false));
        assert!(!is_row_of_values(&[0, 4, 0, 0], &[2], true));
        assert!(!is_row_of_values(&[0, 0, 7], &[2], true));
    }
}
