#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use super::parse;
use crate::query::ConditionKind;
use crate::refusal::NarrowingRefusal;
use crate::words::StatementWords;

fn read(text: &str) -> Result<crate::query::FeedSelect, NarrowingRefusal> {
    parse(
        text.as_bytes(),
        &StatementWords::read(text.as_bytes()).unwrap(),
    )
}

/// A text with this condition.
fn with(condition: &str) -> Result<crate::query::FeedSelect, NarrowingRefusal> {
    read(&format!(
        "SELECT m.id FROM m WHERE {condition} ORDER BY m.id DESC LIMIT 20"
    ))
}

#[test]
fn what_real_apps_send_is_read() {
    for text in [
        "SELECT * FROM statuses WHERE profile_id IN (1,2,3) AND id < 99 ORDER BY id DESC LIMIT 20",
        "select distinct `a`.`id` from `activity` `a` where `a`.`user_id` in (1, 2) and `a`.`is_spam` = 0 and `a`.`type` <> 'x' order by `a`.`date_recorded` desc, `a`.`id` desc limit 0, 21;",
        "SELECT `articles`.* FROM `articles` WHERE `user_id` IN (?, ?) ORDER BY `created_at` DESC LIMIT 20 OFFSET 40",
        "SELECT m.* FROM microposts m WHERE (user_id IN (SELECT followed_id FROM relationships WHERE follower_id = 7) OR user_id = 7) ORDER BY created_at DESC LIMIT 30",
        "SELECT m.id, u.name AS author FROM message AS m INNER JOIN follower f ON f.follower_id = m.user_id JOIN users u ON u.id = m.user_id WHERE f.user_id = 5 AND m.deleted_at IS NULL ORDER BY m.id DESC LIMIT 20",
        "SELECT m.id FROM message m WHERE EXISTS (SELECT 1 FROM follower f WHERE f.follower_id = m.user_id AND f.user_id = 5 LIMIT 1) ORDER BY m.id DESC LIMIT 20",
        "SELECT DISTINCT m.id FROM m LEFT JOIN f ON f.b = m.a AND f.r = 3 WHERE f.r IS NOT NULL OR m.a = 3 ORDER BY m.id DESC LIMIT 10",
        "SELECT id FROM m WHERE a IN (1) AND (k, id) < ('2020-01-01', 5) ORDER BY k DESC, id DESC LIMIT 10",
        "SELECT id FROM m WHERE a = 1 AND k > NOW() - INTERVAL 7 DAY ORDER BY k DESC LIMIT ?",
        "SELECT m.id FROM ((m INNER JOIN u ON (m.a = u.id)) LEFT OUTER JOIN v ON (v.id = u.b)) WHERE m.a IN (1) ORDER BY m.id DESC LIMIT 5",
        "SELECT m.id FROM (m), (f JOIN u ON f.b = u.id) WHERE f.b = m.a AND f.r = 5 ORDER BY m.id DESC LIMIT 5",
        "SELECT m.id FROM m WHERE EXISTS(SELECT 1 AS `a` FROM f U0 WHERE (U0.b = (m.a) AND U0.r IN (5)) LIMIT 1) ORDER BY m.id DESC LIMIT 5",
        "SELECT m.id FROM m WHERE EXISTS (SELECT f.*, 1 AS x, `f`.`b` FROM f WHERE f.b = m.a AND f.r = 5) ORDER BY m.id DESC LIMIT 5",
        "SELECT m.id FROM m WHERE m.a IN (SELECT U0.id AS b FROM u U0 INNER JOIN f U1 ON (U0.id = U1.b) WHERE U1.r = 5) ORDER BY m.id DESC LIMIT 5",
        "SELECT id FROM m, f WHERE f.b = m.a AND f.r = 5 GROUP BY m.id ORDER BY m.id DESC LIMIT 5",
    ] {
        assert!(read(text).is_ok(), "{text}: {:?}", read(text));
    }
}

#[test]
fn operands_may_be_in_parentheses() {
    for condition in [
        "(a) IN (1, 2)",
        "((a)) = 1",
        "a = ((b))",
        "(a) = (b)",
        "(a) IS NOT NULL",
        "(a) NOT BETWEEN (1) AND 2",
        "((a) IN (1) OR (b) >= 2)",
        "NOT ((a) = 1)",
        "(a)",
    ] {
        assert!(with(condition).is_ok(), "{condition}");
    }
}

#[test]
fn what_could_mean_two_things_is_not() {
    for condition in [
        "a IN (1) AND n BETWEEN 0 AND b IN (1,2)",
        "a IN (1) || b = 1",
        "NOT a IN (1)",
        "NOT a = 1",
        "NOT (a) = 1",
        "NOT (a, b) < (1, 2)",
        "a = b = c",
        "a <=> 1 = 1",
        "a LIKE 'x' ESCAPE 'y'",
        "a = 'x' 'y'",
        "a = 'x' COLLATE utf8mb4_bin",
        "a IS TRUE = 1",
        "a REGEXP 'x'",
        "a XOR b",
        "a = ALL (SELECT b FROM c)",
        "a = (SELECT b, d FROM c)",
        "a = (SELECT b FROM c LIMIT 2)",
        "a = (b, c)",
        "a = (b + c)",
        "a = ((b), c)",
        "(a) + 1 = b",
        "(a, b) IN (1)",
        "a = (b) + c",
        "a < COUNT(b)",
        "a < TIMESTAMP(b)",
        "a < TIMESTAMP ('2026-01-01')",
        "a < TIMESTAMP('2026-01-01', '10:00')",
        "a MEMBER OF (b)",
        "a IN (SELECT b FROM c LIMIT 1)",
        "a IN (SELECT b, d FROM c)",
        "a IN (SELECT * FROM c)",
        "EXISTS (SELECT MAX(b) FROM c)",
        "EXISTS (SELECT COUNT(*) FROM c)",
        "a = 1e3",
        "a = 0x31",
        "a = 1.5.5",
    ] {
        assert!(with(condition).is_err(), "{condition}");
    }
}

#[test]
fn each_refusal_has_its_reason() {
    for (text, why) in [
        (
            "SELECT a FROM m ORDER BY a DESC LIMIT 5 FOR UPDATE",
            NarrowingRefusal::Locks,
        ),
        (
            "SELECT a FROM m ORDER BY a DESC LIMIT 5 LOCK IN SHARE MODE",
            NarrowingRefusal::Locks,
        ),
        (
            "SELECT a INTO x FROM m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Locks,
        ),
        (
            "SELECT SQL_CALC_FOUND_ROWS a FROM m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Hints,
        ),
        (
            "SELECT STRAIGHT_JOIN a FROM m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Hints,
        ),
        (
            "SELECT a FROM m FORCE INDEX (x) ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Hints,
        ),
        (
            "SELECT a FROM m PARTITION (p) ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Hints,
        ),
        (
            "SELECT a FROM m UNION SELECT a FROM n UNION ALL SELECT a FROM n ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT a FROM (SELECT 1) m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT a FROM ((SELECT 1)) m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT a FROM m LEFT JOIN (n LEFT JOIN o ON o.a = n.a) ON n.a = m.a ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT a FROM (m, n) ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::NotUnderstood,
        ),
        (
            "SELECT a FROM (m) n ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::NotUnderstood,
        ),
        (
            "SELECT a FROM m HAVING a ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT a FROM m GROUP BY a HAVING a ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT SUM(a) FROM m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::NotPlain,
        ),
        (
            "SELECT a + 1 FROM m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::NotPlain,
        ),
        (
            "SELECT @a FROM m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::NotPlain,
        ),
        (
            "SELECT a FROM m WHERE a - 5 > 0 ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::NotPlain,
        ),
        ("SELECT a FROM m LIMIT 5", NarrowingRefusal::Order),
        ("SELECT a FROM m", NarrowingRefusal::Order),
        (
            "SELECT a FROM m ORDER BY 1 DESC LIMIT 5",
            NarrowingRefusal::Order,
        ),
        ("SELECT a FROM m ORDER BY a DESC", NarrowingRefusal::Limit),
        (
            "SELECT a FROM m ORDER BY a DESC LIMIT 5 ROWS EXAMINED 3",
            NarrowingRefusal::Limit,
        ),
        (
            "SELECT a FROM m ORDER BY a DESC LIMIT -5",
            NarrowingRefusal::Limit,
        ),
        (
            "SELECT a FROM m ORDER BY a DESC FETCH FIRST 5 ROWS WITH TIES",
            NarrowingRefusal::Limit,
        ),
        (
            "SELECT a FROM m NATURAL JOIN n ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::NotUnderstood,
        ),
        (
            "SELECT a FROM m RIGHT JOIN n ON a = b ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::NotUnderstood,
        ),
        (
            "WITH x AS (SELECT 1) SELECT a FROM m ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT a FROM m FOR SYSTEM_TIME ALL ORDER BY a DESC LIMIT 5",
            NarrowingRefusal::Locks,
        ),
    ] {
        assert_eq!(read(text).err(), Some(why), "{text}");
    }
}

#[test]
fn a_condition_has_the_shape_that_it_is_written_in() {
    let query = with("(a = 1 OR b = 2 AND NOT (c = 3)) AND NOT d").unwrap();
    let Some((_, condition)) = query.filter else {
        panic!("no condition");
    };
    let ConditionKind::And(all) = condition.kind else {
        panic!("no conjunction");
    };
    let [ConditionKind::Or(either), ConditionKind::Not(_)] = [&all[0].kind, &all[1].kind] else {
        panic!("{all:?}");
    };
    assert!(
        matches!(&either[1].kind, ConditionKind::And(both) if matches!(both[1].kind, ConditionKind::Not(_)))
    );
}

#[test]
fn limit_and_offset_are_found_in_all_their_forms() {
    for (tail, limit, offset) in [
        ("LIMIT 7", "7", None),
        ("LIMIT 3, 7", "7", Some("3")),
        ("LIMIT 7 OFFSET 3", "7", Some("3")),
        ("LIMIT ? OFFSET ?", "?", Some("?")),
    ] {
        let text = format!("SELECT a FROM m ORDER BY a DESC {tail}");
        let words = StatementWords::read(text.as_bytes()).unwrap();
        let query = parse(text.as_bytes(), &words).unwrap();
        let of = |at: usize| std::str::from_utf8(words.text(at, text.as_bytes())).unwrap();
        assert_eq!(query.limit.map(of), Some(limit));
        assert_eq!(query.offset.map(of), offset);
    }
}

/// What a parenthesis begins is known only behind it, at each level again. Without a bound this test does not end.
#[test]
fn no_text_takes_long() {
    let take = |text: &str| {
        if let Some(words) = StatementWords::read(text.as_bytes()) {
            let _ = parse(text.as_bytes(), &words);
        }
    };
    let nest = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let pages = [
        nest("(", "a = 1", ")", 30),
        nest("(IF((", "a = 1", "), 1, 2) = 1)", 14),
        nest("(CASE WHEN (", "a = 1", ") THEN 1 END = 1)", 14),
        nest("(COALESCE((", "a", "), 1) = 1)", 14),
        nest("((SELECT COUNT(*) FROM m WHERE (", "a = 1", ")) = 1)", 10),
        vec!["a = 1"; 10_000].join(" OR "),
        vec!["(a, b) < (1, 2)"; 5_000].join(" AND "),
        vec!["a IN (SELECT b FROM c)"; 3_000].join(" OR "),
    ];
    for condition in pages {
        let text = format!("SELECT a FROM m WHERE {condition} ORDER BY a DESC LIMIT 5");
        take(&text);
        let text = format!("SELECT {condition} FROM m ORDER BY a DESC LIMIT 5");
        take(&text);
    }
    let union = vec!["SELECT a FROM m WHERE a = 1"; 1_000].join(" UNION ALL ");
    take(&format!("{union} ORDER BY a DESC LIMIT 5"));
    let nested = nest("SELECT a FROM (", "SELECT a FROM m", ") d", 100);
    take(&format!("{nested} ORDER BY a DESC LIMIT 5"));
}

#[test]
fn the_place_of_a_refusal_is_shown() {
    let place = |text: &str| {
        let words = StatementWords::read(text.as_bytes()).unwrap();
        super::refused_words(text.as_bytes(), &words)
    };
    for (text, expected) in [
        ("SELECT a FROM m WHERE a = 1 ORDER BY a DESC LIMIT 5", None),
        (
            "SELECT a FROM m WHERE a +\n 1 = 2 ORDER BY a DESC LIMIT 5",
            Some("`+ 1 = 2 ORDER BY a DESC LIMIT 5`"),
        ),
        (
            "SELECT a FROM m WHERE a = 1 AND my_function(a) = 3 ORDER BY a DESC LIMIT 5",
            Some("`(a) = 3 ORDER BY a DESC LIMIT 5`"),
        ),
        (
            "SELECT a FROM m GROUP BY a HAVING COUNT(*) > 1 ORDER BY a DESC LIMIT 5",
            Some("`HAVING COUNT(*) > 1 ORDER BY a DESC LIMI ...`"),
        ),
        (
            "SELECT a FROM m WHERE a = 1 ORDER BY a DESC",
            Some("its end"),
        ),
    ] {
        assert_eq!(place(text).as_deref(), expected, "{text}");
    }
}
