//! The tokens of a logged statement, in one [`ReadingMode`]: one pass, without allocation.
//!
//! Unlike [`headwater_sql::lexer`] it does not stop where a text is ambiguous, since each mode decides the meaning. Rules:
//! MySQL 9.7 and MariaDB 10.11, `sql_lex.cc`.

use super::reading_mode::{BackslashEscapes, ReadingMode};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedTokenKind {
    /// A keyword, or an unquoted name.
    Word,
    Number,
    /// A name in back quotes or square brackets; in double quotes it may be a string as well.
    Name,
    /// A string in single quotes.
    Text,
    Punctuation(u8),
    /// From here on it is not known how the text is read: always the last.
    Undecidable,
    /// No server accepts the text (quotes or a comment without an end), so it did not use this mode: always the last.
    Invalid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedToken<'a> {
    pub(crate) kind: LoggedTokenKind,
    /// Without its quotes.
    pub(crate) text: &'a [u8],
    /// The quote that is doubled to stand for itself; 0 without quotes.
    pub(crate) quote: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct LoggedStatementLexer<'a> {
    text: &'a [u8],
    is_complete: bool,
    mode: ReadingMode,
    at: usize,
    in_executed_comment: bool,
    fault: Option<LoggedTokenKind>,
    /// The last token was a point without a name before it: digits that follow are a fraction.
    fraction: bool,
    preceding: PrecedingToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrecedingToken {
    Name,
    Other,
}

enum SkipOutcome {
    Done,
    Undecidable,
    Invalid,
}

impl<'a> LoggedStatementLexer<'a> {
    pub(crate) fn new(
        text: &'a [u8],
        is_complete: bool,
        mode: ReadingMode,
    ) -> LoggedStatementLexer<'a> {
        LoggedStatementLexer {
            text,
            is_complete,
            mode,
            at: 0,
            in_executed_comment: false,
            fault: None,
            fraction: false,
            preceding: PrecedingToken::Other,
        }
    }

    /// The next token, without consuming it.
    pub(crate) fn peek(&self) -> Option<LoggedToken<'a>> {
        self.clone().next()
    }

    /// The last token if it was a fault: [`LoggedTokenKind::Undecidable`] or [`LoggedTokenKind::Invalid`].
    pub(crate) fn fault(&self) -> Option<LoggedTokenKind> {
        self.fault
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn part(&self, from: usize, to: usize) -> &'a [u8] {
        self.text.get(from..to).unwrap_or_default()
    }

    fn is_last(&self, at: usize) -> bool {
        self.is_complete && at + 1 == self.text.len()
    }

    /// True where servers stop reading: at a NUL that is the last byte, and at a semicolon whatever follows it (verified on both; several
    /// statements in one text are logged one by one).
    fn has_ended(&self) -> bool {
        !self.in_executed_comment
            && match self.byte(0) {
                None => self.is_complete,
                Some(0) => self.is_last(self.at),
                Some(byte) => byte == b';',
            }
    }

    /// The result for something unterminated: invalid, or its end is in the missing part.
    fn unterminated(&self) -> SkipOutcome {
        if self.is_complete {
            SkipOutcome::Invalid
        } else {
            SkipOutcome::Undecidable
        }
    }

    fn skip_blank(&mut self) -> SkipOutcome {
        loop {
            let skipped = match (self.byte(0), self.byte(1)) {
                (Some(byte), _) if self.mode.is_space(byte) => {
                    self.at += 1;
                    SkipOutcome::Done
                }
                (Some(b'#'), _) => self.skip_line(),
                (Some(b'-'), Some(b'-')) => match self.byte(2) {
                    None => self.skip_line(),
                    Some(0) if self.is_last(self.at + 2) => self.skip_line(),
                    Some(byte) if self.mode.is_space(byte) => self.skip_line(),
                    // Whether control characters after the dashes make a comment depends on the character set.
                    Some(byte) if byte.is_ascii_control() || byte >= 0x80 => {
                        SkipOutcome::Undecidable
                    }
                    Some(_) => return SkipOutcome::Done,
                },
                (Some(b'/'), Some(b'*')) => self.skip_comment(),
                (Some(b'*'), Some(b'/')) if self.in_executed_comment => {
                    self.in_executed_comment = false;
                    self.at += 2;
                    SkipOutcome::Done
                }
                _ => return SkipOutcome::Done,
            };
            if !matches!(skipped, SkipOutcome::Done) {
                return skipped;
            }
        }
    }

    /// Skips a comment up to the end of its line.
    fn skip_line(&mut self) -> SkipOutcome {
        let rest = self.rest();
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | 0));
        match end.and_then(|end| Some((end, *rest.get(end)?))) {
            Some((end, 0)) if !self.is_last(self.at + end) => return SkipOutcome::Undecidable,
            // Not consumed: the text ends with it.
            Some((end, 0)) => self.at += end,
            Some((end, _)) => self.at += end + 1,
            None if !self.is_complete => return SkipOutcome::Undecidable,
            None => self.at += rest.len(),
        }
        SkipOutcome::Done
    }

    fn skip_comment(&mut self) -> SkipOutcome {
        let body = self.text.get(self.at + 2..).unwrap_or_default();
        let executed = match body {
            [b'!', content @ ..] => Some((1, content)),
            [b'M', b'!', content @ ..] if self.mode.for_mariadb => Some((2, content)),
            _ => None,
        };
        if let Some((marks, content)) = executed {
            let count = content.iter().take_while(|byte| byte.is_ascii_digit());
            // A version has five or six digits; fewer belong to the text.
            let digits = Some(count.count()).filter(|count| *count >= 5);
            let digits = digits.map_or(0, |count| count.min(6));
            let number = content.get(..digits).unwrap_or_default();
            if self.in_executed_comment || number.first() == Some(&b'0') {
                return SkipOutcome::Undecidable;
            }
            let for_all = digits == 0 || digits == 5 && number < &b"50700"[..];
            if for_all || self.mode.for_later || marks == 2 {
                self.in_executed_comment = true;
                self.at += 2 + marks + digits;
                return SkipOutcome::Done;
            }
        }
        let Some(end) = body.windows(2).position(|pair| pair == b"*/") else {
            return self.unterminated();
        };
        self.at += 2 + end + 2;
        SkipOutcome::Done
    }

    fn emit(
        &mut self,
        kind: LoggedTokenKind,
        from: usize,
        to: usize,
        end: usize,
        quote: u8,
    ) -> LoggedToken<'a> {
        let text = self.part(from, to);
        self.at = end;
        self.fraction =
            kind == LoggedTokenKind::Punctuation(b'.') && self.preceding == PrecedingToken::Other;
        self.preceding = match kind {
            LoggedTokenKind::Word | LoggedTokenKind::Name => PrecedingToken::Name,
            _ => PrecedingToken::Other,
        };
        self.fault = Some(kind).filter(|kind| {
            matches!(
                kind,
                LoggedTokenKind::Undecidable | LoggedTokenKind::Invalid
            )
        });
        LoggedToken { kind, text, quote }
    }

    fn emit_fault(&mut self, blank: &SkipOutcome) -> LoggedToken<'a> {
        let kind = match blank {
            SkipOutcome::Invalid => LoggedTokenKind::Invalid,
            _ => LoggedTokenKind::Undecidable,
        };
        let end = self.text.len();
        self.emit(kind, end, end, end, 0)
    }

    fn token(&mut self, first: u8) -> LoggedToken<'a> {
        let at = self.at;
        match first {
            0 => self.emit_fault(&SkipOutcome::Undecidable),
            b'`' => self.quoted(LoggedTokenKind::Name, b'`', false),
            b'\'' => self.quoted(
                LoggedTokenKind::Text,
                b'\'',
                self.mode.escapes != BackslashEscapes::Nowhere,
            ),
            b'"' => self.quoted(
                LoggedTokenKind::Name,
                b'"',
                self.mode.escapes == BackslashEscapes::Both,
            ),
            b'[' if self.mode.brackets => self.quoted(LoggedTokenKind::Name, b']', false),
            _ if first.is_ascii_digit() => self.number_or_word(),
            _ if self.mode.is_word_byte(first) => {
                let end = self.end_of_word(at);
                // A string in dollar quotes, on MySQL 9.
                let dollars = self.part(at, end).iter().filter(|byte| **byte == b'$');
                if first == b'$' && dollars.count() > 1 {
                    return self.emit_fault(&SkipOutcome::Undecidable);
                }
                self.emit(LoggedTokenKind::Word, at, end, end, 0)
            }
            _ => self.emit(LoggedTokenKind::Punctuation(first), at, at + 1, at + 1, 0),
        }
    }

    fn end_of_word(&self, from: usize) -> usize {
        let mut end = from;
        while let Some(byte) = self.text.get(end).copied() {
            if !self.mode.is_word_byte(byte) {
                break;
            }
            end += self
                .mode
                .character_bytes(byte, self.text.get(end + 1).copied());
        }
        end.min(self.text.len())
    }

    /// `12`, `1e5` and the digits of `1.5` are numbers, and a word may follow at once; `1a` is a name.
    fn number_or_word(&mut self) -> LoggedToken<'a> {
        let at = self.at;
        let digits = |from: usize| {
            let rest = self.text.get(from..).unwrap_or_default();
            rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let mut end = at + digits(at);
        let mut number = self.fraction || end == self.end_of_word(at);
        if matches!(self.text.get(end), Some(b'e' | b'E')) {
            let sign = matches!(self.text.get(end + 1), Some(b'+' | b'-'));
            let exponent = end + 1 + usize::from(sign);
            let length = digits(exponent);
            if length > 0 {
                number = true;
                end = exponent + length;
            }
        }
        if number {
            self.emit(LoggedTokenKind::Number, at, end, end, 0)
        } else {
            let end = self.end_of_word(at);
            self.emit(LoggedTokenKind::Word, at, end, end, 0)
        }
    }

    fn quoted(&mut self, kind: LoggedTokenKind, quote: u8, escapes: bool) -> LoggedToken<'a> {
        let from = self.at + 1;
        let mut at = from;
        while let Some(byte) = self.text.get(at).copied() {
            let next = self.text.get(at + 1).copied();
            match byte {
                // In double quotes it belongs to a string: no name contains it.
                0 if kind == LoggedTokenKind::Name && quote != b'"' => {
                    return self.emit_fault(&SkipOutcome::Undecidable);
                }
                b'\\' if escapes => at += 2,
                _ if byte == quote && next == Some(quote) => {
                    if quote == b']' {
                        return self.emit_fault(&SkipOutcome::Undecidable);
                    }
                    at += 2;
                }
                _ if byte == quote => return self.emit(kind, from, at, at + 1, quote),
                _ => at += self.mode.character_bytes(byte, next),
            }
        }
        let blank = self.unterminated();
        self.emit_fault(&blank)
    }
}

impl<'a> Iterator for LoggedStatementLexer<'a> {
    type Item = LoggedToken<'a>;

    fn next(&mut self) -> Option<LoggedToken<'a>> {
        if self.fault.is_some() {
            return None;
        }
        match self.skip_blank() {
            SkipOutcome::Done => {}
            blank => return Some(self.emit_fault(&blank)),
        }
        if self.has_ended() {
            return None;
        }
        let Some(first) = self.byte(0) else {
            return Some(self.emit_fault(&SkipOutcome::Undecidable));
        };
        let token = self.token(first);
        // A token that touches the end of an incomplete text may continue in the missing part.
        let may_continue = !self.is_complete && self.at >= self.text.len() && self.fault.is_none();
        Some(match may_continue {
            true => self.emit_fault(&SkipOutcome::Undecidable),
            false => token,
        })
    }
}

impl LoggedToken<'_> {
    pub(crate) fn is_keyword(&self, word: &str) -> bool {
        self.kind == LoggedTokenKind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    pub(crate) fn is_any_keyword(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_keyword(word))
    }

    pub(crate) fn is_punct(&self, byte: u8) -> bool {
        self.kind == LoggedTokenKind::Punctuation(byte)
    }

    pub(crate) fn is_name(&self) -> bool {
        matches!(self.kind, LoggedTokenKind::Word | LoggedTokenKind::Name)
    }
}
