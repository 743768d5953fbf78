//! Several statements in one command, of which a call is the first.

use super::call::CallStatement;
use headwater_sql::contains_ignoring_case;
use headwater_sql::lexer::{Lexer, TokenKind};
use headwater_timeline::TimelineDefinition;

/// A call with more statements behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBatch {
    /// The first statement.
    pub call: CallStatement,
    /// Where the others begin in the text, behind the semicolon.
    pub remainder_start: usize,
}

impl CallBatch {
    /// Reads such a text. `None`: another one, or one where what is behind the semicolon would be answered in another
    /// way as a command of its own: nothing but comments (no error but one more OK), a file of the client's (whose packets are
    /// numbered on).
    pub fn parse(text: &[u8], definitions: &[TimelineDefinition]) -> Option<Self> {
        let (call, mut lexer) = CallStatement::parse_prefix(text, definitions)?;
        lexer.next().filter(|token| token.is_punct(b';'))?;
        let rest = lexer.rest();
        let begins = Lexer::new(rest).next()?.kind == TokenKind::Word;
        (begins && !contains_ignoring_case(rest, "INFILE")).then(|| Self {
            call,
            remainder_start: text.len() - rest.len(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_begins_behind_the_first_semicolon() {
        let parse =
            |text: &str| CallBatch::parse(text.as_bytes(), &[TimelineDefinition::classic()]);
        let text = "CALL fetch_timeline_ids(7); SELECT ';' FROM t; DO 1";
        let several = parse(text).unwrap();
        assert_eq!(&text[several.remainder_start..], " SELECT ';' FROM t; DO 1");
        for refused in [
            "CALL fetch_timeline_ids(7)",
            "CALL fetch_timeline_ids(7);",
            "CALL fetch_timeline_ids(7); -- SELECT 1",
            "CALL fetch_timeline_ids(7);; SELECT 1",
            "CALL fetch_timeline_ids(7); /*!SELECT*/ 1",
            "CALL fetch_timeline_ids(7); load data local infile 'x' into table t",
            "CALL fetch_timeline_ids(7) SELECT 1; DO 1",
            "SELECT 1; CALL fetch_timeline_ids(7)",
        ] {
            assert_eq!(parse(refused), None, "{refused}");
        }
    }
}
