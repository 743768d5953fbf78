//! Functions, SELECTs of one value and conditions as values.

use super::{read, shaped};
use crate::refusal::NarrowingRefusal;

fn item(item: &str) -> Result<bool, NarrowingRefusal> {
    let text = format!(
        "SELECT m.id, {item} FROM message m JOIN users u ON u.id = m.user_id WHERE m.user_id IN (1, 2) ORDER BY m.id DESC LIMIT 9"
    );
    shaped(&text, false).map(|shape| shape.row_dependencies.is_some())
}

fn condition(condition: &str) -> Result<bool, NarrowingRefusal> {
    let text = format!(
        "SELECT m.id FROM message m WHERE m.user_id IN (1, 2) AND {condition} ORDER BY m.id DESC LIMIT 9"
    );
    shaped(&text, false).map(|shape| shape.row_dependencies.is_some())
}

#[test]
fn values_that_neither_fail_nor_warn_are_narrowed_and_not_cached() {
    for value in [
        "(SELECT COUNT(*) FROM tag t WHERE t.message_id > m.id)",
        "(SELECT COUNT(*) FROM tag t WHERE t.name = m.kind)",
        "(SELECT COUNT(*) FROM tag t WHERE t.message_id = 5)",
        "(SELECT COUNT(*) FROM tag t WHERE t.message_id = u.id)",
        "(SELECT COUNT(*) FROM tag t, users v WHERE t.message_id = m.id)",
        "(SELECT COUNT(*) FROM tag t WHERE t.message_id = m.id AND EXISTS (SELECT 1 FROM users v WHERE v.name = t.name))",
        "(SELECT COUNT(*) FROM tag t WHERE t.message_id = m.id AND m.created_at < NOW())",
        "(SELECT MAX(v.name) FROM users v JOIN tag t ON t.message_id = v.id WHERE v.id = m.hidden) last",
        "(SELECT v.name FROM users v WHERE v.id = m.hidden LIMIT 1)",
        "NOT EXISTS (SELECT * FROM block b WHERE b.who = 7) AS free",
        "(m.deleted_at IS NULL)",
        "m.hidden = 0 AND m.kind <> 'x' AS shown",
        "m.kind <=> NULL",
        "CASE WHEN m.hidden = 1 THEN 'hidden' WHEN m.deleted_at IS NOT NULL THEN 'gone' ELSE m.kind END AS state",
        "IF(m.hidden, u.name, NULL)",
        "LENGTH(m.body)",
        "LOWER(TRIM(u.name)) AS name",
        "CONCAT(u.name, ' (', u.id, ')')",
        "SUBSTRING(m.body, 1, 385)",
        "LEFT(m.body, 1)",
        "DATE_FORMAT(m.created_at, '%Y-%u')",
        "UNIX_TIMESTAMP(m.created_at)",
        "GREATEST(m.hidden, m.id, 5)",
        "NULLIF(m.kind, 'x')",
    ] {
        assert_eq!(item(value), Ok(false), "{value}");
    }
    for filter in [
        "LENGTH(m.body) > 3",
        "m.hidden IS FALSE",
        "m.hidden IS NOT TRUE",
        "LOWER(m.kind) = 'a'",
        "CASE WHEN m.hidden = 1 THEN 2 ELSE 3 END = 3",
        "(SELECT COUNT(*) FROM tag t WHERE t.message_id = m.id) > 2",
        "m.hidden <= (SELECT n.hidden FROM message n WHERE n.id = 5)",
        "(SELECT v.id FROM users v WHERE v.name = m.kind LIMIT 1) IS NOT NULL",
        "IF(m.hidden = 1, 0, 1) IS TRUE",
        "FIND_IN_SET('a', m.kind) = 0",
    ] {
        let cached = filter.contains("m.hidden IS");
        assert_eq!(condition(filter), Ok(cached), "{filter}");
    }
}

#[test]
fn values_that_may_fail_warn_or_act_are_not() {
    for value in [
        "SLEEP(1)",
        "RAND()",
        "my_function(m.id)",
        "LENGTH (m.body)",
        "LENGTH(m.body, 1)",
        "LENGTH()",
        "LEFT(m.body, m.hidden)",
        "DATE_FORMAT(m.body, '%Y')",
        "UNIX_TIMESTAMP('2026-01-01')",
        "GREATEST(m.hidden, m.body)",
        "GREATEST(m.hidden, '5x')",
        "CASE m.hidden WHEN 1 THEN 2 END",
        "CASE WHEN m.hidden = 1 THEN m.body ELSE m.id END",
        "IF(m.body, 1, 2)",
        // Several rows, or one of several.
        "(SELECT t.name FROM tag t WHERE t.message_id = m.id)",
        "(SELECT t.name FROM tag t WHERE t.message_id = m.id LIMIT 1)",
        "(SELECT v.name FROM users v WHERE v.name = m.kind)",
        "(SELECT v.name FROM users v JOIN tag t ON t.message_id = v.id WHERE v.id = m.hidden)",
        "(SELECT v.name FROM users v WHERE v.id = m.hidden LIMIT 0)",
        "(SELECT SUM(v.name) FROM users v)",
        "(SELECT SUM(n.score) FROM message n)",
        // They may be longer than a packet.
        "CONCAT(m.essay, 'x')",
        "CONCAT((SELECT n.essay FROM message n WHERE n.id = m.hidden), 'x')",
        "(SELECT GROUP_CONCAT(v.name) FROM users v)",
        "(SELECT v.name FROM users v ORDER BY v.id LIMIT 1)",
        "(SELECT COUNT(*) FROM none)",
    ] {
        assert!(item(value).is_err(), "{value}");
    }
    for filter in [
        // A first row whose column may be NULL is one of several.
        "(SELECT v.nick FROM users v WHERE v.name = m.kind LIMIT 1) IS NOT NULL",
        "(SELECT v.id FROM tag t LEFT JOIN users v ON v.id = t.message_id WHERE t.name = m.kind LIMIT 1) IS NOT NULL",
        "EXISTS (SELECT 1 FROM tag t JOIN block b ON who IN (SELECT u.id FROM users u) JOIN users w ON w.id = b.who)",
        "m.body IS TRUE",
    ] {
        assert!(condition(filter).is_err(), "{filter}");
    }
}

#[test]
fn a_first_row_that_exists_is_a_follow() {
    let text = "SELECT m.id FROM message m WHERE (SELECT f.author FROM follower f WHERE f.author = m.user_id AND f.reader = 7 LIMIT 1) \
                IS NOT NULL ORDER BY m.id DESC LIMIT 9";
    assert_eq!(shaped(text, false).unwrap().authors.readers.len(), 1);
}

#[test]
fn every_table_of_a_value_is_named() {
    let (_, query) = read(
        "SELECT m.id, IF(EXISTS (SELECT 1 FROM block), (SELECT COUNT(*) FROM tag WHERE message_id IN (SELECT id FROM odd)), 0) FROM message m \
         WHERE CASE WHEN (SELECT MAX(id) FROM users) > 3 THEN 1 ELSE 0 END = 1 ORDER BY m.id DESC LIMIT 9",
    );
    let named = query.unwrap().tables();
    let names: Vec<&str> = named.iter().map(|table| &*table.table).collect();
    assert_eq!(names, ["block", "message", "odd", "tag", "users"]);
}
