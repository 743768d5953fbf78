//! `CALL [db.]procedure(reader[, bound])`: the calls that may be answered, and their arguments.

use headwater_sql::keyword::is_keyword;
use headwater_sql::lexer::{Lexer, SqlToken, TokenKind, end_of_statement};
use headwater_sql::user_variable::user_variable;
use headwater_timeline::{DefinitionId, ProcedureForm, TimelineDefinition};
use headwater_wire::command::parse_digits;

/// A call of a known timeline procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineCall {
    /// The first definition with such a procedure; [`TimelineCall::definition_in`] returns the one for a database.
    pub definition: DefinitionId,
    /// Which procedure.
    pub form: ProcedureForm,
    /// The database that qualifies the name, if any.
    pub database: Option<String>,
    /// The reader; the parameter's type holds it.
    pub reader: u64,
    /// The greatest message id requested; the parameter's type holds it. `Some` for [bounded](ProcedureForm::is_bounded) forms only.
    pub bound: Option<u64>,
}

/// A call as written: some of its values may have to be looked up elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStatement {
    /// Which procedure.
    pub form: ProcedureForm,
    /// The database that qualifies the name, if any.
    pub database: Option<String>,
    procedure: String,
    reader: CallArgument,
    bound: Option<CallArgument>,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallArgument {
    /// A number, or a string of digits: servers convert both to the same number.
    Number(u64),
    /// `?`: a parameter of a prepared statement.
    Parameter,
    /// A user variable, as SQL: `@name`.
    Variable(String),
    /// Digits in double quotes: a string of digits, unless the session reads such quotes as a name's (`ANSI_QUOTES`).
    DoubleQuoted(u64),
}

impl TimelineCall {
    /// Parses a call whose values are all in the text. `None`: any other text, and any call whose meaning is in doubt.
    pub fn parse(text: &[u8], definitions: &[TimelineDefinition]) -> Option<Self> {
        CallStatement::parse(text, definitions)?.bind(definitions, &[])
    }

    /// The definition that answers it if the procedure is in `database`: the qualifier's, or else the current one.
    ///
    /// `None`: no definition is served there, or its types do not hold the arguments.
    pub fn definition_in(
        &self,
        definitions: &[TimelineDefinition],
        database: &[u8],
    ) -> Option<DefinitionId> {
        let definition = self.procedure_in(definitions, database)?;
        let resolved = definition.resolve(definitions)?;
        let fits = resolved.user_type.holds(self.reader)
            && self.bound.is_none_or(|bound| resolved.id_type.holds(bound));
        fits.then_some(definition)
    }

    /// The definition with such a procedure in `database`, whatever its types.
    #[must_use]
    pub fn procedure_in(
        &self,
        definitions: &[TimelineDefinition],
        database: &[u8],
    ) -> Option<DefinitionId> {
        let procedure = self
            .definition
            .resolve(definitions)?
            .procedure_name(self.form);
        procedure_in(definitions, self.form, procedure, database)
    }

    /// The same call as plain SQL: its meaning depends only on the current database.
    #[must_use]
    pub fn to_sql(&self, definitions: &[TimelineDefinition]) -> Option<String> {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let procedure = quoted(
            self.definition
                .resolve(definitions)?
                .procedure_name(self.form),
        );
        let database = self.database.as_deref();
        let database = database.map_or_else(String::new, |name| format!("{}.", quoted(name)));
        let bound = self.bound.map_or_else(String::new, |id| format!(",{id}"));
        Some(format!(
            "CALL {database}{procedure}({}{bound})",
            self.reader
        ))
    }
}

impl CallStatement {
    /// Parses a call with nothing after it.
    pub fn parse(text: &[u8], definitions: &[TimelineDefinition]) -> Option<Self> {
        let (statement, lexer) = Self::parse_prefix(text, definitions)?;
        end_of_statement(lexer)?;
        Some(statement)
    }

    /// Parses a call at the start of a text, up to its closing parenthesis.
    pub(super) fn parse_prefix<'a>(
        text: &'a [u8],
        definitions: &[TimelineDefinition],
    ) -> Option<(Self, Lexer<'a>)> {
        let mut lexer = Lexer::new(text);
        if !lexer.next()?.is_word("CALL") {
            return None;
        }
        let (database, procedure) = parse_procedure_name(&mut lexer)?;
        let (reader, bound) = parse_arguments(&mut lexer)?;
        let mut statement = Self {
            form: ProcedureForm::Newest,
            database,
            procedure,
            reader,
            bound,
        };
        let mut forms = ProcedureForm::ALL.into_iter().filter(|form| {
            form.is_bounded() == statement.bound.is_some()
                && definitions
                    .iter()
                    .any(|definition| statement.matches_procedure(definition, *form))
        });
        let form = forms.next()?;
        // One definition's page may have the name of another's helper.
        if forms.next().is_some() {
            return None;
        }
        statement.form = form;
        Some((statement, lexer))
    }

    /// Substitutes values for parameters and variables, in their order.
    ///
    /// `None`: their number differs, or no definition's types hold them.
    #[must_use]
    pub fn bind(&self, definitions: &[TimelineDefinition], values: &[u64]) -> Option<TimelineCall> {
        let mut values = values.iter().copied();
        let mut value = |argument: &CallArgument| match argument {
            CallArgument::Number(number) => Some(*number),
            CallArgument::Parameter | CallArgument::Variable(_) | CallArgument::DoubleQuoted(_) => {
                values.next()
            }
        };
        let reader = value(&self.reader)?;
        let bound = match &self.bound {
            Some(argument) => Some(value(argument)?),
            None => None,
        };
        if values.next().is_some() {
            return None;
        }
        let definition = definitions.iter().position(|definition| {
            self.matches_procedure(definition, self.form)
                && definition.user_type.holds(reader)
                && bound.is_none_or(|bound| definition.id_type.holds(bound))
        })?;
        Some(TimelineCall {
            definition: DefinitionId(definition),
            form: self.form,
            database: self.database.clone(),
            reader,
            bound,
        })
    }

    /// The arguments, in their order.
    pub fn arguments(&self) -> impl Iterator<Item = &CallArgument> {
        [&self.reader].into_iter().chain(&self.bound)
    }

    /// The arguments whose values only the session knows, as SQL.
    pub fn session_expressions(&self) -> impl Iterator<Item = String> {
        self.arguments().filter_map(|argument| match argument {
            CallArgument::Variable(name) => Some(name.clone()),
            CallArgument::DoubleQuoted(number) => Some(format!("\"{number}\"")),
            CallArgument::Number(_) | CallArgument::Parameter => None,
        })
    }

    /// How many arguments are parameters.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        let parameters = self.arguments();
        parameters
            .filter(|argument| matches!(argument, CallArgument::Parameter))
            .count()
    }

    /// The definition with such a procedure in `database`, whatever its types.
    #[must_use]
    pub fn procedure_in(
        &self,
        definitions: &[TimelineDefinition],
        database: &[u8],
    ) -> Option<DefinitionId> {
        procedure_in(definitions, self.form, &self.procedure, database)
    }

    fn matches_procedure(&self, definition: &TimelineDefinition, form: ProcedureForm) -> bool {
        let procedure = definition.procedure_name(form);
        !definition.retired
            && procedure.eq_ignore_ascii_case(&self.procedure)
            && self
                .database
                .as_ref()
                .is_none_or(|database| definition.serves(database.as_bytes()))
    }
}

fn procedure_in(
    definitions: &[TimelineDefinition],
    form: ProcedureForm,
    procedure: &str,
    database: &[u8],
) -> Option<DefinitionId> {
    let index = definitions.iter().position(|definition| {
        definition
            .procedure_name(form)
            .eq_ignore_ascii_case(procedure)
            && definition.serves(database)
    });
    index.map(DefinitionId)
}

fn parse_procedure_name(lexer: &mut Lexer<'_>) -> Option<(Option<String>, String)> {
    let first = name(lexer.next()?)?;
    if !lexer.clone().next()?.is_punct(b'.') {
        return Some((None, first));
    }
    lexer.next()?;
    Some((Some(first), name(lexer.next()?)?))
}

/// Without quotes, a keyword is a name in some places and an error in others, and `_latin1` is a character set: the server decides.
fn name(token: SqlToken<'_>) -> Option<String> {
    token.name().filter(|name| {
        token.kind == TokenKind::QuotedName || !(name.starts_with('_') || is_keyword(name))
    })
}

fn parse_arguments(lexer: &mut Lexer<'_>) -> Option<(CallArgument, Option<CallArgument>)> {
    lexer.next().filter(|token| token.is_punct(b'('))?;
    let reader = parse_argument(lexer)?;
    let next = lexer.next()?;
    if next.is_punct(b')') {
        return Some((reader, None));
    }
    if !next.is_punct(b',') {
        return None;
    }
    let bound = parse_argument(lexer)?;
    lexer.next().filter(|token| token.is_punct(b')'))?;
    Some((reader, Some(bound)))
}

fn parse_argument(lexer: &mut Lexer<'_>) -> Option<CallArgument> {
    let token = lexer.next()?;
    match token.kind {
        TokenKind::Number => parse_digits(token.text).map(CallArgument::Number),
        TokenKind::QuotedText => {
            let argument: fn(u64) -> CallArgument = match token.text.first()? {
                b'"' => CallArgument::DoubleQuoted,
                _ => CallArgument::Number,
            };
            parse_digits(token.unquoted()?).map(argument)
        }
        TokenKind::Punct(b'?') => Some(CallArgument::Parameter),
        TokenKind::Punct(b'@') => user_variable(token, lexer.next()?).map(CallArgument::Variable),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use headwater_timeline::IdType;

    fn parse(text: &str) -> Option<TimelineCall> {
        TimelineCall::parse(text.as_bytes(), &[TimelineDefinition::classic()])
    }

    #[test]
    fn a_call_is_recognised_in_any_spelling() {
        let plain = parse("CALL fetch_timeline_ids(7)").unwrap();
        assert_eq!(
            (plain.form, plain.reader, plain.bound),
            (ProcedureForm::Newest, 7, None)
        );
        for dressed in [
            "call FETCH_timeline_IDS ( 007 ) ; ",
            "/* a */ CALL`fetch_timeline_ids`(7)-- b",
            "# CALL x\nCALL fetch_timeline_ids(7/**/)\n",
        ] {
            assert_eq!(parse(dressed), Some(plain.clone()), "{dressed}");
        }
    }

    #[test]
    fn a_number_beyond_its_parameter_is_no_timeline_call() {
        assert!(parse("CALL fetch_timeline_ids2(4294967295, 4294967295)").is_some());
        assert!(parse("CALL fetch_timeline_ids2(4294967295, 4294967296)").is_none());
        assert!(parse("CALL fetch_timeline_ids2(4294967296, 1)").is_none());
        let wide = TimelineDefinition {
            id_type: IdType::BigIntUnsigned,
            ..TimelineDefinition::classic()
        };
        let text = b"CALL fetch_timeline_ids2(1, 18446744073709551615)";
        assert_eq!(
            TimelineCall::parse(text, &[wide]).unwrap().bound,
            Some(u64::MAX)
        );
    }

    #[test]
    fn values_are_numbers_strings_parameters_and_variables() {
        let statement =
            |text: &str| CallStatement::parse(text.as_bytes(), &[TimelineDefinition::classic()]);
        assert_eq!(parse("CALL fetch_timeline_ids('007')").unwrap().reader, 7);
        for refused in [
            "\" 7\"", "' 7'", "'7.0'", "''", "-7", "+7", "7.0", "0x7", "NULL", "@@x", "@ x",
            "@ `x`", "@1", "@a.b",
        ] {
            let text = format!("CALL fetch_timeline_ids({refused})");
            assert_eq!(statement(&text), None, "{text}");
        }
        let quoted = statement("CALL fetch_timeline_ids2(\"007\", '8')").unwrap();
        assert_eq!(quoted.session_expressions().collect::<Vec<_>>(), ["\"7\""]);
        let parameterized = statement("CALL tl.fetch_timeline_ids2(?, @Bound)").unwrap();
        assert_eq!(parameterized.parameter_count(), 1);
        assert_eq!(
            parameterized.session_expressions().collect::<Vec<_>>(),
            ["@Bound"]
        );
        let definitions = [TimelineDefinition::classic()];
        let call = parameterized.bind(&definitions, &[7, 99]).unwrap();
        assert_eq!((call.reader, call.bound), (7, Some(99)));
        assert_eq!(
            call.to_sql(&definitions).unwrap(),
            "CALL `tl`.`fetch_timeline_ids2`(7,99)"
        );
        for values in [&[7][..], &[7, 99, 1], &[7, 1 << 32]] {
            assert_eq!(parameterized.bind(&definitions, values), None, "{values:?}");
        }
    }

    #[test]
    fn a_name_that_means_a_page_here_and_a_helper_there_is_left_to_the_server() {
        let mut definitions = [TimelineDefinition::classic(), TimelineDefinition::classic()];
        definitions[1].procedures.bounded = "build_max_ids_of_followers".into();
        definitions[1].procedures.heads = "helper".into();
        let parse = |text: &str, definitions| TimelineCall::parse(text.as_bytes(), definitions);
        let call = "CALL build_max_ids_of_followers(1, 9)";
        assert_eq!(parse(call, &definitions), None);
        assert_eq!(
            parse(call, &definitions[..1]).unwrap().form,
            ProcedureForm::Heads
        );
        assert_eq!(
            parse(call, &definitions[1..]).unwrap().form,
            ProcedureForm::Bounded
        );
        let helper = parse("CALL HELPER(1, 9)", &definitions).unwrap();
        assert_eq!(
            (helper.definition, helper.form),
            (DefinitionId(1), ProcedureForm::Heads)
        );
        assert_eq!(helper.to_sql(&definitions).unwrap(), "CALL `helper`(1,9)");
    }

    #[test]
    fn the_database_chooses_among_definitions_of_one_procedure() {
        let definitions = ["a", "b"].map(|database| TimelineDefinition {
            database: Some(database.into()),
            ..TimelineDefinition::classic()
        });
        let call = TimelineCall::parse(b"CALL fetch_timeline_ids(1)", &definitions).unwrap();
        assert_eq!(
            call.definition_in(&definitions, b"b"),
            Some(DefinitionId(1))
        );
        assert_eq!(call.definition_in(&definitions, b"B"), None);
        let qualified =
            TimelineCall::parse(b"CALL b . fetch_timeline_ids(1)", &definitions).unwrap();
        assert_eq!(qualified.definition, DefinitionId(1));
        assert!(TimelineCall::parse(b"CALL c.fetch_timeline_ids(1)", &definitions).is_none());
    }
}
