//! What each step of the pattern language matches.

use super::BodyMismatch;
use super::matcher::BodyMatcher;
use crate::definition::{IdType, TimelineDefinition};
use headwater_sql::lexer::{SqlToken, TokenKind};

impl BodyMatcher<'_> {
    pub(super) fn steps(&mut self, steps: &[&'static str]) -> Result<(), BodyMismatch> {
        let mut steps = steps.iter();
        while let Some(&step) = steps.next() {
            if step != "[" {
                if step != "]" {
                    self.step(step)?;
                }
                continue;
            }
            let group = steps.as_slice();
            let start = self.position;
            let group_matches = group.first().is_some_and(|&first| self.step(first).is_ok());
            self.position = start;
            if !group_matches {
                steps.find(|&&step| step == "]");
            }
        }
        Ok(())
    }

    pub(super) fn step(&mut self, step: &'static str) -> Result<(), BodyMismatch> {
        let definition = self.definition;
        let (sign, name) = step.split_at(1);
        match (sign, name) {
            ("?", word) => {
                self.accept(|token| token.is_word(word));
                Ok(())
            }
            (":", "build") => {
                self.step_name(&definition.procedures.heads, CaseSensitivity::Insensitive)
            }
            (":", table) => {
                self.step_name(table_name(definition, table), CaseSensitivity::Sensitive)
            }
            ("+", column) => self.step_name(
                column_name(definition, column).1,
                CaseSensitivity::Insensitive,
            ),
            ("!", column) => self.step_column(column_name(definition, column), true),
            ("%", "user") => self.step_type(definition.user_type),
            ("%", _) => self.step_type(definition.id_type),
            ("#", _) => self.step_number(definition.n),
            ("$", _) => self.step_local(step),
            ("^" | "@", _) => self.step_free_name(step),
            ("&", "yes") => self.step_flag(1, "TRUE", "1"),
            ("&", "locals") => self.variable_declarations(),
            ("&", _) => self.memory_table_options(),
            _ if step.contains('.') => self.step_column(column_name(definition, step), false),
            _ => self.expect(step),
        }
    }

    pub(super) fn step_name(
        &mut self,
        name: &str,
        case: CaseSensitivity,
    ) -> Result<(), BodyMismatch> {
        let is_expected = |token: SqlToken<'_>| {
            token.name().is_some_and(|actual| match case {
                CaseSensitivity::Sensitive => self.definition.name_case.is_same_name(&actual, name),
                CaseSensitivity::Insensitive => actual.eq_ignore_ascii_case(name),
            })
        };
        if self.accept(is_expected) {
            Ok(())
        } else {
            self.fail(&format!("`{name}`"))
        }
    }

    /// A column, bare or qualified by its table's name. No local variable may hide either name.
    pub(super) fn step_column(
        &mut self,
        (table, column): (&str, &str),
        qualified: bool,
    ) -> Result<(), BodyMismatch> {
        let is_qualified = self
            .tokens
            .get(self.position + 1)
            .is_some_and(|token| token.is_punct(b'.'));
        let first = if is_qualified { table } else { column };
        if let Some(local) = self
            .locals
            .iter()
            .find(|local| local.name.eq_ignore_ascii_case(first))
        {
            let expected = format!("the column `{first}`, which no variable of that name hides");
            return Err(self.mismatch(&expected, format!("the variable `{}`", local.name)));
        }
        if is_qualified || qualified {
            self.step_name(table, CaseSensitivity::Sensitive)?;
            self.expect(".")?;
        }
        self.step_name(column, CaseSensitivity::Insensitive)
    }

    pub(super) fn step_type(&mut self, expected: IdType) -> Result<(), BodyMismatch> {
        let start = self.position;
        match self.take_int_type() {
            Some(Some(actual)) if actual == expected => Ok(()),
            _ => {
                let actual = self.text_between(start, self.position.max(start + 1));
                self.position = start;
                Err(self.mismatch(expected.sql(), actual))
            }
        }
    }

    pub(super) fn step_number(&mut self, expected: u32) -> Result<(), BodyMismatch> {
        let is_expected = |token: SqlToken<'_>| {
            token.kind == TokenKind::Number
                && std::str::from_utf8(token.text).is_ok_and(|text| text.parse() == Ok(expected))
        };
        if self.accept(is_expected) {
            Ok(())
        } else {
            self.fail(&expected.to_string())
        }
    }

    pub(super) fn step_flag(
        &mut self,
        number: u32,
        word: &'static str,
        expected: &str,
    ) -> Result<(), BodyMismatch> {
        if self.accept(|token| token.is_word(word)) || self.step_number(number).is_ok() {
            Ok(())
        } else {
            self.fail(expected)
        }
    }

    /// A variable in its role: the one bound to the role, or a declared one of the right kind that has no role yet.
    pub(super) fn step_local(&mut self, role: &'static str) -> Result<(), BodyMismatch> {
        if let Some(name) = self.bound_name(role) {
            return self.step_name(&name, CaseSensitivity::Insensitive);
        }
        let name = self.take_name("a variable")?;
        let int = match role {
            "$author" => Some(self.definition.user_type),
            "$head" => Some(self.definition.id_type),
            _ => None,
        };
        let is_bound = self
            .bound_names
            .iter()
            .any(|(_, bound)| bound.eq_ignore_ascii_case(&name));
        let local = self
            .locals
            .iter()
            .find(|local| local.name.eq_ignore_ascii_case(&name));
        let fits = local.is_some_and(|local| {
            !local.parameter && int.map_or(local.starts_as_zero, |int| local.int == Some(int))
        });
        if fits && !is_bound {
            self.bound_names.push((role, name));
            return Ok(());
        }
        self.position -= 1;
        match int {
            Some(int) => self.fail(&format!("a variable of its own of type {int}")),
            None => self.fail("a variable of its own that starts as 0"),
        }
    }

    /// A cursor's name or an alias: new, or the one bound before. An alias may not equal a variable's or a column's name.
    pub(super) fn step_free_name(&mut self, role: &'static str) -> Result<(), BodyMismatch> {
        if let Some(name) = self.bound_name(role) {
            return self.step_name(&name, CaseSensitivity::Insensitive);
        }
        let name = self.take_name("a name")?;
        let is_same_name = |other: &str| other.eq_ignore_ascii_case(&name);
        let columns = [
            "follower.reader",
            "follower.author",
            "message.id",
            "message.author",
        ];
        let is_ambiguous = self.locals.iter().any(|local| is_same_name(&local.name))
            || columns
                .iter()
                .any(|column| is_same_name(column_name(self.definition, column).1));
        if role == "@alias" && is_ambiguous {
            self.position -= 1;
            return self.fail("an alias that is no variable's or column's name");
        }
        self.bound_names.push((role, name));
        Ok(())
    }
}

#[derive(Clone, Copy)]
pub(super) enum CaseSensitivity {
    Sensitive,
    Insensitive,
}

fn table_name<'d>(definition: &'d TimelineDefinition, table: &str) -> &'d str {
    match table {
        "follower" => &definition.follower.table,
        "message" => &definition.message.table,
        "result" => &definition.result.table,
        _ => &definition.heads.table,
    }
}

/// The table and the column of a step.
fn column_name<'d>(definition: &'d TimelineDefinition, step: &str) -> (&'d str, &'d str) {
    let column = match step {
        "follower.reader" => &definition.follower.reader,
        "follower.author" => &definition.follower.author,
        "message.id" => &definition.message.id,
        "message.author" => &definition.message.author,
        "result.id" => &definition.result.id,
        "heads.author" => &definition.heads.author,
        _ => &definition.heads.head,
    };
    (
        table_name(definition, step.split('.').next().unwrap_or_default()),
        column,
    )
}
