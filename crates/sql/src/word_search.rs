//! Searches a text for a word, where its tokens are not certain. The text may be long.

use memchr::{memchr2_iter, memmem};

/// True if the text contains the word in any case, even inside another word.
#[must_use]
pub fn contains_ignoring_case(text: &[u8], word: &str) -> bool {
    let mut offsets = occurrences(text, word.as_bytes());
    offsets.next().is_some()
}

/// Like [`contains_ignoring_case`], for a name that need not be UTF-8.
#[must_use]
pub fn contains_name(text: &[u8], name: &[u8]) -> bool {
    occurrences(text, name).next().is_some()
}

/// True if the text contains these bytes, in this case.
#[must_use]
pub fn contains_bytes(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && memmem::find(text, part).is_some()
}

/// True if the text contains the word as a word of its own. A number may precede it directly: `/*!50000USE tl*/`.
#[must_use]
pub fn contains_whole_word(text: &[u8], word: &str) -> bool {
    let continues_word = |byte: Option<&u8>, digits: bool| {
        byte.is_some_and(|&byte| {
            byte.is_ascii_alphabetic() || byte == b'_' || (digits && byte.is_ascii_digit())
        })
    };
    occurrences(text, word.as_bytes()).any(|start| {
        let before = start.checked_sub(1).and_then(|before| text.get(before));
        !continues_word(before, false) && !continues_word(text.get(start + word.len()), true)
    })
}

/// The offsets of a word in a text, in any case. None for an empty word.
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
