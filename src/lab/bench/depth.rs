//! How far down a timeline a page lies.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// As the flag has pages anywhere.
const RANDOM: &str = "random";
/// The deepest page that can be named.
const DEEPEST: u32 = 1_000_000;

/// Which page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The page of this number, counted from the newest; 1 is the newest.
    Page(u32),
    /// Pages that begin at random ids, anywhere between the oldest and the newest.
    Random,
}

impl Depth {
    /// The newest page.
    pub const NEWEST: Depth = Depth::Page(1);
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Depth::Page(number) => write!(f, "page {number}"),
            Depth::Random => write!(f, "{RANDOM} pages"),
        }
    }
}

impl FromStr for Depth {
    type Err = String;

    fn from_str(text: &str) -> Result<Depth, String> {
        let number = text
            .parse()
            .ok()
            .filter(|number| (1..=DEEPEST).contains(number));
        match number {
            Some(number) => Ok(Depth::Page(number)),
            None if text == RANDOM => Ok(Depth::Random),
            None => Err(format!(
                "write a page from 1 to {DEEPEST}, or the word {RANDOM}"
            )),
        }
    }
}

impl Serialize for Depth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Depth::Page(number) => serializer.serialize_u32(*number),
            Depth::Random => serializer.serialize_str(RANDOM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbers_from_1_or_random() {
        assert_eq!("1".parse(), Ok(Depth::NEWEST));
        assert_eq!("random".parse(), Ok(Depth::Random));
        for text in ["0", "-1", "1000001", "Random", ""] {
            assert!(text.parse::<Depth>().is_err(), "{text}");
        }
    }
}
