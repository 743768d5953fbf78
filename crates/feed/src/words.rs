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
//! - **Literals elsewhere** leave their kind, and [`Word::stays`] is false for them. Their values are part of what each statement asks for
//!   ([`crate::bind`]) or of what its rows are kept under ([`crate::keep`]), by the place where they stand. Where the grammar looks at a value, or
//!   leaves one out of account, it stays: behind INTERVAL, in `NOW(3)`, and behind a LIMIT in parentheses. A word of which the grammar reads the
//!   value has to be one that stays.
//! - **A list of literals** of one kind, behind IN, leaves its kind, whatever its length and the white space in it: a comma between two literals means the
//!   same however it is written.
//! - **In front of the first word, and behind the last one** white space, comments and a semicolon are left out: servers take them off
//!   before they read.
//!
//! The case of words and names, quotes and parentheses are kept as they stand. So whoever writes a statement in two ways has two templates, and
//! no reply follows the other's text.

use headwater_sql::lexer::{Kind, Lexer, Token};

/// One word of a statement: where it stands, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// What it is.
    pub is: Is,
    /// Where it starts, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Parameters in front of it.
    pub parameters: usize,
    /// It stands in the key as it is, so that all statements of the template have it. A parameter never does.
    pub stays: bool,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
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
    List(Members),
}

impl Is {
    /// A literal, a parameter, or a list of these.
    #[must_use]
    pub fn is_literal(self) -> bool {
        match self {
            Is::Number | Is::Text | Is::Parameter | Is::List(_) => true,
            Is::Name | Is::Quoted | Is::Punct(_) => false,
        }
    }
}

/// What a list holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// Decimal digits alone.
    Numbers,
    /// Strings in single quotes.
    Texts,
    /// Parameters.
    Parameters,
}

/// The words of one statement, and the key of its template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// In order, without the semicolon at the end.
    pub words: Vec<Word>,
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

impl Word {
    /// A token of a text that begins at `from`, behind so many parameters, which it is counted among if it is one.
    fn of(token: Token<'_>, from: usize, parameters: &mut usize) -> Option<Word> {
        let is = match token.kind {
            Kind::Word => Is::Name,
            Kind::Quoted => Is::Quoted,
            Kind::Number => Is::Number,
            // In double quotes it is a string or a name, as sql_mode has it.
            Kind::Text if token.text.first() == Some(&b'\'') => Is::Text,
            Kind::Punct(b'?') => Is::Parameter,
            Kind::Punct(byte) => Is::Punct(byte),
            Kind::Text | Kind::Opaque => return None,
        };
        let start = from + token.at;
        let word = Word {
            is,
            start,
            end: start + token.text.len(),
            parameters: *parameters,
            stays: !is.is_literal(),
        };
        *parameters += usize::from(is == Is::Parameter);
        Some(word)
    }
}

impl Words {
    /// The words of a text. `None`: it has more than one statement, too many words, or a byte that is not certain whatever the
    /// session's `sql_mode` and character set.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Words> {
        let mut lexer = Lexer::new(text);
        let mut read = Words {
            words: Vec::with_capacity(64),
            key: Vec::with_capacity(text.len().min(KEY_BYTES) + 64),
            parameters: 0,
        };
        let mut place = Place::default();
        // Where a list may have begun: a parenthesis behind IN.
        let mut list: Option<Opened> = None;
        while let Some(token) = lexer.next() {
            if token.is_punct(b';') {
                lexer.is_at_end().then_some(())?;
                break;
            }
            let word = Word::of(token, 0, &mut read.parameters)?;
            let opened = list.take();
            match opened.and_then(|opened| opened.go_on(word)) {
                Some(Open::Still(opened)) => {
                    list = Some(opened);
                    continue;
                }
                Some(Open::Closed(whole)) => {
                    read.push(whole, &mut place, text)?;
                    continue;
                }
                None => {}
            }
            if let Some(opened) = opened {
                // It was no list of literals after all.
                read.again(opened, &mut place, text)?;
            }
            let begins = word.is == Is::Punct(b'(') && place.may_list() && read.ends_with_in(text);
            match begins {
                true => list = Some(Opened::at(word)),
                false => read.push(word, &mut place, text)?,
            }
        }
        // A list that does not end is no statement.
        list.is_none().then_some(read)
    }

    /// The same of a text that is prepared and executed. That is a template of its own: the server describes its answer in another
    /// way than it does for the same text as a query.
    #[must_use]
    pub fn executed(mut self) -> Words {
        self.key.extend_from_slice(b"\x01E");
        self
    }

    /// The same of a text that is prepared and executed by a name: its answer is told as that of a query is, and described in a third
    /// way.
    #[must_use]
    pub fn named(mut self) -> Words {
        self.key.extend_from_slice(b"\x01D");
        self
    }

    /// True where a parameter is a column of the answer. MySQL describes that by the types that it had in earlier executions.
    #[must_use]
    pub fn show_parameters(&self, text: &[u8]) -> bool {
        let mut all = self.words.iter().enumerate();
        // No column of a feed's statement is a SELECT of its own.
        let from = all.position(|(at, word)| {
            word.is == Is::Name && self.text(at, text).eq_ignore_ascii_case(b"FROM")
        });
        let columns = self.words.get(..from.unwrap_or_default());
        columns.is_none_or(|columns| {
            let is_parameter =
                |word: &Word| matches!(word.is, Is::Parameter | Is::List(Members::Parameters));
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
    ) -> impl Iterator<Item = Token<'a>> + use<'a> {
        let is_literal = |token: &Token<'_>| {
            matches!(token.kind, Kind::Number | Kind::Text) || token.is_punct(b'?')
        };
        Lexer::new(self.text(at, text)).filter(is_literal)
    }

    fn ends_with_in(&self, text: &[u8]) -> bool {
        let last = self.words.len().checked_sub(1);
        last.is_some_and(|last| self.text(last, text).eq_ignore_ascii_case(b"IN"))
    }

    fn push(&mut self, word: Word, place: &mut Place, text: &[u8]) -> Option<()> {
        if self.words.len() == MOST_WORDS {
            return None;
        }
        let bytes = text.get(word.start..word.end)?;
        let all_stays = place.pass(word.is, bytes);
        // The value of a parameter stands in no text.
        let stays = word.stays || all_stays && word.is != Is::Parameter;
        let before = self.words.last().map_or(word.start, |last| last.end);
        match text.get(before..word.start)? {
            [] => {}
            between if all_stays => self.key.extend_from_slice(between),
            _ => self.key.push(b' '),
        }
        self.key.extend_from_slice(match word.is {
            _ if stays => bytes,
            Is::Number => b"\x01n",
            Is::Text => b"\x01t",
            Is::List(Members::Numbers) => b"\x01N",
            Is::List(Members::Texts) => b"\x01T",
            Is::List(Members::Parameters) => b"\x01P",
            Is::Parameter | Is::Name | Is::Quoted | Is::Punct(_) => bytes,
        });
        self.key.push(BREAK);
        self.words.push(Word { stays, ..word });
        Some(())
    }

    /// Reads once more, word by word, what looked like the beginning of a list of literals.
    fn again(&mut self, opened: Opened, place: &mut Place, text: &[u8]) -> Option<()> {
        let part = text.get(opened.start..opened.end)?;
        let mut parameters = opened.parameters;
        for token in Lexer::new(part) {
            let word = Word::of(token, opened.start, &mut parameters)?;
            self.push(word, place, text)?;
        }
        Some(())
    }
}

/// Where a word stands, as far as that says whether it stays.
#[derive(Default)]
struct Place {
    /// Parentheses that are open.
    depth: usize,
    /// All stays from here on, to the FROM or the end of these parentheses.
    columns: Option<usize>,
    /// All stays to the end of these parentheses.
    limit: Option<usize>,
    /// What came last.
    last: Last,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    /// Behind it stands a name, whatever word that is.
    Point,
    /// INTERVAL.
    Interval,
    /// NOW or CURRENT_TIMESTAMP.
    Now,
    /// The parenthesis behind that.
    OfNow,
}

impl Place {
    /// A list of literals may begin.
    fn may_list(&self) -> bool {
        self.columns.is_none() && self.limit.is_none()
    }

    /// Goes on by a word; true where it stays whatever it is, and all in front of it.
    fn pass(&mut self, is: Is, bytes: &[u8]) -> bool {
        let within = !self.may_list();
        let last = std::mem::take(&mut self.last);
        match is {
            Is::Punct(b'(') => {
                self.depth += 1;
                if last == Last::Now {
                    self.last = Last::OfNow;
                }
            }
            Is::Punct(b')') => {
                self.depth = self.depth.saturating_sub(1);
                self.columns = self.columns.filter(|depth| *depth <= self.depth);
                self.limit = self.limit.filter(|depth| *depth <= self.depth);
            }
            Is::Punct(b'.') => self.last = Last::Point,
            Is::Name if last != Last::Point => self.keyword(bytes),
            Is::Number => return within || matches!(last, Last::Interval | Last::OfNow),
            _ => {}
        }
        within
    }

    fn keyword(&mut self, word: &[u8]) {
        let is = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
        if is(b"SELECT") {
            self.columns = self.columns.or(Some(self.depth));
        } else if is(b"FROM") {
            self.columns = self.columns.filter(|depth| *depth != self.depth);
        } else if is(b"LIMIT") && self.depth > 0 {
            self.limit = self.limit.or(Some(self.depth));
        } else if is(b"INTERVAL") {
            self.last = Last::Interval;
        } else if is(b"NOW") || is(b"CURRENT_TIMESTAMP") {
            self.last = Last::Now;
        }
    }
}

/// A list of literals that has begun.
#[derive(Clone, Copy)]
struct Opened {
    members: Option<Members>,
    /// A member stands last, so a comma or the end may follow.
    filled: bool,
    start: usize,
    end: usize,
    parameters: usize,
}

enum Open {
    Still(Opened),
    Closed(Word),
}

impl Opened {
    fn at(parenthesis: Word) -> Opened {
        Opened {
            members: None,
            filled: false,
            start: parenthesis.start,
            end: parenthesis.end,
            parameters: parenthesis.parameters,
        }
    }

    /// With one more word; `None`: that is no list of literals of one kind.
    fn go_on(mut self, word: Word) -> Option<Open> {
        let member = match word.is {
            Is::Number => Members::Numbers,
            Is::Text => Members::Texts,
            Is::Parameter => Members::Parameters,
            Is::Punct(b',') if self.filled => {
                self.filled = false;
                self.end = word.end;
                return Some(Open::Still(self));
            }
            Is::Punct(b')') if self.filled => {
                return Some(Open::Closed(Word {
                    is: Is::List(self.members?),
                    start: self.start,
                    end: word.end,
                    parameters: self.parameters,
                    stays: false,
                }));
            }
            _ => return None,
        };
        // Two literals side by side: strings are one then, and the rest is an error.
        if self.filled || self.members.is_some_and(|members| members != member) {
            return None;
        }
        self.members = Some(member);
        self.filled = true;
        self.end = word.end;
        Some(Open::Still(self))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn key(text: &str) -> String {
        let words = Words::read(text.as_bytes()).unwrap();
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
            let words = Words::read(text.as_bytes()).unwrap();
            let each = words.words.iter().enumerate();
            let stay = each.filter(|(_, word)| word.is.is_literal() && word.stays);
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
        let words = Words::read(text).unwrap();
        assert_eq!(words.parameters, 6);
        let of: Vec<_> = words
            .words
            .iter()
            .filter(|word| matches!(word.is, Is::Parameter | Is::List(_)))
            .map(|word| word.parameters)
            .collect();
        assert_eq!(of, [0, 1, 4, 5]);
    }

    #[test]
    fn words_stand_where_they_stood() {
        let text = b"SELECT a -- so\n FROM `t` WHERE b IN ( 1, 2 ) ";
        let words = Words::read(text).unwrap();
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
            assert_eq!(Words::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_executed_has_a_template_of_its_own() {
        let words = Words::read(b"SELECT a LIMIT 1").unwrap();
        assert_ne!(words.clone().executed().key, words.key);
        assert_eq!(words.clone().executed().words, words.words);
        assert_ne!(words.clone().named().key, words.key);
        assert_ne!(words.clone().named().key, words.executed().key);
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
            let words = Words::read(text.as_bytes()).unwrap();
            assert_eq!(words.show_parameters(text.as_bytes()), shown, "{text}");
        }
    }

    #[test]
    fn templates_do_not_run_together() {
        assert_ne!(key("SELECT ab"), key("SELECT a b"));
        assert_ne!(key("SELECT `a`"), key("SELECT a"));
        assert_ne!(key("a IN (1)"), key("a IN (?)"));
    }
}
