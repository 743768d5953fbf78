//! Whole lookups against tables in memory: whatever the hints say, the answer is the procedure's, after a few questions.

mod many;

use std::collections::{BTreeMap, BTreeSet};

use headwater_statement::TimelineCall;
use headwater_timeline::check::{DefinitionFacts, TableStorage};
use headwater_timeline::definition::TimelineDefinition;
use headwater_timeline::{AuthorHead, DefinitionId, merge};
use headwater_wire::resultset::result_set_of;
use proptest::prelude::*;

use super::*;
use crate::lists::TopAuthorLists;
use crate::lookup::LookupResult;

/// More queries in a row than any lookup needs: follow list, guess, heads, lists, and again those that proved nothing.
const MOST_QUESTIONS: usize = 5;
/// Where messages are spread: a guess by an old follow list, the follow list, another guess, single heads, lists.
const MOST_SPREAD: usize = 8;

/// The two tables.
#[derive(Clone, Debug, Default)]
struct ServerTables {
    /// Ids and authors.
    messages: BTreeMap<u64, u64>,
    /// Readers and authors.
    follows: BTreeSet<(u64, u64)>,
}

/// One row, cell by cell.
type TextRow = Vec<Option<String>>;

fn number(number: u64) -> Option<String> {
    Some(number.to_string())
}

/// The text between the first `from` and the next `to` after it.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, behind) = text.split_once(from).unwrap();
    behind.split_once(to).map_or(behind, |(inside, _)| inside)
}

fn parsed(text: &str) -> u64 {
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().unwrap()
}

fn list(text: &str) -> BTreeSet<u64> {
    text.split(',').map(parsed).collect()
}

impl ServerTables {
    fn followed(&self, reader: u64) -> BTreeSet<u64> {
        let follows = self.follows.range((reader, 0)..=(reader, u64::MAX));
        follows.map(|(_, author)| *author).collect()
    }

    /// An author's ids at or below a bound, newest first.
    fn ids(&self, author: u64, bound: u64, limit: usize) -> Vec<u64> {
        let below = self.messages.range(..=bound).rev();
        let ids = below.filter(|(_, by)| **by == author);
        ids.map(|(id, _)| *id).take(limit).collect()
    }

    /// The procedure's result.
    fn procedure(&self, call: &TimelineCall, n: usize) -> LookupResult {
        let bound = call.bound.unwrap_or(u64::MAX);
        let mut heads: Vec<AuthorHead> = self
            .followed(call.reader)
            .into_iter()
            .filter_map(|author| {
                let id = *self.ids(author, bound, 1).first()?;
                Some(AuthorHead { author, id })
            })
            .collect();
        heads.sort_unstable_by_key(|head| std::cmp::Reverse(head.id));
        let top = heads.iter().take(n);
        let lists = top.map(|head| self.ids(head.author, bound, n)).collect();
        LookupResult {
            ids: match call.form {
                ProcedureForm::Heads => Vec::new(),
                ProcedureForm::Newest | ProcedureForm::Bounded => merge::result_set(lists),
            },
            heads: match call.form {
                ProcedureForm::Newest => Vec::new(),
                ProcedureForm::Bounded | ProcedureForm::Heads => heads,
            },
        }
    }

    /// Answers a statement of a lookup, which it knows by its shape.
    fn answer(&self, text: &str) -> ResultSet {
        let mut rows = if text.starts_with("(SELECT 0,@@") && text.contains("USE INDEX") {
            self.spread(text)
        } else if text.starts_with("(SELECT 0,@@") || text.starts_with("(SELECT hw_f") {
            self.each_head(text)
        } else if text.starts_with("SELECT hw_f") && !text.contains("hw_m") {
            let authors = self.followed(parsed(between(text, "`user_id`=", " LIMIT")));
            authors
                .into_iter()
                .map(|author| vec![number(author)])
                .collect()
        } else if text.contains("FORCE INDEX") || text.contains("USE INDEX") {
            self.in_ranges(text)
        } else if text.contains("UNION ALL") || text.starts_with("(SELECT ") {
            self.each_list(text)
        } else {
            self.heads(text)
        };
        if let Some((_, limit)) = text.rsplit_once(" LIMIT ")
            && limit.bytes().all(|byte| byte.is_ascii_digit())
        {
            rows.truncate(limit.parse().unwrap());
        }
        result_set_of(&rows)
    }

    /// Follow list, ranges, and heads of authors without hints.
    fn spread(&self, text: &str) -> Vec<TextRow> {
        let reader = parsed(between(text, "`user_id`=", " "));
        let mut rows = vec![vec![number(0), number(1), number(3)]];
        let authors = self.followed(reader).into_iter();
        rows.extend(authors.map(|author| vec![number(author), None, number(1)]));
        for part in text.split(" UNION ALL ").skip(2) {
            if part.contains("MAX(") {
                let author = parsed(between(part, "SELECT ", ","));
                let bound = parsed(between(part, "<=", ")"));
                let head = self.ids(author, bound, 1).first().copied();
                rows.push(vec![number(author), head.and_then(number), number(2)]);
                continue;
            }
            let condition = between(part, " WHERE (", " LIMIT ");
            let (condition, bound) = match condition.rsplit_once(") AND hw_m.`id`<=") {
                Some((condition, bound)) => (condition, parsed(bound)),
                None => (condition.strip_suffix(')').unwrap(), u64::MAX),
            };
            let ranged = self.within(condition).into_iter();
            let ranged = ranged.filter(|row| row[1].as_deref().map(parsed) <= Some(bound));
            let limit = parsed(between(part, " LIMIT ", ")")) as usize;
            rows.extend(ranged.take(limit).map(|mut row| {
                row.push(number(0));
                row
            }));
        }
        rows
    }

    fn each_head(&self, text: &str) -> Vec<TextRow> {
        let reader = parsed(between(text, "`user_id`=", " "));
        let spread = text.contains("@@tx_isolation");
        let settings = vec![number(0), number(1), number(3)];
        let mut rows: Vec<TextRow> = std::iter::repeat_n(settings, usize::from(spread)).collect();
        let authors = self.followed(reader).into_iter();
        rows.extend(authors.map(|author| vec![number(author), None, number(1)]));
        for part in text.split(" UNION ALL ").skip(parts_before(spread)) {
            let author = parsed(between(part, "SELECT ", ","));
            let bound = parsed(between(part, "<=", " "));
            let head = self.ids(author, bound, 1).first().copied();
            rows.push(vec![number(author), head.and_then(number), number(0)]);
        }
        rows
    }

    /// Of each author followed the newest id, and on MySQL the newest n.
    fn heads(&self, text: &str) -> Vec<TextRow> {
        let condition = between(text, "FROM `tl`.`follower` hw_f WHERE", "X");
        let reader = parsed(between(condition, "`user_id`=", " "));
        let bound = match text.contains("<=") && text.contains("hw_m.`id`<=") {
            true => parsed(between(text, "hw_m.`id`<=", " ")),
            false => u64::MAX,
        };
        let mut heads: Vec<(u64, Option<u64>)> = self
            .followed(reader)
            .into_iter()
            .map(|author| (author, self.ids(author, bound, 1).first().copied()))
            .collect();
        heads.sort_unstable_by_key(|(_, head)| std::cmp::Reverse(*head));
        let lists = text.contains("JSON_ARRAYAGG");
        let ranked = text.contains("ROW_NUMBER");
        let n = match lists {
            true => parsed(between(text, "DESC LIMIT ", ")")) as usize,
            false => 0,
        };
        if lists && !ranked {
            let outer = text.split("hw_h DESC LIMIT ").nth(1).unwrap();
            heads.truncate(parsed(outer) as usize);
        }
        if ranked {
            heads.retain(|(_, head)| head.is_some());
        }
        let rows = heads.into_iter().enumerate().map(|(rank, (author, head))| {
            let mut row = vec![number(author), head.and_then(number)];
            if lists {
                let ids = self.ids(author, bound, n);
                let json: Vec<String> = ids.iter().rev().map(u64::to_string).collect();
                let has_list = !ids.is_empty() && (!ranked || rank < n);
                row.push(has_list.then(|| format!("[{}]", json.join(", "))));
            }
            row
        });
        rows.collect()
    }

    /// Ids in ranges: for a guess only if the reader follows the authors that are named.
    fn in_ranges(&self, text: &str) -> Vec<TextRow> {
        let mut condition = between(text, " WHERE ", " LIMIT ");
        if condition.starts_with("(SELECT COUNT") {
            let named = list(between(condition, "IN (", ")"));
            let reader = parsed(between(condition, "`user_id`=", ")"));
            if self.followed(reader) != named {
                return Vec::new();
            }
            condition = between(condition, ") AND (", "X")
                .strip_suffix(')')
                .unwrap();
        }
        self.within(condition)
    }

    fn within(&self, condition: &str) -> Vec<TextRow> {
        let parts: Vec<(BTreeSet<u64>, u64, u64)> = condition
            .split(" OR ")
            .map(|part| {
                let authors = list(between(part, "IN (", ")"));
                let (least, most) = if part.contains("BETWEEN") {
                    let range = between(part, "BETWEEN ", "X");
                    (parsed(range), parsed(between(range, " AND ", " ")))
                } else if part.contains(">=") {
                    (parsed(between(part, ">=", " ")), u64::MAX)
                } else if part.contains("<=") {
                    (0, parsed(between(part, "<=", " ")))
                } else {
                    (0, u64::MAX)
                };
                (authors, least, most)
            })
            .collect();
        let rows = self.messages.iter().filter(|(id, author)| {
            let mut parts = parts.iter();
            parts.any(|(authors, least, most)| {
                authors.contains(author) && (least..=most).contains(id)
            })
        });
        rows.map(|(id, author)| vec![number(*author), number(*id)])
            .collect()
    }

    fn each_list(&self, text: &str) -> Vec<TextRow> {
        let mut rows = Vec::new();
        for part in text.split(" UNION ALL ") {
            let author = parsed(between(part, "SELECT ", ","));
            let bound = parsed(between(part, "<=", " "));
            let limit = parsed(between(part, "LIMIT ", ")"));
            let ids = self.ids(author, bound, limit as usize);
            rows.extend(ids.into_iter().map(|id| vec![number(author), number(id)]));
        }
        rows
    }
}

/// Runs a lookup query by query. Returns the number of queries.
fn look_up(
    lookup: &CallLookup<'_>,
    tables: &ServerTables,
    hints: &mut LookupHints,
) -> (LookupResult, usize) {
    let mut asked = 0;
    let mut step = lookup.first_step(hints);
    let heads = loop {
        asked += 1;
        let rows = tables.answer(step.query());
        match lookup.next_step(&step, &rows, hints).unwrap() {
            LookupStepOutcome::Continue(next) => step = next,
            LookupStepOutcome::Heads(heads) => break heads,
        }
    };
    let mut lists = TopAuthorLists::new(lookup, heads, &mut hints.author_ranges);
    loop {
        let queries = lists.queries(lookup);
        if queries.is_empty() {
            let result = lists.into_result(lookup, &mut hints.author_ranges);
            return (result.unwrap(), asked);
        }
        asked += 1;
        let answers: Vec<ResultSet> = queries.iter().map(|query| tables.answer(query)).collect();
        lists.read_replies(lookup, &answers).unwrap();
    }
}

/// The number of parts of a statement before those of authors.
fn parts_before(spread: bool) -> usize {
    1 + usize::from(spread)
}

fn facts(product: ServerProduct, storage: TableStorage, newest_id: u64) -> DefinitionFacts {
    DefinitionFacts {
        storage,
        // Many above a low bound: then it is deep.
        messages_per_author: Some(40),
        newest_id: Some(newest_id),
        ..DefinitionFacts::known(product)
    }
}

fn lookup<'a>(
    definition: &'a TimelineDefinition,
    facts: &'a DefinitionFacts,
    call: &'a TimelineCall,
    most: usize,
) -> CallLookup<'a> {
    CallLookup {
        definition,
        facts,
        database: b"tl",
        call,
        max_heads: most,
    }
}

/// What happens between calls, and the calls.
#[derive(Clone, Debug)]
enum TableEvent {
    Post(u64),
    Remove(usize),
    /// The newest so many go.
    Cut(usize),
    Follow(u64, u64),
    Unfollow(usize),
    Call(ProcedureForm, u64, u64),
}

fn events() -> impl Strategy<Value = TableEvent> {
    let form = prop_oneof![
        Just(ProcedureForm::Newest),
        Just(ProcedureForm::Bounded),
        Just(ProcedureForm::Heads)
    ];
    prop_oneof![
        6 => (0u64..8).prop_map(TableEvent::Post),
        1 => (0usize..200).prop_map(TableEvent::Remove),
        1 => (1usize..12).prop_map(TableEvent::Cut),
        1 => (0u64..3, 0u64..8).prop_map(|(reader, author)| TableEvent::Follow(reader, author)),
        1 => (0usize..24).prop_map(TableEvent::Unfollow),
        3 => (form, 0u64..3, 0u64..220).prop_map(|(form, reader, bound)| TableEvent::Call(form, reader, bound)),
    ]
}

fn play(event: TableEvent, tables: &mut ServerTables, next: &mut u64) -> Option<TimelineCall> {
    match event {
        TableEvent::Post(author) => {
            *next += 1;
            tables.messages.insert(*next, author);
        }
        TableEvent::Remove(which) => {
            let id = tables.messages.keys().nth(which).copied();
            id.map(|id| tables.messages.remove(&id));
        }
        TableEvent::Cut(count) => {
            for _ in 0..count {
                tables.messages.pop_last();
            }
        }
        TableEvent::Follow(reader, author) => {
            tables.follows.insert((reader, author));
        }
        TableEvent::Unfollow(which) => {
            let edge = tables.follows.iter().nth(which).copied();
            edge.map(|edge| tables.follows.remove(&edge));
        }
        TableEvent::Call(form, reader, bound) => {
            return Some(TimelineCall {
                definition: DefinitionId(0),
                form,
                database: None,
                reader,
                bound: (form != ProcedureForm::Newest).then_some(bound),
            });
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_lookup_finds_what_the_procedure_finds_whatever_earlier_ones_saw(
        n in 1u32..5,
        follows in proptest::collection::btree_set((0u64..3, 0u64..8), 0..16),
        events in proptest::collection::vec(events(), 1..120),
    ) {
        let definition = TimelineDefinition { n, ..TimelineDefinition::classic() };
        for (product, storage, most) in [
            (ServerProduct::Mariadb, TableStorage::Local, MOST_QUESTIONS),
            (ServerProduct::Mysql, TableStorage::Local, MOST_QUESTIONS),
            (ServerProduct::Mariadb, TableStorage::Spread, MOST_SPREAD),
        ] {
            let mut tables = ServerTables { follows: follows.clone(), ..ServerTables::default() };
            let mut hints = LookupHints::new(100, 100);
            let mut next = 0;
            for event in events.clone() {
                let Some(call) = play(event, &mut tables, &mut next) else {
                    continue;
                };
                let facts = facts(product, storage, next);
                let lookup = lookup(&definition, &facts, &call, 1_000);
                let (found, asked) = look_up(&lookup, &tables, &mut hints);
                prop_assert_eq!(&found, &tables.procedure(&call, n as usize), "{:?} {:?} {:?}", product, storage, &call);
                prop_assert!(asked <= most, "{asked} questions for {call:?}");
            }
        }
    }
}

/// A table of strategies: what is known, and how many queries that takes.
#[test]
fn what_is_known_saves_questions() {
    let mut tables = ServerTables::default();
    for id in 1..200 {
        tables.messages.insert(id, id % 8);
    }
    tables.follows.extend((0..6).map(|author| (1, author)));
    let definition = TimelineDefinition {
        n: 3,
        ..TimelineDefinition::classic()
    };
    let here = TableStorage::Local;
    let spread = TableStorage::Spread;
    for (product, storage, form, bound, first, second) in [
        // The heads, then the lists; on MySQL both at once.
        (
            ServerProduct::Mariadb,
            here,
            ProcedureForm::Newest,
            None,
            2,
            2,
        ),
        (
            ServerProduct::Mysql,
            here,
            ProcedureForm::Newest,
            None,
            2,
            1,
        ),
        (
            ServerProduct::Mariadb,
            here,
            ProcedureForm::Bounded,
            Some(190),
            2,
            2,
        ),
        // The follow list, each head by itself, the lists; then all at once.
        (
            ServerProduct::Mariadb,
            spread,
            ProcedureForm::Newest,
            None,
            3,
            1,
        ),
        (
            ServerProduct::Mariadb,
            spread,
            ProcedureForm::Bounded,
            Some(190),
            3,
            1,
        ),
        // Far below the newest: the follow list, each head by itself, the lists.
        (
            ServerProduct::Mysql,
            here,
            ProcedureForm::Bounded,
            Some(20),
            3,
            2,
        ),
        (
            ServerProduct::Mariadb,
            here,
            ProcedureForm::Heads,
            Some(20),
            2,
            1,
        ),
    ] {
        let call = TimelineCall {
            definition: DefinitionId(0),
            form,
            database: None,
            reader: 1,
            bound,
        };
        let facts = facts(product, storage, 200);
        let lookup = lookup(&definition, &facts, &call, 1_000);
        let mut hints = LookupHints::new(100, 100);
        for asked in [first, second] {
            let (found, questions) = look_up(&lookup, &tables, &mut hints);
            assert_eq!(found, tables.procedure(&call, 3));
            assert_eq!(questions, asked, "{product:?} {storage:?} {form:?}");
        }
    }
}
