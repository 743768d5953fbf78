//! Sort keys: each value has a number, and the numbers sort as the server sorts the values. Pages sort by key, then by id.
//!
//! NULL is 0, because servers sort it below all values. A value without a number is refused, never approximated.

use crate::datetime::{DatetimeValue, MAX_FRACTION_DIGITS};
use crate::integer::IntegerColumnType;

/// The number of NULL.
pub const NULL: u64 = 0;

/// The type of a key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// An integer.
    Integer(IntegerColumnType),
    /// DATETIME with this many fraction digits.
    Datetime(u8),
    /// TIMESTAMP with this many fraction digits: shown in the session's time zone, stored in UTC.
    Timestamp(u8),
}

impl KeyType {
    /// True if a value has the same number under both types, whatever the width.
    #[must_use]
    pub fn has_same_encoding(self, other: KeyType) -> bool {
        match (self, other) {
            (KeyType::Integer(this_type), KeyType::Integer(other)) => {
                this_type.signed == other.signed
            }
            (KeyType::Datetime(_), KeyType::Datetime(_))
            | (KeyType::Timestamp(_), KeyType::Timestamp(_)) => true,
            _ => false,
        }
    }

    /// The number of an integer.
    #[must_use]
    pub fn encode_integer(self, value: i128) -> Option<u64> {
        match self {
            KeyType::Integer(integer_type) => integer_type.encode(value)?.checked_add(1),
            KeyType::Datetime(_) | KeyType::Timestamp(_) => None,
        }
    }

    /// The number of a datetime that a statement compares the key with. `ahead`: the session's offset from UTC in microseconds, if it is
    /// fixed. `None`: the value is no valid date, or the type does not hold it.
    #[must_use]
    pub fn encode_datetime(self, moment: DatetimeValue, ahead: Option<i64>) -> Option<u64> {
        match self {
            KeyType::Integer(_) => None,
            // An invalid date compares by other rules.
            KeyType::Datetime(_) => moment.day_number().map(|_| moment.packed())?.checked_add(1),
            KeyType::Timestamp(_) => {
                let local_microseconds = i64::try_from(moment.unix_microseconds()?).ok()?;
                let utc = u64::try_from(local_microseconds.checked_sub(ahead?)?).ok()?;
                // 1970-01-01 00:00:00 itself stands for 0000-00-00.
                utc.checked_add(1).filter(|_| utc > 0)
            }
        }
    }

    /// How many fraction digits a literal may have.
    #[must_use]
    pub fn fraction_digits(self) -> Option<u8> {
        match self {
            KeyType::Integer(_) => None,
            KeyType::Datetime(digits) | KeyType::Timestamp(digits) => Some(digits),
        }
    }

    /// The number of a value that the server writes as text in a UTC session.
    #[must_use]
    pub fn encode_text(self, text: &[u8]) -> Option<u64> {
        if let KeyType::Integer(integer_type) = self {
            let widest = integer_type.widest();
            let encoded = match text.strip_prefix(b"-") {
                Some(digits) => widest.parse(digits, true),
                None => widest.parse(text, false),
            };
            return encoded?.checked_add(1);
        }
        let moment = DatetimeValue::parse(text, MAX_FRACTION_DIGITS)?;
        match self {
            KeyType::Timestamp(_) if !moment.is_zero() => {
                moment.unix_microseconds()?.checked_add(1)
            }
            _ => moment.packed().checked_add(1),
        }
    }

    /// The number of a value in a row event: an integer is little-endian; the other types have the format with a fraction
    /// (`my_datetime_packed_to_binary`, `my_timestamp_to_binary`).
    #[must_use]
    pub fn encode_row_image(self, bytes: &[u8]) -> Option<u64> {
        match self {
            KeyType::Integer(integer_type) => {
                let mut value = little_endian(bytes)?;
                if integer_type.signed && bytes.last().is_some_and(|highest| highest & 0x80 != 0) {
                    value -= 1i128 << (8 * bytes.len());
                }
                integer_type.widest().encode(value)?.checked_add(1)
            }
            KeyType::Datetime(_) => {
                const SIGN: u64 = 1 << 39;
                let (whole, fraction) = bytes.split_at_checked(5)?;
                let seconds = big_endian(whole).checked_sub(SIGN)?;
                let packed = seconds << 24 | fraction_microseconds(fraction)?;
                DatetimeValue::from_packed(packed)?.packed().checked_add(1)
            }
            KeyType::Timestamp(_) => {
                let (whole, fraction) = bytes.split_at_checked(4)?;
                let microseconds = big_endian(whole) * 1_000_000 + fraction_microseconds(fraction)?;
                microseconds.checked_add(1)
            }
        }
    }

    /// The SQL literal for a number, for a UTC session that accepts any date.
    #[must_use]
    pub fn literal(self, key: u64) -> Option<String> {
        let Some(encoded) = key.checked_sub(1) else {
            return Some("NULL".into());
        };
        let moment = match self {
            KeyType::Integer(integer_type) => {
                return Some(integer_type.decode(encoded).to_string());
            }
            KeyType::Timestamp(_) if encoded > 0 => DatetimeValue::from_unix_microseconds(encoded),
            KeyType::Timestamp(_) | KeyType::Datetime(_) => DatetimeValue::from_packed(encoded),
        };
        Some(format!("'{}'", moment?))
    }
}

fn little_endian(bytes: &[u8]) -> Option<i128> {
    let all = bytes.iter().rev();
    (1..=8)
        .contains(&bytes.len())
        .then(|| all.fold(0, |number, byte| number << 8 | i128::from(*byte)))
}

fn big_endian(bytes: &[u8]) -> u64 {
    let all = bytes.iter();
    all.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// In microseconds: one byte holds two digits, two bytes hold four, three bytes hold six.
fn fraction_microseconds(bytes: &[u8]) -> Option<u64> {
    let microseconds_per_unit = match bytes.len() {
        0 => 0,
        1 => 10_000,
        2 => 100,
        3 => 1,
        _ => return None,
    };
    Some(big_endian(bytes) * microseconds_per_unit).filter(|microseconds| *microseconds < 1_000_000)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INT: KeyType = KeyType::Integer(IntegerColumnType {
        bits: 32,
        signed: true,
    });
    const BIG: KeyType = KeyType::Integer(IntegerColumnType {
        bits: 64,
        signed: true,
    });
    const DATETIME: KeyType = KeyType::Datetime(6);
    const TIMESTAMP: KeyType = KeyType::Timestamp(3);

    /// As both servers pack them; the binary's scenarios compare logged rows with the servers' text.
    #[test]
    fn row_images_and_texts_have_the_same_number() {
        for (kind, image, text) in [
            (INT, &[0xff, 0xff, 0xff, 0xff][..], "-1"),
            (INT, &[0x2a, 0, 0, 0], "42"),
            // A TINYINT column that was altered to INT later.
            (INT, &[0x80], "-128"),
            (BIG, &[0, 0, 0, 0, 0, 0, 0, 0x80], "-9223372036854775808"),
            (DATETIME, &[0x80, 0, 0, 0, 0], "0000-00-00 00:00:00"),
            (
                KeyType::Datetime(0),
                &[0x99, 0xbb, 0x6e, 0xa0, 0],
                "2026-11-23 10:00:00",
            ),
            (
                DATETIME,
                &[0x99, 0xbb, 0x6e, 0xa0, 0, 0x07, 0xa1, 0x20],
                "2026-11-23 10:00:00.500000",
            ),
            (TIMESTAMP, &[0, 0, 0, 0, 0, 0], "0000-00-00 00:00:00.000"),
            (
                TIMESTAMP,
                &[0, 0, 0, 1, 0x13, 0x88],
                "1970-01-01 00:00:01.500",
            ),
            (
                KeyType::Timestamp(0),
                &[0xff, 0xff, 0xff, 0xff],
                "2106-02-07 06:28:15",
            ),
        ] {
            let number = kind.encode_row_image(image);
            assert!(number > Some(NULL), "{text}");
            assert_eq!(number, kind.encode_text(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn values_without_a_number_are_refused() {
        assert_eq!(BIG.encode_text(b"9223372036854775807"), None);
        assert_eq!(
            BIG.encode_row_image(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            None
        );
        assert_eq!(BIG.encode_integer(i128::from(i64::MAX)), None);
        for (kind, image) in [
            (INT, &[][..]),
            (DATETIME, &[0x80, 0, 0, 0]),
            // Below 0.
            (DATETIME, &[0x7f, 0xff, 0xff, 0xff, 0xff]),
            // Minute 63.
            (DATETIME, &[0x99, 0xbb, 0x6e, 0xaf, 0xc0]),
            (TIMESTAMP, &[0, 0, 0, 1, 0xff, 0xff]),
            (TIMESTAMP, &[0, 0, 0]),
        ] {
            assert_eq!(kind.encode_row_image(image), None, "{image:?}");
        }
        for (kind, text) in [
            (INT, ""),
            (INT, "--1"),
            (BIG, "9223372036854775808"),
            (DATETIME, "2026-11-23T10:00:00"),
            (DATETIME, "7"),
            (TIMESTAMP, "1969-12-31 23:59:59"),
        ] {
            assert_eq!(kind.encode_text(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_literal_is_a_date_in_the_time_zone_of_its_session() {
        let of = |text: &str| DatetimeValue::parse(text.as_bytes(), 6).unwrap();
        let hour = 3_600_000_000;
        let ten = of("2026-11-23 10:00:00");
        assert_eq!(
            TIMESTAMP.encode_datetime(ten, Some(hour)),
            TIMESTAMP.encode_text(b"2026-11-23 09:00:00")
        );
        assert_eq!(
            TIMESTAMP.encode_datetime(ten, Some(-hour)),
            TIMESTAMP.encode_text(b"2026-11-23 11:00:00")
        );
        assert_eq!(TIMESTAMP.encode_datetime(ten, None), None);
        assert_eq!(
            DATETIME.encode_datetime(ten, None),
            DATETIME.encode_text(b"2026-11-23 10:00:00.000000")
        );
        for text in ["0000-00-00", "2026-02-31", "0000-01-01"] {
            assert_eq!(DATETIME.encode_datetime(of(text), None), None, "{text}");
            assert_eq!(TIMESTAMP.encode_datetime(of(text), Some(0)), None, "{text}");
        }
        assert_eq!(TIMESTAMP.encode_datetime(of("1970-01-01"), Some(0)), None);
        assert_eq!(
            TIMESTAMP.encode_datetime(of("1970-01-01"), Some(hour)),
            None
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..12), key: u64) {
            for kind in [INT, BIG, DATETIME, TIMESTAMP] {
                for number in [kind.encode_row_image(&bytes), kind.encode_text(&bytes), Some(key)] {
                    if let Some(literal) = number.and_then(|number| kind.literal(number)) {
                        prop_assert!(literal == "NULL" || kind.encode_text(literal.trim_matches('\'').as_bytes()) == number);
                    }
                }
            }
        }

        #[test]
        fn a_number_is_found_again_by_its_literal(seed in any::<u64>(), a in any::<i32>(), b in any::<i32>()) {
            prop_assert_eq!(INT.encode_integer(a.into()).cmp(&INT.encode_integer(b.into())), a.cmp(&b));
            for kind in [INT, BIG, DATETIME, TIMESTAMP] {
                let key = match kind {
                    KeyType::Integer(of) => of.encode(i128::from(a)).unwrap() + 1,
                    KeyType::Datetime(_) => DatetimeValue::from_unix_microseconds(seed % (1 << 57)).unwrap().packed() + 1,
                    KeyType::Timestamp(_) => seed % (1 << 52) + 1,
                };
                let literal = kind.literal(key).unwrap();
                prop_assert_eq!(kind.encode_text(literal.trim_matches('\'').as_bytes()), Some(key), "{}", literal);
            }
            prop_assert_eq!(INT.literal(NULL), Some("NULL".to_owned()));
        }
    }
}
