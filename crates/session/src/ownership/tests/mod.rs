//! Decisions as tables: what is known, what was asked, what the driver fetches, what is needed next.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

mod answers;
mod definer;
mod proofs;
mod scene;

use headwater_statement::{Class, Effects, Locks, classify};
use headwater_timeline::check::{Product, Verdict};

use super::*;
use crate::asked::{Asked, Dress, Values, Wanted};
use crate::standing::Standing;
use scene::{Scene, error, ok, rows};

const CALL: &str = "CALL fetch_timeline_ids(7)";
const PAGED: &str = "CALL fetch_timeline_ids2(7,100)";

#[test]
fn what_the_flags_and_the_settings_say_needs_no_question() {
    type Change = fn(&mut Scene);
    let cases: [(Change, &str); 7] = [
        (
            |scene| scene.policy.accelerate = false,
            "relay switched_off",
        ),
        (|scene| scene.flags(0), "relay autocommit_off"),
        (|scene| scene.flags(3), "relay in_transaction"),
        (
            |scene| scene.relayed(|effects| effects.one_shot = true),
            "relay one_shot_transaction",
        ),
        (
            |scene| scene.relayed(|effects| effects.locks = Locks::Taken),
            "relay table_locks",
        ),
        (
            |scene| scene.session.standing.bar(Reason::WriteDenied),
            "relay write_denied",
        ),
        (
            |scene| scene.known.distrusted.set(true),
            "relay answer_differed",
        ),
    ];
    for (change, expected) in cases {
        let mut scene = Scene::proven(Product::Mariadb);
        change(&mut scene);
        assert_eq!(scene.play(CALL, vec![]), [expected]);
    }
}

#[test]
fn values_of_the_session_are_asked_for_and_have_to_be_numbers() {
    for (answer, expected) in [
        (rows(&[&[Some("7")]]), "memory 7"),
        (rows(&[&[None]]), "relay arguments"),
        (rows(&[&[Some("x")]]), "relay arguments"),
        (ok(0), "relay arguments"),
        (error(1054), "relay lookup_failed"),
        (error(INTERRUPTED), "interrupted 1317"),
    ] {
        let mut scene = Scene::proven(Product::Mariadb);
        let told = scene.play("CALL fetch_timeline_ids(@uid)", vec![answers(vec![answer])]);
        assert_eq!(told, ["ask SELECT @uid", expected]);
    }
}

/// `EXECUTE name USING @uid`: the variables stand for parameters of the text that was prepared.
#[test]
fn variables_may_stand_for_parameters() {
    let mut scene = Scene::proven(Product::Mariadb);
    let Class::Unbound(open) = classify(
        b"CALL fetch_timeline_ids(?)",
        &[Definition::classic()],
        true,
    ) else {
        panic!("no call");
    };
    let asked = Asked {
        length: 5,
        wanted: Wanted::Statement(open, Values::Expressions(vec!["@uid".into()])),
        dress: Dress::Indirect,
    };
    let told = scene.play_asked(asked, vec![answers(vec![rows(&[&[Some("7")]])])]);
    assert_eq!(told, ["ask SELECT @uid", "memory 7"]);
}

#[test]
fn where_the_session_may_be_elsewhere_its_settings_are_asked_for_first() {
    for (database, expected) in [
        (Some("tl"), "memory 7"),
        (Some("other"), "check other"),
        (Some("f\u{fc}r"), "relay other_database"),
        (None, "relay other_database"),
    ] {
        let mut scene = Scene::proven(Product::Mariadb);
        scene.session.standing = Standing::new(None);
        scene.flags(2);
        let told = scene.play(CALL, vec![answers(vec![scene::settings(database)])]);
        assert_eq!(told.last().unwrap(), expected, "{database:?}");
        assert!(told[0].starts_with("ask SELECT DATABASE()"), "{}", told[0]);
    }
}

/// Asked alone, the settings have warnings on MySQL, behind which memory answers nobody.
#[test]
fn a_verdict_that_is_due_again_says_where_the_session_is() {
    let mut scene = Scene::proven(Product::Mysql);
    scene.session.standing = Standing::new(Some(b"tl".to_vec()));
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
        let mut scene = Scene::proven(Product::Mariadb);
        scene.session.standing = Standing::new(None);
        scene.flags(2);
        let answer = scene::settings_with(Some("tl"), &[change]);
        let told = scene.play(CALL, vec![answers(vec![answer])]);
        assert_eq!(told.last().unwrap(), expected, "{change:?}");
    }
}

#[test]
fn a_name_in_front_counts_and_another_database_is_relayed() {
    for (text, expected) in [
        ("CALL tl.fetch_timeline_ids(7)", "memory 7"),
        ("CALL `tl`.`fetch_timeline_ids`(7)", "memory 7"),
        ("CALL other.fetch_timeline_ids(7)", "relay other_database"),
    ] {
        let mut scene = Scene::proven(Product::Mysql);
        assert_eq!(scene.play(text, vec![]), [expected], "{text}");
    }
}

#[test]
fn the_verdict_is_fetched_where_none_counts() {
    let accelerate = || Checked::Verdict(scene::accelerate(Product::Mariadb));
    let relay = || Checked::Verdict(scene::relay());
    for (checked, expected) in [
        (Checked::Slow, "relay definition_unchecked"),
        (Checked::Nobody, "ask "),
        (relay(), "relay definition_refused"),
    ] {
        let mut scene = Scene::proven(Product::Mariadb);
        scene.known.verdict.take();
        let told = scene.play(CALL, vec![Input::Checked(checked)]);
        assert_eq!(told[0], "check tl");
        assert!(told[1].starts_with(expected), "{}", told[1]);
    }
    for (checked, expected) in [
        (accelerate(), "memory 7"),
        (relay(), "relay definition_refused"),
    ] {
        let mut scene = Scene::proven(Product::Mariadb);
        scene.known.verdict.take();
        let told = scene.play(CALL, vec![Input::Checked(checked)]);
        assert_eq!(told, ["check tl", expected]);
    }
}

#[test]
fn a_session_that_sees_too_little_is_not_asked_again_at_once() {
    let mut scene = Scene::proven(Product::Mariadb);
    scene.known.verdict.take();
    let blind = || {
        vec![
            Input::Checked(Checked::Nobody),
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
    let mut scene = Scene::proven(Product::Mariadb);
    scene.facts(|facts| facts.bounded = Err(scene::no_helper()));
    assert_eq!(scene.play(PAGED, vec![]), ["relay definition_refused"]);
    assert_eq!(scene.play(CALL, vec![]), ["memory 7"]);
}

#[test]
fn what_is_pending_for_other_tables_is_written_first() {
    let mut scene = Scene::proven(Product::Mariadb);
    scene.pending(DefinitionId(9), vec![1]);
    assert_eq!(
        scene.play(CALL, vec![Input::Settled]),
        ["settle", "memory 7"]
    );
}

#[test]
fn a_driver_that_fetches_something_else_has_the_call_relayed() {
    let mut scene = Scene::proven(Product::Mariadb);
    let told = scene.play(CALL, vec![Input::Settled]);
    assert_eq!(told, ["memory 7", "relay lookup_failed"]);
}

#[test]
fn a_procedure_that_runs_may_do_what_was_not_seen_of_it() {
    let scene = Scene::proven(Product::Mariadb);
    let effects = |scene: &Scene, text: &str| {
        let asked = scene.asked(text);
        Relayed::new(&asked.wanted, &scene.session.standing, &scene.known).effects
    };
    assert_eq!(effects(&scene, CALL), None);
    scene.known.stale.set(true);
    let lately = effects(&scene, CALL).unwrap();
    assert!(lately.settings && !lately.database && !lately.one_shot);
    *scene.known.verdict.borrow_mut() = Some(Verdict::clone(&scene::relay()).into());
    assert!(effects(&scene, CALL).is_some_and(|unknown| unknown.database));
    let elsewhere = effects(&scene, "CALL other.fetch_timeline_ids(7)").unwrap();
    let expected = Effects {
        one_shot: false,
        definition: false,
        ..Effects::ALL
    };
    assert_eq!(elsewhere, expected);
}

fn answers(answers: Vec<Answer>) -> Input {
    Input::Answers(answers)
}
