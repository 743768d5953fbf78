//! Decisions as tables: the known state, the driver's inputs, the next actions.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

mod cached_pages;
mod feed_executions;
mod scenario;

use std::collections::VecDeque;
use std::time::Duration;

use headwater_feed::authors::FollowNames;
use headwater_feed::binding::FeedColumnTypes;
use headwater_feed::parser::parse;
use headwater_feed::schema::{ColumnSchema, ComparisonClass, Schema, TableSchema};
use headwater_feed::words::StatementWords;
use headwater_feed::{FeedId, FeedNames, shape};
use headwater_statement::{StatementEffects, TableLockEffect};
use headwater_timeline::index::TableId;
use headwater_timeline::{IntegerColumnType, KeyType};
use headwater_wire::packet;
use headwater_wire::response::{ErrPacket, OkPacket};
use headwater_wire::resultset::{result_set_of, result_set_with_status};

use super::metadata_samples::MetadataSamples;
use super::*;
use crate::idle_session;
use crate::session_state::SessionState;
use crate::settings_probe::{self, SessionSettings};
use scenario::*;

#[test]
fn the_first_of_its_form_is_relayed_and_the_next_is_narrowed() {
    let mut scene = FeedScenario::proven(JOINED);
    let needs = scene.play(JOINED, vec![named(&[9, 8], false), reply(0x4203, 2)]);
    let asked = "candidates [7] [] all 0 2";
    assert_eq!(needs, [asked, "run as it is", "tell, as it is"]);
    let fetched = vec![
        named(&[9, 8], false),
        reply(1, 2),
        FeedInput::Unchanged(true),
    ];
    let narrowed = JOINED.replace(
        "WHERE f.reader = 7 ",
        "WHERE ( f.reader = 7 ) AND m.`id` IN (9,8) ",
    );
    let narrowed = format!("run {narrowed}");
    let needs = scene.play(JOINED, fetched);
    assert_eq!(needs, [asked, &narrowed, "unchanged?", "tell"]);
}

#[test]
fn flags_that_follow_the_plan_are_those_of_the_server() {
    let mut scene = FeedScenario::learned(JOINED);
    let mut decision = FeedDecision::new([b"\x03", JOINED.as_bytes()].concat(), scene.policy);
    let mut input = FeedInput::Begin;
    let mut fetched = VecDeque::from([
        named(&[9, 8], false),
        reply(1, 2),
        FeedInput::Unchanged(true),
    ]);
    let told = loop {
        match decision.next(input, &mut scene.session, &scene.known, scene.now) {
            FeedAction::Reply(told) => break told,
            _ => input = fetched.pop_front().unwrap(),
        }
    };
    let FeedInput::Reply(expected) = reply(0x4203, 2) else {
        panic!()
    };
    assert_eq!(Some(told.bytes), expected.bytes);
}

#[test]
fn a_list_is_replaced_by_who_may_read_the_column_and_one_candidate_replaces_none() {
    let mut scene = FeedScenario::proven(LISTED);
    let right = "ask SELECT `author` FROM `tl`.`message` LIMIT 0";
    let rows = || FeedInput::Answers(vec![QueryReply::Rows(result_set_of(&[]))]);
    let first = vec![rows(), named(&[9, 8], false), reply(0x4203, 2)];
    let asked = "candidates [] [1, 2] 90 0 2";
    let needs = scene.play(LISTED, first);
    assert_eq!(needs, [right, asked, "run as it is", "tell, as it is"]);
    let next = vec![
        named(&[9, 8], false),
        reply(1, 2),
        FeedInput::Unchanged(true),
    ];
    let needs = scene.play(LISTED, next);
    let narrowed = LISTED.replace("author IN (1, 2)", "message.`id` IN (9,8)");
    assert_eq!(
        needs,
        [asked, &format!("run {narrowed}"), "unchanged?", "tell"]
    );
    let one = vec![named(&[9], true), reply(1, 1), FeedInput::Unchanged(true)];
    let needs = scene.play(LISTED, one);
    let narrowed = LISTED.replace(
        "WHERE author IN (1, 2) AND id <= 90 ",
        "WHERE ( author IN (1, 2) AND id <= 90 ) AND message.`id` IN (9,0) ",
    );
    assert_eq!(
        needs,
        [asked, &format!("run {narrowed}"), "unchanged?", "tell"]
    );
    // A moment later it is queried again, and may be denied.
    scene.now += Duration::from_secs(2);
    let denied = QueryReply::Err(ErrPacket {
        code: 1143,
        sqlstate: None,
        message: Vec::new(),
    });
    let needs = scene.play(LISTED, vec![FeedInput::Answers(vec![denied])]);
    assert_eq!(needs, [right, "relay lookup_denied"]);
}

#[test]
fn a_page_that_is_not_full_asks_for_more_until_all_are_there_or_too_many() {
    let mut scene = FeedScenario::learned(JOINED);
    let fetched = vec![
        named(&[9, 8], false),
        reply(1, 1),
        named(&[9, 8, 7, 6, 5, 4, 3], true),
        reply(1, 1),
        FeedInput::Unchanged(true),
    ];
    let needs = scene.play(JOINED, fetched);
    let asked: Vec<&str> = needs
        .iter()
        .map(String::as_str)
        .filter(|need| !need.starts_with("run"))
        .collect();
    let wider = "candidates [7] [] all 0 8";
    assert_eq!(
        asked,
        ["candidates [7] [] all 0 2", wider, "unchanged?", "tell"]
    );
    let mut scene = FeedScenario::learned(JOINED);
    let ids: Vec<u64> = (0..32).rev().collect();
    let fetched = vec![
        named(&[9, 8], false),
        reply(1, 0),
        named(&ids[..8], false),
        reply(1, 1),
        named(&ids, false),
        reply(1, 1),
    ];
    assert_eq!(
        scene.play(JOINED, fetched).last().unwrap(),
        "relay filtered"
    );
}

#[test]
fn changed_candidates_are_retried_and_relayed_in_the_end() {
    let mut scene = FeedScenario::learned(JOINED);
    let round = || {
        [
            named(&[9, 8], false),
            reply(1, 2),
            FeedInput::Unchanged(false),
        ]
    };
    let fetched = [round(), round(), round()].into_iter().flatten().collect();
    let needs = scene.play(JOINED, fetched);
    assert_eq!(needs.len(), 10);
    assert_eq!(needs.last().unwrap(), "relay changed_meanwhile");
}

#[test]
fn an_answer_that_is_not_plainly_well_is_the_servers_to_give() {
    let warned = ReplyOutcome::Ok(OkPacket {
        status: 2,
        warnings: 1,
        ..OkPacket::default()
    });
    for (outcome, expected) in [
        (warned.clone(), "relay narrowed_failed"),
        (error(1690), "relay narrowed_failed"),
        (error(INTERRUPTED), "tell"),
    ] {
        let mut scene = FeedScenario::learned(JOINED);
        let needs = scene.play(JOINED, vec![named(&[9, 8], false), ended(outcome)]);
        assert_eq!(needs.last().unwrap(), expected);
    }
    // One that warns by itself is never narrowed again.
    let mut scene = FeedScenario::proven(JOINED);
    scene.play(JOINED, vec![named(&[9, 8], false), ended(warned)]);
    let needs = scene.play(JOINED, vec![named(&[9, 8], false)]);
    assert_eq!(needs.last().unwrap(), "relay warns");
}

#[test]
fn columns_of_another_kind_are_tried_through_a_temporary_table_and_then_never() {
    let mut scene = FeedScenario::learned(JOINED);
    // NOT_NULL is no key flag.
    let other = || vec![named(&[9, 8], false), reply(0, 2)];
    // They may be those of a session with another character set: they are sampled again first.
    let needs = scene.play(JOINED, other());
    assert_eq!(needs.last().unwrap(), "relay columns_differ");
    let learned = vec![named(&[9, 8], false), reply(0x4203, 2)];
    let needs = scene.play(JOINED, learned);
    assert_eq!(needs.last().unwrap(), "tell, as it is");
    for buffered in [false, true] {
        let needs = scene.play(JOINED, other());
        let [_, run, end] = needs.as_slice() else {
            panic!("{needs:?}")
        };
        assert_eq!(run.contains("SQL_BUFFER_RESULT"), buffered);
        assert_eq!(end, "relay columns_differ");
    }
    let needs = scene.play(JOINED, vec![named(&[9, 8], false)]);
    assert_eq!(needs.last().unwrap(), "relay columns_differ");
}

#[test]
fn a_barred_session_gets_no_queries() {
    type FeedScenarioChange = fn(&mut FeedScenario);
    let cases: [(FeedScenarioChange, &str); 7] = [
        (
            |scene| scene.policy.accelerate = false,
            "relay switched_off",
        ),
        (
            |scene| {
                scene
                    .session
                    .state
                    .command_sent(StatementEffects::STORED_CODE, true);
                scene.session.state.observe(&status(3));
            },
            "relay in_transaction",
        ),
        (
            |scene| {
                scene.session.state.observe(&status(3));
                scene.session.state.call_relayed();
            },
            "relay in_transaction",
        ),
        (
            |scene| {
                scene.session.state.observe(&status(0));
                scene.session.state.settings_proved(SessionSettings {
                    reads_lock: true,
                    ..settings()
                });
            },
            "relay in_transaction",
        ),
        (
            |scene| {
                scene.session.state.command_relayed(StatementEffects {
                    locks: TableLockEffect::Taken,
                    ..StatementEffects::NONE
                });
            },
            "relay table_locks",
        ),
        (
            |scene| scene.known.0 = super::TemplateLookup::Unserved(FeedRelayReason::New, None),
            "relay new_template",
        ),
        (|scene| scene.policy.candidates = 1, "relay too_many"),
    ];
    for (change, expected) in cases {
        let mut scene = FeedScenario::learned(JOINED);
        change(&mut scene);
        assert_eq!(scene.play(JOINED, vec![]), [expected]);
    }
}

/// The cure that comes first is reported first: changing the session does not help while the log is not followed.
#[test]
fn of_several_reasons_the_most_general_is_reported() {
    let mut scene = FeedScenario::learned(JOINED);
    let told = |scene: &mut FeedScenario| scene.play(JOINED, vec![]);
    scene.policy.candidates = 1;
    assert_eq!(told(&mut scene), ["relay too_many"]);
    scene.session.state.command_relayed(StatementEffects {
        locks: TableLockEffect::Taken,
        ..StatementEffects::NONE
    });
    for why in [
        FeedRelayReason::New,
        FeedRelayReason::Refused,
        FeedRelayReason::Unseen,
        FeedRelayReason::Unchecked,
    ] {
        scene.known.0 = super::TemplateLookup::Unserved(why, None);
        let expected = match why.is_of_feed() {
            true => format!("relay {}", why.label()),
            false => "relay table_locks".to_owned(),
        };
        assert_eq!(told(&mut scene), [expected]);
    }
    scene.known.2 = true;
    assert_eq!(told(&mut scene), ["relay log_not_followed"]);
    scene.policy.accelerate = false;
    assert_eq!(told(&mut scene), ["relay switched_off"]);
}

fn status(status: u16) -> OkPacket {
    OkPacket {
        status,
        ..OkPacket::default()
    }
}

#[test]
fn in_a_transaction_candidates_that_have_changed_are_not_taken_anew() {
    for flags in [3_u8, 0] {
        let mut scene = FeedScenario::learned(JOINED);
        scene.session.state.observe(&status(flags.into()));
        let mut last = |unchanged| {
            let asked = vec![
                named(&[9, 8], false),
                reply_of(0x4203, 2, flags | 1),
                FeedInput::Unchanged(unchanged),
            ];
            scene.play(JOINED, asked).pop().unwrap()
        };
        assert_eq!(last(true), "tell");
        assert_eq!(last(false), "relay changed_meanwhile");
    }
}

#[test]
fn an_isolation_level_that_is_reported_late_is_respected() {
    let values = "tl one 100 LOCKS SYSTEM UTC 7 1 utf8mb4 app - ROW 16777216 18446744073709551615 1 0 0 0 OFF 0 0 - 9223372036854775807 1000";
    let row = |locks: &str| {
        let values = values.replace("LOCKS", locks);
        let cell = |value: &str| (value != "-").then(|| value.to_owned());
        let rows = result_set_with_status(&[values.split(' ').map(cell).collect()], 3);
        FeedInput::Answers(vec![QueryReply::Rows(rows)])
    };
    for (locks, end) in [
        ("1", "relay in_transaction"),
        ("0", "candidates [7] [] all 0 2"),
    ] {
        let mut scene = FeedScenario::learned(JOINED);
        scene.session.state.observe(&status(3));
        scene.session.state.command_relayed(StatementEffects {
            settings: true,
            ..StatementEffects::NONE
        });
        let needs = scene.play(JOINED, vec![row(locks)]);
        assert_eq!(needs.last().unwrap(), end);
    }
}

#[test]
fn what_may_have_changed_in_the_session_is_proved_first() {
    let mut scene = FeedScenario::learned(JOINED);
    scene.session.state.command_relayed(StatementEffects {
        temp_tables: true,
        ..StatementEffects::NONE
    });
    let created =
        |text: &str| QueryReply::Rows(result_set_of(&[vec![Some("t".into()), Some(text.into())]]));
    let needs = scene.play(
        JOINED,
        vec![FeedInput::Answers(vec![
            created("CREATE TABLE `follower` ..."),
            created("CREATE TEMPORARY TABLE `message` ..."),
        ])],
    );
    let asked = "ask SHOW CREATE TABLE `follower`; SHOW CREATE TABLE `message`";
    assert_eq!(needs, [asked, "relay temporary_tables"]);
    // The template that is proved plain is not queried again.
    let needs = scene.play(JOINED, vec![]);
    assert_eq!(needs, ["ask SHOW CREATE TABLE `message`"]);
    scene.session.state.command_relayed(StatementEffects {
        settings: true,
        ..StatementEffects::NONE
    });
    let needs = scene.play(JOINED, vec![FeedInput::Answers(Vec::new())]);
    assert!(needs[0].starts_with("ask SELECT DATABASE()"), "{needs:?}");
    assert_eq!(needs[1], "relay lookup_failed");
}

#[test]
fn flags_that_an_error_left_unknown_are_probed() {
    let mut scene = FeedScenario::learned(JOINED);
    scene.session.state.observe_error();
    let settings = settings_probe::settings_query(settings_probe::ProbedServer::of(true));
    // One row of nothing that fits, whose end says that no transaction is open.
    let rows = result_set_of(&[vec![None]]);
    let needs = scene.play(
        JOINED,
        vec![FeedInput::Answers(vec![QueryReply::Rows(rows)])],
    );
    assert_eq!(
        needs,
        [&format!("ask {settings}"), "relay session_settings"]
    );
    assert_eq!(scene.session.state.flags(), Some(2));
}

#[test]
fn a_relayed_statement_with_proved_tables_has_no_effects() {
    let mut scene = FeedScenario::learned(JOINED);
    for (wider, plain) in [(32, true), (1, true), (0, false)] {
        scene.policy.candidates = wider;
        scene.policy.accelerate = wider > 0;
        let payload = [b"\x03", JOINED.as_bytes()].concat();
        let mut decision = FeedDecision::new(payload, scene.policy);
        let FeedScenario {
            session,
            known,
            now,
            ..
        } = &mut scene;
        let need = decision.next(FeedInput::Begin, session, known, *now);
        assert!(matches!(
            need,
            FeedAction::Candidates(_) | FeedAction::Relay(_)
        ));
        assert_eq!(decision.is_plain(), plain);
    }
}

#[test]
fn a_session_that_steers_plans_is_relayed_and_other_settings_have_their_own_samples() {
    let mut scene = FeedScenario::learned(JOINED);
    let narrowed = |needs: &[String]| needs.last().unwrap().starts_with("run ");
    let asked = || vec![named(&[9, 8], false)];
    let needs = scene.play(JOINED, asked());
    assert!(needs.last().unwrap().contains(" IN (9,8)"), "{needs:?}");
    scene.session.state.settings_proved(SessionSettings {
        has_own_plan_settings: true,
        ..settings()
    });
    assert_eq!(scene.play(JOINED, vec![]), ["relay session_settings"]);
    // Not sampled under these settings: relayed.
    scene.session.state.settings_proved(SessionSettings {
        plan_settings: 8,
        ..settings()
    });
    let needs = scene.play(JOINED, asked());
    assert!(narrowed(&needs), "{needs:?}");
    assert!(!needs.last().unwrap().contains(" IN (9,8)"), "{needs:?}");
}

#[test]
fn those_that_come_at_once_wait_for_what_the_first_teaches() {
    let mut scene = FeedScenario::proven(JOINED);
    let candidates = || named(&[9, 8], false);
    let last = |needs: Vec<String>| needs.last().unwrap().clone();
    assert_eq!(last(scene.play(JOINED, vec![candidates()])), "run as it is");
    // Another change before its reply: candidates are requested again after each wait.
    let needs = scene.play(
        JOINED,
        vec![candidates(), FeedInput::SampleAwaited, candidates()],
    );
    let waits = needs.iter().filter(|need| *need == "wait");
    assert_eq!((waits.count(), last(needs)), (2, "wait".into()));
    // But not forever, and no others with it.
    scene.now += metadata_samples::SAMPLE_WAIT;
    assert_eq!(last(scene.play(JOINED, vec![candidates()])), "run as it is");
    // The next one waits twice as long.
    scene.now += metadata_samples::SAMPLE_WAIT;
    assert_eq!(last(scene.play(JOINED, vec![candidates()])), "wait");
    // A failed sample: no statement waits for the next ones, which may fail as well.
    scene.now += metadata_samples::SAMPLE_WAIT;
    let failed = vec![candidates(), ended(error(1205))];
    assert_eq!(last(scene.play(JOINED, failed)), "tell, as it is");
    scene.prove();
    for _ in 0..3 {
        assert_eq!(last(scene.play(JOINED, vec![candidates()])), "run as it is");
    }
    let taught = vec![candidates(), reply(0x4203, 2)];
    assert_eq!(last(scene.play(JOINED, taught)), "tell, as it is");
    let needs = scene.play(JOINED, vec![candidates()]);
    assert!(last(needs).contains(" IN (9,8)"));
}

#[test]
fn memory_that_lacks_something_leaves_it_to_the_server() {
    let mut scene = FeedScenario::learned(JOINED);
    let needs = scene.play(
        JOINED,
        vec![FeedInput::Candidates(Err(FeedRelayReason::NotInMemory))],
    );
    assert_eq!(needs.last().unwrap(), "relay not_in_memory");
}

const SCORED: &str =
    "SELECT id FROM message WHERE author = 1 AND score <= 5 ORDER BY score DESC LIMIT 2";

fn tied(ids: &[u64]) -> FeedInput {
    match named(ids, false) {
        FeedInput::Candidates(Ok(found)) => FeedInput::Candidates(Ok(CandidateSet {
            tied: true,
            ..found
        })),
        other => other,
    }
}

#[test]
fn messages_of_one_key_are_the_servers_to_order() {
    let five = KeyType::Integer(IntegerColumnType {
        bits: 32,
        signed: true,
    })
    .encode_integer(5)
    .unwrap();
    let asked = format!("candidates [] [1] {five}/{} 0 2 untied", i64::MAX);
    let mut scene = FeedScenario::proven(SCORED);
    // One of two: the second is one of several.
    assert_eq!(scene.play(SCORED, vec![tied(&[9])]), [&asked, "relay ties"]);
    scene.play(SCORED, vec![tied(&[9, 8]), reply(0x4203, 2)]);
    // A full page before them is in order.
    let needs = scene.play(
        SCORED,
        vec![tied(&[9, 8]), reply(1, 2), FeedInput::Unchanged(true)],
    );
    assert_eq!(needs.last().unwrap(), "tell");
    // Where fewer pass the filter, the page continues among them.
    let needs = scene.play(SCORED, vec![tied(&[9, 8]), reply(1, 1)]);
    assert_eq!(needs.last().unwrap(), "relay ties");
    // The id after the key orders them.
    let ordered = SCORED.replace("score DESC", "score DESC, id DESC");
    let mut scene = FeedScenario::proven(&ordered);
    let needs = scene.play(&ordered, vec![]);
    assert_eq!(needs, [asked.trim_end_matches(" untied")]);
}

#[test]
fn a_timestamp_orders_only_where_no_hour_comes_twice() {
    let text = "SELECT id FROM message WHERE author = 1 ORDER BY score DESC, id DESC LIMIT 2";
    let mut template = template(text);
    Arc::get_mut(&mut template).unwrap().types.key = Some(KeyType::Timestamp(0));
    let mut scene = FeedScenario::proven(text);
    scene.known = TemplateKnowledge(
        super::TemplateLookup::Ready(template),
        MetadataSamples::default(),
        false,
        Arc::default(),
    );
    assert_eq!(scene.play(text, vec![]), ["candidates [] [1] all 0 2"]);
    scene.session.state.settings_proved(SessionSettings {
        utc_offset: None,
        ..settings()
    });
    assert_eq!(scene.play(text, vec![]), ["relay time_zone"]);
}
