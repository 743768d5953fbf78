//! The statements of `fixtures/statements`, each with the class that it has to have.

use crate::{DynamicStatement, StatementClass, StatementEffects, TableLockEffect, classify};
use headwater_timeline::{ProcedureForm, TimelineDefinition};

#[test]
fn calls_are_as_the_fixture_says() {
    check(
        include_str!("../../../../fixtures/statements/calls.txt"),
        180,
    );
}

#[test]
fn tails_are_as_the_fixture_says() {
    check(
        include_str!("../../../../fixtures/statements/tails.txt"),
        90,
    );
}

#[test]
fn effects_are_as_the_fixture_says() {
    check(
        include_str!("../../../../fixtures/statements/effects.txt"),
        90,
    );
}

fn check(fixture: &str, at_least: usize) {
    let definitions = [TimelineDefinition::classic()];
    let cases: Vec<_> = fixture
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let mut wrong = Vec::new();
    for case in &cases {
        let (expected, statement) = case.split_once(" | ").unwrap();
        let class = classify(&unescaped(statement), &definitions, false);
        let found = if expected == "other" {
            class_words(&class, false)
        } else {
            class_words(&class, true)
        };
        if sorted(&found) != sorted(expected) {
            wrong.push(format!(
                "{statement}\n    expected {expected}, found {found}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() >= at_least, "{} cases only", cases.len());
}

fn sorted(class: &str) -> Vec<&str> {
    let mut words: Vec<_> = class.split(' ').collect();
    words.sort_unstable();
    words
}

/// A class in the fixture's words.
fn class_words(class: &StatementClass, with_effects: bool) -> String {
    match class {
        StatementClass::Call(call) => {
            let database = call
                .database
                .as_ref()
                .map(|name| format!(" {name}"))
                .unwrap_or_default();
            let bound = call
                .bound
                .map(|bound| format!(",{bound}"))
                .unwrap_or_default();
            let form = match call.form {
                ProcedureForm::Newest | ProcedureForm::Bounded => "call",
                ProcedureForm::Heads => "heads",
            };
            format!("{form}{database}({}{bound})", call.reader)
        }
        StatementClass::UnboundCall(statement) => {
            let asked: Vec<_> = statement.session_expressions().collect();
            let parameters = "?".repeat(statement.parameter_count());
            format!("unbound({}{parameters})", asked.join(","))
        }
        StatementClass::CallBatch(several, _) => format!("several {}", several.remainder_start),
        StatementClass::Feed(_) => "feed".into(),
        StatementClass::FeedBatch(batch) => format!("batch {}", batch.remainder_start),
        StatementClass::Dynamic(DynamicStatement::Prepare { call, .. }) => match call {
            Some(_) => "prepare call".into(),
            None => "prepare".into(),
        },
        StatementClass::Dynamic(DynamicStatement::Execute { variables, .. }) => {
            format!("execute({})", variables.join(","))
        }
        StatementClass::Dynamic(DynamicStatement::Deallocate { .. }) => "deallocate".into(),
        StatementClass::FollowUp(tail) => format!("tail {}", tail.limit),
        StatementClass::ShowHeadwater(_) => "own".into(),
        StatementClass::Other(_) if !with_effects => "other".into(),
        StatementClass::Other(StatementEffects::ALL) => "other all".into(),
        StatementClass::Other(StatementEffects::NONE) => "other none".into(),
        StatementClass::Other(effects) => {
            let fields = [
                (effects.next_transaction, " one_shot"),
                (effects.temp_tables, " temp_tables"),
                (effects.stored_code, " stored_code"),
                (effects.settings, " settings"),
                (effects.database, " database"),
                (effects.dynamic, " dynamic"),
                (effects.locks == TableLockEffect::Taken, " locks"),
                (effects.locks == TableLockEffect::Released, " unlocks"),
                (effects.diagnostics, " diagnostics"),
                (effects.definition, " definition"),
                (effects.result_table, " result_table"),
                (effects.is_pure_read, " spares"),
                (effects.preserves_row_counts, " keeps_counts"),
                (effects.session_values, " own"),
            ];
            let words: String = fields
                .iter()
                .filter(|(holds, _)| *holds)
                .map(|(_, word)| *word)
                .collect();
            format!("other{words}")
        }
    }
}

/// A statement with its escapes undone.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        let (&escape, after) = rest.split_first().unwrap();
        rest = after;
        match escape {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'\\' => bytes.push(b'\\'),
            b'x' => {
                let (digits, after) = rest.split_at(2);
                bytes.push(u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap());
                rest = after;
            }
            other => panic!("no escape: {other}"),
        }
    }
    bytes
}
