//! Writes names and strings that every `sql_mode` and character set reads alike.

use std::fmt::{Display, Write};

/// Returns the name as a back-quoted SQL identifier, valid for every name and `sql_mode`.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Appends the values to a text, separated by commas.
pub fn push_list<T: Display>(text: &mut String, values: impl IntoIterator<Item = T>) {
    for (at, value) in values.into_iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Writing into a String does not fail.
        let _ = write!(text, "{comma}{value}");
    }
}

/// Returns the string as a hexadecimal literal, which every `sql_mode` and character set reads alike.
#[must_use]
pub fn hex_literal(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    if digits.is_empty() {
        "X''".into()
    } else {
        format!("0x{digits}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_whatever_it_holds() {
        assert_eq!(quoted("a`b c"), "`a``b c`");
    }
}
