//! Keywords of both servers: as names they may need quotes, so an unquoted one is not always taken for a name.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Each keyword in upper case, and whether it is reserved nowhere.
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

/// Whether the word is a keyword of MySQL 9.7 or MariaDB 10.11, reserved or not, whatever the case.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains_key(&word.to_ascii_uppercase())
}

/// Whether the word needs quotes, on one of the servers or in some places, to be the name of a column or a table.
pub fn is_reserved(word: &str) -> bool {
    KEYWORDS.get(&word.to_ascii_uppercase()) == Some(&false)
}
