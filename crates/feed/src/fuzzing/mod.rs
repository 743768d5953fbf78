//! Body of the fuzz target `feed`: takes any bytes and fails by an assertion.

mod evaluator;
mod plans;
mod reference_parser;

use crate::authors::FollowNames;
use crate::definition::TieOrder;
use crate::narrowed_text::{CandidateCondition, NarrowingForm};
use crate::parser::parse;
use crate::schema::{ColumnSchema, ComparisonClass, Schema, TableSchema};
use crate::shape::{FeedNames, shape};
use crate::words::StatementWords;
use headwater_sql::page_words;

/// Statements to start from.
const STATEMENTS: [&str; 12] = [
    "SELECT * FROM message WHERE user_id IN (1, 2, 3) ORDER BY id DESC LIMIT 20",
    "SELECT m.id FROM message m WHERE m.user_id IN (SELECT author FROM follower WHERE reader = 7) AND m.hidden = 0 ORDER BY m.id DESC LIMIT 5, 20",
    "SELECT DISTINCT m.id, m.body FROM message AS m JOIN follower f ON f.author = m.user_id AND f.reader = ? WHERE m.id < ? ORDER BY m.id DESC LIMIT ?",
    "SELECT `message`.* FROM `message` WHERE EXISTS (SELECT 1 FROM follower WHERE author = message.user_id AND reader = 7) ORDER BY `message`.`id` DESC LIMIT 20 OFFSET 0",
    "SELECT id, body FROM message WHERE (user_id IN (SELECT author FROM follower WHERE reader = 7) OR user_id = 7) AND body LIKE '%x%' ORDER BY id DESC LIMIT 20;",
    "SELECT m.id, u.name FROM message m LEFT JOIN users u ON u.id = m.user_id WHERE m.user_id = 3 AND NOT (m.hidden <> 0) ORDER BY m.id DESC LIMIT 20",
    "SELECT m.id FROM message m INNER JOIN follower f ON m.user_id = f.author WHERE f.reader = 7 AND (m.body IS NULL OR m.hidden IN (0, 1)) GROUP BY m.id ORDER BY m.id DESC LIMIT 20",
    "SELECT id FROM message /* newest */ WHERE user_id IN (?, ?, ?) AND id BETWEEN 5 AND 90 -- so\n ORDER BY id DESC LIMIT 20",
    "SELECT DISTINCT `d`.`m_id` AS `ids_m_id` FROM (SELECT `m`.`id` AS `m_id`, `m`.`body` AS `m_body` FROM `message` `m` INNER JOIN `users` `u` ON `u`.`id`=`m`.`user_id` WHERE (`m`.`user_id` IN ('1', '2')) AND (`m`.`hidden` = '0')) `d` ORDER BY `d`.`m_id` DESC, `m_id` ASC LIMIT 20 OFFSET 20",
    "SELECT m.id AS number, m.body FROM ((message m INNER JOIN users u ON (u.id = m.user_id)) LEFT OUTER JOIN users v ON (v.id = m.hidden)) WHERE EXISTS (SELECT 1 FROM users w WHERE w.id = m.user_id AND (EXISTS (SELECT 1 FROM users x, follower f WHERE w.id = f.author AND x.id = f.reader AND x.id = 7))) ORDER BY number DESC LIMIT 20",
    "SELECT message.id FROM message WHERE (message.user_id IN (SELECT U0.`id` AS a FROM `users` U0 INNER JOIN `follower` U1 ON (U0.`id` = U1.`author`) WHERE U1.`reader` IN (7)) AND message.id < '900') ORDER BY message.id DESC LIMIT 20",
    "SELECT id FROM message WHERE EXISTS(SELECT author, 1 AS `a` FROM `follower` U0 WHERE (U0.`author` = (`message`.`user_id`) AND U0.`reader` = 7) LIMIT 1) ORDER BY id DESC, id LIMIT 20",
];

/// Tables of an application.
struct FuzzSchema([(&'static str, TableSchema); 3]);

impl Schema for FuzzSchema {
    fn table(&self, _: Option<&str>, name: &str) -> Option<&TableSchema> {
        let entry = self.0.iter().find(|(own, _)| *own == name);
        entry.map(|(_, table)| table)
    }
}

fn table(columns: &[(&str, ComparisonClass)], unique: &[usize]) -> TableSchema {
    let column = |(name, class): &(&str, ComparisonClass)| ColumnSchema {
        name: (*name).to_owned(),
        class: *class,
        is_virtual: false,
        is_zoned: false,
        is_hidden: false,
        is_nullable: false,
        is_long: false,
    };
    TableSchema {
        columns: columns.iter().map(column).collect(),
        unique_keys: vec![unique.to_vec()],
        secondary_indexes: None,
    }
}

fn app() -> FuzzSchema {
    use ComparisonClass::{Integer, Text};
    let message = [
        ("id", Integer),
        ("user_id", Integer),
        ("body", Text),
        ("hidden", Integer),
    ];
    FuzzSchema([
        ("message", table(&message, &[0])),
        (
            "follower",
            table(&[("reader", Integer), ("author", Integer)], &[0, 1]),
        ),
        ("users", table(&[("id", Integer), ("name", Text)], &[0])),
    ])
}

fn feed() -> FeedNames {
    FeedNames {
        database: Some("app".into()),
        message: "message".into(),
        id: "id".into(),
        author: "user_id".into(),
        key: None,
        ties: TieOrder::default(),
        follow: Some(FollowNames {
            table: "follower".into(),
            reader: "reader".into(),
            author: "author".into(),
        }),
    }
}

/// The bytes draw small tables and a statement: its narrowed page, where it is known to be whole, is the statement's own.
pub fn plan(data: &[u8]) {
    let _ = plans::compare(data);
}

/// The first byte chooses a statement. Edits follow: position (2 bytes), bytes removed, bytes inserted, and these bytes. Without a
/// statement of that number, the remainder is the text itself.
pub fn text(data: &[u8]) {
    let Some((first, mut edits)) = data.split_first() else {
        return;
    };
    let Some(statement) = STATEMENTS.get(usize::from(*first)) else {
        return assert_narrowing(edits);
    };
    let mut text = statement.as_bytes().to_vec();
    while let Some(([low, high, removed, inserted_len], rest)) = edits.split_first_chunk() {
        let (inserted, remaining) = rest.split_at(usize::from(*inserted_len).min(rest.len()));
        let at = usize::from(u16::from_le_bytes([*low, *high])) % (text.len() + 1);
        let end = at.saturating_add(usize::from(*removed)).min(text.len());
        text.splice(at..end, inserted.iter().copied());
        edits = remaining;
    }
    assert_narrowing(&text);
}

/// Any text is refused, or is narrowed to itself with one more condition, which may replace a list of authors. The narrowed text has the
/// same shape.
fn assert_narrowing(text: &[u8]) {
    let Some(words) = StatementWords::read(text) else {
        return;
    };
    let (app, feed) = (app(), feed());
    let Ok(query) = parse(text, &words) else {
        return;
    };
    let Ok(original_shape) = shape(&query, &words, &feed, &app) else {
        return;
    };
    // Otherwise no client's count is ever looked at.
    if original_shape.count.is_some() {
        assert!(page_words::begins_count(text) || page_words::has_group_words(text));
        return;
    }
    // Several places are narrowed, or one within another SELECT: [`plan`] compares what comes of it.
    if original_shape.sites.len() > 1 || original_shape.page_in_outer.is_some() {
        return;
    }
    // Otherwise no client's statement of this shape is ever looked at.
    assert!(page_words::has_page_words(text));
    let (ids, oldest) = (
        CandidateCondition::Ids(&[9u64, 7]),
        CandidateCondition::From(7),
    );
    let original = reference_parser::read(text);
    let column = original_shape
        .id_column(text, &words, &feed)
        .unwrap_or_default();
    let one = CandidateCondition::Ids(&[9, 9]);
    assert_eq!(
        original_shape.narrow(text, &words, &feed, (one, None), NarrowingForm::PLAIN),
        None
    );
    for (form, candidates) in NarrowingForm::ALL
        .into_iter()
        .flat_map(|form| [(form, ids), (form, oldest)])
    {
        let Some(narrowed) = original_shape.narrow(text, &words, &feed, (candidates, None), form)
        else {
            // Only a missing list cannot be replaced, and no list by a mere bound.
            assert!(
                form.replaces_list
                    && (original_shape.replaceable_list.is_none() || candidates == oldest)
            );
            continue;
        };
        if let Some(original) = &original {
            let condition = match candidates {
                CandidateCondition::Ids(_) => format!("{column} IN (9, 7)"),
                CandidateCondition::From(_) => format!("{column} >= 7"),
            };
            reference_parser::assert_narrowed(original, &narrowed, form, &condition);
        }
        let plain = match form.buffered {
            true => without_buffer(&narrowed),
            false => narrowed,
        };
        let again = StatementWords::read(&plain);
        let again = again.as_ref().and_then(|again| {
            let query = parse(&plain, again).ok()?;
            Some((shape_words(again, &plain), query))
        });
        let Some((narrowed_words, narrowed)) = again else {
            unreachable!("a narrowed text is not understood: {}", lossy(&plain));
        };
        assert_eq!(narrowed.items.len(), query.items.len());
        assert_eq!(narrowed.order.len(), query.order.len());
        let before = shape_words(&words, text);
        let more = match form.replaces_list {
            true => {
                narrowed_words.len()
                    + original_shape
                        .replaceable_list
                        .as_ref()
                        .map_or(0, ExactSizeIterator::len)
            }
            false => narrowed_words.len(),
        };
        // `m.id IN (9,7)` is 5 words, `m.id >= 7` is one more; WHERE, or AND and parentheses, are added.
        let own_words = if candidates == oldest { 6 } else { 5 };
        let expected = match (
            form.replaces_list,
            original_shape
                .sites
                .first()
                .is_some_and(|site| site.filter.is_some()),
        ) {
            (true, _) => own_words,
            (false, true) => own_words + 3,
            (false, false) => own_words + 1,
        };
        assert_eq!(more, before.len() + expected, "{}", lossy(&plain));
        let lists = |all: &[Vec<u8>]| all.iter().filter(|word| *word == b"(9,7)").count();
        if candidates == ids {
            assert!(lists(&narrowed_words) > 0 && lists(&narrowed_words) <= lists(&before) + 1);
        }
    }
}

fn without_buffer(text: &[u8]) -> Vec<u8> {
    const WORD: &[u8] = b" SQL_BUFFER_RESULT";
    let at = text.windows(WORD.len()).position(|part| part == WORD);
    let mut plain = text.to_vec();
    if let Some(at) = at {
        plain.drain(at..at + WORD.len());
    }
    plain
}

fn shape_words(words: &StatementWords, text: &[u8]) -> Vec<Vec<u8>> {
    let all = 0..words.words.len();
    all.map(|at| words.text(at, text).to_vec()).collect()
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PIECES: &[&str] = &[
        "AND",
        "OR",
        "NOT",
        "(",
        ")",
        ",",
        "user_id",
        "id",
        "message.",
        "m.",
        "`",
        "'",
        "IN",
        "=",
        "<",
        "?",
        "5",
        "DESC",
        "ASC",
        "LIMIT",
        "OFFSET",
        "--",
        "\n",
        "/*",
        "*/",
        "NULL",
        "SELECT",
        "WHERE",
        " ",
        "ORDER BY",
        "GROUP BY id",
        "DISTINCT",
        "LEFT JOIN",
        "ON",
        "EXISTS",
        "@a",
        ";",
        "\u{e9}",
        "#",
        "FOR UPDATE",
        "UNION",
    ];

    #[test]
    fn each_statement_to_begin_with_is_narrowed() {
        for statement in STATEMENTS {
            let text = statement.as_bytes();
            let words = StatementWords::read(text);
            let shaped = words.and_then(|words| {
                let query = parse(text, &words).ok()?;
                shape(&query, &words, &feed(), &app()).ok()
            });
            assert!(shaped.is_some(), "{statement}");
            assert!(reference_parser::read(text).is_some(), "{statement}");
            assert_narrowing(text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn it_holds_for_statements_that_are_nearly_right(
            statement in 0..8_u8,
            pieces in prop::collection::vec((0..300_u16, 0..12_u8, prop::sample::select(PIECES)), 0..5),
        ) {
            let mut data = vec![statement];
            for (at, gone, piece) in pieces {
                data.extend(at.to_le_bytes());
                data.extend([gone, u8::try_from(piece.len()).unwrap_or_default()]);
                data.extend(piece.as_bytes());
            }
            text(&data);
        }

        #[test]
        fn it_holds_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..200)) {
            text(&data);
        }
    }
}
