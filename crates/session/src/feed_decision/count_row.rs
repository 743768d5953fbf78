//! The rows of a count's reply, made of its numbers.

use headwater_feed::query::{AggregateFunction, LargestKind};
use headwater_rows::template::ResultEnvelope;
use headwater_timeline::datetime::{DatetimeValue, MAX_FRACTION_DIGITS};
use headwater_wire::cursor::PacketCursor;
use headwater_wire::packet::{HEADER_BYTES, PacketHeader};
use headwater_wire::resultset::column;

/// Types of whole numbers and of dates.
const TINYINT: u8 = 1;
const SMALLINT: u8 = 2;
const INT: u8 = 3;
const BIGINT: u8 = 8;
const TIMESTAMP: u8 = 7;
const MEDIUMINT: u8 = 9;
const DATE: u8 = 10;
const DATETIME: u8 = 12;
/// The first byte of a text row's NULL.
const NULL: u8 = 0xfb;

/// A value of a count's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellValue {
    Number(u64),
    Moment(DatetimeValue),
}

/// How a column's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellFormat {
    /// A whole number, with this many bytes in a binary row.
    Number {
        bytes: usize,
    },
    Date,
    /// A date with a time, with this many fraction digits.
    Moment {
        digits: u8,
    },
}

/// How the envelope's columns are written, if all are of types that `function` shows.
pub(super) fn envelope_formats(
    envelope: &ResultEnvelope,
    function: AggregateFunction,
) -> Option<Vec<CellFormat>> {
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
    let format = |kind: u8| match (kind, function.largest().map(|largest| largest.kind)) {
        (BIGINT, _) => Some(CellFormat::Number { bytes: 8 }),
        (INT | MEDIUMINT, _) => Some(CellFormat::Number { bytes: 4 }),
        (SMALLINT, _) => Some(CellFormat::Number { bytes: 2 }),
        (TINYINT, _) => Some(CellFormat::Number { bytes: 1 }),
        (DATE, Some(LargestKind::Moment { .. })) => Some(CellFormat::Date),
        (DATETIME | TIMESTAMP, Some(LargestKind::Moment { digits, .. })) => {
            Some(CellFormat::Moment { digits })
        }
        _ => None,
    };
    types.into_iter().map(format).collect()
}

/// A row of these values.
pub(super) fn row_of_values(
    values: &[Option<CellValue>],
    formats: &[CellFormat],
    binary: bool,
) -> Vec<u8> {
    let cells = || values.iter().zip(formats);
    if !binary {
        return cells()
            .flat_map(|(value, format)| text_cell(*value, *format))
            .collect();
    }
    // The first column has the third bit.
    let mut nulls = vec![0; (values.len() + 2).div_ceil(8)];
    let mut bytes = Vec::new();
    for (number, (value, format)) in cells().enumerate() {
        let bit = number + 2;
        match value {
            Some(value) => bytes.extend(binary_cell(*value, *format)),
            None => {
                if let Some(byte) = nulls.get_mut(bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
            }
        }
    }
    [vec![0], nulls, bytes].concat()
}

fn text_cell(value: Option<CellValue>, format: CellFormat) -> Vec<u8> {
    let text = match value {
        None => return vec![NULL],
        Some(CellValue::Number(number)) => number.to_string(),
        Some(CellValue::Moment(moment)) => moment_text(moment, format),
    };
    // At most 26 characters: the length is one byte.
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    [&[length], text.as_bytes()].concat()
}

fn moment_text(moment: DatetimeValue, format: CellFormat) -> String {
    let ([year, month, day], [hour, minute, second], microsecond) = moment.parts();
    let date = format!("{year:04}-{month:02}-{day:02}");
    match format {
        CellFormat::Date => date,
        CellFormat::Moment { digits } if digits > 0 => {
            let fraction = format!("{microsecond:06}");
            let fraction = fraction.get(..usize::from(digits)).unwrap_or(&fraction);
            format!("{date} {hour:02}:{minute:02}:{second:02}.{fraction}")
        }
        CellFormat::Moment { .. } | CellFormat::Number { .. } => {
            format!("{date} {hour:02}:{minute:02}:{second:02}")
        }
    }
}

fn binary_cell(value: CellValue, format: CellFormat) -> Vec<u8> {
    match value {
        CellValue::Number(number) => {
            let bytes = number.to_le_bytes();
            let length = match format {
                CellFormat::Number { bytes } => bytes,
                CellFormat::Date | CellFormat::Moment { .. } => bytes.len(),
            };
            bytes.get(..length).unwrap_or(&bytes).to_vec()
        }
        CellValue::Moment(moment) => binary_moment(moment),
    }
}

/// A length, and what is not 0 at the end: the date, the time, the microseconds.
fn binary_moment(moment: DatetimeValue) -> Vec<u8> {
    let ([year, month, day], time, microsecond) = moment.parts();
    let byte = |number: u32| u8::try_from(number).unwrap_or_default();
    let year = u16::try_from(year).unwrap_or_default().to_le_bytes();
    let all = [
        &year[..],
        &[byte(month), byte(day)],
        &time.map(byte),
        &microsecond.to_le_bytes(),
    ]
    .concat();
    let length = match (moment.is_zero(), time, microsecond) {
        (true, ..) => 0,
        (_, [0, 0, 0], 0) => 4,
        (_, _, 0) => 7,
        _ => 11,
    };
    [&[length], all.get(..usize::from(length)).unwrap_or(&all)].concat()
}

/// True for a row that is as it would be made of its values.
pub(super) fn is_row_of_values(row: &[u8], formats: &[CellFormat], binary: bool) -> bool {
    let values = match binary {
        true => binary_values(row, formats),
        false => text_values(row, formats),
    };
    values.is_some_and(|values| row_of_values(&values, formats, binary) == row)
}

fn binary_values(row: &[u8], formats: &[CellFormat]) -> Option<Vec<Option<CellValue>>> {
    let nulls = (formats.len() + 2).div_ceil(8);
    let mut rest = row.get(1 + nulls..)?;
    let mut values = Vec::new();
    for (number, format) in formats.iter().enumerate() {
        let bit = number + 2;
        if row.get(1 + bit / 8)? & (1 << (bit % 8)) != 0 {
            values.push(None);
            continue;
        }
        let value = match format {
            CellFormat::Number { bytes } => {
                let (own, others) = rest.split_at_checked(*bytes)?;
                rest = others;
                CellValue::Number(little_endian(own)?)
            }
            CellFormat::Date | CellFormat::Moment { .. } => {
                let (length, others) = rest.split_first()?;
                let (own, others) = others.split_at_checked(usize::from(*length))?;
                rest = others;
                CellValue::Moment(moment_of_bytes(own)?)
            }
        };
        values.push(Some(value));
    }
    Some(values)
}

fn little_endian(bytes: &[u8]) -> Option<u64> {
    let mut number = [0; 8];
    number.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(number))
}

fn moment_of_bytes(bytes: &[u8]) -> Option<DatetimeValue> {
    let part = |from: usize, end: usize| match bytes.get(from..end) {
        Some(own) => u32::try_from(little_endian(own)?).ok(),
        None => Some(0),
    };
    let date = [part(0, 2)?, part(2, 3)?, part(3, 4)?];
    let time = [part(4, 5)?, part(5, 6)?, part(6, 7)?];
    DatetimeValue::from_parts(date, time, part(7, 11)?)
}

fn text_values(row: &[u8], formats: &[CellFormat]) -> Option<Vec<Option<CellValue>>> {
    let mut cursor = PacketCursor::new(row);
    let value = |format: &CellFormat| {
        if row.get(cursor.position()) == Some(&NULL) {
            cursor.take(1).ok()?;
            return Some(None);
        }
        let text = cursor.lenenc_bytes().ok()?;
        Some(Some(match format {
            CellFormat::Number { .. } => {
                CellValue::Number(std::str::from_utf8(text).ok()?.parse().ok()?)
            }
            CellFormat::Date | CellFormat::Moment { .. } => {
                CellValue::Moment(DatetimeValue::parse(text, MAX_FRACTION_DIGITS)?)
            }
        }))
    };
    formats.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use headwater_timeline::datetime::DatetimeValue;

    use super::*;

    const BIG: CellFormat = CellFormat::Number { bytes: 8 };

    fn number(number: u64) -> Option<CellValue> {
        Some(CellValue::Number(number))
    }

    #[test]
    fn a_row_shows_the_numbers_that_it_was_made_of() {
        for value in [0, 1, 9, 10, 255, 256, 1 << 40, u64::MAX] {
            for binary in [false, true] {
                for formats in [&[BIG][..], &[BIG; 2], &[BIG; 7]] {
                    let values = vec![number(value); formats.len()];
                    let row = row_of_values(&values, formats, binary);
                    assert!(is_row_of_values(&row, formats, binary));
                }
            }
        }
        let text = |values: &[Option<CellValue>]| row_of_values(values, &[BIG; 2], false);
        assert_eq!(text(&[number(42)]), b"\x0242");
        assert_eq!(text(&[number(42), number(7)]), b"\x0242\x017");
        let formats = [1, 8, 2].map(|bytes| CellFormat::Number { bytes });
        assert_eq!(
            row_of_values(&[number(1), None, number(2)], &formats, true),
            [0, 1 << 3, 1, 2, 0]
        );
        for binary in [false, true] {
            let row = row_of_values(&[None, number(5)], &[BIG; 2], binary);
            assert!(is_row_of_values(&row, &[BIG; 2], binary));
        }
        assert!(!is_row_of_values(b"\x0205", &[BIG], false));
        let small = [CellFormat::Number { bytes: 2 }];
        assert!(!is_row_of_values(&[0, 4, 0, 0], &small, true));
        assert!(!is_row_of_values(&[0, 0, 7], &small, true));
    }

    /// As `Protocol_binary::store_datetime` and `store_date` of both servers write them.
    #[test]
    fn a_row_shows_the_moments_that_it_was_made_of() {
        let moment = |text: &str| DatetimeValue::parse(text.as_bytes(), 6).map(CellValue::Moment);
        for (text, digits, bytes) in [
            ("0000-00-00 00:00:00", 0, &[0][..]),
            ("2026-11-30 00:00:00", 0, &[4, 0xea, 7, 11, 30]),
            ("2026-11-30 01:02:03", 0, &[7, 0xea, 7, 11, 30, 1, 2, 3]),
            (
                "2026-11-30 01:02:03.50",
                2,
                &[11, 0xea, 7, 11, 30, 1, 2, 3, 0x20, 0xa1, 7, 0],
            ),
            (
                "2026-11-30 01:02:03.000000",
                6,
                &[7, 0xea, 7, 11, 30, 1, 2, 3],
            ),
            ("2026-11-30", 0, &[4, 0xea, 7, 11, 30]),
        ] {
            let formats = match text.len() {
                10 => [CellFormat::Date],
                _ => [CellFormat::Moment { digits }],
            };
            let row = row_of_values(&[moment(text)], &formats, false);
            assert_eq!(row.get(1..), Some(text.as_bytes()));
            assert!(is_row_of_values(&row, &formats, false), "{text}");
            let row = row_of_values(&[moment(text)], &formats, true);
            assert_eq!(row.get(2..), Some(bytes));
            assert!(is_row_of_values(&row, &formats, true), "{text}");
        }
    }
}
