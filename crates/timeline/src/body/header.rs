//! The parts of a procedure without a fixed form: its header, its variables, its tables' options.

use super::matcher::{BodyMatcher, LocalVariable};
use super::steps::CaseSensitivity;
use super::{BodyMismatch, SqlSecurity};
use crate::definition::IdType;
use headwater_sql::lexer::{SqlToken, TokenKind};

impl BodyMatcher<'_> {
    /// `CREATE DEFINER=... PROCEDURE name(parameters) characteristics`.
    pub(super) fn header(&mut self) -> Result<SqlSecurity, BodyMismatch> {
        self.expect("CREATE")?;
        while self.peek().is_some_and(|token| !token.is_word("PROCEDURE")) {
            self.position += 1;
        }
        self.expect("PROCEDURE")?;
        let name = self.routine.name(self.definition);
        self.step_name(name, CaseSensitivity::Insensitive)?;
        self.expect("(")?;
        for parameter in 0..self.routine.parameter_count() {
            if parameter > 0 {
                self.expect(",")?;
            }
            let (role, int) = match parameter {
                0 => ("$reader", self.definition.user_type),
                _ => ("$bound", self.definition.id_type),
            };
            self.parameter(role, int)?;
        }
        self.expect(")")?;
        self.characteristics()
    }

    pub(super) fn parameter(
        &mut self,
        role: &'static str,
        expected: IdType,
    ) -> Result<(), BodyMismatch> {
        self.accept(|token| token.is_word("IN"));
        let name = self.take_name("a parameter")?;
        self.step_type(expected)?;
        self.locals.push(LocalVariable {
            name: name.clone(),
            int: Some(expected),
            starts_as_zero: false,
            parameter: true,
        });
        self.bound_names.push((role, name));
        Ok(())
    }

    pub(super) fn characteristics(&mut self) -> Result<SqlSecurity, BodyMismatch> {
        let mut security = SqlSecurity::Definer;
        loop {
            if self.accept(|token| token.is_word("COMMENT")) {
                self.expect_kind(TokenKind::QuotedText, "a comment in quotes")?;
            } else if self.accept_words(&["SQL", "SECURITY", "INVOKER"]) {
                security = SqlSecurity::Invoker;
            } else if !CHARACTERISTICS.iter().any(|words| self.accept_words(words)) {
                return Ok(security);
            }
        }
    }

    /// `DECLARE name, ... type [DEFAULT value];`, up to a declaration of something else.
    pub(super) fn variable_declarations(&mut self) -> Result<(), BodyMismatch> {
        while self.peek().is_some_and(|token| token.is_word("DECLARE")) {
            let is_word_at = |at: usize, words: &[&str]| {
                self.tokens
                    .get(at)
                    .is_some_and(|token| words.iter().any(|word| token.is_word(word)))
            };
            if is_word_at(self.position + 2, &["CURSOR"])
                || is_word_at(self.position + 1, &["CONTINUE", "EXIT", "UNDO"])
            {
                break;
            }
            self.position += 1;
            let mut names = vec![self.take_name("a variable")?];
            while self.accept(|token| token.is_punct(b',')) {
                names.push(self.take_name("a variable")?);
            }
            let Some(int) = self.take_int_type() else {
                return self.fail("an integer type");
            };
            let has_default = self.accept(|token| token.is_word("DEFAULT"));
            let is_null = has_default && self.accept(|token| token.is_word("NULL"));
            if has_default && !is_null {
                self.step_flag(0, "FALSE", "0")?;
            }
            let starts_as_zero = has_default && !is_null;
            self.locals
                .extend(names.into_iter().map(|name| LocalVariable {
                    name,
                    int,
                    starts_as_zero,
                    parameter: false,
                }));
            self.expect(";")?;
        }
        Ok(())
    }

    /// Table options in any order; the engine is required.
    pub(super) fn memory_table_options(&mut self) -> Result<(), BodyMismatch> {
        let (start, mut has_engine) = (self.position, false);
        loop {
            self.accept(|token| token.is_punct(b','));
            if self.accept_words(&["ENGINE"]) {
                self.accept(|token| token.is_punct(b'='));
                if !self.accept(is_memory_engine) {
                    return self.fail("MEMORY");
                }
                has_engine = true;
                continue;
            }
            let default = self.accept_words(&["DEFAULT"]);
            if CHARACTER_SETS.iter().any(|words| self.accept_words(words)) {
                self.accept(|token| token.is_punct(b'='));
                self.take_name("a character set")?;
            } else if default {
                return self.fail("CHARSET");
            } else if has_engine {
                self.table_options = self.full_text_between(start, self.position);
                return Ok(());
            } else {
                return self.fail("ENGINE");
            }
        }
    }
}

/// What may stand between a procedure's parameters and its body without effect. (The SQL ones only inform the reader.)
const CHARACTERISTICS: &[&[&str]] = &[
    &["LANGUAGE", "SQL"],
    &["NOT", "DETERMINISTIC"],
    &["DETERMINISTIC"],
    &["CONTAINS", "SQL"],
    &["NO", "SQL"],
    &["READS", "SQL", "DATA"],
    &["MODIFIES", "SQL", "DATA"],
    &["SQL", "SECURITY", "DEFINER"],
];

const CHARACTER_SETS: &[&[&str]] = &[&["CHARSET"], &["CHARACTER", "SET"], &["COLLATE"]];

/// True for both names of the engine, bare or quoted in any way.
fn is_memory_engine(engine: SqlToken<'_>) -> bool {
    let is_engine_name =
        |name: &[u8]| name.eq_ignore_ascii_case(b"MEMORY") || name.eq_ignore_ascii_case(b"HEAP");
    engine.unquoted().is_some_and(is_engine_name)
}
