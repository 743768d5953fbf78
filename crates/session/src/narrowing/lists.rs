//! Lists of authors that a statement has beside those whom a reader follows: when the server is asked for them, and what it says.

use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::bind::{Asked, Statement};
use headwater_rows::Message;
use headwater_wire::resultset::Answer;

use super::kept::Keeping;
use super::{Found, Wishes, numbers};
use crate::kept::{AskedList, Told};
use crate::lists::{Authors, ListOf, ListSays, MOST};

/// A list of authors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// The reader's rows of its table.
    pub whose: Message,
    /// The statement that asks for it, up to the reader's number.
    pub query: Arc<str>,
    /// What the answer depends on beside that.
    pub key: Arc<[u8]>,
    /// What it is for.
    pub says: ListSays,
}

impl List {
    /// Under what it is kept in a stream of the log.
    #[must_use]
    pub fn of(&self, template: &Template, generation: u64) -> ListOf {
        let key = [
            &generation.to_le_bytes()[..],
            &self.key,
            b"\0list\0",
            self.query.as_bytes(),
        ];
        ListOf {
            whose: self.whose,
            variant: template.kept.number(&key.concat()),
            says: self.says.clone(),
        }
    }

    /// What an answer says. `None`: it is none.
    fn told(&self, answer: Answer) -> Option<Told> {
        let Answer::Rows(rows) = answer else {
            return None;
        };
        // Nobody is named by NULL; but where it is among those who are blocked, nothing passes.
        let names = |null: bool| !null || self.says == ListSays::Blocked;
        let named = rows.iter().filter(|row| names(row.cell(0).is_none()));
        let numbers: Option<Vec<u64>> = named.map(|row| row.u64(0)).collect();
        Some(numbers.filter(|it| it.len() <= MOST))
    }
}

impl Keeping {
    /// The same with the lists of a statement. `None`: one of them cannot be asked for, so no rows are kept.
    pub(super) fn with_lists(
        mut self,
        template: &Template,
        statement: Statement<'_>,
        asked: &Asked,
    ) -> Option<Keeping> {
        let lists = &template.shape.keep.as_ref()?.lists;
        if lists.is_empty() {
            return Some(self);
        }
        if lists.len() != template.lists.len() {
            return None;
        }
        let also = numbers(&asked.authors, template).ok()?;
        let each = lists.iter().zip(&*template.lists).map(|(list, place)| {
            Some(List {
                whose: (*place, list.reader(statement)?),
                query: list.query(statement)?.into(),
                key: self.settings.clone().into(),
                says: match list.pass {
                    true => ListSays::Pass(also.clone()),
                    false => ListSays::Blocked,
                },
            })
        });
        self.lists = each.collect::<Option<_>>()?;
        Some(self)
    }

    /// Under what its lists are kept.
    pub(super) fn lists_of(&self, template: &Template, found: &Found) -> Vec<ListOf> {
        let lists = self.lists.iter();
        lists.map(|it| it.of(template, found.generation)).collect()
    }
}

impl Wishes {
    fn lists(&self) -> &[List] {
        self.keeping.as_ref().map_or(&[], |keeping| &keeping.lists)
    }

    /// What the server said of a list.
    fn told(&self, at: usize) -> Option<&Told> {
        self.told.get(at)?.as_ref()
    }

    /// True for a list of which it is not known what is on it.
    fn is_open(&self, at: usize, found: &Found) -> bool {
        let kept = found.listed.get(at).is_some_and(Option::is_some);
        !kept && self.told(at).is_none()
    }

    /// The questions for lists of which it is not known what is on them.
    pub(super) fn asks(&self, template: &Template, found: &Found) -> Vec<String> {
        if !template.kept.is_worth_asking() {
            return Vec::new();
        }
        let lists = self.lists().iter().enumerate();
        let open = lists.filter(|(at, _)| self.is_open(*at, found));
        let ask = |list: &List| format!("{}{} LIMIT {}", list.query, list.whose.1, MOST + 1);
        open.map(|(_, list)| ask(list)).collect()
    }

    /// Takes in the answers. Without one no rows are kept of this statement.
    pub(super) fn take_lists(&mut self, found: &Found, answers: Vec<Answer>) {
        match self.with_answers(found, answers) {
            Some(told) => self.told = told,
            None => self.keeping = None,
        }
    }

    /// What was said of each list, with these answers about those that were open.
    fn with_answers(&self, found: &Found, answers: Vec<Answer>) -> Option<Vec<Option<Told>>> {
        let mut answers = answers.into_iter();
        let each =
            self.lists()
                .iter()
                .enumerate()
                .map(|(at, list)| match self.is_open(at, found) {
                    true => Some(Some(list.told(answers.next()?)?)),
                    false => Some(self.told(at).cloned()),
                });
        each.collect()
    }

    /// The authors of each list. `None`: not all are known. `Some(None)`: there are too many on one.
    pub(super) fn authors(&self, found: &Found) -> Option<Option<Vec<Authors>>> {
        let each = self.lists().iter().enumerate().map(|(at, list)| {
            let told = self.told(at).map(|told| {
                let told = told.as_deref();
                told.map(|told| list.says.with(told))
            });
            told.or_else(|| found.listed.get(at)?.clone())
        });
        let known: Vec<Option<Authors>> = each.collect::<Option<_>>()?;
        Some(known.into_iter().collect())
    }

    /// What is kept of its lists.
    pub(super) fn asked_lists(&self, keys: Vec<ListOf>) -> Vec<AskedList> {
        let each = keys.into_iter().enumerate();
        each.map(|(at, list)| AskedList {
            list,
            told: self.told(at).cloned(),
        })
        .collect()
    }
}
