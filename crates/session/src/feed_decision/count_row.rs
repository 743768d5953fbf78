//! The one row of a count's reply, made of its number.

use headwater_rows::template::ResultEnvelope;
use headwater_wire::packet::{HEADER_BYTES, PacketHeader};
use headwater_wire::resultset::column;

/// Types of whole numbers.
const TINYINT: u8 = 1;
const SMALLINT: u8 = 2;
const INT: u8 = 3;
const BIGINT: u8 = 8;
const MEDIUMINT: u8 = 9;

/// How many bytes the envelope's one column has in a binary row, if it is of a type of whole numbers.
pub(super) fn envelope_width(envelope: &ResultEnvelope) -> Option<usize> {
    if envelope.columns != 1 {
        return None;
    }
    // The packet with the number of columns comes first.
    let after = |bytes: &[u8]| {
        let header = PacketHeader::parse(bytes)?;
        Some((HEADER_BYTES, HEADER_BYTES.checked_add(header.len)?))
    };
    let head = &envelope.head_packets[..];
    let (_, first) = after(head)?;
    let (start, end) = after(head.get(first..)?)?;
    let definition = first.checked_add(start)?..first.checked_add(end)?;
    match *column::column_types(head, &[definition])? {
        [BIGINT] => Some(8),
        [INT | MEDIUMINT] => Some(4),
        [SMALLINT] => Some(2),
        [TINYINT] => Some(1),
        _ => None,
    }
}

/// The row of a reply with one value. `width`: its bytes in a binary row; `None`: the row is text.
pub(super) fn row_of_value(value: Option<u64>, width: Option<usize>) -> Vec<u8> {
    const NULL: u8 = 0xfb;
    match (value, width) {
        (Some(number), Some(width)) => {
            let bytes = number.to_le_bytes();
            [&[0, 0], bytes.get(..width).unwrap_or(&bytes)].concat()
        }
        // The first column has the third bit.
        (None, Some(_)) => vec![0, 1 << 2],
        (None, None) => vec![NULL],
        (Some(number), None) => {
            let digits = number.to_string();
            // At most 20 digits: the length is one byte.
            let length = u8::try_from(digits.len()).unwrap_or(u8::MAX);
            [&[length], digits.as_bytes()].concat()
        }
    }
}

/// The value of such a row; `None`: it is made otherwise.
pub(super) fn value_of_row(row: &[u8], width: Option<usize>) -> Option<Option<u64>> {
    let value = if row_of_value(None, width) == row {
        None
    } else if let Some(width) = width {
        let mut bytes = [0; 8];
        bytes
            .get_mut(..width)?
            .copy_from_slice(row.get(2..)?.get(..width)?);
        Some(u64::from_le_bytes(bytes))
    } else {
        Some(std::str::from_utf8(row.get(1..)?).ok()?.parse().ok()?)
    };
    (row_of_value(value, width) == row).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_number_that_it_was_made_of() {
        for number in [0, 1, 9, 10, 255, 256, 1 << 40, u64::MAX] {
            for binary in [false, true] {
                let width = binary.then_some(8);
                let row = row_of_value(Some(number), width);
                assert_eq!(value_of_row(&row, width), Some(Some(number)));
            }
        }
        assert_eq!(row_of_value(Some(42), None), b"\x0242");
        assert_eq!(row_of_value(Some(42), Some(4)), [0, 0, 42, 0, 0, 0]);
        for width in [None, Some(8), Some(1)] {
            assert_eq!(value_of_row(&row_of_value(None, width), width), Some(None));
        }
        assert_eq!(value_of_row(b"\x0205", None), None);
        assert_eq!(value_of_row(&[0, 4, 0, 0], Some(2)), None);
        assert_eq!(value_of_row(&[0, 0, 7], Some(2)), None);
    }
}
