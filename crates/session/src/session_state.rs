//! What is known of a session's state on the server, from what was seen to pass.

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

/// A session as the last replies and commands leave it.
///
/// Nothing here is guessed: what may have changed unseen is *stale*, and is asked of the server inside the next owned call (there,
/// and only there, own queries disturb nothing the call itself would not reset).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// Status flags of the last OK or EOF; stale behind an ERR, which carries none.
    status: TrackedValue<u16>,
    /// The current database, as the server has its name.
    database: TrackedValue<Vec<u8>>,
    /// How the server compares names of databases.
    case: NameCase,
    /// So many commands may have chosen another one.
    database_changes: u64,
    /// What matters of the session's settings, but for the database.
    settings: TrackedValue<SessionSettings>,
    /// So many commands may have set some, and so many may have run stored code.
    settings_changes: u64,
    code_runs: u64,
    /// No temporary table hides one of the definition's tables.
    tables: TrackedValue<()>,
    /// Tables of statements that no temporary table hides.
    unshadowed: UnshadowedTables,
    /// The procedure that the account was seen to be allowed to execute last.
    may_execute: Option<ExecuteRight>,
    /// The column that the account was seen to be allowed to read last.
    may_read: Option<ReadRight>,
    /// Where a refused procedure was called, and how many commands may have chosen another database up to its end.
    refused: Option<(Vec<u8>, u64)>,
    /// When this account last looked at a definition and saw too little, and in which database.
    failed_check: Option<(Instant, Vec<u8>)>,
    /// The procedures that warn of their texts and were relayed for it: the server has parsed them as they were then.
    parsed: Vec<(DefinitionId, ProcedureForm, u64)>,
    /// The last statement may have left warnings or an error, which the replies to some commands count. A call
    /// would have ended them.
    conditions: bool,
    /// The server may hold warnings or an error of a statement before it: MariaDB does until a statement reads a table, or warns.
    older_conditions: bool,
    /// A one-shot `SET TRANSACTION` may be in effect.
    one_shot: OneShotTransaction,
    /// The client has locked tables.
    locked: bool,
    /// Since the last moment when no transaction was open for certain, more may have been done than reading.
    wrote: bool,
    /// What goes to the server next may open a transaction's snapshot.
    may_open_snapshot: bool,
    /// A statement may have run a function, if there was one that was not known of.
    assumes_no_functions: bool,
    /// Templates of which the server answered a statement, and when that was sent.
    answered_templates: Vec<(u64, Instant)>,
    /// When the server heard of the session last, as far as that was noted.
    server_contact: Option<Instant>,
    /// Calls are relayed until the session is reset.
    relay_reason: Option<CallRelayReason>,
    /// A command may have left something that a new session would lack.
    has_own_state: bool,
}

/// What may be set for the next transaction, or for the one that is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OneShotTransaction {
    /// Nothing.
    #[default]
    None,
    /// That it reads what is committed, without locks, or as the session's own level says.
    Reads,
    /// Something else.
    Other,
}

/// Names that are certainly no temporary tables'.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum UnshadowedTables {
    /// No temporary table can be there yet.
    All,
    /// These, and those only.
    These(Vec<TableName>),
    /// None.
    #[default]
    None,
}

/// So many times within its `wait_timeout` a session is heard of by the server while it is answered from memory.
pub const CONTACTS_PER_TIMEOUT: u32 = 50;
/// So many templates are remembered that the server answered.
const MAX_ANSWERED_TEMPLATES: usize = 32;
/// More of them are not remembered.
const MAX_UNSHADOWED_TABLES: usize = 100;

/// A right to read that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRight {
    /// The database of the table.
    pub database: String,
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// When it was seen.
    pub at: Instant,
}

impl ReadRight {
    /// True for the right to this column.
    #[must_use]
    pub fn is_of(&self, database: &str, table: &str, column: &str) -> bool {
        self.database == database && self.table == table && self.column == column
    }
}

/// A session's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// None is open.
    None,
    /// One is open.
    Open,
    /// One was, and an error may have ended it.
    Uncertain,
}

/// A right to execute that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteRight {
    /// A definition's procedure, in one of its forms.
    pub of: (DefinitionId, ProcedureForm),
    /// When it was seen.
    pub at: Instant,
    /// How often definitions may have changed by then.
    pub epoch: u64,
}

impl SessionState {
    /// A session just logged in: it cannot hold a temporary table yet.
    #[must_use]
    pub fn new(database: Option<Vec<u8>>) -> Self {
        SessionState {
            database: TrackedValue::from(database),
            tables: TrackedValue::Proven(()),
            unshadowed: UnshadowedTables::All,
            ..SessionState::default()
        }
    }

    /// A command went on to the server: forgets what it may have changed.
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
            TableLockEffect::Taken => self.locked = true,
            TableLockEffect::Released => self.locked = false,
            TableLockEffect::Unchanged => {}
        }
        if effects.database {
            self.doubt_database();
        }
        // SET ROLE, in a procedure perhaps.
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

    /// A command is about to go on, or an own question in front of it. `alone`: no other is on its way.
    pub fn command_sent(&mut self, effects: StatementEffects, alone: bool) {
        if alone && self.status.is_proven() && self.transaction() == TransactionState::None {
            self.wrote = false;
            // Nothing else than these opens one: a read by itself ends with its transaction.
            self.may_open_snapshot |=
                self.autocommit_is_off() || effects.locks == TableLockEffect::Released;
        }
        self.wrote |= !effects.only_reads();
    }

    /// A procedure runs: what it does is not looked at.
    pub fn call_relayed(&mut self) {
        self.wrote = true;
    }

    /// True once where what goes to the server now may open a transaction's snapshot: this is the last moment that is before it.
    pub fn take_snapshot_opening(&mut self) -> bool {
        std::mem::take(&mut self.may_open_snapshot)
    }

    /// True where a read sees what was committed when its transaction began to read, or may be the first read of one.
    #[must_use]
    pub fn reads_a_snapshot(&self) -> bool {
        self.transaction() != TransactionState::None || self.autocommit_is_off()
    }

    /// A call went on to a procedure of this database that was refused, or to another one.
    pub fn procedure_relayed(&mut self, refused: Option<Vec<u8>>) {
        self.refused = refused.map(|database| (database, self.database_changes));
    }

    /// Takes in the flags and the database that a reply's last OK or EOF carries.
    pub fn observe(&mut self, ok: &OkPacket) {
        self.status = TrackedValue::Proven(ok.status);
        self.conditions = ok.warnings != 0;
        self.older_conditions |= self.conditions;
        if ok.truncated {
            self.database = TrackedValue::Unknown;
        } else if let Some(schema) = &ok.schema {
            self.enter(Some(schema.clone()));
        }
    }

    /// An ERR ended a reply: a transaction may have ended with it, or not; a `LOCK TABLES` may have
    /// failed, and lookups fail under locks that are there still.
    pub fn observe_error(&mut self) {
        self.locked = false;
        self.conditions = true;
        self.older_conditions = true;
        self.status.invalidate();
    }

    /// An own question ended what the last statement had left, or left warnings itself.
    pub fn set_conditions(&mut self, some: bool) {
        self.conditions = some;
    }

    /// A reply may have passed over warnings.
    pub fn may_hold_conditions(&mut self) {
        self.older_conditions = true;
    }

    /// A statement has read a table, and ended without any.
    pub fn clear_older_conditions(&mut self) {
        self.older_conditions = false;
    }

    /// A transaction has begun since a one-shot `SET TRANSACTION`, and ended.
    pub fn one_shot_ended(&mut self) {
        self.one_shot = OneShotTransaction::None;
    }

    /// No statement up to now has run a function that was not known of, or all is doubted that one may have done.
    pub fn confirm_no_functions(&mut self) {
        self.assumes_no_functions = false;
    }

    /// True where what is known of the session holds only if the server had no functions when a statement ran.
    #[must_use]
    pub fn assumes_no_functions(&self) -> bool {
        self.assumes_no_functions
    }

    /// The server compares names of databases so.
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

    /// This is the current database now, or there is none.
    pub fn enter(&mut self, database: Option<Vec<u8>>) {
        let database = database.map(|name| self.case.fold(&name).into_owned());
        if self.unshadowed != UnshadowedTables::All
            && self.database.last_value() != database.as_ref()
        {
            self.unshadowed = UnshadowedTables::None;
        }
        self.database = TrackedValue::from(database);
    }

    /// The settings were asked for: calls may be owned under them.
    pub fn settings_proved(&mut self, mut settings: SessionSettings) {
        self.enter(settings.database.take());
        self.settings = TrackedValue::Proven(settings);
    }

    /// No temporary table was seen in the definition's way.
    pub fn tables_proved(&mut self) {
        self.tables = TrackedValue::Proven(());
    }

    /// No temporary table of this name is there.
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

    /// The account was let read a column.
    pub fn read_right_proved(&mut self, right: ReadRight) {
        self.may_read = Some(right);
    }

    /// The next call has other tables.
    pub fn invalidate_tables(&mut self) {
        self.tables.invalidate();
    }

    /// The account was let execute a procedure.
    pub fn execute_right_proved(&mut self, right: ExecuteRight) {
        self.may_execute = Some(right);
    }

    /// This account looked at a database's definition and saw too little.
    pub fn check_failed(&mut self, now: Instant, database: Vec<u8>) {
        self.failed_check = Some((now, database));
    }

    /// A procedure that warns of its text is about to be relayed, for the server to say what it says. False where it was already, as
    /// it is now.
    pub fn relay_for_parse_warnings(
        &mut self,
        definition: DefinitionId,
        form: ProcedureForm,
        epoch: u64,
    ) -> bool {
        let this = (definition, form, epoch);
        if self.parsed.contains(&this) {
            return false;
        }
        self.parsed.retain(|(.., then)| *then == epoch);
        self.parsed.push(this);
        true
    }

    /// The server said what cannot be said again: the next call is relayed for it.
    pub fn forget_parsed(&mut self) {
        self.parsed.clear();
    }

    /// Calls are relayed for this reason until the session is reset.
    pub fn relay_all(&mut self, reason: CallRelayReason) {
        self.relay_reason = Some(reason);
    }

    /// The flags that the last reply carried; `None` where it carried none.
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

    /// The current database as last heard of; `None` when there is none, or it is not known.
    #[must_use]
    pub fn database(&self) -> Option<&[u8]> {
        self.database.last_value().map(Vec::as_slice)
    }

    /// The current database, where it is certain.
    #[must_use]
    pub fn certain_database(&self) -> Option<&[u8]> {
        self.database.proven().map(Vec::as_slice)
    }

    /// Where a refused procedure was called last, and nothing since but that procedure could have chosen another database.
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

    /// What a text means that is prepared now.
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

    /// True when the settings were asked for, and nothing since could have changed them.
    #[must_use]
    pub fn are_settings_proven(&self) -> bool {
        self.settings.is_proven()
    }

    /// True when no temporary table hides one of the definition's tables.
    #[must_use]
    pub fn are_tables_proven(&self) -> bool {
        self.tables.is_proven()
    }

    /// Which server this connection leads to; `None` until it was asked.
    #[must_use]
    pub fn server(&self) -> Option<&[u8]> {
        self.settings.last_value().map(|settings| &*settings.server)
    }

    /// The server ends the session when it has heard nothing for so long, as far as is known.
    #[must_use]
    pub fn wait_timeout(&self) -> Duration {
        let settings = self.settings.last_value();
        settings.map_or(Duration::MAX, |settings| settings.wait_timeout)
    }

    /// How far the session's time zone is ahead of UTC, in microseconds, if that is known and always the same.
    #[must_use]
    pub fn utc_offset(&self) -> Option<i64> {
        self.settings.last_value()?.utc_offset
    }

    /// A number that stands for the settings which plans follow.
    #[must_use]
    pub fn plan_settings(&self) -> u64 {
        let settings = self.settings.last_value();
        settings.map_or(0, |settings| settings.plan_settings)
    }

    /// What rows of the session's answers depend on; `None`: that is not certain, or rows may depend on more.
    #[must_use]
    pub fn row_settings(&self) -> Option<&[u8]> {
        self.settings.proven()?.row_settings.as_deref()
    }

    /// The server has answered a statement of this template that was sent then: the session may read what it reads.
    pub fn template_answered(&mut self, template: u64, sent: Instant) {
        self.answered_templates.retain(|(own, _)| *own != template);
        if self.answered_templates.len() == MAX_ANSWERED_TEMPLATES {
            self.answered_templates.remove(0);
        }
        self.answered_templates.push((template, sent));
    }

    /// True where the server has answered one of this template within so much time before `now`. What a session may read follows the
    /// moment when it entered its database, so that of another session of the account proves nothing.
    #[must_use]
    pub fn may_read_template(&self, template: u64, within: Duration, now: Instant) -> bool {
        let mut answered = self.answered_templates.iter();
        answered
            .any(|(own, sent)| *own == template && now.saturating_duration_since(*sent) < within)
    }

    /// The server has heard of the session.
    pub fn note_server_contact(&mut self, now: Instant) {
        self.server_contact = Some(now);
    }

    /// True where the server has heard of the session not long ago, as it counts: it ends those that are silent.
    #[must_use]
    pub fn has_recent_contact(&self, now: Instant) -> bool {
        let within = self.wait_timeout() / CONTACTS_PER_TIMEOUT;
        self.server_contact
            .is_some_and(|heard| now.saturating_duration_since(heard) < within)
    }

    /// The right to execute that was seen last.
    #[must_use]
    pub fn may_execute(&self) -> Option<&ExecuteRight> {
        self.may_execute.as_ref()
    }

    /// The right to read that was seen last.
    #[must_use]
    pub fn may_read(&self) -> Option<&ReadRight> {
        self.may_read.as_ref()
    }

    /// True when no temporary table hides this one, whatever database is the current one.
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

    /// Why no call can be owned now, as far as can be said without asking the server.
    #[must_use]
    pub fn obstacle(&self) -> Option<CallRelayReason> {
        if self.relay_reason.is_some() {
            return self.relay_reason;
        }
        if self.one_shot != OneShotTransaction::None {
            return Some(CallRelayReason::OneShotTransaction);
        }
        if self.locked {
            return Some(CallRelayReason::TableLocks);
        }
        if self.bars_calls() {
            return Some(CallRelayReason::Settings);
        }
        match self.transaction() {
            // What the server has to tell of one that an error may have ended belongs to the client's next statement.
            TransactionState::Open | TransactionState::Uncertain => {
                Some(CallRelayReason::InTransaction)
            }
            TransactionState::None => self
                .autocommit_is_off()
                .then_some(CallRelayReason::AutocommitOff),
        }
    }

    /// Why no feed's statement can be narrowed now, as far as can be said without asking the server.
    #[must_use]
    pub fn feed_obstacle(&self) -> Option<CallRelayReason> {
        let settings = self.settings.proven();
        // A session that reads what is not committed has no server that memory could be of.
        // Of one that steers the server's plans nothing was learned.
        if settings
            .is_some_and(|settings| settings.server.is_empty() || settings.has_own_plan_settings)
        {
            return Some(CallRelayReason::Settings);
        }
        // In a transaction a read tells that there was one.
        let told = settings.is_some_and(|settings| settings.tracks_transactions);
        if self.has_unsent_state() || told && self.reads_a_snapshot() {
            return Some(CallRelayReason::Settings);
        }
        let locks = settings.is_some_and(|settings| settings.reads_lock);
        let one_shot = match self.one_shot {
            OneShotTransaction::None => false,
            // The transaction that is open is the one that it was set for. An own question in front of it would be that.
            OneShotTransaction::Reads => self.transaction() != TransactionState::Open,
            OneShotTransaction::Other => true,
        };
        if one_shot {
            return Some(CallRelayReason::OneShotTransaction);
        }
        if self.locked {
            return Some(CallRelayReason::TableLocks);
        }
        let barred = self.reads_a_snapshot() && (self.wrote || locks);
        barred.then_some(CallRelayReason::InTransaction)
    }

    /// True where settings bar calls, and no SELECT.
    #[must_use]
    pub fn bars_calls(&self) -> bool {
        let settings = self.settings.proven();
        settings.is_some_and(|settings| settings.bars_calls)
    }

    /// True where the end of the next reply may have to tell of what came before: an own question in front of it would be told that.
    fn has_unsent_state(&self) -> bool {
        let settings = self.settings.last_value();
        let told = settings.is_some_and(|it| it.tracks_state || it.tracks_transactions);
        told && !self.status.is_proven()
    }

    /// A command leaves something that a new session would lack.
    pub fn mark_own_state(&mut self) {
        self.has_own_state = true;
    }

    /// True where a command may have left something that a new session would lack, and nothing has reset the session since.
    #[must_use]
    pub fn has_own_state(&self) -> bool {
        self.has_own_state || self.one_shot != OneShotTransaction::None || self.locked
    }

    /// True when the session was last heard to have autocommit off, whether a transaction is open or not.
    #[must_use]
    pub fn autocommit_is_off(&self) -> bool {
        self.flags()
            .is_some_and(|flags| flags & status::AUTOCOMMIT == 0)
    }

    /// True when an InnoDB read could disturb the session: its flags are not known.
    #[must_use]
    pub fn must_probe_first(&self) -> bool {
        !self.status.is_proven() || self.database.last_value().is_none()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
