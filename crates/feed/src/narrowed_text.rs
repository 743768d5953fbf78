//! The client's own text with one more condition: the message is one of the candidates.

use std::fmt::Display;
use std::ops::Range;

use headwater_sql::keyword::is_reserved;
use headwater_sql::{push_list, quoted};

use crate::shape::{FeedNames, NarrowingSite, StatementShape, TieBreak, TieColumn};
use crate::words::{StatementWords, WordKind};

/// A narrowed text to prepare: each id is a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedNarrowedText {
    /// The text.
    pub text: Vec<u8>,
    /// The number of the client's parameters before the ids.
    pub parameters_before: usize,
    /// The number of parameters after those that the ids replace, together with their list.
    pub parameters_replaced: usize,
}

/// How a text is narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NarrowingForm {
    /// The ids replace the list of authors.
    pub replaces_list: bool,
    /// Through a temporary table, where the server sorts the original through one.
    pub buffered: bool,
}

impl NarrowingForm {
    /// Neither option.
    pub const PLAIN: NarrowingForm = NarrowingForm {
        replaces_list: false,
        buffered: false,
    };

    /// All forms.
    pub const ALL: [NarrowingForm; 4] = [
        NarrowingForm::PLAIN,
        NarrowingForm {
            replaces_list: true,
            buffered: false,
        },
        NarrowingForm {
            replaces_list: false,
            buffered: true,
        },
        NarrowingForm {
            replaces_list: true,
            buffered: true,
        },
    ];
}

/// The candidate messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateCondition<'a, I> {
    /// These ids.
    Ids(&'a [I]),
    /// All of the authors' messages from this id on. For many, this costs the server less than a list, but the list of authors has to stay.
    From(I),
}

/// MariaDB makes a longer list of ids a table (`in_predicate_conversion_threshold`), which changes column flags.
const MOST_LISTED_IDS: usize = 900;

/// The word SELECT with which the text begins, or that follows what WITH names.
fn outermost_select(text: &[u8], words: &StatementWords) -> Option<usize> {
    let is = |at: usize, name: &[u8]| words.text(at, text).eq_ignore_ascii_case(name);
    if !is(0, b"WITH") {
        return is(0, b"SELECT").then_some(0);
    }
    let mut depth = 0_usize;
    for (at, word) in words.words.iter().enumerate() {
        match word.kind {
            WordKind::Punct(b'(') => depth += 1,
            WordKind::Punct(b')') => depth = depth.checked_sub(1)?,
            _ if depth == 0 && is(at, b"SELECT") => return Some(at),
            _ => {}
        }
    }
    None
}

/// The condition that a column is one of these ids.
fn one_of<I: Display>(column: &str, ids: &[I]) -> String {
    let mut condition = String::new();
    let several = ids.len() > MOST_LISTED_IDS;
    if several {
        condition.push('(');
    }
    for (number, ids) in ids.chunks(MOST_LISTED_IDS).enumerate() {
        if number > 0 {
            condition.push_str(" OR ");
        }
        condition.push_str(column);
        condition.push_str(" IN (");
        push_list(&mut condition, ids);
        condition.push(')');
    }
    if several {
        condition.push(')');
    }
    condition
}

impl StatementShape {
    /// Narrows the text. At least two different ids are needed: with fewer, the server plans otherwise. `whole_page`: of a page within
    /// another SELECT, the number of rows without which it is to be empty.
    ///
    /// `None`: there are fewer ids, or the words are not of this text, or a list is missing that has to be replaced by a list.
    pub fn narrow<I: Display + PartialEq>(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
        (candidates, whole_page): (CandidateCondition<'_, I>, Option<u64>),
        form: NarrowingForm,
    ) -> Option<Vec<u8>> {
        let condition = |column: &str| match &candidates {
            CandidateCondition::Ids(ids) => {
                let first = ids.first()?;
                ids.iter()
                    .any(|id| id != first)
                    .then(|| one_of(column, ids))
            }
            CandidateCondition::From(_) if form.replaces_list => None,
            CandidateCondition::From(oldest) => Some(format!("{column} >= {oldest}")),
        };
        let mut edits = self.edits(text, words, feed, &condition, form)?;
        if let (Some(from), Some(rows)) = (self.page_in_outer, whole_page) {
            let site = self.sites.first()?;
            let page = words.words.get(from)?.start..words.words.get(site.filter_end)?.start;
            let own = |edit: &&TextEdit| page.start <= edit.at.start && edit.at.end <= page.end;
            let own: Vec<TextEdit> = edits.iter().filter(own).cloned().collect();
            let rest = apply(text, page, &own)?;
            let id = self.id_column(text, words, feed)?;
            let mut check =
                format!(" AND (SELECT COUNT(*) FROM (SELECT DISTINCT {id} ").into_bytes();
            check.extend_from_slice(&rest);
            check.extend_from_slice(format!("LIMIT {rows}) headwater_page) >= {rows} ").as_bytes());
            let at = words.words.get(site.filter_end)?.start;
            edits.push(TextEdit::insert(at, check));
        }
        apply(text, 0..text.len(), &edits)
    }

    /// The text itself, with the keys behind its order that the feed's order of ties adds. `None`: there are none.
    #[must_use]
    pub fn with_tie_break(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
    ) -> Option<Vec<u8>> {
        if !self.orders_ties() {
            return None;
        }
        apply(text, 0..text.len(), &self.tie_edits(text, words, feed)?)
    }

    /// What the feed's order of ties adds to each ORDER BY.
    fn tie_edits(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
    ) -> Option<Vec<TextEdit>> {
        let edit = |tie: &TieBreak| {
            let named = |table: usize, name: &str| {
                let table = table_name(table, text, words)?;
                Some(format!("{table}.{}", quoted(name)))
            };
            let key = match &tie.column {
                TieColumn::Id => self.id_before(text, words, feed, tie.at)? + " DESC",
                TieColumn::IdAscending => self.id_before(text, words, feed, tie.at)?,
                TieColumn::Derived(None, name) => quoted(name) + " DESC",
                TieColumn::Derived(Some(alias), name) => named(*alias, name)? + " DESC",
                TieColumn::Joined(table, name) => named(*table, name)?,
            };
            if tie.column == TieColumn::IdAscending {
                let at = clause_start(tie.at, words)?;
                return Some(TextEdit::insert(
                    at,
                    format!(" ORDER BY {key} ").into_bytes(),
                ));
            }
            // Before the space or comment in front of the next word: a comment to the end of its line would hide what follows.
            let order_end = words.words.get(tie.at.checked_sub(1)?)?.end;
            let next = text.get(order_end).is_some_and(u8::is_ascii_alphabetic);
            // A name in back quotes may end right before LIMIT.
            let space = if next { " " } else { "" };
            let added = format!(", {key}{space}");
            Some(TextEdit::insert(order_end, added.into_bytes()))
        };
        self.tie_breaks.iter().map(edit).collect()
    }

    /// The id of the last site before a word.
    fn id_before(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
        at: usize,
    ) -> Option<String> {
        let mut sites = self.sites.iter().rev();
        let site = sites.find(|site| site.filter_end <= at)?;
        id_at(site, text, words, feed)
    }

    /// What makes the text a narrowed one. `condition`: that the column of this name is a candidate.
    fn edits(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
        condition: &impl Fn(&str) -> Option<String>,
        form: NarrowingForm,
    ) -> Option<Vec<TextEdit>> {
        let word = |at: usize| words.words.get(at);
        let mut edits = Vec::new();
        if form.buffered {
            let select = outermost_select(text, words)?;
            edits.push(TextEdit::insert(
                word(select)?.end,
                b" SQL_BUFFER_RESULT".to_vec(),
            ));
        }
        if form.replaces_list {
            let list = self.replaceable_list.as_ref()?;
            let (start, end) = (word(list.start)?.start, word(list.end.checked_sub(1)?)?.end);
            let column = self.id_column(text, words, feed)?;
            // After `WHERE(`, whose parenthesis goes with the list, the condition would merge with the word before it.
            let is_apart = text.get(..start)?.ends_with(b" ");
            let space = if is_apart { "" } else { " " };
            edits.push(TextEdit {
                at: start..end,
                new: format!("{space}{}", condition(&column)?).into_bytes(),
            });
            edits.extend(self.tie_edits(text, words, feed)?);
            return Some(edits);
        }
        for site in &self.sites {
            let column = id_at(site, text, words, feed)?;
            let condition = condition(&column)?;
            let clause_start = clause_start(site.filter_end, words)?;
            let added = match site.filter {
                Some(filter) => {
                    edits.push(TextEdit::insert(word(filter)?.end, b" (".to_vec()));
                    format!(") AND {condition} ")
                }
                None => format!(" WHERE {condition} "),
            };
            edits.push(TextEdit::insert(clause_start, added.into_bytes()));
        }
        // Where both stand at one place, the order comes last.
        edits.extend(self.tie_edits(text, words, feed)?);
        Some(edits)
    }

    /// Narrows the text with so many parameters for ids. At least two of their values have to differ.
    ///
    /// `None`: there are fewer than two, or the words are not of this text.
    #[must_use]
    pub fn narrow_prepared(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
        count: usize,
        form: NarrowingForm,
    ) -> Option<PreparedNarrowedText> {
        if count < 2 {
            return None;
        }
        let [site] = self.sites.as_slice() else {
            return None;
        };
        if self.page_in_outer.is_some() {
            return None;
        }
        let before = |at: usize| match words.words.get(at) {
            Some(word) => Some(word.parameters_before),
            None => Some(words.parameters),
        };
        let (from, to) = match form.replaces_list {
            true => {
                let list = self.replaceable_list.as_ref()?;
                (before(list.start)?, before(list.end)?)
            }
            false => (before(site.filter_end)?, before(site.filter_end)?),
        };
        let condition = |column: &str| Some(one_of(column, &vec!['?'; count]));
        let edits = self.edits(text, words, feed, &condition, form)?;
        Some(PreparedNarrowedText {
            text: apply(text, 0..text.len(), &edits)?,
            parameters_before: from,
            parameters_replaced: to.checked_sub(from)?,
        })
    }

    /// The message's id column, as the text can name it.
    pub(crate) fn id_column(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
    ) -> Option<String> {
        id_at(self.sites.first()?, text, words, feed)
    }
}

/// Where the clause begins that follows WHERE's condition; at the end of the text, before a comment.
fn clause_start(at: usize, words: &StatementWords) -> Option<usize> {
    match words.words.get(at) {
        Some(clause) => Some(clause.start),
        None => Some(words.words.get(at.checked_sub(1)?)?.end),
    }
}

/// The message's id column, as the text can name it at a site.
fn id_at(
    site: &NarrowingSite,
    text: &[u8],
    words: &StatementWords,
    feed: &FeedNames,
) -> Option<String> {
    let qualifier = table_name(site.qualifier, text, words)?;
    Some(format!("{qualifier}.{}", quoted(&feed.id)))
}

/// The name of a table as written. After a point, the statement may leave a reserved word without quotes.
fn table_name(at: usize, text: &[u8], words: &StatementWords) -> Option<String> {
    let name = std::str::from_utf8(words.text(at, text)).ok()?;
    Some(match is_reserved(name) {
        true => quoted(name),
        false => name.to_owned(),
    })
}

/// A change of a text.
#[derive(Clone, Debug)]
struct TextEdit {
    at: Range<usize>,
    new: Vec<u8>,
}

impl TextEdit {
    fn insert(at: usize, new: Vec<u8>) -> TextEdit {
        TextEdit { at: at..at, new }
    }
}

/// A part of a text with these changes, which do not overlap. Of several at one place the first comes first.
fn apply(text: &[u8], part: Range<usize>, edits: &[TextEdit]) -> Option<Vec<u8>> {
    let mut edits: Vec<&TextEdit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.at.start);
    let added: usize = edits.iter().map(|edit| edit.new.len()).sum();
    let mut edited = Vec::with_capacity(part.len() + added);
    let mut from = part.start;
    for edit in edits {
        edited.extend_from_slice(text.get(from..edit.at.start)?);
        edited.extend_from_slice(&edit.new);
        from = edit.at.end;
    }
    edited.extend_from_slice(text.get(from..part.end)?);
    Some(edited)
}
