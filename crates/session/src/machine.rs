//! One client's protocol state: takes bytes, returns steps.
//!
//! A [`SessionMachine`] does no IO. The driver shows it the bytes that wait on either side, and carries out the step that it returns. It
//! has three phases, each an enum variant that owns what only that phase needs:
//!
//! ```text
//! LoggingIn --OK--> Commands
//!     \________________\--> Pump
//! ```
//!
//! **Pump** takes everything that cannot be followed: an old protocol, a binlog dump, a malformed reply. Bytes still flow both ways,
//! unread. Where one leg uses compressed frames and the other counts packets, a dump continues as **Dump**, with its packets renumbered,
//! and anything else is refused.
//!
//! In **Commands** a client may send further commands before the replies to earlier ones have come (`in_flight`). A step that needs the
//! connection for itself (a served call, a follow-up SELECT, a flush) is only returned once every reply in flight has ended.

use std::time::Instant;

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
    /// Starts after the login, once the driver has taken it.
    compression_frames: Option<CompressionFrames>,
    /// The step after the bytes that were passed through: already decided, and returned next.
    next_step: Option<ClientStep>,
    phase: SessionPhase,
    /// The process user, whose accounts are closed to this session's client: an unfollowed client's bytes are not relayed.
    process_user: Option<ProcessUser>,
    thread_id: Option<u32>,
    watches_statements: bool,
    connected_at: Option<Instant>,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SessionActivity {
    /// The client is logging in.
    LoggingIn,
    /// The session waits for the client's next command.
    Idle,
    /// The same, with a transaction that is or may be open.
    InTransaction,
    /// A command has not ended.
    Busy,
    /// Its bytes are relayed unread.
    Unfollowed,
}

impl SessionActivity {
    /// All activities.
    pub const ALL: [SessionActivity; 5] = [
        SessionActivity::LoggingIn,
        SessionActivity::Idle,
        SessionActivity::InTransaction,
        SessionActivity::Busy,
        SessionActivity::Unfollowed,
    ];

    /// The activity's name.
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
    /// A new connection: the server's greeting comes first.
    #[must_use]
    pub fn new(limits: SessionLimits, policy: SessionPolicy) -> Self {
        SessionMachine {
            limits,
            compression_frames: None,
            next_step: None,
            process_user: policy.process_user.clone(),
            thread_id: None,
            watches_statements: false,
            connected_at: None,
            phase: SessionPhase::LoggingIn(LoginState::new(policy, limits)),
        }
    }

    /// The client connected then: its login begins later.
    pub fn connected_at(&mut self, now: Instant) {
        self.connected_at = Some(now);
    }

    /// Watches statements: see [`CommandPhase::take_watched_selects`].
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

    /// The session's id on the server, from its greeting: CONNECTION_ID(), or its lower half where that is larger.
    #[must_use]
    pub fn thread_id(&self) -> Option<u32> {
        self.thread_id
    }

    /// The client's account, where the login was followed.
    #[must_use]
    pub fn account(&self) -> Option<&[u8]> {
        match &self.phase {
            SessionPhase::Commands(commands) => Some(&commands.account),
            SessionPhase::LoggingIn(_) | SessionPhase::Pump | SessionPhase::Dump(_) => None,
        }
    }

    /// The session's activity, as far as it is followed.
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

    /// The progress of a login that has not ended.
    #[must_use]
    pub fn login_progress(&self) -> Option<LoginProgress> {
        match &self.phase {
            SessionPhase::LoggingIn(login) => Some(login.progress()),
            SessionPhase::Commands(_) | SessionPhase::Pump | SessionPhase::Dump(_) => None,
        }
    }

    /// Once, at the end of a login: the format of each leg from here on, unless both stay plain packets.
    pub fn take_compression_frames(&mut self) -> Option<CompressionFrames> {
        self.compression_frames.take()
    }

    /// True between commands, outside transactions: the connection may be closed without loss.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        match &self.phase {
            SessionPhase::Commands(commands) => commands.is_at_rest(),
            SessionPhase::LoggingIn(login) => login.is_at_rest(),
            // Unknown.
            SessionPhase::Pump | SessionPhase::Dump(_) => true,
        }
    }

    /// True where a new session would lack something that this one may have.
    #[must_use]
    pub fn has_session_state(&self) -> bool {
        match &self.phase {
            SessionPhase::Commands(commands) => commands.has_session_state(),
            // A login has only begun. Of the other phases this is unknown.
            SessionPhase::LoggingIn(_) | SessionPhase::Pump | SessionPhase::Dump(_) => true,
        }
    }

    /// How many of the client's waiting bytes go to the server unchanged. So whole commands need not be held; [`SessionMachine::client`]
    /// then returns the step for the bytes after them.
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

    /// Decides about the bytes waiting from the client; `classify` gives a statement's class.
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
            Some(process_user) => unfollowed_client(input, process_user),
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
                    let renumbered = dump.renumbered(input);
                    self.phase = SessionPhase::Dump(dump);
                    ServerStep::replace(input.len(), renumbered)
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

    /// Takes the login, which its step consumes; its next state must be entered.
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
                commands.state.login_began_at(self.connected_at);
                // What waits is read again, in frames or as commands.
                self.next_step = None;
                self.compression_frames = (frames != CompressionFrames::NONE).then_some(frames);
                SessionPhase::Commands(commands)
            }
            LoginTransition::Pump => SessionPhase::Pump,
        };
    }
}

/// Restricts an unfollowed client to what a replica sends about its binlog dump (semi-synchronous acknowledgements, which begin with 0xef)
/// and COM_QUIT: it must not log in as the process user.
fn unfollowed_client(input: &[u8], process_user: &ProcessUser) -> ClientStep {
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
        _ => ClientStep::Refuse(process_user.refusal(1)),
    }
}

/// The longest acknowledgement: it contains a log file's name.
const MAX_ACKNOWLEDGEMENT_BYTES: usize = 4 * 1024;

#[cfg(test)]
pub(super) mod tests;
