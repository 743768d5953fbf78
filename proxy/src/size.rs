//! Sizes in bytes, as people write them: a number, optionally followed by a unit.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Units, in lower case, with their bytes.
const UNITS: [(&str, usize); 14] = [
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("", 1),
];
const EXPECTED: &str = "a size in bytes: a whole number from 0, or one with a unit behind it, such as \"512MiB\" or \"1GiB\" (K, M, G and T \
                        are KiB to TiB; KB, MB, GB and TB are powers of 1000)";

/// Parses a size.
///
/// # Errors
/// The expected form of a size.
pub fn parse(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text.len()
        - text
            .trim_start_matches(|it: char| it.is_ascii_digit())
            .len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let bytes = UNITS.iter().find(|(name, _)| *name == unit);
    let number: Option<usize> = number.parse().ok();
    let size = number
        .zip(bytes)
        .map(|(number, (_, bytes))| number.checked_mul(*bytes));
    size.flatten().ok_or_else(|| format!("expected {EXPECTED}"))
}

/// Deserializes a size of the settings file.
///
/// # Errors
/// As [`parse`].
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    deserializer.deserialize_any(SizeVisitor)
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<usize, E> {
        usize::try_from(number).map_err(|_| {
            E::custom(format!(
                "invalid value: integer `{number}`, expected {EXPECTED}"
            ))
        })
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<usize, E> {
        usize::try_from(number).map_err(|_| {
            E::custom(format!(
                "invalid value: integer `{number}`, expected {EXPECTED}"
            ))
        })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
        parse(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_a_unit_or_without() {
        for (text, bytes) in [
            ("0", 0),
            ("268435456", 268_435_456),
            ("1GiB", 1 << 30),
            ("1 gib", 1 << 30),
            ("512MiB", 512 << 20),
            ("64M", 64 << 20),
            ("2k", 2048),
            ("1GB", 1_000_000_000),
            (" 3 B ", 3),
            ("4T", 4 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "GiB",
            "1.5GiB",
            "-1",
            "+1",
            "1 Gi B",
            "1GiBs",
            "99999999999999999999",
            "99999999T",
            "one",
            "1_000",
        ] {
            let error = parse(text).err().unwrap_or_default();
            assert!(error.contains("\"1GiB\""), "{text}: {error}");
        }
    }
}
