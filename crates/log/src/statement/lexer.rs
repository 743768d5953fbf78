//! The words of a logged statement, in one [`Reading`]: one pass, nothing kept.
//!
//! Unlike [`headwater_sql::lexer`] it goes on where texts differ in what they mean, since each reading says which it is. Rules:
//! MySQL 9.7 and MariaDB 10.11, `sql_lex.cc`.

use super::reading::{Escapes, Reading};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword, or a name without quotes.
    Word,
    Number,
    /// A name in back quotes or square brackets; in double quotes it may be a string as well.
    Name,
    /// A string in single quotes.
    Text,
    Punct(u8),
    /// From here on it is not known how the text is read: always the last.
    Unsure,
    /// No server reads a text on like this (quotes or a comment without an end), so it was not read in this way: always the last.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// Without quotes around it.
    pub(crate) text: &'a [u8],
    /// The quote that stands doubled for itself; 0 without quotes.
    pub(crate) quote: u8,
}

/// Gives the words.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    /// The text is all there.
    whole: bool,
    reading: Reading,
    at: usize,
    /// Within a comment that is executed.
    inside: bool,
    fault: Option<Kind>,
    /// The last was a point, and before it no name: digits that follow are those of a number.
    fraction: bool,
    before: Before,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Name,
    Other,
}

/// What skipping blanks and comments came to.
enum Blank {
    Done,
    Unsure,
    Broken,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8], whole: bool, reading: Reading) -> Lexer<'a> {
        Lexer {
            text,
            whole,
            reading,
            at: 0,
            inside: false,
            fault: None,
            fraction: false,
            before: Before::Other,
        }
    }

    /// The next token, which stays.
    pub(crate) fn peek(&self) -> Option<Token<'a>> {
        self.clone().next()
    }

    /// What was met at last if it is no word: [`Kind::Unsure`] or [`Kind::Broken`].
    pub(crate) fn fault(&self) -> Option<Kind> {
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

    /// True for the place of the text's last byte.
    fn is_last(&self, at: usize) -> bool {
        self.whole && at + 1 == self.text.len()
    }

    /// True where servers read no further: they take one NUL for the end if it is the last byte, and a semicolon whatever stands
    /// behind it (asked of both; of several statements in one text each is logged by itself).
    fn has_ended(&self) -> bool {
        !self.inside
            && match self.byte(0) {
                None => self.whole,
                Some(0) => self.is_last(self.at),
                Some(byte) => byte == b';',
            }
    }

    /// What has no end has none, or it lies behind what is there.
    fn without_end(&self) -> Blank {
        if self.whole {
            Blank::Broken
        } else {
            Blank::Unsure
        }
    }

    fn skip_blank(&mut self) -> Blank {
        loop {
            let skipped = match (self.byte(0), self.byte(1)) {
                (Some(byte), _) if self.reading.is_space(byte) => {
                    self.at += 1;
                    Blank::Done
                }
                (Some(b'#'), _) => self.skip_line(),
                (Some(b'-'), Some(b'-')) => match self.byte(2) {
                    None => self.skip_line(),
                    Some(0) if self.is_last(self.at + 2) => self.skip_line(),
                    Some(byte) if self.reading.is_space(byte) => self.skip_line(),
                    // A comment before control characters: which bytes those are depends on the character set.
                    Some(byte) if byte.is_ascii_control() || byte >= 0x80 => Blank::Unsure,
                    Some(_) => return Blank::Done,
                },
                (Some(b'/'), Some(b'*')) => self.skip_comment(),
                (Some(b'*'), Some(b'/')) if self.inside => {
                    self.inside = false;
                    self.at += 2;
                    Blank::Done
                }
                _ => return Blank::Done,
            };
            if !matches!(skipped, Blank::Done) {
                return skipped;
            }
        }
    }

    /// A comment up to the end of its line.
    fn skip_line(&mut self) -> Blank {
        let rest = self.rest();
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | 0));
        match end.and_then(|end| Some((end, *rest.get(end)?))) {
            Some((end, 0)) if !self.is_last(self.at + end) => return Blank::Unsure,
            // It stays: the text ends with it.
            Some((end, 0)) => self.at += end,
            Some((end, _)) => self.at += end + 1,
            None if !self.whole => return Blank::Unsure,
            None => self.at += rest.len(),
        }
        Blank::Done
    }

    fn skip_comment(&mut self) -> Blank {
        let body = self.text.get(self.at + 2..).unwrap_or_default();
        let executed = match body {
            [b'!', behind @ ..] => Some((1, behind)),
            [b'M', b'!', behind @ ..] if self.reading.for_mariadb => Some((2, behind)),
            _ => None,
        };
        if let Some((marks, behind)) = executed {
            let count = behind.iter().take_while(|byte| byte.is_ascii_digit());
            // Five digits or six are a version; fewer belong to the text.
            let digits = Some(count.count()).filter(|count| *count >= 5);
            let digits = digits.map_or(0, |count| count.min(6));
            let number = behind.get(..digits).unwrap_or_default();
            if self.inside || number.first() == Some(&b'0') {
                return Blank::Unsure;
            }
            let for_all = digits == 0 || digits == 5 && number < &b"50700"[..];
            if for_all || self.reading.for_later || marks == 2 {
                self.inside = true;
                self.at += 2 + marks + digits;
                return Blank::Done;
            }
        }
        let Some(end) = body.windows(2).position(|pair| pair == b"*/") else {
            return self.without_end();
        };
        self.at += 2 + end + 2;
        Blank::Done
    }

    fn take(&mut self, kind: Kind, from: usize, to: usize, end: usize, quote: u8) -> Token<'a> {
        let text = self.part(from, to);
        self.at = end;
        self.fraction = kind == Kind::Punct(b'.') && self.before == Before::Other;
        self.before = match kind {
            Kind::Word | Kind::Name => Before::Name,
            _ => Before::Other,
        };
        self.fault = Some(kind).filter(|kind| matches!(kind, Kind::Unsure | Kind::Broken));
        Token { kind, text, quote }
    }

    fn last(&mut self, blank: &Blank) -> Token<'a> {
        let kind = match blank {
            Blank::Broken => Kind::Broken,
            _ => Kind::Unsure,
        };
        let end = self.text.len();
        self.take(kind, end, end, end, 0)
    }

    fn token(&mut self, first: u8) -> Token<'a> {
        let at = self.at;
        match first {
            0 => self.last(&Blank::Unsure),
            b'`' => self.quoted(Kind::Name, b'`', false),
            b'\'' => self.quoted(Kind::Text, b'\'', self.reading.escapes != Escapes::Nowhere),
            b'"' => self.quoted(Kind::Name, b'"', self.reading.escapes == Escapes::Both),
            b'[' if self.reading.brackets => self.quoted(Kind::Name, b']', false),
            _ if first.is_ascii_digit() => self.number_or_word(),
            _ if self.reading.is_word(first) => {
                let end = self.end_of_word(at);
                // A string in dollar quotes, on MySQL 9.
                let dollars = self.part(at, end).iter().filter(|byte| **byte == b'$');
                if first == b'$' && dollars.count() > 1 {
                    return self.last(&Blank::Unsure);
                }
                self.take(Kind::Word, at, end, end, 0)
            }
            _ => self.take(Kind::Punct(first), at, at + 1, at + 1, 0),
        }
    }

    /// Where the word ends that stands here.
    fn end_of_word(&self, from: usize) -> usize {
        let mut end = from;
        while let Some(byte) = self.text.get(end).copied() {
            if !self.reading.is_word(byte) {
                break;
            }
            end += self.reading.width(byte, self.text.get(end + 1).copied());
        }
        end.min(self.text.len())
    }

    /// `12`, `1e5` and the digits of `1.5` are numbers, and a word may follow at once; `1a` is a name.
    fn number_or_word(&mut self) -> Token<'a> {
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
            self.take(Kind::Number, at, end, end, 0)
        } else {
            let end = self.end_of_word(at);
            self.take(Kind::Word, at, end, end, 0)
        }
    }

    fn quoted(&mut self, kind: Kind, quote: u8, escapes: bool) -> Token<'a> {
        let from = self.at + 1;
        let mut at = from;
        while let Some(byte) = self.text.get(at).copied() {
            let next = self.text.get(at + 1).copied();
            match byte {
                // In double quotes it is a string's: no name holds it.
                0 if kind == Kind::Name && quote != b'"' => return self.last(&Blank::Unsure),
                b'\\' if escapes => at += 2,
                _ if byte == quote && next == Some(quote) => {
                    if quote == b']' {
                        return self.last(&Blank::Unsure);
                    }
                    at += 2;
                }
                _ if byte == quote => return self.take(kind, from, at, at + 1, quote),
                _ => at += self.reading.width(byte, next),
            }
        }
        let blank = self.without_end();
        self.last(&blank)
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if self.fault.is_some() {
            return None;
        }
        match self.skip_blank() {
            Blank::Done => {}
            blank => return Some(self.last(&blank)),
        }
        if self.has_ended() {
            return None;
        }
        let Some(first) = self.byte(0) else {
            return Some(self.last(&Blank::Unsure));
        };
        let token = self.token(first);
        // What touches the end of what is there may go on behind it.
        let goes_on = !self.whole && self.at >= self.text.len() && self.fault.is_none();
        Some(match goes_on {
            true => self.last(&Blank::Unsure),
            false => token,
        })
    }
}

impl Token<'_> {
    /// True for this keyword, in whatever case.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    pub(crate) fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    pub(crate) fn is_punct(&self, byte: u8) -> bool {
        self.kind == Kind::Punct(byte)
    }

    /// True for what may name something.
    pub(crate) fn names(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Name)
    }
}
