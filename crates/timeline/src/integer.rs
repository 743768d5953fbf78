//! Integer types of columns, and the order of their values.

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
    /// The same with as many values as there can be. Each has the same place in both: what is told may be from before a column was made
    /// wider, or from behind that.
    #[must_use]
    pub fn widest(self) -> Integer {
        Integer { bits: 64, ..self }
    }

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
