//! One client's protocol state: bytes in, what is to be done with them out.
//!
//! A [`SessionMachine`] does no IO. The driver shows it the bytes that wait on either side, and carries
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

use super::binlog_dump::BinlogDump;
use super::commands::{CommandPhase, ReplyStep};
use super::compression_frames::CompressionFrames;
use super::login::{LoginProgress, LoginState, LoginTransition, SessionPolicy};
pub use super::machine_step::{BatchPart, ClientStep, ServerFlavor, ServerStep, SessionLimits};
use super::process_user::ProcessUser;
use super::session_state::TransactionState;
use headwater_statement::StatementClass;
use headwater_wire::command::Command;
use headwater_wire::packet::{HEADER_BYTES, PacketHeader};

/// The protocol state of one client connection and its one backend connection.
#[derive(Debug)]
pub struct SessionMachine {
    limits: SessionLimits,
    /// Begins behind the login, and is to be carried out.
    compression_frames: Option<CompressionFrames>,
    /// The step behind the bytes that went straight on: it was asked for, and is to be given out.
    next_step: Option<ClientStep>,
    phase: SessionPhase,
    /// Whose accounts are not for this session's client: where nobody follows it, it is not heard.
    process_user: Option<ProcessUser>,
    thread_id: Option<u32>,
    /// Statements are noted.
    watches_statements: bool,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SessionActivity {
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

impl SessionActivity {
    /// Every one.
    pub const ALL: [SessionActivity; 5] = [
        SessionActivity::LoggingIn,
        SessionActivity::Idle,
        SessionActivity::InTransaction,
        SessionActivity::Busy,
        SessionActivity::Unfollowed,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SessionActivity::LoggingIn => "login",
            SessionActivity::Idle => "idle",
            SessionActivity::InTransaction => "in_transaction",
            SessionActivity::Busy => "busy",
            SessionActivity::Unfollowed => "unfollowed",
        }
    }
}

#[derive(Debug)]
enum SessionPhase {
    LoggingIn(LoginState),
    Commands(Box<CommandPhase>),
    Pump,
    Dump(Box<BinlogDump>),
}

impl SessionMachine {
    /// A connection that was just accepted: the server's greeting comes first.
    #[must_use]
    pub fn new(limits: SessionLimits, ways: SessionPolicy) -> Self {
        SessionMachine {
            limits,
            compression_frames: None,
            next_step: None,
            process_user: ways.process_user.clone(),
            thread_id: None,
            watches_statements: false,
            phase: SessionPhase::LoggingIn(LoginState::new(ways, limits)),
        }
    }

    /// Has statements be noted: see [`CommandPhase::take_watched_selects`].
    pub fn watch(&mut self) {
        self.watches_statements = true;
    }

    /// The command phase, once the client has logged in.
    pub fn commands(&mut self) -> Option<&mut CommandPhase> {
        match &mut self.phase {
            SessionPhase::Commands(commands) => Some(commands),
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
            SessionPhase::Commands(commands) => Some(&commands.account),
            SessionPhase::LoggingIn(_) | SessionPhase::Pump | SessionPhase::Dump(_) => None,
        }
    }

    /// What the session does, as far as it is followed.
    #[must_use]
    pub fn activity(&self) -> SessionActivity {
        match &self.phase {
            SessionPhase::LoggingIn(_) => SessionActivity::LoggingIn,
            SessionPhase::Commands(commands) if !commands.is_idle() => SessionActivity::Busy,
            SessionPhase::Commands(commands) => match commands.state.transaction() {
                TransactionState::None => SessionActivity::Idle,
                _ => SessionActivity::InTransaction,
            },
            SessionPhase::Pump | SessionPhase::Dump(_) => SessionActivity::Unfollowed,
        }
    }

    /// How far the login has come, where it has not ended.
    #[must_use]
    pub fn login_progress(&self) -> Option<LoginProgress> {
        match &self.phase {
            SessionPhase::LoggingIn(login) => Some(login.progress()),
            SessionPhase::Commands(_) | SessionPhase::Pump | SessionPhase::Dump(_) => None,
        }
    }

    /// Once, at the end of a login: what each side speaks in from here on, if not in packets alone as before.
    pub fn take_compression_frames(&mut self) -> Option<CompressionFrames> {
        self.compression_frames.take()
    }

    /// True between commands, outside transactions: the connection may be closed without loss.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        match &self.phase {
            SessionPhase::Commands(commands) => commands.is_at_rest(),
            SessionPhase::LoggingIn(login) => login.is_at_rest(),
            // Nobody can tell.
            SessionPhase::Pump | SessionPhase::Dump(_) => true,
        }
    }

    /// True where a new session would lack something that this one may have.
    #[must_use]
    pub fn has_session_state(&self) -> bool {
        match &self.phase {
            SessionPhase::Commands(commands) => commands.has_session_state(),
            // It has only just come. Of the others nobody can tell.
            SessionPhase::LoggingIn(_) | SessionPhase::Pump | SessionPhase::Dump(_) => true,
        }
    }

    /// How many of these bytes, the first that wait from the client, go to the server as they are. So whole commands need not be
    /// kept; what else is to be done is what [`SessionMachine::client`] says next of the bytes behind them.
    pub fn pass_through(
        &mut self,
        input: &[u8],
        classify: &mut dyn FnMut(&[u8]) -> StatementClass,
    ) -> usize {
        let mut passed = 0;
        while let Some(rest) = input.get(passed..).filter(|rest| !rest.is_empty()) {
            match self.client(rest, classify) {
                ClientStep::Pass(length) => passed += length.get(),
                ClientStep::Need | ClientStep::Hold => break,
                step => {
                    self.next_step = Some(step);
                    break;
                }
            }
        }
        passed
    }

    /// Decides about the bytes waiting from the client; `classify` is asked for a statement's class.
    pub fn client(
        &mut self,
        input: &[u8],
        classify: &mut dyn FnMut(&[u8]) -> StatementClass,
    ) -> ClientStep {
        if input.is_empty() {
            return ClientStep::Need;
        }
        if let Some(step) = self.next_step.take() {
            return step;
        }
        if let SessionPhase::Commands(commands) = &mut self.phase {
            return match self.watches_statements {
                false => commands.client(input, self.limits, classify),
                true => commands.watched_client(input, self.limits, classify),
            };
        }
        if let Some(login) = self.take_login() {
            let (step, next) = login.client(input);
            self.enter(next);
            return step;
        }
        match &self.process_user {
            Some(own_user) => unfollowed_client(input, own_user),
            None => ClientStep::pass(input.len()),
        }
    }

    /// Decides about the bytes waiting from the server.
    pub fn server(&mut self, input: &[u8]) -> ServerStep {
        if input.is_empty() {
            return ServerStep::Need;
        }
        match &mut self.phase {
            SessionPhase::Commands(commands) => match commands.server(input) {
                ReplyStep::Pass(passed) => ServerStep::pass(passed),
                ReplyStep::Replace(length, own) => ServerStep::replace(length, own),
                ReplyStep::Refuse(error) => ServerStep::Refuse(error),
                ReplyStep::Unfollowable => {
                    self.phase = SessionPhase::Pump;
                    ServerStep::pass(input.len())
                }
                ReplyStep::Dump(mut dump) => {
                    let own = dump.renumbered(input);
                    self.phase = SessionPhase::Dump(dump);
                    ServerStep::replace(input.len(), own)
                }
            },
            SessionPhase::Dump(dump) => ServerStep::replace(input.len(), dump.renumbered(input)),
            SessionPhase::LoggingIn(_) | SessionPhase::Pump => match self.take_login() {
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
    fn take_login(&mut self) -> Option<LoginState> {
        match std::mem::replace(&mut self.phase, SessionPhase::Pump) {
            SessionPhase::LoggingIn(login) => Some(login),
            phase => {
                self.phase = phase;
                None
            }
        }
    }

    fn enter(&mut self, next: LoginTransition) {
        self.phase = match next {
            LoginTransition::LoggingIn(login) => {
                self.thread_id = self.thread_id.or(login.thread_id());
                SessionPhase::LoggingIn(login)
            }
            LoginTransition::LoggedIn(mut commands, frames) => {
                if self.watches_statements {
                    commands.watch();
                }
                // What waits is read anew, in frames or as commands.
                self.next_step = None;
                self.compression_frames = (frames != CompressionFrames::NONE).then_some(frames);
                SessionPhase::Commands(commands)
            }
            LoginTransition::Pump => SessionPhase::Pump,
        };
    }
}

/// Where nobody follows a client that must not be anybody: what a replica says of the log that it is sent (semi-synchronous
/// replication, packets that begin with 0xef), and good bye.
fn unfollowed_client(input: &[u8], own_user: &ProcessUser) -> ClientStep {
    const ACKNOWLEDGEMENT: u8 = 0xef;
    let Some(header) = PacketHeader::parse(input) else {
        return ClientStep::Need;
    };
    let first = input.get(HEADER_BYTES).copied();
    let harmless = [ACKNOWLEDGEMENT, Command::Quit.byte()];
    match first {
        None if header.len > 0 => ClientStep::Need,
        Some(first) if harmless.contains(&first) && header.len < MAX_ACKNOWLEDGEMENT_BYTES => {
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
const MAX_ACKNOWLEDGEMENT_BYTES: usize = 4 * 1024;

#[cfg(test)]
pub(super) mod tests;
