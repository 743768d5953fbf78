//! Consumes tokens one by one, and reports the first mismatch.

use super::{BodyMismatch, TimelineRoutine};
use crate::definition::{IdType, TimelineDefinition};
use headwater_sql::lexer::{SqlToken, TokenKind};

/// The tokens of a procedure, the position reached, and the names bound so far.
pub(super) struct BodyMatcher<'a> {
    pub(super) definition: &'a TimelineDefinition,
    pub(super) routine: TimelineRoutine,
    pub(super) shown: &'a [u8],
    pub(super) tokens: Vec<SqlToken<'a>>,
    pub(super) position: usize,
    pub(super) locals: Vec<LocalVariable>,
    /// The free names bound so far, by their step.
    pub(super) bound_names: Vec<(&'static str, String)>,
    pub(super) table_options: String,
}

pub(super) struct LocalVariable {
    pub(super) name: String,
    /// `None`: an integer type that no id has.
    pub(super) int: Option<IdType>,
    pub(super) starts_as_zero: bool,
    pub(super) parameter: bool,
}

impl<'a> BodyMatcher<'a> {
    /// Takes an integer type: `None` for another type, `Some(None)` for one that ids do not have.
    #[allow(clippy::option_option)]
    pub(super) fn take_int_type(&mut self) -> Option<Option<IdType>> {
        let token = self.peek()?;
        let is_one_of = |words: &[&str]| words.iter().any(|word| token.is_word(word));
        let wide = is_one_of(&["BIGINT", "INT8"]);
        let small = is_one_of(&["TINYINT", "SMALLINT", "MEDIUMINT", "BOOL", "BOOLEAN"]);
        if !(wide || small || is_one_of(&["INT", "INTEGER", "INT4"])) {
            return None;
        }
        self.position += 1;
        if self.accept(|token| token.is_punct(b'(')) {
            self.accept(|token| token.kind == TokenKind::Number);
            if !self.accept(|token| token.is_punct(b')')) {
                return None;
            }
        }
        let unsigned = self.accept(|token| token.is_word("UNSIGNED"));
        Some(match (wide, unsigned) {
            _ if small => None,
            (false, false) => Some(IdType::Int),
            (false, true) => Some(IdType::IntUnsigned),
            (true, false) => Some(IdType::BigInt),
            (true, true) => Some(IdType::BigIntUnsigned),
        })
    }

    pub(super) fn take_name(&mut self, expected: &str) -> Result<String, BodyMismatch> {
        match self.peek().and_then(|token| token.name()) {
            Some(name) => {
                self.position += 1;
                Ok(name)
            }
            None => self.fail(expected),
        }
    }

    pub(super) fn bound_name(&self, role: &str) -> Option<String> {
        self.bound_names
            .iter()
            .find(|(bound, _)| *bound == role)
            .map(|(_, name)| name.clone())
    }

    /// Takes a keyword or a number, or bytes of punctuation.
    pub(super) fn expect(&mut self, expected: &str) -> Result<(), BodyMismatch> {
        let word = expected
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let start = self.position;
        let matched = if word {
            self.accept(|token| {
                token.is_word(expected)
                    || (token.kind == TokenKind::Number && token.text == expected.as_bytes())
            })
        } else {
            expected
                .bytes()
                .all(|byte| self.accept(|token| token.is_punct(byte)))
        };
        if matched {
            return Ok(());
        }
        self.position = start;
        self.fail(expected)
    }

    pub(super) fn expect_kind(
        &mut self,
        kind: TokenKind,
        expected: &str,
    ) -> Result<(), BodyMismatch> {
        if self.accept(|token| token.kind == kind) {
            Ok(())
        } else {
            self.fail(expected)
        }
    }

    pub(super) fn accept_words(&mut self, words: &[&str]) -> bool {
        let start = self.position;
        let matched = words
            .iter()
            .all(|word| self.accept(|token| token.is_word(word)));
        if !matched {
            self.position = start;
        }
        matched
    }

    pub(super) fn accept(&mut self, predicate: impl Fn(SqlToken<'a>) -> bool) -> bool {
        let matched = self.peek().is_some_and(predicate);
        self.position += usize::from(matched);
        matched
    }

    pub(super) fn peek(&self) -> Option<SqlToken<'a>> {
        self.tokens.get(self.position).copied()
    }

    pub(super) fn fail<T>(&self, expected: &str) -> Result<T, BodyMismatch> {
        Err(self.mismatch(
            expected,
            self.text_between(self.position, self.position + 1),
        ))
    }

    pub(super) fn mismatch(&self, expected: &str, actual: String) -> BodyMismatch {
        let at = self.peek().map_or(self.shown.len(), |token| token.at);
        let line = 1 + self
            .shown
            .iter()
            .take(at)
            .filter(|&&byte| byte == b'\n')
            .count();
        BodyMismatch {
            procedure: self.routine.name(self.definition).into(),
            line,
            expected: expected.into(),
            found: actual,
        }
    }

    /// The text of the tokens from `start` to before `end`.
    pub(super) fn full_text_between(&self, start: usize, end: usize) -> String {
        let tokens = self.tokens.iter().take(end).skip(start);
        let words = tokens.map(|token| String::from_utf8_lossy(token.text));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The same for a message, cut if it is long.
    pub(super) fn text_between(&self, start: usize, end: usize) -> String {
        let text = self.full_text_between(start, end);
        if text.is_empty() {
            "the end".into()
        } else {
            text.chars().take(60).collect()
        }
    }
}
