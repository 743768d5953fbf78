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

use std::collections::VecDeque;
use std::sync::Arc;

use super::result_table::ResultTables;
use super::standing::Standing;
use crate::statement::{Call, Class, Effects, Tail};
use crate::wire::capability::Capabilities;
use crate::wire::command::{self, Command};
use crate::wire::frame::{self, HEADER_BYTES, Header, MAX_BODY};
use crate::wire::handshake::{ChangeUser, Greeting, Login, mask_greeting};
use crate::wire::reply::{AuthEvent, AuthLoop, Event, LocalData, Outcome, Reply};
use crate::wire::status;

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
    Login { greeting: Box<Greeting> },
    Authenticating { login: Box<LoggingIn>, auth: AuthLoop },
    Commands(Box<Commands>),
    Pump,
}

#[derive(Debug)]
struct LoggingIn {
    server: Server,
    capabilities: Capabilities,
    database: Option<Vec<u8>>,
}

/// Which server a session talks to, as its greeting said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// MariaDB, or else MySQL.
    pub mariadb: bool,
    /// The thread id the client saw.
    pub thread_id: u32,
}

/// A session in its command phase.
#[derive(Debug)]
pub struct Commands {
    /// The server behind it.
    pub server: Server,
    /// Capabilities both sides agreed on.
    pub capabilities: Capabilities,
    /// State of the session on the server.
    pub standing: Standing,
    /// The result tables, on the server and pending.
    pub tables: ResultTables,
    in_flight: VecDeque<InFlight>,
    passing: Option<Passing>,
    prepared: Effects,
    /// A command in flight may change a definition.
    touching: bool,
    definition_touched: bool,
}

/// A command whose reply has not ended.
#[derive(Debug)]
struct InFlight {
    reply: Reply,
    after: After,
    client_data: Option<LocalData>,
    /// COM_CHANGE_USER: what the client sends meanwhile belongs to its dialogue.
    authenticates: bool,
}

/// What the end of a reply means beyond its flags.
#[derive(Debug)]
enum After {
    Nothing,
    ProcedureCall,
    InitDb(Vec<u8>),
    Login { database: Option<Vec<u8>> },
}

/// A client packet that is passed on in parts.
#[derive(Debug)]
struct Passing {
    left: usize,
    /// The packet was of the greatest size, so another one continues it.
    continued: bool,
}

impl Machine {
    /// A connection that was just accepted: the server's greeting comes first.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Machine { limits, phase: Phase::Greeting }
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
            Phase::Commands(commands) => {
                commands.is_idle()
                    && commands.standing.status.is_none_or(|flags| flags & status::IN_TRANS == 0)
            }
            Phase::Greeting | Phase::Login { .. } | Phase::Authenticating { .. } => false,
            Phase::Pump => true,
        }
    }

    /// Decides about the bytes waiting from the client; `classify` is asked for a statement's class.
    pub fn client(
        &mut self,
        input: &[u8],
        classify: &mut dyn FnMut(&[u8]) -> Class,
    ) -> ClientStep {
        if input.is_empty() {
            return ClientStep::Need;
        }
        match &mut self.phase {
            Phase::Greeting => ClientStep::Hold,
            Phase::Login { .. } => self.login(input),
            Phase::Authenticating { .. } | Phase::Pump => ClientStep::Pass(input.len()),
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
                self.phase = Phase::Login { greeting: Box::new(greeting) };
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
        if input.len() <= LOGIN_PACKET_BYTES {
            return ServerStep::Need;
        }
        self.phase = Phase::Pump;
        ServerStep::Pass(input.len())
    }

    fn login(&mut self, input: &[u8]) -> ClientStep {
        let Some(packet) = frame::whole(input) else {
            if input.len() <= LOGIN_PACKET_BYTES {
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
            Ok(Login::Response(response)) => {
                let server =
                    Server { mariadb: greeting.is_mariadb(), thread_id: greeting.thread_id };
                let login = LoggingIn {
                    server,
                    capabilities: response
                        .capabilities
                        .intersection(greeting.capabilities.without(Capabilities::not_carried())),
                    database: response.database.map(<[u8]>::to_vec),
                };
                let auth = AuthLoop::new(login.capabilities);
                Phase::Authenticating { login: Box::new(login), auth }
            }
            // Protocols older than 4.1, or TLS that was never offered: the server will say so.
            _ => Phase::Pump,
        };
        ClientStep::Pass(length)
    }

    fn authenticating(&mut self, input: &[u8]) -> ServerStep {
        let Phase::Authenticating { login, auth } = &mut self.phase else {
            return ServerStep::Pass(input.len());
        };
        let step = auth.feed(input);
        match step.event {
            Some(AuthEvent::Done(Outcome::Ok(ok))) => {
                let mut standing = Standing::new(login.database.take());
                standing.observe(&ok);
                self.phase = Phase::Commands(Box::new(Commands {
                    server: login.server.clone(),
                    capabilities: login.capabilities,
                    standing,
                    tables: ResultTables::none(),
                    in_flight: VecDeque::new(),
                    passing: None,
                    prepared: Effects::NONE,
                    touching: false,
                    definition_touched: false,
                }));
            }
            Some(AuthEvent::Done(_) | AuthEvent::Unfollowable) => self.phase = Phase::Pump,
            Some(AuthEvent::ClientTurn | AuthEvent::ServerAgain) | None => {}
        }
        ServerStep::Pass(step.consumed)
    }
}

impl Commands {
    /// True when no reply is in flight and no packet is half passed on.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.passing.is_none()
    }

    /// Notes that a procedure call goes on to the server, to be answered there.
    pub fn relay_call(&mut self) {
        self.tables.disturb();
        self.begin(Command::Query, After::ProcedureCall);
    }

    /// Notes that a tail goes on to the server: it changes nothing but the reply in flight.
    pub fn relay_tail(&mut self) {
        self.begin(Command::Query, After::Nothing);
    }

    fn client(
        &mut self,
        input: &[u8],
        limits: Limits,
        classify: &mut dyn FnMut(&[u8]) -> Class,
    ) -> ClientStep {
        if self.passing.is_some() {
            return ClientStep::Pass(self.pass_rest(input));
        }
        if let Some(front) = self.in_flight.front_mut() {
            if let Some(data) = front.client_data.as_mut().filter(|data| !data.is_done()) {
                return ClientStep::Pass(data.feed(input));
            }
            if front.authenticates {
                return ClientStep::Pass(input.len());
            }
        }
        if self.in_flight.len() >= limits.in_flight {
            return ClientStep::Hold;
        }
        let Some(header) = Header::parse(input) else {
            return ClientStep::Need;
        };
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        if body.is_empty() && header.len > 0 {
            return ClientStep::Need;
        }
        let whole = header.len <= limits.statement_bytes && header.len < MAX_BODY;
        match command_of(body) {
            Command::Query if whole => match body.get(..header.len) {
                Some(payload) => self.query(payload, classify),
                None => ClientStep::Need,
            },
            Command::StmtPrepare if whole => match body.get(..header.len) {
                Some(payload) => self.prepare(payload, header, input, classify),
                None => ClientStep::Need,
            },
            Command::StmtPrepare => {
                self.prepared = Effects::ALL;
                self.other(Command::StmtPrepare, header, input)
            }
            Command::ChangeUser | Command::InitDb if whole && body.len() < header.len => {
                ClientStep::Need
            }
            command => self.other(command, header, input),
        }
    }

    fn query(&mut self, payload: &[u8], classify: &mut dyn FnMut(&[u8]) -> Class) -> ClientStep {
        let length = HEADER_BYTES + payload.len();
        let class = match command::query_text(payload, self.capabilities) {
            Some(range) => classify(payload.get(range).unwrap_or_default()),
            None => Class::Other(Effects::ALL),
        };
        match class {
            Class::Call(_) | Class::Tail(_) if !self.is_idle() => ClientStep::Hold,
            Class::Call(call) => ClientStep::Call(length, call),
            Class::Tail(tail) if self.tables.pending.is_some() => ClientStep::Tail(length, tail),
            Class::Tail(_) => {
                // Without an owned call before it, its tables may be views that run anything.
                self.disturb(Effects { stored_code: true, ..Effects::NONE });
                self.begin(Command::Query, After::Nothing);
                ClientStep::Pass(length)
            }
            Class::Other(effects) => match self.settle_first(effects.diagnostics) {
                Some(step) => step,
                None => {
                    self.disturb(effects);
                    self.begin(Command::Query, After::Nothing);
                    ClientStep::Pass(length)
                }
            },
        }
    }

    fn prepare(
        &mut self,
        payload: &[u8],
        header: Header,
        input: &[u8],
        classify: &mut dyn FnMut(&[u8]) -> Class,
    ) -> ClientStep {
        let class = classify(payload.get(1..).unwrap_or_default());
        let step = self.other(Command::StmtPrepare, header, input);
        if let (ClientStep::Pass(_), Class::Other(effects)) = (&step, class) {
            // Which statement an execution runs is not kept: any of those prepared may be it.
            self.prepared.one_shot |= effects.one_shot;
            self.prepared.diagnostics |= effects.diagnostics;
        }
        step
    }

    /// A command whose text is not looked at, or that has none.
    fn other(&mut self, command: Command, header: Header, input: &[u8]) -> ClientStep {
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        let payload = body.get(..header.len).unwrap_or(body);
        let mut after = After::Nothing;
        match command {
            Command::ChangeUser | Command::ResetConnection => {
                if !self.is_idle() {
                    return ClientStep::Hold;
                }
                after = self.reset(command, payload);
            }
            _ if spares_result_tables(command) => {}
            _ => {
                let effects = self.effects_of(command);
                if let Some(step) = self.settle_first(effects.diagnostics) {
                    return step;
                }
                self.disturb(effects);
                if command == Command::InitDb {
                    after = After::InitDb(payload.get(1..).unwrap_or_default().to_vec());
                }
            }
        }
        self.begin(command, after);
        self.passing = Some(Passing {
            left: HEADER_BYTES + header.len,
            continued: header.len == MAX_BODY,
        });
        ClientStep::Pass(self.pass_rest(input))
    }

    fn effects_of(&self, command: Command) -> Effects {
        match command {
            Command::StmtFetch | Command::FieldList => Effects::NONE,
            Command::InitDb => Effects { settings: true, ..Effects::NONE },
            Command::StmtExecute | Command::StmtBulkExecute => {
                let Effects { one_shot, diagnostics, .. } = self.prepared;
                Effects { one_shot, diagnostics, ..Effects::ALL }
            }
            Command::StmtPrepare => Effects::NONE,
            _ => Effects::ALL,
        }
    }

    fn reset(&mut self, command: Command, payload: &[u8]) -> After {
        self.tables = ResultTables::none();
        self.prepared = Effects::NONE;
        let database = if command == Command::ChangeUser {
            match ChangeUser::parse(payload, self.capabilities) {
                Ok(change) => change.database.map(<[u8]>::to_vec),
                Err(_) => None,
            }
        } else {
            self.standing.database.take()
        };
        After::Login { database }
    }

    fn settle_first(&self, diagnostics: bool) -> Option<ClientStep> {
        self.tables.pending.as_ref()?;
        Some(if self.is_idle() { ClientStep::Settle { diagnostics } } else { ClientStep::Hold })
    }

    fn disturb(&mut self, effects: Effects) {
        self.standing.disturb(effects);
        self.touching |= effects.definition;
        if effects.temp_tables || effects.stored_code || effects.result_table {
            self.tables.disturb();
        }
    }

    fn begin(&mut self, command: Command, after: After) {
        if Reply::expects_reply(command) {
            self.in_flight.push_back(InFlight {
                reply: Reply::new(command, self.capabilities),
                after,
                client_data: None,
                authenticates: command == Command::ChangeUser,
            });
        }
    }

    /// How many of the waiting bytes belong to the packet being passed on.
    fn pass_rest(&mut self, input: &[u8]) -> usize {
        let mut passed = 0;
        while let Some(passing) = &mut self.passing {
            let waiting = input.len() - passed;
            if passing.left > waiting {
                passing.left -= waiting;
                return input.len();
            }
            passed += passing.left;
            if !passing.continued {
                self.passing = None;
                return passed;
            }
            let Some(header) = Header::parse(input.get(passed..).unwrap_or_default()) else {
                passing.left = 0;
                return passed;
            };
            *passing = Passing {
                left: HEADER_BYTES + header.len,
                continued: header.len == MAX_BODY,
            };
        }
        passed
    }

    /// How many of the waiting bytes go to the client; `None` when they cannot be followed any more.
    fn server(&mut self, input: &[u8]) -> Option<usize> {
        let mut passed = 0;
        while let Some(rest) = input.get(passed..).filter(|rest| !rest.is_empty()) {
            let Some(front) = self.in_flight.front_mut() else {
                // The server speaks unasked only to say good-bye (WIRE: wait_timeout, KILL).
                return Some(input.len());
            };
            let step = front.reply.feed(rest);
            passed += step.consumed;
            match step.event {
                None if step.consumed == 0 => break,
                None | Some(Event::ClientAuth) => {}
                Some(Event::ClientData) => front.client_data = Some(LocalData::new()),
                Some(Event::Done(outcome)) => {
                    if let Some(ended) = self.in_flight.pop_front() {
                        self.end(ended.after, outcome);
                    }
                }
                Some(Event::Unfollowable) => return None,
            }
        }
        Some(passed)
    }

    /// Takes in how the reply to an own command ended.
    pub fn observe(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Ok(ok) => self.standing.observe(ok),
            Outcome::Err(_) => self.standing.observe_error(),
            Outcome::Prepared(_) | Outcome::Silent | Outcome::Text => {}
        }
    }

    /// True once after a command that may have changed a definition has ended.
    pub fn take_definition_touched(&mut self) -> bool {
        std::mem::take(&mut self.definition_touched)
    }

    fn end(&mut self, after: After, outcome: Outcome) {
        self.definition_touched |= std::mem::take(&mut self.touching);
        match outcome {
            Outcome::Ok(ok) => {
                match after {
                    After::Nothing => {}
                    After::ProcedureCall if ok.status & status::IN_TRANS == 0 => {
                        self.standing.one_shot = false;
                    }
                    After::ProcedureCall => {}
                    After::InitDb(database) => self.standing.database = Some(database),
                    After::Login { database } => self.standing = Standing::new(database),
                }
                self.standing.observe(&ok);
            }
            Outcome::Err(_) => {
                if let After::Login { .. } = after {
                    self.standing = Standing::new(None);
                }
                self.standing.observe_error();
            }
            Outcome::Prepared(_) | Outcome::Silent | Outcome::Text => {}
        }
    }
}

/// Commands that cannot see a table, nor change what a later one sees in it.
fn spares_result_tables(command: Command) -> bool {
    matches!(
        command,
        Command::Quit
            | Command::Ping
            | Command::Statistics
            | Command::StmtClose
            | Command::StmtReset
            | Command::StmtSendLongData
            | Command::SetOption
            | Command::ProcessKill
            | Command::ProcessInfo
            | Command::Debug
    )
}

fn command_of(payload: &[u8]) -> Command {
    // An empty payload is a command nobody knows.
    payload.first().map_or(Command::Other(0), |byte| Command::from_byte(*byte))
}

