//! Draws small tables and a statement of a grammar wider than what is served, narrows it as memory would, and compares the rows with those
//! of a slow evaluator: a narrowed page that is taken for whole is the statement's own.

use std::fmt::Write as _;

use headwater_timeline::{IntegerColumnType, KeyType};

use super::evaluator::{self, Relation, Tables, Value};
use super::reference_parser;
use crate::authors::{AuthorSelection, FollowNames};
use crate::binding::{FeedColumnTypes, FeedPosition, FeedStatement, index_numbers};
use crate::definition::TieOrder;
use crate::narrowed_text::{CandidateCondition, NarrowingForm};
use crate::parser::parse;
use crate::schema::{ColumnSchema, ComparisonClass, Schema, TableSchema};
use crate::shape::{FeedNames, StatementShape, shape_of_postings};
use crate::words::StatementWords;

const INTEGER: IntegerColumnType = IntegerColumnType {
    bits: 32,
    signed: false,
};

/// The tables, with their keys.
const TABLES: [(&str, &[&str], &[usize]); 4] = [
    (
        "post",
        &["id", "author", "grp", "made", "flag", "likes"],
        &[0],
    ),
    ("follow", &["reader", "author", "ok"], &[0, 1]),
    ("belongs", &["reader", "grp"], &[0, 1]),
    ("person", &["id", "flag"], &[0]),
];

/// Choices that bytes make.
struct Draw<'a>(std::slice::Iter<'a, u8>);

impl Draw<'_> {
    fn below(&mut self, count: u64) -> u64 {
        u64::from(self.0.next().copied().unwrap_or_default()) % count
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<'t>(&mut self, all: &[&'t str]) -> &'t str {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap_or_default();
        all.get(at).copied().unwrap_or_default()
    }

    fn nullable(&mut self, count: u64) -> Value {
        match self.one_in(6) {
            true => Value::Null,
            false => self.integer(count),
        }
    }

    fn integer(&mut self, count: u64) -> Value {
        Value::Integer(i64::try_from(self.below(count)).unwrap_or_default())
    }
}

struct PlanSchema(Vec<(&'static str, TableSchema)>);

impl Schema for PlanSchema {
    fn table(&self, _: Option<&str>, name: &str) -> Option<&TableSchema> {
        let entry = self.0.iter().find(|(own, _)| *own == name);
        entry.map(|(_, table)| table)
    }
}

fn schema() -> PlanSchema {
    let table = |(name, columns, unique): (&'static str, &[&str], &[usize])| {
        let column = |at: usize, column: &&str| ColumnSchema {
            name: (*column).to_owned(),
            class: ComparisonClass::Integer,
            is_virtual: false,
            is_zoned: false,
            is_hidden: false,
            is_nullable: !unique.contains(&at),
            is_long: false,
        };
        let columns = columns.iter().enumerate();
        let columns = columns.map(|(at, name)| column(at, name)).collect();
        let unique_keys = vec![unique.to_vec()];
        (
            name,
            TableSchema {
                columns,
                unique_keys,
                secondary_indexes: None,
            },
        )
    };
    PlanSchema(TABLES.into_iter().map(table).collect())
}

fn tables(draw: &mut Draw<'_>) -> Tables {
    let relation = |name: &str, rows: Vec<Vec<Value>>| {
        let known = TABLES.iter().find(|(own, ..)| *own == name);
        let columns = known.map_or(&[][..], |(_, columns, _)| columns);
        let columns = columns
            .iter()
            .map(|column| (name.to_owned(), (*column).to_owned()));
        (
            name.to_owned(),
            Relation {
                columns: columns.collect(),
                rows,
            },
        )
    };
    let posts = (0..4 + draw.below(6)).map(|id| {
        let id = i64::try_from(id).unwrap_or_default();
        vec![
            Value::Integer(id),
            draw.nullable(4),
            draw.nullable(3),
            draw.nullable(4),
            draw.nullable(2),
            draw.integer(4),
        ]
    });
    let posts = posts.collect();
    let pairs = |draw: &mut Draw<'_>, more: bool| {
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for _ in 0..draw.below(5) {
            let (reader, of) = (draw.integer(3), draw.integer(4));
            let is_new = !rows
                .iter()
                .any(|row| row.starts_with(&[reader.clone(), of.clone()]));
            let mut row = vec![reader, of];
            row.extend(more.then(|| draw.nullable(2)));
            rows.extend(is_new.then_some(row));
        }
        rows
    };
    let (follows, members) = (pairs(draw, true), pairs(draw, false));
    let people = (0..4).map(|id| vec![Value::Integer(id), draw.nullable(2)]);
    let people = people.collect();
    vec![
        relation("post", posts),
        relation("follow", follows),
        relation("belongs", members),
        relation("person", people),
    ]
}

/// Conditions that select the posts of a reader's feed.
const MEMBERSHIPS: [&str; 12] = [
    "p.author IN (SELECT x.author FROM follow x WHERE x.reader = {r})",
    "p.author IN (SELECT x.author FROM follow x WHERE x.reader = {r} AND x.ok = 1)",
    "p.author IN (SELECT author FROM (SELECT x.author FROM follow x WHERE x.reader = {r}) d)",
    "EXISTS (SELECT 1 FROM follow x WHERE x.author = p.author AND x.reader = {r})",
    "EXISTS (SELECT 1 FROM person y JOIN follow x ON x.author = y.id WHERE y.id = p.author AND x.reader = {r})",
    "{r} IN (SELECT x.reader FROM follow x WHERE x.author = p.author)",
    "(SELECT x.author FROM follow x WHERE x.author = p.author AND x.reader = {r} LIMIT 1) IS NOT NULL",
    "p.grp IN (SELECT y.grp FROM belongs y WHERE y.reader = {r})",
    "EXISTS (SELECT 1 FROM belongs y WHERE y.reader = {r} AND p.grp = y.grp)",
    "p.grp = {r}",
    "p.grp IN (0, 2)",
    "p.author IN (1, {r})",
];

/// Conditions on a joined follow `f`, which may be a row of NULLs.
const EDGES: [&str; 11] = [
    "EXISTS (SELECT 1 FROM follow x WHERE x.author = f.author AND x.reader = 1)",
    "f.author IN (SELECT x.author FROM follow x WHERE x.reader = 2)",
    "f.ok = 1",
    "f.reader IS NULL",
    "f.author IS NOT NULL",
    "f.ok <=> NULL",
    "NOT (f.ok <=> 1)",
    "f.ok IS NOT TRUE",
    "f.ok IS FALSE",
    "(f.author, f.reader) <=> (NULL, NULL)",
    "COALESCE(f.reader, 1) = 1",
];

/// A condition on a post `p`, and on what it is joined with.
fn condition(draw: &mut Draw<'_>, joined: &str, depth: u32) -> String {
    let (reader, number) = (draw.below(3), draw.below(6));
    if depth > 0 && draw.one_in(2) {
        let (left, right) = (
            condition(draw, joined, depth - 1),
            condition(draw, joined, depth - 1),
        );
        return match draw.below(5) {
            0 => format!("NOT ({left})"),
            1 | 2 => format!("({left} OR {right})"),
            _ => format!("({left} AND {right})"),
        };
    }
    let followed = match joined {
        "f" => format!("f.reader = {reader}"),
        "m" => format!("m.reader = {reader}"),
        _ => format!("p.author = {reader}"),
    };
    if joined == "f" && draw.one_in(4) {
        return draw.pick(&EDGES).to_owned();
    }
    if draw.one_in(4) {
        return draw.pick(&MEMBERSHIPS).replace("{r}", &reader.to_string());
    }
    let text = draw.pick(&[
        "FOLLOWED",
        "FOLLOWED",
        "p.author NOT IN (SELECT x.author FROM follow x WHERE x.reader = {r})",
        "NOT EXISTS (SELECT 1 FROM follow x WHERE x.author = p.author AND x.reader = {r})",
        "p.flag = 1",
        "p.flag IS NULL",
        "p.flag IS NOT TRUE",
        "p.flag <=> NULL",
        "COALESCE(p.flag, 0) = 0",
        "p.likes > {r}",
        "p.likes BETWEEN {r} AND {n}",
        "p.id <= {n}",
        "p.id < {n}",
        "p.made < {r}",
        "p.made <= {r}",
        "(p.made, p.id) < ({r}, {n})",
        "p.made < {r} OR (p.made = {r} AND p.id < {n})",
        "(NULL IS NULL OR p.made <= {r})",
        "({r} IS NULL OR p.made <= {r})",
        "p.made >= {r}",
        "CASE WHEN p.flag = 1 THEN 0 ELSE 1 END = 1",
        "(SELECT COUNT(*) FROM follow x WHERE x.author = p.author) > 1",
        "p.id <= (SELECT z.id FROM post z WHERE z.id = {n})",
        "true",
    ]);
    let text = text.replace("FOLLOWED", &followed);
    text.replace("{r}", &reader.to_string())
        .replace("{n}", &number.to_string())
}

/// FROM and WHERE of a page, and the alias of a table that may join several rows to a post.
fn body(draw: &mut Draw<'_>) -> (String, &'static str) {
    let reader = draw.below(3);
    let (joined, from) = match draw.below(14) {
        0 => ("f", "post p JOIN follow f ON f.author = p.author"),
        1 => ("f", "follow f JOIN post p ON p.author = f.author"),
        2 => ("f", "post p LEFT JOIN follow f ON f.author = p.author"),
        3 => (
            "f",
            "post p LEFT JOIN follow f ON f.author = p.author AND f.reader = {r}",
        ),
        4 => (
            "f",
            "post p LEFT JOIN person o ON o.id = p.author LEFT JOIN follow f ON f.author = o.id",
        ),
        5 => (
            "f",
            "post p JOIN (person o JOIN follow f ON f.author = o.id) ON o.id = p.author",
        ),
        6 => ("f", "post p, follow f"),
        7 => ("m", "post p LEFT JOIN belongs m ON m.grp = p.grp"),
        8 => ("", "post p JOIN person o ON o.id = p.author AND o.flag = 1"),
        10 => (
            "",
            "post p JOIN (SELECT x.author FROM follow x WHERE x.reader = {r}) d ON d.author = p.author",
        ),
        11 => (
            "",
            "post p LEFT JOIN (SELECT y.id AS who FROM person y JOIN (SELECT author FROM follow WHERE reader = {r}) x ON x.author = y.id) d ON d.who = p.author AND d.who IS NOT NULL",
        ),
        9 => ("", "post p LEFT JOIN person o ON o.id = p.author"),
        _ => ("", "post p"),
    };
    let from = from.replace("{r}", &reader.to_string());
    let mut filter = condition(draw, joined, 2);
    if !draw.one_in(4) {
        let own = draw.pick(&MEMBERSHIPS).replace("{r}", &reader.to_string());
        let own = match joined {
            "f" => format!("f.reader = {reader}"),
            "m" => format!("m.reader = {reader}"),
            _ => own,
        };
        filter = draw
            .pick(&[
                "OWN AND FILTER",
                "FILTER AND (OWN OR p.author = 2)",
                "(OWN OR p.grp = 1) AND FILTER",
            ])
            .replace("OWN", &own)
            .replace("FILTER", &filter);
    }
    if from.contains("post p, follow f") {
        filter = format!("f.author = p.author AND {filter}");
    }
    (format!("FROM {from} WHERE {filter}"), joined)
}

/// ORDER BY of a page: by the id, or by the key.
fn order(draw: &mut Draw<'_>, by_key: bool) -> &'static str {
    match by_key {
        false => draw.pick(&["p.id DESC", "p.id DESC", "id DESC"]),
        true => draw.pick(&[
            "p.made DESC",
            "p.made DESC",
            "p.made DESC, p.id DESC",
            "p.made IS NULL, p.made DESC, p.id DESC",
            "p.made DESC, p.likes DESC",
            "p.made DESC, p.likes, p.id",
            "p.flag IS NULL, p.made DESC, p.id DESC",
        ]),
    }
}

fn statement(draw: &mut Draw<'_>, by_key: bool) -> String {
    let mut limit = format!("LIMIT {}", 1 + draw.below(4));
    if draw.one_in(3) {
        let _ = write!(limit, " OFFSET {}", draw.below(3));
    }
    let (first, (body_text, joined)) = (order(draw, by_key), body(draw));
    let key = if by_key { "made" } else { "id" };
    let columns = draw.pick(&["p.id, p.made", "p.id, p.made, p.likes", "p.*"]);
    let edges: &[&str] = match joined {
        "f" => &[
            "p.id, f.reader",
            "p.id, f.author, f.ok",
            "f.reader, p.*, f.author",
            "*",
        ],
        "m" => &["p.id, m.grp", "m.grp, m.reader, p.id, p.likes"],
        _ => &[],
    };
    if !edges.is_empty() && draw.one_in(3) {
        let columns = draw.pick(edges);
        let distinct = draw.pick(&["", "", "DISTINCT "]);
        return format!("SELECT {distinct}{columns} {body_text} ORDER BY {first} {limit}");
    }
    match draw.below(9) {
        0 => format!("SELECT DISTINCT {columns} {body_text} ORDER BY {first} {limit}"),
        1 => format!(
            "SELECT p.id, p.made, p.likes {body_text} GROUP BY p.id, p.made, p.likes ORDER BY {first} {limit}"
        ),
        2 => format!(
            "SELECT d.id, d.made FROM (SELECT {columns} {body_text}) d ORDER BY d.{key} DESC {limit}"
        ),
        3 => {
            let union = draw.pick(&["UNION", "UNION ALL"]);
            let also = match draw.one_in(4) {
                true => "p.id, p.likes, p.made",
                false => columns,
            };
            let (other, _) = body(draw);
            format!(
                "SELECT * FROM (SELECT {columns} {body_text} {union} SELECT {also} {other}) d ORDER BY d.{key} DESC {limit}"
            )
        }
        4 => {
            let (other, _) = body(draw);
            format!(
                "SELECT p.id, p.made {body_text} UNION SELECT p.id, p.made {other} ORDER BY {key} DESC {limit}"
            )
        }
        5 => format!(
            "SELECT d.id, o.flag FROM (SELECT p.id, p.made, p.author {body_text} ORDER BY {first} {limit}) d LEFT JOIN person o ON o.id = d.author ORDER BY d.{key} DESC"
        ),
        6 => format!(
            "SELECT d.id, COUNT(x.reader) FROM (SELECT {columns} {body_text} ORDER BY {first} {limit}) d LEFT JOIN follow x ON x.reader = d.id GROUP BY d.id ORDER BY d.id DESC"
        ),
        7 => format!(
            "SELECT q.id, q.likes FROM post q WHERE q.flag IS NULL AND q.id IN (SELECT d.id FROM (SELECT p.id {body_text} ORDER BY {first} {limit}) d) ORDER BY q.{key} DESC"
        ),
        _ => format!("SELECT {columns} {body_text} ORDER BY {first} {limit}"),
    }
}

/// The same statement, maybe with a list of authors that WITH names.
fn with_name(draw: &mut Draw<'_>, text: String) -> String {
    let rows = format!(
        "SELECT x.author FROM follow x WHERE x.reader = {}",
        draw.below(3)
    );
    let list = format!("IN ({rows})");
    match text.starts_with("SELECT") && text.contains(&list) && draw.one_in(2) {
        true => {
            let named = text.replace(&list, "IN (SELECT w.author FROM w)");
            format!("WITH w AS ({rows}) {named}")
        }
        false => text,
    }
}

fn feeds(by_key: bool, ties: TieOrder) -> [FeedNames; 2] {
    let feed = |author: &str, follow: &str| FeedNames {
        database: Some("app".into()),
        message: "post".into(),
        id: "id".into(),
        author: author.into(),
        key: by_key.then(|| "made".into()),
        ties,
        follow: Some(FollowNames {
            table: follow.into(),
            reader: "reader".into(),
            author: author.into(),
        }),
    };
    [feed("author", "follow"), feed("grp", "belongs")]
}

/// The column of a row, as a number; NULL is none.
fn cell(tables: &Tables, row: &[Value], column: &str) -> Option<u64> {
    let (_, post) = tables.first()?;
    let at = post.columns.iter().position(|(_, name)| name == column)?;
    match row.get(at)? {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The positions of messages that memory names for a selection.
fn posted(
    selection: &AuthorSelection,
    feed: &FeedNames,
    statement: FeedStatement<'_>,
    types: FeedColumnTypes,
    tables: &Tables,
) -> Option<Vec<(u64, u64)>> {
    let (readers, authors) = selection.bind(statement, types).ok()?;
    let (readers, mut authors) = (
        index_numbers(&readers, types).ok()?,
        index_numbers(&authors, types).ok()?,
    );
    let follow = feed.follow.as_ref()?;
    let (_, edges) = tables.iter().find(|(name, _)| *name == follow.table)?;
    for row in &edges.rows {
        if let (Some(Value::Integer(reader)), Some(Value::Integer(author))) =
            (row.first(), row.get(1))
            && readers.iter().any(|own| i64::try_from(*own) == Ok(*reader))
        {
            authors.push(u64::try_from(*author).ok()?);
        }
    }
    let (_, posts) = tables.first()?;
    let own = posts.rows.iter().filter(|row| {
        let author = cell(tables, row, &feed.author);
        author.is_some_and(|author| authors.contains(&author))
    });
    let position = |row: &Vec<Value>| {
        let key = feed.key.as_ref().map_or(Some(0), |key| {
            Some(cell(tables, row, key).map_or(0, |made| made + 1))
        });
        Some((key?, cell(tables, row, "id")?))
    };
    own.map(position).collect()
}

/// The candidates of a page with this limit: their ids, whether there are no others, and whether they end before a tie.
fn candidates(
    mut all: Vec<(u64, u64)>,
    (upper, lower): (Option<FeedPosition>, Option<FeedPosition>),
    shape: &StatementShape,
    limit: usize,
) -> (Vec<u64>, bool, bool) {
    let within = |(key, id): &(u64, u64)| {
        let at = FeedPosition { key: *key, id: *id };
        upper.is_none_or(|upper| at <= upper) && lower.is_none_or(|lower| at >= lower)
    };
    all.retain(within);
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    let mut end = limit.min(all.len());
    let mut tied = false;
    if shape.ties {
        let mut pairs = all.iter().zip(all.iter().skip(1)).take(limit);
        if let Some(tie) = pairs.position(|((one, _), (next, _))| one == next) {
            (end, tied) = (tie, true);
        }
    } else if shape.whole_keys
        && let Some((next, _)) = all.get(limit)
    {
        end = all
            .iter()
            .take(limit)
            .rposition(|(key, _)| key != next)
            .map_or(0, |last| last + 1);
    }
    let ids = all.iter().take(end).map(|(_, id)| *id).collect();
    (ids, end == all.len(), tied)
}

/// The same tables, with their rows the other way round.
fn turned(tables: &Tables) -> Tables {
    let mut turned = tables.clone();
    turned
        .iter_mut()
        .for_each(|(_, relation)| relation.rows.reverse());
    turned
}

/// What became of a drawn statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanOutcome {
    /// It is relayed, or the evaluator does not know it.
    LeftOut,
    /// Narrowed, its page is not known to be whole.
    Short,
    /// Its narrowed page is the statement's own.
    Equal,
}

/// Draws tables and a statement, and compares.
pub(super) fn compare(data: &[u8]) -> PlanOutcome {
    let mut draw = Draw(data.iter());
    let tables = tables(&mut draw);
    let by_key = draw.one_in(2);
    let ties = match draw.one_in(2) {
        true => TieOrder::Id,
        false => TieOrder::Server,
    };
    let text = statement(&mut draw, by_key);
    let text = with_name(&mut draw, text);
    let limit = 1 + usize::try_from(draw.below(5)).unwrap_or_default();
    narrowed_is_own(&text, &tables, &feeds(by_key, ties), limit).unwrap_or(PlanOutcome::LeftOut)
}

fn narrowed_is_own(
    text: &str,
    tables: &Tables,
    feeds: &[FeedNames; 2],
    limit: usize,
) -> Option<PlanOutcome> {
    let schema = schema();
    let words = StatementWords::read(text.as_bytes())?;
    let query = parse(text.as_bytes(), &words).ok()?;
    let [feed, other] = feeds;
    let others = std::slice::from_ref(other);
    let shape = shape_of_postings(&query, &words, feed, others, &schema).ok()?;
    let types = FeedColumnTypes {
        id: INTEGER,
        author: INTEGER,
        key: feed.key.is_some().then_some(KeyType::Integer(INTEGER)),
        has_follow_copies: false,
        has_mixed_signs: false,
    };
    let statement = FeedStatement {
        text: text.as_bytes(),
        words: &words,
        parameters: &[],
        types: &[],
        utc_offset: Some(0),
    };
    let request = shape.bind(statement, types).ok()?;
    let mut all = posted(&shape.authors, feed, statement, types, tables)?;
    for posting in &shape.postings {
        all.extend(posted(&posting.authors, other, statement, types, tables)?);
    }
    let needed = request.limit + request.offset;
    let (ids, is_complete, tied) = candidates(all, (request.upper, request.lower), &shape, limit);
    if (tied || !is_complete) && (ids.len() as u64) < needed {
        return Some(PlanOutcome::Short);
    }
    let mut padded = ids.clone();
    let others = match is_complete {
        true => [0, 1],
        false => [INTEGER.largest(), INTEGER.largest() - 1],
    };
    for id in others {
        if padded.len() < 2 && !padded.contains(&id) {
            padded.push(id);
        }
    }
    let whole = (shape.page_in_outer.is_some() && !is_complete).then_some(needed);
    let given = (CandidateCondition::Ids(&padded), whole);
    let original = match shape.with_tie_break(text.as_bytes(), &words, feed) {
        Some(ordered) => ordered,
        None => text.as_bytes().to_vec(),
    };
    let own = evaluator::rows(&reference_parser::read(&original)?, tables)?;
    let from_turned = evaluator::rows(&reference_parser::read(&original)?, &turned(tables))?;
    let least = match shape.page_in_outer {
        Some(_) => 1,
        None => request.limit,
    };
    let mut outcome = PlanOutcome::Short;
    for replaces_list in [false, true] {
        // Without the list of authors, an id that is added would pass.
        if replaces_list && ids.len() < 2 {
            continue;
        }
        let form = NarrowingForm {
            replaces_list,
            buffered: false,
        };
        let Some(narrowed) = shape.narrow(text.as_bytes(), &words, feed, given, form) else {
            continue;
        };
        let read = reference_parser::read(&narrowed);
        let rows = read.and_then(|query| evaluator::rows(&query, tables))?;
        if (rows.len() as u64) < least && !is_complete {
            continue;
        }
        assert_eq!(
            rows,
            own,
            "{text}\n{}\n{tables:?}",
            String::from_utf8_lossy(&narrowed)
        );
        // Its order is total, but that a SELECT around it may leave an order to the server.
        if shape.page_in_outer.is_none() {
            assert_eq!(from_turned, own, "{text}\n{tables:?}");
        }
        outcome = PlanOutcome::Equal;
    }
    Some(outcome)
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;
    /// Pseudo-random bytes (splitmix64).
    fn bytes(number: u64) -> Vec<u8> {
        // Seeds that follow each other would give the same numbers, one further on.
        let mut state = (number + 1)
            .wrapping_mul(0xd605_bbb5_8c8a_bb35)
            .rotate_left(29)
            ^ number;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        (0..40).flat_map(|_| next().to_le_bytes()).collect()
    }

    /// `HEADWATER_PLANS`: so many statements.
    #[allow(clippy::disallowed_methods)]
    #[test]
    fn narrowed_pages_that_are_whole_are_the_statements_own() {
        let count = std::env::var("HEADWATER_PLANS").ok();
        let count = count.and_then(|count| count.parse().ok()).unwrap_or(20_000);
        let mut outcomes = [0; 3];
        for number in 0..count {
            outcomes[compare(&bytes(number)) as usize] += 1;
        }
        let [left_out, short, equal] = outcomes;
        println!("{left_out} left out, {short} short, {equal} equal");
        assert!(equal > count / 20, "{outcomes:?}");
    }
}
