//! The client's own text with one more condition: the message is one of the candidates.

use std::fmt::Display;

use headwater_sql::{push_list, quoted};

use crate::shape::{Feed, Shape};
use crate::words::Words;

/// How a text is narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The ids stand in the place of the list of authors.
    pub replaces_list: bool,
    /// Through a temporary table, where the server sorts the original through one.
    pub buffered: bool,
}

impl Form {
    /// Neither.
    pub const PLAIN: Form = Form {
        replaces_list: false,
        buffered: false,
    };

    /// All of them.
    pub const ALL: [Form; 4] = [
        Form::PLAIN,
        Form {
            replaces_list: true,
            buffered: false,
        },
        Form {
            replaces_list: false,
            buffered: true,
        },
        Form {
            replaces_list: true,
            buffered: true,
        },
    ];
}

/// The messages among which the server looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates<'a, I> {
    /// These.
    Ids(&'a [I]),
    /// All of the authors from this one on: for many that costs the server less than a list does, but the list of authors has to stay.
    From(I),
}

/// More ids in one list are a table of their own to MariaDB (`in_predicate_conversion_threshold`), and columns have other flags.
const LISTED: usize = 900;

/// That a column is one of these ids.
fn one_of<I: Display>(column: &str, ids: &[I]) -> String {
    let mut condition = String::new();
    let several = ids.len() > LISTED;
    if several {
        condition.push('(');
    }
    for (number, ids) in ids.chunks(LISTED).enumerate() {
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

impl Shape {
    /// The narrowed text. There have to be two different ids at least: with one, or none, the server plans otherwise.
    ///
    /// `None`: there are fewer, or the text is not the one that the words are of, or a list is to be replaced by less than its own.
    pub fn narrow<I: Display + PartialEq>(
        &self,
        text: &[u8],
        words: &Words,
        feed: &Feed,
        candidates: Candidates<'_, I>,
        form: Form,
    ) -> Option<Vec<u8>> {
        let word = |at: usize| words.words.get(at);
        let qualifier = std::str::from_utf8(words.text(self.qualifier, text)).ok()?;
        let column = format!("{qualifier}.{}", quoted(&feed.id));
        let condition = match candidates {
            Candidates::Ids(ids) => {
                let first = ids.first()?;
                if !ids.iter().any(|id| id != first) {
                    return None;
                }
                one_of(&column, ids)
            }
            Candidates::From(_) if form.replaces_list => return None,
            Candidates::From(oldest) => format!("{column} >= {oldest}"),
        };

        let mut narrowed = Vec::with_capacity(text.len() + condition.len() + 40);
        let select = word(0)?.end;
        narrowed.extend_from_slice(text.get(..select)?);
        if form.buffered {
            narrowed.extend_from_slice(b" SQL_BUFFER_RESULT");
        }
        if form.replaces_list {
            let list = self.list.as_ref()?;
            let (start, end) = (word(list.start)?.start, word(list.end.checked_sub(1)?)?.end);
            narrowed.extend_from_slice(text.get(select..start)?);
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
