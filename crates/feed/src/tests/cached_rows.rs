//! Which statements' rows may be kept, and what these depend on.

use headwater_timeline::{IntegerColumnType, KeyType};

use super::{read, shaped};
use crate::binding::{FeedColumnTypes, FeedStatement, ParameterType, ParameterValue};
use crate::joined_tables::ReferenceKeySource;

const UNSIGNED: IntegerColumnType = IntegerColumnType {
    bits: 32,
    signed: false,
};

/// The literals that rows depend on; `None`: rows depend on more.
fn cache_key_text(text: &str, by_time: bool, parameters: &[ParameterValue]) -> Option<String> {
    let literals = cache_key_text_with(text, by_time, parameters, LONGLONG)?;
    let literals = literals.split_terminator('\0');
    let values = literals.map(|one| format!("{} ", one.split_once('=').unwrap().1));
    Some(values.collect())
}

const LONGLONG: ParameterType = [8, 0];

/// The same with the places of literals, and where all parameters have this type.
fn cache_key_text_with(
    text: &str,
    by_time: bool,
    parameters: &[ParameterValue],
    kind: ParameterType,
) -> Option<String> {
    let shape = shaped(text, by_time).unwrap_or_else(|refused| panic!("{refused:?}: {text}"));
    let (words, _) = read(text);
    let statement = FeedStatement {
        text: text.as_bytes(),
        words: &words,
        parameters,
        types: &vec![kind; parameters.len()],
        utc_offset: Some(0),
    };
    let types = FeedColumnTypes {
        id: UNSIGNED,
        author: UNSIGNED,
        key: by_time.then_some(KeyType::Datetime(0)),
        has_follow_copies: false,
        has_mixed_signs: false,
    };
    let literals = shape
        .row_dependencies?
        .cache_key_literals(statement, types)?;
    Some(String::from_utf8(literals).unwrap())
}

fn of(condition: &str) -> Option<String> {
    let select = "SELECT m.id, m.body FROM message m";
    cache_key_text(
        &format!("{select} WHERE {condition} ORDER BY m.id DESC LIMIT 20 OFFSET 40"),
        false,
        &[],
    )
}

#[test]
fn rows_depend_on_the_message_and_on_other_literals() {
    for (condition, literals) in [
        ("m.user_id IN (1,2)", ""),
        ("m.user_id = 7", ""),
        (
            "m.user_id = 7 AND m.hidden = 0 AND kind IN ('a','b')",
            "0 ('a','b') ",
        ),
        (
            "m.user_id IN (SELECT author FROM follower WHERE reader = 5)",
            "",
        ),
        (
            "EXISTS (SELECT 1 FROM follower f WHERE f.author = m.user_id AND f.reader = 5) AND m.score > 3",
            "3 ",
        ),
        (
            "(m.user_id IN (SELECT f.author FROM follower f WHERE 5 = f.reader) OR m.user_id = 5) AND m.body LIKE 'a%'",
            "'a%' ",
        ),
        // From where on is no matter of a row's, as far as it is read.
        ("m.user_id = 7 AND m.id < 900", ""),
        ("m.id <= 900 AND m.user_id = 7", ""),
        ("m.user_id = 7 AND m.id > 900", "900 "),
        ("m.user_id = 7 AND m.id BETWEEN 3 AND 900", "3 900 "),
        (
            "m.user_id = 7 AND m.id < 99999999999999999999",
            "99999999999999999999 ",
        ),
        ("m.user_id = 7 AND (m.id < 900 OR m.hidden = 1)", "900 1 "),
        // A second condition about authors is one like others.
        (
            "m.user_id IN (SELECT author FROM follower WHERE reader = 5) AND m.user_id > 8",
            "8 ",
        ),
    ] {
        assert_eq!(of(condition).as_deref(), Some(literals), "{condition}");
    }
}

#[test]
fn rows_that_depend_on_more_are_not_cached() {
    for condition in [
        "m.user_id IN (SELECT author FROM follower WHERE reader = 5 AND accepted = m.hidden)",
        "m.user_id = 7 AND m.created_at < NOW()",
        "m.user_id = 7 AND m.user_id NOT IN (SELECT whom FROM block WHERE who = m.hidden)",
        "m.user_id = 7 AND EXISTS (SELECT 1 FROM tag WHERE tag.message_id = m.id)",
        "m.user_id IN (1,2) AND m.user_id IN (2,3)",
        "m.user_id IN (SELECT author FROM follower WHERE reader = 5) AND m.user_id = 3",
        "(m.user_id = 7 OR (m.user_id = 8 AND m.hidden = 0))",
        // Authors whom another condition names, among whom the one about the reader decides.
        "m.user_id IN (SELECT author FROM follower WHERE reader = 5) AND m.user_id = m.hidden AND m.hidden = 3",
        "m.user_id = m.hidden AND m.hidden IN (1,2) AND m.user_id IN (SELECT author FROM follower WHERE reader = 5)",
        "(m.user_id = 7 OR (m.user_id = 8 AND m.hidden = 0)) AND m.user_id IN (SELECT author FROM follower WHERE reader = 5)",
    ] {
        assert_eq!(of(condition), None, "{condition}");
    }
}

#[test]
fn messages_may_be_joined_with_edges_and_nothing_else() {
    let joined = |items: &str, condition: &str| {
        let from = "FROM message m JOIN follower f ON f.author = m.user_id";
        cache_key_text(
            &format!("SELECT {items} {from} WHERE {condition} ORDER BY m.id DESC LIMIT 20"),
            false,
            &[],
        )
    };
    assert_eq!(
        joined("m.*", "f.reader = 5 AND m.hidden = 0").as_deref(),
        Some("0 ")
    );
    assert_eq!(
        joined("m.id, 'x', COALESCE(m.body, 'y')", "f.reader = 5").as_deref(),
        Some("")
    );
    for (items, condition) in [
        ("*", "f.reader = 5"),
        ("m.id, f.accepted", "f.reader = 5"),
        ("m.*", "f.reader = 5 AND f.accepted = m.hidden"),
        ("m.*", "f.reader = 5 AND m.user_id IN (1,2)"),
        ("m.id, COALESCE(f.accepted, m.id)", "f.reader = 5"),
    ] {
        assert_eq!(joined(items, condition), None, "{items} {condition}");
    }
}

/// The questions which authors count, or are blocked, up to the reader. `None`: all count, or no rows are kept.
fn author_queries(text: &str) -> Option<String> {
    let shape = shaped(text, false).unwrap_or_else(|refused| panic!("{refused:?}: {text}"));
    let (words, _) = read(text);
    let statement = FeedStatement {
        text: text.as_bytes(),
        words: &words,
        parameters: &[ParameterValue::Integer(-1), ParameterValue::Null],
        types: &[[8, 0]; 2],
        utc_offset: Some(0),
    };
    let lists = shape.row_dependencies?.lists;
    let queries = lists.iter().map(|list| {
        let sign = if list.admits { "" } else { "not " };
        let reader = list.reader(statement)?;
        Some(format!("{sign}{}{reader}", list.author_query(statement)?))
    });
    let queries: Vec<String> = queries.collect::<Option<_>>()?;
    (!queries.is_empty()).then(|| queries.join("; "))
}

#[test]
fn conditions_about_edges_are_queried_as_written() {
    let select = "SELECT m.id FROM message m";
    let end = "ORDER BY m.id DESC LIMIT 20";
    for (rest, expected) in [
        (
            "WHERE m.user_id IN (SELECT author FROM follower WHERE reader = 5 AND accepted = 1)",
            "SELECT DISTINCT follower.`author` FROM `follower` follower WHERE (accepted = 1) AND follower.`reader` = 5",
        ),
        (
            "WHERE EXISTS (SELECT 1 FROM follower `f` WHERE `f`.author = m.user_id AND (f.accepted = 1 OR f.author > 9) AND f.reader = 5)",
            "SELECT DISTINCT `f`.`author` FROM `follower` `f` WHERE ((f.accepted = 1 OR f.author > 9)) AND `f`.`reader` = 5",
        ),
        (
            "WHERE (m.user_id = 5 OR m.user_id IN (SELECT author FROM follower f WHERE f.reader = 5 AND NOT (f.accepted = 0)))",
            "SELECT DISTINCT f.`author` FROM `follower` f WHERE (NOT (f.accepted = 0)) AND f.`reader` = 5",
        ),
        (
            "WHERE m.user_id IN (SELECT author FROM follower WHERE reader = 5 AND accepted>? AND accepted < 9)",
            "SELECT DISTINCT follower.`author` FROM `follower` follower WHERE (accepted>-1) AND (accepted < 9) AND follower.`reader` = 5",
        ),
        (
            "JOIN follower f ON f.author = m.user_id AND f.accepted IN (1, 2) WHERE f.reader = 5 AND f.accepted > /* why */ 0 AND m.hidden = 0",
            "SELECT DISTINCT f.`author` FROM `follower` f WHERE (f.accepted IN (1, 2)) AND (f.accepted > /* why */ 0) AND f.`reader` = 5",
        ),
    ] {
        let text = format!("{select} {rest} {end}");
        assert_eq!(author_queries(&text).as_deref(), Some(expected), "{text}");
    }
    for rest in [
        "WHERE m.user_id IN (SELECT author FROM follower WHERE reader = 5)",
        "WHERE m.user_id IN (SELECT author FROM app.follower WHERE reader = 5)",
        "WHERE m.user_id IN (SELECT author FROM follower WHERE reader = 5 AND accepted <> ? AND accepted = ?)",
        "WHERE m.user_id IN (SELECT author FROM app.follower WHERE reader = 5 AND accepted = 1)",
        "WHERE (m.user_id IN (SELECT author FROM follower WHERE reader = 5 AND accepted = 1) OR \
         m.user_id IN (SELECT author FROM follower WHERE reader = 6))",
    ] {
        let text = format!("{select} {rest} {end}");
        assert_eq!(author_queries(&text), None, "{text}");
    }
}

#[test]
fn blocked_authors_are_queried() {
    let end =
        "m.user_id IN (SELECT author FROM follower WHERE reader = 5) ORDER BY m.id DESC LIMIT 20";
    let from = "SELECT m.id FROM message m";
    let asked = "SELECT DISTINCT block.`whom` FROM `block` block WHERE block.`who` = 5";
    for (condition, expected) in [
        ("m.user_id NOT IN (SELECT whom FROM block WHERE who = 5)", format!("not {asked}")),
        ("NOT (m.user_id IN (SELECT whom FROM block WHERE 5 = who))", format!("not {asked}")),
        ("NOT EXISTS (SELECT 1 FROM block WHERE who = 5 AND whom = m.user_id)", format!("not {asked}")),
        (
            "m.user_id NOT IN (SELECT b.who FROM block b WHERE b.whom = 5 AND b.whom > 3) AND m.user_id NOT IN (SELECT whom FROM block WHERE who = 5)",
            format!(
                "not SELECT DISTINCT b.`who` FROM `block` b WHERE (b.whom > 3) AND b.`whom` = 5; not {asked}"
            ),
        ),
        // The column that a unique key has beside the author.
        (
            "m.user_id NOT IN (SELECT author FROM follower WHERE accepted = 2 AND reader = 6)",
            "not SELECT DISTINCT follower.`author` FROM `follower` follower WHERE (accepted = 2) AND follower.`reader` = 6".to_owned(),
        ),
    ] {
        let text = format!("{from} WHERE {condition} AND {end}");
        assert_eq!(author_queries(&text).as_deref(), Some(&*expected), "{text}");
        assert_eq!(cache_key_text(&text, false, &[]).as_deref(), Some(""), "{text}");
    }
    let joined = "LEFT JOIN block b ON b.who = 5 AND b.whom = m.user_id";
    let asked = "not SELECT DISTINCT b.`whom` FROM `block` b WHERE b.`who` = 5";
    for condition in ["b.who IS NULL", "b.whom IS NULL"] {
        let text = format!("{from} {joined} WHERE {condition} AND {end}");
        assert_eq!(author_queries(&text).as_deref(), Some(asked), "{text}");
        assert_eq!(
            cache_key_text(&text, false, &[]).as_deref(),
            Some(""),
            "{text}"
        );
    }
    for (join, condition) in [
        // More than whose messages do not pass; of a column that may be NULL; of another author, or a reader below 0.
        (
            "",
            "(m.user_id NOT IN (SELECT whom FROM block WHERE who = 5) OR m.hidden = 1)",
        ),
        (
            "",
            "m.user_id NOT IN (SELECT whom FROM block WHERE who = m.hidden)",
        ),
        ("", "m.user_id NOT IN (SELECT whom FROM block)"),
        ("", "m.hidden NOT IN (SELECT whom FROM block WHERE who = 5)"),
        (
            "",
            "m.user_id NOT IN (SELECT whom FROM app.block WHERE who = 5)",
        ),
        (
            "",
            "NOT EXISTS (SELECT 1 FROM block WHERE who = 5 AND whom = m.hidden)",
        ),
        ("", "NOT EXISTS (SELECT 1 FROM block WHERE who = 5)"),
        (
            "",
            "m.user_id NOT IN (SELECT whom FROM block WHERE who = -5)",
        ),
        (joined, "b.who IS NOT NULL"),
        (joined, "m.hidden IS NULL"),
        (
            "LEFT JOIN block b ON b.who = m.hidden AND b.whom = m.user_id",
            "b.who IS NULL",
        ),
    ] {
        let text = format!("{from} {join} WHERE {condition} AND {end}");
        assert_eq!(author_queries(&text), None, "{text}");
    }
}

/// Rows that a message's row is made of, by a short sign for each; `None`: rows depend on more.
fn joined_rows(text: &str) -> Option<String> {
    let shape = shaped(text, false).unwrap_or_else(|refused| panic!("{refused:?}: {text}"));
    let signs = shape
        .row_dependencies?
        .joined_rows
        .into_iter()
        .map(|refer| {
            let by = match &refer.key_source {
                ReferenceKeySource::Author => "author",
                ReferenceKeySource::Column(name) => name,
            };
            let decides = if refer.filters { "!" } else { "" };
            format!("{}.{} = {by}{decides}", refer.table, refer.id)
        });
    Some(signs.collect::<Vec<_>>().join(", "))
}

#[test]
fn rows_may_be_made_of_those_that_the_message_refers_to() {
    let edge = "message m JOIN follower f ON f.author = m.user_id";
    for (items, from, condition, expected) in [
        (
            "m.id, u.name",
            "message m JOIN users u ON u.id = m.user_id",
            "m.user_id = 7",
            "users.id = author!",
        ),
        (
            "*",
            "message m LEFT JOIN users u ON m.user_id = u.id",
            "m.user_id = 7",
            "users.id = author",
        ),
        (
            "m.*",
            "message m LEFT JOIN users u ON m.user_id = u.id",
            "m.user_id = 7 AND u.name IS NULL",
            "users.id = author!",
        ),
        (
            "m.*, u.name",
            "message m LEFT JOIN users u ON m.user_id = u.id AND u.name <> 'x'",
            "m.user_id = 7",
            "users.id = author!",
        ),
        (
            "m.*, COALESCE(u.name, 'x')",
            &format!("{edge} JOIN users u ON u.id = m.user_id"),
            "f.reader = 5",
            "users.id = author!",
        ),
        (
            "m.*, u.name",
            &format!("{edge} JOIN users u ON u.id = f.author"),
            "f.reader = 5",
            "users.id = author!",
        ),
        (
            "m.*, h.name, u.name",
            "message m LEFT JOIN users h ON h.id = m.hidden JOIN users u ON m.user_id = u.id",
            "m.user_id IN (1,2) AND u.name LIKE 'a%'",
            "users.id = hidden, users.id = author!",
        ),
    ] {
        let text =
            format!("SELECT {items} FROM {from} WHERE {condition} ORDER BY m.id DESC LIMIT 20");
        assert_eq!(joined_rows(&text).as_deref(), Some(expected), "{text}");
    }
    for (items, from, condition) in [
        // An edge's own columns.
        (
            "m.*, f.accepted",
            &format!("{edge} JOIN users u ON u.id = f.author")[..],
            "f.reader = 5",
        ),
        // By what another row says, by a literal, or by more than a key.
        (
            "m.*",
            "message m LEFT JOIN users u ON u.id = m.user_id LEFT JOIN odd ON odd.id = u.id",
            "m.user_id = 7",
        ),
        ("m.*", "message m JOIN users u ON u.id = 8", "m.user_id = 7"),
        (
            "m.*",
            "message m LEFT JOIN block b ON b.who = 7 AND b.whom = m.user_id",
            "m.user_id = 7",
        ),
        (
            "m.*",
            "message m LEFT JOIN users u ON u.id = m.user_id AND m.created_at < NOW()",
            "m.user_id = 7",
        ),
        // One author, whom the reader follows or does not.
        (
            "m.*, u.name",
            "message m JOIN users u ON u.id = m.user_id",
            "m.user_id IN (SELECT author FROM follower WHERE reader = 5) AND u.id = 3",
        ),
        (
            "m.*, u.name",
            "message m JOIN users u ON u.id = m.user_id AND u.id IN (3,4)",
            "m.user_id IN (SELECT author FROM follower WHERE reader = 5)",
        ),
        (
            "m.*, u.name",
            &format!("{edge} JOIN users u ON u.id = f.author"),
            "f.reader = 5 AND u.id = 3",
        ),
    ] {
        let text =
            format!("SELECT {items} FROM {from} WHERE {condition} ORDER BY m.id DESC LIMIT 20");
        assert_eq!(joined_rows(&text), None, "{text}");
    }
}

#[test]
fn cursors_of_keys_are_no_matter_of_rows() {
    let by_time = |condition: &str| {
        cache_key_text(
            &format!(
                "SELECT id FROM message WHERE user_id = 7 AND {condition} ORDER BY created_at DESC, id DESC LIMIT 9"
            ),
            true,
            &[],
        )
    };
    let ten = "'2026-01-31 10:00:00'";
    for condition in [
        format!("created_at < {ten}"),
        format!("(created_at, id) < ({ten}, 9)"),
        format!("(created_at < {ten} OR (created_at = {ten} AND id < 9))"),
    ] {
        assert_eq!(by_time(&condition).as_deref(), Some(""), "{condition}");
    }
    assert_eq!(by_time("id < 9").as_deref(), Some("9 "));
    // Which of those of one key come first is the server's choice.
    let ties = "SELECT id FROM message WHERE user_id = 7 ORDER BY created_at DESC LIMIT 9";
    assert_eq!(cache_key_text(ties, true, &[]), None);
}

#[test]
fn values_of_parameters_stand_for_literals() {
    let text = "SELECT id FROM message WHERE user_id IN (?, ?) AND hidden = ? AND id < ? ORDER BY id DESC LIMIT ?";
    let values = |hidden| {
        let all = [3, 4, hidden, 900, 20].map(ParameterValue::Integer);
        cache_key_text(text, false, &all)
    };
    assert!(values(0).is_some());
    assert_eq!(values(0), values(0));
    assert_ne!(values(0), values(1));
    assert_eq!(cache_key_text(text, false, &[]), None);
    // A text that is binary is compared in another way than one that is not.
    let typed = |kind| {
        let all = [3, 4, 0, 900, 20].map(ParameterValue::Integer);
        cache_key_text_with(text, false, &all, kind).unwrap()
    };
    assert_eq!(typed([8, 0]), typed([8, 0]));
    assert_ne!(typed([8, 0]), typed([3, 0]));
    assert_ne!(typed([8, 0]), typed([8, 0x80]));
}

/// Of two bounds the one that is not read for certain says which rows pass, and the other one from where on: which is which has to be told.
#[test]
fn literals_that_change_places_are_others() {
    let of = |first: &str, second: &str| {
        let text = format!(
            "SELECT id FROM message WHERE user_id = 7 AND created_at < '{first}' AND created_at <= '{second}' \
             ORDER BY created_at DESC, id DESC LIMIT 9"
        );
        cache_key_text_with(&text, true, &[], LONGLONG).unwrap()
    };
    let (exact, finer) = ("2026-01-31 10:00:00", "2026-01-31 10:00:00.5");
    assert_ne!(of(exact, finer), of(finer, exact));
    assert_eq!(of(exact, finer), of("2026-02-01 00:00:00", finer));
    let of = |condition: &str| {
        let text = format!(
            "SELECT id FROM message WHERE user_id = 7 AND {condition} ORDER BY id DESC LIMIT 9"
        );
        cache_key_text_with(&text, false, &[], LONGLONG).unwrap()
    };
    assert_ne!(
        of("hidden = 1 AND score = 2"),
        of("hidden = 2 AND score = 1")
    );
}

#[test]
fn rows_may_be_made_of_those_that_subqueries_read_by_a_column_of_the_message() {
    for (items, expected) in [
        (
            "m.*, (SELECT COUNT(*) FROM tag t WHERE t.message_id = m.id) AS tags",
            "tag.message_id = id",
        ),
        (
            "m.id, (select count(*) from tag where m.id = tag.message_id and tag.name like 'a%')",
            "tag.message_id = id",
        ),
        (
            "m.id, COALESCE((SELECT SUM(t.message_id) FROM tag t WHERE t.message_id = m.id), 0)",
            "tag.message_id = id",
        ),
        (
            "m.*, EXISTS (SELECT 1 FROM block b WHERE b.whom = m.user_id AND b.who = 7) AS blocked",
            "block.whom = author",
        ),
        (
            "m.*, (SELECT v.name FROM users v WHERE v.id = m.user_id) AS author",
            "users.id = author",
        ),
        (
            "m.*, (SELECT v.name FROM users v WHERE v.id = m.hidden), (SELECT COUNT(*) FROM tag t WHERE t.message_id = m.id), \
             EXISTS (SELECT * FROM tag t WHERE t.message_id = m.id AND t.name = m.kind) AS own",
            "users.id = hidden, tag.message_id = id",
        ),
        (
            "m.id, (SELECT COUNT(*) FROM message n WHERE n.hidden = m.id) AS replies",
            "message.hidden = id",
        ),
    ] {
        let text = format!(
            "SELECT {items} FROM message m WHERE m.user_id IN (1, 2) ORDER BY m.id DESC LIMIT 20"
        );
        assert_eq!(joined_rows(&text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn authors_may_be_followed_through_rows_of_another_table() {
    let through = "users u JOIN follower f ON u.id = f.author";
    for (condition, expected) in [
        (
            format!("m.user_id IN (SELECT u.id FROM {through} WHERE f.reader = 7)"),
            Some("users.id = author!"),
        ),
        (
            "m.user_id IN (SELECT u.id FROM users u INNER JOIN follower f ON (u.id = f.author) WHERE f.reader = 7) AND m.hidden = 0".to_owned(),
            Some("users.id = author!"),
        ),
        (
            "m.user_id IN (SELECT f.author FROM follower f, users u WHERE f.reader = 7 AND f.author = u.id)".to_owned(),
            Some("users.id = author!"),
        ),
        // By another row's value, by no key, by several conditions, or beside other authors.
        (
            format!("m.user_id IN (SELECT u.id FROM {through} WHERE f.reader = 7 AND u.name = 'a')"),
            None,
        ),
        (
            "m.user_id IN (SELECT f.author FROM users u JOIN follower f ON u.id = f.reader WHERE f.reader = 7)".to_owned(),
            None,
        ),
        (
            format!("(m.user_id IN (SELECT u.id FROM {through} WHERE f.reader = 7) OR m.user_id = 7)"),
            None,
        ),
        (
            format!("m.user_id IN (SELECT u.id FROM {through} WHERE f.reader = 7) AND m.user_id IN (1, 2)"),
            None,
        ),
    ] {
        let text =
            format!("SELECT m.id FROM message m WHERE {condition} ORDER BY m.id DESC LIMIT 20");
        assert_eq!(joined_rows(&text).as_deref(), expected, "{text}");
    }
    let accepted = format!(
        "SELECT m.id FROM message m WHERE m.user_id IN (SELECT u.id FROM {through} WHERE f.reader = 7 AND f.accepted = 1) \
         ORDER BY m.id DESC LIMIT 20"
    );
    assert_eq!(
        joined_rows(&accepted).as_deref(),
        Some("users.id = author!")
    );
    let list = author_queries(&accepted).unwrap();
    assert!(list.contains("f.accepted = 1"), "{list}");
}
