//! Several statements in one command; the first is a call.

use super::call::CallStatement;
use headwater_sql::contains_ignoring_case;
use headwater_sql::lexer::{Lexer, TokenKind};
use headwater_timeline::TimelineDefinition;

/// A call followed by more statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBatch {
    /// The first statement.
    pub call: CallStatement,
    /// Where the others begin in the text, after the semicolon.
    pub remainder_start: usize,
}

impl CallBatch {
    /// Parses such a text. `None`: another text, or one whose remainder would get another reply as a command of its own: only comments
    /// (no error but one more OK), or a file of the client's (whose packets are numbered on).
    pub fn parse(text: &[u8], definitions: &[TimelineDefinition]) -> Option<Self> {
        let (call, mut lexer) = CallStatement::parse_prefix(text, definitions)?;
        lexer.next().filter(|token| token.is_punct(b';'))?;
        let remainder = lexer.rest();
        let begins_with_word = Lexer::new(remainder).next()?.kind == TokenKind::Word;
        (begins_with_word && !contains_ignoring_case(remainder, "INFILE")).then(|| Self {
            call,
            remainder_start: text.len() - remainder.len(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_begins_after_the_first_semicolon() {
        let parse =
            |text: &str| CallBatch::parse(text.as_bytes(), &[TimelineDefinition::classic()]);
        let text = "CALL fetch_timeline_ids(7); SELECT ';' FROM t; DO 1";
        let batch = parse(text).unwrap();
        assert_eq!(&text[batch.remainder_start..], " SELECT ';' FROM t; DO 1");
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
