//! Values of an execution's parameters, each with its type, and executions that are made of such.

use std::borrow::Cow;

use super::Command;
use super::execute::Execute;
use super::query::skip_value;
use crate::capability::Capabilities;
use crate::cursor::{Cursor, Malformed, put_lenenc_int};

/// The type of integers of 8 bytes.
const LONGLONG: u8 = 8;
/// The bit beside a type that says it has no sign.
const UNSIGNED: u8 = 0x80;

/// A value as it stands in an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<'a> {
    code: u8,
    flags: u8,
    /// Its bytes; `None`: NULL.
    bytes: Option<Cow<'a, [u8]>>,
}

/// What a value says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// A whole number, whatever type it came in.
    Integer(i128),
    /// A string, or a date with a time or without one as the servers write it.
    Text(Vec<u8>),
    /// Anything else.
    Other,
}

impl Execute<'_> {
    /// The values, which `types` tell apart.
    ///
    /// # Errors
    /// When bytes are missing or left over, a type is not known, or bits are set beside it that mean nothing.
    pub fn given(&self, types: &[u8]) -> Result<Vec<Given<'_>>, Malformed> {
        let bytes = self.values();
        let (mut types, mut values) = (Cursor::new(types), Cursor::new(bytes));
        let mut given = Vec::new();
        for null in self.nulls() {
            let at = types.position();
            let [code, flags] = types.u16()?.to_le_bytes();
            if flags & !UNSIGNED != 0 {
                let value = u64::from(flags);
                return Err(Malformed::Unexpected { at, value });
            }
            if self.are_named() {
                types.lenenc_bytes()?;
            }
            let from = values.position();
            if !null {
                skip_value(&mut values, code)?;
            }
            let own = bytes.get(from..values.position()).unwrap_or_default();
            given.push(Given {
                code,
                flags,
                bytes: (!null).then_some(Cow::Borrowed(own)),
            });
        }
        match values.is_empty() {
            true => Ok(given),
            false => Err(Malformed::Unexpected {
                at: values.position(),
                value: 0,
            }),
        }
    }
}

impl Given<'_> {
    /// A number from 0 on.
    #[must_use]
    pub fn number(number: u64) -> Given<'static> {
        Given {
            code: LONGLONG,
            flags: UNSIGNED,
            bytes: Some(Cow::Owned(number.to_le_bytes().to_vec())),
        }
    }

    /// What it says.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.bytes {
            None => Value::Null,
            Some(bytes) => self.read(bytes).unwrap_or(Value::Other),
        }
    }

    fn read(&self, bytes: &[u8]) -> Option<Value> {
        let unsigned = self.flags & UNSIGNED != 0;
        let mut cursor = Cursor::new(bytes);
        Some(match (self.code, unsigned) {
            // NULL, by its type
            (6, _) => Value::Null,
            (1, true) => Value::Integer(cursor.u8().ok()?.into()),
            (1, false) => Value::Integer(i8::from_le_bytes([cursor.u8().ok()?]).into()),
            (2, true) => Value::Integer(cursor.u16().ok()?.into()),
            (2, false) => {
                Value::Integer(i16::from_le_bytes(cursor.u16().ok()?.to_le_bytes()).into())
            }
            (3, true) => Value::Integer(cursor.u32().ok()?.into()),
            (3, false) => {
                Value::Integer(i32::from_le_bytes(cursor.u32().ok()?.to_le_bytes()).into())
            }
            (8, true) => Value::Integer(cursor.u64().ok()?.into()),
            (8, false) => {
                Value::Integer(i64::from_le_bytes(cursor.u64().ok()?.to_le_bytes()).into())
            }
            // DOUBLE: what a language without integers sends
            (5, _) => whole(f64::from_bits(cursor.u64().ok()?))?,
            // VARCHAR, VAR_STRING, STRING
            (15 | 253 | 254, _) => Value::Text(cursor.lenenc_bytes().ok()?.to_vec()),
            // TIMESTAMP, DATE, DATETIME
            (7 | 10 | 12, _) => Value::Text(moment(bytes)?),
            _ => return None,
        })
    }
}

/// A number without a fraction, small enough that no other one is as near.
fn whole(value: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole =
        value.abs() < EXACT && value.fract() == 0.0 && (value != 0.0 || value.is_sign_positive());
    // Digits say it without a cast.
    let number = whole.then(|| format!("{value:.0}").parse().ok()).flatten();
    number.map(Value::Integer)
}

/// A date, as the servers write it (manual, Binary Protocol Value).
fn moment(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(bytes);
    let length = cursor.u8().ok()?;
    if !matches!(length, 4 | 7 | 11) {
        return None;
    }
    let (year, month, day) = (cursor.u16().ok()?, cursor.u8().ok()?, cursor.u8().ok()?);
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if length > 4 {
        let (hour, minute, second) = (cursor.u8().ok()?, cursor.u8().ok()?, cursor.u8().ok()?);
        text.push_str(&format!(" {hour:02}:{minute:02}:{second:02}"));
    }
    if length > 7 {
        let micros = cursor.u32().ok()?;
        let digits = format!("{micros:06}");
        let digits = digits.trim_end_matches('0');
        if !digits.is_empty() {
            text.push('.');
            text.push_str(digits);
        }
    }
    Some(text.into_bytes())
}

/// The payload of an execution of a statement with these values, once and without a cursor.
#[must_use]
pub fn execution(statement: u32, given: &[Given<'_>], capabilities: Capabilities) -> Vec<u8> {
    let mut payload = vec![Command::StmtExecute.byte()];
    payload.extend_from_slice(&statement.to_le_bytes());
    payload.push(0);
    payload.extend_from_slice(&1_u32.to_le_bytes());
    let named = capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
    if named {
        put_lenenc_int(given.len() as u64, &mut payload);
    }
    if given.is_empty() {
        return payload;
    }
    for eight in given.chunks(8) {
        let bits = (0..)
            .zip(eight)
            .map(|(bit, one)| u8::from(one.bytes.is_none()) << bit);
        payload.push(bits.fold(0, |all, bit| all | bit));
    }
    payload.push(1);
    for one in given {
        payload.extend_from_slice(&[one.code, one.flags]);
        if named {
            payload.push(0);
        }
    }
    for bytes in given.iter().filter_map(|one| one.bytes.as_ref()) {
        payload.extend_from_slice(bytes);
    }
    payload
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(types: &[u8], nulls: &[u8], values: &[u8], count: usize) -> Vec<Value> {
        let payload = [
            &[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0],
            nulls,
            &[1],
            types,
            values,
        ]
        .concat();
        let execute = Execute::parse(&payload, count, Capabilities::NONE).unwrap();
        let given = execute.given(types).unwrap();
        given.iter().map(Given::value).collect()
    }

    #[test]
    fn values_of_every_kind_say_what_they_are() {
        let one = |code: u8, flags: u8, value: &[u8]| {
            let mut read = read(&[code, flags], &[0], value, 1);
            read.pop().unwrap()
        };
        assert_eq!(one(1, 0, &[0xff]), Value::Integer(-1));
        assert_eq!(one(1, 0x80, &[0xff]), Value::Integer(255));
        assert_eq!(one(8, 0, &(-5_i64).to_le_bytes()), Value::Integer(-5));
        assert_eq!(one(8, 0x80, &[0xff; 8]), Value::Integer(u64::MAX.into()));
        assert_eq!(one(5, 0, &(-7.0_f64).to_le_bytes()), Value::Integer(-7));
        assert_eq!(one(5, 0, &7.5_f64.to_le_bytes()), Value::Other);
        assert_eq!(one(5, 0, &(-0.0_f64).to_le_bytes()), Value::Other);
        assert_eq!(one(253, 0, b"\x02hi"), Value::Text(b"hi".to_vec()));
        assert_eq!(one(252, 0, b"\x02hi"), Value::Other);
        assert_eq!(one(6, 0, b""), Value::Null);
        let date = |bytes: &[u8]| match one(12, 0, bytes) {
            Value::Text(text) => String::from_utf8(text).unwrap(),
            other => format!("{other:?}"),
        };
        assert_eq!(date(b"\x04\xea\x07\x01\x02"), "2026-01-02");
        assert_eq!(
            date(b"\x07\xea\x07\x0b\x17\x0a\x05\x09"),
            "2026-11-23 10:05:09"
        );
        let fraction = [
            &b"\x0b\xea\x07\x0b\x17\x0a\x05\x09"[..],
            &500_000_u32.to_le_bytes(),
        ]
        .concat();
        assert_eq!(date(&fraction), "2026-11-23 10:05:09.5");
        assert_eq!(date(b"\x00"), "Other");
        assert_eq!(
            read(&[3, 0, 1, 0], &[0b01], &[9], 2),
            [Value::Null, Value::Integer(9)]
        );
    }

    #[test]
    fn what_is_left_over_or_missing_is_refused() {
        let payload = |values: &[u8]| {
            let head = [0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0];
            [&head[..], values].concat()
        };
        for values in [&[1, 0, 0][..], &[1, 0, 0, 0, 0]] {
            let payload = payload(values);
            let execute = Execute::parse(&payload, 1, Capabilities::NONE).unwrap();
            execute.given(&[3, 0]).unwrap_err();
        }
    }

    proptest! {
        /// What is made of values is read as these.
        #[test]
        fn an_execution_is_read_as_it_was_made(
            values in prop::collection::vec(prop::option::of((prop::sample::select(vec![1u8, 2, 3, 8, 253]), any::<bool>(), any::<[u8; 8]>())), 0..20),
            named in any::<bool>(),
        ) {
            let capabilities = if named { Capabilities::QUERY_ATTRIBUTES } else { Capabilities::NONE };
            let given: Vec<Given<'_>> = values.iter().map(|value| match value {
                None => Given { code: 3, flags: 0, bytes: None },
                Some((code, unsigned, bytes)) => {
                    let own = match code {
                        1 => bytes[..1].to_vec(),
                        2 => bytes[..2].to_vec(),
                        3 => bytes[..4].to_vec(),
                        253 => [&[8], &bytes[..]].concat(),
                        _ => bytes.to_vec(),
                    };
                    Given { code: *code, flags: if *unsigned { UNSIGNED } else { 0 }, bytes: Some(Cow::Owned(own)) }
                }
            }).collect();
            let payload = execution(77, &given, capabilities);
            let execute = Execute::parse(&payload, given.len(), capabilities).unwrap();
            prop_assert_eq!((execute.statement, execute.flags, execute.iterations), (77, 0, 1));
            let types = execute.types().unwrap_or_default();
            prop_assert_eq!(execute.given(types).unwrap(), given);
        }

        #[test]
        fn any_bytes_are_read_or_refused(payload in prop::collection::vec(any::<u8>(), 0..60), count in 0usize..12, named in any::<bool>()) {
            let capabilities = if named { Capabilities::QUERY_ATTRIBUTES } else { Capabilities::NONE };
            if let Ok(execute) = Execute::parse(&payload, count, capabilities)
                && let Some(types) = execute.types()
                && let Ok(given) = execute.given(types)
            {
                for one in given {
                    let _ = one.value();
                }
            }
        }
    }
}
