//! A reader of words: what comes next, and whether it is what is wanted.

use std::ops::Range;

use headwater_sql::NameCase;
use headwater_sql::keyword::is_reserved;
use headwater_sql::lexer::Lexer;

use crate::query::Name;
use crate::refused::Refused;
use crate::words::{Is, Words};

/// Conditions and SELECTs within each other, at most.
const DEEPEST: usize = 32;

pub(super) struct Reader<'a> {
    text: &'a [u8],
    words: &'a Words,
    at: usize,
    depth: usize,
    case: NameCase,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8], words: &'a Words, case: NameCase) -> Self {
        Reader {
            text,
            words,
            at: 0,
            depth: 0,
            case,
        }
    }

    /// The number of the next word.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    pub(super) fn go_back(&mut self, place: usize) {
        self.at = place;
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.words.words.len()
    }

    pub(super) fn peek(&self) -> Option<Is> {
        self.words.words.get(self.at).map(|word| word.is)
    }

    /// Goes on by one word, and returns its number.
    pub(super) fn advance(&mut self) -> usize {
        self.at += 1;
        self.at - 1
    }

    pub(super) fn is_next(&self, keyword: &str) -> bool {
        self.is_word(self.at, keyword)
    }

    fn is_word(&self, at: usize, keyword: &str) -> bool {
        let is_name = self.words.words.get(at).map(|word| word.is) == Some(Is::Name);
        is_name
            && self
                .words
                .text(at, self.text)
                .eq_ignore_ascii_case(keyword.as_bytes())
    }

    pub(super) fn is_next_punct(&self, byte: u8) -> bool {
        self.peek() == Some(Is::Punct(byte))
    }

    pub(super) fn takes(&mut self, keyword: &str) -> bool {
        let is = self.is_next(keyword);
        self.at += usize::from(is);
        is
    }

    pub(super) fn takes_punct(&mut self, byte: u8) -> bool {
        let is = self.is_next_punct(byte);
        self.at += usize::from(is);
        is
    }

    /// Where this keyword stands, if it is next; it is passed then.
    pub(super) fn place_of(&mut self, keyword: &str) -> Option<usize> {
        let at = self.at;
        self.takes(keyword).then_some(at)
    }

    pub(super) fn keyword(&mut self, keyword: &str) -> Result<(), Refused> {
        match self.takes(keyword) {
            true => Ok(()),
            false => Err(self.astray()),
        }
    }

    pub(super) fn punct(&mut self, byte: u8) -> Result<(), Refused> {
        match self.takes_punct(byte) {
            true => Ok(()),
            false => Err(self.astray()),
        }
    }

    /// Two bytes of punctuation with nothing between them: `<=`.
    pub(super) fn takes_pair(&mut self, first: u8, second: u8) -> bool {
        let next = self.words.words.get(self.at);
        let behind = self.words.words.get(self.at + 1);
        let is = matches!((next, behind), (Some(a), Some(b))
            if a.is == Is::Punct(first) && b.is == Is::Punct(second) && a.end == b.start);
        self.at += if is { 2 } else { 0 };
        is
    }

    /// Whether the next word stands right behind the one before it.
    pub(super) fn is_close(&self) -> bool {
        let before = self
            .at
            .checked_sub(1)
            .and_then(|at| self.words.words.get(at));
        let next = self.words.words.get(self.at);
        matches!((before, next), (Some(a), Some(b)) if a.end == b.start)
    }

    /// The next word is a function's name, and its parenthesis follows with nothing between them.
    pub(super) fn is_call(&self) -> bool {
        let next = self.words.words.get(self.at);
        let behind = self.words.words.get(self.at + 1);
        matches!((next, behind), (Some(a), Some(b)) if b.is == Is::Punct(b'(') && a.end == b.start)
    }

    /// The words begin with a parenthesis and end with the one that closes it.
    pub(super) fn is_in_parentheses(&self, range: &Range<usize>) -> bool {
        let mut open = 0usize;
        for at in range.clone() {
            match self.words.words.get(at).map(|word| word.is) {
                Some(Is::Punct(b'(')) => open += 1,
                Some(Is::Punct(b')')) => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                return at + 1 == range.end;
            }
        }
        false
    }

    /// The digits of a number that is next, and that all statements of the template have: what the grammar makes of it holds for all of them.
    pub(super) fn number_that_stays(&mut self) -> Option<&'a [u8]> {
        let next = self.words.words.get(self.at)?;
        let digits = (next.is == Is::Number && next.stays).then(|| self.bytes())?;
        self.advance();
        Some(digits)
    }

    /// The bytes of the next word.
    fn bytes(&self) -> &'a [u8] {
        self.written(self.at)
    }

    /// A word as it is written.
    pub(super) fn written(&self, word: usize) -> &'a [u8] {
        self.words.text(word, self.text)
    }

    /// Why what stands here is nothing that is understood.
    pub(super) fn astray(&self) -> Refused {
        const WHY: [(&[&str], Refused); 4] = [
            (&["FOR", "LOCK", "INTO", "PROCEDURE"], Refused::Locks),
            (
                &[
                    "SQL_CALC_FOUND_ROWS",
                    "SQL_NO_CACHE",
                    "SQL_CACHE",
                    "SQL_SMALL_RESULT",
                    "SQL_BIG_RESULT",
                    "SQL_BUFFER_RESULT",
                    "HIGH_PRIORITY",
                    "STRAIGHT_JOIN",
                    "USE",
                    "FORCE",
                    "IGNORE",
                    "PARTITION",
                    "TABLESAMPLE",
                ],
                Refused::Hints,
            ),
            (
                &[
                    "UNION",
                    "EXCEPT",
                    "INTERSECT",
                    "WITH",
                    "HAVING",
                    "WINDOW",
                    "OVER",
                ],
                Refused::Structure,
            ),
            (&["LIMIT", "FETCH", "ROWS"], Refused::Limit),
        ];
        let found = WHY
            .iter()
            .find(|(words, _)| words.iter().any(|word| self.is_next(word)));
        match (found, self.peek()) {
            (Some((_, why)), _) => *why,
            (
                None,
                Some(Is::Punct(
                    b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'~' | b'@' | b':'
                    | b'!',
                )),
            ) => Refused::NotPlain,
            _ => Refused::NotUnderstood,
        }
    }

    /// A name of a table or a column.
    pub(super) fn name(&mut self) -> Result<Name, Refused> {
        self.name_behind_point(false)
    }

    /// Behind a point any word is a name.
    pub(super) fn name_behind_point(&mut self, behind_point: bool) -> Result<Name, Refused> {
        let name = Lexer::new(self.bytes())
            .next()
            .and_then(|token| token.name());
        let name = name.filter(|name| !name.is_empty());
        let mut text = name.ok_or_else(|| self.astray())?;
        let quoted = self.peek() == Some(Is::Quoted);
        if !quoted && !behind_point && is_reserved(&text) {
            return Err(self.astray());
        }
        self.case.fold_text(&mut text);
        Ok(Name {
            text,
            word: self.advance(),
        })
    }

    /// A name without AS in front: no keyword at all, as that may be the next clause.
    pub(super) fn alias(&mut self) -> Option<Name> {
        let quoted = self.peek() == Some(Is::Quoted);
        let plain =
            self.peek() == Some(Is::Name) && std::str::from_utf8(self.bytes()).is_ok_and(is_alias);
        match quoted || plain {
            true => self.name().ok(),
            false => None,
        }
    }

    /// One deeper.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        if self.depth == DEEPEST {
            return Err(Refused::NotUnderstood);
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}

/// A word that can be nothing else than a name behind a table or a column. Words that begin a clause in one of the servers' versions
/// are none, though they may be names elsewhere.
fn is_alias(word: &str) -> bool {
    const CLAUSES: [&str; 16] = [
        "EXCEPT",
        "FETCH",
        "FOR",
        "FULL",
        "INTERSECT",
        "LATERAL",
        "MINUS",
        "OFFSET",
        "ONLY",
        "QUALIFY",
        "ROW",
        "ROWS",
        "SYSTEM",
        "TABLESAMPLE",
        "VALUES",
        "WINDOW",
    ];
    let clause = |clause: &&str| clause.eq_ignore_ascii_case(word);
    !is_reserved(word) && !CLAUSES.iter().any(clause)
}
