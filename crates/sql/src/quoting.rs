//! Names and strings written so that every `sql_mode` and character set reads them alike.

use std::fmt::{Display, Write};

/// A name as an identifier in SQL, back-quoted: right whatever the name and the session's `sql_mode`.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Writes values into a text, with commas between them.
pub fn push_list<T: Display>(text: &mut String, values: impl IntoIterator<Item = T>) {
    for (at, value) in values.into_iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Writing into a String does not fail.
        let _ = write!(text, "{comma}{value}");
    }
}

/// A string as a hexadecimal literal, which every `sql_mode` and character set reads alike.
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
