//! Shows foreign names, texts and errors on one line, with every character visible.
//!
//! A client that may name a database could otherwise write its own line into the log (a line break), colour it or move the cursor (ESC and
//! other controls), or reverse its reading order (controls of writing direction). All foreign text that is shown passes through here: log
//! lines ([`escape_hidden`] as text, [`escape_hidden_in_json`] as JSON), tables for clients and operators, labels of metrics.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces every hidden character by an escape (`\n`, `\u{1b}`); all others stay.
#[must_use]
pub fn escape_hidden(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        push_escaped(letter, &mut escaped);
    }
    Cow::Owned(escaped)
}

/// Like [`escape_hidden`], but keeps line breaks: for Headwater's own texts of several lines.
#[must_use]
pub fn escape_hidden_in_lines(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => escaped.push(letter),
            _ => push_escaped(letter, &mut escaped),
        }
    }
    escaped
}

/// Escapes the strings inside a written JSON document, so that whoever decodes it shows them escaped.
#[must_use]
pub fn escape_hidden_in_json(document: &str) -> String {
    let mut escaped = String::with_capacity(document.len());
    let mut letters = document.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // Between values.
            '\n' => escaped.push(letter),
            '\\' => match letters.next() {
                Some('b') => push_escaped_in_json('\u{8}', &mut escaped),
                Some('f') => push_escaped_in_json('\u{c}', &mut escaped),
                Some('n') => push_escaped_in_json('\n', &mut escaped),
                Some('r') => push_escaped_in_json('\r', &mut escaped),
                Some('t') => push_escaped_in_json('\t', &mut escaped),
                Some('u') => {
                    let digits: String = letters.by_ref().take(4).collect();
                    let letter = u32::from_str_radix(&digits, 16).ok();
                    match letter.and_then(char::from_u32) {
                        Some(letter) => push_escaped_in_json(letter, &mut escaped),
                        // Half of a surrogate pair.
                        None => {
                            let _ = write!(escaped, "\\u{digits}");
                        }
                    }
                }
                Some(other) => escaped.extend(['\\', other]),
                None => escaped.push(letter),
            },
            _ => push_escaped_in_json(letter, &mut escaped),
        }
    }
    escaped
}

fn push_escaped_in_json(letter: char, document: &mut String) {
    if is_hidden(letter) {
        // In the decoded string the escape begins with a backslash, so the document has two.
        document.push('\\');
    }
    push_escaped(letter, document);
}

fn push_escaped(letter: char, text: &mut String) {
    let _ = match letter {
        '\n' => write!(text, "\\n"),
        '\r' => write!(text, "\\r"),
        '\t' => write!(text, "\\t"),
        _ if is_hidden(letter) => write!(text, "\\u{{{:x}}}", u32::from(letter)),
        _ => write!(text, "{letter}"),
    };
}

/// True for characters that are invisible or change how others are shown: controls (C0, DEL, C1), line and paragraph separators,
/// controls of writing direction, and zero-width characters. Joiners are not hidden: scripts and emoji need them.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Every control character of Unicode, and those that end lines or turn the direction of writing.
    fn hidden() -> impl Iterator<Item = char> {
        let controls = ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}');
        controls
            .chain([
                '\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{feff}',
            ])
            .chain('\u{202a}'..='\u{202e}')
            .chain('\u{2066}'..='\u{2069}')
    }

    #[test]
    fn no_control_character_is_shown_as_itself() {
        for letter in hidden() {
            let text = format!("a{letter}b");
            for shown in [
                escape_hidden(&text).into_owned(),
                escape_hidden_in_json(&text),
            ] {
                let escaped = !shown.contains(letter) || letter == '\n';
                assert!(escaped, "{letter:?}: {shown:?}");
            }
            assert!(!escape_hidden(&text).contains(letter), "{letter:?}");
            assert!(
                !escape_hidden_in_lines(&text).contains(letter) || letter == '\n',
                "{letter:?}"
            );
        }
        assert_eq!(
            escape_hidden("a\nb\r\t\u{1b}[31m\u{9b}\u{202e}"),
            r"a\nb\r\t\u{1b}[31m\u{9b}\u{202e}"
        );
        assert_eq!(escape_hidden_in_lines("a\nb\r"), "a\nb\\r");
    }

    #[test]
    fn all_else_is_shown_as_it_is() {
        for text in [
            "",
            "tl.message",
            "été 中文 नमस्ते 👩\u{200d}👧",
            r#"it's \n "x""#,
        ] {
            assert!(matches!(escape_hidden(text), Cow::Borrowed(_)), "{text}");
            assert_eq!(escape_hidden_in_lines(text), text);
        }
        for letter in '\0'..=char::MAX {
            if letter.is_alphanumeric() || letter.is_ascii_punctuation() {
                assert!(!is_hidden(letter), "{letter:?}");
            }
        }
    }

    #[test]
    fn strings_in_json_are_shown_as_texts_are() {
        assert_eq!(
            escape_hidden_in_json("{\"a\":\"b\\n\\u001b \\\"\\\\n\u{7f}\\b\\f\\ud83d\"}\n"),
            "{\"a\":\"b\\\\n\\\\u{1b} \\\"\\\\n\\\\u{7f}\\\\u{8}\\\\u{c}\\ud83d\"}\n"
        );
    }
}
