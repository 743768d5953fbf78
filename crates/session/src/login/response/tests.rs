//! What a client may answer to the greeting, with each kind of TLS and compression.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use super::super::LoginState;
use super::super::tests::{ExpectedState, ExpectedStep, client, server};
use super::*;
use crate::compression_frames::{ClientCompression, ServerCompression};
use crate::machine::tests::{LIMITS, LOGIN_FLAGS, WAYS, encoded, greeting, login};
use crate::process_user::ProcessUser;
use crate::tls_policy::{ServerLegTls, TlsPolicy};

const SSL: u32 = 1 << 11;
const ZLIB: u32 = 1 << 5;

const OFFERED: TlsPolicy = TlsPolicy {
    offered: true,
    ..TlsPolicy::PLAIN
};

fn with_legs(legs: TlsPolicy) -> SessionPolicy {
    SessionPolicy { tls: legs, ..WAYS }
}

/// After a greeting that shows all that the server can do.
fn awaiting(ways: SessionPolicy) -> Box<ResponseState> {
    let greeting = ServerGreeting::parse(&greeting()).unwrap();
    let shown = greeting.capabilities;
    Box::new(ResponseState::new(ways, LIMITS, greeting, shown))
}

/// The request for TLS that stands before a login with these flags.
fn request(flags: u32, seq: u8) -> Vec<u8> {
    encoded(seq, &login(flags | SSL)[..32])
}

fn refused(why: &'static str) -> (ExpectedStep, ExpectedState) {
    (ExpectedStep::Refuse(why), ExpectedState::Response)
}

fn pumped(bytes: &[u8]) -> (ExpectedStep, ExpectedState) {
    (ExpectedStep::Pass(bytes.len()), ExpectedState::Pump)
}

/// Compares the steps for the client's packets with the expected ones.
fn play(what: &str, ways: SessionPolicy, turns: &[(Vec<u8>, (ExpectedStep, ExpectedState))]) {
    let mut state = LoginTransition::from(awaiting(ways));
    for (input, expected) in turns {
        let LoginTransition::LoggingIn(LoginState::AwaitingResponse(awaiting)) = state else {
            panic!("{what}: nothing is awaited any more");
        };
        state = client(what, awaiting.client(input), expected.clone());
    }
}

#[test]
fn a_login_is_relayed_unchanged_and_other_packets_unread() {
    let whole = encoded(1, &login(LOGIN_FLAGS));
    let ahead = [&whole[..], b"\x05\0\0\0\x03DO 1"].concat();
    let old = encoded(1, b"\x05\0\0\0\0root\0\0");
    let cut = encoded(1, &login(LOGIN_FLAGS)[..20]);
    let enciphered = encoded(1, &login(LOGIN_FLAGS | SSL));
    let need = (ExpectedStep::Need, ExpectedState::Response);
    let on = (
        ExpectedStep::Pass(whole.len()),
        ExpectedState::Authentication,
    );
    for (what, input, expected) in [
        ("a part of a header", &whole[..2], need.clone()),
        ("a part of a login", &whole[..whole.len() - 1], need),
        ("a login", &whole, on.clone()),
        ("a login and more", &ahead, on),
        ("a login before 4.1", &old, pumped(&old)),
        ("a login cut short", &cut, pumped(&cut)),
        (
            "TLS unasked",
            &request(LOGIN_FLAGS, 1),
            pumped(&request(LOGIN_FLAGS, 1)),
        ),
        ("a login of TLS in clear", &enciphered, pumped(&enciphered)),
        ("no packet", &[0xff; 600], pumped(&[0xff; 600])),
    ] {
        client(what, awaiting(WAYS).client(input), expected);
    }
    let row = awaiting(WAYS).server(b"unasked");
    server(
        "a server",
        row,
        (ExpectedStep::Pass(7), ExpectedState::Response),
    );
}

#[test]
fn tls_begins_where_the_settings_have_it() {
    let tls = LOGIN_FLAGS | SSL;
    let asks = request(LOGIN_FLAGS, 1);
    let secure = |length, on_client, server| {
        (
            ExpectedStep::Secure(length, on_client, server),
            ExpectedState::Response,
        )
    };
    let on = |length, bytes| {
        (
            ExpectedStep::Replace(length, bytes),
            ExpectedState::Authentication,
        )
    };

    let behind = encoded(2, &login(tls));
    let same = (
        ExpectedStep::Pass(behind.len()),
        ExpectedState::Authentication,
    );
    let mirror = [
        (asks.clone(), secure(36, true, Some(asks.clone()))),
        (behind.clone(), same),
    ];
    play("on both legs", with_legs(OFFERED), &mirror);

    let never = TlsPolicy {
        server: ServerLegTls::Never,
        ..OFFERED
    };
    let plain = encoded(1, &login(LOGIN_FLAGS));
    let client_alone = [
        (asks.clone(), secure(36, true, None)),
        (behind.clone(), on(behind.len(), plain.clone())),
    ];
    play("on the client's", with_legs(never), &client_alone);

    let always = TlsPolicy {
        server: ServerLegTls::Always,
        ..TlsPolicy::PLAIN
    };
    let server_alone = [
        (plain.clone(), secure(0, false, Some(asks.clone()))),
        (plain.clone(), on(plain.len(), behind)),
    ];
    play("on the server's", with_legs(always), &server_alone);

    let twice = [
        (asks.clone(), secure(36, true, Some(asks.clone()))),
        (request(LOGIN_FLAGS, 2), pumped(&asks)),
    ];
    play("asked for twice", with_legs(OFFERED), &twice);

    let passthrough = TlsPolicy {
        passthrough: true,
        ..OFFERED
    };
    let left_alone = [(asks.clone(), pumped(&asks))];
    play("left to both sides", with_legs(passthrough), &left_alone);
}

#[test]
fn who_evades_what_is_set_is_refused() {
    let required = with_legs(TlsPolicy {
        client_required: true,
        ..OFFERED
    });
    let to_server = with_legs(TlsPolicy {
        server: ServerLegTls::Always,
        ..TlsPolicy::PLAIN
    });
    let guarded = SessionPolicy {
        process_user: Some(ProcessUser::named("root")),
        ..WAYS
    };
    let framed = SessionPolicy {
        compression: CompressionPolicy {
            clients: ClientCompression::Offer,
            server: ServerCompression::Never,
        },
        ..WAYS
    };
    let plain = encoded(1, &login(LOGIN_FLAGS));
    let old = encoded(1, b"\x05\0\0\0\0root\0\0");
    let old_in_frames = encoded(1, b"\x25\0\0\0\0root\0\0");
    for (what, ways, input, why) in [
        ("a login in clear", &required, &plain, "tls.required"),
        ("an old login in clear", &required, &old, "tls.required"),
        (
            "an old login",
            &to_server,
            &old,
            "no login that could go there",
        ),
        ("the own user", &guarded, &plain, "Access denied"),
        ("an unread user", &guarded, &old, "Access denied"),
        (
            "unread frames",
            &framed,
            &old_in_frames,
            "compression.server",
        ),
    ] {
        client(what, awaiting(ways.clone()).client(input), refused(why));
    }
}

#[test]
fn the_servers_leg_requests_its_own_compression() {
    let asks = encoded(1, &login(LOGIN_FLAGS | ZLIB));
    let plain = encoded(1, &login(LOGIN_FLAGS));
    let never = ServerCompression::Never;
    let offered = ServerCompression::WhereOffered;
    for (server, said, heard) in [
        (never, &asks, Some(&plain)),
        (never, &plain, None),
        (offered, &plain, Some(&asks)),
        (offered, &asks, None),
    ] {
        let compression = CompressionPolicy {
            clients: ClientCompression::Mirror,
            server,
        };
        let ways = SessionPolicy {
            compression,
            ..WAYS
        };
        let told = match heard {
            Some(heard) => ExpectedStep::Replace(said.len(), heard.clone()),
            None => ExpectedStep::Pass(said.len()),
        };
        let row = awaiting(ways).client(said);
        client(
            &format!("{server:?}"),
            row,
            (told, ExpectedState::Authentication),
        );
    }
}
