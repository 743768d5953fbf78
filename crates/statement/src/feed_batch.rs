//! Several statements in one command, one of them a feed's SELECT. The first is handled alone, then the remainder.

use super::effects::{StatementEffects, TableLockEffect};
use super::statement_class::{has_feed_words, may_be_feed};
use headwater_sql::contains_ignoring_case;
use headwater_sql::lexer::{Lexer, TokenKind};
use headwater_timeline::TimelineDefinition;

/// A text of several statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedBatch {
    /// The kind of the first statement.
    pub first: FirstStatement,
    /// Where it ends in the text, before its semicolon.
    pub first_end: usize,
    /// Where the others begin, after the semicolon.
    pub remainder_start: usize,
    /// The effects of all of them.
    pub effects: StatementEffects,
}

/// The kind of a first statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstStatement {
    /// A SELECT that may be a feed's.
    Feed,
    /// It surely only reads, or sets user variables: it may run twice.
    ReadOnly,
    /// Anything else.
    Other,
}

impl FeedBatch {
    /// Parses such a text. `None`: another text, or one whose remainder would get another reply as a command of its own (see
    /// [`CallBatch`](super::CallBatch)).
    pub fn parse(
        text: &[u8],
        messages: &[Box<[u8]>],
        definitions: &[TimelineDefinition],
        no_functions: bool,
    ) -> Option<Self> {
        if !has_feed_words(text, messages, false) || contains_ignoring_case(text, "INFILE") {
            return None;
        }
        let statements = split_statements(text)?;
        let [first, others @ ..] = &*statements else {
            return None;
        };
        let is_feed = |statement: &&[u8]| may_be_feed(statement, messages, false);
        if others.is_empty() || !statements.iter().any(is_feed) || !has_common_verb(first) {
            return None;
        }
        let effects_of =
            |statement: &[u8]| StatementEffects::of(statement, definitions, no_functions);
        let first_kind = match effects_of(first) {
            _ if is_feed(first) => FirstStatement::Feed,
            effects if effects.is_pure_read => FirstStatement::ReadOnly,
            _ => FirstStatement::Other,
        };
        let effects: Vec<StatementEffects> = statements.iter().map(|it| effects_of(it)).collect();
        Some(Self {
            first: first_kind,
            first_end: first.len(),
            remainder_start: first.len() + 1,
            effects: read_only_effects(&effects).unwrap_or_else(|| effects_of(text)),
        })
    }
}

/// The statements of a text, if each begins with a word and every server reads them alike under all settings.
fn split_statements(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut lexer = Lexer::new(text);
    let (mut statements, mut begin) = (Vec::new(), 0);
    let mut at_start = true;
    while let Some(token) = lexer.next() {
        if token.kind == TokenKind::Opaque || at_start && token.kind != TokenKind::Word {
            return None;
        }
        at_start = token.is_punct(b';');
        if at_start {
            let next_begin = text.len() - lexer.rest().len();
            statements.push(text.get(begin..next_begin - 1)?);
            begin = next_begin;
        }
    }
    let last = text.get(begin..)?;
    if !at_start {
        statements.push(last);
    }
    // A comment after the last semicolon is an empty statement of its own.
    let ended = !at_start || Lexer::new(last).is_at_end();
    ended.then_some(statements)
}

/// The effects of statements together, if all of them surely only read.
fn read_only_effects(effects: &[StatementEffects]) -> Option<StatementEffects> {
    let is_read_only =
        |it: &StatementEffects| it.only_reads() && it.locks == TableLockEffect::Unchanged;
    effects.iter().all(is_read_only).then(|| StatementEffects {
        assumes_no_functions: effects.iter().any(|it| it.assumes_no_functions),
        diagnostics: effects.iter().any(|it| it.diagnostics),
        result_table: effects.iter().any(|it| it.result_table),
        ..StatementEffects::NONE
    })
}

/// True if the first semicolon ends it: it is no body of a procedure.
fn has_common_verb(statement: &[u8]) -> bool {
    const FIRST: &[&str] = &[
        "SELECT", "SET", "INSERT", "UPDATE", "DELETE", "REPLACE", "DO", "USE", "START", "COMMIT",
        "ROLLBACK",
    ];
    let mut lexer = Lexer::new(statement);
    lexer.next().is_some_and(|verb| {
        let begins = verb.is_word("BEGIN") && lexer.next().is_none();
        begins || FIRST.iter().any(|word| verb.is_word(word))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const FEED: &str = "SELECT id FROM statuses WHERE profile_id = 7 ORDER BY id DESC LIMIT 5";

    fn parse(text: &str) -> Option<FeedBatch> {
        let messages: [Box<[u8]>; 1] = [b"statuses"[..].into()];
        FeedBatch::parse(
            text.as_bytes(),
            &messages,
            &[TimelineDefinition::classic()],
            true,
        )
    }

    #[test]
    fn the_first_statement_is_taken_by_itself() {
        for (first, what) in [
            (FEED, FirstStatement::Feed),
            ("SELECT ';' AS x FROM t -- ;\n", FirstStatement::ReadOnly),
            ("SET @a = 1", FirstStatement::ReadOnly),
            ("SELECT FOUND_ROWS()", FirstStatement::Other),
            ("SELECT f(1)", FirstStatement::Other),
            ("SELECT 1 INTO @a", FirstStatement::Other),
            ("BEGIN", FirstStatement::Other),
            ("UPDATE t SET a = 1", FirstStatement::Other),
        ] {
            let text = format!("{first}; {FEED}; SELECT 1;");
            let batch = parse(&text).unwrap();
            assert_eq!(
                (batch.first, batch.first_end),
                (what, first.len()),
                "{text}"
            );
            assert_eq!(batch.remainder_start, first.len() + 1);
        }
    }

    #[test]
    fn read_only_statements_have_read_only_effects() {
        let batch = parse(&format!("{FEED}; SELECT COUNT(*) FROM statuses")).unwrap();
        let reads = StatementEffects {
            assumes_no_functions: true,
            ..StatementEffects::NONE
        };
        assert_eq!(batch.effects, reads);
        let batch = parse(&format!("{FEED}; SELECT FOUND_ROWS()")).unwrap();
        assert!(batch.effects.diagnostics);
        let batch = parse(&format!("{FEED}; SET sql_mode = ''")).unwrap();
        assert!(batch.effects.settings);
        let batch = parse(&format!("{FEED}; LOCK TABLES statuses READ")).unwrap();
        assert!(batch.effects.stored_code);
    }

    #[test]
    fn one_statement_and_what_is_not_certainly_several_are_no_batch() {
        for text in [
            FEED.to_owned(),
            format!("{FEED};"),
            format!("{FEED}; -- nothing"),
            format!("{FEED};; SELECT 1"),
            format!("{FEED}; (SELECT 1)"),
            format!("{FEED}; SELECT '\\';'"),
            format!("{FEED}; LOAD DATA LOCAL INFILE 'x' INTO TABLE t"),
            format!("CREATE PROCEDURE p() BEGIN {FEED}; SELECT 1; END"),
            format!("BEGIN NOT ATOMIC {FEED}; SELECT 1; END"),
            "SELECT 1; SELECT statuses, 'ORDER LIMIT'; DO 1".replace("statuses", "other"),
        ] {
            assert_eq!(parse(&text), None, "{text}");
        }
    }
}
