//! A statement's words without its literals: what it has in common with all others of its template.
//!
//! # What a key holds
//!
//! Two texts have one key only if no server can distinguish them by anything but the values of literals that are read in each statement. So
//! a key holds every byte of a text, except where an omission provably cannot be observed:
//!
//! - **In a list of columns** (from SELECT to its FROM) nothing is left out. Servers name a column by its text, including white space,
//!   comments and literals, and describe it by the length and the digits of its literals.
//! - **Elsewhere, between two words**, the kind of white space and comments is left out: servers' lexers skip both, and read the next word
//!   as after a single space. Their presence is kept: `< =` and `1 .5` are errors, `NOW ()` is a function or not by `sql_mode`, and after
//!   `t. ` a reserved word is none of `t`'s columns. (Comments that are executed, and hints, are not read at all.)
//!   Within an EXISTS that is the only column and has an alias, no column's name is made of the words.
//! - **Literals elsewhere** leave their kind, and [`StatementWord::is_verbatim`] is false for them. Their values belong to each statement's
//!   request ([`crate::binding`]) or to its rows' cache key ([`crate::row_dependencies`]), by position. Where the grammar reads or ignores
//!   a value, it stays: after INTERVAL, in `NOW(3)`, and after a LIMIT in parentheses. A word whose value the grammar reads has to be one
//!   that stays.
//! - **A list of literals** of one kind, after IN, leaves its kind, whatever its length and white space: a comma between two literals means
//!   the same however it is written.
//! - **Before the first word and after the last one** white space, comments and a semicolon are left out: servers strip them before they
//!   read.
//!
//! The case of words and names, quotes and parentheses are kept as written. So a statement that is written in two ways has two templates,
//! and no reply depends on the other's text.

use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};

/// One word of a statement: its position and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementWord {
    /// Its kind.
    pub kind: WordKind,
    /// Its first byte.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
    /// The number of parameters before it.
    pub parameters_before: usize,
    /// The key holds it as written, so all statements of the template have it. Never true for a parameter.
    pub is_verbatim: bool,
}

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A keyword or a name.
    Name,
    /// A name in back quotes.
    Quoted,
    /// Decimal digits alone.
    Number,
    /// A string.
    Text,
    /// A parameter.
    Parameter,
    /// One byte of punctuation.
    Punct(u8),
    /// A list of literals in parentheses, of any length.
    List(ListKind),
}

impl WordKind {
    /// A literal, a parameter, or a list of these.
    #[must_use]
    pub fn is_literal(self) -> bool {
        match self {
            WordKind::Number | WordKind::Text | WordKind::Parameter | WordKind::List(_) => true,
            WordKind::Name | WordKind::Quoted | WordKind::Punct(_) => false,
        }
    }
}

/// The members of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Decimal digits alone.
    Numbers,
    /// Strings.
    Texts,
    /// Parameters.
    Parameters,
}

/// The words of one statement, and the key of its template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementWords {
    /// In order, without the semicolon at the end.
    pub words: Vec<StatementWord>,
    /// Equal for texts of one template only: see the module.
    pub key: Vec<u8>,
    /// The number of its parameters.
    pub parameters: usize,
    /// It has a text in double quotes, which `ANSI_QUOTES` makes a name.
    pub has_double_quotes: bool,
}

/// Most words of a template; a list of literals is one.
pub const MOST_WORDS: usize = 1_000;

/// Room for the key of a text with a long list of literals.
const KEY_BYTES: usize = 1_024;

/// Ends each word in a key. No word and no gap between words holds it.
const BREAK: u8 = 0;

/// Where a word stands within parentheses.
#[derive(Clone, Copy)]
struct SelectLevel {
    /// What a SELECT here shows is a column of the reply, or part of one.
    is_shown: bool,
    /// So is the word itself.
    is_column: bool,
    has_select: bool,
}

impl SelectLevel {
    const OUTERMOST: SelectLevel = SelectLevel {
        is_shown: true,
        is_column: false,
        has_select: false,
    };

    /// What a parenthesis opens.
    fn inner(self) -> SelectLevel {
        let is_shown = match self.has_select {
            true => self.is_column,
            false => self.is_shown,
        };
        SelectLevel {
            is_shown,
            is_column: is_shown,
            has_select: false,
        }
    }
}

impl StatementWord {
    /// Reads a token of a text that begins at `from`, after so many parameters. Counts it if it is a parameter.
    fn from_token(
        token: SqlToken<'_>,
        from: usize,
        parameters: &mut usize,
    ) -> Option<StatementWord> {
        let is = match token.kind {
            TokenKind::Word => WordKind::Name,
            TokenKind::QuotedName => WordKind::Quoted,
            TokenKind::Number => WordKind::Number,
            TokenKind::QuotedText => WordKind::Text,
            TokenKind::Punct(b'?') => WordKind::Parameter,
            TokenKind::Punct(byte) => WordKind::Punct(byte),
            TokenKind::Opaque => return None,
        };
        let start = from + token.at;
        let word = StatementWord {
            kind: is,
            start,
            end: start + token.text.len(),
            parameters_before: *parameters,
            is_verbatim: !is.is_literal(),
        };
        *parameters += usize::from(is == WordKind::Parameter);
        Some(word)
    }
}

impl StatementWords {
    /// The words of a text. `None`: it has several statements, too many words, or a byte whose meaning depends on the session's
    /// `NO_BACKSLASH_ESCAPES` or character set.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<StatementWords> {
        let mut lexer = Lexer::new(text);
        let mut read = StatementWords {
            words: Vec::with_capacity(64),
            key: Vec::with_capacity(text.len().min(KEY_BYTES) + 64),
            parameters: 0,
            has_double_quotes: false,
        };
        let mut context = WordContext {
            names_exists: is_named_exists(text),
            ..WordContext::default()
        };
        // Where a list may have begun: a parenthesis after IN.
        let mut list: Option<OpenList> = None;
        while let Some(token) = lexer.next() {
            if token.is_punct(b';') {
                lexer.is_at_end().then_some(())?;
                break;
            }
            let is_double = token.kind == TokenKind::QuotedText && token.text.starts_with(b"\"");
            read.has_double_quotes |= is_double;
            let word = StatementWord::from_token(token, 0, &mut read.parameters)?;
            let opened = list.take();
            match opened.and_then(|opened| opened.append(word)) {
                Some(ListProgress::Unfinished(opened)) => {
                    list = Some(opened);
                    continue;
                }
                Some(ListProgress::Closed(whole)) => {
                    read.push(whole, &mut context, text)?;
                    continue;
                }
                None => {}
            }
            if let Some(opened) = opened {
                // It was no list of literals after all.
                read.reread_words(opened, &mut context, text)?;
            }
            let begins = word.kind == WordKind::Punct(b'(')
                && context.may_begin_list()
                && read.ends_with_in(text);
            match begins {
                true => list = Some(OpenList::at(word)),
                false => read.push(word, &mut context, text)?,
            }
        }
        // An unclosed list is no statement.
        list.is_none().then_some(read)
    }

    /// The words of a text that is prepared and executed. It has its own template: the server describes its reply differently than that of
    /// the same text as a query.
    #[must_use]
    pub fn executed(mut self) -> StatementWords {
        self.key.extend_from_slice(b"\x01E");
        self
    }

    /// The words of a text that is prepared and executed by name. Its reply is encoded as a query's, and described in a third way.
    #[must_use]
    pub fn executed_by_name(mut self) -> StatementWords {
        self.key.extend_from_slice(b"\x01D");
        self
    }

    /// True if a parameter is a column of the reply. MySQL describes it by the types of earlier executions.
    #[must_use]
    pub fn selects_parameters(&self, text: &[u8]) -> bool {
        let mut levels = vec![SelectLevel::OUTERMOST];
        for (at, word) in self.words.iter().enumerate() {
            let Some(level) = levels.last().copied() else {
                return true;
            };
            let is = |name: &[u8]| self.text(at, text).eq_ignore_ascii_case(name);
            match word.kind {
                WordKind::Punct(b'(') => levels.push(level.inner()),
                WordKind::Punct(b')') => {
                    levels.pop();
                }
                WordKind::Parameter | WordKind::List(ListKind::Parameters) if level.is_column => {
                    return true;
                }
                WordKind::Name if is(b"SELECT") => {
                    levels.pop();
                    levels.push(SelectLevel {
                        is_column: level.is_shown,
                        has_select: true,
                        ..level
                    });
                }
                // Within a function's parentheses, FROM belongs to the function.
                WordKind::Name if level.has_select && is(b"FROM") => {
                    levels.pop();
                    levels.push(SelectLevel {
                        is_column: false,
                        ..level
                    });
                }
                _ => {}
            }
        }
        false
    }

    /// The bytes of a word.
    #[must_use]
    pub fn text<'a>(&self, at: usize, text: &'a [u8]) -> &'a [u8] {
        let word = self.words.get(at);
        word.and_then(|word| text.get(word.start..word.end))
            .unwrap_or_default()
    }

    /// The literals of a list, or the one that a word is.
    pub fn literals<'a>(
        &self,
        at: usize,
        text: &'a [u8],
    ) -> impl Iterator<Item = SqlToken<'a>> + use<'a> {
        let is_literal = |token: &SqlToken<'_>| {
            matches!(token.kind, TokenKind::Number | TokenKind::QuotedText) || token.is_punct(b'?')
        };
        Lexer::new(self.text(at, text)).filter(is_literal)
    }

    fn ends_with_in(&self, text: &[u8]) -> bool {
        let last = self.words.len().checked_sub(1);
        last.is_some_and(|last| self.text(last, text).eq_ignore_ascii_case(b"IN"))
    }

    fn push(&mut self, word: StatementWord, context: &mut WordContext, text: &[u8]) -> Option<()> {
        if self.words.len() == MOST_WORDS {
            return None;
        }
        let bytes = text.get(word.start..word.end)?;
        let all_stays = context.advance(word.kind, bytes);
        // No text holds the value of a parameter.
        let stays = word.is_verbatim || all_stays && word.kind != WordKind::Parameter;
        let before = self.words.last().map_or(word.start, |last| last.end);
        match text.get(before..word.start)? {
            [] => {}
            between if all_stays => self.key.extend_from_slice(between),
            _ => self.key.push(b' '),
        }
        self.key.extend_from_slice(match word.kind {
            _ if stays => bytes,
            WordKind::Number => b"\x01n",
            WordKind::Text => b"\x01t",
            WordKind::List(ListKind::Numbers) => b"\x01N",
            WordKind::List(ListKind::Texts) => b"\x01T",
            WordKind::List(ListKind::Parameters) => b"\x01P",
            WordKind::Parameter | WordKind::Name | WordKind::Quoted | WordKind::Punct(_) => bytes,
        });
        self.key.push(BREAK);
        self.words.push(StatementWord {
            is_verbatim: stays,
            ..word
        });
        Some(())
    }

    /// Reads again, word by word, what looked like the beginning of a list of literals.
    fn reread_words(
        &mut self,
        opened: OpenList,
        context: &mut WordContext,
        text: &[u8],
    ) -> Option<()> {
        let part = text.get(opened.start..opened.end)?;
        let mut parameters = opened.parameters;
        for token in Lexer::new(part) {
            let word = StatementWord::from_token(token, opened.start, &mut parameters)?;
            self.push(word, context, text)?;
        }
        Some(())
    }
}

/// The position of a word, as far as it decides whether the word stays.
#[derive(Default)]
struct WordContext {
    depth: usize,
    /// All words stay from here to the FROM or the end of these parentheses.
    select_list_depth: Option<usize>,
    /// The only column is an EXISTS with an alias, so that no name of a column is made of its words.
    names_exists: bool,
    /// All words stay to the end of these parentheses.
    limit_depth: Option<usize>,
    preceding: PrecedingWord,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum PrecedingWord {
    #[default]
    Other,
    /// After it, any word is a name.
    Point,
    /// INTERVAL.
    Interval,
    /// NOW or CURRENT_TIMESTAMP.
    Now,
    /// The parenthesis after that.
    NowParenthesis,
}

/// True for `SELECT EXISTS (...) AS name`.
fn is_named_exists(text: &[u8]) -> bool {
    let mut tokens = Lexer::new(text);
    let mut begins = |word: &str| tokens.next().is_some_and(|token| token.is_word(word));
    if !(begins("SELECT") && begins("EXISTS")) {
        return false;
    }
    let mut depth = 0_usize;
    for token in tokens.by_ref() {
        match token.kind {
            TokenKind::Punct(b'(') => depth += 1,
            TokenKind::Punct(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    let rest: Vec<SqlToken<'_>> = tokens.filter(|token| !token.is_punct(b';')).collect();
    match rest.as_slice() {
        [word, _] => word.is_word("AS"),
        [name] => !name.is_word("AS"),
        _ => false,
    }
}

impl WordContext {
    /// A list of literals may begin.
    fn may_begin_list(&self) -> bool {
        self.select_list_depth.is_none() && self.limit_depth.is_none()
    }

    /// Moves past a word. True if it stays whatever it is, with all that precedes it.
    fn advance(&mut self, is: WordKind, bytes: &[u8]) -> bool {
        let within = !self.may_begin_list();
        let last = std::mem::take(&mut self.preceding);
        match is {
            WordKind::Punct(b'(') => {
                self.depth += 1;
                if last == PrecedingWord::Now {
                    self.preceding = PrecedingWord::NowParenthesis;
                }
            }
            WordKind::Punct(b')') => {
                self.depth = self.depth.saturating_sub(1);
                self.select_list_depth =
                    self.select_list_depth.filter(|depth| *depth <= self.depth);
                self.limit_depth = self.limit_depth.filter(|depth| *depth <= self.depth);
            }
            WordKind::Punct(b'.') => self.preceding = PrecedingWord::Point,
            WordKind::Name if last != PrecedingWord::Point => self.keyword(bytes),
            WordKind::Number => {
                return within
                    || matches!(
                        last,
                        PrecedingWord::Interval | PrecedingWord::NowParenthesis
                    );
            }
            _ => {}
        }
        within
    }

    fn keyword(&mut self, word: &[u8]) {
        let is = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
        if is(b"SELECT") {
            self.select_list_depth = self.select_list_depth.or(Some(self.depth));
        } else if is(b"EXISTS") && self.depth == 0 && self.names_exists {
            self.select_list_depth = None;
        } else if is(b"FROM") {
            self.select_list_depth = self.select_list_depth.filter(|depth| *depth != self.depth);
        } else if is(b"LIMIT") && self.depth > 0 {
            self.limit_depth = self.limit_depth.or(Some(self.depth));
        } else if is(b"INTERVAL") {
            self.preceding = PrecedingWord::Interval;
        } else if is(b"NOW") || is(b"CURRENT_TIMESTAMP") {
            self.preceding = PrecedingWord::Now;
        }
    }
}

/// A list of literals that has begun.
#[derive(Clone, Copy)]
struct OpenList {
    members: Option<ListKind>,
    /// A member is last, so a comma or the end may follow.
    ends_with_member: bool,
    start: usize,
    end: usize,
    parameters: usize,
}

enum ListProgress {
    Unfinished(OpenList),
    Closed(StatementWord),
}

impl OpenList {
    fn at(parenthesis: StatementWord) -> OpenList {
        OpenList {
            members: None,
            ends_with_member: false,
            start: parenthesis.start,
            end: parenthesis.end,
            parameters: parenthesis.parameters_before,
        }
    }

    /// Appends one more word; `None`: that is no list of literals of one kind.
    fn append(mut self, word: StatementWord) -> Option<ListProgress> {
        let member = match word.kind {
            WordKind::Number => ListKind::Numbers,
            WordKind::Text => ListKind::Texts,
            WordKind::Parameter => ListKind::Parameters,
            WordKind::Punct(b',') if self.ends_with_member => {
                self.ends_with_member = false;
                self.end = word.end;
                return Some(ListProgress::Unfinished(self));
            }
            WordKind::Punct(b')') if self.ends_with_member => {
                return Some(ListProgress::Closed(StatementWord {
                    kind: WordKind::List(self.members?),
                    start: self.start,
                    end: word.end,
                    parameters_before: self.parameters,
                    is_verbatim: false,
                }));
            }
            _ => return None,
        };
        // Two adjacent strings are one; two other literals are an error.
        if self.ends_with_member || self.members.is_some_and(|members| members != member) {
            return None;
        }
        self.members = Some(member);
        self.ends_with_member = true;
        self.end = word.end;
        Some(ListProgress::Unfinished(self))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn key(text: &str) -> String {
        let words = StatementWords::read(text.as_bytes()).unwrap();
        String::from_utf8(words.key)
            .unwrap()
            .replace('\0', "|")
            .replace('\u{1}', "$")
    }

    #[test]
    fn literals_leave_their_kind_only() {
        assert_eq!(
            key("SELECT a FROM t WHERE b=5 AND c = 'x' AND d = ? LIMIT 20;"),
            "SELECT| a| FROM| t| WHERE| b|=|$n| AND| c| =| $t| AND| d| =| ?| LIMIT| $n|"
        );
    }

    #[test]
    fn a_list_of_literals_is_one_word_however_long() {
        assert_eq!(key("a IN (1,2,3)"), "a| IN| $N|");
        assert_eq!(key("a in( 1 )"), "a| in|$N|");
        assert_eq!(key("a IN ('x', 'y')"), "a| IN| $T|");
        assert_eq!(key("a IN (?,?)"), "a| IN| $P|");
    }

    #[test]
    fn what_is_no_list_of_one_kind_stays_as_it_stands() {
        assert_eq!(key("a IN (1,'2')"), "a| IN| (|$n|,|$t|)|");
        assert_eq!(key("a IN (1,-2)"), "a| IN| (|$n|,|-|$n|)|");
        assert_eq!(key("a IN (1 2)"), "a| IN| (|$n| $n|)|");
        assert_eq!(key("a IN (t.b)"), "a| IN| (|t|.|b|)|");
        assert_eq!(key("a IN ()"), "a| IN| (|)|");
        assert_eq!(key("f(1,2)"), "f|(|$n|,|$n|)|");
    }

    /// A server or the grammar may distinguish these pairs; the second of each is the more usual.
    #[test]
    fn what_may_be_seen_is_in_the_key() {
        for (one, other) in [
            // Names of columns.
            (
                "SELECT IFNULL(a,'b') FROM t",
                "SELECT IFNULL(a, 'b') FROM t",
            ),
            ("SELECT -5 FROM t", "SELECT - 5 FROM t"),
            ("SELECT -5 FROM t", "SELECT -/**/5 FROM t"),
            ("SELECT a , b FROM t", "SELECT a, b FROM t"),
            ("SELECT 5 FROM t", "SELECT 6 FROM t"),
            ("SELECT 'a' FROM t", "SELECT 'b' FROM t"),
            ("SELECT a\nFROM t", "SELECT a FROM t"),
            ("SELECT t.from, -5 FROM t", "SELECT t.from, - 5 FROM t"),
            ("SELECT f(a FROM 1) FROM t", "SELECT f(a FROM  1) FROM t"),
            (
                "SELECT b FROM (SELECT -5 AS b FROM t) d",
                "SELECT b FROM (SELECT - 5 AS b FROM t) d",
            ),
            // Words that change where something stands between them.
            ("FROM t WHERE a <= 5", "FROM t WHERE a < = 5"),
            ("FROM t WHERE a <= 5", "FROM t WHERE a </**/= 5"),
            ("FROM t WHERE a <> 5", "FROM t WHERE a < > 5"),
            ("FROM t WHERE a != 5", "FROM t WHERE a ! = 5"),
            ("FROM t WHERE a > 1.5", "FROM t WHERE a > 1 .5"),
            ("FROM t WHERE a > NOW()", "FROM t WHERE a > NOW ()"),
            ("FROM t WHERE t.order = 5", "FROM t WHERE t. order = 5"),
            ("FROM t WHERE a ='x'AND b", "FROM t WHERE a ='x' AND b"),
            // Values that the grammar reads.
            (
                "FROM t WHERE EXISTS (SELECT 1 FROM b LIMIT 1)",
                "FROM t WHERE EXISTS (SELECT 1 FROM b LIMIT 0)",
            ),
            (
                "FROM t WHERE EXISTS (SELECT 1 FROM b LIMIT 1,2)",
                "FROM t WHERE EXISTS (SELECT 1 FROM b LIMIT 1,3)",
            ),
            ("FROM t WHERE a > NOW(3)", "FROM t WHERE a > NOW(4)"),
            (
                "FROM t WHERE a > CURRENT_TIMESTAMP (3)",
                "FROM t WHERE a > CURRENT_TIMESTAMP (9)",
            ),
            (
                "FROM t WHERE a > NOW() - INTERVAL 7 DAY",
                "FROM t WHERE a > NOW() - INTERVAL 99999 DAY",
            ),
            // How words and names are written.
            ("select a FROM t", "SELECT a FROM t"),
            ("SELECT a FROM t WHERE A = 5", "SELECT a FROM t WHERE a = 5"),
            (
                "SELECT a FROM t WHERE `a` = 5",
                "SELECT a FROM t WHERE a = 5",
            ),
            (
                "SELECT a FROM t WHERE (a = 5)",
                "SELECT a FROM t WHERE a = 5",
            ),
            (
                "SELECT a FROM t LIMIT 5, 6",
                "SELECT a FROM t LIMIT 6 OFFSET 5",
            ),
            (
                "SELECT a FROM t WHERE a = '5'",
                "SELECT a FROM t WHERE a = 5",
            ),
            (
                "SELECT a FROM t WHERE a = -5",
                "SELECT a FROM t WHERE a = 5",
            ),
            (
                "SELECT a FROM t WHERE a = 5.0",
                "SELECT a FROM t WHERE a = 5",
            ),
        ] {
            assert_ne!(key(one), key(other), "{one}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_not_in_the_key() {
        let one = "SELECT a, -5 FROM t WHERE a > 5 AND b IN (1,2) AND EXISTS (SELECT 1 FROM b LIMIT 1) LIMIT 5";
        for other in [
            " SELECT a, -5 FROM t WHERE a > 5 AND b IN (1,2) AND EXISTS (SELECT 1 FROM b LIMIT 1) LIMIT 5 ; ",
            "/* 1 */ SELECT a, -5 FROM t WHERE a > 5 AND b IN (1,2) AND EXISTS (SELECT 1 FROM b LIMIT 1) LIMIT 5 -- 2",
            "SELECT a, -5 FROM /* 1 */ t WHERE\n\ta  > 5 AND b IN ( 1 , /* 2 */ 2 ) AND EXISTS (SELECT 1 FROM b LIMIT 1) # 3\n LIMIT/**/5",
            "SELECT a, -5 FROM t WHERE a > 00006 AND b IN (7) AND EXISTS (SELECT 1 FROM b LIMIT 1) LIMIT 50",
        ] {
            assert_eq!(key(one), key(other), "{other}");
        }
    }

    #[test]
    fn words_say_which_of_them_stay() {
        let stay = |text: &str| {
            let words = StatementWords::read(text.as_bytes()).unwrap();
            let each = words.words.iter().enumerate();
            let stay = each.filter(|(_, word)| word.kind.is_literal() && word.is_verbatim);
            stay.map(|(at, _)| {
                String::from_utf8_lossy(words.text(at, text.as_bytes())).into_owned()
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(
            stay(
                "SELECT 1, 'a', IFNULL(b, 2), c IN (3, 4) FROM t JOIN u ON u.a = 5 WHERE b > NOW(6) - INTERVAL 7 DAY AND EXISTS (SELECT 8 FROM t \
                 WHERE b = 9 LIMIT 10) AND b IN (11, 12) AND t.interval = 13 AND c < ? LIMIT 14 OFFSET 15"
            ),
            ["1", "'a'", "2", "3", "4", "6", "7", "8", "10"]
        );
        let exists = "EXISTS (SELECT 1 FROM t WHERE a = 2 AND b IN (3, 4) LIMIT 5)";
        for alias in ["AS `a`", "a", "as 'a';"] {
            assert_eq!(
                stay(&format!("SELECT {exists} {alias}")),
                ["1", "5"],
                "{alias}"
            );
        }
        for rest in ["", ", 6", "AS a, 6", "AS a FROM t", "+ 6"] {
            assert_eq!(
                stay(&format!("SELECT {exists} {rest}")).get(1).unwrap(),
                "2",
                "{rest}"
            );
        }
        assert!(stay("SELECT a, ? FROM t").is_empty());
    }

    #[test]
    fn parameters_are_counted_within_lists_and_behind_them() {
        let text = b"a = ? AND b IN (?, ?, ?) AND c IN (?, 1) AND d = ?";
        let words = StatementWords::read(text).unwrap();
        assert_eq!(words.parameters, 6);
        let of: Vec<_> = words
            .words
            .iter()
            .filter(|word| matches!(word.kind, WordKind::Parameter | WordKind::List(_)))
            .map(|word| word.parameters_before)
            .collect();
        assert_eq!(of, [0, 1, 4, 5]);
    }

    #[test]
    fn words_stand_where_they_stood() {
        let text = b"SELECT a -- so\n FROM `t` WHERE b IN ( 1, 2 ) ";
        let words = StatementWords::read(text).unwrap();
        let all: Vec<_> = (0..words.words.len())
            .map(|at| std::str::from_utf8(words.text(at, text)).unwrap())
            .collect();
        assert_eq!(
            all,
            ["SELECT", "a", "FROM", "`t`", "WHERE", "b", "IN", "( 1, 2 )"]
        );
    }

    #[test]
    fn what_is_not_certain_is_not_read() {
        for text in [
            "SELECT 'a\\'b'",
            "SELECT \"a\\\"\"",
            "SELECT 1; SELECT 2",
            "SELECT /*! 1 */",
            "a IN (1, 2",
            "SELECT \u{a0}1",
        ] {
            assert_eq!(StatementWords::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_text_in_double_quotes_is_a_string_and_said_so() {
        let of = |text: &str| StatementWords::read(text.as_bytes()).unwrap();
        let (single, double) = (
            of("SELECT a FROM t WHERE b = 'c'"),
            of("SELECT a FROM t WHERE b = \"c\""),
        );
        assert_eq!((&single.words, &single.key), (&double.words, &double.key));
        assert!(double.has_double_quotes && !single.has_double_quotes);
        assert!(of("SELECT a FROM t WHERE b IN ('c', \"d\")").has_double_quotes);
    }

    #[test]
    fn a_text_that_is_executed_has_a_template_of_its_own() {
        let words = StatementWords::read(b"SELECT a LIMIT 1").unwrap();
        assert_ne!(words.clone().executed().key, words.key);
        assert_eq!(words.clone().executed().words, words.words);
        assert_ne!(words.clone().executed_by_name().key, words.key);
        assert_ne!(words.clone().executed_by_name().key, words.executed().key);
    }

    #[test]
    fn parameters_among_the_columns_are_seen() {
        for (text, shown) in [
            (
                "SELECT a, `from` FROM b WHERE c = ? AND d IN (?, ?) LIMIT ?",
                false,
            ),
            ("SELECT a, ? FROM b WHERE c = ?", true),
            ("SELECT COALESCE(a, ?) AS a from b", true),
            ("SELECT a IN (?, ?) FROM b", true),
            ("SELECT a, (SELECT COUNT(*) FROM c) AS n, ? FROM b", true),
            ("(SELECT a FROM b) UNION (SELECT ? FROM c)", true),
            (
                "SELECT a, (SELECT COUNT(*) FROM c) AS n FROM b WHERE a = ?",
                false,
            ),
            // What a parameter is compared with describes no column.
            (
                "SELECT a, (SELECT COUNT(*) FROM c WHERE d = ?), EXISTS (SELECT 1 FROM c WHERE c.e IN (?, ?)) FROM b WHERE a = ?",
                false,
            ),
            ("SELECT a, (SELECT MAX(?) FROM c) FROM b", true),
            ("SELECT a, EXTRACT(DAY FROM ?) FROM b", true),
            (
                "(SELECT a FROM b WHERE c = ?) UNION (SELECT a FROM c WHERE (d = ? OR e)) ORDER BY a LIMIT ?",
                false,
            ),
            (
                "SELECT a FROM b WHERE c = ? UNION SELECT COALESCE(?, a) FROM c",
                true,
            ),
            (
                "WITH d AS (SELECT a FROM c WHERE e = ?) SELECT a FROM b WHERE a IN (SELECT a FROM d) LIMIT ?",
                false,
            ),
            ("WITH d AS (SELECT ? FROM c) SELECT a FROM d", true),
            ("SELECT a FROM b WHERE a IN (SELECT ? FROM c)", false),
        ] {
            let words = StatementWords::read(text.as_bytes()).unwrap();
            assert_eq!(words.selects_parameters(text.as_bytes()), shown, "{text}");
        }
    }

    #[test]
    fn templates_do_not_run_together() {
        assert_ne!(key("SELECT ab"), key("SELECT a b"));
        assert_ne!(key("SELECT `a`"), key("SELECT a"));
        assert_ne!(key("a IN (1)"), key("a IN (?)"));
    }
}
