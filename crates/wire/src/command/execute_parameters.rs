//! The single parameters of an execution, and how to build an execution from parameters (manual, COM_STMT_EXECUTE).

use super::Command;
use super::execute_packet::{ExecutePacket, UNSIGNED, whole_number};
use super::query_packet::skip_value;
use crate::capability::Capabilities;
use crate::cursor::{MalformedPacket, PacketCursor, put_lenenc_int};

/// One parameter, as the packet has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundParameter<'a> {
    /// Its type in two bytes, and its name where parameters have names.
    pub type_word: &'a [u8],
    /// Its bytes; `None` for NULL.
    pub bytes: Option<&'a [u8]>,
}

/// The value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BoundValue<'a> {
    /// NULL.
    Null,
    /// TINY, SHORT, LONG, LONGLONG.
    Integer(i128),
    /// DOUBLE or DECIMAL without a fraction, from 0 up to where a double no longer distinguishes whole numbers.
    WholeNumber(u64),
    /// A string.
    Text(&'a [u8]),
    /// TIMESTAMP, DATE, DATETIME.
    DateTime {
        /// Year, month, day.
        date: [u32; 3],
        /// Hour, minute, second.
        time: [u32; 3],
        /// Microseconds.
        microseconds: u32,
    },
    /// Anything else.
    Other,
}

impl BoundValue<'_> {
    /// True for a whole number, or text that may be one, that a double may not distinguish from its neighbours.
    #[must_use]
    pub fn exceeds_double_precision(&self) -> bool {
        match self {
            BoundValue::Integer(value) => value.unsigned_abs() > 1 << f64::MANTISSA_DIGITS,
            // A date and time has fewer digits in a row.
            BoundValue::Text(text) => {
                let mut runs = text.split(|byte| !byte.is_ascii_digit());
                runs.any(|run| run.len() > DOUBLE_PRECISION_DIGITS)
            }
            _ => false,
        }
    }

    /// True for a date without a time, or at midnight.
    fn is_midnight(&self) -> bool {
        matches!(
            self,
            BoundValue::DateTime {
                time: [0, 0, 0],
                microseconds: 0,
                ..
            }
        )
    }
}

impl<'a> ExecutePacket<'a> {
    /// The parameters, split by `types`.
    ///
    /// # Errors
    /// When bytes are missing or left over, or a type or a bit beside it is unknown.
    pub fn split_parameters<'t>(
        &self,
        types: &'t [u8],
    ) -> Result<Vec<BoundParameter<'t>>, MalformedPacket>
    where
        'a: 't,
    {
        let block = self.parameter_block;
        let (mut kinds, mut values) = (PacketCursor::new(types), PacketCursor::new(block.values));
        let mut each = Vec::with_capacity(block.count);
        for index in 0..block.count {
            let at = kinds.position();
            let mut ahead = kinds;
            let [code, sign] = ahead.u16()?.to_le_bytes();
            if sign & !UNSIGNED != 0 {
                let value = u64::from(sign);
                return Err(MalformedPacket::Unexpected { at, value });
            }
            if block.has_names {
                ahead.lenenc_bytes()?;
            }
            let kind = kinds.take(ahead.position() - at)?;
            let null = block.nulls.get(index / 8);
            let null = null.is_some_and(|byte| byte >> (index % 8) & 1 == 1);
            let bytes = match null {
                true => None,
                false => {
                    let mut after = values;
                    skip_value(&mut after, code)?;
                    Some(values.take(after.position() - values.position())?)
                }
            };
            each.push(BoundParameter {
                type_word: kind,
                bytes,
            });
        }
        match (kinds.is_empty(), values.is_empty()) {
            (true, true) => Ok(each),
            (kinds_end, _) => Err(MalformedPacket::Unexpected {
                at: if kinds_end {
                    values.position()
                } else {
                    kinds.position()
                },
                value: 0,
            }),
        }
    }
}

/// The number of decimal digits that a double preserves.
pub const DOUBLE_PRECISION_DIGITS: usize = 15;

impl<'a> BoundParameter<'a> {
    /// The type word for a whole number from 0 on, in eight bytes of [`Self::bytes`].
    #[must_use]
    pub fn type_word_of_u64(signed: bool, capabilities: Capabilities) -> &'static [u8] {
        const LONGLONG: u8 = 8;
        match (
            signed,
            capabilities.contains(Capabilities::QUERY_ATTRIBUTES),
        ) {
            (true, false) => &[LONGLONG, 0],
            (true, true) => &[LONGLONG, 0, 0],
            (false, false) => &[LONGLONG, UNSIGNED],
            (false, true) => &[LONGLONG, UNSIGNED, 0],
        }
    }

    /// True where MySQL takes the whole packet for malformed: a DATE with a time of day.
    #[must_use]
    pub fn is_date_with_time(&self) -> bool {
        const DATE: u8 = 10;
        const BYTES: usize = 1 + 4;
        let is_date = self.type_word.first() == Some(&DATE);
        is_date && self.bytes.is_some_and(|bytes| bytes.len() > BYTES)
    }

    /// True for text beyond ASCII: MySQL may be unable to convert it, and then refuses the execution.
    #[must_use]
    pub fn is_non_ascii_text(&self) -> bool {
        matches!(self.value(), BoundValue::Text(text) if !text.is_ascii())
    }

    /// True for a number or a time.
    #[must_use]
    pub fn is_number_or_time(&self) -> bool {
        // DECIMAL to NEWDATE except NULL (6), BIT, NEWDECIMAL. VARCHAR (15) is text.
        let is = |code: u8| matches!(code, 0..=5 | 7..=14 | 16 | 246);
        self.bytes.is_some() && self.type_word.first().is_some_and(|code| is(*code))
    }

    /// True for any other value but NULL.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.bytes.is_some() && !self.is_number_or_time()
    }

    /// True for an integer type.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        // TINY, SHORT, LONG, LONGLONG, INT24, YEAR.
        let is = |code: u8| matches!(code, 1..=3 | 8 | 9 | 13);
        self.bytes.is_some() && self.type_word.first().is_some_and(|code| is(*code))
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> BoundValue<'a> {
        self.read().unwrap_or(BoundValue::Other)
    }

    fn read(&self) -> Option<BoundValue<'a>> {
        let [code, sign] = *self.type_word.first_chunk()?;
        let Some(bytes) = self.bytes else {
            return Some(BoundValue::Null);
        };
        let signed = sign & UNSIGNED == 0;
        let mut cursor = PacketCursor::new(bytes);
        Some(match code {
            // NULL
            6 => BoundValue::Null,
            // TINY
            1 if signed => BoundValue::Integer(i8::from_le_bytes(*bytes.first_chunk()?).into()),
            1 => BoundValue::Integer(cursor.u8().ok()?.into()),
            // SHORT
            2 if signed => BoundValue::Integer(i16::from_le_bytes(*bytes.first_chunk()?).into()),
            2 => BoundValue::Integer(cursor.u16().ok()?.into()),
            // LONG
            3 if signed => BoundValue::Integer(i32::from_le_bytes(*bytes.first_chunk()?).into()),
            3 => BoundValue::Integer(cursor.u32().ok()?.into()),
            // LONGLONG
            8 if signed => BoundValue::Integer(i64::from_le_bytes(*bytes.first_chunk()?).into()),
            8 => BoundValue::Integer(cursor.u64().ok()?.into()),
            // DOUBLE
            5 => BoundValue::WholeNumber(whole_number(f64::from_bits(cursor.u64().ok()?))?),
            // DECIMAL, NEWDECIMAL
            0 | 246 => BoundValue::WholeNumber(parse_decimal(cursor.lenenc_bytes().ok()?)?),
            // VARCHAR, VAR_STRING, STRING
            15 | 253 | 254 => BoundValue::Text(cursor.lenenc_bytes().ok()?),
            // TIMESTAMP, DATETIME
            7 | 12 => read_date_time(&mut cursor)?,
            // DATE: servers do not read a time in it.
            10 => read_date_time(&mut cursor).filter(BoundValue::is_midnight)?,
            _ => BoundValue::Other,
        })
    }
}

fn parse_decimal(text: &[u8]) -> Option<u64> {
    let plain =
        (1..=DOUBLE_PRECISION_DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| plain)?;
    text.parse().ok()
}

/// Reads a length, then a date, and optionally a time and microseconds. Length 0, the zero date, is not read.
fn read_date_time<'a>(cursor: &mut PacketCursor<'_>) -> Option<BoundValue<'a>> {
    let length = cursor.u8().ok()?;
    let byte = |cursor: &mut PacketCursor<'_>| cursor.u8().ok().map(u32::from);
    let (year, month, day) = match length {
        4 | 7 | 11 => (cursor.u16().ok()?.into(), byte(cursor)?, byte(cursor)?),
        _ => return None,
    };
    let time = match length {
        4 => [0; 3],
        _ => [byte(cursor)?, byte(cursor)?, byte(cursor)?],
    };
    let microseconds = match length {
        11 => cursor.u32().ok()?,
        _ => 0,
    };
    Some(BoundValue::DateTime {
        date: [year, month, day],
        time,
        microseconds,
    })
}

/// The payload of an execution with these parameters and their types, without a cursor.
#[must_use]
pub fn execute_payload(
    statement: u32,
    parameters: &[BoundParameter<'_>],
    capabilities: Capabilities,
) -> Vec<u8> {
    let size = |parameter: &BoundParameter<'_>| {
        parameter.type_word.len() + parameter.bytes.map_or(0, <[u8]>::len)
    };
    let bytes: usize = parameters.iter().map(size).sum();
    let mut payload = Vec::with_capacity(24 + parameters.len().div_ceil(8) + bytes);
    payload.push(Command::StmtExecute.byte());
    payload.extend_from_slice(&statement.to_le_bytes());
    payload.extend_from_slice(&[0, 1, 0, 0, 0]);
    if parameters.is_empty() {
        return payload;
    }
    if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
        let count = u64::try_from(parameters.len()).unwrap_or(u64::MAX);
        put_lenenc_int(count, &mut payload);
    }
    for eight in parameters.chunks(8) {
        let bits = eight.iter().enumerate();
        payload.push(bits.fold(0, |bits, (at, parameter)| {
            bits | u8::from(parameter.bytes.is_none()) << at
        }));
    }
    payload.push(1);
    for parameter in parameters {
        payload.extend_from_slice(parameter.type_word);
    }
    for bytes in parameters.iter().filter_map(|parameter| parameter.bytes) {
        payload.extend_from_slice(bytes);
    }
    payload
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &[u8] = &[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0];

    fn one(code: u8, sign: u8, value: &[u8]) -> BoundValue<'_> {
        let parameter = BoundParameter {
            type_word: vec![code, sign].leak(),
            bytes: Some(value),
        };
        parameter.read().unwrap_or(BoundValue::Other)
    }

    #[test]
    fn a_double_may_not_tell_long_numbers_apart() {
        for (value, expected) in [
            (BoundValue::Integer(1 << 53), false),
            (BoundValue::Integer((1 << 53) + 1), true),
            (BoundValue::Integer(-(1 << 53) - 1), true),
            (BoundValue::Text(b"999999999999999"), false),
            (BoundValue::Text(b"9007199254740993"), true),
            (BoundValue::Text(b" -9007199254740993.0"), true),
            (BoundValue::Text(b"2026-01-01 10:00:30.123456"), false),
            (BoundValue::Text(b"20260101100030.123456"), false),
        ] {
            assert_eq!(value.exceeds_double_precision(), expected, "{value:?}");
        }
    }

    #[test]
    fn values_of_every_type_are_read_for_what_they_are() {
        for (code, sign, value, expected) in [
            (1, 0, &[0xff][..], BoundValue::Integer(-1)),
            (1, 0x80, &[0xff], BoundValue::Integer(255)),
            (2, 0, &[0xff; 2], BoundValue::Integer(-1)),
            (2, 0x80, &[0xff; 2], BoundValue::Integer(65_535)),
            (3, 0, &[0xff; 4], BoundValue::Integer(-1)),
            (3, 0x80, &[0xff; 4], BoundValue::Integer(u32::MAX.into())),
            (8, 0, &[0xff; 8], BoundValue::Integer(-1)),
            (8, 0x80, &[0xff; 8], BoundValue::Integer(u64::MAX.into())),
            (5, 0, &7f64.to_le_bytes(), BoundValue::WholeNumber(7)),
            (5, 0, &7.5f64.to_le_bytes(), BoundValue::Other),
            (4, 0, &7f32.to_le_bytes(), BoundValue::Other),
            (246, 0, b"\x0212", BoundValue::WholeNumber(12)),
            (0, 0, b"\x0412.0", BoundValue::Other),
            (246, 0, b"\x101234567890123456", BoundValue::Other),
            (254, 0, b"\x0212", BoundValue::Text(b"12")),
            (253, 0, b"\0", BoundValue::Text(b"")),
            (15, 0, b"\x01x", BoundValue::Text(b"x")),
            (252, 0, b"\x01x", BoundValue::Other),
            (6, 0, b"", BoundValue::Null),
            (11, 0, b"\0", BoundValue::Other),
            (10, 0, b"\0", BoundValue::Other),
            (10, 0, b"\x07\xea\x07\x01\x02\x0a\0\0", BoundValue::Other),
            (
                10,
                0,
                b"\x0b\xea\x07\x01\x02\0\0\0\x01\0\0\0",
                BoundValue::Other,
            ),
        ] {
            assert_eq!(one(code, sign, value), expected, "type {code}");
        }
    }

    #[test]
    fn date_times_have_as_many_parts_as_their_length_allows() {
        let of = |date, time, microseconds| BoundValue::DateTime {
            date,
            time,
            microseconds,
        };
        let date = [2026, 1, 2];
        for code in [7, 12] {
            assert_eq!(one(code, 0, b"\x04\xea\x07\x01\x02"), of(date, [0; 3], 0));
            assert_eq!(
                one(code, 0, b"\x07\xea\x07\x01\x02\x03\x04\x05"),
                of(date, [3, 4, 5], 0)
            );
            assert_eq!(
                one(code, 0, b"\x0b\xea\x07\x01\x02\x03\x04\x05\x06\0\0\0"),
                of(date, [3, 4, 5], 6)
            );
            assert_eq!(one(code, 0, b"\x05\xea\x07\x01\x02\x03"), BoundValue::Other);
        }
        // A date with a time is the server's to read.
        assert_eq!(one(10, 0, b"\x04\xea\x07\x01\x02"), of(date, [0; 3], 0));
        assert_eq!(
            one(10, 0, b"\x07\xea\x07\x01\x02\x03\x04\x05"),
            BoundValue::Other
        );
    }

    #[test]
    fn an_execution_is_made_of_the_parameters_of_another() {
        for named in [false, true] {
            let capabilities = match named {
                true => Capabilities::QUERY_ATTRIBUTES,
                false => Capabilities::NONE,
            };
            let count: &[u8] = if named { &[3] } else { &[] };
            let kind = |code: u8| [&[code, 0][..], if named { &[1, b'a'] } else { &[] }].concat();
            let kinds = [kind(3), kind(254), kind(1)].concat();
            let payload = [HEAD, count, &[0b010, 1], &kinds, &[9, 0, 0, 0], &[7]].concat();
            let execute = ExecutePacket::parse(&payload, 3, capabilities).unwrap();
            let each = execute.split_parameters(execute.types().unwrap()).unwrap();
            let values: Vec<_> = each.iter().map(BoundParameter::value).collect();
            assert_eq!(
                values,
                [
                    BoundValue::Integer(9),
                    BoundValue::Null,
                    BoundValue::Integer(7)
                ]
            );
            assert_eq!(execute_payload(7, &each, capabilities), payload);
            // Another one in the place of the first two.
            let id = 5u64.to_le_bytes();
            let own = [
                BoundParameter {
                    type_word: BoundParameter::type_word_of_u64(false, capabilities),
                    bytes: Some(&id),
                },
                each[2],
            ];
            let payload = execute_payload(8, &own, capabilities);
            let execute = ExecutePacket::parse(&payload, 2, capabilities).unwrap();
            assert_eq!(execute.statement_id, 8);
            assert_eq!(
                execute.split_parameters(execute.types().unwrap()).unwrap(),
                own
            );
        }
    }

    #[test]
    fn what_is_left_over_is_refused() {
        let payload = [HEAD, &[0, 1, 3, 0, 7, 0, 0, 0, 9]].concat();
        let execute = ExecutePacket::parse(&payload, 1, Capabilities::NONE).unwrap();
        execute.split_parameters(&[3, 0]).unwrap_err();
        execute.split_parameters(&[8, 0]).unwrap_err();
        execute.split_parameters(&[3, 1]).unwrap_err();
        let payload = [HEAD, &[0, 1, 3, 0, 7, 0, 0, 0]].concat();
        let execute = ExecutePacket::parse(&payload, 1, Capabilities::NONE).unwrap();
        execute.split_parameters(&[3, 0]).unwrap();
        execute.split_parameters(&[3, 0, 0]).unwrap_err();
    }

    proptest! {
        #[test]
        fn what_is_read_of_any_bytes_makes_them_again(payload in prop::collection::vec(any::<u8>(), 0..60), count in 1usize..12, named in any::<bool>()) {
            let capabilities = if named { Capabilities::QUERY_ATTRIBUTES } else { Capabilities::NONE };
            let head = [HEAD, &payload].concat();
            if let Ok(execute) = ExecutePacket::parse(&head, count, capabilities)
                && let Some(types) = execute.types()
                && let Ok(each) = execute.split_parameters(types)
            {
                let own = execute_payload(7, &each, capabilities);
                let again = ExecutePacket::parse(&own, count, capabilities).unwrap();
                prop_assert_eq!(again.split_parameters(again.types().unwrap()).unwrap(), each);
            }
        }
    }
}
