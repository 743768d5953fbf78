//! One client's protocol state: bytes in, what is to be done with them out.
//!
//! A [`Machine`] does no IO. The driver shows it the bytes that wait on either side, and carries
//! out the step it gets back. It walks through three phases, each an enum variant that owns what
//! only that phase needs:
//!
//! ```text
//! LoggingIn --OK--> Commands
//!     \________________\--> Pump
//! ```
//!
//! **Pump** is where everything ends that cannot be followed: an old protocol, a binlog dump, a
//! malformed reply. Bytes still flow both ways; nothing is looked at any more. Where one leg has frames and the other
//! counts packets that would not do: a dump goes on as **Dump**, with its packets counted, and anything else is refused.
//!
//! In **Commands** a client may send further commands before the replies to earlier ones have come
//! (`in_flight`). A step that needs the connection for itself (an owned call, a tail, writing the
//! result table) is only given out once every reply in flight has ended.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::asked::Asked;
use super::commands::{Commands, Served};
use super::dump::Dump;
use super::frames::Frames;
use super::login::{Cut, LoggingIn, Next, Ways};
use super::peer::OwnUser;
use headwater_statement::{Class, Tail};
use headwater_wire::command::Command;
use headwater_wire::frame::{HEADER_BYTES, Header};

/// Limits that a machine keeps to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest statement (bytes of packet payload) that is looked at; longer ones are relayed unseen.
    pub statement_bytes: usize,
    /// Commands that a client may have in flight before its next ones are left waiting.
    pub in_flight: usize,
    /// Prepared statements of a session that are remembered, with an id or with a name.
    pub prepared_statements: usize,
}

/// What to do with the bytes that wait from the client.
///
/// Each step is given out once: the machine goes on as if it had been carried out, so whoever gets one carries it out before the
/// next is asked for. `Need` and `Hold` say that there is none yet, and leave the machine as it was.
#[derive(Debug)]
pub enum ClientStep {
    /// The bytes do not suffice to decide: wait for more.
    Need,
    /// Nothing goes on until replies in flight have ended.
    Hold,
    /// Relay so many bytes to the server.
    Pass(NonZeroUsize),
    /// Relay these bytes in place of the first so many.
    Replace(NonZeroUsize, Vec<u8>),
    /// Give the packet that waits the number of one that begins a command, 0, and ask again.
    Number,
    /// Begin TLS, and forget so many bytes.
    Secure {
        /// The client's request, if it has made one. What waits behind it belongs to TLS.
        length: usize,
        /// On the client's leg.
        client: bool,
        /// On the server's, where this packet asks for it.
        server: Option<Vec<u8>>,
    },
    /// Tell the client this, and end the session.
    Refuse(Vec<u8>),
    /// A whole packet with a call that may be owned.
    Call(Box<Asked>),
    /// A whole packet of so many bytes: a tail, and its result table is pending.
    Tail(usize, Arc<Tail>),
    /// The pending ids must be on the server before the next packet may go on.
    Settle {
        /// The command asks for what the real call leaves behind besides its tables (warnings, counts).
        diagnostics: bool,
    },
}

/// What to do with the bytes that wait from the server: given out once, as a [`ClientStep`] is.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerStep {
    /// The bytes do not suffice to decide: wait for more.
    Need,
    /// Relay so many bytes to the client.
    Pass(NonZeroUsize),
    /// Relay these bytes in place of the first so many.
    Replace(NonZeroUsize, Vec<u8>),
    /// Tell the client this, and end the session.
    Refuse(Vec<u8>),
}

impl ClientStep {
    /// Where nothing can go on yet, more is needed.
    pub(super) fn pass(length: usize) -> ClientStep {
        NonZeroUsize::new(length).map_or(ClientStep::Need, ClientStep::Pass)
    }

    /// As [`ClientStep::pass`].
    pub(super) fn replace(length: usize, own: Vec<u8>) -> ClientStep {
        NonZeroUsize::new(length).map_or(ClientStep::Need, |it| ClientStep::Replace(it, own))
    }
}

impl ServerStep {
    /// Where nothing can go on yet, more is needed.
    pub(super) fn pass(length: usize) -> ServerStep {
        NonZeroUsize::new(length).map_or(ServerStep::Need, ServerStep::Pass)
    }

    /// As [`ServerStep::pass`].
    pub(super) fn replace(length: usize, own: Vec<u8>) -> ServerStep {
        NonZeroUsize::new(length).map_or(ServerStep::Need, |it| ServerStep::Replace(it, own))
    }
}

/// The protocol state of one client connection and its one backend connection.
#[derive(Debug)]
pub struct Machine {
    limits: Limits,
    /// Begins behind the login, and is to be carried out.
    frames: Option<Frames>,
    /// The step behind the bytes that went straight on: it was asked for, and is to be given out.
    decided: Option<ClientStep>,
    phase: Phase,
    /// Whose accounts are not for this session's client: where nobody follows it, it is not heard.
    own_user: Option<OwnUser>,
}

#[derive(Debug)]
enum Phase {
    LoggingIn(LoggingIn),
    Commands(Box<Commands>),
    Pump,
    Dump(Box<Dump>),
}

/// Which server a session talks to, as its greeting said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// MariaDB, or else MySQL.
    pub mariadb: bool,
}

impl Machine {
    /// A connection that was just accepted: the server's greeting comes first.
    #[must_use]
    pub fn new(limits: Limits, ways: Ways) -> Self {
        Machine {
            limits,
            frames: None,
            decided: None,
            own_user: ways.own_user.clone(),
            phase: Phase::LoggingIn(LoggingIn::new(ways, limits)),
        }
    }

    /// The command phase, once the client has logged in.
    pub fn commands(&mut self) -> Option<&mut Commands> {
        match &mut self.phase {
            Phase::Commands(commands) => Some(commands),
            _ => None,
        }
    }

    /// How far the login has come, where it has not ended.
    #[must_use]
    pub fn login_cut(&self) -> Option<Cut> {
        match &self.phase {
            Phase::LoggingIn(login) => Some(login.cut()),
            Phase::Commands(_) | Phase::Pump | Phase::Dump(_) => None,
        }
    }

    /// Once, at the end of a login: what each side speaks in from here on, if not in packets alone as before.
    pub fn take_frames(&mut self) -> Option<Frames> {
        self.frames.take()
    }

    /// True between commands, outside transactions: the connection may be closed without loss.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        match &self.phase {
            Phase::Commands(commands) => commands.is_at_rest(),
            Phase::LoggingIn(login) => login.is_at_rest(),
            // Nobody can tell.
            Phase::Pump | Phase::Dump(_) => true,
        }
    }

    /// How many of these bytes, the first that wait from the client, go to the server as they are. So whole commands need not be
    /// kept; what else is to be done is what [`Machine::client`] says next of the bytes behind them.
    pub fn straight(&mut self, input: &[u8], classify: &mut dyn FnMut(&[u8]) -> Class) -> usize {
        let mut passed = 0;
        while let Some(rest) = input.get(passed..).filter(|rest| !rest.is_empty()) {
            match self.client(rest, classify) {
                ClientStep::Pass(length) => passed += length.get(),
                ClientStep::Need | ClientStep::Hold => break,
                step => {
                    self.decided = Some(step);
                    break;
                }
            }
        }
        passed
    }

    /// Decides about the bytes waiting from the client; `classify` is asked for a statement's class.
    pub fn client(&mut self, input: &[u8], classify: &mut dyn FnMut(&[u8]) -> Class) -> ClientStep {
        if input.is_empty() {
            return ClientStep::Need;
        }
        if let Some(step) = self.decided.take() {
            return step;
        }
        if let Phase::Commands(commands) = &mut self.phase {
            return commands.client(input, self.limits, classify);
        }
        if let Some(login) = self.take_login() {
            let (step, next) = login.client(input);
            self.enter(next);
            return step;
        }
        match &self.own_user {
            Some(own_user) => unfollowed(input, own_user),
            None => ClientStep::pass(input.len()),
        }
    }

    /// Decides about the bytes waiting from the server.
    pub fn server(&mut self, input: &[u8]) -> ServerStep {
        if input.is_empty() {
            return ServerStep::Need;
        }
        match &mut self.phase {
            Phase::Commands(commands) => match commands.server(input) {
                Served::Pass(passed) => ServerStep::pass(passed),
                Served::Replace(length, own) => ServerStep::replace(length, own),
                Served::Refuse(error) => ServerStep::Refuse(error),
                Served::Unfollowable => {
                    self.phase = Phase::Pump;
                    ServerStep::pass(input.len())
                }
                Served::Dump(mut dump) => {
                    let own = dump.renumbered(input);
                    self.phase = Phase::Dump(dump);
                    ServerStep::replace(input.len(), own)
                }
            },
            Phase::Dump(dump) => ServerStep::replace(input.len(), dump.renumbered(input)),
            Phase::LoggingIn(_) | Phase::Pump => match self.take_login() {
                Some(login) => {
                    let (step, next) = login.server(input);
                    self.enter(next);
                    step
                }
                None => ServerStep::pass(input.len()),
            },
        }
    }

    /// The login, whose step consumes it: what it becomes is to be entered.
    fn take_login(&mut self) -> Option<LoggingIn> {
        match std::mem::replace(&mut self.phase, Phase::Pump) {
            Phase::LoggingIn(login) => Some(login),
            phase => {
                self.phase = phase;
                None
            }
        }
    }

    fn enter(&mut self, next: Next) {
        self.phase = match next {
            Next::LoggingIn(login) => Phase::LoggingIn(login),
            Next::In(commands, frames) => {
                // What waits is read anew, in frames or as commands.
                self.decided = None;
                self.frames = (frames != Frames::NONE).then_some(frames);
                Phase::Commands(commands)
            }
            Next::Pump => Phase::Pump,
        };
    }
}

/// Where nobody follows a client that must not be anybody: what a replica says of the log that it is sent (semi-synchronous
/// replication, packets that begin with 0xef), and good bye.
fn unfollowed(input: &[u8], own_user: &OwnUser) -> ClientStep {
    const ACKNOWLEDGEMENT: u8 = 0xef;
    let Some(header) = Header::parse(input) else {
        return ClientStep::Need;
    };
    let first = input.get(HEADER_BYTES).copied();
    let harmless = [ACKNOWLEDGEMENT, Command::Quit.byte()];
    match first {
        None if header.len > 0 => ClientStep::Need,
        Some(first) if harmless.contains(&first) && header.len < ACKNOWLEDGEMENT_BYTES => {
            let length = HEADER_BYTES + header.len;
            match input.len() < length {
                true => ClientStep::Need,
                false => ClientStep::pass(length),
            }
        }
        _ => ClientStep::Refuse(own_user.refusal(1)),
    }
}

/// A place in a log: its file's name is in there.
const ACKNOWLEDGEMENT_BYTES: usize = 4 * 1024;

#[cfg(test)]
pub(super) mod tests;
