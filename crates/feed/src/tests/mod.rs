//! From texts to shapes and narrowed texts, over the tables of a small app.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod author_groups;
mod binding;
mod cached_rows;
mod counts;
mod id_lists;
mod narrowed_text;
mod nested;
mod newest;
mod orders;
mod postings;
mod shapes;
mod values;

use crate::authors::FollowNames;
use crate::binding::FeedStatement;
use crate::definition::TieOrder;
use crate::parser::parse;
use crate::query::FeedSelect;
use crate::refusal::NarrowingRefusal;
use crate::schema::{ColumnSchema, ComparisonClass, Schema, TableSchema};
use crate::shape::{FeedNames, StatementShape, shape};
use crate::words::StatementWords;

/// Tables of an app: messages, who follows whom, users, blocks, tags of messages.
struct TestSchema(Vec<(&'static str, TableSchema)>);

impl Schema for TestSchema {
    fn table(&self, database: Option<&str>, name: &str) -> Option<&TableSchema> {
        let in_database = database.is_none_or(|database| database == "app");
        let entry = self.0.iter().find(|(own, _)| *own == name);
        entry.map(|(_, table)| table).filter(|_| in_database)
    }
}

fn table(columns: &[(&str, ComparisonClass)], unique: &[&[usize]]) -> TableSchema {
    TableSchema {
        columns: columns
            .iter()
            .map(|(name, class)| ColumnSchema {
                name: (*name).to_owned(),
                class: *class,
                is_virtual: *name == "computed",
                is_zoned: *name == "deleted_at",
                is_hidden: false,
                is_nullable: *name == "nick",
                is_long: *name == "essay",
            })
            .collect(),
        unique_keys: unique.iter().map(|key| key.to_vec()).collect(),
        secondary_indexes: None,
    }
}

fn app() -> TestSchema {
    use ComparisonClass::{Integer, Moment, Number, Text};
    TestSchema(vec![
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
                    ("group_id", Integer),
                    ("essay", Text),
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
            "membership",
            table(&[("who", Integer), ("group_id", Integer)], &[&[0, 1]]),
        ),
        (
            "odd",
            table(&[("id", Integer), ("computed", Integer)], &[&[0]]),
        ),
    ])
}

/// By id, or by time and id.
fn feed(by_time: bool) -> FeedNames {
    FeedNames {
        database: Some("app".into()),
        message: "message".into(),
        id: "id".into(),
        author: "user_id".into(),
        key: by_time.then(|| "created_at".into()),
        ties: TieOrder::default(),
        follow: Some(FollowNames {
            table: "follower".into(),
            reader: "reader".into(),
            author: "author".into(),
        }),
    }
}

fn read(text: &str) -> (StatementWords, Result<FeedSelect, NarrowingRefusal>) {
    let words = StatementWords::read(text.as_bytes()).unwrap();
    let query = parse(text.as_bytes(), &words);
    (words, query)
}

pub(crate) fn shaped(text: &str, by_time: bool) -> Result<StatementShape, NarrowingRefusal> {
    let (words, query) = read(text);
    shape(&query?, &words, &feed(by_time), &app())
}

/// A statement without parameters.
fn statement<'a>(text: &'a str, words: &'a StatementWords) -> FeedStatement<'a> {
    FeedStatement {
        text: text.as_bytes(),
        words,
        parameters: &[],
        types: &[],
        utc_offset: Some(0),
    }
}
