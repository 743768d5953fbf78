//! The command phase: what each command may see and change, and which replies are in flight.

mod aside;
mod batches;
mod calls;
mod executions;
mod in_flight;
mod named;
mod numbers;
mod replies;
mod timing;
mod watch;

use std::collections::VecDeque;
use std::time::Instant;

use super::asked::{Asked, Dress, Wanted};
use super::dump::Dump;
use super::frames::{Frames, Renumbered};
use super::legs::Agreed;
use super::narrowing::Lesson;
use super::peer::OwnUser;
use super::prepared::{PreparedCall, Statements, Text};
use super::probe;
use super::reason::Reason;
use super::result_table::{ResultTables, SPARED_BYTES};
use super::standing::{Standing, Transaction};
use super::step::{ClientStep, Limits, Server};
use headwater_statement::{Class, Dynamic, Effects};
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{self, Command};
use headwater_wire::frame::{self, HEADER_BYTES, Header, MAX_BODY};
use headwater_wire::handshake::ChangeUser;
use headwater_wire::renumber::Renumber;
use headwater_wire::reply::{Event, Reply};
use headwater_wire::resultset::Rows;

pub use aside::that_finds;
pub(crate) use executions::closing;
pub(super) use in_flight::Served;
use in_flight::{After, InFlight, Passing};
use numbers::Answers;
pub use timing::{About, Took};
pub use watch::Seen;
use watch::Watch;

/// A session in its command phase.
#[derive(Debug)]
pub struct Commands {
    /// The server behind it.
    pub server: Server,
    /// Capabilities both sides agreed on.
    pub capabilities: Capabilities,
    agreed: Agreed,
    renumbered: Renumbered,
    /// Which legs are in frames, where nobody reads a command's number.
    frames: Frames,
    /// State of the session on the server.
    pub standing: Standing,
    /// The result tables, on the server and pending.
    pub tables: ResultTables,
    in_flight: VecDeque<InFlight>,
    passing: Option<Passing>,
    prepared: Statements,
    /// The server has no stored functions, as far as is known now.
    no_functions: bool,
    /// Several statements in one command are taken; `None`: not known.
    multi_statements: Option<bool>,
    /// So many packets of the reply to the waiting command, modulo 256, have gone to the client: it is the rest of one.
    told: Option<u8>,
    /// The name that the client logged in by.
    pub account: Vec<u8>,
    /// Whose accounts are not for this session's client.
    pub(super) own_user: Option<OwnUser>,
    /// COM_QUIT was the last command.
    quit: bool,
    /// A command in flight may change a definition.
    touching: bool,
    definition_touched: bool,
    definer_denied: bool,
    /// An execution that is learned from has ended.
    lesson: Option<Box<Lesson>>,
    /// What is noted of statements, where somebody wants to know.
    watch: Option<Box<Watch>>,
    /// When the client's last bytes came, where it is noted how long commands take; and those that have ended since.
    came: Option<Instant>,
    took: Vec<Took>,
    /// The last statement was a SELECT that the server does not know of: so many rows `FOUND_ROWS()` tells behind it.
    aside: Option<u64>,
    /// The last command was a call that the server answers.
    called: bool,
}

impl Commands {
    pub(super) fn new(
        server: Server,
        capabilities: Capabilities,
        (agreed, frames): (Agreed, Frames),
        standing: Standing,
        limits: Limits,
    ) -> Self {
        let mariadb = server.mariadb;
        Commands {
            server,
            capabilities,
            agreed,
            renumbered: frames.renumbered(),
            frames,
            standing,
            tables: ResultTables::none(),
            in_flight: VecDeque::new(),
            passing: None,
            prepared: Statements::new(limits.prepared_statements, limits.statement_bytes, mariadb),
            no_functions: false,
            multi_statements: Some(capabilities.contains(Capabilities::MULTI_STATEMENTS)),
            told: None,
            account: Vec::new(),
            own_user: None,
            quit: false,
            touching: false,
            definition_touched: false,
            definer_denied: false,
            lesson: None,
            watch: None,
            came: None,
            took: Vec::new(),
            aside: None,
            called: false,
        }
    }

    /// True when no reply is in flight and no packet is half passed on.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.passing.is_none()
    }

    /// True where what waits is the rest of a command, whose first part is answered.
    #[must_use]
    pub fn goes_on_now(&self) -> bool {
        self.told.is_some()
    }

    /// True between commands, outside transactions.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.is_idle() && self.told.is_none() && self.standing.transaction() == Transaction::None
    }

    /// True where a new session would lack something that this one may have: settings, user variables, named locks, temporary tables,
    /// prepared statements. The tables that a call leaves count until something else is asked for.
    #[must_use]
    pub fn has_own(&self) -> bool {
        let pending = self.tables.pending.as_ref();
        let unread = self.called || pending.is_some_and(|pending| pending.tail.is_none());
        unread || self.standing.has_own() || self.prepared.has_any()
    }

    /// True when the client has said good bye, and all that it asked for before is answered.
    #[must_use]
    pub fn has_quit(&self) -> bool {
        self.quit && self.is_idle()
    }

    /// What is known of the server that settings are asked of.
    pub(crate) fn asked(&self, galera: bool) -> probe::Asked {
        let mariadb = self.server.mariadb;
        probe::Asked {
            mariadb,
            galera: mariadb && galera,
        }
    }

    /// Takes in the answer to [`probe::settings_query`].
    pub(crate) fn settings_told(&mut self, rows: &Rows) -> Result<(), Reason> {
        self.standing.observe(rows.end());
        let settings = probe::judge_settings(self.server.mariadb, self.capabilities, rows)?;
        self.standing.settings_proved(settings);
        Ok(())
    }

    /// What stands around the rows of a reply follows this: settings, and all that both sides agreed on.
    pub(crate) fn framing(&self) -> [u8; 16] {
        let plans = self.standing.plans();
        let [plans, agreed] = [plans, self.capabilities.0].map(u64::to_le_bytes);
        let mut framing = [0; 16];
        framing[..8].copy_from_slice(&plans);
        framing[8..].copy_from_slice(&agreed);
        framing
    }

    /// Whether the server is known to have no stored functions, while the next commands come.
    pub fn knows_no_functions(&mut self, none: bool) {
        self.no_functions = none;
    }

    /// The server may have had some already: what a statement since may have done by them is not known.
    pub fn doubt_functions(&mut self) {
        self.disturb(Effects::STORED_CODE);
        self.standing.is_trusted();
    }

    /// Notes that questions in front of a feed's statement, or another in its place, go to the server.
    pub fn asks_for_feed(&mut self) {
        self.standing.sends(Effects::NONE, self.is_idle());
    }

    /// Notes that a feed's statement goes on to the server.
    pub fn relay_feed(&mut self, effects: Effects) {
        self.disturb(effects);
        self.begin(Command::Query, After::Nothing);
    }

    /// Notes that a tail goes on to the server: it changes nothing but the reply in flight.
    pub fn relay_tail(&mut self) {
        self.begin(Command::Query, After::Nothing);
    }

    /// Notes that a SELECT without tables goes to the server in the place of a question to Headwater.
    pub fn relay_own(&mut self) {
        self.disturb(Effects::NONE);
        self.begin(Command::Query, After::Nothing);
    }

    /// Notes that a question to Headwater goes on to the server as it is.
    pub fn relay_unknown(&mut self) {
        self.disturb(Effects::ALL);
        self.begin(Command::Query, After::Nothing);
    }

    pub(super) fn client(
        &mut self,
        input: &[u8],
        limits: Limits,
        classify: &mut dyn FnMut(&[u8]) -> Class,
    ) -> ClientStep {
        if self.passing.is_some() {
            return self.go_on(input);
        }
        if let Some(front) = self.in_flight.front_mut() {
            if let Some(data) = front.client_data.as_mut().filter(|data| !data.is_done()) {
                let length = data.feed(input);
                return front.say(input, length);
            }
            if front.authenticates() {
                return match &self.own_user {
                    Some(_) => {
                        only_answer(input).map_or_else(|step| step, |answer| front.answer(answer))
                    }
                    None => front.answer(input),
                };
            }
        }
        if self.in_flight.len() >= limits.in_flight {
            return ClientStep::Hold;
        }
        let Some(header) = Header::parse(input) else {
            return ClientStep::Need;
        };
        if self.frames.client.is_some() && header.seq != 0 {
            return ClientStep::Number;
        }
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        if body.is_empty() && header.len > 0 {
            return ClientStep::Need;
        }
        let whole = header.len <= limits.statement_bytes && header.len < MAX_BODY;
        if let Some(step) = self.kept_from_own_user(header, body, whole) {
            return step;
        }
        if let Some(step) = self.out_of_order(header, input) {
            return step;
        }
        if let Some(step) = self.called_by_its_id(body) {
            return step;
        }
        match command_of(body) {
            Command::Query if whole => match body.get(..header.len) {
                Some(payload) => self.query(payload, classify),
                None => ClientStep::Need,
            },
            Command::StmtPrepare if whole => match body.get(..header.len) {
                Some(payload) => {
                    let text = payload.get(1..).unwrap_or_default();
                    self.prepare(classify(text), text, header, input)
                }
                None => ClientStep::Need,
            },
            Command::StmtPrepare => self.prepare(Class::Other(Effects::ALL), b"", header, input),
            command if names_statement(command) => {
                let id = command::statement_id(body.get(..header.len).unwrap_or(body));
                match id {
                    None if body.len() < header.len => ClientStep::Need,
                    Some(id) if whole && self.is_call(command, id) => {
                        match body.get(..header.len) {
                            Some(payload) => self.execute(id, payload),
                            None => ClientStep::Need,
                        }
                    }
                    Some(id) if self.is_feed(command, id) => {
                        self.execute_feed(id, whole, header, input)
                    }
                    _ => self.other(command, header, input),
                }
            }
            Command::ChangeUser | Command::InitDb | Command::SetOption
                if whole && body.len() < header.len =>
            {
                ClientStep::Need
            }
            command => self.other(command, header, input),
        }
    }

    /// What becomes of a command by which the client could become the own user; `None`: it is no such.
    fn kept_from_own_user(&self, header: Header, body: &[u8], whole: bool) -> Option<ClientStep> {
        let own_user = self.own_user.as_ref()?;
        let refusal = match (command_of(body), body.get(..header.len)) {
            // Part of a dialogue that was not begun: what the server would make of it is not known.
            _ if header.seq != 0 => own_user.refusal(1),
            (Command::ChangeUser, Some(payload)) => {
                own_user.refuses_change(payload, self.capabilities)?
            }
            (Command::ChangeUser, None) if whole => return Some(ClientStep::Need),
            (Command::ChangeUser, None) => own_user.refusal(1),
            _ => return None,
        };
        Some(match self.is_idle() {
            true => ClientStep::Refuse(refusal),
            false => ClientStep::Hold,
        })
    }

    fn query(&mut self, payload: &[u8], classify: &mut dyn FnMut(&[u8]) -> Class) -> ClientStep {
        let length = HEADER_BYTES + payload.len();
        let text = command::query_text(payload, self.capabilities);
        let class = match &text {
            Some(range) => classify(payload.get(range.clone()).unwrap_or_default()),
            None => Class::Other(Effects::ALL),
        };
        let from = text.map_or(0, |range| range.start);
        match class {
            Class::Call(call) => self.ask(length, Wanted::Call(call), Dress::Text),
            Class::Unbound(open) if open.parameters() == 0 => {
                self.ask(length, Wanted::in_session(open), Dress::Indirect)
            }
            Class::Several(several, effects) => self.several(length, from, several, effects),
            Class::Dynamic(dynamic) => self.dynamic(length, dynamic, classify),
            Class::Tail(_) if !self.is_idle() => ClientStep::Hold,
            Class::Tail(tail) if self.tables.pending.is_some() => ClientStep::Tail(length, tail),
            // Without an owned call before it, its tables may be views that run anything.
            Class::Tail(_) => self.text(length, Effects::STORED_CODE, None),
            Class::Unbound(_) => self.text(length, Effects::ALL, Some(payload)),
            Class::Feed(_) if !self.is_idle() => ClientStep::Hold,
            Class::Feed(effects) => match self.settle_first(effects, Some(payload)) {
                Some(step) => step,
                None => ClientStep::Feed(length, effects),
            },
            Class::Batch(batch) => self.batch(length, from, batch, payload),
            Class::Own(_) if !self.is_idle() => ClientStep::Hold,
            // It may go on to the server, who says that it does not know it.
            Class::Own(own) => match self.settle_first(Effects::ALL, Some(payload)) {
                Some(step) => step,
                None => ClientStep::Own(length, own),
            },
            Class::Other(effects) => self.text(length, effects, Some(payload)),
        }
    }

    /// A text that goes on to the server, once what is pending is there.
    fn text(&mut self, length: usize, effects: Effects, payload: Option<&[u8]>) -> ClientStep {
        if let Some(step) = self.settle_first(effects, payload) {
            return step;
        }
        self.disturb(effects);
        let text = payload.and_then(|it| it.get(command::query_text(it, self.capabilities)?));
        let after = match text.is_some_and(ends_transaction) {
            true => After::TransactionEnded,
            false => After::Nothing,
        };
        self.begin(Command::Query, after);
        ClientStep::pass(length)
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
            Command::SetOption
            | Command::Ping
            | Command::StmtReset
            | Command::Statistics
            | Command::ProcessKill
            | Command::ProcessInfo
                if self.aside.is_some() =>
            {
                return self.tell_of_aside(Effects::ALL).unwrap_or(ClientStep::Hold);
            }
            Command::SetOption => {
                self.came_aside(payload);
                after = After::MultiStatements(multi_statements(payload));
            }
            _ if spares_result_tables(command) => {
                match command {
                    Command::Ping | Command::StmtReset => self.came_aside(payload),
                    Command::StmtSendLongData | Command::StmtClose => self.keep_statements(),
                    _ => {}
                }
                self.note(command, payload);
            }
            _ => {
                if command == Command::StmtBulkExecute {
                    self.note(command, payload);
                }
                let effects = self.effects_of(command, payload);
                if let Some(step) = self.settle_first(effects, None) {
                    return step;
                }
                self.disturb(effects);
                after = match (command, command::statement_id(payload)) {
                    (Command::InitDb, _) => {
                        After::InitDb(payload.get(1..).unwrap_or_default().to_vec())
                    }
                    (Command::StmtExecute, Some(id)) => After::Executed(id, None),
                    _ => After::Nothing,
                };
            }
        }
        self.begin(command, after);
        self.pass(command, header, input)
    }

    /// Notes a command that is no statement, and behind which the row count is another one.
    fn came_aside(&mut self, payload: &[u8]) {
        if let Some(pending) = &mut self.tables.pending
            && payload.len() <= SPARED_BYTES
        {
            pending.aside = Some(payload.to_vec());
        }
    }

    /// A reset that ran again would take what is sent behind it. A COM_PING leaves the same counts.
    fn keep_statements(&mut self) {
        if let Some(pending) = &mut self.tables.pending
            && let Some(aside) = &mut pending.aside
            && command_of(aside) == Command::StmtReset
        {
            *aside = vec![Command::Ping.byte()];
        }
    }

    fn pass(&mut self, command: Command, header: Header, input: &[u8]) -> ClientStep {
        let continued = header.len == MAX_BODY;
        let counted = continued && self.renumbered == Renumbered::Clients;
        self.passing = Some(Passing {
            left: HEADER_BYTES + header.len,
            continued,
            answered: Reply::expects_reply(command),
            renumber: counted.then(|| Renumber::from(0)),
        });
        self.go_on(input)
    }

    fn effects_of(&self, command: Command, payload: &[u8]) -> Effects {
        match command {
            Command::StmtFetch | Command::FieldList | Command::StmtPrepare => Effects::NONE,
            Command::InitDb => Effects {
                settings: true,
                database: true,
                ..Effects::NONE
            },
            Command::StmtExecute | Command::StmtBulkExecute => {
                command::statement_id(payload).map_or(Effects::ALL, |id| self.execution_effects(id))
            }
            _ => Effects::ALL,
        }
    }

    fn reset(&mut self, command: Command, payload: &[u8]) -> After {
        self.tables = ResultTables::none();
        self.aside = None;
        self.prepared.clear();
        let allowed = self.capabilities.contains(Capabilities::MULTI_STATEMENTS);
        // Whether an option outlives this differs by server.
        self.multi_statements = self.multi_statements.filter(|now| *now == allowed);
        if command == Command::ChangeUser {
            let change = ChangeUser::parse(payload, self.capabilities).ok();
            let account = change.as_ref().map(|change| change.user.to_vec());
            let database = change.and_then(|change| change.database.map(<[u8]>::to_vec));
            return After::Login {
                database,
                account: Some(account.unwrap_or_default()),
                certain: true,
            };
        }
        // The session stays where it is, wherever that is.
        After::Login {
            certain: self.standing.certain_database().is_some(),
            database: self.standing.database().map(<[u8]>::to_vec),
            account: None,
        }
    }

    /// Whether the last command has ended well, and has ended what those before it left: MariaDB leaves conditions as they are where a
    /// statement reads no table.
    pub(super) fn overrules(&self) -> bool {
        self.succeeded() && !self.leaves_older()
    }

    /// Whether a statement that reads no table may leave warnings or an error of one before it, as MariaDB does.
    pub(super) fn leaves_older(&self) -> bool {
        self.server.mariadb && self.standing.holds_conditions()
    }

    /// Whether the last command has ended, and well.
    pub(super) fn succeeded(&self) -> bool {
        self.is_idle() && self.standing.flags().is_some()
    }

    /// What has to happen before a command goes on while ids are pending; `None` when nothing has to.
    fn settle_first(&mut self, effects: Effects, query: Option<&[u8]>) -> Option<ClientStep> {
        if let Some(step) = self.tell_of_aside(effects) {
            return Some(step);
        }
        let overrules = self.overrules();
        let pending = self.tables.pending.as_mut()?;
        if let Some(query) = query.filter(|_| effects.spares)
            && pending.spare(query, !effects.keeps_counts, overrules)
        {
            return None;
        }
        // What it leaves as it was has to be there.
        let diagnostics = effects.diagnostics || effects.keeps_counts || self.leaves_older();
        Some(if self.is_idle() {
            ClientStep::Settle { diagnostics }
        } else {
            ClientStep::Hold
        })
    }

    fn disturb(&mut self, effects: Effects) {
        let effects = self.known(effects);
        self.standing.sends(effects, self.is_idle());
        self.standing.command_relayed(effects);
        self.touching |= effects.definition;
        if effects.dynamic {
            self.prepared.forget_names();
        }
        if effects.temp_tables || effects.stored_code || effects.result_table {
            self.tables.disturb();
        }
    }

    /// What effects come to as the server is now.
    fn known(&self, effects: Effects) -> Effects {
        match self.no_functions {
            true => effects,
            false => effects.distrusted(),
        }
    }

    fn begin(&mut self, command: Command, after: After) {
        self.called = matches!(after, After::ProcedureCall(_));
        self.quit = command == Command::Quit;
        if Reply::expects_reply(command) {
            let continues = self.told.is_some();
            let renumber = self.reply_numbers();
            let authenticates = command == Command::ChangeUser;
            let answers = authenticates.then(|| Answers::new(self.renumbered));
            let timing = self.timing();
            self.in_flight.push_back(InFlight {
                command,
                reply: Reply::new(command, self.capabilities),
                renumber,
                begun: false,
                spoken: false,
                continues,
                shifted: 0,
                after,
                client_data: None,
                answers: answers.flatten(),
                noted: None,
                timing,
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
            passing.left = HEADER_BYTES + header.len;
            passing.continued = header.len == MAX_BODY;
            if passing.answered
                && self.renumbered == Renumbered::Servers
                && let Some(latest) = self.in_flight.back_mut()
            {
                latest.skip_number();
            }
        }
        passed
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
            | Command::ProcessKill
            | Command::ProcessInfo
    )
}

/// The first packet of a dialogue's answers; what to do where there is none yet, or a command in its place.
fn only_answer(input: &[u8]) -> Result<&[u8], ClientStep> {
    match (Header::parse(input), frame::whole(input)) {
        (Some(header), _) if header.seq == 0 => Err(ClientStep::Hold),
        (_, Some(packet)) => Ok(input.get(..HEADER_BYTES + packet.len()).unwrap_or(input)),
        (_, None) => Err(ClientStep::Need),
    }
}

/// Commands that begin with a statement's id.
fn names_statement(command: Command) -> bool {
    matches!(
        command,
        Command::StmtExecute
            | Command::StmtBulkExecute
            | Command::StmtSendLongData
            | Command::StmtReset
            | Command::StmtClose
    )
}

/// A text that ends a transaction, and does nothing else: in each case that drivers send it in.
fn ends_transaction(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    [&b"COMMIT"[..], b"ROLLBACK"]
        .iter()
        .any(|verb| text.eq_ignore_ascii_case(verb))
}

/// What COM_SET_OPTION says; `None`: something else.
fn multi_statements(payload: &[u8]) -> Option<bool> {
    match payload {
        [_, 0, 0] => Some(true),
        [_, 1, 0] => Some(false),
        _ => None,
    }
}

fn command_of(payload: &[u8]) -> Command {
    // An empty payload is a command nobody knows.
    payload
        .first()
        .map_or(Command::Other(0), |byte| Command::from_byte(*byte))
}
