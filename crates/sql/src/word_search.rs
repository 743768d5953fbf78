//! Whether a text holds a word: asked of texts whose tokens are not certain, and that may be long.

use memchr::{memchr2_iter, memmem};

/// Whether a text holds a word, in whatever case, even as a part of others.
#[must_use]
pub fn contains_ignoring_case(text: &[u8], word: &str) -> bool {
    let mut places = occurrences(text, word.as_bytes());
    places.next().is_some()
}

/// The same of a name, which need not be text.
#[must_use]
pub fn contains_name(text: &[u8], name: &[u8]) -> bool {
    occurrences(text, name).next().is_some()
}

/// Whether a text holds these bytes somewhere, in this case.
#[must_use]
pub fn contains_bytes(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && memmem::find(text, part).is_some()
}

/// Whether a text holds a word as one of its own. A number may stand right before it: `/*!50000USE tl*/`.
#[must_use]
pub fn contains_whole_word(text: &[u8], word: &str) -> bool {
    let goes_on = |byte: Option<&u8>, digits: bool| {
        byte.is_some_and(|&byte| {
            byte.is_ascii_alphabetic() || byte == b'_' || (digits && byte.is_ascii_digit())
        })
    };
    occurrences(text, word.as_bytes()).any(|start| {
        let before = start.checked_sub(1).and_then(|before| text.get(before));
        !goes_on(before, false) && !goes_on(text.get(start + word.len()), true)
    })
}

/// Where a word stands in a text, in whatever case. The empty one stands nowhere.
fn occurrences<'a>(text: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = word
        .first()
        .map(|first| memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), text));
    first.into_iter().flatten().filter(move |start| {
        let end = start.saturating_add(word.len());
        text.get(*start..end)
            .is_some_and(|part| part.eq_ignore_ascii_case(word))
    })
}
