//! How a call handles the rights of its procedure's definer: served, run on the server, relayed.

use headwater_timeline::check::{ParseWarnings, ServerProduct};

use super::scenario::{CallScenario, error, ok, rows};
use super::{CALL, PAGED, answers};
use crate::call_decision::{CallInput, INTERRUPTED, ServedCallSource};
use crate::definer_rights::DefinerRightProof;
use crate::result_table::TableRowCount;

/// What the next call needs while nothing is proved.
const RUN: &str = "ask CALL `tl`.`fetch_timeline_ids`(0); DO 0";

const LIKELY: CallInput = CallInput::Probed {
    likely: true,
    compared: false,
};
const LISTENED: CallInput = CallInput::Probed {
    likely: false,
    compared: false,
};

/// A session whose procedure's definer was not seen to have its rights.
fn unproven(product: ServerProduct) -> CallScenario {
    let scene = CallScenario::proven(product);
    *scene.known.right.borrow_mut() = DefinerRightProof::Unknown;
    scene
}

#[test]
fn the_first_call_runs_the_procedure_for_a_reader_without_follows() {
    let mut scene = unproven(ServerProduct::Mysql);
    let told = scene.play(
        CALL,
        vec![
            answers(vec![ok(0), ok(0)]),
            LIKELY,
            CallInput::Page(Some(super::answers::page())),
        ],
    );
    assert_eq!(
        told,
        [
            "ask CALL `tl`.`fetch_timeline_ids`(0); DO 0",
            "memory 7",
            "page",
            "answer memory"
        ]
    );
    assert!(scene.answer().ran);
    // It proves the rights for all that come.
    assert_eq!(scene.play(CALL, vec![]), ["memory 7"]);
}

#[test]
fn a_bounded_call_is_proved_beside_the_newest_where_all_have_one_definer() {
    for (one, expected) in [("1", "memory 7"), ("0", "memory 7, not now")] {
        let mut scene = unproven(ServerProduct::Mysql);
        let run = vec![ok(0), rows(&[&[Some(one)]]), ok(0), ok(0)];
        let told = scene.play(PAGED, vec![answers(vec![error(1318), ok(0)]), answers(run)]);
        assert!(
            told[1].starts_with("ask CALL `tl`.`fetch_timeline_ids`(0); SELECT COUNT(DISTINCT")
        );
        assert_eq!(told[2], expected);
    }
}

#[test]
fn elsewhere_the_call_is_served_from_its_own_run() {
    let mut scene = unproven(ServerProduct::Mysql);
    scene.facts(|facts| facts.newest = Err(super::scenario::no_helper()));
    let left = vec![
        ok(0),
        rows(&[&[Some("10")], &[Some("30")]]),
        rows(&[&[Some("4"), Some("30")]]),
        ok(0),
    ];
    let probe = answers(vec![error(1318), ok(0)]);
    let told = scene.play(PAGED, vec![probe, LISTENED, answers(left)]);
    assert_eq!(told[1], "memory 7, not now");
    assert!(told[2].starts_with("ask CALL `tl`.`fetch_timeline_ids2`(7,100); SELECT `id`"));
    assert_eq!(told[3], "answer procedure");
    assert_eq!(scene.answer().source, ServedCallSource::Procedure);
    assert_eq!(
        scene.answer().served.pending.ids.as_deref(),
        Some(&[30, 10][..])
    );
}

#[test]
fn mariadb_finds_as_many_rows_as_before_the_run() {
    let mut scene = unproven(ServerProduct::Mariadb);
    scene.session.tables.result = TableRowCount::Counted(2);
    let told = scene.play(
        CALL,
        vec![answers(vec![ok(0), ok(0)]), answers(vec![ok(0), ok(0)])],
    );
    assert_eq!(
        told[1],
        "ask DELETE FROM `tl`.`fetch_timeline_tt`; INSERT INTO `tl`.`fetch_timeline_tt` VALUES (0),(1)"
    );
    assert_eq!(told[2], "memory 7");
    assert_eq!(scene.session.tables.result, TableRowCount::Counted(2));
}

#[test]
fn denials_of_the_caller_and_the_definer_differ() {
    for (run, probe, expected, next) in [
        (1142, None, "relay definer_rights", "relay definer_rights"),
        (1449, None, "relay definer_rights", "relay definer_rights"),
        (
            1370,
            Some(1318),
            "relay definer_rights",
            "relay definer_rights",
        ),
        (1370, Some(1370), "relay no_execute_privilege", RUN),
        (1305, None, "relay definition_refused", RUN),
        (INTERRUPTED, None, "interrupted 1317", RUN),
        (1205, None, "relay lookup_failed", RUN),
    ] {
        let mut scene = unproven(ServerProduct::Mysql);
        let mut inputs = vec![answers(vec![error(run), ok(0)])];
        inputs.extend(probe.map(|code| answers(vec![error(code), ok(0)])));
        let told = scene.play(CALL, inputs);
        assert_eq!(told.last().unwrap(), expected, "{run}");
        assert_eq!(scene.play(CALL, vec![])[0], next, "behind {run}");
    }
}

#[test]
fn a_run_that_read_one_table_proves_nothing_of_the_other() {
    let mut scene = unproven(ServerProduct::Mysql);
    scene.facts(|facts| facts.newest = Err(super::scenario::no_helper()));
    let left = vec![ok(0), rows(&[]), rows(&[]), ok(0)];
    let probe = answers(vec![error(1318), ok(0)]);
    let told = scene.play(PAGED, vec![probe, LISTENED, answers(left)]);
    assert_eq!(told.last().unwrap(), "answer procedure");
    assert_eq!(*scene.known.right.borrow(), DefinerRightProof::Unknown);
}

/// A probe run would have the text parsed, and a call that is relayed after it would get no warnings.
#[test]
fn a_text_with_warnings_runs_for_the_calls_own_reader_alone() {
    let mut scene = unproven(ServerProduct::Mysql);
    scene.facts(|facts| facts.parse_warnings = ParseWarnings::Alias);
    let said = rows(&[&[Some("Warning"), Some("3719"), Some("x")]]);
    let left = vec![ok(1), said, rows(&[&[Some("30")]]), ok(0)];
    let told = scene.play(CALL, vec![LISTENED, answers(left), answers(vec![ok(1)])]);
    assert_eq!(told[0], "memory 7, not now");
    assert!(told[1].starts_with("ask CALL `tl`.`fetch_timeline_ids`(7); SHOW WARNINGS; SELECT"));
    assert_eq!(told[2..], ["ask DO _utf8''", "answer procedure"]);
    assert_eq!(scene.answer().served.pending.warnings, 1);
}
