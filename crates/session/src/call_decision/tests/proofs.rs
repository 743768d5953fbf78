//! The proofs before an answer, the write that each is in, and the results of their replies.

use headwater_timeline::check::{ParseWarnings, ProcedureStatus, ServerProduct};
use headwater_timeline::{DefinitionId, ProcedureForm};

use super::scenario::{self, CallScenario, error, nothing, ok, rows, settings};
use super::{CALL, PAGED, answers};
use crate::call_decision::{CallInput, INTERRUPTED};
use crate::result_table::TableRowCount;

const NO_PAGE: CallInput = CallInput::Probed {
    likely: false,
    compared: false,
};
const LIKELY: CallInput = CallInput::Probed {
    likely: true,
    compared: false,
};

#[test]
fn a_session_of_which_nothing_is_known_proves_everything_in_one_write() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    scene.relayed(|effects| (effects.settings, effects.temp_tables) = (true, true));
    scene.session.tables.result = TableRowCount::Unknown;
    let told = scene.play(CALL, vec![LIKELY]);
    let asked: Vec<&str> = told[1].split("; ").collect();
    // Settings, four tables, the right, the count, and one that leaves nothing behind.
    assert_eq!(asked.len(), 8, "{asked:?}");
    assert!(asked[0].starts_with("ask SELECT DATABASE()"));
    assert_eq!(asked[1], "SHOW CREATE TABLE `follower`");
    assert_eq!(asked[5], "CALL `tl`.`fetch_timeline_ids`()");
    assert_eq!(asked[6], "SELECT COUNT(*) FROM `tl`.`fetch_timeline_tt`");
    assert_eq!(asked[7], "DO 0");
    let proved = vec![
        settings(Some("tl")),
        rows(&[&[Some("follower"), Some("CREATE TABLE `follower` (")]]),
        rows(&[&[Some("message"), Some("CREATE TABLE `message` (")]]),
        error(1146),
        error(1146),
        error(1318),
        error(1146),
        ok(0),
    ];
    assert_eq!(
        scene.play(CALL, vec![LIKELY, answers(proved)])[2..],
        ["page"]
    );
    let standing = &scene.session.state;
    assert!(standing.are_settings_proven() && standing.are_tables_proven());
    assert_eq!(scene.session.tables.result, TableRowCount::Absent);
    // From here on nothing is queried.
    assert_eq!(scene.play(CALL, vec![LIKELY]), ["memory 7", "page"]);
}

#[test]
fn who_may_not_execute_is_not_answered() {
    for (answer, expected, expired) in [
        (error(1370), "relay no_execute_privilege", 0),
        (error(1305), "relay definition_refused", 1),
        (error(INTERRUPTED), "interrupted 1317", 0),
        (ok(0), "relay no_execute_privilege", 0),
        (error(1318), "page", 0),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mysql);
        scene.executed_another();
        let told = scene.play(CALL, vec![LIKELY, answers(vec![answer, ok(0)])]);
        assert_eq!(told[1], "ask CALL `tl`.`fetch_timeline_ids`(); DO 0");
        assert_eq!(told[2], expected);
        assert_eq!(scene.known.expired.get(), expired, "{expected}");
    }
}

#[test]
fn a_right_is_seen_again_after_its_time() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    scene.later(scene.policy.privileges_ttl / 2);
    assert_eq!(scene.play(CALL, vec![LIKELY])[1], "page");
    scene.later(scene.policy.privileges_ttl / 2);
    let told = scene.play(CALL, vec![LIKELY, answers(vec![error(1318), ok(0)])]);
    assert_eq!(told[1], "ask CALL `tl`.`fetch_timeline_ids`(); DO 0");
    assert_eq!(scene.play(CALL, vec![LIKELY])[1], "page");
    // Another procedure is another right.
    assert!(
        scene.play(PAGED, vec![LIKELY])[1].starts_with("ask CALL `tl`.`fetch_timeline_ids2`()")
    );
}

#[test]
fn a_short_idle_timeout_has_earlier_contacts() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    let idles = scenario::settings_for(std::time::Duration::from_secs(5));
    scene.session.state.settings_proved(idles);
    scene.later(std::time::Duration::from_millis(101));
    assert!(scene.play(CALL, vec![LIKELY])[1].starts_with("ask CALL"));
}

#[test]
fn temporary_tables_that_hide_the_real_ones_are_a_reason() {
    let real = |name: &'static str| rows(&[&[Some(name), Some("CREATE TABLE x (")]]);
    let hides = |name: &'static str| rows(&[&[Some(name), Some("CREATE TEMPORARY TABLE x (")]]);
    for (shadows, expected) in [
        ([real("f"), real("m"), error(1146), error(1146)], "page"),
        (
            [hides("f"), real("m"), error(1146), error(1146)],
            "relay temporary_tables",
        ),
        (
            [real("f"), real("m"), hides("tt"), error(1146)],
            "relay temporary_tables",
        ),
        (
            [real("f"), error(1146), error(1146), error(1146)],
            "relay lookup_failed",
        ),
        (
            [real("f"), real("m"), error(INTERRUPTED), error(1146)],
            "interrupted 1317",
        ),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mysql);
        scene.relayed(|effects| effects.temp_tables = true);
        let told = scene.play(CALL, vec![LIKELY, answers(shadows.to_vec())]);
        assert_eq!(told[2], expected);
    }
}

#[test]
fn what_is_doubted_while_a_page_is_looked_for_is_proved_anew() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    scene.doubts = true;
    let real = |name: &'static str| rows(&[&[Some(name), Some("CREATE TABLE x (")]]);
    let proved = vec![
        settings(Some("tl")),
        real("f"),
        real("m"),
        error(1146),
        error(1146),
        error(1146),
        ok(0),
    ];
    let inputs = vec![LIKELY, CallInput::Page(None), answers(proved)];
    let told = scene.play(CALL, inputs);
    assert_eq!(told[..2], ["memory 7", "page"]);
    assert!(told[2].starts_with("ask SELECT DATABASE()"), "{told:?}");
    assert_eq!(told[3], "page", "{told:?}");
    // A temporary table is found.
    scene.doubts = true;
    let hidden = rows(&[&[Some("f"), Some("CREATE TEMPORARY TABLE f (")]]);
    let proved = vec![settings(Some("tl")), hidden, real("m")];
    let inputs = vec![LIKELY, CallInput::Page(None), answers(proved)];
    assert_eq!(scene.play(CALL, inputs)[3], "relay temporary_tables");
}

#[test]
fn a_database_that_is_another_one_by_now_is_not_answered_for() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    scene.relayed(|effects| effects.stored_code = true);
    scene.session.state.tables_proved();
    let told = scene.play(
        CALL,
        vec![LIKELY, answers(vec![settings(Some("other")), ok(0)])],
    );
    assert_eq!(told[2], "relay other_database");
}

#[test]
fn parse_warnings_are_repeated_as_the_last_step() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    scene.facts(|facts| facts.parse_warnings = ParseWarnings::Alias);
    scene.executed_another();
    let said = rows(&[&[Some("Warning"), Some("3719"), Some("x")]]);
    let told = scene.play(
        CALL,
        vec![
            LIKELY,
            CallInput::Page(Some(super::answers::page())),
            answers(vec![error(1318), said, ok(0)]),
            answers(vec![ok(1)]),
        ],
    );
    assert_eq!(
        told[1..],
        [
            "page",
            "ask CALL `tl`.`fetch_timeline_ids`(); SHOW WARNINGS; DO 0",
            "ask DO _utf8''",
            "answer memory"
        ]
    );
    assert_eq!(scene.answer().served.pending.warnings, 1);
    assert!(scene.session.state.has_conditions());
}

#[test]
fn warnings_that_cannot_be_had_again_are_left_to_the_server_once() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    scene.facts(|facts| facts.parse_warnings = ParseWarnings::Others);
    assert_eq!(scene.play(CALL, vec![]), ["relay parse_warnings"]);
    // That was an explanation: the procedure did not run.
    assert_eq!(scene.play(CALL, vec![]), ["relay parse_warnings"]);
    let state = &mut scene.session.state;
    state.procedure_parsed(DefinitionId(0), ProcedureForm::Newest, 0);
    assert_eq!(scene.play(CALL, vec![]), ["memory 7"]);
    scene.known.epoch.set(1);
    assert_eq!(scene.play(CALL, vec![]), ["relay parse_warnings"]);
}

#[test]
fn without_a_procedure_the_tables_are_queried_and_not_memory() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    scene.facts(|facts| facts.newest = Ok(ProcedureStatus::Absent));
    let told = scene.play(CALL, vec![]);
    assert!(told[0].starts_with("ask SELECT"), "{}", told[0]);
}

#[test]
fn what_the_last_statement_left_is_ended_by_a_lookup() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    scene.session.state.set_conditions(true);
    let told = scene.play(CALL, vec![NO_PAGE, answers(vec![nothing()])]);
    assert_eq!(told[0], "memory 7, not now");
    assert_eq!(told.last().unwrap(), "answer lookups");
    assert!(!scene.session.state.has_conditions());
}
