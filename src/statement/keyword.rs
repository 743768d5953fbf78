//! Keywords of both servers: as names they may need quotes, so an unquoted one is not taken for a name.

use std::collections::HashSet;
use std::sync::LazyLock;

static KEYWORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    include_str!("keywords.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .collect()
});

/// Whether the word is a keyword of MySQL 9.7 or MariaDB 10.11, reserved or not, whatever the case.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(word.to_ascii_uppercase().as_str())
}
