//! The tables of the three states: a row has the waiting bytes, the step, and the state after it.
#![allow(clippy::panic)]

use super::*;

/// A step, as a table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExpectedStep {
    Need,
    Hold,
    Pass(usize),
    Replace(usize, Vec<u8>),
    /// The length of a request; the client's leg; the packet that requests TLS of the server.
    Secure(usize, bool, Option<Vec<u8>>),
    /// The error holds this text.
    Refuse(&'static str),
}

/// A state, as a table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedState {
    Greeting,
    Response,
    Authentication,
    In,
    Pump,
}

impl ExpectedStep {
    /// The same step; of an error the text alone is known, which stands in `expected`.
    fn of_error(error: &[u8], expected: &ExpectedStep) -> ExpectedStep {
        let text = String::from_utf8_lossy(error);
        match expected {
            ExpectedStep::Refuse(part) if text.contains(part) => ExpectedStep::Refuse(part),
            _ => panic!("{text} instead of {expected:?}"),
        }
    }

    fn of_client(step: ClientStep, expected: &ExpectedStep) -> ExpectedStep {
        match step {
            ClientStep::Need => ExpectedStep::Need,
            ClientStep::Hold => ExpectedStep::Hold,
            ClientStep::Pass(length) => ExpectedStep::Pass(length.get()),
            ClientStep::Replace(length, bytes) => ExpectedStep::Replace(length.get(), bytes),
            ClientStep::BeginTls {
                length,
                client,
                server,
            } => ExpectedStep::Secure(length, client, server),
            ClientStep::Refuse(error) => ExpectedStep::of_error(&error, expected),
            step => panic!("{step:?} within a login"),
        }
    }

    fn of_server(step: ServerStep, expected: &ExpectedStep) -> ExpectedStep {
        match step {
            ServerStep::Need => ExpectedStep::Need,
            ServerStep::Pass(length) => ExpectedStep::Pass(length.get()),
            ServerStep::Replace(length, bytes) => ExpectedStep::Replace(length.get(), bytes),
            ServerStep::Refuse(error) => ExpectedStep::of_error(&error, expected),
        }
    }
}

impl ExpectedState {
    fn of(next: &LoginTransition) -> ExpectedState {
        match next {
            LoginTransition::LoggingIn(LoginState::AwaitingGreeting(_)) => ExpectedState::Greeting,
            LoginTransition::LoggingIn(LoginState::AwaitingResponse(_)) => ExpectedState::Response,
            LoginTransition::LoggingIn(LoginState::Authenticating(_)) => {
                ExpectedState::Authentication
            }
            LoginTransition::LoggedIn(..) => ExpectedState::In,
            LoginTransition::Pump => ExpectedState::Pump,
        }
    }
}

/// Compares a row of a client's table; returns the state after it.
pub(super) fn client(
    what: &str,
    row: (ClientStep, LoginTransition),
    expected: (ExpectedStep, ExpectedState),
) -> LoginTransition {
    let (step, next) = row;
    let told = ExpectedStep::of_client(step, &expected.0);
    assert_eq!((told, ExpectedState::of(&next)), expected, "{what}");
    next
}

/// Compares a row of a server's table; returns the state after it.
pub(super) fn server(
    what: &str,
    row: (ServerStep, LoginTransition),
    expected: (ExpectedStep, ExpectedState),
) -> LoginTransition {
    let (step, next) = row;
    let told = ExpectedStep::of_server(step, &expected.0);
    assert_eq!((told, ExpectedState::of(&next)), expected, "{what}");
    next
}
