//! The statements that flush pending ids, their order, and the result where one fails.

use headwater_timeline::{DefinitionId, ProcedureForm, TimelineDefinition};
use headwater_wire::response::{ErrPacket, OkPacket};
use headwater_wire::status;

use super::*;
use crate::idle_session;
use crate::result_table::ReplayableStatement;

const DENIED: u16 = 1142;
const WITH_DIAGNOSTICS: FlushScope = FlushScope::Diagnostics { found_rows: false };

struct FlushScenario {
    session: CommandPhase,
    definitions: Vec<TimelineDefinition>,
}

#[test]
fn what_reads_no_table_overrules_no_conditions_on_mariadb() {
    for mariadb in [true, false] {
        let mut scene = FlushScenario::new(mariadb, |_| {});
        let warns = OkPacket {
            status: status::AUTOCOMMIT,
            warnings: 1,
            ..OkPacket::default()
        };
        let silent = OkPacket {
            warnings: 0,
            ..warns.clone()
        };
        for (text, ok) in [("warns", warns), ("reads", silent)] {
            let overrules = scene.session.clears_older_conditions();
            let pending = scene.session.tables.pending.as_mut().unwrap();
            assert!(pending.record_replayable(text.as_bytes(), true, overrules));
            scene.session.state.observe(&ok);
        }
        let settling = PendingFlush::begin(&mut scene.session, FlushScope::Tables).unwrap();
        let spared = settling.pending.replayable.iter();
        let texts: Vec<_> = spared.map(|spared| &spared.packet[..]).collect();
        let expected: &[&[u8]] = match mariadb {
            true => &[b"warns", b"reads"],
            false => &[b"reads"],
        };
        assert_eq!(texts, expected);
    }
}

impl FlushScenario {
    /// After a served call, with changes since.
    fn new(mariadb: bool, change: impl FnOnce(&mut PendingIds)) -> FlushScenario {
        let mut pending = idle_session::pending(DefinitionId(0), vec![9, 4]);
        pending.call = b"call".to_vec();
        change(&mut pending);
        let mut session = idle_session::session(mariadb);
        session.tables.pending = Some(Box::new(pending));
        session.state.observe(&OkPacket {
            status: status::AUTOCOMMIT,
            ..OkPacket::default()
        });
        FlushScenario {
            session,
            definitions: vec![TimelineDefinition::classic()],
        }
    }

    /// The actions, one after the other; `answer` replies to each.
    fn play(
        &mut self,
        asks: FlushScope,
        mut answer: impl FnMut(&FlushAction) -> FlushInput,
    ) -> (Vec<String>, FlushOutcome) {
        let mut settling = PendingFlush::begin(&mut self.session, asks).unwrap();
        let (mut told, mut input) = (Vec::new(), FlushInput::Begin);
        loop {
            let need = settling.next(input, &mut self.session, &self.definitions);
            told.push(match &need {
                FlushAction::Write(statements) => format!("write {}", statements.len()),
                FlushAction::WriteAndPass(statements) => {
                    format!("write {} and pass", statements.len())
                }
                FlushAction::DiscardReply => "swallow".into(),
                FlushAction::Run(payload) => {
                    let text = payload.strip_prefix(b"\x03").unwrap_or(payload);
                    format!("run {}", String::from_utf8_lossy(text))
                }
                FlushAction::Done(settled) => return (told, *settled),
                FlushAction::Interrupted => {
                    told.push("interrupted".into());
                    return (told, FlushOutcome::default());
                }
            });
            input = answer(&need);
        }
    }
}

fn error(code: u16) -> ErrPacket {
    ErrPacket {
        code,
        sqlstate: None,
        message: Vec::new(),
    }
}

fn well(need: &FlushAction) -> FlushInput {
    match need {
        FlushAction::Write(statements) | FlushAction::WriteAndPass(statements) => {
            let answers = statements
                .iter()
                .map(|_| QueryReply::Ok(OkPacket::default()));
            FlushInput::Written(answers.collect())
        }
        FlushAction::Run(_) => FlushInput::Ran(Some(ReplyOutcome::Ok(OkPacket::default()))),
        _ => FlushInput::ReplyDiscarded,
    }
}

/// Every write fails with this code; everything else succeeds.
fn writes_fail(code: u16) -> impl FnMut(&FlushAction) -> FlushInput {
    move |need| match need {
        FlushAction::Write(_) | FlushAction::WriteAndPass(_) => {
            FlushInput::Written(vec![QueryReply::Err(error(code))])
        }
        other => well(other),
    }
}

fn answered(pending: &mut PendingIds) {
    pending.earlier_calls = vec![(ProcedureForm::Bounded, b"before".to_vec())];
    pending.follow_up = Some(b"tail".to_vec());
    pending.replayable = vec![ReplayableStatement {
        packet: b"spared".to_vec(),
        whole: true,
    }];
    pending.count_reset = Some(b"aside".to_vec());
    pending.warnings = 2;
}

#[test]
fn tables_are_written_and_known_then() {
    // MySQL also needs the end of the write.
    for (mariadb, statements) in [(true, 2), (false, 3)] {
        let mut scene = FlushScenario::new(mariadb, answered);
        let (told, settled) = scene.play(FlushScope::Tables, well);
        assert_eq!(told, [format!("write {statements}")]);
        assert!(settled.written && !settled.passed && !settled.procedure_ran);
        assert_eq!(scene.session.tables.result, TableRowCount::Counted(2));
        assert_eq!(scene.session.tables.heads, TableRowCount::Absent);
        assert!(scene.session.tables.pending.is_none());
    }
}

#[test]
fn the_requested_counts_and_warnings_decide_what_runs_after_the_tables() {
    let rest = ["run tail", "run spared", "run aside"].map(String::from);
    let again = "run DO _utf8'',_utf8''";
    type PendingIdsChange = fn(&mut PendingIds);
    let without_tail: PendingIdsChange = |pending| {
        answered(pending);
        pending.follow_up = None;
    };
    let cases: [(FlushScope, PendingIdsChange, Vec<&str>); 3] = [
        (WITH_DIAGNOSTICS, answered, vec!["write 2"]),
        (
            WITH_DIAGNOSTICS,
            without_tail,
            vec!["run before", "run call", again],
        ),
        (
            FlushScope::Diagnostics { found_rows: true },
            without_tail,
            vec!["run before", "run call"],
        ),
    ];
    for (asks, change, first) in cases {
        let mut scene = FlushScenario::new(true, change);
        let skipped = usize::from(!first.contains(&"write 2"));
        let expected = first.into_iter().map(String::from);
        let expected: Vec<String> = expected.chain(rest[skipped..].to_vec()).collect();
        let (told, settled) = scene.play(asks, well);
        assert_eq!(told, expected);
        assert_eq!(settled.procedure_ran, skipped == 1);
    }
}

#[test]
fn where_writing_is_denied_the_procedure_runs_and_the_session_is_barred() {
    let mut scene = FlushScenario::new(true, answered);
    let (told, settled) = scene.play(FlushScope::Tables, writes_fail(DENIED));
    assert_eq!(told, ["write 2", "run before", "run call"]);
    assert!(!settled.written && settled.procedure_ran);
    assert_eq!(settled.failed, Some(DENIED));
    assert_eq!(
        scene.session.state.obstacle(),
        Some(CallRelayReason::WriteDenied)
    );
    assert_eq!(scene.session.tables.result, TableRowCount::Unknown);
}

#[test]
fn the_waiting_command_goes_along_or_its_reply_is_discarded() {
    let mut scene = FlushScenario::new(true, |_| {});
    let (told, settled) = scene.play(FlushScope::TablesAtOnce, well);
    assert_eq!(told, ["write 2 and pass"]);
    assert!(settled.written && settled.passed);
    let mut scene = FlushScenario::new(true, |_| {});
    let (told, settled) = scene.play(FlushScope::TablesAtOnce, writes_fail(DENIED));
    assert_eq!(told, ["write 2 and pass", "swallow", "write 2", "run call"]);
    assert!(!settled.passed && settled.procedure_ran);
    // A KILL QUERY met it once.
    let mut scene = FlushScenario::new(true, |_| {});
    let mut killed = false;
    let (told, settled) = scene.play(FlushScope::TablesAtOnce, |need| {
        match std::mem::replace(&mut killed, true) {
            false => writes_fail(INTERRUPTED)(need),
            true => well(need),
        }
    });
    // What the tables hold by then is not known.
    assert_eq!(told, ["write 2 and pass", "swallow", "write 3"]);
    assert!(settled.written && !settled.passed && !settled.procedure_ran);
    assert_eq!(scene.session.state.obstacle(), None);
}

#[test]
fn what_is_interrupted_is_sent_again_but_not_for_ever() {
    for code in [INTERRUPTED, NO_MORE_ROWS] {
        let mut scene = FlushScenario::new(true, answered);
        let mut left = 3;
        let (told, _) = scene.play(WITH_DIAGNOSTICS, |need| match (need, left) {
            (FlushAction::Run(_), 1..) => {
                left -= 1;
                FlushInput::Ran(Some(ReplyOutcome::Err(error(code))))
            }
            _ => well(need),
        });
        assert_eq!(
            told[..5],
            ["write 2", "run tail", "run tail", "run tail", "run tail"]
        );
        assert_eq!(told[5..], ["run spared", "run aside"]);
    }
    let mut scene = FlushScenario::new(true, answered);
    let (told, _) = scene.play(FlushScope::Tables, writes_fail(INTERRUPTED));
    assert_eq!(told.len(), INTERRUPTIONS as usize + 1);
    assert_eq!(told.last().unwrap(), "interrupted");
}

#[test]
fn an_error_of_what_runs_again_is_what_the_session_is_left_with() {
    let mut scene = FlushScenario::new(true, answered);
    let (told, _) = scene.play(WITH_DIAGNOSTICS, |need| match need {
        FlushAction::Run(_) => FlushInput::Ran(Some(ReplyOutcome::Err(error(DENIED)))),
        _ => well(need),
    });
    assert_eq!(told, ["write 2", "run tail", "run spared", "run aside"]);
    assert!(scene.session.state.has_conditions());
}

#[test]
fn a_definition_that_is_gone_is_nothing_to_write_by() {
    let mut scene = FlushScenario::new(true, |_| {});
    scene.definitions.clear();
    let (told, settled) = scene.play(FlushScope::Tables, well);
    assert_eq!(told, ["write 0", "run call"]);
    assert_eq!(settled.failed, Some(0));
}
