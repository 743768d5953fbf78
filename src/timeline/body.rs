//! Compares a procedure, as `SHOW CREATE PROCEDURE` prints it, with the form that Headwater knows: token by token.
//!
//! Comments, white space, the case of keywords and back quotes do not matter, and local names are free. A local variable
//! hides a column of its name, so a column that is named like one is a difference.

use super::definition::{Definition, IntType};
use super::pattern::Routine;
use crate::statement::lexer::{Kind, Lexer, Token};

/// What is left to know of a procedure that is as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Whose privileges it runs with.
    pub security: Security,
}

/// Whose privileges a procedure runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Those of the account that defined it.
    Definer,
    /// Those of the account that calls it.
    Invoker,
}

/// The first token of a procedure that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("procedure {procedure}, line {line}: expected {expected}, found {found}")]
pub struct Difference {
    /// The procedure's name.
    pub procedure: String,
    /// The line of the text as the server shows it, from 1.
    pub line: usize,
    /// What the known form has there.
    pub expected: String,
    /// What the server's procedure has there.
    pub found: String,
}

/// Compares the text of a `SHOW CREATE PROCEDURE` with the known form of that routine.
///
/// # Errors
/// The first token that differs.
pub fn compare(
    definition: &Definition,
    routine: Routine,
    shown: &[u8],
) -> Result<Body, Difference> {
    let tokens = Lexer::new(shown).collect();
    let mut matcher = Matcher {
        definition,
        routine,
        shown,
        tokens,
        at: 0,
        locals: Vec::new(),
        bound: Vec::new(),
    };
    let body = matcher.header()?;
    let steps: Vec<_> = routine.steps().collect();
    matcher.steps(&steps)?;
    matcher.accept(|token| token.is_punct(b';'));
    match matcher.peek() {
        None => Ok(body),
        Some(_) => matcher.differs("the end"),
    }
}

/// A parameter or a local variable.
struct Local {
    name: String,
    /// `None`: an integer type that no id has.
    int: Option<IntType>,
    starts_as_zero: bool,
    parameter: bool,
}

struct Matcher<'a> {
    definition: &'a Definition,
    routine: Routine,
    shown: &'a [u8],
    tokens: Vec<Token<'a>>,
    at: usize,
    locals: Vec<Local>,
    /// The free names met so far, by the step that met them.
    bound: Vec<(&'static str, String)>,
}

impl<'a> Matcher<'a> {
    /// `CREATE DEFINER=... PROCEDURE name(parameters) characteristics`.
    fn header(&mut self) -> Result<Body, Difference> {
        self.expect("CREATE")?;
        while self.peek().is_some_and(|token| !token.is_word("PROCEDURE")) {
            self.at += 1;
        }
        self.expect("PROCEDURE")?;
        let name = self.routine.name(self.definition);
        self.step_name(name, Case::Folded)?;
        self.expect("(")?;
        for parameter in 0..self.routine.parameters() {
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

    fn parameter(&mut self, role: &'static str, expected: IntType) -> Result<(), Difference> {
        self.accept(|token| token.is_word("IN"));
        let name = self.free_name("a parameter")?;
        self.step_type(expected)?;
        self.locals.push(Local {
            name: name.clone(),
            int: Some(expected),
            starts_as_zero: false,
            parameter: true,
        });
        self.bound.push((role, name));
        Ok(())
    }

    fn characteristics(&mut self) -> Result<Body, Difference> {
        let mut security = Security::Definer;
        loop {
            if self.accept(|token| token.is_word("COMMENT")) {
                self.expect_kind(Kind::Text, "a comment in quotes")?;
            } else if self.accept_words(&["SQL", "SECURITY", "INVOKER"]) {
                security = Security::Invoker;
            } else if !CHARACTERISTICS.iter().any(|words| self.accept_words(words)) {
                return Ok(Body { security });
            }
        }
    }

    fn steps(&mut self, steps: &[&'static str]) -> Result<(), Difference> {
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

    fn step(&mut self, step: &'static str) -> Result<(), Difference> {
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

    fn step_name(&mut self, name: &str, case: Case) -> Result<(), Difference> {
        let same = |token: Token<'_>| {
            token.name().is_some_and(|found| match case {
                Case::Kept => found == name,
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
    fn step_column(
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

    fn step_type(&mut self, expected: IntType) -> Result<(), Difference> {
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

    fn step_number(&mut self, expected: u32) -> Result<(), Difference> {
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

    fn step_flag(
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
    fn step_local(&mut self, role: &'static str) -> Result<(), Difference> {
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
    fn step_free(&mut self, role: &'static str) -> Result<(), Difference> {
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

    /// `DECLARE name, ... type [DEFAULT value];`, until a declaration of something else.
    fn locals(&mut self) -> Result<(), Difference> {
        while self.peek().is_some_and(|token| token.is_word("DECLARE")) {
            let other = |at: usize, words: &[&str]| {
                self.tokens
                    .get(at)
                    .is_some_and(|token| words.iter().any(|word| token.is_word(word)))
            };
            if other(self.at + 2, &["CURSOR"]) || other(self.at + 1, &["CONTINUE", "EXIT", "UNDO"])
            {
                break;
            }
            self.at += 1;
            let mut names = vec![self.free_name("a variable")?];
            while self.accept(|token| token.is_punct(b',')) {
                names.push(self.free_name("a variable")?);
            }
            let Some(int) = self.int_type() else {
                return self.differs("an integer type");
            };
            let defaults = self.accept(|token| token.is_word("DEFAULT"));
            let null = defaults && self.accept(|token| token.is_word("NULL"));
            if defaults && !null {
                self.step_flag(0, "FALSE", "0")?;
            }
            let starts_as_zero = defaults && !null;
            self.locals.extend(names.into_iter().map(|name| Local {
                name,
                int,
                starts_as_zero,
                parameter: false,
            }));
            self.expect(";")?;
        }
        Ok(())
    }

    /// Table options in any order: the engine has to be there.
    fn memory(&mut self) -> Result<(), Difference> {
        let mut memory = false;
        loop {
            self.accept(|token| token.is_punct(b','));
            if self.accept_words(&["ENGINE"]) {
                self.accept(|token| token.is_punct(b'='));
                if !self.accept(is_memory) {
                    return self.differs("MEMORY");
                }
                memory = true;
                continue;
            }
            let default = self.accept_words(&["DEFAULT"]);
            if CHARACTER_SETS.iter().any(|words| self.accept_words(words)) {
                self.accept(|token| token.is_punct(b'='));
                self.free_name("a character set")?;
            } else if default {
                return self.differs("CHARSET");
            } else if memory {
                return Ok(());
            } else {
                return self.differs("ENGINE");
            }
        }
    }

    /// An integer type: `None` for another type, `Some(None)` for one that ids do not have.
    #[allow(clippy::option_option)]
    fn int_type(&mut self) -> Option<Option<IntType>> {
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

    fn free_name(&mut self, expected: &str) -> Result<String, Difference> {
        match self.peek().and_then(|token| token.name()) {
            Some(name) => {
                self.at += 1;
                Ok(name)
            }
            None => self.differs(expected),
        }
    }

    fn role(&self, role: &str) -> Option<String> {
        self.bound
            .iter()
            .find(|(bound, _)| *bound == role)
            .map(|(_, name)| name.clone())
    }

    /// A keyword, or bytes of punctuation.
    fn expect(&mut self, expected: &str) -> Result<(), Difference> {
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

    fn expect_kind(&mut self, kind: Kind, expected: &str) -> Result<(), Difference> {
        if self.accept(|token| token.kind == kind) {
            Ok(())
        } else {
            self.differs(expected)
        }
    }

    fn accept_words(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let met = words
            .iter()
            .all(|word| self.accept(|token| token.is_word(word)));
        if !met {
            self.at = start;
        }
        met
    }

    fn accept(&mut self, fits: impl Fn(Token<'a>) -> bool) -> bool {
        let met = self.peek().is_some_and(fits);
        self.at += usize::from(met);
        met
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn differs<T>(&self, expected: &str) -> Result<T, Difference> {
        Err(self.difference(expected, self.text_between(self.at, self.at + 1)))
    }

    fn difference(&self, expected: &str, found: String) -> Difference {
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

    /// What the tokens from `start` to before `end` say, cut where it is long.
    fn text_between(&self, start: usize, end: usize) -> String {
        let words = self
            .tokens
            .iter()
            .take(end)
            .skip(start)
            .map(|token| String::from_utf8_lossy(token.text));
        let text = words.collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            "the end".into()
        } else {
            text.chars().take(60).collect()
        }
    }
}

#[derive(Clone, Copy)]
enum Case {
    Kept,
    Folded,
}

/// What may stand between a procedure's parameters and its body, and changes nothing. (The SQL ones are advice to the reader.)
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

/// Both names of the engine, bare or quoted in any way.
fn is_memory(engine: Token<'_>) -> bool {
    let same =
        |name: &[u8]| name.eq_ignore_ascii_case(b"MEMORY") || name.eq_ignore_ascii_case(b"HEAP");
    engine.unquoted().is_some_and(same)
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A routine as a server shows it, with `from` changed to `to` (in every place where it is).
    fn compared(routine: Routine, from: &str, to: &str) -> Result<Body, String> {
        let definition = Definition::classic();
        let [heads, newest, bounded] = definition.procedures_sql();
        let text = match routine {
            Routine::Newest => newest,
            Routine::Bounded => bounded,
            Routine::Heads => heads,
        };
        let shown = text.replace("CREATE PROCEDURE", "CREATE DEFINER=`root`@`%` PROCEDURE");
        assert!(shown.contains(from), "{from} is not in {shown}");
        compare(&definition, routine, shown.replace(from, to).as_bytes())
            .map_err(|difference| difference.to_string())
    }

    fn same(routine: Routine, from: &str, to: &str) {
        assert_eq!(
            compared(routine, from, to),
            Ok(Body {
                security: Security::Definer
            }),
            "{from} -> {to}"
        );
    }

    fn differs(routine: Routine, from: &str, to: &str, message: &str) {
        let error = compared(routine, from, to).unwrap_err();
        assert!(error.contains(message), "{from} -> {to}: {error}");
    }

    #[test]
    fn its_own_procedures_are_known_whatever_the_names_and_types() {
        let mut definition = Definition {
            n: 7,
            id_type: IntType::BigIntUnsigned,
            user_type: IntType::Int,
            ..Definition::classic()
        };
        definition.message.id = "a`b".into();
        definition.result.table = "found ones".into();
        for definition in [Definition::classic(), definition] {
            for (routine, text) in [Routine::Heads, Routine::Newest, Routine::Bounded]
                .into_iter()
                .zip(definition.procedures_sql())
            {
                compare(&definition, routine, text.as_bytes()).unwrap();
            }
        }
    }

    #[test]
    fn dress_does_not_matter() {
        same(Routine::Newest, "v_author", "FID");
        same(
            Routine::Newest,
            "ENGINE=MEMORY",
            "ENGINE = heap DEFAULT CHARSET=utf8 COLLATE utf8_bin",
        );
        same(
            Routine::Newest,
            "SELECT `id` FROM",
            "select/* x */message . ID from",
        );
        same(Routine::Newest, "`user_id` DESC, `id` DESC", "`id` DESC");
        same(Routine::Heads, "AS newest", "newest");
        same(Routine::Bounded, "int unsigned", "INTEGER(10) UNSIGNED");
        same(Routine::Bounded, "tinyint DEFAULT 0", "bool DEFAULT FALSE");
        same(
            Routine::Bounded,
            "BEGIN\n",
            "  NOT DETERMINISTIC MODIFIES SQL DATA COMMENT 'pages' BEGIN\n",
        );
    }

    #[test]
    fn the_invoker_is_told() {
        let body = compared(Routine::Newest, "BEGIN\n", "SQL SECURITY INVOKER BEGIN\n");
        assert_eq!(
            body,
            Ok(Body {
                security: Security::Invoker
            })
        );
    }

    #[test]
    fn one_changed_token_is_a_difference_and_is_named() {
        differs(
            Routine::Newest,
            "LIMIT 20;\n    END",
            "LIMIT 21;\n    END",
            "line 28: expected 20, found 21",
        );
        differs(
            Routine::Newest,
            "newest DESC",
            "newest ASC",
            "expected DESC, found ASC",
        );
        differs(
            Routine::Newest,
            "`user_id` = v_author",
            "`user_id` = v_head",
            "expected `v_author`, found v_head",
        );
        differs(
            Routine::Newest,
            "`user_id` = v_author",
            "`user_id` = v_author AND hidden = 0",
            "expected ORDER, found AND",
        );
        differs(
            Routine::Newest,
            "PRIMARY KEY",
            "UNIQUE",
            "expected PRIMARY, found UNIQUE",
        );
        differs(
            Routine::Newest,
            "ENGINE=MEMORY",
            "ENGINE=InnoDB",
            "expected MEMORY, found InnoDB",
        );
        differs(
            Routine::Newest,
            "ENGINE=MEMORY",
            "",
            "expected ENGINE, found ;",
        );
        differs(
            Routine::Newest,
            "  DELETE FROM `fetch_timeline_tt`;\n",
            "",
            "expected DELETE, found OPEN",
        );
        differs(
            Routine::Newest,
            "FROM `message`",
            "FROM `messages`",
            "expected `message`, found `messages`",
        );
        differs(
            Routine::Newest,
            "FROM `message`",
            "FROM `Message`",
            "expected `message`, found `Message`",
        );
        differs(
            Routine::Newest,
            "int unsigned",
            "int",
            "expected int unsigned, found int",
        );
        differs(
            Routine::Newest,
            "int unsigned NOT",
            "int unsigned zerofill NOT",
            "expected NOT, found zerofill",
        );
        differs(
            Routine::Newest,
            "IN p_reader",
            "OUT p_reader",
            "expected int unsigned, found p_reader",
        );
        differs(
            Routine::Heads,
            "<= p_bound",
            "< p_bound",
            "expected <=, found <",
        );
        differs(Routine::Heads, "MAX(", "MIN(", "expected MAX, found MIN");
        differs(
            Routine::Bounded,
            "(p_reader, p_bound)",
            "(p_bound, p_reader)",
            "expected `p_reader`, found p_bound",
        );
        differs(
            Routine::Bounded,
            "END REPEAT",
            "END /*! REPEAT */",
            "expected REPEAT, found /*!",
        );
        differs(
            Routine::Bounded,
            "CLOSE authors;\nEND",
            "CLOSE authors;\n SELECT 1; END",
            "expected END, found SELECT",
        );
        differs(
            Routine::Bounded,
            "CLOSE authors;\nEND",
            "CLOSE authors;\nEND; DROP TABLE x",
            "expected the end, found DROP",
        );
    }

    #[test]
    fn a_variable_that_hides_a_column_is_a_difference() {
        differs(
            Routine::Newest,
            "v_author",
            "follower_id",
            "found the variable `follower_id`",
        );
        differs(
            Routine::Newest,
            "p_reader",
            "user_id",
            "found the variable `user_id`",
        );
        differs(
            Routine::Bounded,
            "p_bound",
            "Max_Id",
            "found the variable `Max_Id`",
        );
        differs(
            Routine::Newest,
            "newest",
            "v_head",
            "expected an alias that is no variable's",
        );
        differs(
            Routine::Newest,
            "newest",
            "follower_id",
            "expected an alias that is no variable's",
        );
    }

    #[test]
    fn two_roles_need_two_variables() {
        differs(
            Routine::Newest,
            "v_head",
            "v_author",
            "expected a variable of its own of type int unsigned",
        );
        differs(
            Routine::Newest,
            "DEFAULT 0",
            "",
            "expected a variable of its own that starts as 0",
        );
        differs(
            Routine::Newest,
            "DEFAULT 0",
            "DEFAULT 1",
            "expected 0, found 1",
        );
    }

    #[test]
    fn no_text_at_all_is_a_difference() {
        let difference = compare(&Definition::classic(), Routine::Newest, b"").unwrap_err();
        assert_eq!(
            difference.to_string(),
            "procedure fetch_timeline_ids, line 1: expected CREATE, found the end"
        );
    }
}
