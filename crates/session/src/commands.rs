//! The command phase: what each command may see and change, and which replies are in flight.

mod batches;
mod calls;
mod executions;
mod found_rows;
mod in_flight;
mod named_statements;
mod replies;
mod sequence_numbers;
mod statement_watch;
mod timing;

use std::collections::VecDeque;
use std::time::Instant;

use super::binlog_dump::BinlogDump;
use super::call_relay_reason::CallRelayReason;
use super::call_request::{CallPacketForm, CallRequest, RequestedCall};
use super::compression_frames::{CompressionFrames, RenumberedSide};
use super::feed_decision::MetadataSample;
use super::machine_step::{ClientStep, ServerFlavor, SessionLimits};
use super::prepared_statements::{PreparedCall, PreparedStatements, PreparedText};
use super::process_user::ProcessUser;
use super::result_table::{MAX_REPLAY_BYTES, ResultTables};
use super::session_state::{SessionState, TransactionState};
use super::settings_probe;
use super::tls_policy::NegotiatedTls;
use headwater_statement::{DynamicStatement, StatementClass, StatementEffects};
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{self, Command};
use headwater_wire::handshake::ChangeUserRequest;
use headwater_wire::packet::{self, HEADER_BYTES, MAX_BODY, PacketHeader};
use headwater_wire::reply::{ReplyEvent, ReplyFollower};
use headwater_wire::resultset::ResultSet;
use headwater_wire::sequence_rewriter::SequenceRewriter;

pub use found_rows::UnseenSelect;
pub(super) use in_flight::ReplyStep;
use in_flight::{InFlightCommand, PartialPacket, ReplyCompletion};
use sequence_numbers::ClientAnswers;
use statement_watch::StatementWatch;
pub use statement_watch::WatchedSelect;
pub use timing::{CompletedCommand, RelayDetails};

/// A session in its command phase.
#[derive(Debug)]
pub struct CommandPhase {
    /// The session's server.
    pub server: ServerFlavor,
    /// Capabilities both sides agreed on.
    pub capabilities: Capabilities,
    agreed: NegotiatedTls,
    renumbered_side: RenumberedSide,
    /// Which legs use compressed frames, where neither side checks a command's number.
    compression_frames: CompressionFrames,
    /// State of the session on the server.
    pub state: SessionState,
    /// The result tables, on the server and pending.
    pub tables: ResultTables,
    in_flight: VecDeque<InFlightCommand>,
    partial_packet: Option<PartialPacket>,
    prepared: PreparedStatements,
    /// The server has no stored functions, as far as is known.
    no_functions: bool,
    /// The server accepts several statements in one command; `None`: unknown.
    multi_statements: Option<bool>,
    /// The waiting command is the remainder of one, of whose reply this many packets (modulo 256) were sent to the client.
    packets_sent: Option<u8>,
    /// The client's login name.
    pub account: Vec<u8>,
    /// The operating system's user whose accounts are closed to this session's client.
    pub(super) process_user: Option<ProcessUser>,
    quit: bool,
    may_touch_definition: bool,
    definition_touched: bool,
    definer_denied: bool,
    metadata_sample: Option<Box<MetadataSample>>,
    /// The watched statements, if any consumer wants them.
    watch: Option<Box<StatementWatch>>,
    /// When the client's last bytes came, where commands are timed; and the timed commands that have ended.
    received_at: Option<Instant>,
    completed: Vec<CompletedCommand>,
    /// The last statements, if they were SELECTs that the server has not seen.
    unseen_selects: Vec<UnseenSelect>,
    /// Those before the current one.
    earlier_selects: Vec<UnseenSelect>,
    relayed_call: bool,
}

impl CommandPhase {
    pub(super) fn new(
        server: ServerFlavor,
        capabilities: Capabilities,
        (agreed, frames): (NegotiatedTls, CompressionFrames),
        state: SessionState,
        limits: SessionLimits,
    ) -> Self {
        let mariadb = server.mariadb;
        CommandPhase {
            server,
            capabilities,
            agreed,
            renumbered_side: frames.renumbered_side(),
            compression_frames: frames,
            state,
            tables: ResultTables::none(),
            in_flight: VecDeque::new(),
            partial_packet: None,
            prepared: PreparedStatements::new(
                limits.prepared_statements,
                limits.statement_bytes,
                mariadb,
            ),
            no_functions: false,
            multi_statements: Some(capabilities.contains(Capabilities::MULTI_STATEMENTS)),
            packets_sent: None,
            account: Vec::new(),
            process_user: None,
            quit: false,
            may_touch_definition: false,
            definition_touched: false,
            definer_denied: false,
            metadata_sample: None,
            watch: None,
            received_at: None,
            completed: Vec::new(),
            unseen_selects: Vec::new(),
            earlier_selects: Vec::new(),
            relayed_call: false,
        }
    }

    /// True when no reply is in flight and no packet is partly relayed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.partial_packet.is_none()
    }

    /// True where the remainder of a command waits, whose first part is answered.
    #[must_use]
    pub fn continues_command(&self) -> bool {
        self.packets_sent.is_some()
    }

    /// True between commands, outside transactions.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.is_idle()
            && self.packets_sent.is_none()
            && self.state.transaction() == TransactionState::None
    }

    /// True where a new session would lack something that this one may have: settings, user variables, named locks, temporary tables,
    /// prepared statements. A call's tables count until another command follows.
    #[must_use]
    pub fn has_session_state(&self) -> bool {
        let pending = self.tables.pending.as_ref();
        let unread =
            self.relayed_call || pending.is_some_and(|pending| pending.follow_up.is_none());
        unread || self.state.has_own_state() || self.prepared.has_any()
    }

    /// True when the client has sent COM_QUIT, and all its earlier commands are answered.
    #[must_use]
    pub fn has_quit(&self) -> bool {
        self.quit && self.is_idle()
    }

    /// The server's properties that a settings probe depends on.
    pub(crate) fn probed_server(&self, galera: bool) -> settings_probe::ProbedServer {
        let mariadb = self.server.mariadb;
        settings_probe::ProbedServer {
            mariadb,
            galera: mariadb && galera,
        }
    }

    /// Takes the reply to [`settings_probe::settings_query`].
    pub(crate) fn apply_settings(&mut self, rows: &ResultSet) -> Result<(), CallRelayReason> {
        self.state.observe(rows.end());
        let settings =
            settings_probe::judge_settings(self.server.mariadb, self.capabilities, rows)?;
        self.state.settings_proved(settings);
        Ok(())
    }

    /// The key that result-set envelopes depend on: settings, and the negotiated capabilities.
    pub(crate) fn envelope_key(&self) -> [u8; 16] {
        let plans = self.state.plan_settings();
        let [plans, agreed] = [plans, self.capabilities.0].map(u64::to_le_bytes);
        let mut framing = [0; 16];
        framing[..8].copy_from_slice(&plans);
        framing[8..].copy_from_slice(&agreed);
        framing
    }

    /// Records whether the server has no stored functions, for the next commands.
    pub fn set_no_functions(&mut self, none: bool) {
        self.no_functions = none;
    }

    /// The server may already have had functions: what a statement since may have done through them is unknown.
    pub fn doubt_functions(&mut self) {
        self.apply_effects(StatementEffects::STORED_CODE);
        self.state.confirm_no_functions();
    }

    /// Records that queries before a feed's statement, or a replacement of it, go to the server.
    pub fn note_feed_query(&mut self) {
        self.state
            .command_sent(StatementEffects::NONE, self.is_idle());
    }

    /// Records that a feed's statement is relayed.
    pub fn relay_feed(&mut self, effects: StatementEffects) {
        self.apply_effects(effects);
        self.begin(Command::Query, ReplyCompletion::Nothing);
    }

    /// Records that a follow-up SELECT is relayed: it only adds a reply in flight.
    pub fn relay_follow_up(&mut self) {
        self.begin(Command::Query, ReplyCompletion::Nothing);
    }

    /// Records that a SELECT without tables replaces a `SHOW HEADWATER` statement.
    pub fn relay_replacement(&mut self) {
        self.apply_effects(StatementEffects::NONE);
        self.begin(Command::Query, ReplyCompletion::Nothing);
    }

    /// Records that a `SHOW HEADWATER` statement is relayed unchanged.
    pub fn relay_unknown(&mut self) {
        self.apply_effects(StatementEffects::ALL);
        self.begin(Command::Query, ReplyCompletion::Nothing);
    }

    pub(super) fn client(
        &mut self,
        input: &[u8],
        limits: SessionLimits,
        classify: &mut dyn FnMut(&[u8]) -> StatementClass,
    ) -> ClientStep {
        if self.partial_packet.is_some() {
            return self.pass_waiting(input);
        }
        if let Some(front) = self.in_flight.front_mut() {
            if let Some(data) = front.client_data.as_mut().filter(|data| !data.is_done()) {
                let length = data.feed(input);
                return front.pass_dialogue(input, length);
            }
            if front.authenticates() {
                return match &self.process_user {
                    Some(_) => next_dialogue_packet(input)
                        .map_or_else(|step| step, |answer| front.pass_auth_answer(answer)),
                    None => front.pass_auth_answer(input),
                };
            }
        }
        if self.in_flight.len() >= limits.in_flight {
            return ClientStep::Hold;
        }
        let Some(header) = PacketHeader::parse(input) else {
            return ClientStep::Need;
        };
        if self.compression_frames.client.is_some() && header.seq != 0 {
            return ClientStep::Renumber;
        }
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        if body.is_empty() && header.len > 0 {
            return ClientStep::Need;
        }
        let whole = header.len <= limits.statement_bytes && header.len < MAX_BODY;
        if let Some(step) = self.guard_process_user(header, body, whole) {
            return step;
        }
        if let Some(step) = self.out_of_order(header, input) {
            return step;
        }
        if let Some(step) = self.substitute_statement_id(body) {
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
            Command::StmtPrepare => self.prepare(
                StatementClass::Other(StatementEffects::ALL),
                b"",
                header,
                input,
            ),
            command if has_statement_id(command) => {
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
                    _ => self.relay_other(command, header, input),
                }
            }
            Command::ChangeUser | Command::InitDb | Command::SetOption
                if whole && body.len() < header.len =>
            {
                ClientStep::Need
            }
            command => self.relay_other(command, header, input),
        }
    }

    /// The step for a command that could log the client in as the process user; `None`: any other command.
    fn guard_process_user(
        &self,
        header: PacketHeader,
        body: &[u8],
        whole: bool,
    ) -> Option<ClientStep> {
        let process_user = self.process_user.as_ref()?;
        let refusal = match (command_of(body), body.get(..header.len)) {
            // Part of a dialogue that never began: the server's reaction is unknown.
            _ if header.seq != 0 => process_user.refusal(1),
            (Command::ChangeUser, Some(payload)) => {
                process_user.refuses_change(payload, self.capabilities)?
            }
            (Command::ChangeUser, None) if whole => return Some(ClientStep::Need),
            (Command::ChangeUser, None) => process_user.refusal(1),
            _ => return None,
        };
        Some(match self.is_idle() {
            true => ClientStep::Refuse(refusal),
            false => ClientStep::Hold,
        })
    }

    fn query(
        &mut self,
        payload: &[u8],
        classify: &mut dyn FnMut(&[u8]) -> StatementClass,
    ) -> ClientStep {
        let length = HEADER_BYTES + payload.len();
        let text = command::query_text_range(payload, self.capabilities);
        let class = match &text {
            Some(range) => classify(payload.get(range.clone()).unwrap_or_default()),
            None => StatementClass::Other(StatementEffects::ALL),
        };
        let from = text.map_or(0, |range| range.start);
        match class {
            StatementClass::Call(call) => {
                self.request_call(length, RequestedCall::Call(call), CallPacketForm::Text)
            }
            StatementClass::UnboundCall(open) if open.parameter_count() == 0 => self.request_call(
                length,
                RequestedCall::in_session(open),
                CallPacketForm::Indirect,
            ),
            StatementClass::CallBatch(several, effects) => {
                self.call_of_several(length, from, several, effects)
            }
            StatementClass::Dynamic(dynamic) => self.dynamic_statement(length, dynamic, classify),
            StatementClass::FollowUp(_) if !self.is_idle() => ClientStep::Hold,
            StatementClass::FollowUp(tail) if self.tables.pending.is_some() => {
                ClientStep::FollowUp(length, tail)
            }
            // Without a served call before it, its tables may be views that run any code.
            StatementClass::FollowUp(_) => {
                self.relay_text(length, StatementEffects::STORED_CODE, None)
            }
            StatementClass::UnboundCall(_) => {
                self.relay_text(length, StatementEffects::ALL, Some(payload))
            }
            StatementClass::Feed(_) if !self.is_idle() => ClientStep::Hold,
            StatementClass::Feed(effects) => {
                // If it is relayed, what came before it is recalled.
                let served = StatementEffects {
                    aggregates: false,
                    ..effects
                };
                match self.flush_first(served, Some(payload)) {
                    Some(step) => step,
                    None => ClientStep::Feed(length, effects),
                }
            }
            StatementClass::FeedBatch(batch) => self.batch(length, from, batch, payload),
            StatementClass::ShowHeadwater(_) if !self.is_idle() => ClientStep::Hold,
            // It may be relayed; the server then reports a syntax error.
            StatementClass::ShowHeadwater(own) => {
                match self.flush_first(StatementEffects::ALL, Some(payload)) {
                    Some(step) => step,
                    None => ClientStep::HeadwaterStatement(length, own),
                }
            }
            StatementClass::Other(effects) => self.relay_text(length, effects, Some(payload)),
        }
    }

    /// Relays a text, once pending ids are flushed.
    fn relay_text(
        &mut self,
        length: usize,
        effects: StatementEffects,
        payload: Option<&[u8]>,
    ) -> ClientStep {
        if let Some(step) = self.flush_first(effects, payload) {
            return step;
        }
        self.apply_effects(effects);
        let text = payload.and_then(|it| it.get(command::query_text_range(it, self.capabilities)?));
        let completion = match text.is_some_and(ends_transaction) {
            true => ReplyCompletion::TransactionEnded,
            false => ReplyCompletion::Nothing,
        };
        self.begin(Command::Query, completion);
        ClientStep::pass(length)
    }

    /// Relays a command whose text is not read, or that has none.
    fn relay_other(&mut self, command: Command, header: PacketHeader, input: &[u8]) -> ClientStep {
        let body = input.get(HEADER_BYTES..).unwrap_or_default();
        let payload = body.get(..header.len).unwrap_or(body);
        let mut completion = ReplyCompletion::Nothing;
        match command {
            Command::ChangeUser | Command::ResetConnection => {
                if !self.is_idle() {
                    return ClientStep::Hold;
                }
                completion = self.reset(command, payload);
            }
            Command::SetOption
            | Command::Ping
            | Command::StmtReset
            | Command::Statistics
            | Command::ProcessKill
            | Command::ProcessInfo
                if !self.unseen_selects.is_empty() =>
            {
                return self
                    .restore_found_rows(StatementEffects::ALL)
                    .unwrap_or(ClientStep::Hold);
            }
            Command::SetOption => {
                self.note_count_reset(payload);
                completion = ReplyCompletion::MultiStatements(multi_statements(payload));
            }
            _ if leaves_result_tables(command) => {
                match command {
                    Command::Ping | Command::StmtReset => self.note_count_reset(payload),
                    Command::StmtSendLongData | Command::StmtClose => self.replace_reset_by_ping(),
                    _ => {}
                }
                self.note_statement_command(command, payload);
            }
            _ => {
                if command == Command::StmtBulkExecute {
                    self.note_statement_command(command, payload);
                }
                let effects = self.effects_of(command, payload);
                if let Some(step) = self.flush_first(effects, None) {
                    return step;
                }
                self.apply_effects(effects);
                completion = match (command, command::statement_id(payload)) {
                    (Command::InitDb, _) => {
                        ReplyCompletion::InitDb(payload.get(1..).unwrap_or_default().to_vec())
                    }
                    (Command::StmtExecute, Some(id)) => ReplyCompletion::Executed(id, None),
                    _ => ReplyCompletion::Nothing,
                };
            }
        }
        self.begin(command, completion);
        self.pass(command, header, input)
    }

    /// Records a command that is no statement and resets the row count.
    fn note_count_reset(&mut self, payload: &[u8]) {
        if let Some(pending) = &mut self.tables.pending
            && payload.len() <= MAX_REPLAY_BYTES
        {
            pending.count_reset = Some(payload.to_vec());
        }
    }

    /// A repeated reset would drop what is sent after it. A COM_PING leaves the same counts.
    fn replace_reset_by_ping(&mut self) {
        if let Some(pending) = &mut self.tables.pending
            && let Some(reset_packet) = &mut pending.count_reset
            && command_of(reset_packet) == Command::StmtReset
        {
            *reset_packet = vec![Command::Ping.byte()];
        }
    }

    fn pass(&mut self, command: Command, header: PacketHeader, input: &[u8]) -> ClientStep {
        let continued = header.len == MAX_BODY;
        let counted = continued && self.renumbered_side == RenumberedSide::Client;
        self.partial_packet = Some(PartialPacket {
            remaining: HEADER_BYTES + header.len,
            continued,
            has_reply: ReplyFollower::expects_reply(command),
            renumber: counted.then(|| SequenceRewriter::counting_from(0)),
        });
        self.pass_waiting(input)
    }

    fn effects_of(&self, command: Command, payload: &[u8]) -> StatementEffects {
        match command {
            Command::StmtFetch | Command::FieldList | Command::StmtPrepare => {
                StatementEffects::NONE
            }
            Command::InitDb => StatementEffects {
                settings: true,
                database: true,
                ..StatementEffects::NONE
            },
            Command::StmtExecute | Command::StmtBulkExecute => command::statement_id(payload)
                .map_or(StatementEffects::ALL, |id| self.execution_effects(id)),
            _ => StatementEffects::ALL,
        }
    }

    fn reset(&mut self, command: Command, payload: &[u8]) -> ReplyCompletion {
        self.tables = ResultTables::none();
        self.unseen_selects.clear();
        self.prepared.clear();
        let allowed = self.capabilities.contains(Capabilities::MULTI_STATEMENTS);
        // Whether an option survives this differs by server.
        self.multi_statements = self.multi_statements.filter(|now| *now == allowed);
        if command == Command::ChangeUser {
            let change = ChangeUserRequest::parse(payload, self.capabilities).ok();
            let account = change.as_ref().map(|change| change.user.to_vec());
            let database = change.and_then(|change| change.database.map(<[u8]>::to_vec));
            return ReplyCompletion::Login {
                database,
                account: Some(account.unwrap_or_default()),
                certain: true,
            };
        }
        // The session keeps its current database, whatever that is.
        ReplyCompletion::Login {
            certain: self.state.certain_database().is_some(),
            database: self.state.database().map(<[u8]>::to_vec),
            account: None,
        }
    }

    /// True where the last command succeeded and cleared the conditions of earlier ones: MariaDB keeps conditions where a statement reads
    /// no table.
    pub(super) fn clears_older_conditions(&self) -> bool {
        self.succeeded() && !self.may_leave_older_conditions()
    }

    /// True where a statement that reads no table may keep warnings or an error of an earlier one, as on MariaDB.
    pub(super) fn may_leave_older_conditions(&self) -> bool {
        self.server.mariadb && self.state.may_have_older_conditions()
    }

    pub(super) fn succeeded(&self) -> bool {
        self.is_idle() && self.state.flags().is_some()
    }

    /// The flush that a command needs while ids are pending; `None` when it needs none.
    fn flush_first(
        &mut self,
        effects: StatementEffects,
        query: Option<&[u8]>,
    ) -> Option<ClientStep> {
        if let Some(step) = self.restore_found_rows(effects) {
            return Some(step);
        }
        let overrules = self.clears_older_conditions();
        let pending = self.tables.pending.as_mut()?;
        if let Some(query) = query.filter(|_| effects.is_pure_read)
            && pending.record_replayable(query, !effects.preserves_row_counts, overrules)
        {
            return None;
        }
        // A statement that keeps earlier diagnostics needs them on the server.
        let diagnostics = effects.diagnostics
            || effects.preserves_row_counts
            || self.may_leave_older_conditions();
        Some(if self.is_idle() {
            ClientStep::Flush { diagnostics }
        } else {
            ClientStep::Hold
        })
    }

    fn apply_effects(&mut self, effects: StatementEffects) {
        let effects = self.trusted_effects(effects);
        self.state.command_sent(effects, self.is_idle());
        self.state.command_relayed(effects);
        self.may_touch_definition |= effects.definition;
        if effects.dynamic {
            self.prepared.forget_names();
        }
        if effects.temp_tables || effects.stored_code || effects.result_table {
            self.tables.invalidate();
        }
    }

    /// The effects, given what is known of the server now.
    fn trusted_effects(&self, effects: StatementEffects) -> StatementEffects {
        match self.no_functions {
            true => effects,
            false => effects.assuming_functions(),
        }
    }

    fn begin(&mut self, command: Command, completion: ReplyCompletion) {
        self.relayed_call = matches!(completion, ReplyCompletion::ProcedureCall(_));
        self.quit = command == Command::Quit;
        if ReplyFollower::expects_reply(command) {
            let continues = self.packets_sent.is_some();
            let renumber = self.reply_renumber();
            let authenticates = command == Command::ChangeUser;
            let answers = authenticates.then(|| ClientAnswers::new(self.renumbered_side));
            let timing = self.timing();
            self.in_flight.push_back(InFlightCommand {
                command,
                reply: ReplyFollower::new(command, self.capabilities),
                renumber,
                shift_known: false,
                reply_started: false,
                continues,
                sequence_shift: 0,
                completion,
                client_data: None,
                client_answers: answers.flatten(),
                watched: None,
                timing,
            });
        }
    }

    /// How many of the waiting bytes belong to the packet being relayed.
    fn pass_remainder(&mut self, input: &[u8]) -> usize {
        let mut passed = 0;
        while let Some(passing) = &mut self.partial_packet {
            let waiting = input.len() - passed;
            if passing.remaining > waiting {
                passing.remaining -= waiting;
                return input.len();
            }
            passed += passing.remaining;
            if !passing.continued {
                self.partial_packet = None;
                return passed;
            }
            let Some(header) = PacketHeader::parse(input.get(passed..).unwrap_or_default()) else {
                passing.remaining = 0;
                return passed;
            };
            passing.remaining = HEADER_BYTES + header.len;
            passing.continued = header.len == MAX_BODY;
            if passing.has_reply
                && self.renumbered_side == RenumberedSide::Server
                && let Some(latest) = self.in_flight.back_mut()
            {
                latest.skip_sequence();
            }
        }
        passed
    }
}

/// Commands that cannot see a table, nor change what a later command sees in it.
fn leaves_result_tables(command: Command) -> bool {
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

/// The first packet of the dialogue's answers; the step to take where none has come, or a command came instead.
fn next_dialogue_packet(input: &[u8]) -> Result<&[u8], ClientStep> {
    match (PacketHeader::parse(input), packet::complete_payload(input)) {
        (Some(header), _) if header.seq == 0 => Err(ClientStep::Hold),
        (_, Some(packet)) => Ok(input.get(..HEADER_BYTES + packet.len()).unwrap_or(input)),
        (_, None) => Err(ClientStep::Need),
    }
}

fn has_statement_id(command: Command) -> bool {
    matches!(
        command,
        Command::StmtExecute
            | Command::StmtBulkExecute
            | Command::StmtSendLongData
            | Command::StmtReset
            | Command::StmtClose
    )
}

/// True for a text that only ends a transaction, in each letter case that drivers use.
fn ends_transaction(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    [&b"COMMIT"[..], b"ROLLBACK"]
        .iter()
        .any(|verb| text.eq_ignore_ascii_case(verb))
}

/// The value of a COM_SET_OPTION; `None`: another option.
fn multi_statements(payload: &[u8]) -> Option<bool> {
    match payload {
        [_, 0, 0] => Some(true),
        [_, 1, 0] => Some(false),
        _ => None,
    }
}

fn command_of(payload: &[u8]) -> Command {
    // An empty payload is an unknown command.
    payload
        .first()
        .map_or(Command::Other(0), |byte| Command::from_byte(*byte))
}
