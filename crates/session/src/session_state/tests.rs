//! The known session state after replies and commands.

use super::*;

fn ok(status: u16) -> OkPacket {
    OkPacket {
        status,
        ..OkPacket::default()
    }
}

fn idle() -> SessionState {
    let mut standing = SessionState::new(Some(b"tl".to_vec()));
    standing.observe(&ok(status::AUTOCOMMIT));
    standing
}

fn prove(standing: &mut SessionState) {
    standing.settings_proved(SessionSettings {
        wait_timeout: Duration::from_secs(9),
        ..crate::idle_session::settings()
    });
}

#[test]
fn an_idle_autocommit_session_has_no_obstacle() {
    assert_eq!(idle().obstacle(), None);
}

#[test]
fn flags_of_the_last_reply_decide() {
    let mut standing = idle();
    standing.observe(&ok(status::AUTOCOMMIT | status::IN_TRANS));
    assert_eq!(standing.obstacle(), Some(CallRelayReason::InTransaction));
    assert!(!standing.autocommit_is_off());
    standing.observe(&ok(0));
    assert_eq!(standing.obstacle(), Some(CallRelayReason::AutocommitOff));
    assert!(standing.autocommit_is_off());
}

#[test]
fn warnings_and_errors_stay_until_the_next_statement() {
    let mut standing = idle();
    assert!(!standing.has_conditions());
    standing.observe(&OkPacket {
        warnings: 1,
        ..ok(2)
    });
    assert!(standing.has_conditions());
    standing.observe(&ok(2));
    assert!(!standing.has_conditions());
    standing.observe_error();
    assert!(standing.has_conditions());
}

#[test]
fn an_error_makes_the_flags_unknown_and_requires_a_probe() {
    let mut standing = idle();
    standing.observe_error();
    assert!(standing.must_probe_first());
}

#[test]
fn a_transaction_that_an_error_may_have_ended_is_one_perhaps() {
    let mut standing = idle();
    assert_eq!(standing.transaction(), TransactionState::None);
    standing.observe(&ok(status::AUTOCOMMIT | status::IN_TRANS_READONLY));
    assert_eq!(standing.transaction(), TransactionState::Open);
    standing.observe_error();
    assert_eq!(standing.transaction(), TransactionState::Uncertain);
    assert_eq!(standing.obstacle(), Some(CallRelayReason::InTransaction));
    standing.observe(&ok(status::AUTOCOMMIT));
    assert_eq!(standing.transaction(), TransactionState::None);
}

#[test]
fn a_read_only_transaction_differs_from_one_that_wrote() {
    let mut standing = idle();
    let begin = StatementEffects::of(b"BEGIN", &[], false);
    let read = StatementEffects::of(b"SELECT 1 FROM t", &[], true);
    let write = StatementEffects::of(b"INSERT INTO t VALUES (1)", &[], true);
    let open = ok(status::AUTOCOMMIT | status::IN_TRANS);
    standing.command_sent(begin, true);
    assert!(standing.take_snapshot_opening() && !standing.take_snapshot_opening());
    standing.observe(&open);
    standing.command_sent(read, true);
    assert!(!standing.take_snapshot_opening());
    assert_eq!(standing.feed_obstacle(), None);
    standing.command_sent(write, true);
    assert_eq!(
        standing.feed_obstacle(),
        Some(CallRelayReason::InTransaction)
    );
    // A command sent after another one may still belong to the earlier transaction.
    standing.observe(&ok(status::AUTOCOMMIT));
    standing.command_sent(begin, false);
    standing.observe(&open);
    assert_eq!(
        standing.feed_obstacle(),
        Some(CallRelayReason::InTransaction)
    );
    assert!(!standing.take_snapshot_opening());
    standing.observe(&ok(status::AUTOCOMMIT));
    standing.command_sent(begin, true);
    standing.observe(&open);
    assert_eq!(standing.feed_obstacle(), None);
    // An error may have ended it, or not.
    standing.observe_error();
    standing.command_sent(write, true);
    assert_eq!(
        standing.feed_obstacle(),
        Some(CallRelayReason::InTransaction)
    );
}

#[test]
fn what_is_set_for_the_next_transaction_counts_until_that_has_ended() {
    let set = |text: &str| StatementEffects::of(text.as_bytes(), &[], false);
    let snapshot = set("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    let dirty = set("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    let begin = set("BEGIN");
    let open = ok(status::AUTOCOMMIT | status::IN_TRANS);
    let obstacles = |all: &[StatementEffects]| {
        let mut standing = idle();
        for effects in all {
            standing.command_sent(*effects, true);
            standing.command_relayed(*effects);
        }
        let before = standing.feed_obstacle();
        standing.command_sent(begin, true);
        standing.observe(&open);
        assert!(standing.obstacle().is_some());
        let inside = standing.feed_obstacle();
        standing.one_shot_ended();
        standing.observe(&ok(status::AUTOCOMMIT));
        assert_eq!(
            (standing.feed_obstacle(), standing.obstacle()),
            (None, None)
        );
        (before, inside)
    };
    let waits = Some(CallRelayReason::OneShotTransaction);
    assert_eq!(obstacles(&[snapshot]), (waits, None));
    assert_eq!(obstacles(&[snapshot, snapshot]), (waits, None));
    assert_eq!(obstacles(&[dirty]), (waits, waits));
    // The access mode alone leaves the level as it was set.
    assert_eq!(obstacles(&[dirty, snapshot]), (waits, waits));
    assert_eq!(obstacles(&[snapshot, dirty]), (waits, waits));
}

#[test]
fn what_bars_calls_is_no_matter_to_a_select() {
    let mut standing = idle();
    prove(&mut standing);
    let settings = standing.settings.proven().cloned().unwrap();
    standing.settings_proved(SessionSettings {
        database: Some(b"tl".to_vec()),
        bars_calls: true,
        ..settings.clone()
    });
    assert_eq!(standing.feed_obstacle(), None);
    assert_eq!(standing.obstacle(), Some(CallRelayReason::Settings));
    // After an error the next reply may report what came before it.
    standing.settings_proved(SessionSettings {
        database: Some(b"tl".to_vec()),
        bars_calls: true,
        tracks_state: true,
        ..settings.clone()
    });
    assert_eq!(standing.feed_obstacle(), None);
    standing.observe_error();
    assert_eq!(standing.feed_obstacle(), Some(CallRelayReason::Settings));
    standing.observe(&ok(status::AUTOCOMMIT));
    assert_eq!(standing.feed_obstacle(), None);
    // In a transaction the first read reports that there was one.
    standing.settings_proved(SessionSettings {
        database: Some(b"tl".to_vec()),
        bars_calls: true,
        tracks_transactions: true,
        ..settings
    });
    assert_eq!(standing.feed_obstacle(), None);
    standing.observe(&ok(status::AUTOCOMMIT | status::IN_TRANS));
    assert_eq!(standing.feed_obstacle(), Some(CallRelayReason::Settings));
    standing.observe(&ok(0));
    assert_eq!(standing.feed_obstacle(), Some(CallRelayReason::Settings));
    standing.observe(&ok(status::AUTOCOMMIT));
    assert_eq!(standing.feed_obstacle(), None);
    standing.observe_error();
    assert_eq!(standing.feed_obstacle(), Some(CallRelayReason::Settings));
}

#[test]
fn a_read_opens_a_snapshot_only_where_autocommit_is_off() {
    let read = StatementEffects::of(b"SELECT 1 FROM t", &[], true);
    let mut standing = idle();
    standing.command_sent(read, true);
    assert!(!standing.take_snapshot_opening() && !standing.reads_a_snapshot());
    standing.observe(&ok(0));
    standing.command_sent(read, true);
    assert!(standing.take_snapshot_opening() && standing.reads_a_snapshot());
}

#[test]
fn which_server_it_is_is_known_when_the_settings_are_stale() {
    let mut standing = idle();
    assert_eq!(standing.server(), None);
    prove(&mut standing);
    standing.command_relayed(StatementEffects {
        stored_code: true,
        database: true,
        ..StatementEffects::NONE
    });
    assert_eq!(standing.server(), Some(&b"one"[..]));
    assert_eq!(standing.wait_timeout(), Duration::from_secs(9));
    assert_eq!(standing.database(), Some(&b"tl"[..]));
    assert_eq!(standing.certain_database(), None);
}

#[test]
fn a_text_with_warnings_is_parsed_once_until_it_changes() {
    let mut state = idle();
    let number = DefinitionId(0);
    state.procedure_parsed(number, ProcedureForm::Newest, 1);
    assert!(state.has_parsed(number, ProcedureForm::Newest, 1));
    assert!(!state.has_parsed(number, ProcedureForm::Bounded, 1));
    assert!(!state.has_parsed(number, ProcedureForm::Newest, 2));
    state.procedure_parsed(number, ProcedureForm::Newest, 2);
    assert!(state.has_parsed(number, ProcedureForm::Newest, 2));
    state.forget_parsed();
    assert!(!state.has_parsed(number, ProcedureForm::Newest, 2));
}

#[test]
fn what_the_server_answered_counts_for_a_while_in_the_same_database_and_role() {
    #[allow(clippy::disallowed_methods)]
    let now = Instant::now();
    let ttl = Duration::from_secs(1);
    let mut standing = idle();
    assert!(!standing.may_read_template(7, ttl, now));
    standing.template_answered(7, now);
    assert!(standing.may_read_template(7, ttl, now + ttl / 2));
    assert!(!standing.may_read_template(7, ttl, now + ttl));
    assert!(!standing.may_read_template(8, ttl, now));
    assert!(!standing.may_read_template(7, Duration::ZERO, now));
    for effects in [
        StatementEffects {
            settings: true,
            ..StatementEffects::NONE
        },
        StatementEffects {
            database: true,
            ..StatementEffects::NONE
        },
        StatementEffects::STORED_CODE,
    ] {
        standing.template_answered(7, now);
        standing.command_relayed(effects);
        assert!(!standing.may_read_template(7, ttl, now));
    }
    for template in 0..100 {
        standing.template_answered(template, now);
    }
    assert_eq!(standing.answered_templates.len(), MAX_ANSWERED_TEMPLATES);
}

#[test]
fn locked_tables_are_in_the_way_until_they_are_given_back() {
    let locks = |locks| StatementEffects {
        locks,
        ..StatementEffects::NONE
    };
    let mut standing = idle();
    standing.command_relayed(locks(TableLockEffect::Taken));
    standing.command_relayed(locks(TableLockEffect::Unchanged));
    assert_eq!(standing.obstacle(), Some(CallRelayReason::TableLocks));
    standing.command_relayed(locks(TableLockEffect::Released));
    assert_eq!(standing.obstacle(), None);
}

#[test]
fn changed_settings_are_probed_and_a_reported_database_is_trusted() {
    let mut standing = idle();
    prove(&mut standing);
    standing.command_relayed(StatementEffects {
        settings: true,
        ..StatementEffects::NONE
    });
    assert!(!standing.are_settings_proven() && standing.are_tables_proven());
    standing.observe(&OkPacket {
        schema: Some(b"other".to_vec()),
        ..ok(2)
    });
    assert_eq!(standing.certain_database(), Some(&b"other"[..]));
}

#[test]
fn stored_code_may_have_changed_settings_and_tables() {
    let mut standing = idle();
    prove(&mut standing);
    standing.command_relayed(StatementEffects {
        stored_code: true,
        ..StatementEffects::NONE
    });
    assert!(!standing.are_settings_proven() && !standing.are_tables_proven());
}

#[test]
fn a_database_has_the_name_that_the_server_has_for_it() {
    let mut standing = SessionState::new(Some(b"Social".to_vec()));
    standing.set_name_case(NameCase::Sensitive);
    assert_eq!(standing.database(), Some(&b"Social"[..]));
    standing.doubt_database();
    standing.set_name_case(NameCase::Folded);
    assert_eq!(standing.database(), Some(&b"social"[..]));
    assert_eq!(standing.certain_database(), None);
    standing.enter(Some(b"SOCIAL".to_vec()));
    assert_eq!(standing.database(), Some(&b"social"[..]));
}
