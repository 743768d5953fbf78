//! Keywords of both servers. As names they may need quotes, so an unquoted one is not always taken for a name.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Each keyword in upper case; true if neither server reserves it.
static KEYWORDS: LazyLock<HashMap<String, bool>> = LazyLock::new(|| {
    let lines = include_str!("keywords.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let words = lines.flat_map(str::split_whitespace);
    words
        .map(|word| {
            (
                word.to_ascii_uppercase(),
                word.chars().all(|c| !c.is_ascii_uppercase()),
            )
        })
        .collect()
});

/// True for a keyword of MySQL 9.7 or MariaDB 10.11, reserved or not, in any case.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains_key(&word.to_ascii_uppercase())
}

/// True if the word needs quotes as a column or table name, on either server or in some positions.
pub fn is_reserved(word: &str) -> bool {
    KEYWORDS.get(&word.to_ascii_uppercase()) == Some(&false)
}
