//! The newest message of each author, in its common spellings.

use headwater_timeline::IntegerColumnType;

use super::{feed, read, shaped, statement};
use crate::binding::{FeedColumnTypes, FeedStatement};
use crate::narrowed_text::{CandidateCondition, NarrowingForm};

fn types() -> FeedColumnTypes {
    let unsigned = IntegerColumnType {
        bits: 32,
        signed: false,
    };
    FeedColumnTypes {
        id: unsigned,
        author: unsigned,
        key: None,
        has_follow_copies: false,
        has_mixed_signs: false,
    }
}

/// The query for the newest ids of authors, and the text that is narrowed to some ids.
fn queries(text: &str) -> (String, String) {
    let shape = shaped(text, false).unwrap_or_else(|why| panic!("{why:?}: {text}"));
    let newest = shape
        .newest
        .as_ref()
        .unwrap_or_else(|| panic!("not of the newest: {text}"));
    let (words, _) = read(text);
    let statement = statement(text, &words);
    assert!(newest.fits(statement));
    newest.numbers.bind_count(statement, types()).unwrap();
    shape.bind(statement, types()).unwrap();
    let numbers = newest
        .numbers
        .count_by_author(statement, &feed(false), &[4, 6]);
    let candidates = (CandidateCondition::Ids(&[31_u64, 27]), None);
    let narrowed = shape.narrow(
        text.as_bytes(),
        &words,
        &feed(false),
        candidates,
        NarrowingForm::PLAIN,
    );
    let narrowed = String::from_utf8(narrowed.unwrap()).unwrap();
    (numbers.unwrap(), narrowed)
}

const IN: &str = "SELECT m.* FROM message m WHERE m.id IN (SELECT MAX(id) FROM message WHERE user_id IN (SELECT author FROM follower WHERE reader = 7) GROUP BY user_id) ORDER BY m.id DESC";

#[test]
fn the_newest_ids_and_the_narrowed_text_are_of_the_same_messages() {
    for (text, numbers, narrowed) in [
        (
            IN,
            "SELECT message.`user_id`, MAX(message.`id`) FROM message WHERE message.`user_id` IN (4,6) AND (user_id IN (SELECT author FROM follower WHERE reader = 7)) GROUP BY message.`user_id`",
            "SELECT m.* FROM message m WHERE m.id IN (SELECT MAX(id) FROM message WHERE ( user_id IN (SELECT author FROM follower WHERE reader = 7) ) AND message.`id` IN (31,27) GROUP BY user_id) ORDER BY m.id DESC",
        ),
        (
            "SELECT m.id, m.body FROM message m JOIN (SELECT n.user_id, MAX(n.id) AS last FROM message n JOIN follower f ON f.author = n.user_id WHERE f.reader = 7 GROUP BY n.user_id) d ON d.last = m.id AND d.user_id = m.user_id ORDER BY d.last DESC LIMIT 20",
            "SELECT n.`user_id`, MAX(n.`id`) FROM message n JOIN follower f ON f.author = n.user_id WHERE n.`user_id` IN (4,6) AND (f.reader = 7) GROUP BY n.`user_id`",
            "SELECT m.id, m.body FROM message m JOIN (SELECT n.user_id, MAX(n.id) AS last FROM message n JOIN follower f ON f.author = n.user_id WHERE ( f.reader = 7 ) AND n.`id` IN (31,27) GROUP BY n.user_id) d ON d.last = m.id AND d.user_id = m.user_id ORDER BY d.last DESC LIMIT 20",
        ),
        (
            "SELECT t.id, t.body FROM (SELECT m.*, ROW_NUMBER() OVER (PARTITION BY m.user_id ORDER BY m.id DESC) AS n FROM message m WHERE m.user_id IN (1, 2)) t WHERE t.n = 1 ORDER BY t.id DESC",
            "SELECT m.`user_id`, MAX(m.`id`) FROM message m WHERE m.`user_id` IN (4,6) AND (m.user_id IN (1, 2)) GROUP BY m.`user_id`",
            "SELECT t.id, t.body FROM (SELECT m.*, ROW_NUMBER() OVER (PARTITION BY m.user_id ORDER BY m.id DESC) AS n FROM message m WHERE ( m.user_id IN (1, 2)) AND m.`id` IN (31,27) ) t WHERE t.n = 1 ORDER BY t.id DESC",
        ),
        (
            "SELECT m.id, m.body FROM message m WHERE m.user_id IN (1, 2) AND NOT EXISTS (SELECT 1 FROM message n WHERE n.user_id = m.user_id AND n.id > m.id) AND m.hidden = 0 ORDER BY m.id DESC LIMIT 20",
            "SELECT `message`.`user_id`, MAX(`message`.`id`) FROM `message` WHERE `message`.`user_id` IN (4,6) GROUP BY `message`.`user_id`",
            "SELECT m.id, m.body FROM message m WHERE ( m.user_id IN (1, 2) AND NOT EXISTS (SELECT 1 FROM message n WHERE n.user_id = m.user_id AND n.id > m.id) AND m.hidden = 0 ) AND m.`id` IN (31,27) ORDER BY m.id DESC LIMIT 20",
        ),
        (
            "SELECT m.* FROM message m LEFT JOIN message n ON n.user_id = m.user_id AND m.id < n.id JOIN users u ON u.id = m.user_id WHERE n.id IS NULL AND m.user_id IN (1, 2) ORDER BY m.id DESC",
            "SELECT `message`.`user_id`, MAX(`message`.`id`) FROM `message` WHERE `message`.`user_id` IN (4,6) GROUP BY `message`.`user_id`",
            "SELECT m.* FROM message m LEFT JOIN message n ON n.user_id = m.user_id AND m.id < n.id JOIN users u ON u.id = m.user_id WHERE ( n.id IS NULL AND m.user_id IN (1, 2) ) AND m.`id` IN (31,27) ORDER BY m.id DESC",
        ),
    ] {
        let (of_numbers, of_rows) = queries(text);
        assert_eq!(of_numbers, numbers, "{text}");
        assert_eq!(of_rows, narrowed, "{text}");
    }
}

#[test]
fn a_time_may_order_the_newest() {
    let of = |order: &str| {
        let text = format!(
            "SELECT m.* FROM message m JOIN (SELECT MAX(id) AS last FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d ON d.last = m.id ORDER BY {order} LIMIT 9"
        );
        let shape = shaped(&text, false).unwrap_or_else(|why| panic!("{why:?}: {text}"));
        let newest = shape.newest.unwrap();
        let (words, _) = read(&text);
        let numbers =
            newest
                .numbers
                .count_by_author(statement(&text, &words), &feed(false), &[4, 6]);
        let time = newest.order.time_descending;
        let away = FeedStatement {
            utc_offset: None,
            ..statement(&text, &words)
        };
        let order = (time, newest.order.id_descending);
        let fits = newest.fits(away) && newest.numbers.bind_count(away, types()).is_ok();
        (order, numbers.unwrap(), fits)
    };
    let grouped = "SELECT message.`user_id` AS a, MAX(message.`id`) AS n FROM message WHERE message.`user_id` IN (4,6) AND (user_id IN (1, 2)) GROUP BY message.`user_id`";
    let joined = |column: &str| {
        format!(
            "SELECT q.a, q.n, CAST(m.`{column}` AS CHAR) FROM ({grouped}) q JOIN `message` m ON m.`id` = q.n"
        )
    };
    let created = joined("created_at");
    let (order, numbers, fits) = of("m.created_at DESC");
    assert_eq!(
        (order, numbers, fits),
        ((Some(true), None), created.clone(), true)
    );
    let (order, numbers, _) = of("created_at, m.id DESC");
    assert_eq!((order, numbers), ((Some(false), Some(true)), created));
    // Shown in the session's time zone.
    let (order, numbers, fits) = of("m.deleted_at, id");
    let deleted = joined("deleted_at");
    assert_eq!(
        (order, numbers, fits),
        ((Some(false), Some(false)), deleted, false)
    );
    let (order, numbers, _) = of("m.id DESC, m.created_at");
    assert_eq!(order, (None, Some(true)));
    assert!(!numbers.contains("CAST"), "{numbers}");
}

#[test]
fn other_spellings_are_read_too() {
    for text in [
        "WITH d AS (SELECT MAX(id) AS last FROM message WHERE user_id IN (1, 2) GROUP BY user_id) SELECT m.* FROM d JOIN message m ON m.id = d.last LEFT JOIN users u ON u.id = m.user_id ORDER BY m.id DESC",
        "WITH t AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY id DESC) rn FROM message WHERE user_id IN (1, 2)) SELECT * FROM t WHERE rn = 1 ORDER BY id DESC LIMIT 5",
        "SELECT m.id FROM (SELECT MAX(id) AS last FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d INNER JOIN message m ON d.last = m.id WHERE m.hidden = 0 ORDER BY m.id",
        "SELECT id FROM message WHERE id IN (SELECT d.last FROM (SELECT MAX(id) AS last FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d) ORDER BY id DESC",
    ] {
        assert!(shaped(text, false).unwrap().newest.is_some(), "{text}");
    }
}

#[test]
fn what_is_not_the_newest_of_each_is_not_taken_for_it() {
    for text in [
        // Another function, group, order, or table.
        "SELECT user_id, MIN(id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY MIN(id) DESC",
        "SELECT user_id, MAX(id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY MIN(id) DESC",
        "SELECT hidden, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY x DESC",
        "SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id, hidden ORDER BY x DESC",
        "SELECT user_id, MAX(score) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY x DESC",
        "SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id HAVING x > 5 ORDER BY x DESC",
        "SELECT user_id, MAX(id) AS x FROM message GROUP BY user_id ORDER BY x DESC",
        "SELECT f.author, MAX(f.reader) AS x FROM message m JOIN follower f ON f.author = m.user_id WHERE f.reader = 7 GROUP BY f.author ORDER BY x DESC",
        // Rows that are other ones, or more.
        "SELECT m.* FROM message m JOIN (SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d ON d.user_id = m.user_id ORDER BY m.id DESC",
        "SELECT m.* FROM message m LEFT JOIN (SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d ON d.x = m.id ORDER BY m.id DESC",
        "SELECT m.*, d.x FROM message m JOIN (SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d ON d.x = m.id ORDER BY m.id DESC",
        "SELECT m.* FROM message m JOIN (SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d ON d.x = m.id OR d.x = m.score ORDER BY m.id DESC",
        "SELECT m.* FROM message m JOIN (SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d ON d.x = m.id ORDER BY m.score DESC",
        "SELECT m.* FROM message m JOIN (SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d ON d.x = m.id JOIN users u ON u.id = m.user_id ORDER BY u.name DESC",
        "SELECT m.* FROM message m JOIN (SELECT user_id, MAX(id) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id) d ON d.x = m.id ORDER BY m.created_at IS NULL",
        "SELECT m.* FROM message m JOIN tag t ON t.message_id = m.id WHERE m.id IN (SELECT MAX(id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id) ORDER BY m.id DESC",
        "SELECT m.* FROM message m WHERE m.id NOT IN (SELECT MAX(id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id) ORDER BY m.id DESC",
        "SELECT m.* FROM message m WHERE m.hidden = 1 OR m.id IN (SELECT MAX(id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id) ORDER BY m.id DESC",
        "SELECT m.* FROM message m WHERE m.score IN (SELECT MAX(id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id) ORDER BY m.id DESC",
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY id) rn FROM message WHERE user_id IN (1, 2)) t WHERE rn = 1 ORDER BY id DESC",
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY hidden ORDER BY id DESC) rn FROM message WHERE user_id IN (1, 2)) t WHERE rn = 1 ORDER BY id DESC",
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY id DESC) rn FROM message WHERE user_id IN (1, 2)) t WHERE rn < 3 ORDER BY id DESC",
        "SELECT * FROM (SELECT m.id, m.body AS hidden, ROW_NUMBER() OVER (PARTITION BY m.user_id ORDER BY m.id DESC) rn FROM message m WHERE m.user_id IN (1, 2)) t WHERE rn = 1 ORDER BY id DESC",
    ] {
        assert!(shaped(text, false).is_err(), "{text}");
    }
    for text in [
        "m.user_id IN (1, 2) AND NOT EXISTS (SELECT 1 FROM message n WHERE n.user_id = m.user_id AND n.id >= m.id)",
        "m.user_id IN (1, 2) AND NOT EXISTS (SELECT 1 FROM message n WHERE n.user_id = m.user_id AND n.id < m.id)",
        "m.user_id IN (1, 2) AND NOT EXISTS (SELECT 1 FROM message n WHERE n.user_id = m.user_id AND n.id > m.id AND n.hidden = 0)",
        "m.user_id IN (1, 2) AND NOT EXISTS (SELECT 1 FROM message n WHERE n.id > m.id)",
        "m.user_id IN (1, 2) AND EXISTS (SELECT 1 FROM message n WHERE n.user_id = m.user_id AND n.id > m.id)",
        "m.user_id IN (1, 2) AND (m.hidden = 1 OR NOT EXISTS (SELECT 1 FROM message n WHERE n.user_id = m.user_id AND n.id > m.id))",
    ] {
        let text = format!("SELECT m.id FROM message m WHERE {text} ORDER BY m.id DESC LIMIT 9");
        let shape = shaped(&text, false);
        assert!(shape.is_ok_and(|shape| shape.newest.is_none()), "{text}");
    }
}
