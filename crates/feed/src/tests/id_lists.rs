//! Messages that a statement names by their ids.

use headwater_timeline::IntegerColumnType;

use super::{TestSchema, app, feed, read};
use crate::binding::{FeedColumnTypes, FeedStatement, ParameterValue};
use crate::definition::TieOrder;
use crate::narrowed_text::{CandidateCondition, NarrowingForm};
use crate::refusal::NarrowingRefusal;
use crate::shape::{FeedNames, StatementShape, shape};

fn by_ties() -> FeedNames {
    FeedNames {
        ties: TieOrder::Id,
        ..feed(false)
    }
}

fn shaped(
    text: &str,
    feed: &FeedNames,
    schema: &TestSchema,
) -> Result<StatementShape, NarrowingRefusal> {
    let (words, query) = read(text);
    shape(&query?, &words, feed, schema)
}

const SIGNED: IntegerColumnType = IntegerColumnType {
    bits: 32,
    signed: true,
};

/// The ids of a statement, in its order.
fn ids(text: &str, feed: &FeedNames) -> Result<Vec<u64>, NarrowingRefusal> {
    let shape = shaped(text, feed, &app())?;
    let (words, _) = read(text);
    let parameters = [ParameterValue::Integer(9), ParameterValue::Integer(4)];
    let count = text.matches('?').count();
    let statement = FeedStatement {
        text: text.as_bytes(),
        words: &words,
        parameters: parameters.get(..count).unwrap_or_default(),
        types: &vec![[8, 0]; count],
        utc_offset: Some(0),
    };
    let types = FeedColumnTypes {
        id: SIGNED,
        author: SIGNED,
        key: None,
        has_follow_copies: false,
        has_mixed_signs: false,
    };
    shape.bind(statement, types)?;
    let list = shape.id_list.as_ref().ok_or(NarrowingRefusal::Authors)?;
    list.bind(statement, types)
}

#[test]
fn ids_are_read_in_the_statements_order_each_once() {
    let by_server = feed(false);
    for (text, expected) in [
        (
            "SELECT * FROM message WHERE id IN (3, 9, 3, 5) ORDER BY id",
            vec![3, 5, 9],
        ),
        (
            "SELECT m.id, m.body FROM message m WHERE m.id IN ('3', '9') AND m.deleted_at IS NULL ORDER BY m.id DESC, m.body LIMIT 1",
            vec![9, 3],
        ),
        (
            "SELECT m.* FROM message m JOIN users u ON u.id = m.user_id WHERE m.id IN (?, ?) ORDER BY m.id ASC",
            vec![4, 9],
        ),
        ("SELECT body FROM message WHERE id IN (7)", vec![7]),
        ("SELECT body FROM message WHERE id IN (7) LIMIT 1", vec![7]),
    ] {
        assert_eq!(ids(text, &by_server), Ok(expected.clone()), "{text}");
        assert_eq!(ids(text, &by_ties()), Ok(expected), "{text}");
    }
}

#[test]
fn without_an_order_the_feed_says_which() {
    let text = "SELECT id, body FROM message m WHERE id IN (3, 9, 5) -- so";
    assert_eq!(ids(text, &feed(false)), Err(NarrowingRefusal::Order));
    assert_eq!(ids(text, &by_ties()), Ok(vec![3, 5, 9]));
    let shape = shaped(text, &by_ties(), &app()).unwrap();
    let (words, _) = read(text);
    let candidates = CandidateCondition::Ids(&[3_u64, 9]);
    let narrowed = shape
        .narrow(
            text.as_bytes(),
            &words,
            &by_ties(),
            (candidates, None),
            NarrowingForm::PLAIN,
        )
        .unwrap();
    assert_eq!(
        String::from_utf8(narrowed).unwrap(),
        "SELECT id, body FROM message m WHERE ( id IN (3, 9, 5)) AND m.`id` IN (3,9)  ORDER BY m.`id`  -- so"
    );
    let text = "SELECT id, body FROM message m WHERE id IN (?, ?) LIMIT 2";
    let shape = shaped(text, &by_ties(), &app()).unwrap();
    let (words, _) = read(text);
    let open = shape.narrow_prepared(text.as_bytes(), &words, &by_ties(), 2, NarrowingForm::PLAIN);
    let open = open.unwrap();
    assert_eq!(
        String::from_utf8(open.text).unwrap(),
        "SELECT id, body FROM message m WHERE ( id IN (?, ?) ) AND m.`id` IN (?,?)  ORDER BY m.`id` LIMIT 2"
    );
    assert_eq!((open.parameters_before, open.parameters_replaced), (2, 0));
}

/// Single tables are read in the order of the primary key, unless another index may find the rows or has all that is shown of them.
#[test]
fn rows_come_by_the_primary_key_where_no_other_index_serves() {
    let with = |indexes: Option<&[&[Option<usize>]]>| {
        let mut schema = app();
        let (_, table) = schema.0.first_mut().unwrap();
        table.secondary_indexes =
            indexes.map(|all| all.iter().map(|index| index.to_vec()).collect());
        schema
    };
    let is_known = |text: &str, schema: &TestSchema| {
        let shape = shaped(text, &feed(false), schema).unwrap();
        shape.orders_ties()
    };
    let all = "SELECT * FROM message WHERE id IN (3, 9)";
    let author = with(Some(&[&[Some(1)]]));
    assert!(is_known(all, &author));
    assert!(is_known(all, &with(Some(&[]))));
    assert!(!is_known(all, &with(None)));
    for (text, known) in [
        ("SELECT id FROM message WHERE id IN (3, 9)", false),
        ("SELECT id, user_id FROM message WHERE id IN (3, 9)", false),
        ("SELECT user_id, body FROM message WHERE id IN (3, 9)", true),
        (
            "SELECT id FROM message WHERE id IN (3, 9) AND score > 2",
            true,
        ),
        (
            "SELECT * FROM message WHERE id IN (3, 9) AND user_id = 5",
            false,
        ),
        (
            "SELECT m.* FROM message m JOIN users u ON u.id = m.user_id WHERE m.id IN (3, 9)",
            false,
        ),
    ] {
        assert_eq!(is_known(text, &author), known, "{text}");
    }
    let several = with(Some(&[&[Some(1), Some(2)], &[Some(9)]]));
    assert!(!is_known(
        "SELECT user_id, body FROM message WHERE id IN (3)",
        &several
    ));
    assert!(is_known(
        "SELECT essay, body FROM message WHERE id IN (3)",
        &several
    ));
    assert!(!is_known(all, &with(Some(&[&[None]]))));
}

#[test]
fn what_depends_on_more_than_the_rows_is_not_served() {
    for text in [
        "SELECT * FROM message WHERE user_id IN (3, 9)",
        "SELECT * FROM message WHERE id NOT IN (3, 9)",
        "SELECT * FROM message WHERE id IN (3, 9) OR hidden = 0",
        "SELECT * FROM message WHERE id IN (3, 9) ORDER BY created_at",
        "SELECT * FROM message WHERE id IN (3, 9) ORDER BY body, id",
        "SELECT DISTINCT id FROM message WHERE id IN (3, 9) ORDER BY id",
        "SELECT id FROM message WHERE id IN (3, 9) GROUP BY id ORDER BY id",
        "SELECT * FROM message WHERE id IN (3, 9) ORDER BY id FOR UPDATE",
        "SELECT * FROM message WHERE id IN (3, 9) AND user_id IN (SELECT author FROM follower WHERE reader = 7) ORDER BY id",
        "SELECT m.* FROM message m JOIN tag t ON t.message_id = m.id WHERE m.id IN (3, 9) ORDER BY m.id",
        "SELECT m.* FROM message m JOIN follower f ON f.author = m.user_id WHERE m.id IN (3, 9) AND f.reader = 7 ORDER BY m.id",
        "SELECT m.id, u.name FROM message m JOIN users u ON u.id = m.user_id WHERE m.id IN (3, 9) ORDER BY m.id",
        "SELECT m.*, (SELECT COUNT(*) FROM tag t WHERE t.message_id <> m.id) FROM message m WHERE m.id IN (3, 9) ORDER BY m.id",
        "SELECT COUNT(*) FROM message WHERE id IN (3, 9) ORDER BY id",
    ] {
        assert!(shaped(text, &by_ties(), &app()).is_err(), "{text}");
    }
    for (text, why) in [
        (
            "SELECT * FROM message WHERE id IN (3, -9) ORDER BY id",
            NarrowingRefusal::Types,
        ),
        (
            "SELECT * FROM message WHERE id IN (3, 99999999999) ORDER BY id",
            NarrowingRefusal::Types,
        ),
        (
            "SELECT * FROM message WHERE id IN (3, '9x') ORDER BY id",
            NarrowingRefusal::Types,
        ),
        (
            "SELECT * FROM message WHERE id IN (3, NULL) ORDER BY id",
            NarrowingRefusal::Types,
        ),
    ] {
        assert_eq!(ids(text, &by_ties()), Err(why), "{text}");
    }
}
