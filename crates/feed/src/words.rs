//! A statement's words with its literals taken out: what it has in common with all others of its template.

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
    /// Equal for texts of one template, and for no others: names and punctuation as they stand, and what kind each literal is.
    pub key: Vec<u8>,
    /// How many parameters it has.
    pub parameters: usize,
}

/// More words than this no template has; a list of literals is one.
pub const MOST_WORDS: usize = 1_000;

/// In a key, between words. No word holds it.
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
            key: Vec::with_capacity(256),
            parameters: 0,
        };
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
                    read.push(whole, text)?;
                    continue;
                }
                None => {}
            }
            if let Some(opened) = opened {
                // It was no list of literals after all.
                read.again(opened, text)?;
            }
            let begins = word.is == Is::Punct(b'(') && read.ends_with_in(text);
            match begins {
                true => list = Some(Opened::at(word)),
                false => read.push(word, text)?,
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

    fn push(&mut self, word: Word, text: &[u8]) -> Option<()> {
        if self.words.len() == MOST_WORDS {
            return None;
        }
        let literal: Option<&[u8]> = match word.is {
            Is::Name | Is::Quoted | Is::Punct(_) => None,
            Is::Number => Some(b"\x01n"),
            Is::Text => Some(b"\x01t"),
            Is::Parameter => Some(b"?"),
            Is::List(Members::Numbers) => Some(b"\x01N"),
            Is::List(Members::Texts) => Some(b"\x01T"),
            Is::List(Members::Parameters) => Some(b"\x01P"),
        };
        let bytes = match literal {
            Some(literal) => literal,
            None => text.get(word.start..word.end)?,
        };
        self.key.extend_from_slice(bytes);
        self.key.push(BREAK);
        self.words.push(word);
        Some(())
    }

    /// Reads once more, word by word, what looked like the beginning of a list of literals.
    fn again(&mut self, opened: Opened, text: &[u8]) -> Option<()> {
        let part = text.get(opened.start..opened.end)?;
        let mut parameters = opened.parameters;
        for token in Lexer::new(part) {
            let word = Word::of(token, opened.start, &mut parameters)?;
            self.push(word, text)?;
        }
        Some(())
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
            .replace('\0', " ")
            .replace('\u{1}', "$")
    }

    #[test]
    fn literals_leave_their_kind_only() {
        assert_eq!(
            key("SELECT a FROM t WHERE b = 5 AND c = 'x' AND d = ? LIMIT 20;"),
            "SELECT a FROM t WHERE b = $n AND c = $t AND d = ? LIMIT $n "
        );
    }

    #[test]
    fn a_list_of_literals_is_one_word_however_long() {
        assert_eq!(key("a IN (1,2,3)"), "a IN $N ");
        assert_eq!(key("a in ( 1 )"), "a in $N ");
        assert_eq!(key("a IN ('x', 'y')"), "a IN $T ");
        assert_eq!(key("a IN (?,?)"), "a IN $P ");
    }

    #[test]
    fn what_is_no_list_of_one_kind_stays_as_it_stands() {
        assert_eq!(key("a IN (1,'2')"), "a IN ( $n , $t ) ");
        assert_eq!(key("a IN (1,-2)"), "a IN ( $n , - $n ) ");
        assert_eq!(key("a IN (1 2)"), "a IN ( $n $n ) ");
        assert_eq!(key("a IN (SELECT 1)"), "a IN ( SELECT $n ) ");
        assert_eq!(key("a IN ()"), "a IN ( ) ");
        assert_eq!(key("f(1,2)"), "f ( $n , $n ) ");
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
