//! Statements whose messages are in posting lists of several columns.

use super::{app, feed, read};
use crate::authors::FollowNames;
use crate::refusal::NarrowingRefusal;
use crate::shape::{FeedNames, StatementShape, shape_of_postings};

/// Messages by their group, beside [`feed`]'s by their author.
fn groups() -> FeedNames {
    FeedNames {
        author: "group_id".into(),
        follow: Some(FollowNames {
            table: "membership".into(),
            reader: "who".into(),
            author: "group_id".into(),
        }),
        ..feed(false)
    }
}

fn shaped(filter: &str) -> Result<StatementShape, NarrowingRefusal> {
    let text = format!("SELECT m.* FROM message m {filter} ORDER BY m.id DESC LIMIT 20");
    let (words, query) = read(&text);
    shape_of_postings(&query?, &words, &feed(false), &[groups()], &app())
}

/// Readers, single authors and lists of authors by each feed.
fn counts(filter: &str) -> Option<Vec<[usize; 3]>> {
    let shape = shaped(filter).ok()?;
    assert_eq!(
        (shape.row_dependencies, shape.replaceable_list),
        (None, None)
    );
    let others = shape.postings.iter().map(|posting| &posting.authors);
    let each = std::iter::once(&shape.authors).chain(others);
    let counts = each.map(|one| [one.readers.len(), one.single.len(), one.lists.len()]);
    Some(counts.collect())
}

const FOLLOWED: &str = "m.user_id IN (SELECT author FROM follower WHERE reader = 7)";
const JOINED: &str = "m.group_id IN (SELECT group_id FROM membership WHERE who = 7)";

#[test]
fn each_branch_of_an_or_may_have_its_own_column() {
    for (filter, expected) in [
        (format!("WHERE {FOLLOWED} OR {JOINED}"), [[1, 0, 0], [1, 0, 0]]),
        (format!("WHERE ({JOINED} OR {FOLLOWED}) AND m.hidden = 0"), [[1, 0, 0], [1, 0, 0]]),
        (
            format!("WHERE m.hidden = 0 AND (m.user_id = 7 OR (m.kind = 'g' AND {JOINED}))"),
            [[0, 1, 0], [1, 0, 0]],
        ),
        (
            "WHERE m.user_id IN (1, 2) OR m.user_id = 3 OR m.group_id IN (5, 6) OR m.group_id = 8".to_owned(),
            [[0, 1, 1], [0, 1, 1]],
        ),
        (
            format!("WHERE {FOLLOWED} OR ({JOINED} OR m.group_id = 1)"),
            [[1, 0, 0], [1, 1, 0]],
        ),
        // A SELECT of a UNION may be of another feed alone.
        (format!("WHERE {JOINED}"), [[0, 0, 0], [1, 0, 0]]),
        (
            "LEFT JOIN follower f ON f.author = m.user_id AND f.reader = 7 WHERE f.reader IS NOT NULL OR m.group_id = 3 GROUP BY m.id"
                .to_owned(),
            [[1, 0, 0], [0, 1, 0]],
        ),
    ] {
        assert_eq!(counts(&filter).as_deref(), Some(&expected[..]), "{filter}");
    }
}

#[test]
fn a_branch_without_a_column_may_hold_any_message() {
    for filter in [
        format!("WHERE {FOLLOWED} OR m.hidden = 1"),
        format!("WHERE {FOLLOWED} OR {JOINED} OR m.hidden = 1"),
        format!("WHERE {FOLLOWED} OR NOT ({JOINED})"),
        "WHERE m.hidden = 1".to_owned(),
    ] {
        assert_eq!(
            shaped(&filter).err(),
            Some(NarrowingRefusal::Authors),
            "{filter}"
        );
    }
}

#[test]
fn one_column_alone_is_read_as_before() {
    let shape = shaped("WHERE m.user_id IN (1, 2) AND m.group_id = 3").unwrap();
    assert!(shape.postings.is_empty() && shape.row_dependencies.is_some());
}

#[test]
fn feeds_share_messages_by_table_id_and_order() {
    let by_time = feed(true);
    assert!(feed(false).shares_messages(&groups()) && !by_time.shares_messages(&groups()));
    let upper = FeedNames {
        id: "ID".into(),
        ..groups()
    };
    assert!(upper.shares_messages(&groups()));
    let elsewhere = FeedNames {
        database: Some("b".into()),
        ..groups()
    };
    let posts = FeedNames {
        message: "post".into(),
        ..groups()
    };
    assert!(!elsewhere.shares_messages(&groups()) && !posts.shares_messages(&groups()));
}
