//! What is compared: a definition or a feed in a database, and the questions about each reader's page of it.

use std::collections::BTreeMap;

use super::answer::{Answer, last_id};
use super::judge::{Pair, Verdict};
use super::pattern::Pattern;
use super::readers::{Column, Walk};
use super::ties;
use super::watch::Watch;
use crate::shadow::real;
use crate::sql::quoted;
use crate::timeline::definition::{Definition, Form};

/// A definition or a feed in a database.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) title: String,
    pub(super) database: String,
    pub(super) walk: Walk,
    pub(super) authors: Authors,
    pub(super) questions: Vec<Question>,
    /// Statements that are not compared, and why.
    pub(super) left_out: Vec<LeftOut>,
    /// Readers that are done.
    pub(super) readers: u64,
}

/// Whose messages a list names.
#[derive(Clone, Debug)]
pub(super) enum Authors {
    /// There is no list.
    None,
    /// Those of rows with the reader in this column: the name of the author's one.
    Followed { by: Column, author: String },
    /// Those of the column from the reader on, who is an author: nothing says who follows whom.
    From(Column),
}

/// A question about each reader.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) title: String,
    pub(super) kind: Kind,
    pub(super) tally: Tally,
    pub(super) watch: Watch,
    /// It is not asked any more.
    pub(super) dropped: Option<Dropped>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Call(Box<Timeline>, Form),
    /// With the column of the messages' ids.
    Select(Pattern, String),
}

/// A definition, and the columns of its messages.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    pub(super) definition: Definition,
    pub(super) columns: Vec<String>,
}

/// What is not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) what: String,
    pub(super) why: String,
    /// It is to be compared, and something stands in the way.
    pub(super) fails: bool,
}

/// Why a question is not asked any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) why: String,
    pub(super) fails: bool,
}

/// What came of a question.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) compared: u64,
    pub(super) equal: u64,
    /// Are equal but for the order of rows that tie.
    pub(super) tied: u64,
    pub(super) differ: u64,
    pub(super) late: u64,
    pub(super) restless: u64,
    /// Were not equal at once.
    pub(super) again: u64,
    /// What Headwater said would answer, for some of them.
    pub(super) from: BTreeMap<String, u64>,
}

impl Unit {
    pub(super) fn of(
        title: String,
        walk: Walk,
        column: &Column,
        authors: Authors,
        questions: Vec<Question>,
    ) -> Unit {
        Unit {
            title,
            database: column.database.clone(),
            walk,
            authors,
            questions,
            left_out: Vec::new(),
            readers: 0,
        }
    }

    /// How many answers will be compared.
    pub(super) fn answers(&self) -> u64 {
        let questions = self.questions.iter();
        let asked = questions.filter(|own| own.dropped.is_none()).count();
        self.walk
            .total
            .saturating_mul(u64::try_from(asked).unwrap_or(u64::MAX))
    }
}

impl Question {
    pub(super) fn call(timeline: &Timeline, form: Form) -> Question {
        let name = quoted(timeline.definition.procedure(form));
        let title = match form {
            Form::Newest => format!("CALL {name}(READER), and the page behind it"),
            Form::Bounded => format!("CALL {name}(READER, BOUND), and the page behind it"),
            Form::Heads => format!("CALL {name}(READER, BOUND), and the heads behind it"),
        };
        Question::new(title, Kind::Call(Box::new(timeline.clone()), form))
    }

    /// `id`: the column of the messages' ids.
    pub(super) fn select(pattern: Pattern, id: &str) -> Question {
        Question::new(pattern.shown(), Kind::Select(pattern, id.to_owned()))
    }

    fn new(title: String, kind: Kind) -> Question {
        Question {
            title,
            kind,
            tally: Tally::default(),
            watch: Watch::default(),
            dropped: None,
        }
    }

    /// What is asked about a reader; `bound`: of the page behind the newest one. `None`: nothing.
    pub(super) fn statements(
        &self,
        reader: i128,
        bound: Option<u64>,
        authors: &[i128],
    ) -> Option<Vec<String>> {
        match &self.kind {
            Kind::Call(timeline, form) => Some(timeline.statements(*form, reader, bound)),
            Kind::Select(pattern, _) => Some(vec![pattern.of(reader, authors)?]),
        }
    }

    /// What the server is asked about rows that tie, where some of its answers may.
    pub(super) fn ties(&self, statements: &[String]) -> Option<ties::Question> {
        match (&self.kind, statements) {
            (Kind::Select(_, id), [page]) => ties::Question::of(page, id),
            _ => None,
        }
    }

    /// The bound of the next page, where these are the answers to a newest one.
    pub(super) fn next_bound(&self, answers: &[Answer]) -> Option<u64> {
        match self.kind {
            Kind::Call(_, Form::Newest) => Some(last_id(answers.last()?)?.saturating_sub(1)),
            _ => None,
        }
    }
}

impl Timeline {
    fn statements(&self, form: Form, reader: i128, bound: Option<u64>) -> Vec<String> {
        let definition = &self.definition;
        let bound = bound.unwrap_or(definition.id_type.max());
        let bound = form.is_bounded().then_some(bound);
        let call = real::call(definition, form, reader, bound);
        let behind = match form.fills_result() {
            true => self.page(),
            false => self.heads(),
        };
        vec![call, behind]
    }

    /// The SELECT behind a call, as an app sends it.
    fn page(&self) -> String {
        let Definition {
            message, result, n, ..
        } = &self.definition;
        let id = quoted(&message.id);
        let columns: Vec<String> = std::iter::once(&message.id)
            .chain(self.columns.iter().filter(|name| **name != message.id))
            .map(|name| format!("m.{}", quoted(name)))
            .collect();
        format!(
            "SELECT {} FROM {} AS m JOIN {} AS t ON m.{id} = t.{} ORDER BY m.{id} DESC LIMIT {n}",
            columns.join(", "),
            quoted(&message.table),
            quoted(&result.table),
            quoted(&result.id),
        )
    }

    fn heads(&self) -> String {
        let heads = &self.definition.heads;
        let (author, head) = (quoted(&heads.author), quoted(&heads.head));
        format!(
            "SELECT {author}, {head} FROM {} ORDER BY {author}",
            quoted(&heads.table)
        )
    }
}

impl Tally {
    /// Takes in what came of a comparison; returns both answers where they are to be shown.
    pub(super) fn take(&mut self, verdict: Verdict) -> Option<Pair> {
        self.compared += 1;
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Tied => self.tied += 1,
            Verdict::Restless => self.restless += 1,
            Verdict::Late(pair) => {
                self.late += 1;
                return Some(*pair);
            }
            Verdict::Differ(pair) => {
                self.differ += 1;
                return Some(*pair);
            }
        }
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::statement::{Class, classify};

    fn timeline() -> Timeline {
        Timeline {
            definition: Definition::classic(),
            columns: vec!["id".into(), "user_id".into(), "body".into()],
        }
    }

    #[test]
    fn a_reader_is_asked_for_as_an_app_asks() {
        let question = |form| Question::call(&timeline(), form);
        assert_eq!(
            question(Form::Newest).statements(7, None, &[]).unwrap(),
            [
                "CALL `fetch_timeline_ids`(7)",
                "SELECT m.`id`, m.`user_id`, m.`body` FROM `message` AS m JOIN `fetch_timeline_tt` AS t ON m.`id` = t.`id` \
                 ORDER BY m.`id` DESC LIMIT 20",
            ]
        );
        let definitions = [Definition::classic()];
        let page = timeline().page();
        let class = classify(page.as_bytes(), &definitions, true);
        assert!(matches!(class, Class::Tail(_)), "{class:?}");
        let bounded = question(Form::Bounded).statements(7, Some(5), &[]).unwrap();
        let call = bounded.first().unwrap();
        assert_eq!(call, "CALL `fetch_timeline_ids2`(7, 5)");
        let heads = question(Form::Heads).statements(7, None, &[]).unwrap();
        assert_eq!(
            heads,
            [
                "CALL `build_max_ids_of_followers`(7, 4294967295)",
                "SELECT `user_id`, `max_id` FROM `max_ids_of_followers` ORDER BY `user_id`",
            ]
        );
    }
}
