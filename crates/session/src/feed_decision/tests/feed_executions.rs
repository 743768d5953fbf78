//! Decisions about executions of prepared statements.

mod cached_columns;

use super::*;
use crate::machine::ClientStep;
use crate::prepared_statements::PreparedText;
use headwater_statement::StatementClass;
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{BoundParameter, ExecutePacket, execute_payload, statement_id};
use headwater_wire::reply::{PrepareOkPacket, SentColumnDefinitions};

const READER: &str = "SELECT m.id FROM message m JOIN follower f ON f.author = m.author WHERE f.reader = ? ORDER BY m.id DESC LIMIT ?";
const GIVEN: &str =
    "SELECT id FROM message WHERE author IN (?, ?) AND id <= ? ORDER BY id DESC LIMIT 2";
/// The client's statement.
const ITS: u32 = 5;
/// The first internal statement.
const OWN: u32 = 6;

/// LONG.
const LONG: &[u8] = &[3, 0];

/// Bytes of LONG.
fn long(value: i32) -> [u8; 4] {
    value.to_le_bytes()
}

/// The contents of an execution: its statement and parameters.
pub(super) fn shown(payload: &[u8]) -> String {
    let id = statement_id(payload).unwrap();
    let count = |count: usize| {
        let execute = ExecutePacket::parse(payload, count, Capabilities::NONE).ok()?;
        let each = execute
            .split_parameters(execute.types().unwrap_or_default())
            .ok()?;
        let values: Vec<_> = each.iter().map(BoundParameter::value).collect();
        Some(format!("{values:?}").replace("Integer", ""))
    };
    // How many there are is known to who has prepared it: here to whom they fit.
    match (1..10).find_map(count) {
        Some(values) => format!("execute {id} {values}"),
        None => format!("execute {id} without types"),
    }
}

/// The statements that packets close.
pub(super) fn closed(packets: &[u8]) -> Vec<u32> {
    let close = |packet: &[u8]| {
        assert_eq!(packet[..5], [5, 0, 0, 0, 0x19]);
        statement_id(&packet[4..]).unwrap()
    };
    packets.chunks(9).map(close).collect()
}

impl FeedScenario {
    /// A session that has prepared a text.
    fn prepared(text: &str) -> FeedScenario {
        let mut scene = FeedScenario::proven(text);
        scene.prepare(text, ITS);
        scene
    }

    fn prepare(&mut self, text: &str, statement: u32) {
        let current = self.session.state.current();
        let prepared = PreparedText::new(
            StatementClass::Feed(StatementEffects::NONE),
            text.as_bytes(),
            current,
        );
        let parameters = u16::try_from(text.matches('?').count()).unwrap();
        let statements = self.session.prepared_mut();
        statements.begin();
        statements.insert(
            prepared,
            PrepareOkPacket {
                statement_id: statement,
                columns: 1,
                parameters,
                warnings: 0,
            },
            SentColumnDefinitions::Nothing,
        );
    }

    /// A session that narrows all its statements but the first.
    fn executed(text: &str, values: &[i32]) -> FeedScenario {
        let mut scene = FeedScenario::prepared(text);
        let mut fetched = vec![named(&[9, 8], false), reply(0x4203, 2)];
        if scene.lists() {
            fetched.insert(
                0,
                FeedInput::Answers(vec![QueryReply::Rows(result_set_of(&[]))]),
            );
        }
        let needs = scene.execute(values, fetched);
        assert_eq!(needs.last().unwrap(), "tell, as it is");
        scene
    }

    /// What becomes of a COM_STMT_RESET with this id.
    fn step(&mut self, id: u32) -> String {
        let payload = [&[0x1a][..], &id.to_le_bytes()].concat();
        let packet = packet::encode_first(&payload);
        let limits = crate::machine::tests::LIMITS;
        let step = self.session.client(&packet, limits, &mut |_| panic!());
        let step = format!("{step:?}");
        if step == "Pass(9)" {
            let ok = b"\x07\0\0\x01\0\0\0\x02\0\0\0";
            self.session.server(ok);
        }
        step
    }

    fn lists(&self) -> bool {
        matches!(&self.known.0, super::super::TemplateLookup::Ready(template) if template.shape.replaceable_list.is_some())
    }

    /// The needs of an execution with these numbers.
    fn execute(&mut self, values: &[i32], fetched: Vec<FeedInput>) -> Vec<String> {
        let bytes: Vec<_> = values.iter().map(|value| long(*value)).collect();
        let each = bytes.iter().map(|bytes| BoundParameter {
            type_word: LONG,
            bytes: Some(bytes),
        });
        let payload = execute_payload(ITS, &each.collect::<Vec<_>>(), self.session.capabilities);
        self.execute_packet(&payload, fetched)
    }

    fn execute_packet(&mut self, payload: &[u8], fetched: Vec<FeedInput>) -> Vec<String> {
        let capabilities = self.session.capabilities;
        let standing = self.session.state.clone();
        let statements = self.session.prepared_mut();
        let executed = statements.feed(ITS, payload, capabilities, standing.current());
        let executed = executed.unwrap();
        let decision = FeedDecision::of_execution(payload.to_vec(), executed, self.policy);
        self.decide(decision, "", fetched)
    }

    /// The server's packet of a relayed execution with numbers, whose types the client has sent before.
    fn relayed(&mut self, values: &[i32]) -> Option<Vec<u8>> {
        let payload = untyped(values);
        let capabilities = self.session.capabilities;
        let standing = self.session.state.clone();
        let statements = self.session.prepared_mut();
        let executed = statements.feed(ITS, &payload, capabilities, standing.current());
        executed.unwrap();
        self.session.payload_with_types(ITS, &payload)
    }
}

fn untyped(values: &[i32]) -> Vec<u8> {
    let mut payload = vec![0x17, 5, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
    payload.extend(values.iter().flat_map(|value| long(*value)));
    payload
}

/// The server has prepared an internal statement.
fn own(statement: u32) -> FeedInput {
    FeedInput::Reply(InternalReply {
        bytes: Some(vec![0]),
        rows: 0,
        outcome: Some(ReplyOutcome::Prepared(PrepareOkPacket {
            statement_id: statement,
            columns: 1,
            parameters: 9,
            warnings: 0,
        })),
    })
}

fn narrowed() -> [FeedInput; 3] {
    [
        named(&[9, 8], false),
        reply(1, 2),
        FeedInput::Unchanged(true),
    ]
}

#[test]
fn the_narrowed_text_is_prepared_once_and_executed_with_the_clients_parameters() {
    let mut scene = FeedScenario::prepared(READER);
    let needs = scene.execute(&[7, 2], vec![named(&[9, 8], false), reply(0x4203, 2)]);
    let asked = "candidates [7] [] all 0 2";
    let own_text = READER.replace(
        "WHERE f.reader = ? ",
        "WHERE ( f.reader = ? ) AND m.`id` IN (?,?) ",
    );
    assert_eq!(needs, [asked, "execute 5 [(7), (2)]", "tell, as it is"]);
    let [candidates, rows, unchanged] = narrowed();
    let needs = scene.execute(&[7, 2], vec![candidates, own(OWN), rows, unchanged]);
    assert_eq!(
        needs,
        [
            asked,
            &format!("close [], prepare {own_text}"),
            "execute 6 [(7), (9), (8), (2)]",
            "unchanged?",
            "tell"
        ]
    );
    let needs = scene.execute(&[4, 2], narrowed().into());
    assert_eq!(
        needs,
        [
            "candidates [4] [] all 0 2",
            "execute 6 [(4), (9), (8), (2)]",
            "unchanged?",
            "tell"
        ]
    );
}

#[test]
fn parameters_of_a_list_go_with_it_and_ids_fill_the_lists_size() {
    let mut scene = FeedScenario::executed(GIVEN, &[1, 2, 90]);
    let found = named(&[9, 8, 7, 6, 5], true);
    let needs = scene.execute(
        &[1, 2, 90],
        vec![found, own(OWN), reply(1, 2), FeedInput::Unchanged(true)],
    );
    let own_text = GIVEN.replace("author IN (?, ?)", "message.`id` IN (?,?,?,?,?,?)");
    assert_eq!(
        needs,
        [
            "candidates [] [1, 2] 90 0 2",
            &format!("close [], prepare {own_text}"),
            "execute 6 [(9), (8), (7), (6), (5), (5), (90)]",
            "unchanged?",
            "tell"
        ]
    );
}

/// The client sends types once, and relies on them later.
#[test]
fn types_that_the_server_has_not_seen_are_sent_when_it_needs_them() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    assert_eq!(scene.relayed(&[7, 2]), None);
    let [candidates, rows, unchanged] = narrowed();
    scene.execute(&[7, 2], vec![candidates, own(OWN), rows, unchanged]);
    let needs = scene.execute_packet(&untyped(&[4, 2]), narrowed().into());
    assert_eq!(needs[1], "execute 6 [(4), (9), (8), (2)]");
    let told = scene.relayed(&[4, 2]).unwrap();
    assert_eq!(shown(&told), "execute 5 [(4), (2)]");
    assert_eq!(scene.relayed(&[4, 2]), None);
    // They also go along where the server's own reply is sampled.
    scene.execute(&[7, 2], narrowed().into());
    let known = template(READER);
    scene.known.0 = super::super::TemplateLookup::Ready(known);
    let needs = scene.execute_packet(&untyped(&[4, 2]), vec![named(&[9, 8], false), reply(1, 2)]);
    assert_eq!(needs[1], "execute 5 [(4), (2)]");
    assert_eq!(scene.relayed(&[4, 2]), None);
}

/// It is not read, except for the types that it relies on.
#[test]
fn an_execution_that_is_too_long_brings_types_that_the_server_has_not_seen() {
    let limits = crate::machine::tests::LIMITS;
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let [candidates, rows, unchanged] = narrowed();
    scene.execute(&[7, 2], vec![candidates, own(OWN), rows, unchanged]);
    let long = [untyped(&[7, 2]), vec![b'x'; 2_000]].concat();
    let packet = packet::encode_first(&long);
    let mut client = |input: &[u8]| scene.session.client(input, limits, &mut |_| panic!());
    assert!(matches!(client(&packet[..2_000]), ClientStep::Need));
    let ClientStep::Replace(length, sent) = client(&packet) else {
        panic!()
    };
    let rest = &packet[length.get()..];
    let ClientStep::Pass(passed) = client(rest) else {
        panic!()
    };
    assert_eq!(passed.get(), rest.len());
    let typed = [&long[..11], &[1], LONG, LONG, &long[12..]].concat();
    assert_eq!([sent, rest.to_vec()].concat(), packet::encode_first(&typed));
    scene.session.server(b"\x07\0\0\x01\0\0\0\x02\0\0\0");
    // The server has them now; what else it has is unknown.
    let mut client = |input: &[u8]| scene.session.client(input, limits, &mut |_| panic!());
    assert!(matches!(client(&packet), ClientStep::Pass(length) if length.get() == packet.len()));
    let needs = scene.execute(&[7, 2], vec![]);
    assert_eq!(needs, ["relay execution"]);
}

#[test]
fn an_execution_that_is_not_plain_is_the_servers() {
    let cursor = |mut payload: Vec<u8>| {
        payload[5] = 1;
        payload
    };
    let plain = || {
        let (two, seven) = (long(2), long(7));
        let each = [&seven, &two].map(|bytes| BoundParameter {
            type_word: LONG,
            bytes: Some(bytes),
        });
        execute_payload(ITS, &each, Capabilities::NONE)
    };
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    assert_eq!(
        scene.execute_packet(&cursor(plain()), vec![]),
        ["relay execution"]
    );
    // Its rows may be fetched yet.
    assert_eq!(scene.execute_packet(&plain(), vec![]), ["relay execution"]);

    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    scene.session.prepared_mut().long_data(ITS, true);
    assert_eq!(scene.execute_packet(&plain(), vec![]), ["relay execution"]);
    scene.relayed(&[7, 2]);
    assert_eq!(
        scene.execute_packet(&plain(), vec![]),
        ["candidates [7] [] all 0 2"]
    );

    let mut scene = FeedScenario::prepared(READER);
    assert_eq!(
        scene.execute_packet(&untyped(&[7, 2]), vec![]),
        ["relay execution"]
    );
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let cut = plain();
    assert_eq!(
        scene.execute_packet(&cut[..cut.len() - 1], vec![]),
        ["relay execution"]
    );
}

#[test]
fn values_that_are_not_plain_are_the_servers() {
    for (kind, bytes, expected) in [
        (&[6u8, 0][..], None, "relay types"),
        (&[254, 0], Some(&b"\x027x"[..]), "relay types"),
        (&[5, 0], Some(&7.5f64.to_le_bytes()[..]), "relay types"),
        (&[1, 0], Some(&[0xff]), "relay types"),
        (&[254, 0], Some(b"\x017"), "candidates [7] [] all 0 2"),
        (&[1, 0x80], Some(&[7]), "candidates [7] [] all 0 2"),
        (
            &[5, 0],
            Some(&7f64.to_le_bytes()),
            "candidates [7] [] all 0 2",
        ),
    ] {
        let mut scene = FeedScenario::executed(READER, &[7, 2]);
        let limit = BoundParameter {
            type_word: LONG,
            bytes: Some(&[2, 0, 0, 0]),
        };
        let each = [
            BoundParameter {
                type_word: kind,
                bytes,
            },
            limit,
        ];
        let payload = execute_payload(ITS, &each, Capabilities::NONE);
        assert_eq!(scene.execute_packet(&payload, vec![]), [expected]);
        let payload = execute_payload(
            ITS,
            &[
                limit,
                BoundParameter {
                    type_word: kind,
                    bytes,
                },
            ],
            Capabilities::NONE,
        );
        let needs = scene.execute_packet(&payload, vec![]);
        let limit = match kind {
            [1, 0x80] => "candidates [2] [] all 0 7",
            [1, 0] | [254, 0] | [5, 0] | [6, 0] => "relay limit",
            _ => panic!(),
        };
        assert_eq!(needs, [limit]);
    }
}

#[test]
fn a_statement_means_what_it_meant_where_it_was_prepared() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    scene.session.state.enter(Some(b"other".to_vec()));
    assert_eq!(scene.execute(&[7, 2], vec![]), ["relay other_database"]);
    scene.session.state.enter(Some(b"tl".to_vec()));
    assert_eq!(
        scene.execute(&[7, 2], vec![]),
        ["candidates [7] [] all 0 2"]
    );
    // It was not certain then which one it was.
    scene.session.state.doubt_database();
    scene.prepare(READER, ITS);
    scene.session.state.settings_proved(settings());
    assert_eq!(
        scene.execute(&[7, 2], vec![]),
        ["candidates [7] [] all 0 2"]
    );
    scene.session.state.doubt_database();
    scene.session.state.settings_proved(settings());
    assert_eq!(scene.execute(&[7, 2], vec![]), ["relay other_database"]);
}

/// They would be read in the character set of now.
#[test]
fn letters_beyond_ascii_are_the_servers_to_read() {
    let mut scene = FeedScenario::prepared(READER);
    scene.prepare(&READER.replace("LIMIT", "-- \u{e9}\n LIMIT"), ITS);
    assert_eq!(scene.execute(&[7, 2], vec![]), ["relay not_understood"]);
    // A parameter among the columns is described by what it was before.
    scene.prepare("SELECT m.id, ? FROM message m JOIN follower f ON f.author = m.author WHERE f.reader = ? ORDER BY m.id DESC LIMIT 2", ITS);
    assert_eq!(scene.execute(&[7, 2], vec![]), ["relay not_understood"]);
}

#[test]
fn what_cannot_be_prepared_is_tried_three_times() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    for _ in 0..3 {
        let fetched = vec![named(&[9, 8], false), ended(error(1461))];
        let needs = scene.execute(&[7, 2], fetched);
        assert_eq!(needs.last().unwrap(), "relay narrowed_failed");
    }
    let needs = scene.execute(&[7, 2], vec![named(&[9, 8], false)]);
    assert_eq!(needs[1], "relay narrowed_failed");

    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let fetched = vec![named(&[9, 8], false), ended(error(INTERRUPTED))];
    assert_eq!(scene.execute(&[7, 2], fetched).last().unwrap(), "tell");
}

/// Drivers prepare, execute and close the same text again and again.
#[test]
fn internal_statements_outlive_the_clients_and_end_with_changes_of_tables() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let [candidates, rows, unchanged] = narrowed();
    scene.execute(&[7, 2], vec![candidates, own(OWN), rows, unchanged]);
    scene.session.prepared_mut().close(ITS);
    scene.prepare(READER, ITS);
    let needs = scene.execute(&[7, 2], narrowed().into());
    assert_eq!(needs[1], "execute 6 [(7), (9), (8), (2)]");
    scene.known.0 = super::super::TemplateLookup::Ready(template(READER));
    scene.execute(&[7, 2], vec![named(&[9, 8], false), reply(1, 2)]);
    let needs = scene.execute(&[7, 2], vec![named(&[9, 8], false), own(OWN + 1)]);
    assert!(needs[1].starts_with("close [6], prepare "), "{needs:?}");
    // One that failed is prepared anew.
    let needs = scene.execute(&[7, 2], vec![named(&[9, 8], false), ended(error(1243))]);
    assert_eq!(needs.last().unwrap(), "relay narrowed_failed");
    // The reply to the one that was relayed has flags.
    scene.session.state.observe(&status(2));
    let needs = scene.execute(&[7, 2], vec![named(&[9, 8], false)]);
    assert!(needs[1].starts_with("close [7], prepare "), "{needs:?}");
}

#[test]
fn each_text_has_its_own_internal_statements() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let [candidates, rows, unchanged] = narrowed();
    scene.execute(&[7, 2], vec![candidates, own(OWN), rows, unchanged]);
    // Of the same template, but another text.
    scene.prepare(&READER.replace("m.id DESC", " m.id DESC"), ITS);
    let needs = scene.execute(&[7, 2], vec![named(&[9, 8], false)]);
    assert!(needs[1].starts_with("close [], prepare "), "{needs:?}");
}

#[test]
fn at_most_eight_internal_statements_stay_open_and_the_one_used_last_is_among_them() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    scene.policy.candidates = 900;
    let mut needs = Vec::new();
    for (number, count) in [2, 3, 4, 6, 8, 12, 16, 24, 32].into_iter().enumerate() {
        let ids: Vec<u64> = (0..count).collect();
        let number = u32::try_from(number).unwrap();
        let fetched = vec![
            named(&ids, true),
            own(OWN + number),
            reply(1, 2),
            FeedInput::Unchanged(true),
        ];
        needs = scene.execute(&[7, 2], fetched);
        // The first is used each time.
        scene.execute(&[7, 2], narrowed().into());
    }
    assert!(needs[1].starts_with("close [7], prepare "), "{needs:?}");
}

/// To a MariaDB client its last prepared statement has a second id.
#[test]
fn no_id_of_the_client_denotes_an_internal_statement() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    assert_eq!(scene.step(u32::MAX), "Pass(9)");
    let [candidates, rows, unchanged] = narrowed();
    scene.execute(&[7, 2], vec![candidates, own(OWN), rows, unchanged]);
    assert_eq!(scene.step(u32::MAX), "ReplaceStatementId(5)");
    assert_eq!(scene.step(OWN), "ReplaceStatementId(0)");
    assert_eq!(scene.step(OWN + 1), "Pass(9)");
    assert_eq!(scene.step(ITS), "Pass(9)");
    // There is none that it prepared last any more.
    scene.session.prepared_mut().close(ITS);
    assert_eq!(scene.step(u32::MAX), "ReplaceStatementId(0)");
    // To the server there is one again.
    scene.prepare(READER, ITS);
    assert_eq!(scene.step(u32::MAX), "Pass(9)");
    // The failed PREPARE of the internal statement made the server forget it.
    let fetched = vec![named(&[9, 8, 7], true), ended(error(1461))];
    scene.execute(&[7, 2], fetched);
    assert_eq!(scene.step(u32::MAX), "ReplaceStatementId(5)");
}

#[test]
fn a_changed_column_count_is_relayed() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let current = scene.session.state.current();
    let text = PreparedText::new(
        StatementClass::Feed(StatementEffects::NONE),
        READER.as_bytes(),
        current,
    );
    scene.session.prepared_mut().insert(
        text,
        PrepareOkPacket {
            statement_id: ITS,
            columns: 2,
            parameters: 2,
            warnings: 0,
        },
        SentColumnDefinitions::Nothing,
    );
    let needs = scene.execute(&[7, 2], vec![named(&[9, 8], false), own(OWN), reply(1, 2)]);
    assert_eq!(needs.last().unwrap(), "relay columns_differ");
}

/// A prepared statement retains the settings of its PREPARE: no narrowed one is prepared under others.
#[test]
fn what_was_prepared_under_other_settings_is_the_servers() {
    let under = |rows: &[u8]| SessionSettings {
        row_settings: Some(rows.to_vec()),
        ..settings()
    };
    let sets = StatementEffects {
        settings: true,
        ..StatementEffects::NONE
    };
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let relayed = ["relay execution"];
    scene.session.state.command_relayed(sets);
    scene.session.state.settings_proved(under(b"other"));
    assert_eq!(scene.execute(&[7, 2], Vec::new()), relayed);
    // Prepared again, it is read as it is now.
    scene.prepare(READER, ITS);
    assert_ne!(scene.execute(&[7, 2], Vec::new()), relayed);
    scene.prove();
    assert_eq!(scene.execute(&[7, 2], Vec::new()), relayed);

    // What was not known when it was prepared is as it was, as long as nothing may have changed it.
    for (changed, is_relayed) in [(false, false), (true, true)] {
        let mut scene = FeedScenario::proven(READER);
        scene.session.state.command_relayed(sets);
        scene.prepare(READER, ITS);
        if changed {
            scene.session.state.command_relayed(sets);
        }
        scene.prove();
        let needs = scene.execute(&[7, 2], Vec::new());
        assert_eq!(needs == relayed, is_relayed, "{needs:?}");
        // It stays so, whatever else is done that leaves settings as they are.
        scene
            .session
            .state
            .command_relayed(StatementEffects::STORED_CODE);
        scene.prove();
        let needs = scene.execute(&[7, 2], Vec::new());
        assert_eq!(needs == relayed, is_relayed, "{needs:?}");
    }
}

/// While a feed is loaded, its executions are the server's and may run stored code: the settings of the PREPARE are asked for before.
#[test]
fn settings_of_a_prepare_are_learned_before_what_may_change_them() {
    let mut scene = FeedScenario::proven(READER);
    scene
        .session
        .state
        .command_relayed(StatementEffects::STORED_CODE);
    scene.prepare(READER, ITS);
    scene.known.2 = true;
    let settings = crate::call_decision::tests::scenario::settings(Some("tl"));
    let needs = scene.execute(&[7, 2], vec![FeedInput::Answers(vec![settings])]);
    assert!(needs[0].starts_with("ask SELECT "), "{needs:?}");
    assert_eq!(needs[1..], ["relay log_not_followed"]);
    // Once.
    scene
        .session
        .state
        .command_relayed(StatementEffects::STORED_CODE);
    assert_eq!(
        scene.execute(&[7, 2], Vec::new()),
        ["relay log_not_followed"]
    );
    // Nothing is asked for a text, or where the feed is refused for good.
    scene.known.2 = false;
    scene.known.0 = super::super::TemplateLookup::Unserved(FeedRelayReason::Refused, None);
    scene.prepare(READER, ITS);
    assert_eq!(scene.execute(&[7, 2], Vec::new()), ["relay feed_refused"]);
}

/// An execution of a statement with two parameters of text.
fn of_texts(values: [&str; 2], typed: bool) -> Vec<u8> {
    let mut payload = vec![0x17, 5, 0, 0, 0, 0, 1, 0, 0, 0, 0, u8::from(typed)];
    if typed {
        payload.extend([253, 0, 253, 0]);
    }
    for value in values {
        payload.push(u8::try_from(value.len()).unwrap());
        payload.extend(value.as_bytes());
    }
    payload
}

#[test]
fn text_is_read_as_it_was_to_be_read_when_its_type_came() {
    let sets = StatementEffects {
        settings: true,
        ..StatementEffects::NONE
    };
    let relayed = ["relay execution"];
    let [typed, untyped] = [true, false].map(|typed| of_texts(["7", "2"], typed));
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let is_relayed = |scene: &mut FeedScenario, payload: &[u8]| {
        let needs = scene.execute_packet(payload, Vec::new());
        needs == relayed
    };
    assert!(!is_relayed(&mut scene, &typed));
    assert!(!is_relayed(&mut scene, &untyped));
    // Types come under other settings: the server has seen them, and those of before hold again.
    scene.session.state.command_relayed(sets);
    scene.session.state.settings_proved(SessionSettings {
        row_settings: Some(b"other".to_vec()),
        ..settings()
    });
    assert!(is_relayed(&mut scene, &typed));
    scene.session.state.command_relayed(sets);
    scene.prove();
    assert!(is_relayed(&mut scene, &untyped));
    assert!(!is_relayed(&mut scene, &typed));
    assert!(!is_relayed(&mut scene, &untyped));
    // Numbers are numbers, whatever is set.
    scene.session.state.command_relayed(sets);
    let numbers = super::feed_executions::untyped(&[7, 2]);
    let typed = [&numbers[..11], &[1, 3, 0, 3, 0], &numbers[12..]].concat();
    scene.execute_packet(&typed, Vec::new());
    scene.session.state.command_relayed(sets);
    scene.prove();
    assert!(!is_relayed(&mut scene, &numbers));
}

#[test]
fn types_of_an_execution_that_failed_are_not_known() {
    let failed = |scene: &mut FeedScenario| scene.session.prepared_mut().failed(ITS);
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    let relayed = ["relay execution"];
    let numbers = untyped(&[7, 2]);
    let typed = [&numbers[..11], &[1, 3, 0, 3, 0], &numbers[12..]].concat();
    scene.execute_packet(&typed, Vec::new());
    failed(&mut scene);
    assert_eq!(scene.execute_packet(&numbers, Vec::new()), relayed);
    // An execution that has none changes none.
    assert_ne!(scene.execute_packet(&typed, Vec::new()), relayed);
    assert_ne!(scene.execute_packet(&numbers, Vec::new()), relayed);
    failed(&mut scene);
    assert_ne!(scene.execute_packet(&numbers, Vec::new()), relayed);
    // Those that the server has not seen are sent again.
    scene.session.prepared_mut().executed_locally(ITS);
    assert_eq!(scene.relayed(&[7, 2]), Some(typed.clone()));
    failed(&mut scene);
    assert_eq!(scene.relayed(&[7, 2]), Some(typed));
    assert_eq!(scene.relayed(&[7, 2]), None);
}

/// MySQL refuses such a packet, and keeps what was before: no query precedes it, nor any execution after an error.
#[test]
fn no_query_precedes_an_execution_that_may_be_refused() {
    let mut scene = FeedScenario::executed(READER, &[7, 2]);
    scene.session.state.command_relayed(StatementEffects {
        settings: true,
        ..StatementEffects::NONE
    });
    // It was prepared under what is set now.
    scene.prepare(READER, ITS);
    let head = [&untyped(&[])[..11], &[1, 10, 0, 3, 0]].concat();
    let date = |bytes: &[u8]| [&head[..], bytes, &long(2)].concat();
    let with_time = date(&[7, 0xea, 7, 1, 1, 10, 0, 0]);
    let relayed = ["relay execution"];
    assert_eq!(scene.execute_packet(&with_time, Vec::new()), relayed);
    let without = date(&[4, 0xea, 7, 1, 1]);
    let needs = scene.execute_packet(&without, Vec::new());
    assert!(needs[0].starts_with("ask SELECT DATABASE()"), "{needs:?}");
    scene.prove();
    scene.session.state.observe_error();
    assert_eq!(scene.execute(&[7, 2], Vec::new()), relayed);
}

/// The sample would be uncertain: so the execution is relayed with the types that the server needs.
#[test]
fn types_that_were_put_in_and_not_sent_are_put_in_again() {
    let mut scene = FeedScenario::proven(READER);
    scene.prepare(READER, ITS);
    let numbers = untyped(&[7, 2]);
    let typed = [&numbers[..11], &[1, 3, 0, 3, 0], &numbers[12..]].concat();
    scene.execute_packet(&typed, Vec::new());
    scene.session.prepared_mut().executed_locally(ITS);
    let fetched = vec![named(&[9, 8], false), FeedInput::Unchanged(false)];
    let needs = scene.execute_packet(&numbers, fetched);
    assert_eq!(
        needs.last().unwrap(),
        "relay changed_meanwhile",
        "{needs:?}"
    );
    assert_eq!(scene.session.payload_with_types(ITS, &numbers), Some(typed));
}
