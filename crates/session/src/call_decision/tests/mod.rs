//! Decisions as tables: the known state, the queries, the driver's inputs, the next actions.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

mod answers;
mod definer;
mod proofs;
pub(crate) mod scenario;

use headwater_statement::{StatementClass, StatementEffects, TableLockEffect, classify};
use headwater_timeline::check::{DefinitionVerdict, ServerProduct};

use super::*;
use crate::call_request::{CallPacketForm, CallRequest, CallValues, RequestedCall};
use crate::session_state::SessionState;
use scenario::{CallScenario, error, ok, rows};

const CALL: &str = "CALL fetch_timeline_ids(7)";
const PAGED: &str = "CALL fetch_timeline_ids2(7,100)";

#[test]
fn what_the_flags_and_the_settings_say_needs_no_question() {
    type CallScenarioChange = fn(&mut CallScenario);
    let cases: [(CallScenarioChange, &str); 7] = [
        (
            |scene| scene.policy.accelerate = false,
            "relay switched_off",
        ),
        (|scene| scene.flags(0), "relay autocommit_off"),
        (|scene| scene.flags(3), "relay in_transaction"),
        (
            |scene| scene.relayed(|effects| effects.next_transaction = true),
            "relay one_shot_transaction",
        ),
        (
            |scene| scene.relayed(|effects| effects.locks = TableLockEffect::Taken),
            "relay table_locks",
        ),
        (
            |scene| scene.session.state.relay_all(CallRelayReason::WriteDenied),
            "relay write_denied",
        ),
        (
            |scene| scene.known.distrusted.set(true),
            "relay answer_differed",
        ),
    ];
    for (change, expected) in cases {
        let mut scene = CallScenario::proven(ServerProduct::Mariadb);
        change(&mut scene);
        assert_eq!(scene.play(CALL, vec![]), [expected]);
    }
}

#[test]
fn session_values_are_queried_and_must_be_numbers() {
    for (answer, expected) in [
        (rows(&[&[Some("7")]]), "memory 7"),
        (rows(&[&[None]]), "relay arguments"),
        (rows(&[&[Some("x")]]), "relay arguments"),
        (ok(0), "relay arguments"),
        (error(1054), "relay lookup_failed"),
        (error(INTERRUPTED), "interrupted 1317"),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mariadb);
        let told = scene.play("CALL fetch_timeline_ids(@uid)", vec![answers(vec![answer])]);
        assert_eq!(told, ["ask SELECT @uid", expected]);
    }
}

/// `EXECUTE name USING @uid`: the variables stand for parameters of the text that was prepared.
#[test]
fn variables_may_stand_for_parameters() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    let StatementClass::UnboundCall(open) = classify(
        b"CALL fetch_timeline_ids(?)",
        &[TimelineDefinition::classic()],
        true,
    ) else {
        panic!("no call");
    };
    let asked = CallRequest {
        length: 5,
        call: RequestedCall::Statement(open, CallValues::Expressions(vec!["@uid".into()])),
        packet_form: CallPacketForm::Indirect,
    };
    let told = scene.play_asked(asked, vec![answers(vec![rows(&[&[Some("7")]])])]);
    assert_eq!(told, ["ask SELECT @uid", "memory 7"]);
}

#[test]
fn settings_are_queried_first_where_the_database_is_uncertain() {
    for (database, expected) in [
        (Some("tl"), "memory 7"),
        (Some("other"), "check other"),
        (Some("f\u{fc}r"), "relay other_database"),
        (None, "relay other_database"),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mariadb);
        scene.session.state = SessionState::new(None);
        scene.flags(2);
        let told = scene.play(CALL, vec![answers(vec![scenario::settings(database)])]);
        assert_eq!(told.last().unwrap(), expected, "{database:?}");
        assert!(told[0].starts_with("ask SELECT DATABASE()"), "{}", told[0]);
    }
}

/// Queried alone, the settings cause warnings on MySQL, after which memory answers no call.
#[test]
fn an_expired_verdict_still_proves_the_database() {
    let mut scene = CallScenario::proven(ServerProduct::Mysql);
    scene.session.state = SessionState::new(Some(b"tl".to_vec()));
    scene.flags(2);
    scene.known.stale.set(true);
    let told = scene.play(CALL, vec![]);
    assert_eq!(told, ["check tl"]);
}

#[test]
fn settings_that_change_the_procedure_are_a_reason() {
    for (change, expected) in [
        (("sql_safe_updates", "1"), "relay session_settings"),
        (("binlog_format", "STATEMENT"), "relay session_settings"),
        (
            ("sql_mode", "ORACLE,PIPES_AS_CONCAT"),
            "relay session_settings",
        ),
        (("sql_mode", "ANSI_QUOTES"), "memory 7"),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mariadb);
        scene.session.state = SessionState::new(None);
        scene.flags(2);
        let answer = scenario::settings_with(Some("tl"), &[change]);
        let told = scene.play(CALL, vec![answers(vec![answer])]);
        assert_eq!(told.last().unwrap(), expected, "{change:?}");
    }
}

#[test]
fn a_qualifier_counts_and_another_database_is_relayed() {
    for (text, expected) in [
        ("CALL tl.fetch_timeline_ids(7)", "memory 7"),
        ("CALL `tl`.`fetch_timeline_ids`(7)", "memory 7"),
        ("CALL other.fetch_timeline_ids(7)", "relay other_database"),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mysql);
        assert_eq!(scene.play(text, vec![]), [expected], "{text}");
    }
}

#[test]
fn the_verdict_is_fetched_where_none_counts() {
    let accelerate = || CheckOutcome::Verdict(scenario::accelerate(ServerProduct::Mariadb));
    let relay = || CheckOutcome::Verdict(scenario::relay());
    for (checked, expected) in [
        (CheckOutcome::TimedOut, "relay definition_unchecked"),
        (CheckOutcome::NoServiceAccount, "ask "),
        (relay(), "relay definition_refused"),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mariadb);
        scene.known.verdict.take();
        let told = scene.play(CALL, vec![CallInput::Checked(checked)]);
        assert_eq!(told[0], "check tl");
        assert!(told[1].starts_with(expected), "{}", told[1]);
    }
    for (checked, expected) in [
        (accelerate(), "memory 7"),
        (relay(), "relay definition_refused"),
    ] {
        let mut scene = CallScenario::proven(ServerProduct::Mariadb);
        scene.known.verdict.take();
        let told = scene.play(CALL, vec![CallInput::Checked(checked)]);
        assert_eq!(told, ["check tl", expected]);
    }
}

#[test]
fn a_session_that_sees_too_little_is_not_queried_again_at_once() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    scene.known.verdict.take();
    let blind = || {
        vec![
            CallInput::Checked(CheckOutcome::NoServiceAccount),
            answers(vec![error(1142); 40]),
        ]
    };
    let told = scene.play(CALL, blind());
    assert_eq!(told.last().unwrap(), "relay definition_unchecked");
    assert_eq!(scene.known.unseen.get(), 1);
    let told = scene.play(CALL, blind());
    assert_eq!(told, ["check tl", "relay definition_unchecked"]);
    scene.later(scene.policy.recheck);
    assert_eq!(scene.play(CALL, blind()).len(), 3);
}

#[test]
fn a_form_that_is_refused_is_relayed_and_the_other_is_not() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    scene.facts(|facts| facts.bounded = Err(scenario::no_helper()));
    assert_eq!(scene.play(PAGED, vec![]), ["relay definition_refused"]);
    assert_eq!(scene.play(CALL, vec![]), ["memory 7"]);
}

#[test]
fn what_is_pending_for_other_tables_is_written_first() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    scene.pending(DefinitionId(9), vec![1]);
    assert_eq!(
        scene.play(CALL, vec![CallInput::Flushed]),
        ["settle", "memory 7"]
    );
}

#[test]
fn a_driver_that_fetches_something_else_has_the_call_relayed() {
    let mut scene = CallScenario::proven(ServerProduct::Mariadb);
    let told = scene.play(CALL, vec![CallInput::Flushed]);
    assert_eq!(told, ["memory 7", "relay lookup_failed"]);
}

#[test]
fn a_procedure_that_runs_may_do_what_was_not_seen_of_it() {
    let scene = CallScenario::proven(ServerProduct::Mariadb);
    let effects = |scene: &CallScenario, text: &str| {
        let asked = scene.asked(text);
        RelayedCall::new(&asked.call, &scene.session.state, &scene.known).effects
    };
    assert_eq!(effects(&scene, CALL), None);
    scene.known.stale.set(true);
    let lately = effects(&scene, CALL).unwrap();
    assert!(lately.settings && !lately.database && !lately.next_transaction);
    *scene.known.verdict.borrow_mut() = Some(DefinitionVerdict::clone(&scenario::relay()).into());
    assert!(effects(&scene, CALL).is_some_and(|unknown| unknown.database));
    let elsewhere = effects(&scene, "CALL other.fetch_timeline_ids(7)").unwrap();
    let expected = StatementEffects {
        next_transaction: false,
        definition: false,
        ..StatementEffects::ALL
    };
    assert_eq!(elsewhere, expected);
}

fn answers(answers: Vec<QueryReply>) -> CallInput {
    CallInput::Answers(answers)
}
