//! What the tables of the three states are written in: a row is what waits, the step, and the state behind it.
#![allow(clippy::panic)]

use super::*;

/// A step, as a table says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Need,
    Hold,
    Pass(usize),
    Replace(usize, Vec<u8>),
    /// So many bytes of a request; the client's leg; what asks the server for it.
    Secure(usize, bool, Option<Vec<u8>>),
    /// The error holds this text.
    Refuse(&'static str),
}

/// A state, as a table says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Greeting,
    Response,
    Authentication,
    In,
    Pump,
}

impl Told {
    /// The same step; of an error the text alone is known, which stands in `expected`.
    fn of_error(error: &[u8], expected: &Told) -> Told {
        let text = String::from_utf8_lossy(error);
        match expected {
            Told::Refuse(part) if text.contains(part) => Told::Refuse(part),
            _ => panic!("{text} instead of {expected:?}"),
        }
    }

    fn of_client(step: ClientStep, expected: &Told) -> Told {
        match step {
            ClientStep::Need => Told::Need,
            ClientStep::Hold => Told::Hold,
            ClientStep::Pass(length) => Told::Pass(length.get()),
            ClientStep::Replace(length, bytes) => Told::Replace(length.get(), bytes),
            ClientStep::Secure {
                length,
                client,
                server,
            } => Told::Secure(length, client, server),
            ClientStep::Refuse(error) => Told::of_error(&error, expected),
            step => panic!("{step:?} within a login"),
        }
    }

    fn of_server(step: ServerStep, expected: &Told) -> Told {
        match step {
            ServerStep::Need => Told::Need,
            ServerStep::Pass(length) => Told::Pass(length.get()),
            ServerStep::Replace(length, bytes) => Told::Replace(length.get(), bytes),
            ServerStep::Refuse(error) => Told::of_error(&error, expected),
        }
    }
}

impl State {
    fn of(next: &Next) -> State {
        match next {
            Next::LoggingIn(LoggingIn::AwaitingGreeting(_)) => State::Greeting,
            Next::LoggingIn(LoggingIn::AwaitingResponse(_)) => State::Response,
            Next::LoggingIn(LoggingIn::Authenticating(_)) => State::Authentication,
            Next::In(..) => State::In,
            Next::Pump => State::Pump,
        }
    }
}

/// Compares a row of a client's table; returns the state behind it.
pub(super) fn client(what: &str, row: (ClientStep, Next), expected: (Told, State)) -> Next {
    let (step, next) = row;
    let told = Told::of_client(step, &expected.0);
    assert_eq!((told, State::of(&next)), expected, "{what}");
    next
}

/// Compares a row of a server's table; returns the state behind it.
pub(super) fn server(what: &str, row: (ServerStep, Next), expected: (Told, State)) -> Next {
    let (step, next) = row;
    let told = Told::of_server(step, &expected.0);
    assert_eq!((told, State::of(&next)), expected, "{what}");
    next
}
