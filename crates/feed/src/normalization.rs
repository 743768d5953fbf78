//! Statements for people to read: without values, comments and line breaks. Statements that differ in nothing else read the same.

/// A longer statement is shown with gaps, in characters.
const MOST_CHARS: usize = 400;
/// Most characters of its columns that are shown then.
const MOST_COLUMN_CHARS: usize = 60;

/// A text with `?` for each literal and `(...)` for a list of them. The parser need not understand it.
#[must_use]
pub fn normalized_text(text: &[u8]) -> String {
    let mut writer = NormalizingWriter {
        text,
        at: 0,
        out: Vec::with_capacity(text.len()),
    };
    while writer.step() {}
    while writer
        .out
        .last()
        .is_some_and(|last| matches!(last, b' ' | b';'))
    {
        writer.out.pop();
    }
    String::from_utf8_lossy(&writer.out).into_owned()
}

/// Shortens a long text by gaps. Its columns say less than the rest.
#[must_use]
pub fn shortened(shown: &str) -> String {
    let count = shown.chars().count();
    if count <= MOST_CHARS {
        return shown.to_owned();
    }
    let from = shown.to_ascii_uppercase().find(" FROM ");
    let (columns, rest) = shown.split_at(from.unwrap_or_default());
    let columns = match columns.chars().count() {
        few if few <= MOST_COLUMN_CHARS => columns.to_owned(),
        _ => columns
            .chars()
            .take(MOST_COLUMN_CHARS)
            .chain(" ...".chars())
            .collect(),
    };
    let room = MOST_CHARS.saturating_sub(columns.chars().count());
    match rest.chars().count() {
        few if few <= room => format!("{columns}{rest}"),
        many => {
            // The order and the limit are at the end.
            let (front, back) = (room * 3 / 4, room / 4);
            let front: String = rest.chars().take(front).collect();
            let back: String = rest.chars().skip(many - back).collect();
            format!("{columns}{front} ... {back}")
        }
    }
}

struct NormalizingWriter<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
}

impl NormalizingWriter<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// Writes the next token; false at the end.
    fn step(&mut self) -> bool {
        let Some(byte) = self.peek(0) else {
            return false;
        };
        match byte {
            b'\'' | b'"' => {
                self.skip_quoted(byte, true);
                self.out.push(b'?');
            }
            b'`' => {
                let start = self.at;
                self.skip_quoted(byte, false);
                self.out
                    .extend_from_slice(self.text.get(start..self.at).unwrap_or_default());
            }
            b'/' if self.peek(1) == Some(b'*') => {
                let rest = self.text.get(self.at + 2..).unwrap_or_default();
                let end = rest.windows(2).position(|pair| pair == b"*/");
                self.at += end.map_or(rest.len(), |end| end + 2) + 2;
                self.push_space();
            }
            b'#' => self.skip_line_comment(),
            b'-' if self.peek(1) == Some(b'-') && self.peek(2).is_none_or(|byte| byte <= b' ') => {
                self.skip_line_comment()
            }
            _ if byte <= b' ' => {
                self.at += 1;
                self.push_space();
            }
            b'0'..=b'9' => {
                self.skip(|byte| is_word(byte) || byte == b'.');
                self.out.push(b'?');
            }
            _ if is_word(byte) => {
                let start = self.at;
                self.skip(is_word);
                self.out
                    .extend_from_slice(self.text.get(start..self.at).unwrap_or_default());
            }
            b',' => {
                self.at += 1;
                if self.out.last() == Some(&b' ') {
                    self.out.pop();
                }
                self.out.extend_from_slice(b", ");
            }
            _ => {
                self.at += 1;
                self.out.push(byte);
                if byte == b')' {
                    self.collapse_list();
                }
            }
        }
        true
    }

    fn skip(&mut self, while_it_is: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&while_it_is) {
            self.at += 1;
        }
    }

    fn skip_line_comment(&mut self) {
        self.skip(|byte| byte != b'\n');
        self.push_space();
    }

    fn push_space(&mut self) {
        if !matches!(self.out.last(), None | Some(b' ' | b'(')) {
            self.out.push(b' ');
        }
    }

    /// Skips a quoted text.
    fn skip_quoted(&mut self, quote: u8, escapes: bool) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                if self.peek(0) != Some(quote) {
                    break;
                }
                self.at += 1;
            }
        }
        self.at = self.at.min(self.text.len());
    }

    /// After a closing parenthesis: replaces a list of literals after IN, however long.
    fn collapse_list(&mut self) {
        let Some(open) = self.out.iter().rposition(|byte| *byte == b'(') else {
            return;
        };
        let (before, list) = self.out.split_at(open);
        let literals = list
            .iter()
            .all(|byte| matches!(byte, b'(' | b')' | b'?' | b',' | b' ' | b'-'));
        let before = before.trim_ascii_end();
        let is_in = before.len() >= 3
            && before
                .get(before.len() - 2..)
                .is_some_and(|word| word.eq_ignore_ascii_case(b"IN"))
            && !is_word(before.get(before.len() - 3).copied().unwrap_or_default());
        if literals && is_in && list.contains(&b'?') {
            self.out.truncate(open);
            self.out.extend_from_slice(b"(...)");
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> String {
        normalized_text(text.as_bytes())
    }

    #[test]
    fn values_are_not_shown() {
        for (text, expected) in [
            (
                "SELECT  a,b\n FROM t WHERE c = 'it''s' AND d = \"x\\\"y\" LIMIT 5;",
                "SELECT a, b FROM t WHERE c = ? AND d = ? LIMIT ?",
            ),
            (
                "SELECT a FROM t1 WHERE b IN (1, 2,3) AND c IN('x','y')",
                "SELECT a FROM t1 WHERE b IN (...) AND c IN(...)",
            ),
            (
                "SELECT a FROM `t` -- mine\n WHERE b = 0x1F AND c > -1.5e3 # x",
                "SELECT a FROM `t` WHERE b = ? AND c > -?",
            ),
            (
                "SELECT /* of 7 */ a FROM t WHERE b IN (?, ?)",
                "SELECT a FROM t WHERE b IN (...)",
            ),
            (
                "SELECT a FROM t WHERE b IN ( SELECT c FROM d WHERE e = 1 )",
                "SELECT a FROM t WHERE b IN (SELECT c FROM d WHERE e = ? )",
            ),
            ("SELECT 'open", "SELECT ?"),
            ("SELECT 'open\\", "SELECT ?"),
            ("SELECT /* open", "SELECT"),
        ] {
            assert_eq!(of(text), expected);
        }
    }

    #[test]
    fn a_long_statement_keeps_its_tables_and_its_order() {
        let columns = vec!["`t`.`a_rather_long_name`"; 100].join(", ");
        let text = of(&format!(
            "SELECT {columns} FROM t WHERE a IN (1) ORDER BY id DESC LIMIT 5"
        ));
        let short = shortened(&text);
        assert!(short.chars().count() <= MOST_CHARS + 10, "{short}");
        assert!(
            short.ends_with("... FROM t WHERE a IN (...) ORDER BY id DESC LIMIT ?"),
            "{short}"
        );
        let conditions = vec!["a_rather_long_name = 5"; 100].join(" AND ");
        let short = shortened(&of(&format!(
            "SELECT a FROM t WHERE {conditions} ORDER BY id DESC LIMIT 5"
        )));
        assert!(
            short.chars().count() <= MOST_CHARS + 10 && short.ends_with("ORDER BY id DESC LIMIT ?"),
            "{short}"
        );
        assert_eq!(shortened("SELECT a"), "SELECT a");
    }

    proptest! {
        #[test]
        fn a_text_of_quotes_and_comments_is_one_line(text in "[a-cI N('\"`)\\\\,?0-9 #/*-]{0,60}") {
            let once = of(&text);
            prop_assert!(!once.bytes().any(|byte| byte == b'\n'));
            prop_assert!(!shortened(&once).contains(char::from(10)));
        }

        #[test]
        fn no_byte_is_too_strange(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = shortened(&normalized_text(&text));
        }
    }
}
