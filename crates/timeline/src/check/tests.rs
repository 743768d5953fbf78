//! Answers as MariaDB 10.11 and MySQL 9.7 gave them, and what each change to them means.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::definition::IntType;

/// Rows of cells divided by blanks; `-` is NULL.
fn rows(lines: &[&str]) -> Answered {
    let cell = |cell: &str| (cell != "-").then(|| cell.replace('~', " ").into_bytes());
    Ok(lines
        .iter()
        .map(|line| line.split(' ').map(cell).collect())
        .collect())
}

fn error(code: u16) -> Answered {
    Err(ServerError {
        code,
        message: "as the server says".into(),
    })
}

fn shown(definition: &Definition, routine: Routine) -> Answered {
    let [heads, newest, bounded] = definition.procedures_sql();
    let text = match routine {
        Routine::Newest => newest,
        Routine::Bounded => bounded,
        Routine::Heads => heads,
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

/// A server that has everything, asked by root.
fn healthy() -> Vec<Answered> {
    let definition = Definition::classic();
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
        shown(&definition, Routine::Newest),
        shown(&definition, Routine::Bounded),
        shown(&definition, Routine::Heads),
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

fn verdict(changes: &[(Question, Answered)]) -> Verdict {
    let mut answers = healthy();
    for (question, answer) in changes {
        answers[question.at()] = answer.clone();
    }
    evaluate(&Definition::classic(), "tl", &answers)
}

fn relayed(question: Question, answer: Answered, message: &str) {
    match verdict(&[(question, answer)]) {
        Verdict::Relay(reason) => assert!(reason.to_string().contains(message), "{reason}"),
        Verdict::Accelerate(facts) => panic!("{facts:?} where {message}"),
    }
}

fn facts(changes: &[(Question, Answered)]) -> Facts {
    match verdict(changes) {
        Verdict::Accelerate(facts) => Facts::clone(&facts),
        Verdict::Relay(reason) => panic!("{reason}"),
    }
}

const NEWEST: Question = Question::ShowCreate(Routine::Newest);
const BOUNDED: Question = Question::ShowCreate(Routine::Bounded);
const HEADS: Question = Question::ShowCreate(Routine::Heads);

#[test]
fn a_query_is_asked_for_each_question() {
    let queries = queries(&Definition::classic(), "tl");
    assert_eq!(queries.len(), healthy().len());
    assert_eq!(
        queries[NEWEST.at()],
        "SHOW CREATE PROCEDURE `tl`.`fetch_timeline_ids`"
    );
    assert!(queries[Question::PartialRevokes.at()].starts_with("SHOW GLOBAL VARIABLES"));
    assert!(
        queries.iter().all(|query| !query.contains(['\'', '"'])),
        "names stand in hexadecimal"
    );
}

#[test]
fn a_procedure_with_its_callers_rights_is_relayed() {
    let definition = Definition::classic();
    let Ok(mut answer) = shown(&definition, Routine::Newest) else {
        panic!("it is shown");
    };
    let text = answer[0][2].as_mut().unwrap();
    let shown = String::from_utf8(text.clone()).unwrap();
    let invoker = shown.replacen("BEGIN", "SQL SECURITY INVOKER BEGIN", 1);
    assert_ne!(invoker, shown);
    *text = invoker.into_bytes();
    let facts = facts(&[(NEWEST, Ok(answer))]);
    assert!(matches!(facts.newest, Err(Reason::Invoker { .. })));
    assert_eq!(facts.bounded, Ok(Procedure::Known));
}

#[test]
fn stored_functions_are_absent_only_where_all_would_be_listed() {
    let none = |functions: &str, rights: &str| {
        let changes = [
            (Question::Functions, rows(&[functions])),
            (Question::Rights, rows(&[rights])),
        ];
        facts(&changes).no_functions
    };
    assert!(none("0", "EXECUTE global"));
    assert!(none("0", "SHOW_ROUTINE global"));
    assert!(none("0", "SELECT routines"));
    assert!(!none("1", "EXECUTE global"));
    assert!(!none("0", "EXECUTE database"));
    assert!(!none("0", "SELECT global"));
    assert!(!facts(&[(Question::Functions, error(1142))]).no_functions);
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
    assert_eq!(facts.product, Product::Mariadb);
    assert_eq!(facts.newest, Ok(Procedure::Known));
    assert_eq!(facts.bounded, Ok(Procedure::Known));
    assert_eq!(facts.message_index, "user_id_id");
    assert_eq!(facts.message_rows, Some(985_303));
    assert_eq!(facts.messages_per_author, Some(102));
    assert_eq!(facts.newest_id, Some(1_000_000));
}

#[test]
fn a_table_that_differs_is_named() {
    relayed(
        Question::Tables,
        rows(&["message BASE~TABLE InnoDB 1"]),
        "no table `follower`",
    );
    let view = rows(&["follower BASE~TABLE InnoDB 1", "message VIEW - -"]);
    relayed(Question::Tables, view, "`message` is a VIEW");
    let memory = rows(&[
        "follower BASE~TABLE MEMORY 1",
        "message BASE~TABLE InnoDB 1",
    ]);
    relayed(Question::Tables, memory, "`follower` is a table of MEMORY");
}

#[test]
fn a_column_that_differs_is_named() {
    let change = |from: &str, to: &str| {
        let columns = healthy()[Question::Columns.at()].clone().unwrap();
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
        Question::Columns,
        change(id, "message mid int(10)~unsigned NO"),
        "no column `id`",
    );
    relayed(
        Question::Columns,
        change(id, "message id bigint(20)~unsigned NO"),
        "id_type says int unsigned",
    );
    relayed(
        Question::Columns,
        change(id, "message id int~unsigned~zerofill NO"),
        "id_type says int unsigned",
    );
    relayed(
        Question::Columns,
        change(id, "message id int(10)~unsigned YES"),
        "`message`.`id` may be NULL",
    );
    let author = "follower follower_id int(10)~unsigned NO";
    relayed(
        Question::Columns,
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
    // The primary key is behind the author's column by itself.
    facts(&[(Question::Indexes, index(follower, message))]);

    let twice = &[
        "follower k 1 user_id - BTREE",
        "follower k 1 follower_id - BTREE",
    ];
    relayed(
        Question::Indexes,
        index(twice, message),
        "(user_id, follower_id), so it may hold a row twice",
    );
    let backward = &[
        "follower PRIMARY 0 follower_id - BTREE",
        "follower PRIMARY 0 user_id - BTREE",
    ];
    relayed(
        Question::Indexes,
        index(backward, message),
        "no index that starts with (user_id)",
    );
    relayed(
        Question::Indexes,
        index(follower, &message[..1]),
        "no index that starts with (user_id, id)",
    );
    let other = &[
        "message PRIMARY 0 id - BTREE",
        "message k 1 user_id - BTREE",
        "message k 1 body - BTREE",
    ];
    relayed(
        Question::Indexes,
        index(follower, other),
        "no index that starts with (user_id, id)",
    );
    let part = &[
        "message PRIMARY 0 id - BTREE",
        "message k 1 user_id 2 BTREE",
    ];
    relayed(
        Question::Indexes,
        index(follower, part),
        "no index that starts with (user_id, id)",
    );
    let unclustered = &["message u 0 id - BTREE", "message k 1 user_id - BTREE"];
    relayed(
        Question::Indexes,
        index(follower, unclustered),
        "no index that starts with (user_id, id)",
    );
}

#[test]
fn a_procedure_that_differs_is_relayed_and_the_other_form_is_not() {
    let other = Definition {
        n: 50,
        ..Definition::classic()
    };
    let facts = facts(&[(BOUNDED, shown(&other, Routine::Bounded))]);
    assert!(facts.form(Form::Newest).is_ok());
    let reason = facts.form(Form::Bounded).clone().unwrap_err().to_string();
    assert!(
        reason.contains("fetch_timeline_ids2") && reason.contains("expected 20, found 50"),
        "{reason}"
    );
}

#[test]
fn the_bounded_form_needs_its_helper() {
    let wide = Definition {
        user_type: IntType::BigInt,
        ..Definition::classic()
    };
    let reason = facts(&[(HEADS, shown(&wide, Routine::Heads))])
        .bounded
        .unwrap_err()
        .to_string();
    assert!(reason.contains("build_max_ids_of_followers"), "{reason}");
    let absent = facts(&[
        (HEADS, error(1305)),
        (Question::Routines, rows(&["fetch_timeline_ids"])),
    ]);
    assert!(matches!(absent.bounded, Err(Reason::NoHelper { .. })));
}

#[test]
fn an_absent_procedure_is_served_where_its_absence_is_sure() {
    let absent = |routines: Answered, rights: Answered, partial: Answered| {
        let changes = [
            (NEWEST, error(1305)),
            (BOUNDED, error(1305)),
            (Question::Routines, routines),
            (Question::Rights, rights),
            (Question::PartialRevokes, partial),
        ];
        matches!(verdict(&changes), Verdict::Accelerate(facts) if facts.newest == Ok(Procedure::Absent))
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
        (Ok(Procedure::Absent), Ok(Procedure::Absent))
    );
}

#[test]
fn a_body_out_of_sight_is_not_trusted_unless_told_so() {
    let hidden = rows(&["fetch_timeline_ids STRICT_TRANS_TABLES - utf8mb3"]);
    let changes = [(NEWEST, hidden.clone()), (BOUNDED, hidden.clone())];
    let Verdict::Relay(reason) = verdict(&changes) else {
        panic!("trusted")
    };
    assert!(
        reason.to_string().contains("trust_unseen_body = true"),
        "{reason}"
    );

    let trusting = Definition {
        trust_unseen_body: true,
        ..Definition::classic()
    };
    let mut answers = healthy();
    answers[NEWEST.at()] = hidden;
    let Verdict::Accelerate(facts) = evaluate(&trusting, "tl", &answers) else {
        panic!("not trusted")
    };
    assert_eq!(facts.newest, Ok(Procedure::Trusted));
}

#[test]
fn a_seen_body_that_differs_is_never_trusted() {
    let trusting = Definition {
        trust_unseen_body: true,
        ..Definition::classic()
    };
    let mut answers = healthy();
    answers[NEWEST.at()] = shown(
        &Definition {
            n: 50,
            ..Definition::classic()
        },
        Routine::Newest,
    );
    let Verdict::Accelerate(facts) = evaluate(&trusting, "tl", &answers) else {
        panic!("both relayed")
    };
    assert!(facts.newest.is_err());
}

#[test]
fn surroundings_that_change_the_meaning_are_reasons() {
    relayed(
        Question::InitConnect,
        rows(&["create~temporary~table~message~(id~int)"]),
        "init_connect holds TEMPORARY",
    );
    relayed(
        Question::Version,
        error(1045),
        "does not tell the version: error 1045",
    );
    let mut oracle = shown(&Definition::classic(), Routine::Newest).unwrap();
    oracle[0][1] = Some(b"PIPES_AS_CONCAT,ORACLE".to_vec());
    let reason = facts(&[(NEWEST, Ok(oracle))]).newest.unwrap_err();
    assert!(matches!(reason, Reason::SqlMode { mode: "ORACLE", .. }));
}

#[test]
fn too_few_answers_and_another_database_are_relayed() {
    let verdict = evaluate(&Definition::classic(), "tl", &healthy()[..3]);
    assert!(matches!(
        verdict,
        Verdict::Relay(Reason::Unanswered {
            question: "the columns"
        })
    ));
    let elsewhere = Definition {
        database: Some("social".into()),
        ..Definition::classic()
    };
    assert!(matches!(
        evaluate(&elsewhere, "tl", &healthy()),
        Verdict::Relay(Reason::OtherDatabase { .. })
    ));
}

#[test]
fn only_mysql_warns_of_texts_it_parses() {
    let text = |options: &str| {
        let Ok(mut rows) = shown(&Definition::classic(), Routine::Heads) else {
            panic!("no text")
        };
        let text = String::from_utf8(rows[0][2].clone().unwrap()).unwrap();
        rows[0][2] = Some(text.replace("ENGINE=MEMORY", options).into_bytes());
        (HEADS, Ok(rows))
    };
    let mysql = || (Question::Version, rows(&["9.7.4"]));
    let utf8 = "ENGINE=heap DEFAULT CHARSET=utf8";
    let said = |changes: &[(Question, Answered)]| facts(changes).parse_warnings;
    assert_eq!(said(&[text(utf8)]), ParseWarnings::None);
    assert_eq!(said(&[mysql()]), ParseWarnings::None);
    assert_eq!(said(&[mysql(), text(utf8)]), ParseWarnings::Alias);
    let collation = "ENGINE=heap COLLATE utf8_bin";
    assert_eq!(said(&[mysql(), text(collation)]), ParseWarnings::Others);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever a server answers, there is a verdict, and nothing is owned whose text was not the known one.
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
        let definition = Definition::classic();
        if let Verdict::Accelerate(facts) = evaluate(&definition, "tl", &answers) {
            for (stands, routine) in [
                (&facts.newest, Routine::Newest),
                (&facts.bounded, Routine::Bounded),
                (&facts.heads, Routine::Heads),
            ] {
                let answer = answers.get(Question::ShowCreate(routine).at());
                if stands == &Ok(Procedure::Known) {
                    prop_assert_eq!(answer, Some(&shown(&definition, routine)));
                }
            }
        }
    }
}

fn any_answer() -> impl Strategy<Value = Answered> {
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
