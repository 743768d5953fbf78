//! Whether a text holds a word: asked of texts whose tokens are not certain.

/// Whether a text holds a word, in whatever case, even as a part of others.
#[must_use]
pub fn holds(text: &[u8], word: &str) -> bool {
    let word = word.as_bytes();
    // Most places are passed by a look at one byte: texts may be long.
    let begins = |part: &[u8]| match (part.first(), word.first()) {
        (Some(own), Some(first)) => own.eq_ignore_ascii_case(first),
        _ => true,
    };
    text.windows(word.len().max(1))
        .any(|part| begins(part) && part.eq_ignore_ascii_case(word))
}

/// Whether a text holds these bytes somewhere, in this case.
#[must_use]
pub fn contains(text: &[u8], part: &[u8]) -> bool {
    let first = part.first();
    let mut parts = text.windows(part.len().max(1));
    parts.any(|own| own.first() == first && own == part)
}

/// Whether a text holds a word as one of its own. A number may stand right before it: `/*!50000USE tl*/`.
#[must_use]
pub fn holds_word(text: &[u8], word: &str) -> bool {
    let goes_on = |byte: Option<&u8>, digits: bool| {
        byte.is_some_and(|&byte| {
            byte.is_ascii_alphabetic() || byte == b'_' || (digits && byte.is_ascii_digit())
        })
    };
    let ends = word.len()..=text.len();
    ends.map(|end| (end - word.len(), end)).any(|(start, end)| {
        let found = text
            .get(start..end)
            .is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()));
        found
            && !goes_on(
                start.checked_sub(1).and_then(|before| text.get(before)),
                false,
            )
            && !goes_on(text.get(end), true)
    })
}
