//! Blanks and comments at the beginning of a statement, up to its first quote or the like: every way of reading skips them alike, so a
//! statement is not longer by them than it is without. Whoever pads one so that its names stand far behind gains nothing.

use std::borrow::Cow;

/// The text with one blank in place of each of them, where it is longer than this.
pub(super) fn collapse(text: &[u8], longer_than: usize) -> Cow<'_, [u8]> {
    if text.len() <= longer_than {
        return Cow::Borrowed(text);
    }
    let mut kept = Vec::new();
    let mut rest = text;
    while let Some((length, is_padding)) = next_piece(rest) {
        let (begins, behind) = rest.split_at(length.min(rest.len()));
        match is_padding {
            true if kept.last() == Some(&b' ') => {}
            true => kept.push(b' '),
            false => kept.extend_from_slice(begins),
        }
        rest = behind;
    }
    kept.extend_from_slice(rest);
    Cow::Owned(kept)
}

/// How long the next piece is that means the same in every way of reading, and whether that is nothing.
fn next_piece(text: &[u8]) -> Option<(usize, bool)> {
    match text {
        [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => None,
        [b'/', b'*', behind @ ..] => {
            let end = behind.windows(2).position(|pair| pair == b"*/")?;
            Some((2 + end + 2, true))
        }
        [b'#', behind @ ..] => Some((1 + line_length(behind)?, true)),
        [b'-', b'-', b' ' | b'\t' | b'\n', ..] => Some((2 + line_length(text.get(2..)?)?, true)),
        [b'-', b'-', ..] => None,
        [b'`', behind @ ..] => {
            // A name in back quotes of letters that are the same in every character set.
            let length = behind.iter().take_while(|byte| is_plain(**byte)).count();
            let closed = behind.get(length) == Some(&b'`') && behind.get(length + 1) != Some(&b'`');
            closed.then_some((length + 2, false))
        }
        [byte, ..] if is_blank(*byte) => {
            let blanks = text.iter().take_while(|byte| is_blank(**byte));
            Some((blanks.count(), true))
        }
        [byte, ..]
            if is_plain(*byte)
                || matches!(
                    byte,
                    b'.' | b',' | b'(' | b')' | b'=' | b'@' | b'-' | b'/' | b'*'
                ) =>
        {
            Some((1, false))
        }
        _ => None,
    }
}

/// A line with its end, where it holds nothing that ends it before.
fn line_length(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | 0))?;
    (text.get(end) == Some(&b'\n')).then_some(end + 1)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
