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

use super::commands::Commands;
use super::frames::{Compression, Frames};
use super::legs::Legs;
use super::peer::OwnUser;
use super::step::{ClientStep, Limits, ServerStep};

use authentication::Authenticating;
use greeting::AwaitingGreeting;
use response::AwaitingResponse;

/// How a session may go between its two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Which sides have TLS.
    pub legs: Legs,
    /// A `redirect_url` goes on to the client.
    pub redirects: bool,
    /// Which sides have compressed frames.
    pub compression: Compression,
    /// Whose accounts are not for this session's client.
    pub own_user: Option<OwnUser>,
}

/// How far a login has come that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server's greeting has not come.
    BeforeGreeting,
    /// The client has not said who it is.
    BeforeLogin,
    /// It has, and its plugin's dialogue has not ended.
    InDialogue,
}

/// A session that logs in.
#[derive(Debug)]
pub(super) enum LoggingIn {
    /// The server speaks first.
    AwaitingGreeting(Box<AwaitingGreeting>),
    /// The client is to say who it is, and may ask for TLS before.
    AwaitingResponse(Box<AwaitingResponse>),
    /// Client and server agree on whether it is.
    Authenticating(Box<Authenticating>),
}

/// What a session is behind a step of its login.
#[derive(Debug)]
pub(super) enum Next {
    /// It still logs in.
    LoggingIn(LoggingIn),
    /// It is in.
    In(Box<Commands>, Frames),
    /// Its bytes are passed on unread from here.
    Pump,
}

impl LoggingIn {
    pub(super) fn new(ways: Ways, limits: Limits) -> LoggingIn {
        LoggingIn::AwaitingGreeting(Box::new(AwaitingGreeting { ways, limits }))
    }

    /// The number of this session at the server, once it has greeted.
    pub(super) fn thread_id(&self) -> Option<u32> {
        match self {
            LoggingIn::AwaitingResponse(state) => Some(state.thread_id()),
            LoggingIn::AwaitingGreeting(_) | LoggingIn::Authenticating(_) => None,
        }
    }

    /// How far it has come.
    pub(super) fn cut(&self) -> Cut {
        match self {
            LoggingIn::AwaitingGreeting(_) => Cut::BeforeGreeting,
            LoggingIn::AwaitingResponse(_) => Cut::BeforeLogin,
            LoggingIn::Authenticating(_) => Cut::InDialogue,
        }
    }

    /// True while nothing has been asked of the server.
    pub(super) fn is_at_rest(&self) -> bool {
        !matches!(self, LoggingIn::Authenticating(_))
    }

    /// Decides about the bytes waiting from the client.
    pub(super) fn client(self, input: &[u8]) -> (ClientStep, Next) {
        match self {
            LoggingIn::AwaitingGreeting(state) => state.client(),
            LoggingIn::AwaitingResponse(state) => state.client(input),
            LoggingIn::Authenticating(state) => state.client(input),
        }
    }

    /// Decides about the bytes waiting from the server.
    pub(super) fn server(self, input: &[u8]) -> (ServerStep, Next) {
        match self {
            LoggingIn::AwaitingGreeting(state) => state.server(input),
            LoggingIn::AwaitingResponse(state) => state.server(input),
            LoggingIn::Authenticating(state) => state.server(input),
        }
    }
}

impl From<Box<AwaitingGreeting>> for Next {
    fn from(state: Box<AwaitingGreeting>) -> Next {
        Next::LoggingIn(LoggingIn::AwaitingGreeting(state))
    }
}

impl From<Box<AwaitingResponse>> for Next {
    fn from(state: Box<AwaitingResponse>) -> Next {
        Next::LoggingIn(LoggingIn::AwaitingResponse(state))
    }
}

impl From<Box<Authenticating>> for Next {
    fn from(state: Box<Authenticating>) -> Next {
        Next::LoggingIn(LoggingIn::Authenticating(state))
    }
}
