//! A session up to the server's OK: greeting, TLS on either leg, login, and the plugins' dialogue.
//!
//! The protocol calls it the connection phase. It has three states, each in its own file:
//!
//! ```text
//! AwaitingGreeting --greeting--> AwaitingResponse --login--> Authenticating --OK--> in
//! ```
//!
//! A state takes the bytes that wait on one side, and is consumed: it returns a step and the next state. The dialogue is the client's and
//! the server's; Headwater changes only this: the greeting's flags, the login's SSL flag and packet numbers where only one leg has TLS,
//! the login's compression flags where the legs differ, and a `redirect_url`, which would lead the client past Headwater.

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

/// What a session's two legs may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPolicy {
    /// Which sides have TLS.
    pub tls: TlsPolicy,
    /// A `redirect_url` is relayed to the client.
    pub redirects: bool,
    /// Which sides have compressed frames.
    pub compression: CompressionPolicy,
    /// The operating system's user whose accounts are closed to this session's client.
    pub process_user: Option<ProcessUser>,
}

/// The progress of a login that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginProgress {
    /// The server's greeting has not come.
    BeforeGreeting,
    /// The client has not sent its login.
    BeforeLogin,
    /// The client has sent its login; its plugin's dialogue has not ended.
    InDialogue,
}

#[derive(Debug)]
pub(super) enum LoginState {
    /// The server sends first.
    AwaitingGreeting(Box<GreetingState>),
    /// The client sends its login, and may request TLS before.
    AwaitingResponse(Box<ResponseState>),
    /// Client and server authenticate.
    Authenticating(Box<AuthenticationState>),
}

/// A session after a step of its login.
#[derive(Debug)]
pub(super) enum LoginTransition {
    LoggingIn(LoginState),
    LoggedIn(Box<CommandPhase>, CompressionFrames),
    /// Its bytes are relayed unread from here.
    Pump,
}

impl LoginState {
    pub(super) fn new(policy: SessionPolicy, limits: SessionLimits) -> LoginState {
        LoginState::AwaitingGreeting(Box::new(GreetingState { policy, limits }))
    }

    pub(super) fn thread_id(&self) -> Option<u32> {
        match self {
            LoginState::AwaitingResponse(state) => Some(state.thread_id()),
            LoginState::AwaitingGreeting(_) | LoginState::Authenticating(_) => None,
        }
    }

    pub(super) fn progress(&self) -> LoginProgress {
        match self {
            LoginState::AwaitingGreeting(_) => LoginProgress::BeforeGreeting,
            LoginState::AwaitingResponse(_) => LoginProgress::BeforeLogin,
            LoginState::Authenticating(_) => LoginProgress::InDialogue,
        }
    }

    /// True while the server has received nothing.
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
