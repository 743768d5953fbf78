//! Which sessions an account's proof helps, and until when.

use headwater_wire::response::OkPacket;
use headwater_wire::status;

use super::*;
use crate::settings_probe::SessionSettings;

/// A session of this account that logged in then.
fn session(account: &str, login: Instant) -> SessionState {
    let mut state = SessionState::new(Some(b"tl".to_vec()));
    state.observe(&OkPacket {
        status: status::AUTOCOMMIT,
        ..OkPacket::default()
    });
    state.login_began_at(Some(login));
    state.settings_proved(SessionSettings {
        account: account.into(),
        ..crate::idle_session::settings()
    });
    state
}

#[allow(clippy::disallowed_methods)]
fn start() -> Instant {
    Instant::now()
}

const TTL: Duration = Duration::from_secs(5);

fn at(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

#[test]
fn a_proof_helps_new_sessions_of_the_account_until_its_own_login_is_old() {
    let (rights, start) = (AccountRights::default(), start());
    let mut prover = session("app", start);
    assert!(!rights.may_read(&session("app", start), 1, TTL, start));
    rights.template_answered(&mut prover, 1, TTL, at(start, 3));
    let new = session("app", at(start, 4));
    assert!(rights.may_read(&new, 1, TTL, at(start, 4)));
    // Another template, account or time.
    assert!(!rights.may_read(&new, 2, TTL, at(start, 4)));
    let other = session("other", at(start, 4));
    assert!(!rights.may_read(&other, 1, TTL, at(start, 4)));
    assert!(!rights.may_read(&new, 1, Duration::ZERO, at(start, 4)));
    // The prover's login counts, not when it ran the statement; the prover itself has run it lately.
    assert!(!rights.may_read(&new, 1, TTL, at(start, 5)));
    assert!(rights.may_read(&prover, 1, TTL, at(start, 5)));
}

/// A fault that was found: a right that came after a login is not that session's.
#[test]
fn a_proof_does_not_help_an_earlier_session() {
    let (rights, start) = (AccountRights::default(), start());
    let earlier = session("app", start);
    let prove = |login, sent| {
        let mut prover = session("app", at(start, login));
        rights.template_answered(&mut prover, 1, TTL, at(start, sent));
    };
    prove(2, 2);
    let may = |session: &SessionState, now| rights.may_read(session, 1, TTL, at(start, now));
    assert!(!may(&earlier, 2));
    assert!(may(&session("app", at(start, 2)), 2));
    // A proof is replaced once half of its time is over.
    let between = session("app", at(start, 3));
    prove(4, 4);
    assert!(may(&between, 4));
    prove(5, 5);
    assert!(!may(&between, 5));
    assert!(may(&session("app", at(start, 9)), 9));
    // A session whose own login is too old to prove anything replaces none.
    prove(3, 8);
    assert!(may(&session("app", at(start, 9)), 9));
}

#[test]
fn a_session_whose_account_or_login_is_uncertain_neither_proves_nor_profits() {
    let (rights, start) = (AccountRights::default(), start());
    let mut unknown = session("app", start);
    unknown.login_began_at(None);
    rights.template_answered(&mut unknown, 1, TTL, start);
    assert!(!rights.may_read(&session("app", start), 1, TTL, start));
    rights.template_answered(&mut session("app", start), 1, TTL, start);
    let mut new = session("app", start);
    assert!(rights.may_read(&new, 1, TTL, start));
    // SET ROLE.
    new.command_relayed(headwater_statement::StatementEffects::ALL);
    assert!(!rights.may_read(&new, 1, TTL, start));
    let uncommitted = SessionSettings {
        server: Vec::new(),
        ..crate::idle_session::settings()
    };
    new.settings_proved(uncommitted);
    assert!(!rights.may_read(&new, 1, TTL, start));
    // One that has been in a transaction, or whose replies show more.
    let mut other = session("app", start);
    other.observe(&OkPacket {
        status: status::AUTOCOMMIT | status::IN_TRANS,
        ..OkPacket::default()
    });
    other.observe(&OkPacket {
        status: status::AUTOCOMMIT,
        ..OkPacket::default()
    });
    assert!(!rights.may_read(&other, 1, TTL, start));
    let mut tracked = session("app", start);
    tracked.settings_proved(SessionSettings {
        tracks_state: true,
        account: b"app".to_vec(),
        ..crate::idle_session::settings()
    });
    assert!(!rights.may_read(&tracked, 1, TTL, start));
    // Names are as long as a server sends them.
    let long = "r".repeat(MAX_IDENTITY_BYTES + 1);
    rights.template_answered(&mut session(&long, start), 1, TTL, start);
    assert!(!rights.may_read(&session(&long, start), 1, TTL, start));
}
