//! A statement's words with its literals taken out: what it has in common with all others of its template.
//!
//! # What a key holds
//!
//! Two texts have one key only if no server can tell them apart in anything but the values of literals that are looked at in each statement. So a
//! key holds every byte of a text, except where what is left out provably cannot be seen:
//!
//! - **In a list of columns** (from SELECT to its FROM) nothing is left out: servers name a column by the text that it stands there with, white
//!   space, comments and literals included, and describe it by the length and the digits of its literals.
//! - **Elsewhere, between two words**, it is left out which white space and which comments stand there: servers' lexers skip both, and read the next word
//!   as behind a single space. That there is something is kept: `< =` and `1 .5` are errors, `NOW ()` is a function or not as `sql_mode` has it,
//!   and behind `t. ` a reserved word is none of `t`'s columns. (Comments that are executed, and hints, are not read at all.)
//! - **Literals elsewhere** leave their kind, and [`StatementWord::is_verbatim`] is false for them. Their values are part of what each statement asks for
//!   ([`crate::binding`]) or of what its rows are kept under ([`crate::row_dependencies`]), by the place where they stand. Where the grammar looks at a value, or
//!   leaves one out of account, it stays: behind INTERVAL, in `NOW(3)`, and behind a LIMIT in parentheses. A word of which the grammar reads the
//!   value has to be one that stays.
//! - **A list of literals** of one kind, behind IN, leaves its kind, whatever its length and the white space in it: a comma between two literals means the
//!   same however it is written.
//! - **In front of the first word, and behind the last one** white space, comments and a semicolon are left out: servers take them off
//!   before they read.
//!
//! The case of words and names, quotes and parentheses are kept as they stand. So whoever writes a statement in two ways has two templates, and
//! no reply follows the other's text.

use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};

/// One word of a statement: where it stands, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementWord {
    /// What it is.
    pub kind: WordKind,
    /// Where it starts, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Parameters in front of it.
    pub parameters_before: usize,
    /// It stands in the key as it is, so that all statements of the template have it. A parameter never does.
    pub is_verbatim: bool,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A keyword or a name.
    Name,
    /// A name in back quotes.
    Quoted,
    /// Decimal digits alone.
    Number,
    /// A string in single quotes.
    Text,
    /// The place of a parameter.
    Parameter,
    /// One byte of punctuation.
    Punct(u8),
    /// A list of literals in parentheses, of whatever length.
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

/// What a list holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Decimal digits alone.
    Numbers,
    /// Strings in single quotes.
    Texts,
    /// Parameters.
    Parameters,
}

/// The words of one statement, and the key of its template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementWords {
    /// In order, without the semicolon at the end.
    pub words: Vec<StatementWord>,
    /// Equal for texts of one template, and for no others: see the module.
    pub key: Vec<u8>,
    /// How many parameters it has.
    pub parameters: usize,
}

/// More words than this no template has; a list of literals is one.
pub const MOST_WORDS: usize = 1_000;

/// Room for a key of a text that has a long list of literals.
const KEY_BYTES: usize = 1_024;

/// In a key, behind each word. Neither a word nor what stands between two holds it.
const BREAK: u8 = 0;

impl StatementWord {
    /// A token of a text that begins at `from`, behind so many parameters, which it is counted among if it is one.
    fn from_token(
        token: SqlToken<'_>,
        from: usize,
        parameters: &mut usize,
    ) -> Option<StatementWord> {
        let is = match token.kind {
            TokenKind::Word => WordKind::Name,
            TokenKind::QuotedName => WordKind::Quoted,
            TokenKind::Number => WordKind::Number,
            // In double quotes it is a string or a name, as sql_mode has it.
            TokenKind::QuotedText if token.text.first() == Some(&b'\'') => WordKind::Text,
            TokenKind::Punct(b'?') => WordKind::Parameter,
            TokenKind::Punct(byte) => WordKind::Punct(byte),
            TokenKind::QuotedText | TokenKind::Opaque => return None,
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
    /// The words of a text. `None`: it has more than one statement, too many words, or a byte that is not certain whatever the
    /// session's `sql_mode` and character set.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<StatementWords> {
        let mut lexer = Lexer::new(text);
        let mut read = StatementWords {
            words: Vec::with_capacity(64),
            key: Vec::with_capacity(text.len().min(KEY_BYTES) + 64),
            parameters: 0,
        };
        let mut place = WordContext::default();
        // Where a list may have begun: a parenthesis behind IN.
        let mut list: Option<OpenList> = None;
        while let Some(token) = lexer.next() {
            if token.is_punct(b';') {
                lexer.is_at_end().then_some(())?;
                break;
            }
            let word = StatementWord::from_token(token, 0, &mut read.parameters)?;
            let opened = list.take();
            match opened.and_then(|opened| opened.append(word)) {
                Some(ListProgress::Unfinished(opened)) => {
                    list = Some(opened);
                    continue;
                }
                Some(ListProgress::Closed(whole)) => {
                    read.push(whole, &mut place, text)?;
                    continue;
                }
                None => {}
            }
            if let Some(opened) = opened {
                // It was no list of literals after all.
                read.reread_words(opened, &mut place, text)?;
            }
            let begins = word.kind == WordKind::Punct(b'(')
                && place.may_begin_list()
                && read.ends_with_in(text);
            match begins {
                true => list = Some(OpenList::at(word)),
                false => read.push(word, &mut place, text)?,
            }
        }
        // A list that does not end is no statement.
        list.is_none().then_some(read)
    }

    /// The same of a text that is prepared and executed. That is a template of its own: the server describes its answer in another
    /// way than it does for the same text as a query.
    #[must_use]
    pub fn executed(mut self) -> StatementWords {
        self.key.extend_from_slice(b"\x01E");
        self
    }

    /// The same of a text that is prepared and executed by a name: its answer is told as that of a query is, and described in a third
    /// way.
    #[must_use]
    pub fn executed_by_name(mut self) -> StatementWords {
        self.key.extend_from_slice(b"\x01D");
        self
    }

    /// True where a parameter is a column of the answer. MySQL describes that by the types that it had in earlier executions.
    #[must_use]
    pub fn selects_parameters(&self, text: &[u8]) -> bool {
        let mut all = self.words.iter().enumerate();
        // No column of a feed's statement is a SELECT of its own.
        let from = all.position(|(at, word)| {
            word.kind == WordKind::Name && self.text(at, text).eq_ignore_ascii_case(b"FROM")
        });
        let columns = self.words.get(..from.unwrap_or_default());
        columns.is_none_or(|columns| {
            let is_parameter = |word: &StatementWord| {
                matches!(
                    word.kind,
                    WordKind::Parameter | WordKind::List(ListKind::Parameters)
                )
            };
            columns.iter().any(is_parameter)
        })
    }

    /// The bytes of a word.
    #[must_use]
    pub fn text<'a>(&self, at: usize, text: &'a [u8]) -> &'a [u8] {
        let word = self.words.get(at);
        word.and_then(|word| text.get(word.start..word.end))
            .unwrap_or_default()
    }

    /// The literals that a list is written with, or the one that a word is.
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

    fn push(&mut self, word: StatementWord, place: &mut WordContext, text: &[u8]) -> Option<()> {
        if self.words.len() == MOST_WORDS {
            return None;
        }
        let bytes = text.get(word.start..word.end)?;
        let all_stays = place.advance(word.kind, bytes);
        // The value of a parameter stands in no text.
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

    /// Reads once more, word by word, what looked like the beginning of a list of literals.
    fn reread_words(
        &mut self,
        opened: OpenList,
        place: &mut WordContext,
        text: &[u8],
    ) -> Option<()> {
        let part = text.get(opened.start..opened.end)?;
        let mut parameters = opened.parameters;
        for token in Lexer::new(part) {
            let word = StatementWord::from_token(token, opened.start, &mut parameters)?;
            self.push(word, place, text)?;
        }
        Some(())
    }
}

/// Where a word stands, as far as that says whether it stays.
#[derive(Default)]
struct WordContext {
    /// Parentheses that are open.
    depth: usize,
    /// All stays from here on, to the FROM or the end of these parentheses.
    select_list_depth: Option<usize>,
    /// All stays to the end of these parentheses.
    limit_depth: Option<usize>,
    /// What came last.
    preceding: PrecedingWord,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum PrecedingWord {
    #[default]
    Other,
    /// Behind it stands a name, whatever word that is.
    Point,
    /// INTERVAL.
    Interval,
    /// NOW or CURRENT_TIMESTAMP.
    Now,
    /// The parenthesis behind that.
    NowParenthesis,
}

impl WordContext {
    /// A list of literals may begin.
    fn may_begin_list(&self) -> bool {
        self.select_list_depth.is_none() && self.limit_depth.is_none()
    }

    /// Goes on by a word; true where it stays whatever it is, and all in front of it.
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
    /// A member stands last, so a comma or the end may follow.
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

    /// With one more word; `None`: that is no list of literals of one kind.
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
        // Two literals side by side: strings are one then, and the rest is an error.
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

    /// Each of these may be told apart by a server, or by the grammar, and the other one of the two is what most write.
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
            // Words that are others where something stands between them.
            ("FROM t WHERE a <= 5", "FROM t WHERE a < = 5"),
            ("FROM t WHERE a <= 5", "FROM t WHERE a </**/= 5"),
            ("FROM t WHERE a <> 5", "FROM t WHERE a < > 5"),
            ("FROM t WHERE a != 5", "FROM t WHERE a ! = 5"),
            ("FROM t WHERE a > 1.5", "FROM t WHERE a > 1 .5"),
            ("FROM t WHERE a > NOW()", "FROM t WHERE a > NOW ()"),
            ("FROM t WHERE t.order = 5", "FROM t WHERE t. order = 5"),
            ("FROM t WHERE a ='x'AND b", "FROM t WHERE a ='x' AND b"),
            // Values of which the grammar makes something.
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
            "SELECT \"a\"",
            "SELECT 1; SELECT 2",
            "SELECT /*! 1 */",
            "a IN (1, 2",
            "SELECT \u{a0}1",
        ] {
            assert_eq!(StatementWords::read(text.as_bytes()), None, "{text}");
        }
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
