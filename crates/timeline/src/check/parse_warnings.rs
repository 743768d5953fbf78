//! MySQL's warnings about a procedure's text. It gives them whenever it parses the text: at a session's first call, and at the next
//! call after any routine on the server changes.

/// The warnings that a session's first call of a procedure may cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParseWarnings {
    /// None.
    #[default]
    None,
    /// At most that `utf8` is an alias (ER_DEPRECATED_UTF8_ALIAS, 3719).
    Alias,
    /// Also one about a collation (ER_WARN_DEPRECATED_UTF8MB3_COLLATION, 3778).
    Others,
}

impl ParseWarnings {
    /// The warnings that a text may cause. Comments count as code.
    #[must_use]
    pub fn of(text: &[u8]) -> ParseWarnings {
        let text = text.to_ascii_lowercase();
        let name = b"utf8";
        let windows = text.windows(name.len()).enumerate();
        let suffixes = windows
            .filter(|(_, window)| window == name)
            .map(|(at, _)| text.get(at + name.len()..).unwrap_or_default());
        suffixes
            .map(|suffix| match suffix {
                [b'm', b'b', b'4', ..] => ParseWarnings::None,
                [b'_', ..] | [b'm', b'b', b'3', b'_', ..] => ParseWarnings::Others,
                [b'm', b'b', b'3', ..] => ParseWarnings::None,
                _ => ParseWarnings::Alias,
            })
            .max()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::ParseWarnings::{self, Alias, None, Others};

    #[test]
    fn names_of_utf8mb3_give_rise_to_warnings() {
        let expected: [(&str, ParseWarnings); 9] = [
            ("ENGINE=MEMORY", None),
            ("ENGINE=heap DEFAULT CHARSET=utf8;", Alias),
            ("CHARACTER SET 'UTF8'", Alias),
            ("CHARSET utf8", Alias),
            ("CHARSET=utf8mb4", None),
            ("CHARSET=utf8mb4 COLLATE utf8mb4_bin", None),
            ("CHARSET=utf8mb3", None),
            ("CHARSET=utf8 COLLATE=utf8_bin", Others),
            ("COLLATE Utf8mb3_general_ci", Others),
        ];
        for (text, warnings) in expected {
            assert_eq!(ParseWarnings::of(text.as_bytes()), warnings, "{text}");
        }
    }
}
