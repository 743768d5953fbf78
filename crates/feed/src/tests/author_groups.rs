//! Statements with a row for each author.

use super::{feed, read, shaped, statement};
use crate::author_groups::{GroupColumn, GroupRows};
use crate::count::CountShape;
use crate::query::{AggregateFunction, LargestColumns, LargestKind};

use GroupColumn::{Author, Count, Largest};

fn groups(text: &str) -> (CountShape, GroupRows) {
    let shape = shaped(text, false).unwrap_or_else(|why| panic!("{why:?}: {text}"));
    let count = shape.count.unwrap();
    let groups = count.groups.clone();
    (count, groups.unwrap_or_else(|| panic!("no groups: {text}")))
}

#[test]
fn columns_and_order_are_read() {
    for (text, columns, order) in [
        (
            "SELECT user_id, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
            &[Author, Count][..],
            &[][..],
        ),
        // Rails, Django, Laravel.
        (
            "SELECT COUNT(*) AS `count_all`, `message`.`user_id` AS `message_user_id` FROM `message` WHERE `message`.`user_id` IN (1, 2) GROUP BY `message`.`user_id`",
            &[Count, Author],
            &[],
        ),
        (
            "SELECT `message`.`user_id`, COUNT(`message`.`id`) AS `n` FROM `message` WHERE `message`.`user_id` IN (1, 2) GROUP BY `message`.`user_id` ORDER BY NULL",
            &[Author, Count],
            &[],
        ),
        (
            "select user_id as author, count(*) as total from message where user_id in (1, 2) and hidden = 0 group by author order by total desc, author limit 5",
            &[Author, Count],
            &[(Count, true), (Author, false)],
        ),
        (
            "SELECT user_id, MAX(id) AS id, COUNT(*) AS n FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY id DESC",
            &[Author, Largest, Count],
            &[(Largest, true)],
        ),
        (
            "SELECT MAX(m.id), f.author FROM message m JOIN follower f ON f.author = m.user_id WHERE f.reader = 3 GROUP BY f.author ORDER BY MAX(m.id)",
            &[Largest, Author],
            &[(Largest, false)],
        ),
        (
            "SELECT user_id, MAX(created_at) AS last FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY last DESC, user_id DESC",
            &[Author, Largest],
            &[(Largest, true), (Author, true)],
        ),
        (
            "SELECT MAX(id) FROM message WHERE user_id = 3 GROUP BY user_id ORDER BY MAX(id) DESC",
            &[Largest],
            &[(Largest, true)],
        ),
        (
            "SELECT user_id, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY COUNT(*) DESC",
            &[Author, Count],
            &[(Count, true)],
        ),
    ] {
        let (_, rows) = groups(text);
        assert_eq!(rows.columns, columns, "{text}");
        assert_eq!(rows.order, order, "{text}");
        // By the author, or by what no two authors have.
        let tells_apart = order.iter().any(|(by, _)| match by {
            Author => true,
            Largest => !text.contains("created_at"),
            Count => false,
        });
        assert_eq!(rows.is_ordered, tells_apart, "{text}");
    }
}

#[test]
fn the_numbers_are_those_of_single_authors() {
    for (text, function, query) in [
        (
            "SELECT user_id, MAX(id) AS last FROM message WHERE user_id IN (1, 2) AND hidden = 0 GROUP BY user_id ORDER BY last DESC LIMIT 9",
            "newest",
            "SELECT message.`user_id`, MAX(message.`id`) FROM message WHERE message.`user_id` IN (4,6) AND (user_id IN (1, 2) AND hidden = 0) GROUP BY message.`user_id`",
        ),
        (
            "SELECT f.author, COUNT(*) FROM message m JOIN follower f ON f.author = m.user_id WHERE f.reader = 3 GROUP BY f.author ORDER BY f.author LIMIT 9",
            "count",
            "SELECT m.`user_id`, COUNT(*) FROM message m JOIN follower f ON f.author = m.user_id WHERE m.`user_id` IN (4,6) AND (f.reader = 3) GROUP BY m.`user_id`",
        ),
        (
            "SELECT user_id, MAX(created_at) FROM message WHERE user_id IN (1, 2) GROUP BY user_id LIMIT 9",
            "time",
            "SELECT message.`user_id`, 1, MAX(CAST(message.created_at AS CHAR)) FROM message WHERE message.`user_id` IN (4,6) AND (user_id IN (1, 2)) GROUP BY message.`user_id`",
        ),
        (
            "SELECT user_id, COUNT(*), MAX(id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id LIMIT 9",
            "both",
            "SELECT message.`user_id`, COUNT(*), MAX(message.id) FROM message WHERE message.`user_id` IN (4,6) AND (user_id IN (1, 2)) GROUP BY message.`user_id`",
        ),
    ] {
        let (count, rows) = groups(text);
        let is = match count.function {
            AggregateFunction::Newest => "newest",
            AggregateFunction::Count => "count",
            AggregateFunction::Largest(largest) => match (largest.kind, largest.columns) {
                (LargestKind::Moment { .. }, LargestColumns::Value) => "time",
                (LargestKind::Id, LargestColumns::CountAndValue) => "both",
                _ => "other",
            },
            _ => "other",
        };
        assert_eq!(is, function, "{text}");
        let (words, _) = read(text);
        let statement = statement(text, &words);
        let by_author =
            shaped(text, false)
                .unwrap()
                .count_by_author(statement, &feed(false), &[4, 6]);
        assert_eq!(by_author.as_deref(), Some(query), "{text}");
        assert_eq!(rows.part(statement), Some((0, 9)));
    }
}

#[test]
fn other_groups_and_orders_are_not_taken_for_these() {
    for text in [
        "SELECT user_id, MIN(id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
        "SELECT user_id, COUNT(DISTINCT id) FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
        "SELECT user_id, COUNT(body) FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
        "SELECT user_id, MAX(score) FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
        "SELECT user_id, hidden, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
        "SELECT user_id FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
        "SELECT user_id, COUNT(*), COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
        "SELECT user_id, MAX(id), MAX(created_at) FROM message WHERE user_id IN (1, 2) GROUP BY user_id",
        "SELECT user_id, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id, hidden",
        "SELECT user_id, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY hidden",
        // The name is a column's first.
        "SELECT user_id AS hidden, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY hidden",
        "SELECT hidden AS author, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY author",
        "SELECT user_id, COUNT(*) AS n FROM message WHERE user_id IN (1, 2) GROUP BY user_id HAVING n > 1",
        "SELECT user_id, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id WITH ROLLUP",
        "SELECT user_id, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY hidden",
        "SELECT user_id, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY MAX(id)",
        "SELECT user_id, COUNT(*) FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY id",
        "SELECT user_id AS x, COUNT(*) AS x FROM message WHERE user_id IN (1, 2) GROUP BY user_id ORDER BY x",
        "SELECT user_id, COUNT(*) FROM message GROUP BY user_id",
        "SELECT m.user_id, COUNT(*) FROM message m JOIN tag t ON t.message_id = m.id WHERE m.user_id IN (1, 2) GROUP BY m.user_id",
    ] {
        let shape = shaped(text, false);
        assert!(shape.is_err(), "{text}: {shape:?}");
    }
}
