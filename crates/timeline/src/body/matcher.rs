//! Takes tokens one by one, and says what differs.

use super::{Difference, Routine};
use crate::definition::{Definition, IntType};
use headwater_sql::lexer::{Kind, Token};

/// The tokens of a procedure, how far they match, and the names met on the way.
pub(super) struct Matcher<'a> {
    pub(super) definition: &'a Definition,
    pub(super) routine: Routine,
    pub(super) shown: &'a [u8],
    pub(super) tokens: Vec<Token<'a>>,
    pub(super) at: usize,
    pub(super) locals: Vec<Local>,
    /// The free names met so far, by the step that met them.
    pub(super) bound: Vec<(&'static str, String)>,
    pub(super) options: String,
}

/// A parameter or a local variable.
pub(super) struct Local {
    pub(super) name: String,
    /// `None`: an integer type that no id has.
    pub(super) int: Option<IntType>,
    pub(super) starts_as_zero: bool,
    pub(super) parameter: bool,
}

impl<'a> Matcher<'a> {
    /// An integer type: `None` for another type, `Some(None)` for one that ids do not have.
    #[allow(clippy::option_option)]
    pub(super) fn int_type(&mut self) -> Option<Option<IntType>> {
        let token = self.peek()?;
        let is = |words: &[&str]| words.iter().any(|word| token.is_word(word));
        let wide = is(&["BIGINT", "INT8"]);
        let small = is(&["TINYINT", "SMALLINT", "MEDIUMINT", "BOOL", "BOOLEAN"]);
        if !(wide || small || is(&["INT", "INTEGER", "INT4"])) {
            return None;
        }
        self.at += 1;
        if self.accept(|token| token.is_punct(b'(')) {
            self.accept(|token| token.kind == Kind::Number);
            if !self.accept(|token| token.is_punct(b')')) {
                return None;
            }
        }
        let unsigned = self.accept(|token| token.is_word("UNSIGNED"));
        Some(match (wide, unsigned) {
            _ if small => None,
            (false, false) => Some(IntType::Int),
            (false, true) => Some(IntType::IntUnsigned),
            (true, false) => Some(IntType::BigInt),
            (true, true) => Some(IntType::BigIntUnsigned),
        })
    }

    pub(super) fn free_name(&mut self, expected: &str) -> Result<String, Difference> {
        match self.peek().and_then(|token| token.name()) {
            Some(name) => {
                self.at += 1;
                Ok(name)
            }
            None => self.differs(expected),
        }
    }

    pub(super) fn role(&self, role: &str) -> Option<String> {
        self.bound
            .iter()
            .find(|(bound, _)| *bound == role)
            .map(|(_, name)| name.clone())
    }

    /// A keyword, or bytes of punctuation.
    pub(super) fn expect(&mut self, expected: &str) -> Result<(), Difference> {
        let word = expected
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let start = self.at;
        let met = if word {
            self.accept(|token| {
                token.is_word(expected)
                    || (token.kind == Kind::Number && token.text == expected.as_bytes())
            })
        } else {
            expected
                .bytes()
                .all(|byte| self.accept(|token| token.is_punct(byte)))
        };
        if met {
            return Ok(());
        }
        self.at = start;
        self.differs(expected)
    }

    pub(super) fn expect_kind(&mut self, kind: Kind, expected: &str) -> Result<(), Difference> {
        if self.accept(|token| token.kind == kind) {
            Ok(())
        } else {
            self.differs(expected)
        }
    }

    pub(super) fn accept_words(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let met = words
            .iter()
            .all(|word| self.accept(|token| token.is_word(word)));
        if !met {
            self.at = start;
        }
        met
    }

    pub(super) fn accept(&mut self, fits: impl Fn(Token<'a>) -> bool) -> bool {
        let met = self.peek().is_some_and(fits);
        self.at += usize::from(met);
        met
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    pub(super) fn differs<T>(&self, expected: &str) -> Result<T, Difference> {
        Err(self.difference(expected, self.text_between(self.at, self.at + 1)))
    }

    pub(super) fn difference(&self, expected: &str, found: String) -> Difference {
        let at = self.peek().map_or(self.shown.len(), |token| token.at);
        let line = 1 + self
            .shown
            .iter()
            .take(at)
            .filter(|&&byte| byte == b'\n')
            .count();
        Difference {
            procedure: self.routine.name(self.definition).into(),
            line,
            expected: expected.into(),
            found,
        }
    }

    /// What the tokens from `start` to before `end` say.
    pub(super) fn whole_between(&self, start: usize, end: usize) -> String {
        let tokens = self.tokens.iter().take(end).skip(start);
        let words = tokens.map(|token| String::from_utf8_lossy(token.text));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The same for a message: cut where it is long.
    pub(super) fn text_between(&self, start: usize, end: usize) -> String {
        let text = self.whole_between(start, end);
        if text.is_empty() {
            "the end".into()
        } else {
            text.chars().take(60).collect()
        }
    }
}
