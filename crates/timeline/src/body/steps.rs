//! What each step of the pattern language takes.

use super::Difference;
use super::matcher::Matcher;
use crate::definition::{Definition, IntType};
use headwater_sql::lexer::{Kind, Token};

impl Matcher<'_> {
    pub(super) fn steps(&mut self, steps: &[&'static str]) -> Result<(), Difference> {
        let mut steps = steps.iter();
        while let Some(&step) = steps.next() {
            if step != "[" {
                if step != "]" {
                    self.step(step)?;
                }
                continue;
            }
            let group = steps.as_slice();
            let start = self.at;
            let taken = group.first().is_some_and(|&first| self.step(first).is_ok());
            self.at = start;
            if !taken {
                steps.find(|&&step| step == "]");
            }
        }
        Ok(())
    }

    pub(super) fn step(&mut self, step: &'static str) -> Result<(), Difference> {
        let definition = self.definition;
        let (sign, name) = step.split_at(1);
        match (sign, name) {
            ("?", word) => {
                self.accept(|token| token.is_word(word));
                Ok(())
            }
            (":", "build") => self.step_name(&definition.procedures.heads, Case::Folded),
            (":", table) => self.step_name(table_name(definition, table), Case::Kept),
            ("+", column) => self.step_name(column_name(definition, column).1, Case::Folded),
            ("!", column) => self.step_column(column_name(definition, column), true),
            ("%", "user") => self.step_type(definition.user_type),
            ("%", _) => self.step_type(definition.id_type),
            ("#", _) => self.step_number(definition.n),
            ("$", _) => self.step_local(step),
            ("^" | "@", _) => self.step_free(step),
            ("&", "yes") => self.step_flag(1, "TRUE", "1"),
            ("&", "locals") => self.locals(),
            ("&", _) => self.memory(),
            _ if step.contains('.') => self.step_column(column_name(definition, step), false),
            _ => self.expect(step),
        }
    }

    pub(super) fn step_name(&mut self, name: &str, case: Case) -> Result<(), Difference> {
        let same = |token: Token<'_>| {
            token.name().is_some_and(|found| match case {
                Case::Kept => self.definition.case.same(&found, name),
                Case::Folded => found.eq_ignore_ascii_case(name),
            })
        };
        if self.accept(same) {
            Ok(())
        } else {
            self.differs(&format!("`{name}`"))
        }
    }

    /// A column, behind its table's name or bare; neither may be hidden by a local variable.
    pub(super) fn step_column(
        &mut self,
        (table, column): (&str, &str),
        qualified: bool,
    ) -> Result<(), Difference> {
        let dotted = self
            .tokens
            .get(self.at + 1)
            .is_some_and(|token| token.is_punct(b'.'));
        let first = if dotted { table } else { column };
        if let Some(local) = self
            .locals
            .iter()
            .find(|local| local.name.eq_ignore_ascii_case(first))
        {
            let expected = format!("the column `{first}`, which no variable of that name hides");
            return Err(self.difference(&expected, format!("the variable `{}`", local.name)));
        }
        if dotted || qualified {
            self.step_name(table, Case::Kept)?;
            self.expect(".")?;
        }
        self.step_name(column, Case::Folded)
    }

    pub(super) fn step_type(&mut self, expected: IntType) -> Result<(), Difference> {
        let start = self.at;
        match self.int_type() {
            Some(Some(found)) if found == expected => Ok(()),
            _ => {
                let found = self.text_between(start, self.at.max(start + 1));
                self.at = start;
                Err(self.difference(expected.sql(), found))
            }
        }
    }

    pub(super) fn step_number(&mut self, expected: u32) -> Result<(), Difference> {
        let same = |token: Token<'_>| {
            token.kind == Kind::Number
                && std::str::from_utf8(token.text).is_ok_and(|text| text.parse() == Ok(expected))
        };
        if self.accept(same) {
            Ok(())
        } else {
            self.differs(&expected.to_string())
        }
    }

    pub(super) fn step_flag(
        &mut self,
        number: u32,
        word: &'static str,
        expected: &str,
    ) -> Result<(), Difference> {
        if self.accept(|token| token.is_word(word)) || self.step_number(number).is_ok() {
            Ok(())
        } else {
            self.differs(expected)
        }
    }

    /// A variable in its role: the one that has it already, or a declared one of the right kind that has no role yet.
    pub(super) fn step_local(&mut self, role: &'static str) -> Result<(), Difference> {
        if let Some(name) = self.role(role) {
            return self.step_name(&name, Case::Folded);
        }
        let name = self.free_name("a variable")?;
        let int = match role {
            "$author" => Some(self.definition.user_type),
            "$head" => Some(self.definition.id_type),
            _ => None,
        };
        let taken = self
            .bound
            .iter()
            .any(|(_, bound)| bound.eq_ignore_ascii_case(&name));
        let local = self
            .locals
            .iter()
            .find(|local| local.name.eq_ignore_ascii_case(&name));
        let fits = local.is_some_and(|local| {
            !local.parameter && int.map_or(local.starts_as_zero, |int| local.int == Some(int))
        });
        if fits && !taken {
            self.bound.push((role, name));
            return Ok(());
        }
        self.at -= 1;
        match int {
            Some(int) => self.differs(&format!("a variable of its own of type {int}")),
            None => self.differs("a variable of its own that starts as 0"),
        }
    }

    /// A cursor's name or an alias: new, or the one met before. An alias may not be mistaken for a variable or a column.
    pub(super) fn step_free(&mut self, role: &'static str) -> Result<(), Difference> {
        if let Some(name) = self.role(role) {
            return self.step_name(&name, Case::Folded);
        }
        let name = self.free_name("a name")?;
        let same = |other: &str| other.eq_ignore_ascii_case(&name);
        let columns = [
            "follower.reader",
            "follower.author",
            "message.id",
            "message.author",
        ];
        let mistaken = self.locals.iter().any(|local| same(&local.name))
            || columns
                .iter()
                .any(|column| same(column_name(self.definition, column).1));
        if role == "@alias" && mistaken {
            self.at -= 1;
            return self.differs("an alias that is no variable's or column's name");
        }
        self.bound.push((role, name));
        Ok(())
    }
}

/// Whether the case of a name counts.
#[derive(Clone, Copy)]
pub(super) enum Case {
    Kept,
    Folded,
}

fn table_name<'d>(definition: &'d Definition, table: &str) -> &'d str {
    match table {
        "follower" => &definition.follower.table,
        "message" => &definition.message.table,
        "result" => &definition.result.table,
        _ => &definition.heads.table,
    }
}

/// The table and the column of a step.
fn column_name<'d>(definition: &'d Definition, step: &str) -> (&'d str, &'d str) {
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
