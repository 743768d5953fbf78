//! What statements ask for.

use super::{app, feed, read};
use headwater_timeline::{DatetimeValue, IntegerColumnType, KeyType};

use crate::binding::{
    FeedColumnTypes, FeedPageRequest, FeedPosition, FeedStatement, ParameterValue,
};
use crate::refusal::NarrowingRefusal;
use crate::shape::shape;

const UNSIGNED: IntegerColumnType = IntegerColumnType {
    bits: 32,
    signed: false,
};

fn page_request(
    text: &str,
    key: Option<KeyType>,
    parameters: &[ParameterValue],
) -> Result<FeedPageRequest, NarrowingRefusal> {
    let (words, query) = read(text);
    let statement_shape = shape(&query?, &words, &feed(key.is_some()), &app())?;
    let of = FeedStatement {
        text: text.as_bytes(),
        words: &words,
        parameters,
        types: &[],
        utc_offset: Some(3_600_000_000),
    };
    let types = FeedColumnTypes {
        id: UNSIGNED,
        author: UNSIGNED,
        key,
        has_follow_copies: false,
        has_mixed_signs: false,
    };
    statement_shape.bind(of, types)
}

fn with(
    condition: &str,
    parameters: &[ParameterValue],
) -> Result<FeedPageRequest, NarrowingRefusal> {
    let text =
        format!("SELECT id FROM message WHERE {condition} ORDER BY id DESC LIMIT 9 OFFSET 3");
    page_request(&text, None, parameters)
}

fn id(id: u64) -> Option<FeedPosition> {
    Some(FeedPosition { key: 0, id })
}

#[test]
fn authors_and_readers_are_read() {
    let request = with("user_id IN (3, 1,3) AND id <= 7", &[]).unwrap();
    assert_eq!(
        (
            request.authors,
            request.upper,
            request.limit,
            request.offset
        ),
        (vec![1, 3], id(7), 9, 3)
    );
    let request = with(
        "user_id IN (?, ?) AND id < ?",
        &[
            ParameterValue::Integer(9),
            ParameterValue::Integer(4),
            ParameterValue::Integer(100),
        ],
    );
    assert_eq!(
        request.map(|found| (found.authors, found.upper)),
        Ok((vec![4, 9], id(99)))
    );
    let request = with(
        "(user_id IN (SELECT author FROM follower WHERE reader = ?) OR user_id = ?)",
        &[ParameterValue::Integer(5), ParameterValue::Integer(6)],
    );
    assert_eq!(
        request.map(|found| (found.readers, found.authors)),
        Ok((vec![5], vec![6]))
    );
}

#[test]
fn strings_of_plain_digits_are_numbers() {
    let request = with("user_id IN ('3', '1') AND id < '12' AND hidden = '0'", &[]).unwrap();
    assert_eq!((request.authors, request.upper), (vec![1, 3], id(11)));
    let request = with(
        "user_id IN (SELECT author FROM follower WHERE reader IN ('7', '8')) OR user_id = '7'",
        &[],
    );
    assert_eq!(
        request.map(|found| (found.readers, found.authors)),
        Ok((vec![7, 8], vec![7]))
    );
    for wrong in [
        "'02'",
        "' 2'",
        "'2 '",
        "'2x'",
        "''",
        "'-2'",
        "'+2'",
        "'1e1'",
        "'0x2'",
        "'1.0'",
        "'1234567890123456'",
        "'1''2'",
    ] {
        for condition in [
            format!("user_id = {wrong}"),
            format!("user_id IN ('1', {wrong})"),
            format!("user_id = 1 AND hidden = {wrong}"),
            format!("user_id = 1 AND hidden IN ({wrong}, '2')"),
            format!("user_id = 1 AND id < {wrong}"),
            format!("user_id IN (SELECT author FROM follower WHERE reader = {wrong})"),
        ] {
            assert_eq!(
                with(&condition, &[]),
                Err(NarrowingRefusal::Types),
                "{condition}"
            );
        }
    }
}

#[test]
fn what_is_not_plain_is_refused_where_it_matters() {
    for (condition, parameters) in [
        ("user_id IN (1, 4294967296)", vec![]),
        (
            "user_id IN (?, ?)",
            vec![
                ParameterValue::Integer(1),
                ParameterValue::Text(b"02".to_vec()),
            ],
        ),
        (
            "user_id IN (?, ?)",
            vec![
                ParameterValue::Integer(1),
                ParameterValue::Text(b"2 ".to_vec()),
            ],
        ),
        (
            // More digits than a double tells apart.
            "user_id = ?",
            vec![ParameterValue::Text(b"1234567890123456".to_vec())],
        ),
        (
            "user_id IN (?, ?)",
            vec![ParameterValue::Integer(1), ParameterValue::Null],
        ),
        ("user_id IN (?, ?)", vec![ParameterValue::Integer(1)]),
        ("user_id IN (1, -2)", vec![]),
        ("user_id IN (1, NULL)", vec![]),
        ("user_id = ?", vec![ParameterValue::Integer(-1)]),
        ("user_id = NULL", vec![]),
        ("user_id = 1 AND created_at > 'yesterday'", vec![]),
        ("user_id = 1 AND created_at > '2026-02-30'", vec![]),
        ("user_id = 1 AND kind = ?", vec![ParameterValue::Integer(1)]),
        ("user_id = 1 AND kind = ?", vec![ParameterValue::Whole(1)]),
        ("user_id = 1 AND score > ?", vec![ParameterValue::Whole(1)]),
        (
            "user_id = 1 AND hidden = ?",
            vec![ParameterValue::Text(b"x".to_vec())],
        ),
        (
            "user_id = 1 AND hidden = ?",
            vec![ParameterValue::Text(b"1234567890123456789".to_vec())],
        ),
        ("user_id = 1 AND hidden IN (?)", vec![ParameterValue::Other]),
    ] {
        assert_eq!(
            with(condition, &parameters),
            Err(NarrowingRefusal::Types),
            "{condition}"
        );
    }
    let limit = |limit: &str| {
        page_request(
            &format!("SELECT id FROM message WHERE user_id = 1 ORDER BY id DESC LIMIT {limit}"),
            None,
            &[],
        )
    };
    let given = |parameter: ParameterValue| {
        page_request(
            "SELECT id FROM message WHERE user_id = 1 ORDER BY id DESC LIMIT ?",
            None,
            &[parameter],
        )
    };
    assert_eq!(
        given(ParameterValue::Integer(7)).map(|asked| asked.limit),
        Ok(7)
    );
    // What servers make of another type differs.
    for parameter in [
        ParameterValue::Integer(-1),
        ParameterValue::Integer(0),
        ParameterValue::Whole(7),
        ParameterValue::Text(b"7".to_vec()),
        ParameterValue::Null,
    ] {
        assert_eq!(given(parameter), Err(NarrowingRefusal::Limit));
    }
    assert_eq!(limit("0"), Err(NarrowingRefusal::Limit));
    assert_eq!(limit("99999999999999999999"), Err(NarrowingRefusal::Limit));
}

/// Languages without integers send doubles or strings.
#[test]
fn numbers_of_other_types_are_read_where_they_are_certain() {
    let text = |digits: &str| ParameterValue::Text(digits.as_bytes().to_vec());
    let request = with(
        "user_id IN (?, ?) AND hidden = ? AND id < ?",
        &[
            text("4"),
            ParameterValue::Whole(9),
            text("123456789012345678"),
            text("100"),
        ],
    );
    assert_eq!(
        request.map(|found| (found.authors, found.upper)),
        Ok((vec![4, 9], id(99)))
    );
    // It is the server's to heed.
    let long = with("user_id = 1 AND id < ?", &[text("1000000000000000")]);
    assert_eq!(long.map(|request| request.upper), Ok(None));
}

#[test]
fn a_bound_that_is_not_read_for_certain_is_not_used() {
    for condition in [
        "id < -1",
        "id < 4294967296",
        "id < NULL",
        "(id < 5 OR id < 7)",
    ] {
        let request = with(&format!("user_id = 1 AND {condition}"), &[]).unwrap();
        assert_eq!(request.upper, None, "{condition}");
    }
}

#[test]
fn the_closest_bounds_count() {
    let request = with(
        "user_id = 1 AND id < 50 AND id <= 30 AND id > 5 AND 9 <= id",
        &[],
    )
    .unwrap();
    assert_eq!((request.upper, request.lower), (id(30), id(9)));
}

#[test]
fn keys_have_places_of_their_own() {
    let of = |condition: &str, key: KeyType| {
        let text = format!(
            "SELECT id FROM message WHERE user_id = 1 AND {condition} ORDER BY created_at DESC, id DESC LIMIT 9"
        );
        let request = page_request(&text, Some(key), &[]).unwrap();
        (request.upper, request.lower)
    };
    let at = |key, id| Some(FeedPosition { key, id });
    let datetime = KeyType::Datetime(0);
    let noon = datetime.encode_text(b"2026-11-23 12:00:00").unwrap();
    assert_eq!(
        of("created_at <= '2026-11-23 12:00:00'", datetime),
        (at(noon, u64::MAX), None)
    );
    assert_eq!(
        of("created_at < '2026-11-23 12:00:00'", datetime),
        (at(noon - 1, u64::MAX), None)
    );
    assert_eq!(
        of("created_at > '2026-11-23 12:00:00'", datetime),
        (None, at(noon, 0))
    );
    assert_eq!(
        of("(created_at, id) < ('2026-11-23 12:00:00', 7)", datetime),
        (at(noon, 6), None)
    );
    assert_eq!(
        of("(created_at, id) < ('2026-11-23 12:00:00', 0)", datetime),
        (at(noon - 1, u64::MAX), None)
    );
    let written =
        "(created_at < '2026-11-23 12:00:00' OR (created_at = '2026-11-23 12:00:00' AND id <= 7))";
    assert_eq!(of(written, datetime), (at(noon, 7), None));
    let unlike =
        "(created_at < '2026-11-23 12:00:00' OR (created_at = '2026-11-23 12:00:01' AND id <= 7))";
    assert_eq!(of(unlike, datetime), (None, None));
    let given = |parameter: ParameterValue, key: KeyType| {
        let text = "SELECT id FROM message WHERE user_id = 1 AND created_at <= ? ORDER BY created_at DESC, id DESC LIMIT 9";
        page_request(text, Some(key), &[parameter]).unwrap().upper
    };
    let moment = |microsecond| {
        let moment = DatetimeValue::from_parts([2026, 11, 23], [12, 0, 0], microsecond);
        ParameterValue::Moment(moment.unwrap())
    };
    assert_eq!(given(moment(0), datetime), at(noon, u64::MAX));
    assert_eq!(given(moment(1), datetime), None);
    let tenths = KeyType::Datetime(1);
    let behind = tenths.encode_text(b"2026-11-23 12:00:00.1").unwrap();
    assert_eq!(given(moment(100_000), tenths), at(behind, u64::MAX));
    assert_eq!(given(ParameterValue::Null, datetime), None);
    // More digits than the column has.
    assert_eq!(
        of(
            "created_at <= TIMESTAMP('2026-11-23 12:00:00.000')",
            datetime
        ),
        of("created_at <= '2026-11-23 12:00:00'", datetime)
    );
    assert_eq!(
        of(
            "('x' IS NULL OR created_at <= '2026-11-23 12:00:00')",
            datetime
        ),
        of("created_at <= '2026-11-23 12:00:00'", datetime)
    );
    assert_eq!(
        of(
            "('' IS NULL OR created_at <= '2026-11-23 12:00:00')",
            datetime
        ),
        (None, None)
    );
    assert_eq!(
        of(
            "(NULL IS NULL OR created_at <= '2026-11-23 12:00:00')",
            datetime
        ),
        (None, None)
    );
    assert_eq!(
        of("created_at <= '2026-11-23 12:00:00.5'", datetime),
        (None, None)
    );
    // An hour ahead of UTC.
    let timestamp = KeyType::Timestamp(0);
    let noon = timestamp.encode_text(b"2026-11-23 11:00:00").unwrap();
    assert_eq!(
        of("created_at <= '2026-11-23 12:00:00'", timestamp),
        (at(noon, u64::MAX), None)
    );
}
