//! Orders and joins that say the same in other words.

use super::{app, feed, read};
use crate::definition::TieOrder;
use crate::refusal::NarrowingRefusal;
use crate::shape::{FeedNames, StatementShape, TieColumn, shape};

fn by_time() -> FeedNames {
    FeedNames {
        ties: TieOrder::Id,
        ..feed(true)
    }
}

fn shaped(text: &str) -> Result<StatementShape, NarrowingRefusal> {
    let (words, query) = read(text);
    shape(&query?, &words, &by_time(), &app())
}

fn ordered(order: &str) -> Result<(bool, bool), NarrowingRefusal> {
    let shape = shaped(&format!(
        "SELECT m.* FROM message m WHERE m.user_id IN (1, 2) ORDER BY {order} LIMIT 9"
    ))?;
    assert!(!shape.ties && (shape.row_dependencies.is_none() || !shape.whole_keys));
    Ok((shape.whole_keys, shape.orders_ties()))
}

#[test]
fn behind_the_key_other_columns_may_order_its_messages() {
    for (order, expected) in [
        ("m.created_at DESC", (false, true)),
        ("m.created_at DESC, m.id DESC", (false, false)),
        ("m.created_at DESC, m.score DESC", (true, true)),
        ("m.created_at DESC, m.score, m.id DESC", (true, false)),
        ("m.created_at DESC, m.id", (true, false)),
    ] {
        assert_eq!(ordered(order), Ok(expected), "{order}");
    }
}

#[test]
fn null_comes_last_where_the_newest_come_first() {
    for (order, expected) in [
        ("m.created_at IS NULL, m.created_at DESC", Ok((false, true))),
        (
            "ISNULL(m.created_at), m.created_at DESC, m.id DESC",
            Ok((false, false)),
        ),
        // No column of this table may be NULL.
        (
            "ISNULL(m.created_at) DESC, m.created_at DESC",
            Ok((false, true)),
        ),
        ("m.score IS NULL DESC, m.created_at DESC", Ok((false, true))),
        (
            "m.created_at IS NOT NULL, m.created_at DESC",
            Err(NarrowingRefusal::NotUnderstood),
        ),
        ("MIN(m.created_at) DESC", Err(NarrowingRefusal::Order)),
    ] {
        assert_eq!(ordered(order), expected, "{order}");
    }
    let joined = |order: &str| {
        let text = format!(
            "SELECT m.* FROM message m JOIN users u ON u.id = m.user_id WHERE m.user_id = 7 ORDER BY {order}, m.created_at DESC LIMIT 9"
        );
        shaped(&text).err()
    };
    assert_eq!(joined("u.nick IS NULL"), Some(NarrowingRefusal::Order));
    assert_eq!(joined("u.name IS NULL"), None);
    // A row of a LEFT JOIN may be all NULL.
    let text = "SELECT m.id FROM message m LEFT JOIN users u ON u.id = m.hidden WHERE m.user_id = 7 ORDER BY u.id IS NULL, m.created_at DESC LIMIT 9";
    assert_eq!(shaped(text).err(), Some(NarrowingRefusal::Order));
}

#[test]
fn of_columns_with_one_name_the_reply_shows_the_one_that_orders() {
    let page = |items: &str| {
        let text = format!(
            "SELECT {items} FROM message m JOIN message n ON n.id = m.hidden WHERE m.user_id = 7 ORDER BY created_at DESC LIMIT 9"
        );
        shaped(&text).err()
    };
    // The table of messages is read twice here: only the names differ.
    assert_eq!(page("m.*"), Some(NarrowingRefusal::Joins));
    let page = |items: &str| {
        let text = format!(
            "SELECT {items} FROM message m JOIN users id ON id.id = m.user_id WHERE m.user_id = 7 ORDER BY id DESC LIMIT 9"
        );
        let (words, query) = read(&text);
        shape(&query.unwrap(), &words, &feed(false), &app()).err()
    };
    assert_eq!(page("m.*"), None);
    assert_eq!(page("m.id, id.name"), None);
    assert_eq!(page("m.body"), Some(NarrowingRefusal::Names));
    assert_eq!(page("*"), Some(NarrowingRefusal::Names));
    assert_eq!(page("m.id, m.hidden AS id"), Some(NarrowingRefusal::Names));
    assert_eq!(page("m.hidden AS id"), Some(NarrowingRefusal::Names));
}

#[test]
fn joins_are_read_in_other_words() {
    for (text, readers) in [
        (
            "SELECT m.id FROM message m JOIN membership g USING (group_id) WHERE m.user_id IN (1, 2) ORDER BY m.created_at DESC LIMIT 9",
            0,
        ),
        (
            "SELECT m.id FROM message m WHERE m.user_id IN (SELECT author FROM (SELECT f.author FROM follower f WHERE f.reader = 7) d) AND true ORDER BY m.created_at DESC LIMIT 9",
            1,
        ),
        (
            "WITH mine AS (SELECT f.author AS who FROM follower f WHERE f.reader = 7) SELECT m.id FROM message m WHERE m.user_id IN (SELECT a.who FROM mine a) \
             ORDER BY m.created_at DESC LIMIT 9",
            1,
        ),
        (
            "WITH mine AS (SELECT author FROM follower WHERE reader = 7), x AS (SELECT id FROM users) SELECT m.id FROM message m \
             WHERE m.user_id IN (SELECT author FROM mine) AND m.hidden NOT IN (SELECT id FROM x) ORDER BY m.created_at DESC LIMIT 9",
            1,
        ),
        (
            "SELECT m.id FROM message m JOIN (SELECT author FROM follower WHERE reader = 7) d ON d.author = m.user_id ORDER BY m.created_at DESC LIMIT 9",
            1,
        ),
        (
            "SELECT m.id FROM message m JOIN (SELECT users.id FROM users JOIN (SELECT f.author FROM follower f JOIN (SELECT users.id FROM users \
             WHERE users.id = 7) t1 ON f.reader = t1.id) AS t1 ON users.id = t1.author) t1 ON m.user_id = t1.id ORDER BY m.created_at DESC LIMIT 9",
            1,
        ),
        (
            "SELECT m.id FROM message m LEFT JOIN (SELECT f.author AS who, f.reader FROM follower f WHERE f.reader = 7) d ON d.who = m.user_id \
             WHERE d.who IS NOT NULL OR m.user_id = 7 ORDER BY m.created_at DESC LIMIT 9",
            1,
        ),
        (
            "SELECT m.id FROM message m LEFT JOIN users u ON (u.id) = (m.user_id) WHERE (m.user_id = 7 OR (EXISTS (SELECT f.author FROM follower f \
             WHERE f.reader = 7 AND (u.id) = (f.author)) AND u.id IS NOT NULL)) ORDER BY m.created_at DESC LIMIT 9",
            1,
        ),
    ] {
        let shape = shaped(text).unwrap_or_else(|why| panic!("{why:?}: {text}"));
        assert_eq!(shape.authors.readers.len(), readers, "{text}");
        let id = &shape.tie_breaks.first().unwrap().column;
        assert_eq!(id, &TieColumn::Id);
    }
    for text in [
        "SELECT * FROM message m JOIN membership g USING (group_id) WHERE m.user_id IN (1, 2) ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m JOIN users u ON u.id = m.user_id JOIN membership g USING (group_id) WHERE m.user_id = 1 ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m WHERE m.user_id IN (SELECT reader FROM (SELECT f.author FROM follower f WHERE f.reader = 7) d) ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m LEFT JOIN users u ON u.id = m.user_id WHERE m.user_id = 7 OR EXISTS (SELECT f.author FROM follower f \
         WHERE f.reader = 7 AND u.id = f.author OR u.id IS NULL) ORDER BY m.created_at DESC LIMIT 9",
        "WITH mine AS (SELECT author FROM follower WHERE reader = 7) SELECT m.id FROM message m JOIN mine a ON a.author = m.user_id ORDER BY m.created_at DESC LIMIT 9",
        "WITH users AS (SELECT author FROM follower WHERE reader = 7) SELECT m.id FROM message m JOIN Users u ON u.id = m.user_id WHERE m.user_id = 7 ORDER BY m.created_at DESC LIMIT 9",
        "WITH mine AS (SELECT author FROM follower WHERE reader = 7) SELECT m.id FROM message m WHERE m.user_id IN (SELECT author FROM mine WHERE author > 3) ORDER BY m.created_at DESC LIMIT 9",
        "WITH mine AS (SELECT author FROM follower WHERE reader = 7) SELECT m.id FROM message m WHERE m.user_id IN (SELECT reader FROM mine) ORDER BY m.created_at DESC LIMIT 9",
        // WITH may name what WITH named before.
        "WITH follower AS (SELECT name AS author FROM users), b AS (SELECT author FROM follower WHERE author IN (1, 2)) SELECT m.id FROM message m \
         WHERE m.user_id IN (SELECT author FROM b) ORDER BY m.created_at DESC LIMIT 9",
        // An ON may name a table around it.
        "SELECT m.id FROM message m JOIN block f ON f.who = m.id WHERE EXISTS (SELECT 1 FROM users u JOIN users v ON v.id = m.user_id AND v.id = f.author \
         JOIN follower f ON f.reader = 7) ORDER BY m.created_at DESC LIMIT 9",
        // A message's rows differ in what orders them.
        "SELECT m.id FROM message m JOIN tag t ON t.message_id = m.id WHERE m.user_id = 7 GROUP BY m.id ORDER BY m.created_at DESC, t.message_id, t.name, m.id LIMIT 9",
        "SELECT DISTINCT m.id FROM message m JOIN block b ON b.whom = m.user_id WHERE m.user_id = 7 ORDER BY m.created_at DESC, b.who, m.id LIMIT 9",
        "SELECT m.id FROM message m WHERE m.user_id = 7 ORDER BY m.created_at DESC, m.body, m.id LIMIT 9",
        // SELECTs in joins that are shown, order, hold the messages, group, or are named by a subquery.
        "SELECT m.id, d.author FROM message m JOIN (SELECT author FROM follower WHERE reader = 7) d ON d.author = m.user_id ORDER BY m.created_at DESC LIMIT 9",
        "SELECT * FROM message m JOIN (SELECT author FROM follower WHERE reader = 7) d ON d.author = m.user_id ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m JOIN (SELECT author FROM follower WHERE reader = 7) d ON d.author = m.user_id ORDER BY m.created_at DESC, d.author LIMIT 9",
        "SELECT u.id FROM users u JOIN (SELECT id, user_id, created_at FROM message WHERE user_id = 7) m ON m.user_id = u.id ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m JOIN (SELECT author FROM follower WHERE reader = 7 GROUP BY author) d ON d.author = m.user_id ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m JOIN (SELECT DISTINCT author FROM follower WHERE reader = 7) d ON d.author = m.user_id ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m JOIN (SELECT author FROM follower WHERE reader = 7) d ON d.author = m.user_id \
         WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = d.author) ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m JOIN (SELECT author FROM follower WHERE reader = 7) d ON d.reader = m.user_id ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m JOIN (SELECT f.reader AS user_id FROM follower f WHERE f.author = 7) d USING (user_id) ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m WHERE EXISTS (SELECT 1 FROM users u JOIN (SELECT f.reader FROM follower f WHERE f.reader = 7) d ON u.id = reader \
         WHERE author = m.user_id) ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m WHERE EXISTS (SELECT 1 FROM block b JOIN (SELECT u.nick FROM users u WHERE u.id = 7) d ON b.whom = 5 WHERE id = user_id) \
         ORDER BY m.created_at DESC LIMIT 9",
        "SELECT x.id, x.created_at FROM (SELECT d.id, d.created_at FROM message d WHERE EXISTS (SELECT 1 FROM users u JOIN (SELECT f.author AS user_id \
         FROM follower f WHERE f.reader = 7) d ON d.user_id = 5)) x ORDER BY x.created_at DESC, x.id DESC LIMIT 9",
        "SELECT x.id, x.created_at FROM (SELECT m.id, m.created_at FROM message m JOIN (SELECT author FROM follower WHERE reader = 7) d ON d.author = m.user_id) x \
         ORDER BY x.created_at DESC, x.id DESC LIMIT 9",
        "SELECT m.id, who FROM message m JOIN (SELECT f.author AS who FROM follower f WHERE f.reader = 7) d ON d.who = m.user_id ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m JOIN (SELECT o.id, o.computed FROM odd o) d ON d.id = m.user_id WHERE m.user_id IN (1, 2) ORDER BY m.created_at DESC LIMIT 9",
        // Both are true of the row of NULLs.
        "SELECT m.id FROM message m LEFT JOIN follower f ON f.author = m.user_id AND f.reader = 7 WHERE (f.author, f.reader) <=> (NULL, NULL) ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m LEFT JOIN follower f ON f.author = m.user_id AND f.reader = 7 WHERE f.author <=> NULL ORDER BY m.created_at DESC LIMIT 9",
        "SELECT m.id FROM message m LEFT JOIN follower f ON f.author = m.user_id AND f.reader = 7 WHERE f.accepted IS NOT TRUE ORDER BY m.created_at DESC LIMIT 9",
    ] {
        assert!(shaped(text).is_err(), "{text}");
    }
}

/// Copies of a message are alike if what they show of an edge is what the statement compares it with.
#[test]
fn copies_may_show_what_they_share() {
    let page = |items: &str, feed: &FeedNames| {
        let text = format!(
            "SELECT m.id, {items} FROM message m JOIN membership g ON g.group_id = m.user_id JOIN follower f ON f.author = m.user_id \
             WHERE f.reader = 7 AND f.accepted = 1 ORDER BY m.created_at DESC LIMIT 9"
        );
        let (words, query) = read(&text);
        let shape = shape(&query?, &words, feed, &app())?;
        Ok((shape.tie_breaks.len(), shape.row_dependencies.is_some()))
    };
    assert_eq!(page("f.reader, g.group_id", &by_time()), Ok((1, false)));
    assert_eq!(page("f.reader, g.who", &by_time()), Ok((3, false)));
    assert_eq!(page("g.who", &feed(true)), Err(NarrowingRefusal::Joins));
}

#[test]
fn rows_of_one_message_come_in_the_order_of_their_keys() {
    let narrowed = |text: &str, feed: &FeedNames| {
        let (words, query) = read(text);
        let shape = shape(&query?, &words, feed, &app())?;
        let own = shape.with_tie_break(text.as_bytes(), &words, feed);
        Ok(own.map_or(String::new(), |text| String::from_utf8(text).unwrap()))
    };
    let read = |items: &str, from: &str, order: &str| {
        let text = format!(
            "SELECT {items} FROM message m {from} WHERE m.user_id IN (1, 2) ORDER BY {order} LIMIT 9"
        );
        let ordered = narrowed(&text, &by_time()).map(|text| match text.split_once("ORDER BY ") {
            Some((_, order)) => order.trim_end_matches(" LIMIT 9").trim().to_owned(),
            None => text,
        });
        (ordered, narrowed(&text, &feed(true)).err())
    };
    let follower = "JOIN follower f ON f.author = m.user_id";
    let total = "m.created_at DESC, m.id DESC";
    let joins = || Some(NarrowingRefusal::Joins);
    for (items, from, order, expected) in [
        (
            "m.id, f.reader",
            follower,
            total,
            "m.created_at DESC, m.id DESC, f.`reader`, f.`author`",
        ),
        (
            "*",
            follower,
            "m.created_at DESC",
            "m.created_at DESC, m.`id` DESC, f.`reader`, f.`author`",
        ),
        // What has one row for each row of a table in order needs no key of its own.
        (
            "m.id, f.reader, u.name",
            "JOIN follower f ON f.author = m.user_id JOIN users u ON u.id = f.reader",
            total,
            "m.created_at DESC, m.id DESC, f.`reader`, f.`author`",
        ),
        (
            "DISTINCT m.id, f.author, f.reader",
            follower,
            total,
            "m.created_at DESC, m.id DESC, f.`reader`, f.`author`",
        ),
        // Nor does what is not shown.
        (
            "m.id, b.whom",
            "JOIN follower f ON f.author = m.user_id LEFT JOIN block b ON b.who = m.user_id",
            total,
            "m.created_at DESC, m.id DESC, b.`who`, b.`whom`",
        ),
    ] {
        let (ordered, refused) = read(items, from, order);
        assert_eq!(ordered.as_deref(), Ok(expected), "{items} {from}");
        assert_eq!(refused, joins(), "{items} {from}");
    }
    for (items, from) in [
        (
            "m.id, (SELECT COUNT(*) FROM users u WHERE u.id = f.reader)",
            follower,
        ),
        ("DISTINCT m.id, f.reader", follower),
        (
            "m.id, n.whom",
            "JOIN (SELECT b.who, b.whom FROM block b) n ON n.who = m.user_id",
        ),
    ] {
        assert!(read(items, from, total).0.is_err(), "{items} {from}");
    }
    // After a point a reserved word needs no quotes in the statement.
    let text = "SELECT m.id, app.follower.reader FROM app.message m JOIN app.follower ON app.follower.author = m.user_id WHERE m.user_id IN (1, 2) \
                ORDER BY m.created_at DESC, m.id DESC LIMIT 9";
    let reserved = text.replace("follower", "order");
    let tables: Vec<_> = app()
        .0
        .into_iter()
        .map(|(name, table)| match name {
            "follower" => ("order", table),
            _ => (name, table),
        })
        .collect();
    let (words, query) = super::read(&reserved);
    let shape = shape(
        &query.unwrap(),
        &words,
        &by_time(),
        &super::TestSchema(tables),
    )
    .unwrap();
    let own = shape
        .with_tie_break(reserved.as_bytes(), &words, &by_time())
        .unwrap();
    let own = String::from_utf8(own).unwrap();
    assert!(
        own.ends_with("m.id DESC, `order`.`reader`, `order`.`author` LIMIT 9"),
        "{own}"
    );
    // In a SELECT in FROM they have no names.
    let derived = "SELECT d.id, d.reader FROM (SELECT m.id, m.created_at, f.reader FROM message m JOIN follower f ON f.author = m.user_id \
                   WHERE m.user_id IN (1, 2)) d ORDER BY d.created_at DESC, d.id DESC LIMIT 9";
    assert_eq!(narrowed(derived, &by_time()).err(), joins());
    let page = "SELECT d.id, d.reader FROM (SELECT m.id, m.created_at, f.reader FROM message m JOIN follower f ON f.author = m.user_id \
                WHERE m.user_id IN (1, 2) ORDER BY m.created_at DESC, m.id DESC LIMIT 9) d ORDER BY d.created_at DESC, d.id DESC";
    assert_eq!(narrowed(page, &by_time()).err(), joins());
}

/// An inbox has each message once: of one author, no two share a key.
#[test]
fn keys_that_are_unique_with_the_author_order_one_authors_messages() {
    let mut tables = app();
    for (name, table) in &mut tables.0 {
        if *name == "message" {
            // The author and the key.
            table.unique_keys.push(vec![1, 3]);
        }
    }
    let shaped = |text: &str| {
        let (words, query) = read(text);
        shape(&query.unwrap(), &words, &feed(true), &tables)
    };
    let page = |condition: &str| {
        let text =
            format!("SELECT id FROM message WHERE {condition} ORDER BY created_at DESC LIMIT 9");
        shaped(&text).map(|shape| shape.ties)
    };
    assert_eq!(page("user_id = 7"), Ok(false));
    assert_eq!(page("hidden = 0 AND user_id = ?"), Ok(false));
    // Of several authors, two may share one.
    assert_eq!(page("user_id IN (7, 8)"), Ok(true));
    assert_eq!(page("(user_id = 7 OR user_id = 8)"), Ok(true));
    // Turned round, as chats show it.
    let turned = |condition: &str| {
        let text = format!(
            "SELECT p.created_at, p.body FROM (SELECT created_at, body FROM message WHERE {condition} ORDER BY created_at DESC LIMIT 9) p \
             ORDER BY p.created_at ASC"
        );
        shaped(&text).is_ok()
    };
    assert!(turned("user_id = 7"));
}
