//! Pages of a UNION, and pages within another SELECT.

use super::{app, feed, read, statement};
use crate::binding::FeedColumnTypes;
use crate::definition::TieOrder;
use crate::narrowed_text::{CandidateCondition, NarrowingForm};
use crate::refusal::NarrowingRefusal;
use crate::shape::{FeedNames, StatementShape, shape};
use headwater_timeline::{IntegerColumnType, KeyType};

const INTEGER: IntegerColumnType = IntegerColumnType {
    bits: 32,
    signed: false,
};

fn by_time() -> FeedNames {
    FeedNames {
        ties: TieOrder::Id,
        ..feed(true)
    }
}

fn shaped(text: &str, names: &FeedNames) -> Result<StatementShape, NarrowingRefusal> {
    let (words, query) = read(text);
    shape(&query?, &words, names, &app())
}

/// The narrowed text, in which a page within another SELECT is to have so many rows.
fn narrowed(text: &str, names: &FeedNames, rows: Option<u64>) -> String {
    let shape = shaped(text, names).unwrap_or_else(|why| panic!("{why:?}: {text}"));
    let (words, _) = read(text);
    let ids = (CandidateCondition::Ids(&[7_u64, 5]), rows);
    let text = shape.narrow(text.as_bytes(), &words, names, ids, NarrowingForm::PLAIN);
    String::from_utf8(text.unwrap()).unwrap()
}

const OWN: &str = "SELECT m.id, m.body, m.created_at FROM message m WHERE m.user_id = 7";
const FOLLOWED: &str = "SELECT n.id, n.body, n.created_at FROM message n JOIN follower f ON f.author = n.user_id WHERE f.reader = 7";

#[test]
fn each_select_of_a_union_is_narrowed() {
    let own = "SELECT m.id, m.body, m.created_at FROM message m WHERE ( m.user_id = 7 ) AND m.`id` IN (7,5) ";
    let followed = "SELECT n.id, n.body, n.created_at FROM message n JOIN follower f ON f.author = n.user_id WHERE ( f.reader = 7";
    let among = " AND n.`id` IN (7,5) ";
    for (text, expected) in [
        (
            format!("SELECT d.* FROM ({OWN} UNION {FOLLOWED}) d ORDER BY d.created_at DESC LIMIT 9").replace("d.*", "*"),
            format!("SELECT * FROM ({own}UNION {followed}){among}) d ORDER BY d.created_at DESC, d.`id` DESC LIMIT 9"),
        ),
        (
            format!("SELECT d.id AS x FROM ({OWN} UNION ALL {FOLLOWED}) AS d ORDER BY d.created_at DESC LIMIT 9 OFFSET 9"),
            format!("SELECT d.id AS x FROM ({own}UNION ALL {followed}){among}) AS d ORDER BY d.created_at DESC, d.`id` DESC LIMIT 9 OFFSET 9"),
        ),
        (
            format!("{OWN} UNION {FOLLOWED} ORDER BY created_at DESC LIMIT 9"),
            format!("{own}UNION {followed} ) AND n.`id` IN (7,5) ORDER BY created_at DESC, `id` DESC LIMIT 9"),
        ),
        (
            format!("({OWN} ORDER BY m.created_at DESC LIMIT 9) UNION ALL ({FOLLOWED} ORDER BY n.created_at DESC, n.id DESC LIMIT 20) ORDER BY created_at DESC LIMIT 9"),
            format!("({own}ORDER BY m.created_at DESC, m.`id` DESC LIMIT 9) UNION ALL ({followed} ) AND n.`id` IN (7,5) ORDER BY n.created_at DESC, n.id DESC LIMIT 20) ORDER BY created_at DESC, `id` DESC LIMIT 9"),
        ),
        (
            "SELECT * FROM (SELECT * FROM message WHERE user_id = 7 UNION ALL SELECT message.* FROM message JOIN follower f ON f.author = user_id WHERE f.reader = 7) AS d ORDER BY d.created_at DESC LIMIT 9".to_owned(),
            "SELECT * FROM (SELECT * FROM message WHERE ( user_id = 7 ) AND message.`id` IN (7,5) UNION ALL SELECT message.* FROM message JOIN follower f ON f.author = user_id WHERE ( f.reader = 7) AND message.`id` IN (7,5) ) AS d ORDER BY d.created_at DESC, d.`id` DESC LIMIT 9".to_owned(),
        ),
    ] {
        assert_eq!(narrowed(&text, &by_time(), None), expected);
        let shape = shaped(&text, &by_time()).unwrap();
        assert_eq!((shape.authors.readers.len(), shape.authors.single.len()), (1, 1));
        assert!(shape.row_dependencies.is_none() && !shape.ties);
    }
}

#[test]
fn a_union_that_hides_what_orders_its_rows_is_relayed() {
    let union = |own: &str, followed: &str, end: &str| {
        let shown = if end.contains("made") {
            "d.id"
        } else {
            "d.body"
        };
        let text = |union: &str| format!("SELECT {shown} FROM ({own} {union} {followed}) d {end}");
        let all = shaped(&text("UNION ALL"), &by_time()).map(|shape| shape.ties);
        let distinct = shaped(&text("UNION"), &by_time()).map(|shape| shape.ties);
        // What differs between its SELECTs is refused of either kind.
        if all.is_err() && !matches!(all, Err(NarrowingRefusal::Joins)) {
            assert!(distinct.is_err(), "{}", text("UNION"));
        }
        all
    };
    let end = "ORDER BY d.created_at DESC LIMIT 9";
    assert_eq!(union(OWN, FOLLOWED, end), Ok(false));
    // Without the id among the columns, the server orders ties.
    let without_id = |text: &str| text.replace("m.id, ", "").replace("n.id, ", "");
    assert_eq!(
        union(&without_id(OWN), &without_id(FOLLOWED), end),
        Ok(true)
    );
    for (own, followed, end, why) in [
        // Other columns, in another order, of another table.
        (
            OWN.replace("m.id, ", ""),
            FOLLOWED.to_owned(),
            end,
            NarrowingRefusal::Structure,
        ),
        (
            OWN.replace("m.id, m.body", "m.hidden, m.body"),
            FOLLOWED.to_owned(),
            end,
            NarrowingRefusal::Structure,
        ),
        (
            OWN.replace("m.body", "'own' AS body"),
            FOLLOWED.to_owned(),
            end,
            NarrowingRefusal::Structure,
        ),
        (
            OWN.replace("m.id, m.body, m.created_at", "m.*"),
            FOLLOWED.to_owned(),
            end,
            NarrowingRefusal::Structure,
        ),
        (
            OWN.to_owned(),
            FOLLOWED.replace("n.created_at", "n.deleted_at"),
            end,
            NarrowingRefusal::Order,
        ),
        (
            OWN.to_owned(),
            FOLLOWED.replace("f.reader = 7", "n.hidden = 7"),
            end,
            NarrowingRefusal::Authors,
        ),
        (
            format!("({OWN} LIMIT 9)"),
            FOLLOWED.to_owned(),
            end,
            NarrowingRefusal::Limit,
        ),
        (
            format!("({OWN} ORDER BY m.created_at LIMIT 9)"),
            FOLLOWED.to_owned(),
            end,
            NarrowingRefusal::Order,
        ),
        (
            format!("({OWN} ORDER BY m.body DESC LIMIT 9)"),
            FOLLOWED.to_owned(),
            end,
            NarrowingRefusal::Order,
        ),
        (
            OWN.replace("SELECT", "SELECT DISTINCT"),
            FOLLOWED.to_owned(),
            end,
            NarrowingRefusal::Structure,
        ),
        (
            OWN.to_owned(),
            FOLLOWED.to_owned(),
            "GROUP BY d.body ORDER BY d.created_at DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
    ] {
        assert_eq!(union(&own, &followed, end), Err(why), "{own} {followed}");
    }
}

#[test]
fn a_select_of_a_union_has_a_whole_page_and_the_widest_bound() {
    let bind = |own: &str, followed: &str, end: &str| {
        let text = format!(
            "({OWN} AND {own} ORDER BY m.created_at DESC LIMIT 9) UNION ({FOLLOWED} AND {followed}) ORDER BY created_at DESC {end}"
        );
        let (words, _) = read(&text);
        let types = FeedColumnTypes {
            id: INTEGER,
            author: INTEGER,
            key: Some(KeyType::Datetime(0)),
            has_follow_copies: false,
            has_mixed_signs: false,
        };
        let statement = statement(&text, &words);
        shaped(&text, &by_time()).unwrap().bind(statement, types)
    };
    let (early, late) = (
        "m.created_at < '2026-01-01'",
        "n.created_at <= '2026-02-02'",
    );
    let both = bind(early, late, "LIMIT 9").unwrap();
    assert_eq!(
        both.upper,
        bind("m.created_at <= '2026-02-02'", late, "LIMIT 9")
            .unwrap()
            .upper
    );
    assert!(both.upper.is_some());
    assert_eq!(bind(early, "n.hidden = 0", "LIMIT 9").unwrap().upper, None);
    assert!(bind(early, late, "LIMIT 5 OFFSET 4").is_ok());
    for end in ["LIMIT 10", "LIMIT 5 OFFSET 5"] {
        assert_eq!(
            bind(early, late, end),
            Err(NarrowingRefusal::Limit),
            "{end}"
        );
    }
}

#[test]
fn a_page_within_another_select_is_narrowed_where_it_stands() {
    let page = "SELECT m.id, m.body, m.created_at FROM message m WHERE m.user_id IN (1, 2) ORDER BY m.created_at DESC LIMIT 9";
    let among = "SELECT m.id, m.body, m.created_at FROM message m WHERE ( m.user_id IN (1, 2) ) AND m.`id` IN (7,5)";
    let whole = "AND (SELECT COUNT(*) FROM (SELECT DISTINCT m.`id` FROM message m WHERE ( m.user_id IN (1, 2) ) AND m.`id` IN (7,5) LIMIT 9) headwater_page) >= 9";
    let order = "ORDER BY m.created_at DESC, m.`id` DESC LIMIT 9";
    for (before, after, ordered) in [
        (
            "SELECT p.*, t.name FROM (",
            ") AS p LEFT JOIN tag t ON t.message_id = p.id ORDER BY p.created_at DESC",
            ") AS p LEFT JOIN tag t ON t.message_id = p.id ORDER BY p.created_at DESC, p.`id` DESC",
        ),
        (
            "SELECT p.id, COUNT(*) FROM (",
            ") p JOIN tag t ON t.message_id = p.id GROUP BY p.id ORDER BY p.id DESC",
            "",
        ),
        (
            "WITH page AS (",
            ") SELECT x.id, u.name FROM users u JOIN page x ON x.id = u.id ORDER BY x.created_at DESC",
            ") SELECT x.id, u.name FROM users u JOIN page x ON x.id = u.id ORDER BY x.created_at DESC, x.`id` DESC",
        ),
        (
            "SELECT a.* FROM message a JOIN users u ON u.id = a.user_id WHERE a.hidden = 0 AND a.id IN (SELECT p.id FROM (",
            ") AS p) ORDER BY a.created_at DESC",
            ") AS p) ORDER BY a.created_at DESC, a.`id` DESC",
        ),
    ] {
        let text = format!("{before}{page}{after}");
        let after = if ordered.is_empty() { after } else { ordered };
        assert_eq!(
            narrowed(&text, &by_time(), Some(9)),
            format!("{before}{among}  {whole} {order}{after}")
        );
        assert_eq!(
            narrowed(&text, &by_time(), None),
            format!("{before}{among} {order}{after}")
        );
        let shape = shaped(&text, &by_time()).unwrap();
        assert!(shape.row_dependencies.is_none() && shape.replaceable_list.is_none());
    }
}

#[test]
fn a_select_that_has_rows_without_the_page_is_relayed() {
    let page = "SELECT id, body FROM message WHERE user_id IN (1, 2) ORDER BY id DESC LIMIT 9";
    for text in [
        "SELECT COUNT(*) FROM (PAGE) p",
        "SELECT u.name FROM users u LEFT JOIN (PAGE) p ON p.id = u.id",
        "SELECT u.name FROM users u WHERE u.id NOT IN (SELECT p.id FROM (PAGE) p)",
        "SELECT u.name FROM users u WHERE u.id = 1 OR u.id IN (SELECT p.id FROM (PAGE) p)",
        "SELECT u.name FROM users u WHERE EXISTS (SELECT 1 FROM (PAGE) p)",
        "SELECT a.id FROM (PAGE) a JOIN (PAGE) b ON b.id = a.id",
        "WITH p AS (PAGE) SELECT a.id FROM p a JOIN p b ON b.id = a.id",
        "WITH p AS (PAGE) SELECT id FROM users",
        "WITH RECURSIVE p AS (PAGE) SELECT id FROM p",
        "SELECT SLEEP(1) FROM (PAGE) p",
        "SELECT p.id FROM (PAGE) p JOIN unknown n ON n.id = p.id",
        "SELECT p.id FROM (PAGE) p LIMIT 5",
        "SELECT p.id FROM (PAGE) p FOR UPDATE",
        "SELECT p.id FROM (PAGE) p HAVING COUNT(*) > 1",
        "SELECT p.id FROM (PAGE)",
        "SELECT p.id FROM (PAGE) p ORDER BY MAX(p.id)",
        // Tables of an ON, and one whose name differs from that of WITH by its case.
        "SELECT p.id FROM (PAGE) p LEFT JOIN users u ON u.id = p.id AND EXISTS (SELECT 1 FROM unknown) ORDER BY p.id DESC",
        "SELECT p.id FROM users u JOIN (PAGE) p ON p.id = u.id AND EXISTS (SELECT 1 FROM unknown) ORDER BY p.id DESC",
        "WITH Users2 AS (PAGE) SELECT u.id FROM users2 u ORDER BY u.id DESC",
        // Orders that do not tell messages apart, and rows of one message before them.
        "SELECT p.id, u.name FROM (PAGE) p JOIN users u ON u.id = p.id",
        "SELECT p.id, u.name FROM (PAGE) p LEFT JOIN users u ON u.id = p.id ORDER BY u.name",
        "SELECT p.body FROM (PAGE) p ORDER BY p.body DESC",
        "SELECT p.id, t.name FROM (PAGE) p JOIN tag t ON t.message_id = p.id ORDER BY p.id DESC",
        "SELECT p.body, COUNT(*) FROM (PAGE) p GROUP BY p.body ORDER BY p.body",
        "SELECT DISTINCT p.body FROM (PAGE) p",
        "SELECT DISTINCT u.name FROM (PAGE) p JOIN users u ON u.id = p.id ORDER BY p.id DESC",
        "SELECT p.id, t.name FROM (PAGE) p JOIN tag t ON t.message_id = p.id GROUP BY p.id ORDER BY p.id DESC",
        "SELECT p.id, t.name FROM (PAGE) p LEFT JOIN tag t ON t.message_id = p.id WHERE t.name LIKE 'x%' ORDER BY p.id DESC",
        "SELECT p.id, t.name FROM (PAGE) p LEFT JOIN tag t ON t.message_id = p.id ORDER BY p.id DESC",
        "SELECT 'id', p.body FROM (PAGE) p ORDER BY id DESC",
        "SELECT n.id FROM message n WHERE n.user_id IN (SELECT p.id FROM (PAGE) p) ORDER BY n.id DESC",
        "WITH Page AS (PAGE) SELECT a.id FROM Page a JOIN page b ON b.id = a.id ORDER BY a.id DESC",
    ] {
        let text = text.replace("PAGE", page);
        assert!(shaped(&text, &feed(false)).is_err(), "{text}");
    }
    for text in [
        "SELECT p.id FROM (PAGE) p",
        "SELECT * FROM (PAGE) p ORDER BY id",
        "SELECT DISTINCT p.id, u.name FROM (PAGE) p LEFT JOIN users u ON u.id = p.id ORDER BY p.id DESC",
        "SELECT p.id, t.name FROM (PAGE) p LEFT JOIN tag t ON t.message_id = p.id ORDER BY p.body, p.id, t.name, t.message_id",
        "SELECT p.id, COUNT(t.name) FROM (PAGE) p JOIN tag t ON t.message_id = p.id GROUP BY p.id ORDER BY p.id DESC",
        "SELECT n.* FROM message n WHERE n.id IN (SELECT p.id FROM (PAGE) p) ORDER BY n.id DESC",
    ] {
        let text = text.replace("PAGE", page);
        assert_eq!(shaped(&text, &feed(false)).err(), None, "{text}");
    }
}

/// A table is named wherever it stands.
#[test]
fn every_table_around_a_page_is_named() {
    let text = "SELECT u.id FROM users u JOIN (SELECT id FROM message WHERE user_id IN (1, 2) ORDER BY id DESC LIMIT 9) p \
                ON p.id = u.id AND EXISTS (SELECT 1 FROM block) ORDER BY p.id DESC";
    let (_, query) = read(text);
    let named = query.unwrap().tables();
    let names: Vec<&str> = named.iter().map(|table| &*table.table).collect();
    assert_eq!(names, ["block", "message", "users"]);
}

/// By the time, the id comes behind it outside of the page, too.
#[test]
fn ties_are_broken_in_the_select_around_a_page() {
    let page = "SELECT m.id, m.body, m.created_at AS made FROM message m WHERE m.user_id IN (1, 2) ORDER BY m.created_at DESC LIMIT 9";
    let around = |outer: &str, end: &str, names: &FeedNames| {
        let text = format!("{outer} FROM ({page}) p LEFT JOIN tag t ON t.message_id = p.id {end}");
        let shape = shaped(&text, names)?;
        let (words, _) = read(&text);
        let ids = (CandidateCondition::Ids(&[7_u64, 5]), None);
        let text = shape.narrow(text.as_bytes(), &words, names, ids, NarrowingForm::PLAIN);
        let text = String::from_utf8(text.unwrap()).unwrap();
        Ok::<_, NarrowingRefusal>(text.trim_end().ends_with("p.`id` DESC"))
    };
    for (outer, end, expected) in [
        ("SELECT p.id, t.name", "ORDER BY p.made DESC", Ok(true)),
        ("SELECT p.id, t.name", "ORDER BY made DESC", Ok(true)),
        (
            "SELECT p.id, t.name",
            "ORDER BY p.made DESC, t.name",
            Ok(true),
        ),
        (
            "SELECT p.id, t.name",
            "ORDER BY p.made DESC, p.id",
            Ok(false),
        ),
        (
            "SELECT p.id, COUNT(*)",
            "GROUP BY p.id ORDER BY p.made DESC",
            Ok(true),
        ),
        (
            "SELECT DISTINCT p.id, p.made",
            "ORDER BY p.made DESC",
            Ok(true),
        ),
        (
            "SELECT DISTINCT p.made",
            "ORDER BY p.made DESC",
            Err(NarrowingRefusal::Order),
        ),
        (
            "SELECT p.id, t.name",
            "ORDER BY t.name DESC",
            Err(NarrowingRefusal::Order),
        ),
    ] {
        assert_eq!(around(outer, end, &by_time()), expected, "{outer} {end}");
    }
    // The server orders ties: candidates have none.
    let text = format!("SELECT p.id FROM ({page}) p ORDER BY p.made DESC");
    assert!(shaped(&text, &feed(true)).unwrap().ties);
}

#[test]
fn a_zone_counts_around_a_page_as_within() {
    let text = |filter: &str| {
        format!(
            "SELECT p.id FROM (SELECT id FROM message WHERE user_id IN (1, 2) ORDER BY id DESC LIMIT 9) p JOIN message n ON n.id = p.id \
             WHERE {filter} ORDER BY p.id DESC"
        )
    };
    let zoned = |filter| shaped(&text(filter), &feed(false)).map(|shape| shape.zoned);
    assert_eq!(zoned("n.hidden = 0"), Ok(false));
    assert_eq!(zoned("n.deleted_at > '2026-01-01'"), Ok(true));
    assert_eq!(zoned("n.body = 5"), Err(NarrowingRefusal::Types));
}
