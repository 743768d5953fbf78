//! From texts to shapes and narrowed texts, over the tables of a small app.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod bound;
mod kept;
mod narrowed;
mod shapes;

use crate::authors::Follow;
use crate::parse::parse;
use crate::query::Query;
use crate::refused::Refused;
use crate::schema::{Class, ColumnFacts, Schema, Table};
use crate::shape::{Feed, Shape, shape};
use crate::words::Words;

/// Tables of an app: messages, who follows whom, users, blocks, tags of messages.
struct App(Vec<(&'static str, Table)>);

impl Schema for App {
    fn table(&self, database: Option<&str>, name: &str) -> Option<&Table> {
        let own = database.is_none_or(|database| database == "app");
        let found = self.0.iter().find(|(own, _)| *own == name);
        found.map(|(_, table)| table).filter(|_| own)
    }
}

fn table(columns: &[(&str, Class)], unique: &[&[usize]]) -> Table {
    Table {
        columns: columns
            .iter()
            .map(|(name, class)| ColumnFacts {
                name: (*name).to_owned(),
                class: *class,
                is_virtual: *name == "computed",
                is_zoned: *name == "deleted_at",
                is_hidden: false,
                is_nullable: *name == "nick",
            })
            .collect(),
        unique: unique.iter().map(|key| key.to_vec()).collect(),
    }
}

fn app() -> App {
    use Class::{Integer, Moment, Number, Text};
    App(vec![
        (
            "message",
            table(
                &[
                    ("id", Integer),
                    ("user_id", Integer),
                    ("body", Text),
                    ("created_at", Moment(0)),
                    ("deleted_at", Moment(0)),
                    ("score", Number),
                    ("hidden", Integer),
                    ("kind", Text),
                ],
                &[&[0]],
            ),
        ),
        (
            "follower",
            table(
                &[
                    ("reader", Integer),
                    ("author", Integer),
                    ("accepted", Integer),
                ],
                &[&[0, 1]],
            ),
        ),
        (
            "users",
            table(&[("id", Integer), ("name", Text), ("nick", Text)], &[&[0]]),
        ),
        (
            "block",
            table(&[("who", Integer), ("whom", Integer)], &[&[0, 1]]),
        ),
        (
            "tag",
            table(&[("message_id", Integer), ("name", Text)], &[&[0, 1]]),
        ),
        (
            "odd",
            table(&[("id", Integer), ("computed", Integer)], &[&[0]]),
        ),
    ])
}

/// By id, or by time and id.
fn feed(by_time: bool) -> Feed {
    Feed {
        database: Some("app".into()),
        message: "message".into(),
        id: "id".into(),
        author: "user_id".into(),
        key: by_time.then(|| "created_at".into()),
        follow: Some(Follow {
            table: "follower".into(),
            reader: "reader".into(),
            author: "author".into(),
        }),
    }
}

fn read(text: &str) -> (Words, Result<Query, Refused>) {
    let words = Words::read(text.as_bytes()).unwrap();
    let query = parse(text.as_bytes(), &words);
    (words, query)
}

pub(crate) fn shaped(text: &str, by_time: bool) -> Result<Shape, Refused> {
    let (words, query) = read(text);
    shape(&query?, &words, &feed(by_time), &app())
}
