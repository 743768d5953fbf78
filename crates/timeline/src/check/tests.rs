//! Answers as MariaDB 10.11 and MySQL 9.7 gave them, and what each change to them means.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::definition::IdType;

/// Rows of cells divided by blanks; `-` is NULL.
fn rows(lines: &[&str]) -> CheckQueryResult {
    let cell = |cell: &str| (cell != "-").then(|| cell.replace('~', " ").into_bytes());
    Ok(lines
        .iter()
        .map(|line| line.split(' ').map(cell).collect())
        .collect())
}

fn error(code: u16) -> CheckQueryResult {
    Err(ServerError {
        code,
        message: "as the server says".into(),
    })
}

fn shown(definition: &TimelineDefinition, routine: TimelineRoutine) -> CheckQueryResult {
    let [heads, newest, bounded] = definition.procedures_sql();
    let text = match routine {
        TimelineRoutine::Newest => newest,
        TimelineRoutine::Bounded => bounded,
        TimelineRoutine::Heads => heads,
    };
    let cells = [
        routine.name(definition),
        "STRICT_TRANS_TABLES",
        &text,
        "utf8mb3",
    ];
    Ok(vec![
        cells.map(|cell| Some(cell.as_bytes().to_vec())).to_vec(),
    ])
}

/// A server that has everything, queried by root.
fn healthy() -> Vec<CheckQueryResult> {
    let definition = TimelineDefinition::classic();
    vec![
        rows(&["10.11.19-MariaDB-log"]),
        rows(&[""]),
        rows(&["follower BASE~TABLE InnoDB", "message BASE~TABLE InnoDB"]),
        rows(&[
            "follower user_id int(10)~unsigned NO",
            "follower follower_id int(10)~unsigned NO",
            "message id int(10)~unsigned NO",
            "message user_id int~unsigned NO",
            "message body varchar(255) NO",
        ]),
        rows(&[
            "follower PRIMARY 0 user_id - BTREE",
            "follower PRIMARY 0 follower_id - BTREE",
            "message PRIMARY 0 id - BTREE 985303",
            "message user_id_id 1 user_id - BTREE 9600",
            "message user_id_id 1 id - BTREE 985303",
        ]),
        shown(&definition, TimelineRoutine::Newest),
        shown(&definition, TimelineRoutine::Bounded),
        shown(&definition, TimelineRoutine::Heads),
        rows(&[
            "fetch_timeline_ids",
            "fetch_timeline_ids2",
            "build_max_ids_of_followers",
        ]),
        rows(&["EXECUTE global"]),
        rows(&["partial_revokes OFF"]),
        rows(&["1 SIMPLE message - index - user_id_id 8 - 985303 100.00 Using~index"]),
        rows(&["1000000"]),
        rows(&["0"]),
    ]
}

fn verdict(changes: &[(CheckQuery, CheckQueryResult)]) -> DefinitionVerdict {
    let mut answers = healthy();
    for (question, answer) in changes {
        answers[question.index()] = answer.clone();
    }
    evaluate(&TimelineDefinition::classic(), "tl", &answers)
}

fn relayed(question: CheckQuery, answer: CheckQueryResult, message: &str) {
    match verdict(&[(question, answer)]) {
        DefinitionVerdict::Relay(reason) => {
            assert!(reason.to_string().contains(message), "{reason}")
        }
        DefinitionVerdict::Accelerate(facts) => panic!("{facts:?} where {message}"),
    }
}

fn facts(changes: &[(CheckQuery, CheckQueryResult)]) -> DefinitionFacts {
    match verdict(changes) {
        DefinitionVerdict::Accelerate(facts) => DefinitionFacts::clone(&facts),
        DefinitionVerdict::Relay(reason) => panic!("{reason}"),
    }
}

const NEWEST: CheckQuery = CheckQuery::ShowCreate(TimelineRoutine::Newest);
const BOUNDED: CheckQuery = CheckQuery::ShowCreate(TimelineRoutine::Bounded);
const HEADS: CheckQuery = CheckQuery::ShowCreate(TimelineRoutine::Heads);

#[test]
fn a_query_is_asked_for_each_question() {
    let queries = queries(&TimelineDefinition::classic(), "tl");
    assert_eq!(queries.len(), healthy().len());
    assert_eq!(
        queries[NEWEST.index()],
        "SHOW CREATE PROCEDURE `tl`.`fetch_timeline_ids`"
    );
    assert!(queries[CheckQuery::PartialRevokes.index()].starts_with("SHOW GLOBAL VARIABLES"));
    assert!(
        queries.iter().all(|query| !query.contains(['\'', '"'])),
        "names stand in hexadecimal"
    );
}

#[test]
fn a_procedure_with_its_callers_rights_is_relayed() {
    let definition = TimelineDefinition::classic();
    let Ok(mut answer) = shown(&definition, TimelineRoutine::Newest) else {
        panic!("it is shown");
    };
    let text = answer[0][2].as_mut().unwrap();
    let shown = String::from_utf8(text.clone()).unwrap();
    let invoker = shown.replacen("BEGIN", "SQL SECURITY INVOKER BEGIN", 1);
    assert_ne!(invoker, shown);
    *text = invoker.into_bytes();
    let facts = facts(&[(NEWEST, Ok(answer))]);
    assert!(matches!(facts.newest, Err(RelayReason::Invoker { .. })));
    assert_eq!(facts.bounded, Ok(ProcedureStatus::Known));
}

#[test]
fn stored_functions_are_absent_only_where_all_would_be_listed() {
    let none = |functions: &str, rights: &str| {
        let changes = [
            (CheckQuery::Functions, rows(&[functions])),
            (CheckQuery::Privileges, rows(&[rights])),
        ];
        facts(&changes).no_functions
    };
    assert!(none("0", "EXECUTE global"));
    assert!(none("0", "SHOW_ROUTINE global"));
    assert!(none("0", "SELECT routines"));
    assert!(!none("1", "EXECUTE global"));
    assert!(!none("0", "EXECUTE database"));
    assert!(!none("0", "SELECT global"));
    assert!(!facts(&[(CheckQuery::Functions, error(1142))]).no_functions);
    let off = || rows(&["partial_revokes OFF"]);
    let rights = || rows(&["EXECUTE global"]);
    assert!(no_functions(&[rows(&["0"]), rights(), off()]));
    assert!(!no_functions(&[rows(&["1"]), rights(), off()]));
    assert!(!no_functions(&[
        rows(&["0"]),
        rights(),
        rows(&["partial_revokes ON"])
    ]));
    assert!(!no_functions(&[error(1142), rights(), off()]));
    assert!(!no_functions(&[]));
}

#[test]
fn a_healthy_database_is_accelerated() {
    let facts = facts(&[]);
    assert_eq!(facts.product, ServerProduct::Mariadb);
    assert_eq!(facts.newest, Ok(ProcedureStatus::Known));
    assert_eq!(facts.bounded, Ok(ProcedureStatus::Known));
    assert_eq!(facts.message_index, "user_id_id");
    assert_eq!(facts.message_rows, Some(985_303));
    assert_eq!(facts.messages_per_author, Some(102));
    assert_eq!(facts.newest_id, Some(1_000_000));
}

#[test]
fn a_table_that_differs_is_named() {
    relayed(
        CheckQuery::Tables,
        rows(&["message BASE~TABLE InnoDB 1"]),
        "no table `follower`",
    );
    let view = rows(&["follower BASE~TABLE InnoDB 1", "message VIEW - -"]);
    relayed(CheckQuery::Tables, view, "`message` is a VIEW");
    let memory = rows(&[
        "follower BASE~TABLE MEMORY 1",
        "message BASE~TABLE InnoDB 1",
    ]);
    relayed(
        CheckQuery::Tables,
        memory,
        "`follower` is a table of MEMORY",
    );
}

#[test]
fn a_column_that_differs_is_named() {
    let change = |from: &str, to: &str| {
        let columns = healthy()[CheckQuery::Columns.index()].clone().unwrap();
        let text = |row: Vec<Option<Vec<u8>>>| {
            let cells = row
                .into_iter()
                .map(|cell| String::from_utf8(cell.unwrap()).unwrap().replace(' ', "~"));
            cells.collect::<Vec<_>>().join(" ")
        };
        let lines: Vec<_> = columns
            .into_iter()
            .map(text)
            .map(|line| if line == from { to.into() } else { line })
            .collect();
        rows(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let id = "message id int(10)~unsigned NO";
    relayed(
        CheckQuery::Columns,
        change(id, "message mid int(10)~unsigned NO"),
        "no column `id`",
    );
    relayed(
        CheckQuery::Columns,
        change(id, "message id bigint(20)~unsigned NO"),
        "id_type says int unsigned",
    );
    relayed(
        CheckQuery::Columns,
        change(id, "message id int~unsigned~zerofill NO"),
        "id_type says int unsigned",
    );
    relayed(
        CheckQuery::Columns,
        change(id, "message id int(10)~unsigned YES"),
        "`message`.`id` may be NULL",
    );
    let author = "follower follower_id int(10)~unsigned NO";
    relayed(
        CheckQuery::Columns,
        change(author, "follower follower_id int(11) NO"),
        "user_type says int unsigned",
    );
}

#[test]
fn keys_and_indexes_are_needed() {
    let index =
        |follower: &[&'static str], message: &[&'static str]| rows(&[follower, message].concat());
    let follower = &[
        "follower PRIMARY 0 user_id - BTREE",
        "follower PRIMARY 0 follower_id - BTREE",
    ];
    let message = &[
        "message PRIMARY 0 id - BTREE",
        "message by_author 1 user_id - BTREE",
    ];
    // InnoDB appends the primary key to the author's column.
    facts(&[(CheckQuery::Indexes, index(follower, message))]);

    let twice = &[
        "follower k 1 user_id - BTREE",
        "follower k 1 follower_id - BTREE",
    ];
    relayed(
        CheckQuery::Indexes,
        index(twice, message),
        "(user_id, follower_id), so it may hold a row twice",
    );
    let backward = &[
        "follower PRIMARY 0 follower_id - BTREE",
        "follower PRIMARY 0 user_id - BTREE",
    ];
    relayed(
        CheckQuery::Indexes,
        index(backward, message),
        "no index that starts with (user_id)",
    );
    relayed(
        CheckQuery::Indexes,
        index(follower, &message[..1]),
        "no index that starts with (user_id, id)",
    );
    let other = &[
        "message PRIMARY 0 id - BTREE",
        "message k 1 user_id - BTREE",
        "message k 1 body - BTREE",
    ];
    relayed(
        CheckQuery::Indexes,
        index(follower, other),
        "no index that starts with (user_id, id)",
    );
    let part = &[
        "message PRIMARY 0 id - BTREE",
        "message k 1 user_id 2 BTREE",
    ];
    relayed(
        CheckQuery::Indexes,
        index(follower, part),
        "no index that starts with (user_id, id)",
    );
    let unclustered = &["message u 0 id - BTREE", "message k 1 user_id - BTREE"];
    relayed(
        CheckQuery::Indexes,
        index(follower, unclustered),
        "no index that starts with (user_id, id)",
    );
}

#[test]
fn a_procedure_that_differs_is_relayed_and_the_other_form_is_not() {
    let other = TimelineDefinition {
        n: 50,
        ..TimelineDefinition::classic()
    };
    let facts = facts(&[(BOUNDED, shown(&other, TimelineRoutine::Bounded))]);
    assert!(facts.procedure_status(ProcedureForm::Newest).is_ok());
    let reason = facts
        .procedure_status(ProcedureForm::Bounded)
        .clone()
        .unwrap_err()
        .to_string();
    assert!(
        reason.contains("fetch_timeline_ids2") && reason.contains("expected 20, found 50"),
        "{reason}"
    );
}

#[test]
fn the_bounded_form_needs_its_helper() {
    let wide = TimelineDefinition {
        user_type: IdType::BigInt,
        ..TimelineDefinition::classic()
    };
    let reason = facts(&[(HEADS, shown(&wide, TimelineRoutine::Heads))])
        .bounded
        .unwrap_err()
        .to_string();
    assert!(reason.contains("build_max_ids_of_followers"), "{reason}");
    let absent = facts(&[
        (HEADS, error(1305)),
        (CheckQuery::Routines, rows(&["fetch_timeline_ids"])),
    ]);
    assert!(matches!(absent.bounded, Err(RelayReason::NoHelper { .. })));
}

#[test]
fn an_absent_procedure_is_served_where_its_absence_is_sure() {
    let absent = |routines: CheckQueryResult,
                  rights: CheckQueryResult,
                  partial: CheckQueryResult| {
        let changes = [
            (NEWEST, error(1305)),
            (BOUNDED, error(1305)),
            (CheckQuery::Routines, routines),
            (CheckQuery::Privileges, rights),
            (CheckQuery::PartialRevokes, partial),
        ];
        matches!(verdict(&changes), DefinitionVerdict::Accelerate(facts) if facts.newest == Ok(ProcedureStatus::Absent))
    };
    let off = || rows(&["partial_revokes OFF"]);
    assert!(absent(rows(&["other"]), rows(&["EXECUTE global"]), off()));
    assert!(absent(
        rows(&[]),
        rows(&["USAGE global", "ALTER~ROUTINE database"]),
        rows(&["partial_revokes ON"])
    ));
    assert!(!absent(
        rows(&[]),
        rows(&["EXECUTE global"]),
        rows(&["partial_revokes ON"])
    ));
    assert!(!absent(rows(&[]), rows(&["SELECT global"]), off()));
    assert!(absent(rows(&[]), rows(&["SHOW_ROUTINE global"]), off()));
    assert!(absent(rows(&[]), rows(&["SELECT routines"]), off()));
    assert!(!absent(rows(&[]), rows(&["INSERT routines"]), off()));
    assert!(!absent(
        rows(&["Fetch_Timeline_Ids"]),
        rows(&["EXECUTE global"]),
        off()
    ));
    assert!(!absent(error(1142), rows(&["EXECUTE global"]), off()));
    assert!(!absent(rows(&[]), error(1142), off()));
}

#[test]
fn a_server_without_procedures_is_served() {
    let facts = facts(&[
        (NEWEST, error(1064)),
        (BOUNDED, error(1235)),
        (HEADS, error(1064)),
    ]);
    assert_eq!(
        (facts.newest, facts.bounded),
        (Ok(ProcedureStatus::Absent), Ok(ProcedureStatus::Absent))
    );
}

#[test]
fn a_body_out_of_sight_is_not_trusted_unless_told_so() {
    let hidden = rows(&["fetch_timeline_ids STRICT_TRANS_TABLES - utf8mb3"]);
    let changes = [(NEWEST, hidden.clone()), (BOUNDED, hidden.clone())];
    let DefinitionVerdict::Relay(reason) = verdict(&changes) else {
        panic!("trusted")
    };
    assert!(
        reason.to_string().contains("trust_unseen_body = true"),
        "{reason}"
    );

    let trusting = TimelineDefinition {
        trust_unseen_body: true,
        ..TimelineDefinition::classic()
    };
    let mut answers = healthy();
    answers[NEWEST.index()] = hidden;
    let DefinitionVerdict::Accelerate(facts) = evaluate(&trusting, "tl", &answers) else {
        panic!("not trusted")
    };
    assert_eq!(facts.newest, Ok(ProcedureStatus::Trusted));
}

#[test]
fn a_seen_body_that_differs_is_never_trusted() {
    let trusting = TimelineDefinition {
        trust_unseen_body: true,
        ..TimelineDefinition::classic()
    };
    let mut answers = healthy();
    answers[NEWEST.index()] = shown(
        &TimelineDefinition {
            n: 50,
            ..TimelineDefinition::classic()
        },
        TimelineRoutine::Newest,
    );
    let DefinitionVerdict::Accelerate(facts) = evaluate(&trusting, "tl", &answers) else {
        panic!("both relayed")
    };
    assert!(facts.newest.is_err());
}

#[test]
fn surroundings_that_change_the_meaning_are_reasons() {
    relayed(
        CheckQuery::InitConnect,
        rows(&["create~temporary~table~message~(id~int)"]),
        "init_connect holds TEMPORARY",
    );
    relayed(
        CheckQuery::Version,
        error(1045),
        "does not tell the version: error 1045",
    );
    let mut oracle = shown(&TimelineDefinition::classic(), TimelineRoutine::Newest).unwrap();
    oracle[0][1] = Some(b"PIPES_AS_CONCAT,ORACLE".to_vec());
    let reason = facts(&[(NEWEST, Ok(oracle))]).newest.unwrap_err();
    assert!(matches!(
        reason,
        RelayReason::SqlMode { mode: "ORACLE", .. }
    ));
}

#[test]
fn too_few_answers_and_another_database_are_relayed() {
    let verdict = evaluate(&TimelineDefinition::classic(), "tl", &healthy()[..3]);
    assert!(matches!(
        verdict,
        DefinitionVerdict::Relay(RelayReason::Unanswered {
            question: "the columns"
        })
    ));
    let elsewhere = TimelineDefinition {
        database: Some("social".into()),
        ..TimelineDefinition::classic()
    };
    assert!(matches!(
        evaluate(&elsewhere, "tl", &healthy()),
        DefinitionVerdict::Relay(RelayReason::OtherDatabase { .. })
    ));
}

#[test]
fn only_mysql_warns_of_texts_it_parses() {
    let text = |options: &str| {
        let Ok(mut rows) = shown(&TimelineDefinition::classic(), TimelineRoutine::Heads) else {
            panic!("no text")
        };
        let text = String::from_utf8(rows[0][2].clone().unwrap()).unwrap();
        rows[0][2] = Some(text.replace("ENGINE=MEMORY", options).into_bytes());
        (HEADS, Ok(rows))
    };
    let mysql = || (CheckQuery::Version, rows(&["9.7.4"]));
    let utf8 = "ENGINE=heap DEFAULT CHARSET=utf8";
    let warnings_for = |changes: &[(CheckQuery, CheckQueryResult)]| facts(changes).parse_warnings;
    assert_eq!(warnings_for(&[text(utf8)]), ParseWarnings::None);
    assert_eq!(warnings_for(&[mysql()]), ParseWarnings::None);
    assert_eq!(warnings_for(&[mysql(), text(utf8)]), ParseWarnings::Alias);
    let collation = "ENGINE=heap COLLATE utf8_bin";
    assert_eq!(
        warnings_for(&[mysql(), text(collation)]),
        ParseWarnings::Others
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever a server answers, there is a verdict, and no procedure is served whose text is not the known one.
    #[test]
    fn any_answers_have_a_verdict(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any_answer()),
            0..4,
        ),
        count in 0..20_usize,
    ) {
        let mut answers = healthy();
        for (place, answer) in changes {
            let place = place.index(answers.len());
            answers[place] = answer;
        }
        answers.truncate(count);
        let definition = TimelineDefinition::classic();
        if let DefinitionVerdict::Accelerate(facts) = evaluate(&definition, "tl", &answers) {
            for (stands, routine) in [
                (&facts.newest, TimelineRoutine::Newest),
                (&facts.bounded, TimelineRoutine::Bounded),
                (&facts.heads, TimelineRoutine::Heads),
            ] {
                let answer = answers.get(CheckQuery::ShowCreate(routine).index());
                if stands == &Ok(ProcedureStatus::Known) {
                    prop_assert_eq!(answer, Some(&shown(&definition, routine)));
                }
            }
        }
    }
}

fn any_answer() -> impl Strategy<Value = CheckQueryResult> {
    const WORDS: &[&str] = &[
        "",
        "0",
        "1",
        "-1",
        "message",
        "follower",
        "id",
        "BASE TABLE",
        "InnoDB",
        "EXECUTE",
        "global",
        "\u{e9}",
        "18446744073709551616",
    ];
    let cell = prop_oneof![
        Just(None),
        prop::sample::select(WORDS)
            .prop_map(|word| Some(word.as_bytes().to_vec()))
            .boxed(),
        prop::collection::vec(any::<u8>(), 0..20)
            .prop_map(Some)
            .boxed(),
    ];
    let row = prop::collection::vec(cell, 0..8);
    prop_oneof![
        prop::collection::vec(row, 0..4).prop_map(Ok),
        any::<u16>().prop_map(error),
    ]
}
