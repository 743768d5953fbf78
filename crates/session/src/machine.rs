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

use super::commands::{Commands, Served};
use super::dump::Dump;
use super::frames::Frames;
use super::login::{Cut, LoggingIn, Next, Ways};
use super::peer::OwnUser;
use super::standing::Transaction;
pub use super::step::{ClientStep, Limits, Part, Server, ServerStep};
use headwater_statement::Class;
use headwater_wire::command::Command;
use headwater_wire::frame::{HEADER_BYTES, Header};

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
    thread_id: Option<u32>,
    /// Statements are noted.
    watches: bool,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Doing {
    /// The client logs in.
    LoggingIn,
    /// It waits for the client's next command.
    Idle,
    /// The same within a transaction, or what may be one.
    InTransaction,
    /// A command has not ended.
    Busy,
    /// Its bytes are passed on unseen.
    Unfollowed,
}

impl Doing {
    /// Every one.
    pub const ALL: [Doing; 5] = [
        Doing::LoggingIn,
        Doing::Idle,
        Doing::InTransaction,
        Doing::Busy,
        Doing::Unfollowed,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Doing::LoggingIn => "login",
            Doing::Idle => "idle",
            Doing::InTransaction => "in_transaction",
            Doing::Busy => "busy",
            Doing::Unfollowed => "unfollowed",
        }
    }
}

#[derive(Debug)]
enum Phase {
    LoggingIn(LoggingIn),
    Commands(Box<Commands>),
    Pump,
    Dump(Box<Dump>),
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
            thread_id: None,
            watches: false,
            phase: Phase::LoggingIn(LoggingIn::new(ways, limits)),
        }
    }

    /// Has statements be noted: see [`Commands::take_seen`].
    pub fn watch(&mut self) {
        self.watches = true;
    }

    /// The command phase, once the client has logged in.
    pub fn commands(&mut self) -> Option<&mut Commands> {
        match &mut self.phase {
            Phase::Commands(commands) => Some(commands),
            _ => None,
        }
    }

    /// The number of this session at the server, as its greeting said: CONNECTION_ID(), or its lower half where that is larger.
    #[must_use]
    pub fn thread_id(&self) -> Option<u32> {
        self.thread_id
    }

    /// Whom the client has logged in as, where that was followed.
    #[must_use]
    pub fn account(&self) -> Option<&[u8]> {
        match &self.phase {
            Phase::Commands(commands) => Some(&commands.account),
            Phase::LoggingIn(_) | Phase::Pump | Phase::Dump(_) => None,
        }
    }

    /// What the session does, as far as it is followed.
    #[must_use]
    pub fn doing(&self) -> Doing {
        match &self.phase {
            Phase::LoggingIn(_) => Doing::LoggingIn,
            Phase::Commands(commands) if !commands.is_idle() => Doing::Busy,
            Phase::Commands(commands) => match commands.standing.transaction() {
                Transaction::None => Doing::Idle,
                _ => Doing::InTransaction,
            },
            Phase::Pump | Phase::Dump(_) => Doing::Unfollowed,
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

    /// True where a new session would lack something that this one may have.
    #[must_use]
    pub fn has_own(&self) -> bool {
        match &self.phase {
            Phase::Commands(commands) => commands.has_own(),
            // It has only just come. Of the others nobody can tell.
            Phase::LoggingIn(_) | Phase::Pump | Phase::Dump(_) => true,
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
            return match self.watches {
                false => commands.client(input, self.limits, classify),
                true => commands.watched_client(input, self.limits, classify),
            };
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
            Next::LoggingIn(login) => {
                self.thread_id = self.thread_id.or(login.thread_id());
                Phase::LoggingIn(login)
            }
            Next::In(mut commands, frames) => {
                if self.watches {
                    commands.watch();
                }
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
