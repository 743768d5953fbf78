//! A date with a time, as a server writes, sorts and logs it.

use std::fmt;

/// A DATETIME. The fields may form no valid date (`0000-00-00`, and with ALLOW_INVALID_DATES `2026-02-31`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatetimeValue {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    microsecond: u32,
}

const MICROSECONDS_PER_SECOND: u64 = 1_000_000;
const MICROSECONDS_PER_DAY: u64 = 86_400 * MICROSECONDS_PER_SECOND;
/// Days from year 0 to 1970-01-01.
const UNIX_EPOCH_DAYS: u64 = 719_528;

/// The most fraction digits of a second.
pub const MAX_FRACTION_DIGITS: u8 = 6;

impl DatetimeValue {
    /// Parses a server's text: `2026-11-23 10:00:00.5`, or the date alone, with at most this many fraction digits.
    #[must_use]
    pub fn parse(text: &[u8], digits: u8) -> Option<DatetimeValue> {
        let number = |from: usize, to: usize| -> Option<u32> {
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
        let date = DatetimeValue {
            year: number(0, 4)?,
            month: number(5, 7)?,
            day: number(8, 10)?,
            hour: 0,
            minute: 0,
            second: 0,
            microsecond: 0,
        };
        if text.len() == 10 {
            return date.validated();
        }
        if !is(10, b' ') || !is(13, b':') || !is(16, b':') {
            return None;
        }
        let microsecond = match text.get(19..)? {
            [] => 0,
            [b'.', fraction @ ..]
                if (1..=usize::from(digits.min(MAX_FRACTION_DIGITS))).contains(&fraction.len()) =>
            {
                let places = u32::try_from(6 - fraction.len()).ok()?;
                number(20, text.len())? * 10u32.pow(places)
            }
            _ => return None,
        };
        let moment = DatetimeValue {
            hour: number(11, 13)?,
            minute: number(14, 16)?,
            second: number(17, 19)?,
            microsecond,
            ..date
        };
        moment.validated()
    }

    /// Builds a value from year, month, day; hour, minute, second; microseconds. `None`: a field is out of range.
    #[must_use]
    pub fn from_parts(date: [u32; 3], time: [u32; 3], microsecond: u32) -> Option<DatetimeValue> {
        let ([year, month, day], [hour, minute, second]) = (date, time);
        let moment = DatetimeValue {
            year,
            month,
            day,
            hour,
            minute,
            second,
            microsecond,
        };
        moment.validated()
    }

    /// True if it has at most this many fraction digits.
    #[must_use]
    pub fn has_at_most_digits(self, digits: u8) -> bool {
        let step = 10u32.checked_pow(u32::from(MAX_FRACTION_DIGITS.saturating_sub(digits)));
        step.is_some_and(|step| self.microsecond.is_multiple_of(step))
    }

    /// `None`: a field is out of the range that servers store.
    fn validated(self) -> Option<DatetimeValue> {
        let fits = self.year <= 9_999
            && self.month <= 12
            && self.day <= 31
            && self.hour <= 23
            && self.minute <= 59
            && self.second <= 59
            && self.microsecond <= 999_999;
        fits.then_some(self)
    }

    /// A number that sorts as servers do: their packed format (`my_datetime_packed_to_binary`), below 2^63.
    #[must_use]
    pub fn packed(self) -> u64 {
        let DatetimeValue {
            year,
            month,
            day,
            hour,
            minute,
            second,
            microsecond,
        } = self;
        let days = (u64::from(year) * 13 + u64::from(month)) << 5 | u64::from(day);
        let time = u64::from(hour) << 12 | u64::from(minute) << 6 | u64::from(second);
        (days << 17 | time) << 24 | u64::from(microsecond)
    }

    /// The inverse of [`Self::packed`].
    #[must_use]
    pub fn from_packed(packed: u64) -> Option<DatetimeValue> {
        let bits = |from: u32, count: u32| {
            u32::try_from(packed >> from & ((1 << count) - 1)).unwrap_or_default()
        };
        // Servers store no year beyond 9999.
        let months = u32::try_from(packed >> 46).ok()?;
        let moment = DatetimeValue {
            year: months / 13,
            month: months % 13,
            day: bits(41, 5),
            hour: bits(36, 5),
            minute: bits(30, 6),
            second: bits(24, 6),
            microsecond: bits(0, 24),
        };
        moment.validated()
    }

    /// Microseconds since 1970; `None`: earlier, or no valid date.
    #[must_use]
    pub fn unix_microseconds(self) -> Option<u64> {
        let days = self.day_number()?.checked_sub(UNIX_EPOCH_DAYS)?;
        let minutes = u64::from(self.hour) * 60 + u64::from(self.minute);
        let seconds = minutes * 60 + u64::from(self.second);
        Some(
            days * MICROSECONDS_PER_DAY
                + seconds * MICROSECONDS_PER_SECOND
                + u64::from(self.microsecond),
        )
    }

    /// The value this many microseconds after the start of 1970.
    #[must_use]
    pub fn from_unix_microseconds(microseconds: u64) -> Option<DatetimeValue> {
        let (year, month, day) =
            date_of_day_number(microseconds / MICROSECONDS_PER_DAY + UNIX_EPOCH_DAYS)?;
        let seconds =
            u32::try_from(microseconds % MICROSECONDS_PER_DAY / MICROSECONDS_PER_SECOND).ok()?;
        Some(DatetimeValue {
            year,
            month,
            day,
            hour: seconds / 3_600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            microsecond: u32::try_from(microseconds % MICROSECONDS_PER_SECOND).ok()?,
        })
    }

    /// Year, month, day; hour, minute, second; microseconds.
    #[must_use]
    pub fn parts(self) -> ([u32; 3], [u32; 3], u32) {
        let date = [self.year, self.month, self.day];
        (
            date,
            [self.hour, self.minute, self.second],
            self.microsecond,
        )
    }

    /// True for `0000-00-00 00:00:00`.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.packed() == 0
    }

    /// Days since year 0, as TO_DAYS() of both servers counts them; `None`: no valid date.
    #[must_use]
    pub fn day_number(self) -> Option<u64> {
        let DatetimeValue {
            year, month, day, ..
        } = self;
        if year == 0 || !(1..=days_in_month(year, month)?).contains(&day) {
            return None;
        }
        const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let months = BEFORE.get(usize::try_from(month - 1).ok()?)?;
        let leap = u32::from(is_leap(year) && month > 2);
        Some(u64::from(days_before_year(year) + months + leap + day))
    }
}

/// `2026-11-23 10:00:00`, followed by the fraction unless it is 0.
impl fmt::Display for DatetimeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DatetimeValue {
            year,
            month,
            day,
            hour,
            minute,
            second,
            microsecond,
        } = self;
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )?;
        match microsecond {
            0 => Ok(()),
            _ => write!(f, ".{microsecond:06}"),
        }
    }
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in_month(year: u32, month: u32) -> Option<u32> {
    match month {
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(28 + u32::from(is_leap(year))),
        1..=12 => Some(31),
        _ => None,
    }
}

/// Days before a year; years start at 1.
fn days_before_year(year: u32) -> u32 {
    let years = year - 1;
    years * 365 + years / 4 - years / 100 + years / 400 + 365
}

/// The inverse of TO_DAYS(), from year 1 on.
fn date_of_day_number(days: u64) -> Option<(u32, u32, u32)> {
    let days = u32::try_from(days).ok()?;
    let mut year = (days / 366).clamp(1, 9_999);
    while year < 9_999 && days_before_year(year + 1) < days {
        year += 1;
    }
    let mut day = days.checked_sub(days_before_year(year))?;
    let mut month = 1;
    while day > days_in_month(year, month)? {
        day -= days_in_month(year, month)?;
        month += 1;
    }
    (day > 0).then_some((year, month, day))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moment(text: &str) -> Option<DatetimeValue> {
        DatetimeValue::parse(text.as_bytes(), 3)
    }

    #[test]
    fn days_are_counted_as_the_servers_do() {
        // From SELECT TO_DAYS(...) on both servers.
        for (date, count) in [
            ("1970-01-01", 719_528),
            ("2000-02-29", 730_544),
            ("2026-11-23", 740_308),
            ("0001-01-01", 366),
            ("9999-12-31", 3_652_424),
        ] {
            assert_eq!(moment(date).unwrap().day_number(), Some(count), "{date}");
        }
        for text in [
            "2026-02-29",
            "1900-02-29",
            "2026-00-01",
            "2026-04-31",
            "0000-01-01",
            "0000-00-00",
        ] {
            assert_eq!(moment(text).unwrap().day_number(), None, "{text}");
        }
    }

    #[test]
    fn a_moment_is_written_as_the_server_writes_it_or_not_read() {
        let of = |text: &str| moment(text)?.unix_microseconds();
        assert_eq!(of("1970-01-01"), Some(0));
        assert_eq!(of("1970-01-01 00:00:01.5"), Some(1_500_000));
        assert_eq!(of("1970-01-02 01:02:03.004"), Some(90_123_004_000));
        for text in [
            "1970-1-1",
            "1970-01-01T00:00:00",
            "1970-01-01 00:00",
            "1970-01-01 24:00:00",
            "1970-01-01 00:00:60",
            "1970-01-01 00:00:00.",
            "1970-01-01 00:00:00.0001",
            "1970-01-01 00:00:00+01:00",
            "1970-13-01",
            "1970-01-32",
            "19700101",
            " 1970-01-01",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }

    #[test]
    fn invalid_dates_sort_as_on_the_server() {
        let texts = [
            "0000-00-00 00:00:00",
            "0000-00-01 00:00:00",
            "0001-01-01 00:00:00",
            "2026-00-00 00:00:00",
            "2026-02-28 23:59:59.999999",
            "2026-02-31 00:00:00",
            "2026-03-01 00:00:00",
            "9999-12-31 23:59:59.999999",
        ];
        let all = texts.map(|text| DatetimeValue::parse(text.as_bytes(), 6).unwrap());
        assert!(all.is_sorted_by(|a, b| a.packed() < b.packed()));
        assert_eq!(all.map(|moment| moment.to_string()), texts);
        assert!(all[7].packed() < 1 << 63 && all[0].is_zero());
        assert_eq!(DatetimeValue::from_packed(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn a_moment_is_found_again(a in 0u64..253_402_300_800_000_000, b in 0u64..253_402_300_800_000_000) {
            let [x, y] = [a, b].map(|microseconds| DatetimeValue::from_unix_microseconds(microseconds).unwrap());
            prop_assert_eq!(x.unix_microseconds(), Some(a));
            prop_assert_eq!(DatetimeValue::parse(x.to_string().as_bytes(), 6), Some(x));
            prop_assert_eq!(DatetimeValue::from_packed(x.packed()), Some(x));
            prop_assert_eq!(x.packed().cmp(&y.packed()), a.cmp(&b));
        }
    }
}
