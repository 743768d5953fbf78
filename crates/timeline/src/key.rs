//! Keys that pages are ordered by in front of the id: a number each, whose order is the server's.
//!
//! NULL is 0, since servers sort it below all values. A value that has no number is refused: it is never taken for another one.

use crate::datetime::{DatetimeValue, MAX_FRACTION_DIGITS};
use crate::integer::IntegerColumnType;

/// The number of NULL.
pub const NULL: u64 = 0;

/// The type of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// A whole number.
    Integer(IntegerColumnType),
    /// DATETIME, with so many digits behind the second.
    Datetime(u8),
    /// TIMESTAMP, likewise: told in the session's time zone, kept in UTC.
    Timestamp(u8),
}

impl KeyType {
    /// True where a value has the same number under both, whatever the width.
    #[must_use]
    pub fn has_same_encoding(self, other: KeyType) -> bool {
        match (self, other) {
            (KeyType::Integer(own), KeyType::Integer(other)) => own.signed == other.signed,
            (KeyType::Datetime(_), KeyType::Datetime(_))
            | (KeyType::Timestamp(_), KeyType::Timestamp(_)) => true,
            _ => false,
        }
    }

    /// The number of an integer.
    #[must_use]
    pub fn encode_integer(self, value: i128) -> Option<u64> {
        match self {
            KeyType::Integer(of) => of.encode(value)?.checked_add(1),
            KeyType::Datetime(_) | KeyType::Timestamp(_) => None,
        }
    }

    /// The number of a date with a time that a statement compares the key with; `ahead`: how far its session is ahead of UTC, in
    /// microseconds, if that is always the same. `None`: it is no date, or there is no such value.
    #[must_use]
    pub fn encode_datetime(self, moment: DatetimeValue, ahead: Option<i64>) -> Option<u64> {
        match self {
            KeyType::Integer(_) => None,
            // What is no date is compared by rules of its own.
            KeyType::Datetime(_) => moment.day_number().map(|_| moment.packed())?.checked_add(1),
            KeyType::Timestamp(_) => {
                let told = i64::try_from(moment.unix_microseconds()?).ok()?;
                let utc = u64::try_from(told.checked_sub(ahead?)?).ok()?;
                // 1970 itself stands for 0000-00-00.
                utc.checked_add(1).filter(|_| utc > 0)
            }
        }
    }

    /// How many digits a literal may have behind the second.
    #[must_use]
    pub fn fraction_digits(self) -> Option<u8> {
        match self {
            KeyType::Integer(_) => None,
            KeyType::Datetime(digits) | KeyType::Timestamp(digits) => Some(digits),
        }
    }

    /// The number of a value as the server itself writes it, in a session in UTC.
    #[must_use]
    pub fn encode_text(self, text: &[u8]) -> Option<u64> {
        if let KeyType::Integer(of) = self {
            let of = of.widest();
            let place = match text.strip_prefix(b"-") {
                Some(digits) => of.parse(digits, true),
                None => of.parse(text, false),
            };
            return place?.checked_add(1);
        }
        let moment = DatetimeValue::parse(text, MAX_FRACTION_DIGITS)?;
        match self {
            KeyType::Timestamp(_) if !moment.is_zero() => {
                moment.unix_microseconds()?.checked_add(1)
            }
            _ => moment.packed().checked_add(1),
        }
    }

    /// The number of a value as it stands in a row of the log: an integer with its lowest byte first; of the others the format that
    /// has a fraction (`my_datetime_packed_to_binary`, `my_timestamp_to_binary`).
    #[must_use]
    pub fn encode_row_image(self, bytes: &[u8]) -> Option<u64> {
        match self {
            KeyType::Integer(of) => {
                let mut value = little_endian(bytes)?;
                if of.signed && bytes.last().is_some_and(|highest| highest & 0x80 != 0) {
                    value -= 1i128 << (8 * bytes.len());
                }
                of.widest().encode(value)?.checked_add(1)
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

    /// SQL of the value with a number, for a session in UTC that takes any date.
    #[must_use]
    pub fn literal(self, key: u64) -> Option<String> {
        let Some(place) = key.checked_sub(1) else {
            return Some("NULL".into());
        };
        let moment = match self {
            KeyType::Integer(of) => return Some(of.decode(place).to_string()),
            KeyType::Timestamp(_) if place > 0 => DatetimeValue::from_unix_microseconds(place),
            KeyType::Timestamp(_) | KeyType::Datetime(_) => DatetimeValue::from_packed(place),
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

/// In microseconds: two digits in a byte, four in two, six in three.
fn fraction_microseconds(bytes: &[u8]) -> Option<u64> {
    let places = match bytes.len() {
        0 => 0,
        1 => 10_000,
        2 => 100,
        3 => 1,
        _ => return None,
    };
    Some(big_endian(bytes) * places).filter(|microseconds| *microseconds < 1_000_000)
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

    /// As both servers pack them: the stories of the binary compare what they log with what they tell.
    #[test]
    fn rows_of_the_log_tell_the_same_as_texts() {
        for (kind, image, text) in [
            (INT, &[0xff, 0xff, 0xff, 0xff][..], "-1"),
            (INT, &[0x2a, 0, 0, 0], "42"),
            // A TINYINT that was made an INT since.
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
    fn what_has_no_number_is_refused() {
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
