//! Several statements in one command, of which one is a feed's SELECT: the first is taken by itself, and then the rest.

use super::classify::{may_be_feed, names_feed};
use super::effects::{Effects, Locks};
use headwater_sql::holds;
use headwater_sql::lexer::{Kind, Lexer};
use headwater_timeline::Definition;

/// Such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What the first statement is.
    pub first: First,
    /// Where it ends in the text, in front of its semicolon.
    pub end: usize,
    /// Where the others begin, behind the semicolon.
    pub rest: usize,
    /// What all of them may do.
    pub effects: Effects,
}

/// What a first statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// A SELECT that may be a feed's.
    Feed,
    /// It certainly only reads, or sets user variables: it may run twice.
    Reads,
    /// Anything else.
    Acts,
}

impl Batch {
    /// Reads such a text. `None`: another one, or one whose rest would be answered in another way as a command of its own (see
    /// [`Several`](super::Several)).
    pub fn parse(
        text: &[u8],
        messages: &[Box<[u8]>],
        definitions: &[Definition],
        no_functions: bool,
    ) -> Option<Self> {
        if !names_feed(text, messages, false) || holds(text, "INFILE") {
            return None;
        }
        let statements = split(text)?;
        let [first, others @ ..] = &*statements else {
            return None;
        };
        let is_feed = |statement: &&[u8]| may_be_feed(statement, messages, false);
        if others.is_empty() || !statements.iter().any(is_feed) || !is_common(first) {
            return None;
        }
        let of = |statement: &[u8]| Effects::of(statement, definitions, no_functions);
        let first_is = match of(first) {
            _ if is_feed(first) => First::Feed,
            effects if effects.spares => First::Reads,
            _ => First::Acts,
        };
        let effects: Vec<Effects> = statements.iter().map(|it| of(it)).collect();
        Some(Self {
            first: first_is,
            end: first.len(),
            rest: first.len() + 1,
            effects: all_read(&effects).unwrap_or_else(|| of(text)),
        })
    }
}

/// The statements of a text, each of which begins with a word, and all of which are read alike by every server and setting.
fn split(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut lexer = Lexer::new(text);
    let (mut statements, mut begin) = (Vec::new(), 0);
    let mut at_start = true;
    while let Some(token) = lexer.next() {
        if token.kind == Kind::Opaque || at_start && token.kind != Kind::Word {
            return None;
        }
        at_start = token.is_punct(b';');
        if at_start {
            let behind = text.len() - lexer.rest().len();
            statements.push(text.get(begin..behind - 1)?);
            begin = behind;
        }
    }
    let last = text.get(begin..)?;
    if !at_start {
        statements.push(last);
    }
    // A comment behind the last semicolon is a statement of its own, an empty one.
    let ended = !at_start || Lexer::new(last).is_at_end();
    ended.then_some(statements)
}

/// What statements may do that certainly do nothing but read.
fn all_read(effects: &[Effects]) -> Option<Effects> {
    let reads = |it: &Effects| it.only_reads() && it.locks == Locks::Kept;
    effects.iter().all(reads).then(|| Effects {
        trusts: effects.iter().any(|it| it.trusts),
        diagnostics: effects.iter().any(|it| it.diagnostics),
        result_table: effects.iter().any(|it| it.result_table),
        ..Effects::NONE
    })
}

/// A semicolon ends it wherever one stands: it is no body of a procedure.
fn is_common(statement: &[u8]) -> bool {
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

    fn parse(text: &str) -> Option<Batch> {
        let messages: [Box<[u8]>; 1] = [b"statuses"[..].into()];
        Batch::parse(text.as_bytes(), &messages, &[Definition::classic()], true)
    }

    #[test]
    fn the_first_statement_is_taken_by_itself() {
        for (first, what) in [
            (FEED, First::Feed),
            ("SELECT ';' AS x FROM t -- ;\n", First::Reads),
            ("SET @a = 1", First::Reads),
            ("SELECT FOUND_ROWS()", First::Acts),
            ("SELECT f(1)", First::Acts),
            ("SELECT 1 INTO @a", First::Acts),
            ("BEGIN", First::Acts),
            ("UPDATE t SET a = 1", First::Acts),
        ] {
            let text = format!("{first}; {FEED}; SELECT 1;");
            let batch = parse(&text).unwrap();
            assert_eq!((batch.first, batch.end), (what, first.len()), "{text}");
            assert_eq!(batch.rest, first.len() + 1);
        }
    }

    #[test]
    fn what_only_reads_does_nothing_else_together() {
        let batch = parse(&format!("{FEED}; SELECT COUNT(*) FROM statuses")).unwrap();
        let reads = Effects {
            trusts: true,
            ..Effects::NONE
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
