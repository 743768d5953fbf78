//! Turns statement digests of the server (`performance_schema`) into statements that the parser reads.
//!
//! A digest has `?` for each literal, `(...)` for a list, spaces around everything, and names that are keywords in upper case without
//! quotes. MariaDB 10.11 and MySQL 9.7 write it so.

use headwater_sql::keyword::is_reserved;
use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};
use headwater_sql::quoted;

/// Functions of the grammar, whose parenthesis has to follow at once.
const FUNCTIONS: [&str; 4] = ["COALESCE", "IFNULL", "NOW", "CURRENT_TIMESTAMP"];
/// MySQL's prefix of a prepared statement that was executed. MariaDB has no digests of these.
const EXECUTE_PREFIX: &str = "EXECUTE ";
/// The prefix of an INTERVAL's unit on both servers: `SQL_TSI_DAY`.
const UNIT_PREFIX: &str = "SQL_TSI_";

/// The statement of a digest, with a parameter for each literal. `tables`: those of its database, because a name that is a keyword appears
/// in upper case, however the table is called.
///
/// `None`: it is no SELECT.
#[must_use]
pub fn statement(digest: &str, tables: &[String]) -> Option<String> {
    let text = digest.strip_prefix(EXECUTE_PREFIX).unwrap_or(digest);
    let mut tokens: Vec<SqlToken<'_>> = Lexer::new(text.as_bytes()).collect();
    let first = tokens.first()?;
    if !first.is_word("SELECT") || tokens.iter().any(|token| token.kind == TokenKind::Opaque) {
        return None;
    }
    if tokens.last().is_some_and(|token| token.is_punct(b';')) {
        tokens.pop();
    }
    let mut written = DigestRewriter {
        tables,
        text: String::with_capacity(text.len()),
        end: 0,
        glued: true,
    };
    let mut rest = tokens.as_slice();
    let mut before = None;
    while let Some((token, following)) = rest.split_first() {
        let taken = written.write_token(before, token, following);
        before = rest.get(taken - 1);
        rest = rest.get(taken..).unwrap_or_default();
    }
    Some(written.text)
}

/// True for the digest of a prepared statement that was executed.
#[must_use]
pub fn is_prepared(digest: &str) -> bool {
    digest.starts_with(EXECUTE_PREFIX)
}

struct DigestRewriter<'a> {
    tables: &'a [String],
    text: String,
    /// Where the last token ended in the digest.
    end: usize,
    /// No space precedes the next token.
    glued: bool,
}

impl DigestRewriter<'_> {
    /// Writes what a token stands for. Returns the number of tokens that this used.
    fn write_token(
        &mut self,
        before: Option<&SqlToken<'_>>,
        token: &SqlToken<'_>,
        following: &[SqlToken<'_>],
    ) -> usize {
        let next = following.first();
        if token.is_punct(b'.') {
            self.glue(".");
        } else if token.is_punct(b',') && is_ellipsis(following) {
            self.glue(", ?");
            self.glued = false;
            return 4;
        } else if token.is_punct(b',') || token.is_punct(b')') {
            self.glue(&token_text(token));
            self.glued = false;
        } else if token.is_punct(b'(') && is_ellipsis(following) {
            self.put(token, "(?, ?");
            return 4;
        } else if token.is_punct(b'(') {
            self.put(token, "(");
            self.glued = true;
        } else if token.is_punct(b'-') && is_parameter(next) && before.is_none_or(begins_operand) {
            self.put(token, "?");
            return 2;
        } else if token.is_word("INTERVAL") && is_parameter(next) {
            self.put(token, "INTERVAL 1");
            return 2;
        } else if let Some(name) = function(token, next) {
            self.put(token, name);
            self.glued = true;
        } else {
            let name = self.name(token);
            self.put(token, &name);
        }
        1
    }

    /// A name as the statement spelled it.
    fn name(&self, token: &SqlToken<'_>) -> String {
        let spelling = token_text(token);
        if token.kind != TokenKind::Word {
            return spelling;
        }
        if let Some(unit) = spelling.strip_prefix(UNIT_PREFIX) {
            return unit.to_owned();
        }
        if is_reserved(&spelling) || self.tables.contains(&spelling) {
            return spelling;
        }
        let mut alike = self
            .tables
            .iter()
            .filter(|table| table.eq_ignore_ascii_case(&spelling));
        match (alike.next(), alike.next()) {
            (Some(table), None) => quoted(table),
            _ => spelling,
        }
    }

    fn put(&mut self, token: &SqlToken<'_>, text: &str) {
        // `<=`, `!=` are two tokens with nothing between them.
        let close = token.at == self.end && matches!(token.kind, TokenKind::Punct(_));
        if !self.glued && !close {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.glued = false;
        self.end = token.at + token.text.len();
    }

    fn glue(&mut self, text: &str) {
        self.text.push_str(text);
        self.glued = true;
    }
}

fn token_text(token: &SqlToken<'_>) -> String {
    String::from_utf8_lossy(token.text).into_owned()
}

/// `...` is next.
fn is_ellipsis(following: &[SqlToken<'_>]) -> bool {
    let points = following.iter().take(3);
    points.filter(|token| token.is_punct(b'.')).count() == 3
}

fn is_parameter(token: Option<&SqlToken<'_>>) -> bool {
    token.is_some_and(|token| token.is_punct(b'?'))
}

/// An operand follows this token, so a minus is a literal's sign.
fn begins_operand(before: &SqlToken<'_>) -> bool {
    let punct = [b'=', b'<', b'>', b'(', b','];
    let words = ["BETWEEN", "AND", "IN", "SELECT"];
    punct.iter().any(|byte| before.is_punct(*byte)) || words.iter().any(|word| before.is_word(word))
}

/// The grammar's name of a called function. MySQL quotes some of them.
fn function(token: &SqlToken<'_>, next: Option<&SqlToken<'_>>) -> Option<&'static str> {
    next.filter(|next| next.is_punct(b'('))?;
    let name = token.unquoted()?;
    let of = |function: &&&str| function.as_bytes().eq_ignore_ascii_case(name);
    FUNCTIONS.iter().find(of).copied()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::parser::parse;
    use crate::words::StatementWords;

    /// Taken from MariaDB 10.11.19 and MySQL 9.7.4; once where both write the same.
    const READ: [(&str, &str); 12] = [
        (
            "SELECT * FROM `statuses` WHERE `profile_id` IN (...) AND ID < ? AND `deleted_at` IS NULL ORDER BY ID DESC LIMIT ? OFFSET ? ",
            "SELECT * FROM `statuses` WHERE `profile_id` IN (?, ?) AND ID < ? AND `deleted_at` IS NULL ORDER BY ID DESC LIMIT ? OFFSET ?",
        ),
        (
            "SELECT `statuses` . * FROM `statuses` WHERE `statuses` . `profile_id` IN (...) AND `statuses` . `kind` IN (...) ORDER BY `statuses` . `id` DESC LIMIT ?, ...",
            "SELECT `statuses`.* FROM `statuses` WHERE `statuses`.`profile_id` IN (?, ?) AND `statuses`.`kind` IN (?, ?) ORDER BY `statuses`.`id` DESC LIMIT ?, ?",
        ),
        (
            "SELECT `s` . `id` , `s` . `caption` FROM `statuses` `s` JOIN `followers` `f` ON `f` . `following_id` = `s` . `profile_id` WHERE `f` . `profile_id` = ? ORDER BY `s` . `id` DESC LIMIT ? ",
            "SELECT `s`.`id`, `s`.`caption` FROM `statuses` `s` JOIN `followers` `f` ON `f`.`following_id` = `s`.`profile_id` WHERE `f`.`profile_id` = ? ORDER BY `s`.`id` DESC LIMIT ?",
        ),
        (
            "SELECT `s` . * FROM `statuses` `s` WHERE EXISTS ( SELECT ? FROM `followers` `f` WHERE `f` . `following_id` = `s` . `profile_id` AND `f` . `profile_id` = ? ) ORDER BY `s` . `id` DESC LIMIT ? ",
            "SELECT `s`.* FROM `statuses` `s` WHERE EXISTS (SELECT ? FROM `followers` `f` WHERE `f`.`following_id` = `s`.`profile_id` AND `f`.`profile_id` = ?) ORDER BY `s`.`id` DESC LIMIT ?",
        ),
        (
            "SELECT `s` . `id` , `p` . `name` AS `who` FROM `app` . `statuses` `s` LEFT JOIN PROFILES `p` ON `p` . `id` = `s` . `profile_id` WHERE `s` . `profile_id` = ? AND NOT ( `s` . `likes` != ? ) AND `s` . `likes` >= ? ORDER BY `s` . `id` DESC LIMIT ? ",
            "SELECT `s`.`id`, `p`.`name` AS `who` FROM `app`.`statuses` `s` LEFT JOIN `profiles` `p` ON `p`.`id` = `s`.`profile_id` WHERE `s`.`profile_id` = ? AND NOT (`s`.`likes` != ?) AND `s`.`likes` >= ? ORDER BY `s`.`id` DESC LIMIT ?",
        ),
        // MariaDB.
        (
            "SELECT `s` . `id` FROM `statuses` `s` WHERE `s` . `likes` > - ? AND `s` . `created_at` > NOW ( ) - INTERVAL ? SQL_TSI_DAY ORDER BY `s` . `created_at` DESC , `s` . `id` DESC LIMIT ? ",
            "SELECT `s`.`id` FROM `statuses` `s` WHERE `s`.`likes` > ? AND `s`.`created_at` > NOW() - INTERVAL 1 DAY ORDER BY `s`.`created_at` DESC, `s`.`id` DESC LIMIT ?",
        ),
        // MySQL.
        (
            "SELECT `id` FROM `statuses` WHERE `profile_id` IN (...) AND ( `created_at` , `id` ) < (...) ORDER BY `created_at` DESC , `id` DESC LIMIT ?",
            "SELECT `id` FROM `statuses` WHERE `profile_id` IN (?, ?) AND (`created_at`, `id`) < (?, ?) ORDER BY `created_at` DESC, `id` DESC LIMIT ?",
        ),
        (
            "SELECT `id` FROM `statuses` WHERE `likes` BETWEEN ? AND ? AND COALESCE ( `deleted_at` , `created_at` ) > ? ORDER BY `id` DESC LIMIT ?",
            "SELECT `id` FROM `statuses` WHERE `likes` BETWEEN ? AND ? AND COALESCE(`deleted_at`, `created_at`) > ? ORDER BY `id` DESC LIMIT ?",
        ),
        (
            "SELECT DISTINCTROW `s` . `id` FROM `statuses` `s` LEFT JOIN `followers` `f` ON `f` . `following_id` = `s` . `profile_id` AND `f` . `profile_id` = ? WHERE `f` . `profile_id` IS NOT NULL OR `s` . `profile_id` = ? ORDER BY `s` . `id` DESC LIMIT ? ",
            "SELECT DISTINCTROW `s`.`id` FROM `statuses` `s` LEFT JOIN `followers` `f` ON `f`.`following_id` = `s`.`profile_id` AND `f`.`profile_id` = ? WHERE `f`.`profile_id` IS NOT NULL OR `s`.`profile_id` = ? ORDER BY `s`.`id` DESC LIMIT ?",
        ),
        (
            "SELECT ID AS `status_id` , ? AS `t` , TRUE AS `b` FROM `statuses` WHERE `profile_id` = ? AND `kind` NOT IN (?) ORDER BY ID DESC LIMIT ? ",
            "SELECT ID AS `status_id`, ? AS `t`, TRUE AS `b` FROM `statuses` WHERE `profile_id` = ? AND `kind` NOT IN (?) ORDER BY ID DESC LIMIT ?",
        ),
        // A prepared statement that MySQL executed.
        (
            "EXECUTE SELECT `id` FROM `statuses` WHERE `profile_id` IN (...) ORDER BY `id` DESC LIMIT ?",
            "SELECT `id` FROM `statuses` WHERE `profile_id` IN (?, ?) ORDER BY `id` DESC LIMIT ?",
        ),
        (
            "SELECT `s` . * FROM `statuses` `s` WHERE ( `s` . `profile_id` IN ( SELECT `following_id` FROM `followers` WHERE `profile_id` = ? ) OR `s` . `profile_id` = ? ) AND `s` . `caption` LIKE ? ORDER BY `s` . `id` DESC LIMIT ? ",
            "SELECT `s`.* FROM `statuses` `s` WHERE (`s`.`profile_id` IN (SELECT `following_id` FROM `followers` WHERE `profile_id` = ?) OR `s`.`profile_id` = ?) AND `s`.`caption` LIKE ? ORDER BY `s`.`id` DESC LIMIT ?",
        ),
    ];

    fn of(digest: &str) -> Option<String> {
        let tables = ["statuses", "profiles", "order"].map(str::to_owned);
        statement(digest, &tables)
    }

    #[test]
    fn a_digest_becomes_the_statement_that_it_stands_for() {
        for (digest, expected) in READ {
            let text = of(digest).unwrap();
            assert_eq!(text, expected);
            let words = StatementWords::read(text.as_bytes()).unwrap();
            assert!(parse(text.as_bytes(), &words).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_literal_stays_what_it_is() {
        for (digest, part) in [
            (
                "SELECT ID FROM `m` WHERE `likes` + ? > ? LIMIT ?",
                "`likes` + ? > ?",
            ),
            (
                "SELECT ID FROM `m` WHERE `likes` - ? > ? LIMIT ?",
                "`likes` - ? > ?",
            ),
            (
                "SELECT ID FROM `m` WHERE `likes` <=> ? LIMIT ?",
                "`likes` <=> ?",
            ),
            (
                "SELECT ID FROM `m` FORCE INDEX ( `a` ) LIMIT ?",
                "FORCE INDEX (`a`)",
            ),
            ("SELECT COUNT ( * ) FROM `m`", "COUNT (*) FROM `m`"),
        ] {
            let text = of(digest).unwrap();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn other_statements_are_ignored() {
        for digest in [
            "UPDATE `m` SET `a` = ?",
            "PREPARE SELECT `id` FROM `m`",
            "EXECUTE `p` USING @?",
            "",
            "SELECT 'a\\'",
        ] {
            assert_eq!(of(digest), None, "{digest}");
        }
    }
}
