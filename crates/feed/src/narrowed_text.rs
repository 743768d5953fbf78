//! The client's own text with one more condition: the message is one of the candidates.

use std::fmt::Display;

use headwater_sql::{push_list, quoted};

use crate::shape::{FeedNames, StatementShape};
use crate::words::StatementWords;

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
    /// Narrows the text. At least two different ids are needed: with fewer, the server plans otherwise.
    ///
    /// `None`: there are fewer, or the words are not of this text, or a list is missing that has to be replaced by a list.
    pub fn narrow<I: Display + PartialEq>(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
        candidates: CandidateCondition<'_, I>,
        form: NarrowingForm,
    ) -> Option<Vec<u8>> {
        let column = self.id_column(text, words, feed)?;
        let condition = match candidates {
            CandidateCondition::Ids(ids) => {
                let first = ids.first()?;
                if !ids.iter().any(|id| id != first) {
                    return None;
                }
                one_of(&column, ids)
            }
            CandidateCondition::From(_) if form.replaces_list => return None,
            CandidateCondition::From(oldest) => format!("{column} >= {oldest}"),
        };
        self.with_condition(text, words, (&column, &condition), form)
    }

    /// The text itself, with the id as the last key of its order, where the feed orders messages of one key by it. `None`: elsewhere.
    #[must_use]
    pub fn with_tie_break(
        &self,
        text: &[u8],
        words: &StatementWords,
        feed: &FeedNames,
    ) -> Option<Vec<u8>> {
        self.tie_break?;
        let column = self.id_column(text, words, feed)?;
        let mut ordered = Vec::with_capacity(text.len() + column.len() + 10);
        self.push_rest(text, words, &column, 0, &mut ordered)?;
        Some(ordered)
    }

    /// Appends the text from this byte on, which is before its order's end.
    fn push_rest(
        &self,
        text: &[u8],
        words: &StatementWords,
        id_column: &str,
        from: usize,
        to: &mut Vec<u8>,
    ) -> Option<()> {
        let Some(at) = self.tie_break else {
            to.extend_from_slice(text.get(from..)?);
            return Some(());
        };
        // Before the space or comment in front of LIMIT: a comment to the end of its line would hide what follows.
        let order_end = words.words.get(at.checked_sub(1)?)?.end;
        to.extend_from_slice(text.get(from..order_end)?);
        to.extend_from_slice(b", ");
        to.extend_from_slice(id_column.as_bytes());
        to.extend_from_slice(b" DESC");
        let rest = text.get(order_end..)?;
        // A name in back quotes may end right before LIMIT.
        if rest.first().is_some_and(u8::is_ascii_alphabetic) {
            to.push(b' ');
        }
        to.extend_from_slice(rest);
        Some(())
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
        let before = |at: usize| words.words.get(at).map(|word| word.parameters_before);
        let (from, to) = match form.replaces_list {
            true => {
                let list = self.replaceable_list.as_ref()?;
                (before(list.start)?, before(list.end)?)
            }
            false => (before(self.filter_end)?, before(self.filter_end)?),
        };
        let column = self.id_column(text, words, feed)?;
        let condition = one_of(&column, &vec!['?'; count]);
        Some(PreparedNarrowedText {
            text: self.with_condition(text, words, (&column, &condition), form)?,
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
        let qualifier = std::str::from_utf8(words.text(self.qualifier, text)).ok()?;
        Some(format!("{qualifier}.{}", quoted(&feed.id)))
    }

    fn with_condition(
        &self,
        text: &[u8],
        words: &StatementWords,
        (id_column, condition): (&str, &str),
        form: NarrowingForm,
    ) -> Option<Vec<u8>> {
        let word = |at: usize| words.words.get(at);
        let mut narrowed = Vec::with_capacity(text.len() + condition.len() + 40);
        let select = word(0)?.end;
        narrowed.extend_from_slice(text.get(..select)?);
        if form.buffered {
            narrowed.extend_from_slice(b" SQL_BUFFER_RESULT");
        }
        if form.replaces_list {
            let list = self.replaceable_list.as_ref()?;
            let (start, end) = (word(list.start)?.start, word(list.end.checked_sub(1)?)?.end);
            let before = text.get(select..start)?;
            narrowed.extend_from_slice(before);
            // After `WHERE(`, whose parenthesis goes with the list, the condition would merge with the word before it.
            if !before.ends_with(b" ") {
                narrowed.push(b' ');
            }
            narrowed.extend_from_slice(condition.as_bytes());
            self.push_rest(text, words, id_column, end, &mut narrowed)?;
            return Some(narrowed);
        }
        let clause_start = word(self.filter_end)?.start;
        match self.filter {
            Some(at) => {
                let filter = word(at)?.end;
                narrowed.extend_from_slice(text.get(select..filter)?);
                narrowed.extend_from_slice(b" (");
                narrowed.extend_from_slice(text.get(filter..clause_start)?);
                narrowed.extend_from_slice(b") AND ");
            }
            None => {
                narrowed.extend_from_slice(text.get(select..clause_start)?);
                narrowed.extend_from_slice(b" WHERE ");
            }
        }
        narrowed.extend_from_slice(condition.as_bytes());
        narrowed.push(b' ');
        self.push_rest(text, words, id_column, clause_start, &mut narrowed)?;
        Some(narrowed)
    }
}
