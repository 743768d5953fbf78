//! One client's protocol state: bytes in, what is to be done with them out.
//!
//! A [`Machine`] does no IO. The driver shows it the bytes that wait on either side, and carries
//! out the step it gets back. It walks through four phases, each an enum variant that owns what
//! only that phase needs:
//!
//! ```text
//! Greeting --greeting--> Login --login packet--> Authenticating --OK--> Commands
//!     \________________________\_______________________\___________________\--> Pump
//! ```
//!
//! **Pump** is where everything ends that cannot be followed: an old protocol, a binlog dump, a
//! malformed reply. Bytes still flow both ways; nothing is looked at any more.
//!
//! In **Commands** a client may send further commands before the replies to earlier ones have come
//! (`in_flight`). A step that needs the connection for itself (an owned call, a tail, writing the
//! result table) is only given out once every reply in flight has ended.

use std::sync::Arc;

use super::commands::Commands;
use super::standing::Standing;
use crate::statement::{Call, Class, Tail};
use crate::wire::capability::Capabilities;
use crate::wire::frame::{self, HEADER_BYTES, Header, Splitter};
use crate::wire::handshake::{Greeting, Login, mask_greeting};
use crate::wire::reply::{AuthEvent, AuthLoop, Outcome};

/// The largest greeting or login packet that is looked at; real ones have some hundred bytes.
const LOGIN_PACKET_BYTES: usize = 64 * 1024;

/// Limits that a machine keeps to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest statement (bytes of packet payload) that is looked at; longer ones are relayed unseen.
    pub statement_bytes: usize,
    /// Commands that a client may have in flight before its next ones are left waiting.
    pub in_flight: usize,
}

/// What to do with the bytes that wait from the client.
#[derive(Debug)]
pub enum ClientStep {
    /// The bytes do not suffice to decide: wait for more.
    Need,
    /// Nothing goes on until replies in flight have ended.
    Hold,
    /// Relay so many bytes to the server.
    Pass(usize),
    /// A whole packet of so many bytes: a call that may be owned.
    Call(usize, Call),
    /// A whole packet of so many bytes: a tail, and its result table is pending.
    Tail(usize, Arc<Tail>),
    /// The pending ids must be on the server before the next packet may go on.
    Settle {
        /// The command asks for what the real call leaves behind besides its tables (warnings, counts).
        diagnostics: bool,
    },
}

/// What to do with the bytes that wait from the server.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerStep {
    /// The bytes do not suffice to decide: wait for more.
    Need,
    /// Relay so many bytes to the client.
    Pass(usize),
    /// Relay these bytes in place of the first so many.
    Replace(usize, Vec<u8>),
}

/// The protocol state of one client connection and its one backend connection.
#[derive(Debug)]
pub struct Machine {
    limits: Limits,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Greeting,
    Login {
        greeting: Box<Greeting>,
    },
    Authenticating {
        login: Box<LoggingIn>,
        auth: AuthLoop,
        answers: Answers,
    },
    Commands(Box<Commands>),
    Pump,
}

#[derive(Debug)]
struct LoggingIn {
    server: Server,
    capabilities: Capabilities,
    database: Option<Vec<u8>>,
}

/// The client's side of the dialogue behind its login.
#[derive(Debug, Default)]
struct Answers {
    splitter: Splitter,
    /// One of the packets was no answer: only commands have sequence number 0 there.
    hold_a_command: bool,
}

impl Answers {
    fn see(&mut self, input: &[u8]) {
        let mut seen = 0;
        while let Some(rest) = input.get(seen..).filter(|rest| !rest.is_empty()) {
            let part = self.splitter.next(rest);
            seen += part.consumed;
            self.hold_a_command |= part.start.is_some_and(|header| header.seq == 0);
        }
    }
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
    pub fn new(limits: Limits) -> Self {
        Machine {
            limits,
            phase: Phase::Greeting,
        }
    }

    /// The command phase, once the client has logged in.
    pub fn commands(&mut self) -> Option<&mut Commands> {
        match &mut self.phase {
            Phase::Commands(commands) => Some(commands),
            _ => None,
        }
    }

    /// True between commands, outside transactions: the connection may be closed without loss.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        match &self.phase {
            Phase::Commands(commands) => commands.is_idle() && !commands.standing.in_transaction,
            Phase::Authenticating { .. } => false,
            // Nothing has been asked of the server yet, or nobody can tell.
            Phase::Greeting | Phase::Login { .. } | Phase::Pump => true,
        }
    }

    /// Decides about the bytes waiting from the client; `classify` is asked for a statement's class.
    pub fn client(&mut self, input: &[u8], classify: &mut dyn FnMut(&[u8]) -> Class) -> ClientStep {
        if input.is_empty() {
            return ClientStep::Need;
        }
        match &mut self.phase {
            Phase::Greeting => ClientStep::Hold,
            Phase::Login { .. } => self.login(input),
            Phase::Authenticating { answers, .. } => {
                answers.see(input);
                ClientStep::Pass(input.len())
            }
            Phase::Pump => ClientStep::Pass(input.len()),
            Phase::Commands(commands) => commands.client(input, self.limits, classify),
        }
    }

    /// Decides about the bytes waiting from the server.
    pub fn server(&mut self, input: &[u8]) -> ServerStep {
        if input.is_empty() {
            return ServerStep::Need;
        }
        match &mut self.phase {
            Phase::Greeting => self.greeting(input),
            Phase::Login { .. } | Phase::Pump => ServerStep::Pass(input.len()),
            Phase::Authenticating { .. } => self.authenticating(input),
            Phase::Commands(commands) => match commands.server(input) {
                Some(passed) => ServerStep::Pass(passed),
                None => {
                    self.phase = Phase::Pump;
                    ServerStep::Pass(input.len())
                }
            },
        }
    }

    fn greeting(&mut self, input: &[u8]) -> ServerStep {
        let Some(packet) = frame::whole(input) else {
            return self.need_or_pump(input);
        };
        // Anything but a greeting we know (an ERR, an older protocol) goes on as it is.
        match (Greeting::parse(packet), mask_greeting(packet)) {
            (Ok(greeting), Ok(masked)) => {
                self.phase = Phase::Login {
                    greeting: Box::new(greeting),
                };
                let mut bytes = input.get(..HEADER_BYTES).unwrap_or_default().to_vec();
                bytes.extend_from_slice(&masked);
                ServerStep::Replace(HEADER_BYTES + packet.len(), bytes)
            }
            _ => {
                self.phase = Phase::Pump;
                ServerStep::Pass(input.len())
            }
        }
    }

    fn need_or_pump(&mut self, input: &[u8]) -> ServerStep {
        if may_be_login_packet(input) {
            return ServerStep::Need;
        }
        self.phase = Phase::Pump;
        ServerStep::Pass(input.len())
    }

    fn login(&mut self, input: &[u8]) -> ClientStep {
        let Some(packet) = frame::whole(input) else {
            if may_be_login_packet(input) {
                return ClientStep::Need;
            }
            self.phase = Phase::Pump;
            return ClientStep::Pass(input.len());
        };
        let length = HEADER_BYTES + packet.len();
        let Phase::Login { greeting } = &self.phase else {
            return ClientStep::Pass(length);
        };
        self.phase = match Login::parse(packet) {
            // What was not offered and is used nevertheless: from here on packets cannot be read.
            Ok(Login::Response(response))
                if response
                    .capabilities
                    .intersection(greeting.capabilities)
                    .intersects(Capabilities::not_carried()) =>
            {
                Phase::Pump
            }
            Ok(Login::Response(response)) => {
                let server = Server {
                    mariadb: greeting.is_mariadb(),
                };
                let login = LoggingIn {
                    server,
                    capabilities: response.capabilities.intersection(greeting.capabilities),
                    database: response.database.map(<[u8]>::to_vec),
                };
                let auth = AuthLoop::new(login.capabilities);
                Phase::Authenticating {
                    login: Box::new(login),
                    auth,
                    answers: Answers::default(),
                }
            }
            // Protocols older than 4.1, or TLS that was never offered: the server will say so.
            _ => Phase::Pump,
        };
        ClientStep::Pass(length)
    }

    fn authenticating(&mut self, input: &[u8]) -> ServerStep {
        let Phase::Authenticating {
            login,
            auth,
            answers,
        } = &mut self.phase
        else {
            return ServerStep::Pass(input.len());
        };
        let step = auth.feed(input);
        match step.event {
            // The replies to commands sent ahead could not be told apart from those to later ones.
            Some(AuthEvent::Done(Outcome::Ok(_))) if answers.hold_a_command => {
                self.phase = Phase::Pump;
            }
            Some(AuthEvent::Done(Outcome::Ok(ok))) => {
                let mut standing = Standing::new(login.database.take());
                standing.observe(&ok);
                let commands = Commands::new(login.server.clone(), login.capabilities, standing);
                self.phase = Phase::Commands(Box::new(commands));
            }
            Some(AuthEvent::Done(_) | AuthEvent::Unfollowable) => self.phase = Phase::Pump,
            Some(AuthEvent::ClientTurn | AuthEvent::ServerAgain) | None => {}
        }
        ServerStep::Pass(step.consumed)
    }
}

/// False for the start of a packet that no greeting and no login begins with: it is not waited for.
fn may_be_login_packet(input: &[u8]) -> bool {
    Header::parse(input).is_none_or(|header| header.len <= LOGIN_PACKET_BYTES)
}

#[cfg(test)]
mod tests;
