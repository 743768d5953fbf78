//! What is known of a session's state on the server, from the replies and commands that passed.

use std::time::{Duration, Instant};

use super::call_relay_reason::CallRelayReason;
use super::prepared_statements::{ParseContext, ParseModes};
use super::settings_probe::SessionSettings;
use super::tracked_value::TrackedValue;
use headwater_feed::template::TableName;
use headwater_sql::NameCase;
use headwater_statement::{StatementEffects, TableLockEffect};
use headwater_timeline::{DefinitionId, ProcedureForm};
use headwater_wire::response::OkPacket;
use headwater_wire::status;

/// A session's state after the last replies and commands.
///
/// Nothing here is guessed: what may have changed unseen is *stale*, and is queried within the next served call (only there do internal
/// queries change nothing that the call itself would not reset).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// Status flags of the last OK or EOF; stale after an ERR, which carries none.
    status: TrackedValue<u16>,
    /// The current database, in the server's spelling.
    database: TrackedValue<Vec<u8>>,
    case: NameCase,
    /// How many commands may have chosen another one.
    database_changes: u64,
    /// The settings that matter, without the database.
    settings: TrackedValue<SessionSettings>,
    /// How many commands may have set some, and how often stored code may have run.
    settings_changes: u64,
    code_runs: u64,
    /// No temporary table hides one of the definition's tables.
    tables: TrackedValue<()>,
    /// Tables of statements, not hidden by temporary ones.
    unshadowed: UnshadowedTables,
    /// The last procedure that the account may execute, by proof.
    may_execute: Option<ExecuteRight>,
    /// The last column that the account may read, by proof.
    may_read: Option<ReadRight>,
    /// Where a refused procedure was called, and how many commands may have chosen another database by its end.
    refused: Option<(Vec<u8>, u64)>,
    /// When this account last saw too little of a definition, and in which database.
    failed_check: Option<(Instant, Vec<u8>)>,
    /// The procedures with parse warnings that were relayed for these: the server parsed them in this version.
    parsed: Vec<(DefinitionId, ProcedureForm, u64)>,
    /// The last statement may have left warnings or an error, which the replies to some commands count. A call would have cleared them.
    conditions: bool,
    /// The server may hold an earlier statement's warnings or error: MariaDB does until a statement reads a table, or warns.
    older_conditions: bool,
    one_shot: OneShotTransaction,
    table_locks: TableLocks,
    /// Since the last moment without an open transaction, the session may have done more than read.
    wrote: bool,
    /// The next command may open a transaction's snapshot.
    may_open_snapshot: bool,
    /// A statement may have run a function, if an unknown one existed.
    assumes_no_functions: bool,
    /// The templates of which the server answered a statement, and when that was sent.
    answered_templates: Vec<(u64, Instant)>,
    /// When the login began; `None`: unknown, or the session has been in a transaction since.
    login_began: Option<Instant>,
    /// The last known time when the server received something from the session.
    server_contact: Option<Instant>,
    /// Calls are relayed until the session is reset.
    relay_reason: Option<CallRelayReason>,
    /// A command may have left state that a new session would lack.
    has_own_state: bool,
}

/// What may be set for the next transaction, or for the open one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OneShotTransaction {
    #[default]
    None,
    /// Only that it reads committed data without locks, or at the session's own level.
    Reads,
    Other,
}

/// Names that no temporary table has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum UnshadowedTables {
    /// No temporary table can be there yet.
    All,
    These(Vec<TableName>),
    #[default]
    None,
}

/// How often the server must receive something within a session's `wait_timeout` while it is served from memory.
pub const CONTACTS_PER_TIMEOUT: u32 = 50;
const MAX_ANSWERED_TEMPLATES: usize = 32;
const MAX_UNSHADOWED_TABLES: usize = 100;

/// A proved right to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRight {
    /// The database of the table.
    pub database: String,
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// When it was proved.
    pub at: Instant,
}

impl ReadRight {
    /// True for the right to this column.
    #[must_use]
    pub fn is_of(&self, database: &str, table: &str, column: &str) -> bool {
        self.database == database && self.table == table && self.column == column
    }
}

/// A session's transaction state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// None is open.
    None,
    /// One is open.
    Open,
    /// One was open, and an error may have ended it.
    Uncertain,
}

/// The client's `LOCK TABLES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TableLocks {
    #[default]
    None,
    /// It was sent, and may fail.
    Requested,
    /// The server holds them until the client releases them, whatever fails meanwhile.
    Held,
}

/// A proved right to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteRight {
    /// A definition's procedure, in one of its forms.
    pub of: (DefinitionId, ProcedureForm),
    /// When it was proved.
    pub at: Instant,
    /// How often definitions may have changed by then.
    pub epoch: u64,
}

impl SessionState {
    /// A new session: it cannot have a temporary table yet.
    #[must_use]
    pub fn new(database: Option<Vec<u8>>) -> Self {
        SessionState {
            database: TrackedValue::from(database),
            tables: TrackedValue::Proven(()),
            unshadowed: UnshadowedTables::All,
            ..SessionState::default()
        }
    }

    /// A command was relayed: forgets what it may have changed.
    pub fn command_relayed(&mut self, effects: StatementEffects) {
        self.has_own_state |= effects.leaves_session_state();
        self.assumes_no_functions |= effects.assumes_no_functions;
        if effects.next_transaction {
            let reads =
                effects.next_transaction_reads && self.one_shot != OneShotTransaction::Other;
            self.one_shot = match reads {
                true => OneShotTransaction::Reads,
                false => OneShotTransaction::Other,
            };
        }
        match effects.locks {
            TableLockEffect::Taken => self.table_locks = TableLocks::Requested,
            TableLockEffect::Released => self.table_locks = TableLocks::None,
            TableLockEffect::Unchanged => {}
        }
        if effects.database {
            self.doubt_database();
        }
        // SET ROLE, possibly in a procedure.
        if effects.settings || effects.stored_code {
            self.answered_templates.clear();
            self.settings.invalidate();
        }
        self.settings_changes += u64::from(effects.settings);
        self.code_runs += u64::from(effects.stored_code);
        // SET ROLE.
        if effects.settings {
            self.may_execute = None;
            self.may_read = None;
        }
        if effects.temp_tables || effects.stored_code {
            self.tables.invalidate();
            self.unshadowed = UnshadowedTables::None;
        }
    }

    /// A command, or an internal query before it, is about to be sent. `alone`: no other one is in flight.
    pub fn command_sent(&mut self, effects: StatementEffects, alone: bool) {
        if alone && self.status.is_proven() && self.transaction() == TransactionState::None {
            self.wrote = false;
            // Only these open one: a read outside transactions ends with its own.
            self.may_open_snapshot |=
                self.autocommit_is_off() || effects.locks == TableLockEffect::Released;
        }
        self.wrote |= !effects.only_reads();
    }

    /// A procedure runs, whose effects are not followed.
    pub fn call_relayed(&mut self) {
        self.wrote = true;
    }

    /// True once where what is sent now may open a transaction's snapshot: this is the last moment before it.
    pub fn take_snapshot_opening(&mut self) -> bool {
        std::mem::take(&mut self.may_open_snapshot)
    }

    /// True where a read uses the snapshot of its transaction, or may be the first read of one.
    #[must_use]
    pub fn reads_a_snapshot(&self) -> bool {
        self.transaction() != TransactionState::None || self.autocommit_is_off()
    }

    /// A call of a refused procedure of this database was relayed, or of another procedure.
    pub fn procedure_relayed(&mut self, refused: Option<Vec<u8>>) {
        self.refused = refused.map(|database| (database, self.database_changes));
    }

    /// Takes the flags and the database of a reply's last OK or EOF.
    pub fn observe(&mut self, ok: &OkPacket) {
        self.status = TrackedValue::Proven(ok.status);
        if self.table_locks == TableLocks::Requested {
            self.table_locks = TableLocks::Held;
        }
        // Only a statement that reads a table clears all that a transaction leaves in later status flags.
        if self.transaction() != TransactionState::None || self.autocommit_is_off() {
            self.login_began = None;
        }
        self.conditions = ok.warnings != 0;
        self.older_conditions |= self.conditions;
        if ok.truncated {
            self.database = TrackedValue::Unknown;
        } else if let Some(schema) = &ok.schema {
            self.enter(Some(schema.clone()));
        }
    }

    /// An ERR ended a reply: it may have ended a transaction, and a `LOCK TABLES` that was just sent may have failed.
    pub fn observe_error(&mut self) {
        if self.table_locks == TableLocks::Requested {
            self.table_locks = TableLocks::None;
        }
        self.conditions = true;
        self.older_conditions = true;
        self.status.invalidate();
    }

    /// An internal query cleared what the last statement left, or left warnings itself.
    pub fn set_conditions(&mut self, may_hold: bool) {
        self.conditions = may_hold;
    }

    /// A reply that was not read may have had warnings.
    pub fn may_hold_conditions(&mut self) {
        self.older_conditions = true;
    }

    /// A statement has read a table, and ended without warnings.
    pub fn clear_older_conditions(&mut self) {
        self.older_conditions = false;
    }

    /// A transaction began after a one-shot `SET TRANSACTION`, and has ended.
    pub fn one_shot_ended(&mut self) {
        self.one_shot = OneShotTransaction::None;
    }

    /// No statement so far ran an unknown function, or all that one may have changed is invalidated.
    pub fn confirm_no_functions(&mut self) {
        self.assumes_no_functions = false;
    }

    /// True where the known state holds only if the server had no functions when a statement ran.
    #[must_use]
    pub fn assumes_no_functions(&self) -> bool {
        self.assumes_no_functions
    }

    /// Sets how the server compares names of databases.
    pub fn set_name_case(&mut self, case: NameCase) {
        if self.case != case {
            self.case = case;
            let database = std::mem::take(&mut self.database);
            self.database = database.map(|name| case.fold(&name).into_owned());
        }
    }

    /// Another database may have been chosen.
    pub fn doubt_database(&mut self) {
        self.answered_templates.clear();
        self.database.invalidate();
        if self.unshadowed != UnshadowedTables::All {
            self.unshadowed = UnshadowedTables::None;
        }
        self.database_changes += 1;
    }

    /// Sets the current database, or that there is none.
    pub fn enter(&mut self, database: Option<Vec<u8>>) {
        let database = database.map(|name| self.case.fold(&name).into_owned());
        if self.unshadowed != UnshadowedTables::All
            && self.database.last_value() != database.as_ref()
        {
            self.unshadowed = UnshadowedTables::None;
        }
        self.database = TrackedValue::from(database);
    }

    /// The settings were queried, and allow served calls.
    pub fn settings_proved(&mut self, mut settings: SessionSettings) {
        self.enter(settings.database.take());
        self.settings = TrackedValue::Proven(settings);
    }

    /// No temporary table hides the definition's tables.
    pub fn tables_proved(&mut self) {
        self.tables = TrackedValue::Proven(());
    }

    /// No temporary table has this name.
    pub fn mark_unshadowed(&mut self, named: TableName) {
        match &mut self.unshadowed {
            UnshadowedTables::All => {}
            UnshadowedTables::These(names) => {
                if names.len() < MAX_UNSHADOWED_TABLES {
                    names.push(named);
                }
            }
            UnshadowedTables::None => self.unshadowed = UnshadowedTables::These(vec![named]),
        }
    }

    /// The account may read a column.
    pub fn read_right_proved(&mut self, right: ReadRight) {
        self.may_read = Some(right);
    }

    /// The next call uses other tables.
    pub fn invalidate_tables(&mut self) {
        self.tables.invalidate();
    }

    /// The account may execute a procedure.
    pub fn execute_right_proved(&mut self, right: ExecuteRight) {
        self.may_execute = Some(right);
    }

    /// This account saw too little of a definition in a database.
    pub fn check_failed(&mut self, now: Instant, database: Vec<u8>) {
        self.failed_check = Some((now, database));
    }

    /// True if this session had the procedure's text relayed, in this version: the server has sent its parse warnings.
    #[must_use]
    pub fn has_parsed(&self, definition: DefinitionId, form: ProcedureForm, epoch: u64) -> bool {
        self.parsed.contains(&(definition, form, epoch))
    }

    /// A procedure is relayed so that the server sends its parse warnings.
    pub fn procedure_parsed(&mut self, definition: DefinitionId, form: ProcedureForm, epoch: u64) {
        self.parsed.retain(|(.., then)| *then == epoch);
        self.parsed.push((definition, form, epoch));
    }

    /// The server sent warnings that cannot be repeated: the next call is relayed for them.
    pub fn forget_parsed(&mut self) {
        self.parsed.clear();
    }

    /// Calls are relayed for this reason until the session is reset.
    pub fn relay_all(&mut self, reason: CallRelayReason) {
        self.relay_reason = Some(reason);
    }

    /// The flags of the last reply; `None` where it carried none.
    #[must_use]
    pub fn flags(&self) -> Option<u16> {
        self.status.proven().copied()
    }

    /// Whether a transaction is open.
    #[must_use]
    pub fn transaction(&self) -> TransactionState {
        let is_open = |flags: &u16| flags & (status::IN_TRANS | status::IN_TRANS_READONLY) != 0;
        match &self.status {
            TrackedValue::Proven(flags) if is_open(flags) => TransactionState::Open,
            TrackedValue::Stale(flags) if is_open(flags) => TransactionState::Uncertain,
            _ => TransactionState::None,
        }
    }

    /// The last known database; `None` when there is none, or it is unknown.
    #[must_use]
    pub fn database(&self) -> Option<&[u8]> {
        self.database.last_value().map(Vec::as_slice)
    }

    /// The current database, if certain.
    #[must_use]
    pub fn certain_database(&self) -> Option<&[u8]> {
        self.database.proven().map(Vec::as_slice)
    }

    /// Where a refused procedure was called last, if only that procedure could have changed the database since.
    #[must_use]
    pub fn refused_in(&self) -> Option<&[u8]> {
        let refused = self.refused.as_ref();
        let refused = refused.filter(|(_, then)| *then == self.database_changes);
        refused.map(|(database, _)| &**database)
    }

    /// How many commands may have chosen another database.
    #[must_use]
    pub fn database_changes(&self) -> u64 {
        self.database_changes
    }

    /// The context of a text that is prepared now.
    #[must_use]
    pub fn current(&self) -> ParseContext<'_> {
        let settings = self.settings.proven();
        let modes = settings.and_then(|settings| {
            Some(ParseModes {
                plan_settings: settings.plan_settings,
                row_settings: settings.row_settings.as_deref()?,
            })
        });
        ParseContext {
            name: self.certain_database(),
            changes: self.database_changes,
            parse_modes: modes,
            mode_changes: self.settings_changes,
            code_runs: self.code_runs,
        }
    }

    /// True when the settings were queried, and nothing since could have changed them.
    #[must_use]
    pub fn are_settings_proven(&self) -> bool {
        self.settings.is_proven()
    }

    /// True when no temporary table hides one of the definition's tables.
    #[must_use]
    pub fn are_tables_proven(&self) -> bool {
        self.tables.is_proven()
    }

    /// This connection's server; `None` until it was queried.
    #[must_use]
    pub fn server(&self) -> Option<&[u8]> {
        self.settings.last_value().map(|settings| &*settings.server)
    }

    /// How long the server waits for an idle session before it ends it, as far as is known.
    #[must_use]
    pub fn wait_timeout(&self) -> Duration {
        let settings = self.settings.last_value();
        settings.map_or(Duration::MAX, |settings| settings.wait_timeout)
    }

    /// How far the session's time zone is ahead of UTC, in microseconds, if known and constant.
    #[must_use]
    pub fn utc_offset(&self) -> Option<i64> {
        self.settings.last_value()?.utc_offset
    }

    /// A digest of the settings that plans depend on.
    #[must_use]
    pub fn plan_settings(&self) -> u64 {
        let settings = self.settings.last_value();
        settings.map_or(0, |settings| settings.plan_settings)
    }

    /// The settings that rows depend on; `None`: uncertain, or rows may depend on more.
    #[must_use]
    pub fn row_settings(&self) -> Option<&[u8]> {
        self.settings.proven()?.row_settings.as_deref()
    }

    /// The server has answered a statement of this template that was sent then: the session may read its tables.
    pub fn template_answered(&mut self, template: u64, sent: Instant) {
        self.answered_templates
            .retain(|(answered_template, _)| *answered_template != template);
        if self.answered_templates.len() == MAX_ANSWERED_TEMPLATES {
            self.answered_templates.remove(0);
        }
        self.answered_templates.push((template, sent));
    }

    /// True where the server answered this session a statement of this template within this time before `now`. What other sessions of the
    /// account prove is in [`AccountRights`](crate::account_rights::AccountRights).
    #[must_use]
    pub fn may_read_template(&self, template: u64, within: Duration, now: Instant) -> bool {
        let mut answered = self.answered_templates.iter();
        answered.any(|(answered_template, sent)| {
            *answered_template == template && now.saturating_duration_since(*sent) < within
        })
    }

    /// The session's login began then.
    pub fn login_began_at(&mut self, login: Option<Instant>) {
        self.login_began = login;
    }

    /// When the session's login began, if known: the server read the account's rights later. `None` also where the session has been in a
    /// transaction.
    #[must_use]
    pub fn login_began(&self) -> Option<Instant> {
        self.login_began
    }

    /// The session's server, and what that looks the session's rights up by; `None`: uncertain, or replies show more than settings that new
    /// sessions have.
    #[must_use]
    pub fn account(&self) -> Option<(&[u8], &[u8])> {
        let settings = self.settings.proven()?;
        let is_known = !settings.server.is_empty() && !settings.account.is_empty();
        let is_plain =
            !(settings.bars_calls || settings.tracks_state || settings.tracks_transactions);
        (is_known && is_plain).then_some((&settings.server, &settings.account))
    }

    /// The server has received something from the session.
    pub fn note_server_contact(&mut self, now: Instant) {
        self.server_contact = Some(now);
    }

    /// True where the server received something from the session recently, compared to its timeout for idle sessions.
    #[must_use]
    pub fn has_recent_contact(&self, now: Instant) -> bool {
        let within = self.wait_timeout() / CONTACTS_PER_TIMEOUT;
        self.server_contact
            .is_some_and(|last_contact| now.saturating_duration_since(last_contact) < within)
    }

    /// The last proved right to execute.
    #[must_use]
    pub fn may_execute(&self) -> Option<&ExecuteRight> {
        self.may_execute.as_ref()
    }

    /// The last proved right to read.
    #[must_use]
    pub fn may_read(&self) -> Option<&ReadRight> {
        self.may_read.as_ref()
    }

    /// True when no temporary table hides this one, whatever the current database.
    #[must_use]
    pub fn is_unshadowed(&self, named: &TableName) -> bool {
        match &self.unshadowed {
            UnshadowedTables::All => true,
            UnshadowedTables::These(names) => names.contains(named),
            UnshadowedTables::None => false,
        }
    }

    /// When this account last saw too little of a database's definition.
    #[must_use]
    pub fn last_failed_check(&self, database: &[u8]) -> Option<Instant> {
        let checked = self.failed_check.as_ref();
        checked.filter(|(_, of)| of == database).map(|(at, _)| *at)
    }

    /// True when the last statement may have left warnings or an error.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.conditions
    }

    /// True where the server may show warnings or an error of a statement before the last one.
    #[must_use]
    pub fn may_have_older_conditions(&self) -> bool {
        self.older_conditions
    }

    /// Why no call can be served now, as far as is known without a query.
    #[must_use]
    pub fn obstacle(&self) -> Option<CallRelayReason> {
        if self.relay_reason.is_some() {
            return self.relay_reason;
        }
        if self.one_shot != OneShotTransaction::None {
            return Some(CallRelayReason::OneShotTransaction);
        }
        if self.table_locks != TableLocks::None {
            return Some(CallRelayReason::TableLocks);
        }
        if self.bars_calls() {
            return Some(CallRelayReason::Settings);
        }
        match self.transaction() {
            // The server's report about one that an error may have ended belongs to the client's next statement.
            TransactionState::Open | TransactionState::Uncertain => {
                Some(CallRelayReason::InTransaction)
            }
            TransactionState::None => self
                .autocommit_is_off()
                .then_some(CallRelayReason::AutocommitOff),
        }
    }

    /// Why no feed's statement can be narrowed now, as far as is known without a query.
    #[must_use]
    pub fn feed_obstacle(&self) -> Option<CallRelayReason> {
        let settings = self.settings.proven();
        // Memory matches no server for a session that reads uncommitted data. A session that steers the server's plans has no samples.
        if settings
            .is_some_and(|settings| settings.server.is_empty() || settings.has_own_plan_settings)
        {
            return Some(CallRelayReason::Settings);
        }
        // In a transaction the reply to a read reports that there was one.
        let reports_transactions = settings.is_some_and(|settings| settings.tracks_transactions);
        if self.has_unsent_state() || reports_transactions && self.reads_a_snapshot() {
            return Some(CallRelayReason::Settings);
        }
        let locks = settings.is_some_and(|settings| settings.reads_lock);
        let one_shot = match self.one_shot {
            OneShotTransaction::None => false,
            // The open transaction is the one that it was set for. Otherwise an internal query first would be that.
            OneShotTransaction::Reads => self.transaction() != TransactionState::Open,
            OneShotTransaction::Other => true,
        };
        if one_shot {
            return Some(CallRelayReason::OneShotTransaction);
        }
        if self.table_locks != TableLocks::None {
            return Some(CallRelayReason::TableLocks);
        }
        let barred = self.reads_a_snapshot() && (self.wrote || locks);
        barred.then_some(CallRelayReason::InTransaction)
    }

    /// True where a text in double quotes may be a name.
    #[must_use]
    pub fn quotes_names(&self) -> bool {
        let settings = self.settings.proven();
        settings.is_none_or(|settings| settings.quotes_names)
    }

    /// True where settings bar calls but no SELECT.
    #[must_use]
    pub fn bars_calls(&self) -> bool {
        let settings = self.settings.proven();
        settings.is_some_and(|settings| settings.bars_calls)
    }

    /// True where the next reply's end may report earlier changes: an internal query first would get that report.
    fn has_unsent_state(&self) -> bool {
        let settings = self.settings.last_value();
        let reports_changes = settings.is_some_and(|it| it.tracks_state || it.tracks_transactions);
        reports_changes && !self.status.is_proven()
    }

    /// A command leaves state that a new session would lack.
    pub fn mark_own_state(&mut self) {
        self.has_own_state = true;
    }

    /// True where a command may have left state that a new session would lack, and nothing has reset the session since.
    #[must_use]
    pub fn has_own_state(&self) -> bool {
        self.has_own_state
            || self.one_shot != OneShotTransaction::None
            || self.table_locks != TableLocks::None
    }

    /// True when autocommit was last known to be off, whether a transaction is open or not.
    #[must_use]
    pub fn autocommit_is_off(&self) -> bool {
        self.flags()
            .is_some_and(|flags| flags & status::AUTOCOMMIT == 0)
    }

    /// True when an InnoDB read could disturb the session, because its flags are unknown.
    #[must_use]
    pub fn must_probe_first(&self) -> bool {
        !self.status.is_proven() || self.database.last_value().is_none()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
