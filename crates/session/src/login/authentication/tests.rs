//! What either side may send until the login succeeds or fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::super::tests::{ExpectedState, ExpectedStep, client, server};
use super::*;
use crate::machine::tests::{LIMITS, OK, WAYS, encoded};
use crate::tls_policy::{ServerLegTls, TlsPolicy};
use headwater_wire::compression::CompressionAlgorithm;

const SWITCH: &[u8] = b"\xfemysql_native_password\0scramblescramblescra\0";
const ERR: &[u8] = b"\xff\x15\x04#28000Access denied";

/// What a row begins with.
#[derive(Default)]
struct AuthenticationCase {
    own_user: Option<ProcessUser>,
    /// The client's leg alone has TLS.
    mixed: bool,
    /// The server's leg alone has frames.
    framed: bool,
}

impl AuthenticationCase {
    fn guarded() -> AuthenticationCase {
        AuthenticationCase {
            own_user: Some(ProcessUser::named("hw")),
            ..AuthenticationCase::default()
        }
    }

    fn mixed() -> AuthenticationCase {
        AuthenticationCase {
            mixed: true,
            ..AuthenticationCase::default()
        }
    }

    fn framed() -> AuthenticationCase {
        AuthenticationCase {
            framed: true,
            ..AuthenticationCase::default()
        }
    }

    fn state(self) -> Box<AuthenticationState> {
        let legs = TlsPolicy {
            offered: true,
            server: ServerLegTls::Never,
            ..TlsPolicy::PLAIN
        };
        let account = LoginAccount {
            server: ServerFlavor { mariadb: false },
            capabilities: Capabilities::PROTOCOL_41.union(Capabilities::SESSION_TRACK),
            user: b"root".to_vec(),
            database: Some(b"tl".to_vec()),
            compression_frames: CompressionFrames {
                client: None,
                server: self.framed.then_some(CompressionAlgorithm::Zlib),
            },
        };
        let ways = SessionPolicy {
            process_user: self.own_user,
            ..WAYS
        };
        let agreed = legs.agree(self.mixed, true).unwrap();
        Box::new(AuthenticationState::new(ways, LIMITS, account, agreed))
    }
}

#[test]
fn the_client_answers_and_commands_wait_where_both_legs_are_not_alike() {
    let answer = encoded(3, &[7; 20]);
    let answers = [&answer[..], &answer].concat();
    let command = encoded(0, b"\x0e");
    let stay = |told| (told, ExpectedState::Authentication);
    let pass = |bytes: &[u8]| stay(ExpectedStep::Pass(bytes.len()));
    let replaced = |seq| stay(ExpectedStep::Replace(24, encoded(seq, &[7; 20])));
    let refused = stay(ExpectedStep::Refuse("A login that cannot be read"));
    let long = &[0xff; 600][..];
    for (what, given, input, expected) in [
        (
            "a part",
            AuthenticationCase::default(),
            &answer[..7],
            pass(&answer[..7]),
        ),
        (
            "answers",
            AuthenticationCase::default(),
            &answers,
            pass(&answers),
        ),
        (
            "a command",
            AuthenticationCase::default(),
            &command,
            pass(&command),
        ),
        (
            "a part",
            AuthenticationCase::mixed(),
            &answer[..7],
            stay(ExpectedStep::Need),
        ),
        (
            "answers",
            AuthenticationCase::mixed(),
            &answers,
            replaced(2),
        ),
        (
            "what is long",
            AuthenticationCase::mixed(),
            long,
            (ExpectedStep::Pass(600), ExpectedState::Pump),
        ),
        (
            "a part",
            AuthenticationCase::framed(),
            &answer[..7],
            stay(ExpectedStep::Need),
        ),
        (
            "answers",
            AuthenticationCase::framed(),
            &answers,
            replaced(3),
        ),
        (
            "a command",
            AuthenticationCase::framed(),
            &command,
            stay(ExpectedStep::Hold),
        ),
        (
            "what is long",
            AuthenticationCase::framed(),
            long,
            refused.clone(),
        ),
        (
            "answers",
            AuthenticationCase::guarded(),
            &answers,
            replaced(3),
        ),
        (
            "a command",
            AuthenticationCase::guarded(),
            &command,
            stay(ExpectedStep::Hold),
        ),
        ("what is long", AuthenticationCase::guarded(), long, refused),
    ] {
        client(what, given.state().client(input), expected);
    }
}

#[test]
fn the_server_asks_and_ends_the_dialogue() {
    let (switch, ok, error) = (encoded(2, SWITCH), encoded(2, OK), encoded(2, ERR));
    let pass = |bytes: &[u8], state| (ExpectedStep::Pass(bytes.len()), state);
    let stay = |told| (told, ExpectedState::Authentication);
    let long = &[0xff; 600][..];
    let full = encoded(4, b"\x01\x04");
    let obstacle = stay(ExpectedStep::Refuse("caching_sha2_password cannot send"));
    let mixed_ok = (
        ExpectedStep::Replace(ok.len(), encoded(3, OK)),
        ExpectedState::In,
    );
    let unread = (
        ExpectedStep::Refuse("A login that cannot be read"),
        ExpectedState::Pump,
    );
    for (what, given, input, expected) in [
        (
            "a part",
            AuthenticationCase::default(),
            &switch[..9],
            stay(ExpectedStep::Need),
        ),
        (
            "a plugin",
            AuthenticationCase::default(),
            &switch,
            pass(&switch, ExpectedState::Authentication),
        ),
        (
            "a secret",
            AuthenticationCase::default(),
            &full,
            pass(&full, ExpectedState::Authentication),
        ),
        (
            "an OK",
            AuthenticationCase::default(),
            &ok,
            pass(&ok, ExpectedState::In),
        ),
        (
            "an error",
            AuthenticationCase::default(),
            &error,
            pass(&error, ExpectedState::Pump),
        ),
        (
            "what is long",
            AuthenticationCase::default(),
            long,
            pass(long, ExpectedState::Pump),
        ),
        ("an OK", AuthenticationCase::mixed(), &ok, mixed_ok),
        ("a secret", AuthenticationCase::mixed(), &full, obstacle),
        (
            "an OK",
            AuthenticationCase::framed(),
            &ok,
            pass(&ok, ExpectedState::In),
        ),
        ("what is long", AuthenticationCase::framed(), long, unread),
        (
            "an OK",
            AuthenticationCase::guarded(),
            &ok,
            pass(&ok, ExpectedState::In),
        ),
    ] {
        server(what, given.state().server(input), expected);
    }
}

/// The replies could not be distinguished from those to later commands.
#[test]
fn nothing_is_read_after_a_command_sent_ahead() {
    let ok = encoded(2, OK);
    let command = encoded(0, b"\x0e");
    let (_, next) = AuthenticationCase::default().state().client(&command);
    let LoginTransition::LoggingIn(login) = next else {
        unreachable!("a login goes on")
    };
    let expected = (ExpectedStep::Pass(ok.len()), ExpectedState::Pump);
    server("an OK", login.server(&ok), expected);
}

#[test]
fn no_client_is_redirected_past_headwater() {
    let ok = b"\0\0\0\x02\x40\0\0\0\x1a\0\x18\x0credirect_url\x0amysql://a/";
    let with = encoded(2, ok);
    let expected = ExpectedStep::Replace(with.len(), encoded(2, OK));
    let mut state = AuthenticationCase::default().state();
    server(
        "a redirect",
        state.server(&with),
        (expected, ExpectedState::In),
    );
    state = AuthenticationCase::default().state();
    state.redirects = true;
    let expected = (ExpectedStep::Pass(with.len()), ExpectedState::In);
    server("where it may", state.server(&with), expected);
}
