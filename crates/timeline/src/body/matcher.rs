//! Takes tokens one by one, and says what differs.

use super::{BodyMismatch, TimelineRoutine};
use crate::definition::{IdType, TimelineDefinition};
use headwater_sql::lexer::{SqlToken, TokenKind};

/// The tokens of a procedure, how far they match, and the names met on the way.
pub(super) struct BodyMatcher<'a> {
    pub(super) definition: &'a TimelineDefinition,
    pub(super) routine: TimelineRoutine,
    pub(super) shown: &'a [u8],
    pub(super) tokens: Vec<SqlToken<'a>>,
    pub(super) position: usize,
    pub(super) locals: Vec<LocalVariable>,
    /// The free names met so far, by the step that met them.
    pub(super) bound_names: Vec<(&'static str, String)>,
    pub(super) table_options: String,
}

/// A parameter or a local variable.
pub(super) struct LocalVariable {
    pub(super) name: String,
    /// `None`: an integer type that no id has.
    pub(super) int: Option<IdType>,
    pub(super) starts_as_zero: bool,
    pub(super) parameter: bool,
}

impl<'a> BodyMatcher<'a> {
    /// An integer type: `None` for another type, `Some(None)` for one that ids do not have.
    #[allow(clippy::option_option)]
    pub(super) fn take_int_type(&mut self) -> Option<Option<IdType>> {
        let token = self.peek()?;
        let is = |words: &[&str]| words.iter().any(|word| token.is_word(word));
        let wide = is(&["BIGINT", "INT8"]);
        let small = is(&["TINYINT", "SMALLINT", "MEDIUMINT", "BOOL", "BOOLEAN"]);
        if !(wide || small || is(&["INT", "INTEGER", "INT4"])) {
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

    /// A keyword, or bytes of punctuation.
    pub(super) fn expect(&mut self, expected: &str) -> Result<(), BodyMismatch> {
        let word = expected
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let start = self.position;
        let met = if word {
            self.accept(|token| {
                token.is_word(expected)
                    || (token.kind == TokenKind::Number && token.text == expected.as_bytes())
            })
        } else {
            expected
                .bytes()
                .all(|byte| self.accept(|token| token.is_punct(byte)))
        };
        if met {
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
        let met = words
            .iter()
            .all(|word| self.accept(|token| token.is_word(word)));
        if !met {
            self.position = start;
        }
        met
    }

    pub(super) fn accept(&mut self, fits: impl Fn(SqlToken<'a>) -> bool) -> bool {
        let met = self.peek().is_some_and(fits);
        self.position += usize::from(met);
        met
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

    pub(super) fn mismatch(&self, expected: &str, found: String) -> BodyMismatch {
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
            found,
        }
    }

    /// What the tokens from `start` to before `end` say.
    pub(super) fn full_text_between(&self, start: usize, end: usize) -> String {
        let tokens = self.tokens.iter().take(end).skip(start);
        let words = tokens.map(|token| String::from_utf8_lossy(token.text));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The same for a message: cut where it is long.
    pub(super) fn text_between(&self, start: usize, end: usize) -> String {
        let text = self.full_text_between(start, end);
        if text.is_empty() {
            "the end".into()
        } else {
            text.chars().take(60).collect()
        }
    }
}
