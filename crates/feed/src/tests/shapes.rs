//! Which statements are of a feed, and whose messages they ask for.

use super::{app, feed, read, shaped};
use crate::query::{Literal, LiteralList};
use crate::refusal::NarrowingRefusal;
use crate::shape::shape;

type AuthorTexts = (Vec<String>, Vec<String>, Vec<String>);

/// Whose messages: readers' follows, single authors, and lists, as they stand in the text.
fn authors(text: &str) -> Result<AuthorTexts, NarrowingRefusal> {
    let (words, _) = read(text);
    let of = |at: &usize| String::from_utf8(words.text(*at, text.as_bytes()).to_vec()).unwrap();
    let literal = |literal: &Literal| match literal {
        Literal::Number(at) | Literal::Parameter(at) | Literal::Text(at) => of(at),
        other => panic!("{other:?}"),
    };
    let list = |list: &LiteralList| match list {
        LiteralList::Whole(at) => of(at),
        LiteralList::Each(each) => each.iter().map(literal).collect(),
    };
    let selection = shaped(text, false)?.authors;
    Ok((
        selection.readers.iter().map(list).collect(),
        selection.single.iter().map(literal).collect(),
        selection.lists.iter().map(list).collect(),
    ))
}

fn of(condition: &str) -> Result<AuthorTexts, NarrowingRefusal> {
    authors(&format!(
        "SELECT m.id, m.body FROM message m WHERE {condition} ORDER BY m.id DESC LIMIT 20"
    ))
}

fn own<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

#[test]
fn authors_are_found_in_every_shape() {
    let none = || own([]);
    for (condition, readers, single, lists) in [
        ("m.user_id IN (1,2)", none(), none(), own(["(1,2)"])),
        ("user_id = 7", none(), own(["7"]), none()),
        ("7 = user_id AND hidden = 0", none(), own(["7"]), none()),
        (
            "m.user_id IN (SELECT author FROM follower WHERE reader = 5 AND accepted = 1)",
            own(["5"]),
            none(),
            none(),
        ),
        (
            "EXISTS (SELECT 1 FROM follower f WHERE f.author = m.user_id AND f.reader = ?)",
            own(["?"]),
            none(),
            none(),
        ),
        (
            "(m.user_id IN (SELECT f.author FROM follower f WHERE f.reader = 5) OR m.user_id = 5) AND m.kind LIKE 'a%'",
            own(["5"]),
            own(["5"]),
            none(),
        ),
        (
            "m.hidden = 0 AND (m.user_id = 1 OR m.user_id IN (2,3))",
            none(),
            own(["1"]),
            own(["(2,3)"]),
        ),
        // The reader by a subquery of one value, and as the value that a subquery has to have.
        (
            "m.user_id IN (SELECT users.id FROM users WHERE users.id IN (SELECT author FROM follower WHERE reader IN \
             (SELECT users.id FROM users WHERE id = 5 AND users.id IS NOT NULL) AND author IS NOT NULL))",
            own(["5"]),
            none(),
            none(),
        ),
        (
            "5 IN (SELECT f.reader FROM follower f WHERE m.user_id = f.author)",
            own(["5"]),
            none(),
            none(),
        ),
        ("m.user_id = '7'", none(), own(["'7'"]), none()),
        ("m.user_id IN ('1','2')", none(), none(), own(["('1','2')"])),
    ] {
        assert_eq!(of(condition), Ok((readers, single, lists)), "{condition}");
    }
}

/// A page of a SELECT in FROM is one of that SELECT.
#[test]
fn a_select_in_from_is_read_through() {
    let page = |outer: &str, inner: &str, order: &str| {
        let text = format!(
            "SELECT {outer} FROM (SELECT {inner} FROM message m JOIN users u ON u.id = m.user_id WHERE m.user_id IN (1,2)) d ORDER BY {order} LIMIT 9"
        );
        shaped(&text, false).map(|_| ())
    };
    let inner = "m.id AS m_id, m.body AS m_body, u.name, m.hidden";
    for (outer, order) in [
        ("DISTINCT d.m_id AS ids", "d.m_id DESC"),
        ("d.m_id, d.name who", "m_id DESC, d.m_id ASC"),
        ("d.m_id AS ids, hidden", "ids DESC"),
        ("M_ID AS m_id", "m_id DESC"),
        ("*", "d.m_id DESC"),
    ] {
        assert_eq!(page(outer, inner, order), Ok(()), "{outer} {order}");
    }
    for (outer, inner, order, why) in [
        // Another order, names of nothing, of two, of another column than is sorted by.
        ("d.m_id", inner, "d.m_id ASC", NarrowingRefusal::Order),
        ("d.m_id", inner, "d.hidden DESC", NarrowingRefusal::Order),
        ("d.m_id", inner, "d.id DESC", NarrowingRefusal::Names),
        ("d.m_id", inner, "m.id DESC", NarrowingRefusal::Names),
        ("d.none", inner, "d.m_id DESC", NarrowingRefusal::Names),
        (
            "d.m_id",
            "m.id AS m_id, u.id AS M_ID",
            "d.m_id DESC",
            NarrowingRefusal::Names,
        ),
        (
            "d.m_id AS name",
            inner,
            "name DESC",
            NarrowingRefusal::Order,
        ),
        (
            "d.m_id AS a, d.hidden AS a",
            inner,
            "a DESC",
            NarrowingRefusal::Order,
        ),
        (
            "d.m_id, d.hidden AS m_id",
            inner,
            "m_id DESC",
            NarrowingRefusal::Order,
        ),
        (
            "DISTINCT d.name",
            inner,
            "d.m_id DESC",
            NarrowingRefusal::Joins,
        ),
        // What is not read through, and what may fail.
        ("d.m_id", "m.*", "d.m_id DESC", NarrowingRefusal::Names),
        (
            "d.m_id",
            "DISTINCT m.id AS m_id",
            "d.m_id DESC",
            NarrowingRefusal::Structure,
        ),
        (
            "d.m_id",
            "m.id AS m_id, ? AS x",
            "d.m_id DESC",
            NarrowingRefusal::Structure,
        ),
        (
            "d.m_id",
            "m.id AS m_id, m.nothing AS x",
            "d.m_id DESC",
            NarrowingRefusal::Names,
        ),
        (
            "d.m_id",
            "m.id AS m_id, m.hidden - 5 AS x",
            "d.m_id DESC",
            NarrowingRefusal::NotPlain,
        ),
    ] {
        assert_eq!(
            page(outer, inner, order),
            Err(why),
            "{outer} {inner} {order}"
        );
    }
    let whole = |text: &str| shaped(text, false).err();
    for (text, why) in [
        (
            "SELECT d.id FROM (SELECT id FROM message WHERE user_id = 1 ORDER BY id DESC LIMIT 5) d ORDER BY d.id DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT d.id FROM (SELECT id FROM message WHERE user_id = 1 GROUP BY id) d ORDER BY d.id DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT d.id FROM (SELECT id FROM message WHERE user_id = 1) d WHERE d.id > 5 ORDER BY d.id DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT d.id FROM (SELECT id FROM message WHERE user_id = 1) d JOIN users u ON u.id = d.id ORDER BY d.id DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT d.id FROM (SELECT id FROM message WHERE user_id = 1) ORDER BY d.id DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT d.id FROM (SELECT id FROM message WHERE user_id = 1) d GROUP BY d.id ORDER BY d.id DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT d.id FROM (SELECT id FROM message WHERE user_id = 1 UNION SELECT 1) d ORDER BY d.id DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
        (
            "SELECT d.id FROM (SELECT e.id FROM (SELECT id FROM message WHERE user_id = 1) e) d ORDER BY d.id DESC LIMIT 9",
            NarrowingRefusal::Structure,
        ),
    ] {
        assert_eq!(whole(text), Some(why), "{text}");
    }
}

/// Tables between the message and the edge, as ORMs write them.
#[test]
fn authors_are_found_through_other_tables() {
    for (condition, reader) in [
        (
            "m.user_id IN (SELECT author AS followed FROM follower WHERE reader = 5)",
            "5",
        ),
        (
            "m.user_id IN (SELECT f.author whom FROM follower f WHERE f.reader IN (5))",
            "(5)",
        ),
        (
            "m.user_id IN (SELECT u.id FROM users u, follower f WHERE f.author = u.id AND f.reader = 9) AND m.id > 3",
            "9",
        ),
        (
            "m.user_id IN (SELECT u.id FROM users u JOIN follower f ON u.id = f.author WHERE f.reader = ?)",
            "?",
        ),
        (
            "EXISTS (SELECT 1 AS a FROM follower f WHERE (f.author = (m.user_id) AND f.reader = 5) LIMIT 1)",
            "5",
        ),
        (
            "EXISTS (SELECT 1 FROM users u WHERE u.id = m.user_id AND EXISTS (SELECT 1 FROM users v, follower f WHERE u.id = f.author AND v.id = f.reader AND v.id = 6))",
            "6",
        ),
        (
            "EXISTS (SELECT * FROM follower f WHERE f.author = m.user_id AND EXISTS (SELECT * FROM users v WHERE v.id = f.reader AND v.id = 6))",
            "6",
        ),
        (
            "EXISTS (SELECT * FROM users u WHERE u.id = m.user_id AND u.id IN (SELECT author FROM follower WHERE reader IN (?, ?)))",
            "(?, ?)",
        ),
    ] {
        assert_eq!(
            of(condition),
            Ok((own([reader]), own([]), own([]))),
            "{condition}"
        );
    }
    let found = "EXISTS (SELECT 1 FROM users u WHERE u.id = m.user_id AND u.id = 4)";
    assert_eq!(of(found), Ok((own([]), own(["4"]), own([]))));
    for condition in [
        // Of another column, of no reader, under NOT, of one branch only.
        "m.user_id IN (SELECT u.name FROM users u JOIN follower f ON u.id = f.author WHERE f.reader = 5)",
        "m.user_id IN (SELECT u.id FROM users u LEFT JOIN follower f ON u.id = f.author AND f.reader = 5)",
        "m.user_id IN (SELECT u.id FROM users u JOIN follower f ON u.id = f.reader WHERE f.reader > 5)",
        "NOT EXISTS (SELECT 1 FROM users u WHERE u.id = m.user_id AND u.id = 4)",
        "EXISTS (SELECT 1 FROM users u WHERE u.id = m.user_id AND NOT EXISTS (SELECT 1 FROM follower f WHERE f.author = u.id AND f.reader = 5))",
        "EXISTS (SELECT 1 FROM users u WHERE u.id = m.user_id AND (u.name = 'x' OR EXISTS (SELECT 1 FROM follower f WHERE f.author = u.id AND f.reader = 5)))",
        "EXISTS (SELECT 1 FROM follower f WHERE f.author = m.user_id AND f.reader NOT IN (5))",
    ] {
        assert!(
            matches!(
                of(condition),
                Err(NarrowingRefusal::Authors | NarrowingRefusal::Types)
            ),
            "{condition}: {:?}",
            of(condition)
        );
    }
}

#[test]
fn authors_are_found_in_joins() {
    let joined = |from: &str, filter: &str| {
        authors(&format!(
            "SELECT DISTINCT m.id FROM {from} WHERE {filter} ORDER BY m.id DESC LIMIT 9"
        ))
    };
    let follows = |reader: &str| Ok((own([reader]), own([]), own([])));
    assert_eq!(
        joined(
            "message m JOIN follower f ON f.author = m.user_id",
            "f.reader = 4"
        ),
        follows("4")
    );
    assert_eq!(
        joined(
            "follower f, message m",
            "m.user_id = f.author AND f.reader = 4"
        ),
        follows("4")
    );
    assert_eq!(
        joined(
            "message m JOIN users u ON u.id = m.user_id JOIN follower f ON f.author = u.id",
            "f.reader = 4"
        ),
        follows("4")
    );
    let outer = "message m LEFT JOIN follower f ON f.author = m.user_id AND f.reader = 4";
    assert_eq!(
        joined(outer, "f.reader IS NOT NULL OR m.user_id = 4"),
        Ok((own(["4"]), own(["4"]), own([])))
    );
    assert_eq!(joined(outer, "f.accepted = 1"), follows("4"));
    // Whom nobody follows is let pass.
    assert_eq!(
        joined(outer, "f.reader IS NULL OR m.user_id = 4"),
        Err(NarrowingRefusal::Authors)
    );
    assert_eq!(
        joined(outer, "m.hidden = 0"),
        Err(NarrowingRefusal::Authors)
    );
}

#[test]
fn what_does_not_bound_the_authors_is_not_taken_for_it() {
    for condition in [
        "m.user_id NOT IN (1,2)",
        "m.user_id = 1 OR m.hidden = 0",
        "NOT (m.user_id = 1)",
        "m.user_id > 5",
        "m.user_id IN (SELECT author FROM follower WHERE accepted = 1)",
        "m.user_id IN (SELECT reader FROM follower WHERE author = 5)",
        "m.user_id NOT IN (SELECT author FROM follower WHERE reader = 5)",
        "m.user_id IN (SELECT whom FROM block WHERE who = 5)",
        "EXISTS (SELECT 1 FROM follower f WHERE f.author = m.user_id)",
        "EXISTS (SELECT 1 FROM follower f WHERE f.author = m.id AND f.reader = 5)",
        "m.user_id IN (SELECT author FROM follower WHERE reader = 5 OR accepted = 1)",
    ] {
        assert_eq!(of(condition), Err(NarrowingRefusal::Authors), "{condition}");
    }
}

#[test]
fn several_rows_a_message_are_refused() {
    let rows = |columns: &str, from: &str, filter: &str| {
        shaped(
            &format!(
                "SELECT {columns} FROM {from} WHERE {filter} ORDER BY message.id DESC LIMIT 9"
            ),
            false,
        )
        .map(|_| ())
    };
    let by_list = "message.user_id IN (1,2)";
    let users = "message JOIN users ON users.id = message.user_id";
    let outer_users = "message LEFT JOIN users ON users.id = message.user_id";
    let tag = "message JOIN tag ON tag.message_id = message.id";
    let one_tag = "message JOIN tag ON tag.message_id = message.id AND tag.name = 'x'";
    let outer_tag = "message LEFT JOIN tag ON tag.message_id = message.id";
    let of_one_tag = "tag.name = 'x' AND message.user_id = 1";
    let outer_message = "users LEFT JOIN message ON users.id = message.user_id";
    for (columns, from, filter, found) in [
        ("*", users, by_list, Ok(())),
        ("*", outer_users, by_list, Ok(())),
        ("*", tag, by_list, Err(NarrowingRefusal::Joins)),
        ("*", one_tag, by_list, Ok(())),
        ("DISTINCT message.id", tag, by_list, Ok(())),
        (
            "DISTINCT message.id, tag.name",
            tag,
            by_list,
            Err(NarrowingRefusal::Joins),
        ),
        (
            "DISTINCT message.body",
            tag,
            by_list,
            Err(NarrowingRefusal::Joins),
        ),
        // What WHERE says takes rows away; the key is whole by it all the same.
        ("*", outer_tag, of_one_tag, Ok(())),
        ("*", outer_message, by_list, Ok(())),
        (
            "*",
            outer_message,
            "users.id = 1 OR message.user_id = 1",
            Err(NarrowingRefusal::Joins),
        ),
        // A joined row that depends on which copy it is.
        (
            "message.*, users.name",
            "message JOIN tag ON tag.message_id = message.id LEFT JOIN users ON users.id = message.user_id AND tag.name = 'x'",
            by_list,
            Err(NarrowingRefusal::Joins),
        ),
        // Copies of a message are the same in any order.
        ("message.*", tag, by_list, Ok(())),
        (
            "message.*, users.name",
            "message, users",
            by_list,
            Err(NarrowingRefusal::Joins),
        ),
    ] {
        assert_eq!(
            rows(columns, from, filter),
            found,
            "{columns} {from} {filter}"
        );
    }
}

/// A LEFT JOIN of follows is found through any condition that its row of NULLs does not meet.
#[test]
fn authors_are_found_on_the_nullable_side() {
    let none = || own([]);
    let page = |from: &str, filter: &str, group: &str| {
        authors(&format!(
            "SELECT m.id, m.body FROM {from} WHERE {filter} {group} ORDER BY m.id DESC LIMIT 20"
        ))
    };
    let follows = "message m LEFT JOIN follower f ON f.author = m.user_id";
    for filter in [
        "f.reader = 5",
        "(f.reader) = 5",
        "f.reader IN (5) AND f.author > 0",
        "f.author IS NOT NULL AND f.reader = 5",
        "NOT (f.author IS NULL) AND f.reader = 5",
    ] {
        let found = page(follows, filter, "");
        assert!(
            found.is_ok_and(|(readers, ..)| readers.len() == 1),
            "{filter}"
        );
    }
    let own_too = page(follows, "f.reader = 5 OR m.user_id = 5", "GROUP BY m.id");
    assert_eq!(own_too, Ok((own(["5"]), own(["5"]), none())));
    // The association and the reader's own row, as a group on the nullable side.
    let both = "message m JOIN users a ON a.id = m.user_id LEFT JOIN (follower f JOIN users r ON r.id = f.reader) ON f.author = a.id";
    let all = "GROUP BY m.id, m.user_id, m.body";
    assert_eq!(
        page(both, "r.id = 5 OR a.id = 5", all),
        Ok((own(["5"]), own(["5"]), none()))
    );
    assert_eq!(
        page(both, "r.id = 5 OR a.id = 5", "GROUP BY m.user_id, m.body"),
        Err(NarrowingRefusal::Grouped)
    );
    // One join rejects the NULL row of the next.
    let chain = "message m LEFT JOIN users a ON a.id = m.user_id LEFT JOIN follower f ON f.author = a.id LEFT JOIN users r ON r.id = f.reader";
    for filter in [
        "f.reader = 5 OR m.user_id = 5",
        "m.user_id = 5 OR r.id = 5",
        "r.id = 5 OR a.id = 5",
    ] {
        assert_eq!(
            page(chain, filter, "GROUP BY m.id"),
            Ok((own(["5"]), own(["5"]), none())),
            "{filter}"
        );
    }
    for filter in [
        "f.reader IS NULL",
        "f.reader = 5 OR m.hidden = 1",
        "COALESCE(f.reader, 5) = 5",
    ] {
        assert_eq!(
            page(follows, filter, "GROUP BY m.id"),
            Err(NarrowingRefusal::Authors),
            "{filter}"
        );
    }
}

/// DISTINCT would make one row of two messages that show the same.
#[test]
fn distinct_groups_show_the_id() {
    let page = |items: &str| {
        let text = format!(
            "SELECT DISTINCT {items} FROM message m WHERE m.user_id IN (1, 2) GROUP BY m.id ORDER BY m.id DESC LIMIT 9"
        );
        shaped(&text, false).map(|_| ())
    };
    assert_eq!(page("m.body"), Err(NarrowingRefusal::Grouped));
    assert_eq!(page("m.id, m.body"), Ok(()));
}

/// An ON of several joins in a subquery sees fewer tables than its SELECT has.
#[test]
fn columns_of_joins_in_a_subquery_are_qualified() {
    let page = |on: &str| {
        of(&format!(
            "EXISTS (SELECT 1 FROM follower f JOIN (users u JOIN block b ON b.who = u.id AND {on}) ON u.id = f.reader \
             WHERE f.reader = 5 AND f.author = m.user_id)"
        ))
        .map(|_| ())
    };
    assert_eq!(page("b.whom = 3"), Ok(()));
    assert_eq!(page("author = 3"), Err(NarrowingRefusal::Names));
}

/// A count beside a message is one of its group.
#[test]
fn counts_need_groups_of_the_id() {
    let page = |items: &str, group: &str| {
        let text = format!(
            "SELECT {items} FROM message m LEFT JOIN tag t ON t.message_id = m.id WHERE m.user_id IN (1, 2) {group} ORDER BY m.id DESC LIMIT 9"
        );
        shaped(&text, false).map(|shape| shape.row_dependencies)
    };
    for count in ["COUNT(*)", "COUNT(t.name) AS n", "COUNT(DISTINCT t.name)"] {
        assert_eq!(page(&format!("m.*, {count}"), "GROUP BY m.id"), Ok(None));
        assert_eq!(
            page(&format!("m.id, {count}"), ""),
            Err(NarrowingRefusal::Grouped)
        );
        assert_eq!(
            page(&format!("m.id, {count}"), "GROUP BY m.user_id"),
            Err(NarrowingRefusal::Grouped)
        );
    }
    assert_eq!(
        page("COUNT(t.none)", "GROUP BY m.id"),
        Err(NarrowingRefusal::Names)
    );
}

#[test]
fn the_order_is_the_feeds_own() {
    let order = |order: &str, by_time| {
        let text = format!(
            "SELECT m.id, m.created_at k, m.body AS created_at FROM message m WHERE user_id = 1 ORDER BY {order} LIMIT 9"
        );
        shaped(&text, by_time).map(|shape| shape.ties)
    };
    assert_eq!(order("m.id DESC", false), Ok(false));
    assert_eq!(order("id DESC", false), Ok(false));
    assert_eq!(order("m.created_at DESC, m.id DESC", true), Ok(false));
    assert_eq!(order("m.created_at DESC", true), Ok(true));
    assert_eq!(order("m.id DESC", true), Err(NarrowingRefusal::Order));
    assert_eq!(
        order("m.created_at DESC", false),
        Err(NarrowingRefusal::Order)
    );
    assert_eq!(order("m.id", false), Err(NarrowingRefusal::Order));
    // What follows the key only orders messages with equal ones.
    for (others, ties) in [
        ("m.id", false),
        ("m.score DESC", true),
        ("m.hidden, m.id DESC", false),
    ] {
        assert_eq!(
            order(&format!("m.created_at DESC, {others}"), true),
            Ok(ties)
        );
    }
    assert_eq!(order("m.id DESC, m.hidden", false), Ok(false));
    assert_eq!(
        order("m.hidden DESC, m.created_at DESC", true),
        Err(NarrowingRefusal::Order)
    );
    // The server sorts by the column of the answer that is called so.
    assert_eq!(order("created_at DESC", true), Err(NarrowingRefusal::Order));
    assert_eq!(order("k DESC, id DESC", true), Ok(false));
    assert_eq!(order("K DESC", true), Ok(true));
    assert_eq!(order("m.k DESC", true), Err(NarrowingRefusal::Names));
    assert_eq!(order("none DESC", true), Err(NarrowingRefusal::Names));
}

/// A string is called by what stands in it: the server sorts by that, which orders nothing.
#[test]
fn a_string_of_the_answer_may_have_the_orders_name() {
    let order = |columns: &str, order: &str| {
        let text = format!(
            "SELECT {columns} FROM message m WHERE user_id = 1 ORDER BY {order} DESC LIMIT 9"
        );
        shaped(&text, false).err()
    };
    for string in ["'id'", "' ID'", "'\u{130}d', m.id"] {
        assert_eq!(
            order(string, "id"),
            Some(NarrowingRefusal::Order),
            "{string}"
        );
        assert_eq!(order(string, "m.id"), None, "{string}");
    }
    // A number's name is its digits, a function's its text: no column of the tables is called so.
    for other in [
        "'id' AS x",
        "'x', id",
        "'ids'",
        "7, id",
        "NULL",
        "COALESCE(body, 'id')",
    ] {
        assert_eq!(order(other, "id"), None, "{other}");
    }
    // The servers fold such letters to those of the column. No such alias is read.
    let folded = order("body AS `\u{130}d`", "id");
    assert_eq!(folded, Some(NarrowingRefusal::NotUnderstood));
}

#[test]
fn a_name_that_two_columns_of_the_answer_are_given_orders_nothing() {
    let order = |columns: &str, order: &str| {
        let text = format!(
            "SELECT {columns} FROM message m JOIN users u ON u.id = m.user_id WHERE user_id = 1 ORDER BY {order} DESC, m.id DESC LIMIT 9"
        );
        shaped(&text, true).err()
    };
    assert_eq!(order("m.created_at AS at", "at"), None);
    assert_eq!(order("m.created_at AS at, m.created_at AS At", "at"), None);
    for (columns, key) in [
        ("m.created_at AS at, m.body AS at", "at"),
        ("m.created_at AS at, 1 AS at", "at"),
        // Columns of tables have these names.
        ("m.created_at AS name", "name"),
        ("m.created_at AS body", "body"),
    ] {
        assert_eq!(
            order(columns, key),
            Some(NarrowingRefusal::Order),
            "{columns}"
        );
    }
    // Of two tables.
    assert_eq!(
        order("m.created_at AS id", "id"),
        Some(NarrowingRefusal::Names)
    );
}

#[test]
fn what_may_fail_or_warn_is_refused() {
    for (condition, why) in [
        ("body = 5", NarrowingRefusal::Types),
        ("score = '5'", NarrowingRefusal::Types),
        ("score IN ('5', '6')", NarrowingRefusal::Types),
        ("created_at IN ('2020-01-01')", NarrowingRefusal::Types),
        ("hidden = body", NarrowingRefusal::Types),
        ("body LIKE 5", NarrowingRefusal::Types),
        ("hidden LIKE 'x'", NarrowingRefusal::Types),
        ("kind IN (1,2)", NarrowingRefusal::Types),
        ("created_at = 20200101", NarrowingRefusal::Types),
        ("hidden = 1.5", NarrowingRefusal::Types),
        ("body", NarrowingRefusal::Types),
        ("nobody = 1", NarrowingRefusal::Names),
        ("users.id = 1", NarrowingRefusal::Names),
        ("COALESCE(hidden, 'x') = 1", NarrowingRefusal::Types),
        (
            "EXISTS (SELECT 1 FROM odd WHERE odd.computed = 1)",
            NarrowingRefusal::NotPlain,
        ),
    ] {
        let text = format!(
            "SELECT id FROM message WHERE user_id = 1 AND {condition} ORDER BY id DESC LIMIT 9"
        );
        assert_eq!(shaped(&text, false).err(), Some(why), "{condition}");
    }
    for condition in [
        "hidden = -5",
        "score > 1.5",
        "hidden",
        "NOT hidden",
        "deleted_at IS NULL",
        "created_at > NOW() - INTERVAL 3 DAY",
        "COALESCE(hidden, 0) = 0",
        "kind IN ('a','b') AND kind <> 'c'",
        "user_id NOT IN (SELECT whom FROM block WHERE who = 3)",
    ] {
        let text = format!(
            "SELECT id FROM message WHERE user_id = 1 AND {condition} ORDER BY id DESC LIMIT 9"
        );
        assert!(
            shaped(&text, false).is_ok(),
            "{condition}: {:?}",
            shaped(&text, false)
        );
    }
}

#[test]
fn bounds_are_found_in_every_form() {
    let bounds = |condition: &str, by_time: bool| {
        let order = if by_time {
            "created_at DESC, id DESC"
        } else {
            "id DESC"
        };
        let text = format!(
            "SELECT id FROM message WHERE user_id = 1 AND {condition} ORDER BY {order} LIMIT 9"
        );
        let bounds = shaped(&text, by_time).unwrap().bounds;
        bounds
            .iter()
            .flatten()
            .map(|bound| (bound.upper, bound.inclusive, bound.id.is_some()))
            .collect::<Vec<_>>()
    };
    assert_eq!(bounds("id < 5", false), [(true, false, false)]);
    assert_eq!(bounds("5 >= id", false), [(true, true, false)]);
    assert_eq!(bounds("id > 5", false), [(false, false, false)]);
    assert_eq!(
        bounds("id BETWEEN 5 AND 9", false),
        [(false, true, false), (true, true, false)]
    );
    assert_eq!(
        bounds("created_at <= '2020-01-01 00:00:00'", true),
        [(true, true, false)]
    );
    assert_eq!(
        bounds("(created_at, id) < ('2020-01-01', 5)", true),
        [(true, false, true)]
    );
    assert_eq!(
        bounds(
            "(created_at < '2020-01-01' OR (created_at = '2020-01-01' AND id < 5))",
            true
        ),
        [(true, false, true)]
    );
    for none in [
        "id <> 5",
        "NOT (id < 5)",
        "(id < 5 OR hidden = 1)",
        "(id, hidden) < (5, 1)",
    ] {
        assert_eq!(bounds(none, false), [], "{none}");
    }
}

#[test]
fn a_timestamp_that_is_compared_is_noted() {
    let zoned = |condition: &str| {
        let shape = shaped(
            &format!(
                "SELECT id, deleted_at FROM message WHERE user_id = 1 AND {condition} ORDER BY id DESC LIMIT 5"
            ),
            false,
        );
        shape.unwrap().zoned
    };
    for compared in [
        "deleted_at < '2026-10-25 02:30:00'",
        "NOT (deleted_at > NOW())",
        "COALESCE(deleted_at, created_at) = created_at",
        "(hidden = 1 OR created_at BETWEEN deleted_at AND '2026-10-25')",
        "(deleted_at, id) < ('2026-10-25', 5)",
        "EXISTS (SELECT 1 FROM message m WHERE m.deleted_at = message.created_at)",
        "created_at IN (SELECT deleted_at FROM message m)",
    ] {
        assert!(zoned(compared), "{compared}");
    }
    for other in ["deleted_at IS NULL", "created_at < '2026-10-25 02:30:00'"] {
        assert!(!zoned(other), "{other}");
    }
}

#[test]
fn a_star_does_not_show_an_id_that_is_hidden() {
    let read_with = |is_hidden: bool, columns: &str| {
        let text = format!(
            "SELECT DISTINCT {columns} FROM message m WHERE user_id = 1 ORDER BY m.id DESC LIMIT 5"
        );
        let (words, query) = read(&text);
        let mut app = app();
        app.0[0].1.columns[0].is_hidden = is_hidden;
        shape(&query.unwrap(), &words, &feed(false), &app).err()
    };
    for columns in ["*", "m.*"] {
        assert_eq!(read_with(false, columns), None);
        assert_eq!(read_with(true, columns), Some(NarrowingRefusal::Joins));
    }
    assert_eq!(read_with(true, "m.id, m.body"), None);
}
