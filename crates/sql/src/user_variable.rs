//! User variables: their names, and `SET @name = literal, ...`, which changes them and nothing else.

use super::lexer::{Lexer, SqlToken, TokenKind, end_of_statement};

/// Maximum assignments in one `SET`.
const MAX_SET_VALUES: usize = 32;

/// Returns a user variable as SQL, from its `@` and the token right after it: a word, or an ASCII name in back quotes.
pub fn user_variable(at: SqlToken<'_>, name: SqlToken<'_>) -> Option<String> {
    let joined = at.is_punct(b'@') && name.at == at.at + at.text.len();
    match name.kind {
        TokenKind::Word | TokenKind::QuotedName if joined => {}
        _ => return None,
    }
    let name = std::str::from_utf8(name.text).ok()?;
    name.is_ascii().then(|| format!("@{name}"))
}

/// True if a text only sets user variables to literals, whatever the session's settings.
pub fn sets_variables_alone(text: &[u8]) -> bool {
    let mut lexer = Lexer::new(text);
    lexer.next().is_some_and(|verb| verb.is_word("SET")) && skip_assignments(lexer).is_some()
}

fn skip_assignments(mut lexer: Lexer<'_>) -> Option<()> {
    for _ in 0..MAX_SET_VALUES {
        let at = lexer.next()?;
        user_variable(at, lexer.next()?)?;
        let mut sign = lexer.next()?;
        if sign.is_punct(b':') {
            sign = lexer.next().filter(|next| next.at == sign.at + 1)?;
        }
        sign.is_punct(b'=').then_some(())?;
        skip_literal(&mut lexer)?;
        let mut ahead = lexer.clone();
        if !ahead.next().is_some_and(|next| next.is_punct(b',')) {
            return end_of_statement(lexer);
        }
        lexer = ahead;
    }
    None
}

fn skip_literal(lexer: &mut Lexer<'_>) -> Option<()> {
    let mut token = lexer.next()?;
    if token.is_punct(b'-') {
        token = lexer.next().filter(|next| next.kind == TokenKind::Number)?;
    }
    match token.kind {
        TokenKind::Number => Some(()),
        // A text in double quotes could be a name (`ANSI_QUOTES`).
        TokenKind::QuotedText => token.text.starts_with(b"'").then_some(()),
        TokenKind::Word => token.is_word("NULL").then_some(()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_word_or_a_name_in_quotes_right_after_the_sign() {
        let read = |text: &'static str| {
            let mut lexer = Lexer::new(text.as_bytes());
            user_variable(lexer.next()?, lexer.next()?)
        };
        for named in ["@a", "@Bound_1", "@`a`", "@`_f_0`", "@`a``b`", "@`a b`"] {
            assert_eq!(read(named).as_deref(), Some(named));
        }
        for other in [
            "@ a",
            "@'a'",
            "@\"a\"",
            "@@a",
            "@1",
            "a b",
            "@`\u{e9}`",
            "@",
            "@`a",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn literals_alone_change_variables_alone() {
        for text in [
            "SET @a=7",
            "set @a := 7 , @`_f_1` = 'x''y';",
            "SET @a = -5, @b = NULL /* c */",
            "/* c */ SET @a = ''",
        ] {
            assert!(sets_variables_alone(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "SET",
            "SET @a",
            "SET @a =",
            "SET @a = 1,",
            "SET @a = @b",
            "SET @a = b",
            "SET @a = f()",
            "SET @a = (SELECT 1)",
            "SET @a = 1 + 1",
            "SET @a = 'x' 'y'",
            "SET @a = \"x\"",
            "SET @a = 'x\\",
            "SET @a = 1.5",
            "SET @a = -'1'",
            "SET @a : = 1",
            "SET @a.b = 1",
            "SET @@a = 1",
            "SET @@sql_mode = ''",
            "SET @a = 1, sql_mode = ''",
            "SET @a = 1, @@autocommit = 0",
            "SET @a = 1; SET autocommit = 0",
            "SET STATEMENT @a = 1 FOR SELECT 1",
            "SET SESSION @a = 1",
            "SET TRANSACTION READ ONLY",
            "SET @a = 1 /*! , autocommit = 0 */",
            "SELECT @a = 1",
        ] {
            assert!(!sets_variables_alone(text.as_bytes()), "{text}");
        }
    }
}
