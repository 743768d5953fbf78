//! Dynamic SQL: `PREPARE`, `EXECUTE` and `DEALLOCATE PREPARE` of named statements.

use super::call::CallStatement;
use headwater_sql::lexer::{Lexer, SqlToken, TokenKind, end_of_statement};
use headwater_sql::user_variable::user_variable;
use headwater_timeline::TimelineDefinition;

/// A statement of dynamic SQL whose parts are in its text. Names are in lower case: servers ignore their case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DynamicStatement {
    /// `PREPARE name FROM 'text'`
    Prepare {
        /// The statement's name.
        name: String,
        /// The call in the text, if its values are parameters alone; `None`: any other text.
        call: Option<CallStatement>,
        /// The text, if it is certain under all session settings.
        text: Option<Vec<u8>>,
    },
    /// `EXECUTE name [USING @a, @b]`
    Execute {
        /// The statement's name.
        name: String,
        /// The variables that supply its parameters.
        variables: Vec<String>,
    },
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`
    Deallocate {
        /// The statement's name.
        name: String,
    },
}

/// An execution with more is not parsed.
const MAX_VARIABLES: usize = 1_000;

impl DynamicStatement {
    /// Parses such a statement. `None`: any other text, and one whose meaning is in doubt.
    pub fn parse(text: &[u8], definitions: &[TimelineDefinition]) -> Option<Self> {
        let mut lexer = Lexer::new(text);
        let verb = lexer.next()?;
        let dynamic = if verb.is_word("PREPARE") {
            parse_prepare(&mut lexer, definitions)?
        } else if verb.is_word("EXECUTE") {
            parse_execute(&mut lexer)?
        } else if verb.is_word("DEALLOCATE") || verb.is_word("DROP") {
            expect_word(&mut lexer, "PREPARE")?;
            Self::Deallocate {
                name: statement_name(lexer.next()?)?,
            }
        } else {
            return None;
        };
        end_of_statement(lexer)?;
        Some(dynamic)
    }
}

fn parse_prepare(
    lexer: &mut Lexer<'_>,
    definitions: &[TimelineDefinition],
) -> Option<DynamicStatement> {
    let name = statement_name(lexer.next()?)?;
    expect_word(lexer, "FROM")?;
    let token = lexer
        .next()
        .filter(|token| token.kind == TokenKind::QuotedText)?;
    let text = token.text.strip_prefix(b"'")?.strip_suffix(b"'")?;
    // No served call needs quotes except around digits.
    let call = CallStatement::parse(text, definitions)
        .filter(|call| !text.contains(&b'\'') && call.session_expressions().next().is_none());
    let text = call.is_none().then(|| unescape_quotes(text)).flatten();
    Some(DynamicStatement::Prepare { name, call, text })
}

/// The value of a string in single quotes. `None`: it may depend on the session's settings.
fn unescape_quotes(string: &[u8]) -> Option<Vec<u8>> {
    string.is_ascii().then_some(())?;
    let mut text = Vec::with_capacity(string.len());
    let mut bytes = string.iter();
    while let Some(byte) = bytes.next() {
        text.push(*byte);
        if *byte == b'\'' {
            bytes.next().filter(|next| **next == b'\'')?;
        }
    }
    Some(text)
}

fn parse_execute(lexer: &mut Lexer<'_>) -> Option<DynamicStatement> {
    let name = statement_name(lexer.next()?)?;
    let mut variables = Vec::new();
    let mut lookahead = lexer.clone();
    let mut next = lookahead.next();
    if next.is_some_and(|token| token.is_word("USING")) {
        loop {
            *lexer = lookahead;
            let at_sign = lexer.next().filter(|token| token.is_punct(b'@'))?;
            variables.push(user_variable(at_sign, lexer.next()?)?);
            lookahead = lexer.clone();
            next = lookahead.next();
            if !next.is_some_and(|token| token.is_punct(b',')) || variables.len() > MAX_VARIABLES {
                break;
            }
        }
    }
    Some(DynamicStatement::Execute { name, variables })
}

fn expect_word(lexer: &mut Lexer<'_>, word: &str) -> Option<()> {
    lexer.next()?.is_word(word).then_some(())
}

/// Beyond ASCII, servers have other rules for which names are equal.
fn statement_name(token: SqlToken<'_>) -> Option<String> {
    let name = token.name()?;
    let plain = name.is_ascii() && !name.eq_ignore_ascii_case("IMMEDIATE");
    plain.then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<DynamicStatement> {
        DynamicStatement::parse(text.as_bytes(), &[TimelineDefinition::classic()])
    }

    #[test]
    fn a_call_is_prepared_by_its_text_alone() {
        for text in [
            "PREPARE S FROM 'CALL fetch_timeline_ids(?)'",
            "prepare `s` from 'call `fetch_timeline_ids` ( ? ) ;' ;",
        ] {
            let Some(DynamicStatement::Prepare { name, call, .. }) = parse(text) else {
                panic!("{text}");
            };
            assert_eq!((name.as_str(), call.unwrap().parameter_count()), ("s", 1));
        }
        for other in [
            "PREPARE s FROM 'SELECT 1'",
            "PREPARE s FROM 'CALL fetch_timeline_ids(@a)'",
            "PREPARE s FROM 'CALL fetch_timeline_ids(''7'')'",
        ] {
            assert!(
                matches!(
                    parse(other),
                    Some(DynamicStatement::Prepare { call: None, .. })
                ),
                "{other}"
            );
        }
        let texts = [
            ("'SELECT ''a'' FROM b'", Some(&b"SELECT 'a' FROM b"[..])),
            ("'SELECT 1 -- it''s'", Some(b"SELECT 1 -- it's")),
            ("'SELECT \u{e4}'", None),
            ("'CALL fetch_timeline_ids(?)'", None),
        ];
        for (quoted, expected) in texts {
            let Some(DynamicStatement::Prepare { text, .. }) =
                parse(&format!("PREPARE s FROM {quoted}"))
            else {
                panic!("{quoted}");
            };
            assert_eq!(text.as_deref(), expected);
        }
        for unknown in [
            "PREPARE s FROM @text",
            "PREPARE s FROM \"CALL fetch_timeline_ids(?)\"",
            "PREPARE s FROM 'CALL fetch_timeline_ids(?)' 'x'",
            "PREPARE `\u{e4}` FROM 'CALL fetch_timeline_ids(?)'",
            "PREPARE s FROM '\\'",
        ] {
            assert_eq!(parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn an_execution_names_its_variables() {
        let execute = |variables: &[&str]| {
            Some(DynamicStatement::Execute {
                name: "s".into(),
                variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            })
        };
        assert_eq!(parse("EXECUTE s"), execute(&[]));
        assert_eq!(parse("EXECUTE s;"), execute(&[]));
        assert_eq!(parse("execute S using @a , @B;"), execute(&["@a", "@B"]));
        for refused in [
            "EXECUTE s USING",
            "EXECUTE s USING @a,",
            "EXECUTE s USING 7",
            "EXECUTE s USING @a @b",
            "EXECUTE s USING @@a",
            "EXECUTE IMMEDIATE 'DO 1'",
        ] {
            assert_eq!(parse(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_statement_is_deallocated_by_two_verbs() {
        for text in ["DEALLOCATE PREPARE s", "DROP prepare `S`;"] {
            assert_eq!(
                parse(text),
                Some(DynamicStatement::Deallocate { name: "s".into() }),
                "{text}"
            );
        }
        assert_eq!(parse("DROP TABLE s"), None);
    }
}
