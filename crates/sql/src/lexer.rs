//! Splits a statement into tokens that both servers read alike, whatever the session's `sql_mode` and character set.
//!
//! Text that can be read in two ways (a backslash in a string, a comment that the server executes, a byte that may be half a
//! character) is one [`TokenKind::Opaque`] token that ends the text. Rules: MySQL 9.7 and MariaDB 10.11, `sql_lex.cc`.

use memchr::{memchr2, memchr3};

/// One token of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlToken<'a> {
    /// Its kind.
    pub kind: TokenKind,
    /// Its bytes, quotes included.
    pub text: &'a [u8],
    /// Its offset in the statement, in bytes.
    pub at: usize,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A keyword or an unquoted name. One that starts with a digit (`1a`, `0x1`, `1e3`) is here as well.
    Word,
    /// Decimal digits only.
    Number,
    /// A name in back quotes.
    QuotedName,
    /// Text in single or double quotes: a string, or with `ANSI_QUOTES` a name.
    QuotedText,
    /// One byte of punctuation.
    Punct(u8),
    /// The text from here on is not understood. Always the last token.
    Opaque,
}

/// Iterates over the tokens of a statement, without comments and white space.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    /// Reads `text` from its start.
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The bytes after the last token.
    pub fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// True if only white space remains. After a semicolon, the statement ends there.
    pub fn is_at_end(&self) -> bool {
        self.rest().iter().all(|&byte| is_space(byte))
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// Skips white space and comments. False: a comment that the server may execute, or that does not end.
    fn skip_blank(&mut self) -> bool {
        loop {
            let len = match (self.peek(0), self.peek(1)) {
                (Some(byte), _) if is_space(byte) => Some(1),
                (Some(b'#'), _) => self.line_comment_len(),
                // Two dashes are a comment only before white space or the end: `5--1` is a sum.
                (Some(b'-'), Some(b'-')) => match self.peek(2) {
                    None => self.line_comment_len(),
                    Some(byte) if is_space(byte) => self.line_comment_len(),
                    // Also before other control characters, but which ones depends on the character set.
                    Some(byte) if byte.is_ascii_control() => None,
                    Some(_) => return true,
                },
                (Some(b'/'), Some(b'*')) => self.block_comment_len(),
                _ => return true,
            };
            match len {
                Some(len) => self.at += len,
                None => return false,
            }
        }
    }

    /// The length of a comment up to the end of the line. `None` if it holds a NUL, where both servers report an error.
    fn line_comment_len(&self) -> Option<usize> {
        let rest = self.rest();
        let len = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(rest.len(), |end| end + 1);
        (!rest.iter().take(len).any(|&byte| byte == 0)).then_some(len)
    }

    /// The length of a comment in `/*` and `*/`.
    fn block_comment_len(&self) -> Option<usize> {
        let body = self.text.get(self.at + 2..).unwrap_or_default();
        // `/*!` and MariaDB's `/*M!` are executed, `/*+` holds optimizer hints.
        let executed = matches!(body, [b'!' | b'+', ..] | [b'M' | b'm', b'!', ..]);
        let end = body.windows(2).position(|pair| pair == b"*/")?;
        (!executed && !body.iter().take(end).any(|&byte| byte == 0)).then_some(2 + end + 2)
    }

    /// The kind and length of the token at the current position, which starts with `first`.
    fn token(&self, first: u8) -> Option<(TokenKind, usize)> {
        match first {
            // MySQL 9 has strings in dollar quotes.
            b'$' => None,
            _ if is_word(first) => {
                let len = self
                    .rest()
                    .iter()
                    .take_while(|&&byte| is_word(byte))
                    .count();
                let digits = self
                    .rest()
                    .iter()
                    .take_while(|&&byte| byte.is_ascii_digit())
                    .count();
                Some((
                    if len == digits {
                        TokenKind::Number
                    } else {
                        TokenKind::Word
                    },
                    len,
                ))
            }
            b'`' => self
                .quoted_len(b'`')
                .map(|len| (TokenKind::QuotedName, len)),
            b'\'' | b'"' => self
                .quoted_len(first)
                .map(|len| (TokenKind::QuotedText, len)),
            b'!'..=b'~' => Some((TokenKind::Punct(first), 1)),
            // A control character, or a high byte: a letter in one character set, white space or half a letter in another.
            _ => None,
        }
    }

    /// The length of a quoted text, where a doubled quote is one character. `NO_BACKSLASH_ESCAPES` decides whether a backslash escapes, so
    /// a string with one is not understood; in back quotes it is an ordinary character.
    fn quoted_len(&self, quote: u8) -> Option<usize> {
        let text = self.rest();
        let mut len = 1;
        loop {
            let rest = text.get(len..)?;
            let next = match quote {
                b'`' => memchr2(quote, 0, rest),
                _ => memchr3(quote, 0, b'\\', rest),
            };
            len += next?;
            let before = text.get(len - 1).copied().filter(|_| len > 1);
            // A back quote is also the second half of characters in GBK, Big5 and Shift JIS; a single or double quote never is.
            let half = quote == b'`' && before.is_some_and(|before| before >= 0x80);
            if text.get(len) != Some(&quote) || half {
                return None;
            }
            if text.get(len + 1) != Some(&quote) {
                return Some(len + 1);
            }
            len += 2;
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = SqlToken<'a>;

    fn next(&mut self) -> Option<SqlToken<'a>> {
        let understood = self.skip_blank();
        let at = self.at;
        let first = self.peek(0)?;
        let (kind, len) = if understood { self.token(first) } else { None }
            .unwrap_or((TokenKind::Opaque, self.rest().len()));
        let text = self.rest().get(..len)?;
        self.at += len;
        Some(SqlToken { kind, text, at })
    }
}

impl SqlToken<'_> {
    /// True if it is this unquoted word, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    /// True if it is this byte of punctuation.
    pub fn is_punct(&self, byte: u8) -> bool {
        self.kind == TokenKind::Punct(byte)
    }

    /// The bytes of a word, or those between quotes of any kind, unchanged; `None` for other tokens.
    pub fn unquoted(&self) -> Option<&[u8]> {
        match self.kind {
            TokenKind::Word => Some(self.text),
            TokenKind::QuotedName | TokenKind::QuotedText => {
                self.text.get(1..self.text.len().checked_sub(1)?)
            }
            TokenKind::Number | TokenKind::Punct(_) | TokenKind::Opaque => None,
        }
    }

    /// The name it stands for: an unquoted word, or the content of back quotes. `None` if it is no name, or not ASCII.
    pub fn name(&self) -> Option<String> {
        let text = match self.kind {
            TokenKind::Word if !self.text.first()?.is_ascii_digit() => self.text,
            TokenKind::QuotedName => self.unquoted()?,
            _ => return None,
        };
        let text = std::str::from_utf8(text)
            .ok()
            .filter(|text| text.is_ascii())?;
        Some(if self.kind == TokenKind::QuotedName {
            text.replace("``", "`")
        } else {
            text.into()
        })
    }
}

/// `Some` at the end of the statement. Comments may precede it; after its semicolon only white space may follow, as more is a second one.
pub fn end_of_statement(mut lexer: Lexer<'_>) -> Option<()> {
    match lexer.next() {
        None => Some(()),
        Some(token) => (token.is_punct(b';') && lexer.is_at_end()).then_some(()),
    }
}

/// White space in every character set that a client may use.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}
