//! COM_STMT_EXECUTE: the statement, and the values of its parameters (manual, COM_STMT_EXECUTE). With QUERY_ATTRIBUTES,
//! MySQL 9.7 and MariaDB 10.11 send the parameter count even where its flag is not set.

use super::query_packet::skip_value;
use crate::capability::Capabilities;
use crate::cursor::{MalformedPacket, PacketCursor};

/// The bit of a parameter's type word for an unsigned integer.
pub(super) const UNSIGNED: u8 = 0x80;

/// An execution of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutePacket<'a> {
    /// The statement's id; MariaDB takes [`LAST_PREPARED`] for the one prepared last.
    pub statement_id: u32,
    /// The kind of cursor, and whether a parameter count is sent.
    pub flags: u8,
    /// Always 1 in known clients.
    pub iterations: u32,
    pub(super) parameter_block: ParameterBlock<'a>,
}

/// Stands for the statement prepared last (MariaDB).
pub const LAST_PREPARED: u32 = u32::MAX;

/// The statement id of COM_STMT_EXECUTE, COM_STMT_CLOSE and the like; `None` where it is cut off.
#[must_use]
pub fn statement_id(payload: &[u8]) -> Option<u32> {
    let mut cursor = PacketCursor::new(payload);
    cursor.u8().ok()?;
    cursor.u32().ok()
}

/// The offset of the flag for sent types, in the beginning of an execution. `None`: the beginning is too short, or the parameter count is 0
/// or differs from `parameters`.
#[must_use]
pub fn types_flag_offset(
    beginning: &[u8],
    parameters: usize,
    capabilities: Capabilities,
) -> Option<usize> {
    let mut cursor = PacketCursor::new(beginning);
    cursor.take(1 + 4 + 1 + 4).ok()?;
    if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
        let count = cursor.lenenc_int().ok()?;
        (usize::try_from(count) == Ok(parameters)).then_some(())?;
    }
    cursor.take(parameters.div_ceil(8)).ok()?;
    (parameters > 0).then_some(cursor.position())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParameterBlock<'a> {
    pub(super) count: usize,
    pub(super) has_names: bool,
    pub(super) nulls: &'a [u8],
    types: Option<&'a [u8]>,
    pub(super) values: &'a [u8],
    /// Offset in the payload of the flag for sent types.
    types_flag_at: usize,
}

impl<'a> ExecutePacket<'a> {
    /// Reads the payload of an execution of a statement with `parameters` parameters.
    ///
    /// # Errors
    /// When bytes are missing, bytes before the values are left over, or there are other parameters than the statement's
    /// (query attributes).
    pub fn parse(
        payload: &'a [u8],
        parameters: usize,
        capabilities: Capabilities,
    ) -> Result<Self, MalformedPacket> {
        let mut cursor = PacketCursor::new(payload);
        cursor.u8()?;
        let (statement, flags, iterations) = (cursor.u32()?, cursor.u8()?, cursor.u32()?);
        let named = capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
        Ok(ExecutePacket {
            statement_id: statement,
            flags,
            iterations,
            parameter_block: ParameterBlock::parse(&mut cursor, parameters, named)?,
        })
    }

    /// The bytes of the parameter types, names included; `None` where those of an earlier execution apply.
    #[must_use]
    pub fn types(&self) -> Option<&'a [u8]> {
        self.parameter_block.types
    }

    /// True where the packet holds types and one is text, or another that a server may read by a character set.
    #[must_use]
    pub fn has_text(&self) -> bool {
        let ParameterBlock {
            count,
            has_names: named,
            ..
        } = self.parameter_block;
        let mut cursor = PacketCursor::new(self.parameter_block.types.unwrap_or_default());
        let mut each = (0..count).map_while(|_| {
            let [code, _] = cursor.u16().ok()?.to_le_bytes();
            if named {
                cursor.lenenc_bytes().ok()?;
            }
            Some(code)
        });
        // DECIMAL to DATETIME and YEAR, NEWDECIMAL, TINY_BLOB to BLOB.
        each.any(|code| !matches!(code, 0..=13 | 246 | 249..=252))
    }

    /// The bytes of the values.
    #[must_use]
    pub fn values(&self) -> &'a [u8] {
        self.parameter_block.values
    }

    /// The values, split by `types`. `None` for each that is not certainly a number from 0 to 2^64 - 1.
    ///
    /// # Errors
    /// When bytes are missing, or a type or a bit beside it is unknown.
    pub fn integer_values(&self, types: &[u8]) -> Result<Vec<Option<u64>>, MalformedPacket> {
        let ParameterBlock {
            count,
            has_names: named,
            nulls,
            values,
            ..
        } = self.parameter_block;
        let (mut types, mut values) = (PacketCursor::new(types), PacketCursor::new(values));
        let mut numbers = Vec::with_capacity(count);
        for index in 0..count {
            let at = types.position();
            let [code, sign] = types.u16()?.to_le_bytes();
            if sign & !UNSIGNED != 0 {
                let value = u64::from(sign);
                return Err(MalformedPacket::Unexpected { at, value });
            }
            if named {
                types.lenenc_bytes()?;
            }
            let null = nulls
                .get(index / 8)
                .is_some_and(|byte| byte >> (index % 8) & 1 == 1);
            numbers.push(if null {
                None
            } else {
                read_integer(&mut values, code, sign & UNSIGNED != 0)?
            });
        }
        Ok(numbers)
    }

    /// The payload with these types inserted, for a server that has not received them.
    #[must_use]
    pub fn with_types(&self, payload: &[u8], types: &[u8]) -> Option<Vec<u8>> {
        let (before, after) = payload.split_at_checked(self.parameter_block.types_flag_at)?;
        let (_, values) = after.split_first()?;
        Some([before, &[1], types, values].concat())
    }
}

impl<'a> ParameterBlock<'a> {
    fn parse(
        cursor: &mut PacketCursor<'a>,
        count: usize,
        named: bool,
    ) -> Result<Self, MalformedPacket> {
        let none = ParameterBlock {
            count,
            has_names: named,
            nulls: &[],
            types: None,
            values: &[],
            types_flag_at: cursor.position(),
        };
        if count == 0 && cursor.is_empty() {
            return Ok(none);
        }
        if named {
            let at = cursor.position();
            let value = cursor.lenenc_int()?;
            if value != u64::try_from(count).unwrap_or(u64::MAX) {
                return Err(MalformedPacket::Unexpected { at, value });
            }
            if count == 0 {
                return Ok(none);
            }
        }
        let nulls = cursor.take(count.div_ceil(8))?;
        let bound_at = cursor.position();
        let types = match cursor.u8()? {
            0 => None,
            1 => Some(read_types(cursor, count, named)?),
            value => {
                return Err(MalformedPacket::Unexpected {
                    at: bound_at,
                    value: value.into(),
                });
            }
        };
        Ok(ParameterBlock {
            nulls,
            types,
            values: cursor.rest(),
            types_flag_at: bound_at,
            ..none
        })
    }
}

/// Reads the types, with names if `named`.
fn read_types<'a>(
    cursor: &mut PacketCursor<'a>,
    count: usize,
    named: bool,
) -> Result<&'a [u8], MalformedPacket> {
    let mut ahead = *cursor;
    for _ in 0..count {
        ahead.u16()?;
        if named {
            ahead.lenenc_bytes()?;
        }
    }
    cursor.take(ahead.position() - cursor.position())
}

/// Reads a value that both servers store unchanged into any integer type, without a warning; `None` for any other.
fn read_integer(
    cursor: &mut PacketCursor<'_>,
    code: u8,
    unsigned: bool,
) -> Result<Option<u64>, MalformedPacket> {
    let signed = |value: i64| u64::try_from(value).ok();
    Ok(match (code, unsigned) {
        // TINY
        (1, true) => Some(cursor.u8()?.into()),
        (1, false) => signed(i8::from_le_bytes([cursor.u8()?]).into()),
        // SHORT
        (2, true) => Some(cursor.u16()?.into()),
        (2, false) => signed(i16::from_le_bytes(cursor.u16()?.to_le_bytes()).into()),
        // LONG
        (3, true) => Some(cursor.u32()?.into()),
        (3, false) => signed(i32::from_le_bytes(cursor.u32()?.to_le_bytes()).into()),
        // LONGLONG
        (8, true) => Some(cursor.u64()?),
        (8, false) => signed(i64::from_le_bytes(cursor.u64()?.to_le_bytes())),
        // DOUBLE: sent by languages without integers
        (5, _) => whole_number(f64::from_bits(cursor.u64()?)),
        // DECIMAL, VARCHAR, NEWDECIMAL, VAR_STRING, STRING: in digits
        (0 | 15 | 246 | 253 | 254, _) => parse_digits(cursor.lenenc_bytes()?),
        _ => {
            skip_value(cursor, code)?;
            None
        }
    })
}

/// A whole number that a double represents exactly; `None` for any other.
pub(super) fn whole_number(value: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = value.is_sign_positive() && value < EXACT && value.fract() == 0.0;
    // Formatting avoids a cast.
    whole.then(|| format!("{value:.0}").parse().ok()).flatten()
}

/// Longer numbers are left to the server, leading zeros included.
const MAX_DIGITS: usize = 20;

/// The number that both servers read from a string of digits, without a warning.
#[must_use]
pub fn parse_digits(text: &[u8]) -> Option<u64> {
    let plain = (1..=MAX_DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    plain
        .then(|| std::str::from_utf8(text).ok()?.parse().ok())
        .flatten()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &[u8] = &[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0];

    fn one(code: u8, sign: u8, value: &[u8]) -> Option<u64> {
        let payload = [HEAD, &[0, 1, code, sign], value].concat();
        let execute = ExecutePacket::parse(&payload, 1, Capabilities::NONE).unwrap();
        assert_eq!(
            (execute.statement_id, execute.flags, execute.iterations),
            (7, 0, 1)
        );
        let types = execute.types().unwrap();
        let [number] = execute.integer_values(types).unwrap()[..] else {
            panic!("not one value");
        };
        number
    }

    #[test]
    fn integers_of_every_width_and_sign_are_read() {
        assert_eq!(one(1, 0, &[0x7f]), Some(127));
        assert_eq!(one(1, 0x80, &[0xff]), Some(255));
        assert_eq!(one(1, 0, &[0xff]), None);
        assert_eq!(one(2, 0, &[0xff, 0x7f]), Some(0x7fff));
        assert_eq!(one(2, 0x80, &[0xff, 0xff]), Some(0xffff));
        assert_eq!(one(3, 0, &[0xff; 4]), None);
        assert_eq!(one(3, 0x80, &[0xff; 4]), Some(u32::MAX.into()));
        assert_eq!(one(8, 0, &[7, 0, 0, 0, 0, 0, 0, 0]), Some(7));
        assert_eq!(one(8, 0x80, &[0xff; 8]), Some(u64::MAX));
        assert_eq!(one(8, 0, &[0xff; 8]), None);
    }

    #[test]
    fn digits_and_whole_doubles_are_numbers_and_nothing_else_is() {
        let double = |value: f64| one(5, 0, &value.to_le_bytes());
        assert_eq!(double(7.0), Some(7));
        assert_eq!(double(9_007_199_254_740_991.0), Some(9_007_199_254_740_991));
        for refused in [7.5, -7.0, -0.0, 1e16, f64::NAN, f64::INFINITY] {
            assert_eq!(double(refused), None, "{refused}");
        }
        for code in [0, 15, 246, 253, 254] {
            assert_eq!(one(code, 0, b"\x03007"), Some(7), "type {code}");
            for refused in [
                &b"\x00"[..],
                b"\x02 7",
                b"\x02-7",
                b"\x037.0",
                b"\x02\xef\xbc",
            ] {
                assert_eq!(one(code, 0, refused), None, "type {code} {refused:?}");
            }
        }
        // INT24 (servers take it for a string), a blob, a date, NULL by its type, a float.
        assert_eq!(one(9, 0, &[7, 0, 0, 0]), None);
        assert_eq!(one(252, 0, b"\x017"), None);
        assert_eq!(one(10, 0, b"\x04\xea\x07\x01\x02"), None);
        assert_eq!(one(6, 0, b""), None);
        assert_eq!(one(4, 0, &7f32.to_le_bytes()), None);
    }

    #[test]
    fn a_null_has_no_value_and_the_next_one_still_has() {
        let payload = [HEAD, &[0b01, 1, 3, 0, 1, 0, 9]].concat();
        let execute = ExecutePacket::parse(&payload, 2, Capabilities::NONE).unwrap();
        assert_eq!(
            execute.integer_values(execute.types().unwrap()).unwrap(),
            [None, Some(9)]
        );
    }

    #[test]
    fn types_of_an_earlier_execution_are_inserted_for_a_server_without_them() {
        let first = [HEAD, &[0, 1, 3, 0x80, 7, 0, 0, 0]].concat();
        let again = [HEAD, &[0, 0, 9, 0, 0, 0]].concat();
        let types = ExecutePacket::parse(&first, 1, Capabilities::NONE)
            .unwrap()
            .types()
            .unwrap();
        let execute = ExecutePacket::parse(&again, 1, Capabilities::NONE).unwrap();
        assert_eq!(
            (execute.types(), execute.integer_values(types).unwrap()),
            (None, vec![Some(9)])
        );
        let whole = execute.with_types(&again, types).unwrap();
        assert_eq!(whole, [HEAD, &[0, 1, 3, 0x80, 9, 0, 0, 0]].concat());
    }

    #[test]
    fn with_query_attributes_types_have_names_and_other_parameters_are_refused() {
        let named = Capabilities::QUERY_ATTRIBUTES;
        let payload = [HEAD, &[1, 0, 1, 3, 0, 1, b'a', 7, 0, 0, 0]].concat();
        let execute = ExecutePacket::parse(&payload, 1, named).unwrap();
        assert_eq!(
            execute.integer_values(execute.types().unwrap()).unwrap(),
            [Some(7)]
        );
        ExecutePacket::parse(&payload, 2, named).unwrap_err();
        ExecutePacket::parse(&[HEAD, &[1, 0, 0]].concat(), 0, named).unwrap_err();
        ExecutePacket::parse(HEAD, 0, named).unwrap();
        ExecutePacket::parse(&[HEAD, &[0]].concat(), 0, named).unwrap();
    }

    #[test]
    fn the_flag_of_types_is_found_in_a_beginning() {
        let named = Capabilities::QUERY_ATTRIBUTES;
        let plain = [HEAD, &[0, 0, 1]].concat();
        assert_eq!(types_flag_offset(&plain, 9, Capabilities::NONE), Some(12));
        assert_eq!(plain.get(12), Some(&1));
        assert_eq!(
            types_flag_offset(&[HEAD, &[9, 0, 0, 1]].concat(), 9, named),
            Some(13)
        );
        assert_eq!(
            types_flag_offset(&[HEAD, &[8, 0, 0, 1]].concat(), 9, named),
            None
        );
        assert_eq!(
            types_flag_offset(&[HEAD, &[0]].concat(), 9, Capabilities::NONE),
            None
        );
        assert_eq!(types_flag_offset(HEAD, 0, Capabilities::NONE), None);
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let payload = [HEAD, &[0, 1, 3, 0, 7, 0, 0, 0]].concat();
        for length in 0..payload.len() {
            let cut = payload.get(..length).unwrap();
            let read = ExecutePacket::parse(cut, 1, Capabilities::NONE);
            let numbers = read.and_then(|execute| execute.integer_values(execute.types().unwrap()));
            numbers.unwrap_err();
        }
        ExecutePacket::parse(&[HEAD, &[0, 2]].concat(), 1, Capabilities::NONE).unwrap_err();
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(payload in prop::collection::vec(any::<u8>(), 0..60), count in 0usize..12, named in any::<bool>(), types in prop::collection::vec(any::<u8>(), 0..40)) {
            let capabilities = if named { Capabilities::QUERY_ATTRIBUTES } else { Capabilities::NONE };
            if let Ok(execute) = ExecutePacket::parse(&payload, count, capabilities) {
                let _ = execute.integer_values(execute.types().unwrap_or(&types));
                let _ = execute.with_types(&payload, &types);
            }
        }

        #[test]
        fn the_fuzz_target_holds_for_executions_that_are_nearly_right(
            parameters in prop::collection::vec((any::<u8>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..12)), 0..4),
            named in any::<bool>(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let capabilities = if named { Capabilities::QUERY_ATTRIBUTES } else { Capabilities::NONE };
            let count = u8::try_from(parameters.len()).unwrap();
            let mut data = [&capabilities.0.to_le_bytes()[..], &[count], HEAD].concat();
            data.extend(named.then_some(count));
            data.extend([0, 1]);
            for (code, unsigned, _) in &parameters {
                data.extend([*code, u8::from(*unsigned) * UNSIGNED]);
                data.extend(named.then_some(0));
            }
            data.extend(parameters.iter().flat_map(|(_, _, value)| value));
            crate::fuzzing::execute(&data);
            let at = at.index(data.len());
            data[at] = byte;
            crate::fuzzing::execute(&data);
        }
    }
}
