//! Values of authors, ids and keys, in the order in which the server sorts them.
//!
//! Each is a number of 64 bits whose order is the column's. What is not written plainly has none: a bound that is misread would be
//! wrong, one that is not used only costs.

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    /// 8, 16, 24, 32 or 64.
    pub bits: u32,
    /// With negative values.
    pub signed: bool,
}

/// Above all negative values.
const ZERO: u64 = 1 << 63;

impl Integer {
    /// The value of plain digits, behind a minus or not, if the type holds it.
    #[must_use]
    pub fn read(self, digits: &[u8], negative: bool) -> Option<u64> {
        let digits = std::str::from_utf8(digits).ok()?;
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let size: u64 = plain.then(|| digits.parse().ok()).flatten()?;
        let value = match negative {
            true => 0i128 - i128::from(size),
            false => i128::from(size),
        };
        self.of(value)
    }

    /// The place of a number in the order of the type's values, if it is one of them.
    #[must_use]
    pub fn of(self, value: i128) -> Option<u64> {
        let (least, most) = match self.signed {
            true => (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1),
            false => (0, (1i128 << self.bits) - 1),
        };
        if !(least..=most).contains(&value) {
            return None;
        }
        match self.signed {
            true => u64::try_from(value + i128::from(ZERO)).ok(),
            false => u64::try_from(value).ok(),
        }
    }

    /// The number at a place.
    #[must_use]
    pub fn number(self, place: u64) -> i128 {
        match self.signed {
            true => i128::from(place) - i128::from(ZERO),
            false => i128::from(place),
        }
    }
}

/// The place of a moment among all, in microseconds from the year 0 on: `2026-11-23 10:00:00.5`.
///
/// `None`: it is not written as the server writes it, is no valid date, or has more digits behind the second than `digits`.
#[must_use]
pub fn moment(text: &[u8], digits: u8) -> Option<u64> {
    let number = |from: usize, to: usize| -> Option<u64> {
        let part = text.get(from..to)?;
        let plain = part.iter().all(u8::is_ascii_digit);
        plain
            .then(|| std::str::from_utf8(part).ok()?.parse().ok())
            .flatten()
    };
    let is = |at: usize, byte: u8| text.get(at) == Some(&byte);
    if !is(4, b'-') || !is(7, b'-') {
        return None;
    }
    let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
    if text.len() == 10 {
        return Some(days * DAY);
    }
    if !is(10, b' ') || !is(13, b':') || !is(16, b':') {
        return None;
    }
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = match text.get(19..)? {
        [] => 0,
        [b'.', behind @ ..] if (1..=usize::from(digits.min(6))).contains(&behind.len()) => {
            let places = u32::try_from(6 - behind.len()).ok()?;
            number(20, text.len())? * 10u64.pow(places)
        }
        _ => return None,
    };
    Some(days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + fraction)
}

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;
/// 1970-01-01.
const EPOCH: u64 = 719_528 * DAY;

/// The place of a moment that is told in microseconds since 1970.
#[must_use]
pub fn since_1970(microseconds: u64) -> Option<u64> {
    EPOCH.checked_add(microseconds)
}

/// Days from the year 0 on, as both servers' TO_DAYS() counts them.
#[must_use]
pub fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if year > 9_999 || year == 0 || !(1..=length).contains(&day) {
        return None;
    }
    let before = year - 1;
    let years = before * 365 + before / 4 - before / 100 + before / 400 + 365;
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let months = BEFORE.get(usize::try_from(month - 1).ok()?)?;
    Some(years + months + u64::from(leap && month > 2) + day)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INT: Integer = Integer {
        bits: 32,
        signed: true,
    };
    const UNSIGNED: Integer = Integer {
        bits: 64,
        signed: false,
    };

    #[test]
    fn a_type_holds_its_own_values_only() {
        assert_eq!(
            INT.read(b"2147483647", false)
                .map(|place| INT.number(place)),
            Some(2_147_483_647)
        );
        assert_eq!(INT.read(b"2147483648", false), None);
        assert_eq!(
            INT.read(b"2147483648", true).map(|place| INT.number(place)),
            Some(-2_147_483_648)
        );
        assert_eq!(
            UNSIGNED.read(b"18446744073709551615", false),
            Some(u64::MAX)
        );
        assert_eq!(UNSIGNED.read(b"18446744073709551616", false), None);
        assert_eq!(UNSIGNED.read(b"1", true), None);
        for text in ["", "1a", "0x1", " 1", "+1"] {
            assert_eq!(INT.read(text.as_bytes(), false), None, "{text}");
        }
    }

    #[test]
    fn days_are_counted_as_the_servers_do() {
        // SELECT TO_DAYS(...) on both.
        for (date, count) in [
            ((1970, 1, 1), 719_528),
            ((2000, 2, 29), 730_544),
            ((2026, 11, 23), 740_308),
            ((1, 1, 1), 366),
            ((9999, 12, 31), 3_652_424),
        ] {
            let (year, month, day) = date;
            assert_eq!(days(year, month, day), Some(count), "{date:?}");
        }
        for (year, month, day) in [
            (2026, 2, 29),
            (1900, 2, 29),
            (2026, 13, 1),
            (2026, 0, 1),
            (2026, 4, 31),
            (0, 1, 1),
        ] {
            assert_eq!(days(year, month, day), None);
        }
    }

    #[test]
    fn a_moment_is_written_as_the_server_writes_it_or_not_read() {
        let of = |text: &str| moment(text.as_bytes(), 3);
        assert_eq!(of("1970-01-01"), since_1970(0));
        assert_eq!(of("1970-01-01 00:00:01.5"), since_1970(1_500_000));
        assert_eq!(of("1970-01-02 01:02:03.004"), since_1970(90_123_004_000));
        for text in [
            "1970-1-1",
            "1970-01-01T00:00:00",
            "1970-01-01 00:00",
            "1970-01-01 24:00:00",
            "1970-01-01 00:00:60",
            "1970-01-01 00:00:00.",
            "1970-01-01 00:00:00.0001",
            "1970-01-01 00:00:00+01:00",
            "1970-02-30",
            "0000-00-00",
            "19700101",
            " 1970-01-01",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn places_are_in_the_order_of_numbers(a in any::<i64>(), b in any::<i64>()) {
            let big = Integer { bits: 64, signed: true };
            let (x, y) = (big.of(a.into()).unwrap(), big.of(b.into()).unwrap());
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(big.number(x), i128::from(a));
        }
    }
}
