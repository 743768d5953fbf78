//! What either side may say until the client is in, or is not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::super::tests::{State, Told, client, server};
use super::*;
use crate::legs::{Legs, ServerLeg};
use crate::machine::tests::{LIMITS, OK, WAYS, encoded};
use headwater_wire::compression::Algorithm;

const SWITCH: &[u8] = b"\xfemysql_native_password\0scramblescramblescra\0";
const ERR: &[u8] = b"\xff\x15\x04#28000Access denied";

/// What a row begins with.
#[derive(Default)]
struct Given {
    own_user: Option<OwnUser>,
    /// The client's leg alone has TLS.
    mixed: bool,
    /// The server's leg alone has frames.
    framed: bool,
}

impl Given {
    fn guarded() -> Given {
        Given {
            own_user: Some(OwnUser::named("hw")),
            ..Given::default()
        }
    }

    fn mixed() -> Given {
        Given {
            mixed: true,
            ..Given::default()
        }
    }

    fn framed() -> Given {
        Given {
            framed: true,
            ..Given::default()
        }
    }

    fn state(self) -> Box<Authenticating> {
        let legs = Legs {
            offered: true,
            server: ServerLeg::Never,
            ..Legs::PLAIN
        };
        let account = Account {
            server: Server { mariadb: false },
            capabilities: Capabilities::PROTOCOL_41.union(Capabilities::SESSION_TRACK),
            user: b"root".to_vec(),
            database: Some(b"tl".to_vec()),
            frames: Frames {
                client: None,
                server: self.framed.then_some(Algorithm::Zlib),
            },
        };
        let ways = Ways {
            own_user: self.own_user,
            ..WAYS
        };
        let agreed = legs.agree(self.mixed, true).unwrap();
        Box::new(Authenticating::new(ways, LIMITS, account, agreed))
    }
}

#[test]
fn the_client_answers_and_commands_wait_where_both_legs_are_not_alike() {
    let answer = encoded(3, &[7; 20]);
    let answers = [&answer[..], &answer].concat();
    let command = encoded(0, b"\x0e");
    let stay = |told| (told, State::Authentication);
    let pass = |bytes: &[u8]| stay(Told::Pass(bytes.len()));
    let replaced = |seq| stay(Told::Replace(24, encoded(seq, &[7; 20])));
    let refused = stay(Told::Refuse("A login that cannot be read"));
    let long = &[0xff; 600][..];
    for (what, given, input, expected) in [
        ("a part", Given::default(), &answer[..7], pass(&answer[..7])),
        ("answers", Given::default(), &answers, pass(&answers)),
        ("a command", Given::default(), &command, pass(&command)),
        ("a part", Given::mixed(), &answer[..7], stay(Told::Need)),
        ("answers", Given::mixed(), &answers, replaced(2)),
        (
            "what is long",
            Given::mixed(),
            long,
            (Told::Pass(600), State::Pump),
        ),
        ("a part", Given::framed(), &answer[..7], stay(Told::Need)),
        ("answers", Given::framed(), &answers, replaced(3)),
        ("a command", Given::framed(), &command, stay(Told::Hold)),
        ("what is long", Given::framed(), long, refused.clone()),
        ("answers", Given::guarded(), &answers, replaced(3)),
        ("a command", Given::guarded(), &command, stay(Told::Hold)),
        ("what is long", Given::guarded(), long, refused),
    ] {
        client(what, given.state().client(input), expected);
    }
}

#[test]
fn the_server_asks_and_ends_the_dialogue() {
    let (switch, ok, error) = (encoded(2, SWITCH), encoded(2, OK), encoded(2, ERR));
    let pass = |bytes: &[u8], state| (Told::Pass(bytes.len()), state);
    let stay = |told| (told, State::Authentication);
    let long = &[0xff; 600][..];
    let full = encoded(4, b"\x01\x04");
    let obstacle = stay(Told::Refuse("caching_sha2_password cannot send"));
    let mixed_ok = (Told::Replace(ok.len(), encoded(3, OK)), State::In);
    let unread = (Told::Refuse("A login that cannot be read"), State::Pump);
    for (what, given, input, expected) in [
        ("a part", Given::default(), &switch[..9], stay(Told::Need)),
        (
            "a plugin",
            Given::default(),
            &switch,
            pass(&switch, State::Authentication),
        ),
        (
            "a secret",
            Given::default(),
            &full,
            pass(&full, State::Authentication),
        ),
        ("an OK", Given::default(), &ok, pass(&ok, State::In)),
        (
            "an error",
            Given::default(),
            &error,
            pass(&error, State::Pump),
        ),
        (
            "what is long",
            Given::default(),
            long,
            pass(long, State::Pump),
        ),
        ("an OK", Given::mixed(), &ok, mixed_ok),
        ("a secret", Given::mixed(), &full, obstacle),
        ("an OK", Given::framed(), &ok, pass(&ok, State::In)),
        ("what is long", Given::framed(), long, unread),
        ("an OK", Given::guarded(), &ok, pass(&ok, State::In)),
    ] {
        server(what, given.state().server(input), expected);
    }
}

/// The replies could not be told apart from those to later commands.
#[test]
fn behind_a_command_that_went_ahead_nothing_is_read() {
    let ok = encoded(2, OK);
    let command = encoded(0, b"\x0e");
    let (_, next) = Given::default().state().client(&command);
    let Next::LoggingIn(login) = next else {
        unreachable!("a login goes on")
    };
    let expected = (Told::Pass(ok.len()), State::Pump);
    server("an OK", login.server(&ok), expected);
}

#[test]
fn nobody_is_led_past_us() {
    let ok = b"\0\0\0\x02\x40\0\0\0\x1a\0\x18\x0credirect_url\x0amysql://a/";
    let with = encoded(2, ok);
    let expected = Told::Replace(with.len(), encoded(2, OK));
    let mut state = Given::default().state();
    server("a redirect", state.server(&with), (expected, State::In));
    state = Given::default().state();
    state.redirects = true;
    let expected = (Told::Pass(with.len()), State::In);
    server("where it may", state.server(&with), expected);
}
