//! A session up to the server's OK: greeting, TLS on either leg, login, and the plugins' dialogue.
//!
//! The protocol calls it the connection phase. It is one of three states, each in its own file:
//!
//! ```text
//! AwaitingGreeting --greeting--> AwaitingResponse --login--> Authenticating --OK--> in
//! ```
//!
//! A state is handed the bytes that wait on one side, and is consumed by them: it says what is to be done with them, and what it
//! becomes. The dialogue is the client's and the server's; what changes on the way is named here: the greeting's flags, the
//! login's SSL flag and the numbers of packets where only one leg has TLS, the login's ways to compress where the legs are set
//! apart, and a `redirect_url`, which would lead the client past us.

mod authentication;
mod greeting;
mod packet;
mod response;
#[cfg(test)]
mod tests;

use super::commands::CommandPhase;
use super::compression_frames::{CompressionFrames, CompressionPolicy};
use super::machine_step::{ClientStep, ServerStep, SessionLimits};
use super::process_user::ProcessUser;
use super::tls_policy::TlsPolicy;

use authentication::AuthenticationState;
use greeting::GreetingState;
use response::ResponseState;

/// How a session may go between its two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPolicy {
    /// Which sides have TLS.
    pub tls: TlsPolicy,
    /// A `redirect_url` goes on to the client.
    pub redirects: bool,
    /// Which sides have compressed frames.
    pub compression: CompressionPolicy,
    /// Whose accounts are not for this session's client.
    pub process_user: Option<ProcessUser>,
}

/// How far a login has come that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginProgress {
    /// The server's greeting has not come.
    BeforeGreeting,
    /// The client has not said who it is.
    BeforeLogin,
    /// It has, and its plugin's dialogue has not ended.
    InDialogue,
}

/// A session that logs in.
#[derive(Debug)]
pub(super) enum LoginState {
    /// The server speaks first.
    AwaitingGreeting(Box<GreetingState>),
    /// The client is to say who it is, and may ask for TLS before.
    AwaitingResponse(Box<ResponseState>),
    /// Client and server agree on whether it is.
    Authenticating(Box<AuthenticationState>),
}

/// What a session is behind a step of its login.
#[derive(Debug)]
pub(super) enum LoginTransition {
    /// It still logs in.
    LoggingIn(LoginState),
    /// It is in.
    LoggedIn(Box<CommandPhase>, CompressionFrames),
    /// Its bytes are passed on unread from here.
    Pump,
}

impl LoginState {
    pub(super) fn new(ways: SessionPolicy, limits: SessionLimits) -> LoginState {
        LoginState::AwaitingGreeting(Box::new(GreetingState {
            policy: ways,
            limits,
        }))
    }

    /// The number of this session at the server, once it has greeted.
    pub(super) fn thread_id(&self) -> Option<u32> {
        match self {
            LoginState::AwaitingResponse(state) => Some(state.thread_id()),
            LoginState::AwaitingGreeting(_) | LoginState::Authenticating(_) => None,
        }
    }

    /// How far it has come.
    pub(super) fn progress(&self) -> LoginProgress {
        match self {
            LoginState::AwaitingGreeting(_) => LoginProgress::BeforeGreeting,
            LoginState::AwaitingResponse(_) => LoginProgress::BeforeLogin,
            LoginState::Authenticating(_) => LoginProgress::InDialogue,
        }
    }

    /// True while nothing has been asked of the server.
    pub(super) fn is_at_rest(&self) -> bool {
        !matches!(self, LoginState::Authenticating(_))
    }

    /// Decides about the bytes waiting from the client.
    pub(super) fn client(self, input: &[u8]) -> (ClientStep, LoginTransition) {
        match self {
            LoginState::AwaitingGreeting(state) => state.client(),
            LoginState::AwaitingResponse(state) => state.client(input),
            LoginState::Authenticating(state) => state.client(input),
        }
    }

    /// Decides about the bytes waiting from the server.
    pub(super) fn server(self, input: &[u8]) -> (ServerStep, LoginTransition) {
        match self {
            LoginState::AwaitingGreeting(state) => state.server(input),
            LoginState::AwaitingResponse(state) => state.server(input),
            LoginState::Authenticating(state) => state.server(input),
        }
    }
}

impl From<Box<GreetingState>> for LoginTransition {
    fn from(state: Box<GreetingState>) -> LoginTransition {
        LoginTransition::LoggingIn(LoginState::AwaitingGreeting(state))
    }
}

impl From<Box<ResponseState>> for LoginTransition {
    fn from(state: Box<ResponseState>) -> LoginTransition {
        LoginTransition::LoggingIn(LoginState::AwaitingResponse(state))
    }
}

impl From<Box<AuthenticationState>> for LoginTransition {
    fn from(state: Box<AuthenticationState>) -> LoginTransition {
        LoginTransition::LoggingIn(LoginState::Authenticating(state))
    }
}
