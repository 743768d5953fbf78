//! A cursor over a statement's words.

use std::ops::Range;

use headwater_sql::NameCase;
use headwater_sql::keyword::is_reserved;
use headwater_sql::lexer::Lexer;

use super::derived_join::DerivedJoin;
use crate::query::{FeedSelect, NewestSelect, SqlIdentifier, Subquery};
use crate::refusal::NarrowingRefusal;
use crate::words::{StatementWords, WordKind};

/// Deepest nesting of conditions and SELECTs.
const DEEPEST: usize = 32;
/// How often a word is read at most, on average: what a parenthesis begins is known only behind it.
const MOST_READINGS: usize = 200;

pub(super) struct WordReader<'a> {
    text: &'a [u8],
    words: &'a StatementWords,
    at: usize,
    depth: usize,
    /// The first word that nothing has read.
    furthest: usize,
    /// The words read so far, with those that were read again.
    steps: usize,
    case: NameCase,
    /// The SELECTs that WITH names.
    pub(super) named_selects: Vec<NamedSelect>,
    /// Joins may hold SELECTs.
    pub(super) joins_selects: bool,
    /// How many SELECTs in joins are around the next word.
    pub(super) derived_depth: usize,
    /// The SELECTs in joins.
    pub(super) derived_joins: Vec<DerivedJoin>,
    /// Whether FROM may hold the page of a feed.
    pub(super) page: PageSearch,
}

/// `WITH name AS (SELECT column FROM ...)`.
#[derive(Clone, Debug)]
pub(super) struct NamedSelect {
    pub(super) name: String,
    /// The name of its column.
    pub(super) column: String,
    pub(super) rows: Subquery,
}

/// The page of a feed that a SELECT around it reads.
#[derive(Debug, Default)]
pub(super) enum PageSearch {
    /// None is read.
    #[default]
    Off,
    /// The first SELECT in FROM is taken for it.
    Wanted,
    /// The page.
    Read(Box<PageOfFeed>),
    /// The first SELECT in FROM or IN is taken for one that names the newest message of each author.
    NewestWanted,
    /// That SELECT.
    NewestRead(Box<NewestOfFeed>),
}

/// A SELECT in parentheses that names the newest message of each author.
#[derive(Debug)]
pub(super) struct NewestOfFeed {
    pub(super) select: NewestSelect,
    /// The name that WITH gives it.
    pub(super) with_name: Option<String>,
    /// FROM or IN reads it.
    pub(super) is_read: bool,
}

/// A page in parentheses.
#[derive(Debug)]
pub(super) struct PageOfFeed {
    pub(super) select: FeedSelect,
    /// Its word FROM.
    pub(super) from: usize,
    /// The name that WITH gives it.
    pub(super) with_name: Option<String>,
    /// FROM has named it.
    pub(super) is_named: bool,
}

impl<'a> WordReader<'a> {
    pub(super) fn new(text: &'a [u8], words: &'a StatementWords, case: NameCase) -> Self {
        WordReader {
            text,
            words,
            at: 0,
            depth: 0,
            furthest: 0,
            steps: 0,
            case,
            named_selects: Vec::new(),
            joins_selects: false,
            derived_depth: 0,
            derived_joins: Vec::new(),
            page: PageSearch::Off,
        }
    }

    /// The index of the next word.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn skip(&mut self, words: usize) {
        self.at += words;
        self.furthest = self.furthest.max(self.at);
    }

    /// Where the first word begins in the text that nothing has read.
    pub(super) fn furthest(&self) -> usize {
        let word = self.words.words.get(self.furthest);
        word.map_or(self.text.len(), |word| word.start)
    }

    pub(super) fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.words.words.len()
    }

    pub(super) fn peek(&self) -> Option<WordKind> {
        self.words.words.get(self.at).map(|word| word.kind)
    }

    /// Takes the next word, and returns its index.
    pub(super) fn advance(&mut self) -> usize {
        self.steps += 1;
        self.skip(1);
        self.at - 1
    }

    pub(super) fn is_next(&self, keyword: &str) -> bool {
        self.is_word(self.at, keyword)
    }

    pub(super) fn is_one(&self, at: usize) -> bool {
        let word = self.words.words.get(at);
        word.is_some_and(|word| word.kind == WordKind::Number)
            && self.words.text(at, self.text) == b"1"
    }

    pub(super) fn is_word(&self, at: usize, keyword: &str) -> bool {
        let is_name = self.words.words.get(at).map(|word| word.kind) == Some(WordKind::Name);
        is_name
            && self
                .words
                .text(at, self.text)
                .eq_ignore_ascii_case(keyword.as_bytes())
    }

    pub(super) fn is_next_punct(&self, byte: u8) -> bool {
        self.peek() == Some(WordKind::Punct(byte))
    }

    pub(super) fn take_keyword(&mut self, keyword: &str) -> bool {
        let is = self.is_next(keyword);
        self.skip(usize::from(is));
        is
    }

    pub(super) fn take_punct(&mut self, byte: u8) -> bool {
        let is = self.is_next_punct(byte);
        self.skip(usize::from(is));
        is
    }

    /// Takes this keyword if it is next, and returns its position.
    pub(super) fn take_keyword_position(&mut self, keyword: &str) -> Option<usize> {
        let at = self.at;
        self.take_keyword(keyword).then_some(at)
    }

    pub(super) fn expect_keyword(&mut self, keyword: &str) -> Result<(), NarrowingRefusal> {
        match self.take_keyword(keyword) {
            true => Ok(()),
            false => Err(self.refusal()),
        }
    }

    pub(super) fn expect_punct(&mut self, byte: u8) -> Result<(), NarrowingRefusal> {
        match self.take_punct(byte) {
            true => Ok(()),
            false => Err(self.refusal()),
        }
    }

    /// Takes two adjacent bytes of punctuation: `<=`.
    pub(super) fn take_punct_pair(&mut self, first: u8, second: u8) -> bool {
        let next = self.words.words.get(self.at);
        let following = self.words.words.get(self.at + 1);
        let is = matches!((next, following), (Some(a), Some(b))
            if a.kind == WordKind::Punct(first) && b.kind == WordKind::Punct(second) && a.end == b.start);
        self.skip(if is { 2 } else { 0 });
        is
    }

    /// True if nothing stands between the next word and the one before it.
    pub(super) fn is_adjacent(&self) -> bool {
        let before = self
            .at
            .checked_sub(1)
            .and_then(|at| self.words.words.get(at));
        let next = self.words.words.get(self.at);
        matches!((before, next), (Some(a), Some(b)) if a.end == b.start)
    }

    /// True if the next word is a function's name, with its parenthesis right after it.
    pub(super) fn is_call(&self) -> bool {
        let next = self.words.words.get(self.at);
        let following = self.words.words.get(self.at + 1);
        matches!((next, following), (Some(a), Some(b)) if b.kind == WordKind::Punct(b'(') && a.end == b.start)
    }

    /// True if the words begin with a parenthesis and end with the one that closes it.
    pub(super) fn is_in_parentheses(&self, range: &Range<usize>) -> bool {
        let mut open = 0usize;
        for at in range.clone() {
            match self.words.words.get(at).map(|word| word.kind) {
                Some(WordKind::Punct(b'(')) => open += 1,
                Some(WordKind::Punct(b')')) => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                return at + 1 == range.end;
            }
        }
        false
    }

    /// Takes a number that the template's key holds: what the grammar makes of it is true for all statements of the template.
    pub(super) fn verbatim_number(&mut self) -> Option<&'a [u8]> {
        let next = self.words.words.get(self.at)?;
        let digits =
            (next.kind == WordKind::Number && next.is_verbatim).then(|| self.next_word_text())?;
        self.advance();
        Some(digits)
    }

    /// True if a word of the statement is this keyword.
    pub(super) fn has_keyword(&self, keyword: &str) -> bool {
        (0..self.words.words.len()).any(|at| self.is_word(at, keyword))
    }

    /// The word FROM of the SELECT that begins at a word.
    pub(super) fn position_of_from(&self, select: usize) -> Option<usize> {
        let mut depth = 0usize;
        for at in select..self.words.words.len() {
            match self.words.words.get(at).map(|word| word.kind) {
                Some(WordKind::Punct(b'(')) => depth += 1,
                Some(WordKind::Punct(b')')) => depth = depth.checked_sub(1)?,
                _ if depth == 0 && self.is_word(at, "FROM") => return Some(at),
                _ => {}
            }
        }
        None
    }

    /// `(SELECT`.
    pub(super) fn begins_select(&self) -> bool {
        self.is_next_punct(b'(') && self.is_word(self.position() + 1, "SELECT")
    }

    fn next_word_text(&self) -> &'a [u8] {
        self.word_text(self.at)
    }

    pub(super) fn word_text(&self, word: usize) -> &'a [u8] {
        self.words.text(word, self.text)
    }

    /// Why the next word is not understood.
    pub(super) fn refusal(&self) -> NarrowingRefusal {
        const WHY: [(&[&str], NarrowingRefusal); 4] = [
            (
                &["FOR", "LOCK", "INTO", "PROCEDURE"],
                NarrowingRefusal::Locks,
            ),
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
                NarrowingRefusal::Hints,
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
                NarrowingRefusal::Structure,
            ),
            (&["LIMIT", "FETCH", "ROWS"], NarrowingRefusal::Limit),
        ];
        let matched = WHY
            .iter()
            .find(|(words, _)| words.iter().any(|word| self.is_next(word)));
        match (matched, self.peek()) {
            (Some((_, why)), _) => *why,
            (
                None,
                Some(WordKind::Punct(
                    b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'~' | b'@' | b':'
                    | b'!',
                )),
            ) => NarrowingRefusal::NotPlain,
            _ => NarrowingRefusal::NotUnderstood,
        }
    }

    pub(super) fn name(&mut self) -> Result<SqlIdentifier, NarrowingRefusal> {
        self.name_after_point(false)
    }

    /// A name of a table or a column; after a point any word is a name.
    pub(super) fn name_after_point(
        &mut self,
        after_point: bool,
    ) -> Result<SqlIdentifier, NarrowingRefusal> {
        let name = Lexer::new(self.next_word_text())
            .next()
            .and_then(|token| token.name());
        let name = name.filter(|name| !name.is_empty());
        let mut text = name.ok_or_else(|| self.refusal())?;
        let quoted = self.peek() == Some(WordKind::Quoted);
        if !quoted && !after_point && is_reserved(&text) {
            return Err(self.refusal());
        }
        self.case.fold_text(&mut text);
        Ok(SqlIdentifier {
            text,
            word: self.advance(),
        })
    }

    /// An alias without AS: no keyword, which may begin the next clause.
    pub(super) fn alias(&mut self) -> Option<SqlIdentifier> {
        let quoted = self.peek() == Some(WordKind::Quoted);
        let plain = self.peek() == Some(WordKind::Name)
            && std::str::from_utf8(self.next_word_text()).is_ok_and(is_alias);
        match quoted || plain {
            true => self.name().ok(),
            false => None,
        }
    }

    /// A string of letters, digits and `_`, as a name.
    pub(super) fn string_as_name(&mut self) -> Option<SqlIdentifier> {
        let is_string = self.peek() == Some(WordKind::Text);
        let word = self.next_word_text();
        let name = word.get(1..word.len().checked_sub(1)?)?;
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        (is_string && !name.is_empty() && name.iter().all(is_plain)).then_some(())?;
        let text = String::from_utf8(name.to_vec()).ok()?;
        Some(SqlIdentifier {
            text,
            word: self.advance(),
        })
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Reads at one more level of nesting.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, NarrowingRefusal>,
    ) -> Result<T, NarrowingRefusal> {
        if self.depth == DEEPEST
            || self.steps > self.words.words.len().saturating_mul(MOST_READINGS)
        {
            return Err(NarrowingRefusal::NotUnderstood);
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}

/// True for a word that can only be a name after a table or a column. Words that begin a clause in a version of a server are excluded,
/// though they may be names elsewhere.
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
