//! `CALL [db.]procedure(reader[, bound])` with integer literals: the calls that may be answered.

use super::keyword::is_keyword;
use super::lexer::{Kind, Lexer, Token, is_space};
use crate::timeline::{Definition, Form};

/// A call of a known timeline procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The first definition with such a procedure; [`Call::definition_in`] says which one it is in a database.
    pub definition: usize,
    /// Which procedure.
    pub form: Form,
    /// The database in front of the name, if there is one.
    pub database: Option<String>,
    /// The reader; the parameter's type holds it.
    pub reader: u64,
    /// The greatest message id wanted; the parameter's type holds it. `Some` for [`Form::Bounded`] only.
    pub bound: Option<u64>,
}

/// Longer numbers are left to the server, leading zeros included.
const MAX_DIGITS: usize = 20;

impl Call {
    /// Reads a call; `None` is any other text, and any call whose meaning is not beyond doubt.
    pub fn parse(text: &[u8], definitions: &[Definition]) -> Option<Self> {
        let mut lexer = Lexer::new(text);
        if !lexer.next()?.is_word("CALL") {
            return None;
        }
        let (database, procedure) = procedure_name(&mut lexer)?;
        let (reader, bound) = arguments(&mut lexer)?;
        end_of_statement(lexer)?;

        let form = if bound.is_some() {
            Form::Bounded
        } else {
            Form::Newest
        };
        let named = |definition: &Definition| {
            definition.procedure(form).eq_ignore_ascii_case(&procedure)
                && database
                    .as_ref()
                    .is_none_or(|database| definition.serves(database.as_bytes()))
                && definition.user_type.holds(reader)
                && bound.is_none_or(|bound| definition.id_type.holds(bound))
        };
        let definition = definitions.iter().position(named)?;
        Some(Self {
            definition,
            form,
            database,
            reader,
            bound,
        })
    }

    /// The definition that answers it where the procedure is in `database`: the qualifier's, or else the current one.
    ///
    /// `None`: none is served there, or this call's arguments are not of its types.
    pub fn definition_in(&self, definitions: &[Definition], database: &[u8]) -> Option<usize> {
        let procedure = definitions.get(self.definition)?.procedure(self.form);
        let found = definitions.iter().position(|definition| {
            definition
                .procedure(self.form)
                .eq_ignore_ascii_case(procedure)
                && definition.serves(database)
        })?;
        let types = definitions.get(found)?;
        let held = types.user_type.holds(self.reader)
            && self.bound.is_none_or(|bound| types.id_type.holds(bound));
        held.then_some(found)
    }
}

fn procedure_name(lexer: &mut Lexer<'_>) -> Option<(Option<String>, String)> {
    let first = name(lexer.next()?)?;
    if !lexer.clone().next()?.is_punct(b'.') {
        return Some((None, first));
    }
    lexer.next()?;
    Some((Some(first), name(lexer.next()?)?))
}

/// Without quotes, a keyword is a name in some places and an error in others, and `_latin1` is a character set: left to the server.
fn name(token: Token<'_>) -> Option<String> {
    token
        .name()
        .filter(|name| token.kind == Kind::Quoted || !(name.starts_with('_') || is_keyword(name)))
}

fn arguments(lexer: &mut Lexer<'_>) -> Option<(u64, Option<u64>)> {
    lexer.next().filter(|token| token.is_punct(b'('))?;
    let reader = integer(lexer.next()?)?;
    let next = lexer.next()?;
    if next.is_punct(b')') {
        return Some((reader, None));
    }
    if !next.is_punct(b',') {
        return None;
    }
    let bound = integer(lexer.next()?)?;
    lexer.next().filter(|token| token.is_punct(b')'))?;
    Some((reader, Some(bound)))
}

fn integer(token: Token<'_>) -> Option<u64> {
    if token.kind != Kind::Number || token.text.len() > MAX_DIGITS {
        return None;
    }
    std::str::from_utf8(token.text).ok()?.parse().ok()
}

/// Comments may close a statement, but only white space may follow its semicolon: more is a second statement.
fn end_of_statement(mut lexer: Lexer<'_>) -> Option<()> {
    match lexer.next() {
        None => Some(()),
        Some(token) => {
            (token.is_punct(b';') && lexer.rest().iter().all(|&byte| is_space(byte))).then_some(())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::timeline::IntType;

    fn parse(text: &str) -> Option<Call> {
        Call::parse(text.as_bytes(), &[Definition::classic()])
    }

    #[test]
    fn a_call_is_known_whatever_its_dress() {
        let plain = parse("CALL fetch_timeline_ids(7)").unwrap();
        assert_eq!(
            (plain.form, plain.reader, plain.bound),
            (Form::Newest, 7, None)
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
    fn a_number_beyond_its_parameter_is_left_to_the_server() {
        assert!(parse("CALL fetch_timeline_ids2(4294967295, 4294967295)").is_some());
        assert!(parse("CALL fetch_timeline_ids2(4294967295, 4294967296)").is_none());
        assert!(parse("CALL fetch_timeline_ids2(4294967296, 1)").is_none());
        let wide = Definition {
            id_type: IntType::BigIntUnsigned,
            ..Definition::classic()
        };
        let text = b"CALL fetch_timeline_ids2(1, 18446744073709551615)";
        assert_eq!(Call::parse(text, &[wide]).unwrap().bound, Some(u64::MAX));
    }

    #[test]
    fn the_database_chooses_among_definitions_of_one_procedure() {
        let definitions = ["a", "b"].map(|database| Definition {
            database: Some(database.into()),
            ..Definition::classic()
        });
        let call = Call::parse(b"CALL fetch_timeline_ids(1)", &definitions).unwrap();
        assert_eq!(call.definition_in(&definitions, b"b"), Some(1));
        assert_eq!(call.definition_in(&definitions, b"B"), None);
        let qualified = Call::parse(b"CALL b . fetch_timeline_ids(1)", &definitions).unwrap();
        assert_eq!(qualified.definition, 1);
        assert!(Call::parse(b"CALL c.fetch_timeline_ids(1)", &definitions).is_none());
    }
}
