//! The characters of names and statements.

/// Whether the text is a valid name of a case, a list, a part or a scenario.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_')
}

/// Replaces `\n`, `\r`, `\t`, `\\` and `\xNN`, the number of an ASCII character.
pub(super) fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        let (letter, length) = match behind.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'\\') => ('\\', 1),
            Some(b'x') => match behind.get(1..3).map(|hex| u8::from_str_radix(hex, 16)) {
                Some(Ok(byte)) if byte.is_ascii() => (char::from(byte), 3),
                _ => return Err("\\x wants two hexadecimal digits below 80".to_owned()),
            },
            _ => return Err("an unknown escape; a backslash itself is \\\\".to_owned()),
        };
        plain.push(letter);
        rest = &behind[length..];
    }
    plain.push_str(rest);
    Ok(plain)
}
