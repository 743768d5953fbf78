//! The client's own text with one more condition: the message is one of the candidates.

use std::fmt::Display;

use headwater_sql::{push_list, quoted};

use crate::shape::{FeedNames, StatementShape};
use crate::words::StatementWords;

/// A narrowed text that is prepared: each id is a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedNarrowedText {
    /// The text.
    pub text: Vec<u8>,
    /// So many of the client's parameters stand in front of the ids.
    pub parameters_before: usize,
    /// So many behind those have gone with the list that the ids replace.
    pub parameters_replaced: usize,
}

/// How a text is narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NarrowingForm {
    /// The ids stand in the place of the list of authors.
    pub replaces_list: bool,
    /// Through a temporary table, where the server sorts the original through one.
    pub buffered: bool,
}

impl NarrowingForm {
    /// Neither.
    pub const PLAIN: NarrowingForm = NarrowingForm {
        replaces_list: false,
        buffered: false,
    };

    /// All of them.
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

/// The messages among which the server looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateCondition<'a, I> {
    /// These.
    Ids(&'a [I]),
    /// All of the authors from this one on: for many that costs the server less than a list does, but the list of authors has to stay.
    From(I),
}

/// More ids in one list are a table of their own to MariaDB (`in_predicate_conversion_threshold`), and columns have other flags.
const MOST_LISTED_IDS: usize = 900;

/// That a column is one of these ids.
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
    /// The narrowed text. There have to be two different ids at least: with one, or none, the server plans otherwise.
    ///
    /// `None`: there are fewer, or the text is not the one that the words are of, or a list is to be replaced by less than its own.
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
        self.with_condition(text, words, &condition, form)
    }

    /// The narrowed text with so many ids that are parameters. The same holds for their values.
    ///
    /// `None`: there are to be fewer than two, or the text is not the one that the words are of.
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
            text: self.with_condition(text, words, &condition, form)?,
            parameters_before: from,
            parameters_replaced: to.checked_sub(from)?,
        })
    }

    /// The message's id, as the text may name it.
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
        condition: &str,
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
            // Behind `WHERE(`, whose parenthesis goes with the list, it would be one word with what comes before.
            if !before.ends_with(b" ") {
                narrowed.push(b' ');
            }
            narrowed.extend_from_slice(condition.as_bytes());
            narrowed.extend_from_slice(text.get(end..)?);
            return Some(narrowed);
        }
        let behind = word(self.filter_end)?.start;
        match self.filter {
            Some(at) => {
                let filter = word(at)?.end;
                narrowed.extend_from_slice(text.get(select..filter)?);
                narrowed.extend_from_slice(b" (");
                narrowed.extend_from_slice(text.get(filter..behind)?);
                narrowed.extend_from_slice(b") AND ");
            }
            None => {
                narrowed.extend_from_slice(text.get(select..behind)?);
                narrowed.extend_from_slice(b" WHERE ");
            }
        }
        narrowed.extend_from_slice(condition.as_bytes());
        narrowed.push(b' ');
        narrowed.extend_from_slice(text.get(behind..)?);
        Some(narrowed)
    }
}
