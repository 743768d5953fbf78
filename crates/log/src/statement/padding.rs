//! Blanks and comments at the beginning of a statement, up to its first quote or the like. Every reading mode skips them, so they do not
//! count for its length: padding cannot move a statement's names beyond the limit.

use std::borrow::Cow;

/// Replaces each of them by one blank, if the text is longer than `longer_than`.
pub(super) fn collapse(text: &[u8], longer_than: usize) -> Cow<'_, [u8]> {
    if text.len() <= longer_than {
        return Cow::Borrowed(text);
    }
    let mut output = Vec::new();
    let mut rest = text;
    while let Some((length, is_padding)) = next_piece(rest) {
        let (piece, remainder) = rest.split_at(length.min(rest.len()));
        match is_padding {
            true if output.last() == Some(&b' ') => {}
            true => output.push(b' '),
            false => output.extend_from_slice(piece),
        }
        rest = remainder;
    }
    output.extend_from_slice(rest);
    Cow::Owned(output)
}

/// The length of the next piece that means the same in every reading mode, and whether it is padding.
fn next_piece(text: &[u8]) -> Option<(usize, bool)> {
    match text {
        [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => None,
        [b'/', b'*', rest @ ..] => {
            let end = rest.windows(2).position(|pair| pair == b"*/")?;
            Some((2 + end + 2, true))
        }
        [b'#', rest @ ..] => Some((1 + line_length(rest)?, true)),
        [b'-', b'-', b' ' | b'\t' | b'\n', ..] => Some((2 + line_length(text.get(2..)?)?, true)),
        [b'-', b'-', ..] => None,
        [b'`', rest @ ..] => {
            // A name in back quotes, of letters that are the same in every character set.
            let length = rest.iter().take_while(|byte| is_plain(**byte)).count();
            let closed = rest.get(length) == Some(&b'`') && rest.get(length + 1) != Some(&b'`');
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

/// The length of a line with its end; `None` if a NUL ends it before.
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
