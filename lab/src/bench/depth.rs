//! How far down a timeline a page lies.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The flag's value for random pages.
const RANDOM: &str = "random";
/// The deepest page that can be named.
const MAX_PAGE: u32 = 1_000_000;

/// Which page is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageDepth {
    /// The page of this number, counted from the newest; 1 is the newest.
    Page(u32),
    /// Pages that begin at random ids, anywhere between the oldest and the newest.
    Random,
}

impl PageDepth {
    /// The newest page.
    pub const NEWEST: PageDepth = PageDepth::Page(1);
}

impl fmt::Display for PageDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageDepth::Page(number) => write!(f, "page {number}"),
            PageDepth::Random => write!(f, "{RANDOM} pages"),
        }
    }
}

impl FromStr for PageDepth {
    type Err = String;

    fn from_str(text: &str) -> Result<PageDepth, String> {
        let number = text
            .parse()
            .ok()
            .filter(|number| (1..=MAX_PAGE).contains(number));
        match number {
            Some(number) => Ok(PageDepth::Page(number)),
            None if text == RANDOM => Ok(PageDepth::Random),
            None => Err(format!(
                "write a page from 1 to {MAX_PAGE}, or the word {RANDOM}"
            )),
        }
    }
}

impl Serialize for PageDepth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            PageDepth::Page(number) => serializer.serialize_u32(*number),
            PageDepth::Random => serializer.serialize_str(RANDOM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbers_from_1_or_random() {
        assert_eq!("1".parse(), Ok(PageDepth::NEWEST));
        assert_eq!("random".parse(), Ok(PageDepth::Random));
        for text in ["0", "-1", "1000001", "Random", ""] {
            assert!(text.parse::<PageDepth>().is_err(), "{text}");
        }
    }
}
