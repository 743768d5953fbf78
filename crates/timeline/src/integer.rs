//! Integer column types, and the order of their values.

/// An integer column type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerColumnType {
    /// 8, 16, 24, 32 or 64.
    pub bits: u32,
    /// With negative values.
    pub signed: bool,
}

/// The number of 0 in signed types: negative values are below it.
const SIGNED_ZERO: u64 = 1 << 63;

impl IntegerColumnType {
    /// The largest value that it holds.
    #[must_use]
    pub fn largest(self) -> u64 {
        u64::MAX >> (64 - self.bits + u32::from(self.signed))
    }

    /// The 64-bit type of the same signedness. It encodes every value alike, so rows from before and after a widening agree.
    #[must_use]
    pub fn widest(self) -> IntegerColumnType {
        IntegerColumnType { bits: 64, ..self }
    }

    /// Encodes plain digits, negated if `negative`. `None`: the type does not hold the value.
    #[must_use]
    pub fn parse(self, digits: &[u8], negative: bool) -> Option<u64> {
        let digits = std::str::from_utf8(digits).ok()?;
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let size: u64 = plain.then(|| digits.parse().ok()).flatten()?;
        let value = match negative {
            true => 0i128 - i128::from(size),
            false => i128::from(size),
        };
        self.encode(value)
    }

    /// Maps a value to a number that sorts alike. `None`: the type does not hold it.
    #[must_use]
    pub fn encode(self, value: i128) -> Option<u64> {
        let (least, most) = match self.signed {
            true => (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1),
            false => (0, (1i128 << self.bits) - 1),
        };
        if !(least..=most).contains(&value) {
            return None;
        }
        match self.signed {
            true => u64::try_from(value + i128::from(SIGNED_ZERO)).ok(),
            false => u64::try_from(value).ok(),
        }
    }

    /// The inverse of [`Self::encode`].
    #[must_use]
    pub fn decode(self, encoded: u64) -> i128 {
        match self.signed {
            true => i128::from(encoded) - i128::from(SIGNED_ZERO),
            false => i128::from(encoded),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INT: IntegerColumnType = IntegerColumnType {
        bits: 32,
        signed: true,
    };
    const UNSIGNED: IntegerColumnType = IntegerColumnType {
        bits: 64,
        signed: false,
    };

    #[test]
    fn a_type_holds_its_own_values_only() {
        assert_eq!(
            INT.parse(b"2147483647", false)
                .map(|encoded| INT.decode(encoded)),
            Some(2_147_483_647)
        );
        assert_eq!(INT.parse(b"2147483648", false), None);
        assert_eq!(
            INT.parse(b"2147483648", true)
                .map(|encoded| INT.decode(encoded)),
            Some(-2_147_483_648)
        );
        assert_eq!(
            UNSIGNED.parse(b"18446744073709551615", false),
            Some(u64::MAX)
        );
        assert_eq!(UNSIGNED.parse(b"18446744073709551616", false), None);
        assert_eq!(UNSIGNED.parse(b"1", true), None);
        for text in ["", "1a", "0x1", " 1", "+1"] {
            assert_eq!(INT.parse(text.as_bytes(), false), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn places_are_in_the_order_of_numbers(a in any::<i64>(), b in any::<i64>()) {
            let big = IntegerColumnType { bits: 64, signed: true };
            let (x, y) = (big.encode(a.into()).unwrap(), big.encode(b.into()).unwrap());
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(big.decode(x), i128::from(a));
        }
    }
}
