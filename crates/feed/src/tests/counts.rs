//! Counts: which are sums over authors, and the queries for the numbers of single authors.

use super::*;
use crate::binding::{FeedColumnTypes, FeedPosition, FeedStatement, ParameterValue};
use crate::count::CountWindow;
use crate::query::{AggregateFunction, LargestColumns, LargestKind};
use headwater_timeline::{IntegerColumnType, KeyType};

const FOLLOWED: &str = "user_id IN (SELECT author FROM follower WHERE reader = 7)";
const JOINED: &str = "message m JOIN follower f ON f.author = m.user_id WHERE f.reader = 7";

fn count(text: &str) -> Result<StatementShape, NarrowingRefusal> {
    shaped(text, false)
}

fn types() -> FeedColumnTypes {
    let integer = IntegerColumnType {
        bits: 32,
        signed: true,
    };
    FeedColumnTypes {
        id: integer,
        author: integer,
        key: None,
        has_follow_copies: false,
        has_mixed_signs: false,
    }
}

fn bound<'a>(
    text: &'a str,
    words: &'a StatementWords,
    parameters: &'a [ParameterValue],
) -> FeedStatement<'a> {
    FeedStatement {
        text: text.as_bytes(),
        words,
        parameters,
        types: &[],
        utc_offset: None,
    }
}

/// The query for the numbers of authors 5 and 9, and the statement with these alone.
fn queries(text: &str, parameters: &[ParameterValue]) -> Option<[String; 2]> {
    let (words, query) = read(text);
    let shape = shape(&query.unwrap(), &words, &feed(false), &app()).unwrap();
    let statement = bound(text, &words, parameters);
    let names = feed(false);
    Some([
        shape.count_by_author(statement, &names, &[5, 9])?,
        shape.count_of_authors(statement, &names, &[5, 9])?,
    ])
}

#[test]
fn the_messages_of_authors_are_counted_in_each_spelling() {
    for text in [
        format!("SELECT COUNT(*) FROM message WHERE {FOLLOWED}"),
        format!("select count(1) as aggregate from message where {FOLLOWED} and hidden = 0"),
        format!("SELECT COUNT(id) AS 'n' FROM message WHERE ({FOLLOWED} OR user_id = 7)"),
        format!("SELECT COUNT(message.id) FROM message WHERE {FOLLOWED}"),
        format!("SELECT COUNT(DISTINCT m.id) FROM {JOINED} AND m.kind = 'photo'"),
        format!("SELECT COUNT(*) FROM {JOINED} AND f.accepted = 1 AND m.created_at > '2026-01-01'"),
        format!("SELECT COUNT(*) FROM (SELECT id, body FROM message WHERE {FOLLOWED} ORDER BY id) t"),
        format!("SELECT COUNT(*) FROM (SELECT DISTINCT m.id, m.body FROM {JOINED}) AS t"),
        format!("SELECT COUNT(*) FROM (SELECT m.id FROM {JOINED} GROUP BY m.id, m.body) AS t"),
        "SELECT COUNT(*) FROM message m JOIN users u ON u.id = m.user_id WHERE m.user_id IN (1, 2) AND u.name = 'a'".to_owned(),
        "SELECT COUNT(*) FROM message WHERE (user_id = 7 OR (hidden = 0 AND user_id IN (1, 2))) AND kind = 'a'".to_owned(),
        "SELECT COUNT(*) FROM message m LEFT JOIN users u ON u.id = m.hidden WHERE m.user_id IN (1, 2)".to_owned(),
    ] {
        let shape = count(&text).map(|shape| shape.count.is_some());
        assert_eq!(shape, Ok(true), "{text}");
    }
}

#[test]
fn what_is_no_sum_over_authors_is_refused() {
    use NarrowingRefusal::{Authors, Count, Grouped, Joins};
    for (text, why) in [
        ("SELECT COUNT(*) FROM message WHERE hidden = 0".to_owned(), Authors),
        (format!("SELECT COUNT(body) FROM message WHERE {FOLLOWED}"), Count),
        (format!("SELECT COUNT(DISTINCT user_id) FROM message WHERE {FOLLOWED}"), Count),
        (format!("SELECT COUNT(f.reader) FROM {JOINED}"), Count),
        (format!("SELECT COUNT(t.id) FROM (SELECT id FROM message WHERE {FOLLOWED}) t"), Count),
        // Rows of messages that are equal in what is shown are one.
        (format!("SELECT COUNT(*) FROM (SELECT DISTINCT kind FROM message WHERE {FOLLOWED}) t"), Joins),
        (format!("SELECT COUNT(*) FROM (SELECT kind FROM message WHERE {FOLLOWED} GROUP BY kind) t"), Grouped),
        // Several rows of a message.
        ("SELECT COUNT(*) FROM message m JOIN tag t ON t.message_id = m.id WHERE m.user_id IN (1, 2)".to_owned(), Count),
        // What a message's row refers to by another column than the author, and what it does not refer to.
        ("SELECT COUNT(*) FROM message m JOIN users u ON u.id = m.hidden WHERE m.user_id IN (1, 2) AND u.name = 'a'".to_owned(), Count),
        (format!("SELECT COUNT(*) FROM message WHERE {FOLLOWED} AND EXISTS (SELECT 1 FROM tag WHERE tag.message_id = message.id)"), Count),
        (format!("SELECT COUNT(*) FROM message WHERE {FOLLOWED} AND created_at < NOW()"), Count),
    ] {
        assert_eq!(count(&text), Err(why), "{text}");
    }
    for text in [
        format!("SELECT COUNT(*), MIN(id) FROM message WHERE {FOLLOWED}"),
        format!("SELECT COUNT(*) FROM message WHERE {FOLLOWED} LIMIT 1"),
        format!("SELECT COUNT(*) FROM (SELECT id FROM message WHERE {FOLLOWED} LIMIT 5) t"),
        format!("SELECT COUNT(*) + 1 FROM message WHERE {FOLLOWED}"),
        format!("SELECT COUNT(*) FROM (SELECT id FROM message WHERE {FOLLOWED}) t WHERE id > 5"),
        format!("SELECT COUNT(*) FROM (SELECT id FROM message WHERE {FOLLOWED}) t, users"),
        format!("SELECT COUNT(*) FROM (SELECT id FROM message WHERE {FOLLOWED} UNION SELECT 5) t"),
    ] {
        assert!(count(&text).is_err(), "{text}");
    }
}

/// Where an edge may be there twice, each copy counts the author's messages.
#[test]
fn copies_of_edges_are_listed() {
    let shape = |text: &str| {
        let (words, query) = read(text);
        let mut app = app();
        app.0[1].1.unique_keys.clear();
        shape(&query.unwrap(), &words, &feed(false), &app)
    };
    let copies = |text: &str| {
        let shape = shape(text).unwrap();
        let lists = shape.row_dependencies.unwrap().lists;
        lists.iter().map(|list| list.copies).collect::<Vec<_>>()
    };
    assert_eq!(copies(&format!("SELECT COUNT(*) FROM {JOINED}")), [true]);
    assert_eq!(
        copies(&format!(
            "SELECT COUNT(m.id) FROM {JOINED} AND f.accepted = 1"
        )),
        [true]
    );
    assert!(copies(&format!("SELECT COUNT(DISTINCT m.id) FROM {JOINED}")).is_empty());
    assert!(copies(&format!("SELECT COUNT(*) FROM message WHERE {FOLLOWED}")).is_empty());
    let twice = "SELECT COUNT(*) FROM message m JOIN follower f ON f.author = m.user_id JOIN follower g ON g.author = m.user_id \
                 WHERE f.reader = 7 AND g.reader = 7";
    assert_eq!(shape(twice).err(), Some(NarrowingRefusal::Count));
    let tagged = "SELECT COUNT(*) FROM message m JOIN tag t ON t.message_id = m.id JOIN follower f ON f.author = m.user_id WHERE f.reader = 7";
    assert_eq!(shape(tagged).err(), Some(NarrowingRefusal::Count));
}

#[test]
fn numbers_are_asked_for_with_the_statements_own_conditions() {
    let of = |text: &str| queries(text, &[]).unwrap();
    assert_eq!(
        of("SELECT COUNT(*) n FROM message WHERE user_id IN (1, 2) OR user_id = 3 -- end"),
        [
            "SELECT message.`user_id`, COUNT(*) FROM message WHERE message.`user_id` IN (5,9) AND (user_id IN (1, 2) OR user_id = 3) \
             GROUP BY message.`user_id`",
            "SELECT COUNT(*) n FROM message WHERE message.`user_id` IN (5,9) AND (user_id IN (1, 2) OR user_id = 3)  -- end",
        ]
    );
    assert_eq!(
        of(
            "SELECT COUNT(*) FROM (SELECT m.id, m.body FROM message m JOIN follower f ON f.author = m.user_id AND f.reader = 7 GROUP BY m.id, m.body) t"
        ),
        [
            "SELECT m.`user_id`, COUNT(DISTINCT m.`id`) FROM message m JOIN follower f ON f.author = m.user_id AND f.reader = 7 \
             WHERE m.`user_id` IN (5,9) GROUP BY m.`user_id`",
            "SELECT COUNT(*) FROM (SELECT m.id, m.body FROM message m JOIN follower f ON f.author = m.user_id AND f.reader = 7 \
             WHERE m.`user_id` IN (5,9)  GROUP BY m.id, m.body) t",
        ]
    );
}

#[test]
fn values_stand_in_place_of_parameters() {
    let text =
        "SELECT COUNT(*) FROM message WHERE user_id IN (?, ? , ?) AND hidden = ? AND kind = ?";
    let integer = ParameterValue::Integer;
    let of = |last: &[u8]| {
        let kind = ParameterValue::Text(last.to_vec());
        let values = [
            integer(1),
            integer(2),
            integer(3),
            ParameterValue::Null,
            kind,
        ];
        queries(text, &values).map(|[numbers, _]| numbers)
    };
    assert_eq!(
        of(b"photo").unwrap(),
        "SELECT message.`user_id`, COUNT(*) FROM message WHERE message.`user_id` IN (5,9) AND \
         (user_id IN (1, 2 , 3) AND hidden = NULL AND kind = 'photo') GROUP BY message.`user_id`"
    );
    for odd in ["a'b", "a\\", "\u{e9}", "\0", "\""] {
        assert_eq!(of(odd.as_bytes()), None, "{odd:?}");
    }
}

/// What would end a page is a condition of a count: numbers of other bounds are others.
#[test]
fn bounds_are_part_of_what_numbers_depend_on() {
    let literals = |text: &str| {
        let (words, query) = read(text);
        let shape = shape(&query.unwrap(), &words, &feed(false), &app()).unwrap();
        let statement = bound(text, &words, &[]);
        let dependencies = shape.row_dependencies.unwrap();
        dependencies
            .cache_key_literals_and_bounds(statement)
            .unwrap()
    };
    let of = |author: u32, bound: u32| {
        literals(&format!(
            "SELECT COUNT(*) FROM message WHERE user_id IN (1, {author}) AND id <= {bound}"
        ))
    };
    assert_eq!(of(2, 50), of(3, 50));
    assert_ne!(of(2, 50), of(2, 51));
    // So are authors who do not only select.
    let of = |author: u32| {
        literals(&format!(
            "SELECT COUNT(*) FROM message WHERE user_id = 1 OR (user_id IN (2, {author}) AND hidden = 0)"
        ))
    };
    assert_ne!(of(3), of(4));
}

/// The window of a count, as `[lower, upper]`, and whether nothing else filters its messages.
fn window(text: &str, has_key: bool) -> (Option<CountWindow>, bool) {
    let (words, query) = read(text);
    let shape = shape(&query.unwrap(), &words, &feed(has_key), &app()).unwrap();
    let statement = bound(text, &words, &[]);
    let types = FeedColumnTypes {
        key: has_key.then_some(KeyType::Datetime(0)),
        ..types()
    };
    let is_unfiltered = shape.row_dependencies.as_ref().unwrap().is_unfiltered;
    (shape.count_window(statement, types), is_unfiltered)
}

#[test]
fn a_count_says_where_its_messages_begin() {
    let encoded = |id: i128| types().id.encode(id).unwrap();
    let ids = |condition: &str| {
        let text = format!("SELECT COUNT(*) FROM {JOINED} AND {condition}");
        let (window, is_unfiltered) = window(&text, false);
        let ends = window.map(|window| {
            let id = |at: Option<FeedPosition>| at.map(|at| at.id);
            (id(window.lower), id(window.upper))
        });
        (ends, is_unfiltered)
    };
    for (condition, ends, is_unfiltered) in [
        ("m.id > 7", Some((Some(8), None)), true),
        ("m.id >= 7", Some((Some(7), None)), true),
        ("7 < m.id", Some((Some(8), None)), true),
        ("m.id > 7 AND m.id >= 9", Some((Some(9), None)), true),
        ("m.id BETWEEN 7 AND 9", Some((Some(7), Some(9))), true),
        ("m.id > 7 AND m.id < 9", Some((Some(8), Some(8))), true),
        ("m.id > 7 AND m.kind = 'a'", Some((Some(8), None)), false),
        ("m.id > 7 AND f.accepted = 1", Some((Some(8), None)), true),
        // They begin nowhere, or who knows where.
        ("m.id < 9", None, true),
        ("m.kind = 'a'", None, false),
        ("m.id > '7x'", None, true),
        ("m.id > 7 AND m.id > '7x'", None, true),
    ] {
        let encode = |end: Option<i128>| end.map(encoded);
        let ends = ends.map(|(lower, upper)| (encode(lower), encode(upper)));
        assert_eq!(ids(condition), (ends, is_unfiltered), "{condition}");
    }
}

/// Behind all messages of its time, behind one of them, or before all of them.
#[test]
fn a_beginning_by_time_is_exact() {
    let at = |condition: &str| {
        let text = format!("SELECT COUNT(*) FROM {JOINED} AND {condition}");
        window(&text, true).0.unwrap().lower.unwrap()
    };
    let time = at("m.created_at >= '2026-01-01'");
    assert_eq!(time.id, 0);
    let behind = FeedPosition {
        key: time.key + 1,
        id: 0,
    };
    assert_eq!(at("m.created_at > '2026-01-01'"), behind);
    let id = types().id.encode(6).unwrap();
    let next = FeedPosition { id, ..time };
    assert_eq!(at("(m.created_at, m.id) > ('2026-01-01', 5)"), next);
    assert_eq!(at("(m.created_at, m.id) >= ('2026-01-01', 6)"), next);
    let (none, _) = window(
        &format!("SELECT COUNT(*) FROM {JOINED} AND m.created_at > '2026-01-01 00:00:00.5'"),
        true,
    );
    assert_eq!(none, None);
}

#[test]
fn pages_of_one_are_read_as_counts() {
    let function = |text: &str| count(text).map(|shape| shape.count.unwrap().function);
    let from = format!("FROM message WHERE {FOLLOWED}");
    for text in [
        format!("SELECT EXISTS(SELECT 1 {from})"),
        format!("SELECT EXISTS (SELECT * {from} AND hidden = 0 LIMIT 1) AS newer"),
        format!("select exists (select id, body {from}) `exists`"),
    ] {
        let is_exists = matches!(function(&text), Ok(AggregateFunction::Exists { .. }));
        assert!(is_exists, "{text}: {:?}", function(&text));
    }
    let row = format!("SELECT 1 AS one {from} LIMIT 1");
    assert!(matches!(
        function(&row),
        Ok(AggregateFunction::AnyRow { shown: 1, .. })
    ));
    for text in [
        format!("SELECT MAX(id) {from}"),
        format!("SELECT MAX(m.id) AS newest FROM {JOINED} AND m.kind = 'a'"),
    ] {
        assert_eq!(function(&text), Ok(AggregateFunction::Newest), "{text}");
    }
    // Another column, another function, or more.
    for text in [
        format!("SELECT MAX(kind) {from}"),
        format!("SELECT MAX(hidden) {from}"),
        format!("SELECT MAX(f.since) FROM {JOINED}"),
        format!("SELECT MAX(id), MAX(created_at) {from}"),
        format!("SELECT COUNT(DISTINCT id), MAX(created_at) {from}"),
        format!("SELECT COUNT(*), COUNT(*) {from}"),
        format!("SELECT MAX(f.reader) FROM {JOINED}"),
        format!("SELECT MAX(DISTINCT id) {from}"),
        format!("SELECT MAX (id) {from}"),
        format!("SELECT MIN(id) {from}"),
        format!("SELECT NOT EXISTS(SELECT 1 {from})"),
        format!("SELECT EXISTS(SELECT 1 {from}), 1"),
        format!("SELECT 1 {from}"),
        format!("SELECT 1 {from} LIMIT 1, 1"),
    ] {
        assert!(function(&text).is_err(), "{text}");
    }
    let numbers = |text: &str| queries(text, &[]).unwrap();
    assert_eq!(
        numbers("SELECT MAX(id) FROM message WHERE user_id IN (1, 2)"),
        [
            "SELECT message.`user_id`, MAX(message.`id`) FROM message WHERE message.`user_id` IN (5,9) AND (user_id IN (1, 2)) \
             GROUP BY message.`user_id`",
            "SELECT MAX(id) FROM message WHERE message.`user_id` IN (5,9) AND (user_id IN (1, 2)) ",
        ]
    );
    assert_eq!(
        numbers("SELECT EXISTS(SELECT 1 FROM message WHERE user_id = 1 LIMIT 1) AS a")[1],
        "SELECT EXISTS(SELECT 1 FROM message WHERE message.`user_id` IN (5,9) AND (user_id = 1)  LIMIT 1) AS a"
    );
}

#[test]
fn the_largest_of_a_column_is_read_with_and_without_the_count() {
    let largest = |text: &str| {
        let function = count(text).map(|shape| shape.count.unwrap().function);
        let largest = function.unwrap().largest().unwrap();
        (largest.kind, largest.columns)
    };
    let from = format!("FROM message WHERE {FOLLOWED}");
    let moment = LargestKind::Moment {
        digits: 0,
        is_zoned: false,
    };
    for (text, expected) in [
        (
            format!("SELECT MAX(created_at) {from}"),
            (moment, LargestColumns::Value),
        ),
        (
            format!("SELECT COUNT(*) AS `size`, MAX(m.created_at) AS timestamp FROM {JOINED}"),
            (moment, LargestColumns::CountAndValue),
        ),
        (
            format!("SELECT MAX(`created_at`), COUNT(1) {from} AND hidden = 0"),
            (moment, LargestColumns::ValueAndCount),
        ),
        (
            format!("SELECT COUNT(*), MAX(id) {from}"),
            (LargestKind::Id, LargestColumns::CountAndValue),
        ),
    ] {
        assert_eq!(largest(&text), expected, "{text}");
    }
    let numbers = |text: &str| queries(text, &[]).unwrap()[0].clone();
    assert_eq!(
        numbers("SELECT MAX(created_at) FROM message WHERE user_id IN (1, 2)"),
        "SELECT message.`user_id`, 1, MAX(CAST(message.created_at AS CHAR)) FROM message \
         WHERE message.`user_id` IN (5,9) AND (user_id IN (1, 2)) GROUP BY message.`user_id`"
    );
    assert_eq!(
        numbers("SELECT COUNT(*), MAX(m.`created_at`) FROM message m WHERE m.user_id IN (1, 2)"),
        "SELECT m.`user_id`, COUNT(*), MAX(CAST(m.`created_at` AS CHAR)) FROM message m \
         WHERE m.`user_id` IN (5,9) AND (m.user_id IN (1, 2)) GROUP BY m.`user_id`"
    );
}
