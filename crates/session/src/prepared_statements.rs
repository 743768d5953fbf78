//! A session's prepared statements: what an execution may do, and which statements are calls.

mod cached_columns;
mod internal_statements;
mod named_statements;
mod prepared_feed;
mod settings_snapshot;

use std::collections::HashMap;
use std::sync::Arc;

use super::call_request::{CallValues, RequestedCall};
use headwater_feed::result_metadata::ColumnFingerprint;
use headwater_statement::{
    CallArgument, CallStatement, StatementClass, StatementEffects, TimelineCall,
};
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{BoundParameter, Command, ExecutePacket, LAST_PREPARED};
use headwater_wire::packet;
use headwater_wire::reply::{PrepareOkPacket, SentColumnDefinitions};

pub use cached_columns::CachedColumns;
use internal_statements::InternalStatements;
pub use internal_statements::NarrowedKey;
pub use named_statements::NamedExecution;
use named_statements::NamedStatements;
pub use prepared_feed::{FeedExecution, PreparedFeed};
pub use settings_snapshot::SettingsSnapshot;

/// Longer type lists (types may have names) are not remembered, except those of many parameters.
const MAX_TYPES_BYTES: usize = 256;
/// The size of a type with an empty name.
const TYPE_BYTES: usize = 3;
/// The execution flag that only reports that a parameter count is present.
const PARAMETER_COUNT_AVAILABLE: u8 = 8;

/// Prepared statements, by id (COM_STMT_PREPARE) and by name (PREPARE).
#[derive(Debug)]
pub struct PreparedStatements {
    max_statements: usize,
    /// On MariaDB the last prepared statement has a second id.
    mariadb: bool,
    by_id: HashMap<u32, PreparedStatement>,
    last: Option<u32>,
    /// An internal statement was prepared after it.
    last_is_internal: bool,
    internal: InternalStatements,
    /// The limit on the bytes of feed texts.
    max_text_bytes: usize,
    text_bytes: usize,
    by_name: NamedStatements,
}

/// What is known of a text at its PREPARE.
#[derive(Debug)]
pub struct PreparedText {
    effects: StatementEffects,
    call: Option<PreparedCall>,
    feed: Option<Arc<PreparedFeed>>,
}

#[derive(Debug)]
struct PreparedStatement {
    text: PreparedText,
    parameters: usize,
    columns: usize,
    cached_columns: CachedColumns,
    types: Option<Vec<u8>>,
    /// The settings when they came: the server continues to read text by these.
    types_settings: Option<Arc<SettingsSnapshot>>,
    /// The server has not seen those types: their execution was served.
    types_unsent: bool,
    /// The origin of the last execution's types, if it had any.
    types_source: Option<ParameterTypesSource>,
    /// The client sent a value ahead in pieces.
    long_data: bool,
    /// The server must run the next execution, after one with a cursor or with types that were not read.
    untracked: bool,
    /// The types of its parameters so far, on MySQL.
    kinds: Vec<ParameterKinds>,
}

#[derive(Clone, Copy, Debug)]
enum ParameterTypesSource {
    Client,
    Headwater,
}

/// A prepared call.
#[derive(Clone, Debug)]
pub struct PreparedCall {
    form: PreparedCallForm,
    /// Its procedure has no qualifier, and uses the database that was current at PREPARE; the count of possible changes before.
    since: Option<u64>,
}

#[derive(Clone, Debug)]
enum PreparedCallForm {
    Whole(TimelineCall),
    /// With parameters or variables.
    Open(CallStatement),
}

/// What the meaning of a text depends on at its PREPARE.
#[derive(Clone, Copy, Debug)]
pub struct ParseContext<'a> {
    /// The current database, if certain.
    pub name: Option<&'a [u8]>,
    /// How many statements may have changed it so far.
    pub changes: u64,
    /// The settings, if certain.
    pub parse_modes: Option<ParseModes<'a>>,
    /// How many statements may have set them so far.
    pub mode_changes: u64,
    /// How often stored code may have run so far. The settings it makes for reading texts (`sql_mode`, character sets) end with it.
    pub code_runs: u64,
}

/// The settings that a prepared statement may retain from its PREPARE: those for reading texts (`sql_mode`, character sets), and others
/// that a server may apply once and for all, such as the time zone of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseModes<'a> {
    /// A digest of the settings that plans depend on.
    pub plan_settings: u64,
    /// The settings that rows depend on.
    pub row_settings: &'a [u8],
}

impl ParseModes<'_> {
    fn bytes(&self) -> Box<[u8]> {
        [&self.plan_settings.to_le_bytes()[..], self.row_settings]
            .concat()
            .into()
    }

    /// True where the digest and the settings are these bytes.
    fn equals(&self, bytes: &[u8]) -> bool {
        bytes.split_first_chunk().is_some_and(|(plans, rows)| {
            *plans == self.plan_settings.to_le_bytes() && rows == self.row_settings
        })
    }
}

/// The types of a parameter so far: MySQL compares it by these, whatever comes later.
#[derive(Clone, Copy, Debug, Default)]
struct ParameterKinds {
    integer: bool,
    /// Another number, or a date or time.
    inexact: bool,
    text: bool,
}

impl ParameterKinds {
    fn take(&mut self, parameter: &BoundParameter<'_>) {
        self.integer |= parameter.is_integer();
        self.inexact |= parameter.is_number_or_time() && !parameter.is_integer();
        self.text |= parameter.is_text();
    }

    /// True for text where a number or a time came before.
    fn turns_text(self, parameter: &BoundParameter<'_>) -> bool {
        parameter.is_text() && (self.integer || self.inexact)
    }

    /// True for a number that a double may not represent exactly, where it may be compared as one.
    fn loses_digits(self, parameter: &BoundParameter<'_>) -> bool {
        let other = self.inexact || self.text && !parameter.is_text();
        other && parameter.value().exceeds_double_precision()
    }
}

/// An execution of a prepared call.
#[derive(Debug)]
pub struct CallExecution {
    /// The statement.
    pub statement: u32,
    /// The call.
    pub call: RequestedCall,
}

impl PreparedStatements {
    /// Remembers up to `most` statements each by id and by name, and feed texts up to `most_bytes` bytes.
    #[must_use]
    pub fn new(most: usize, most_bytes: usize, mariadb: bool) -> Self {
        PreparedStatements {
            max_statements: most,
            mariadb,
            by_id: HashMap::new(),
            last: None,
            last_is_internal: false,
            internal: InternalStatements::default(),
            max_text_bytes: most_bytes,
            text_bytes: 0,
            by_name: NamedStatements::default(),
        }
    }

    /// The limit on statements each by id and by name.
    #[must_use]
    pub fn max_statements(&self) -> usize {
        self.max_statements
    }

    /// True where the server may hold prepared statements for the session.
    #[must_use]
    pub fn has_any(&self) -> bool {
        !self.by_id.is_empty()
    }

    /// Forgets all statements after a session reset.
    pub fn clear(&mut self) {
        *self = PreparedStatements::new(self.max_statements, self.max_text_bytes, self.mariadb);
    }

    /// A text is sent to be prepared: until the reply, the last prepared statement is unknown.
    pub fn begin(&mut self) {
        self.last = None;
        self.last_is_internal = false;
    }

    /// A text was prepared.
    pub fn insert(
        &mut self,
        mut text: PreparedText,
        prepared: PrepareOkPacket,
        sent_columns: SentColumnDefinitions,
    ) {
        self.last = Some(prepared.statement_id);
        if self.by_id.len() < self.max_statements {
            let bytes = text.bytes();
            if self.text_bytes.saturating_add(bytes) > self.max_text_bytes {
                text.feed = None;
            }
            self.text_bytes += text.bytes();
            let mut columns = CachedColumns::default();
            if text.is_feed() {
                columns.receive(sent_columns);
            }
            let statement = PreparedStatement {
                text,
                parameters: prepared.parameters.into(),
                columns: prepared.columns.into(),
                cached_columns: columns,
                types: None,
                types_settings: None,
                types_unsent: false,
                types_source: None,
                long_data: false,
                untracked: false,
                kinds: Vec::new(),
            };
            self.by_id.insert(prepared.statement_id, statement);
        }
    }

    /// COM_STMT_CLOSE.
    pub fn close(&mut self, id: u32) {
        let id = self.resolved(id);
        if let Some(closed) = self.by_id.remove(&id) {
            self.text_bytes -= closed.text.bytes();
        }
        if self.by_id.is_empty() {
            self.by_id = HashMap::new();
        }
        if self.last == Some(id) {
            self.last = None;
        }
    }

    /// Handles COM_STMT_SEND_LONG_DATA, or COM_STMT_RESET, which drops that data.
    pub fn long_data(&mut self, id: u32, sent: bool) {
        let id = self.resolved(id);
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.long_data = sent;
        }
    }

    /// What an execution may do.
    #[must_use]
    pub fn effects(&self, id: u32) -> StatementEffects {
        let statement = self.by_id.get(&self.resolved(id));
        statement.map_or(StatementEffects::ALL, |statement| statement.text.effects)
    }

    /// True for a statement that is a call.
    #[must_use]
    pub fn is_call(&self, id: u32) -> bool {
        let statement = self.by_id.get(&self.resolved(id));
        statement.is_some_and(|statement| statement.text.call.is_some())
    }

    /// Reads a COM_STMT_EXECUTE of a call. `None`: it is another statement.
    pub fn execution(
        &mut self,
        id: u32,
        payload: &[u8],
        capabilities: Capabilities,
        current: ParseContext<'_>,
    ) -> Option<CallExecution> {
        let id = self.resolved(id);
        let statement = self.by_id.get_mut(&id)?;
        let call = statement.text.call.clone()?;
        let numbers = statement.numbers(payload, capabilities, current);
        let wanted = match (call.at(current.changes), numbers) {
            (Some(PreparedCallForm::Open(open)), Some(numbers)) => bind_numbers(open, numbers),
            (Some(PreparedCallForm::Open(open)), None) => {
                RequestedCall::Statement(open, CallValues::Invalid)
            }
            (Some(PreparedCallForm::Whole(call)), Some(_)) => RequestedCall::Call(call),
            (Some(PreparedCallForm::Whole(_)), None) | (None, _) => RequestedCall::Unresolvable,
        };
        Some(CallExecution {
            statement: id,
            call: wanted,
        })
    }

    /// Relays an execution: returns the payload with types, where the server lacks them.
    pub fn relay_execution(
        &mut self,
        id: u32,
        payload: &[u8],
        capabilities: Capabilities,
        current: ParseContext<'_>,
    ) -> Option<Vec<u8>> {
        let statement = self.by_id.get_mut(&id)?;
        statement.long_data = false;
        if !statement.types_unsent {
            return None;
        }
        let typed = statement.types_settings.as_deref();
        // Otherwise the server reads this text by the settings of now, and later ones by those of when their types came.
        statement.types_unsent = typed.is_some_and(|typed| !typed.is_like(current, false));
        let execute = ExecutePacket::parse(payload, statement.parameters, capabilities).ok()?;
        match (execute.types(), &statement.types) {
            (None, Some(types)) => {
                statement.types_source = Some(ParameterTypesSource::Headwater);
                execute.with_types(payload, types)
            }
            _ => None,
        }
    }

    /// The payload from [`Self::relay_execution`] is not sent: the server still lacks its types.
    pub fn relay_cancelled(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id)
            && matches!(
                statement.types_source,
                Some(ParameterTypesSource::Headwater)
            )
        {
            statement.types_unsent = true;
        }
    }

    /// The server refused an execution: it may have kept some of its types.
    pub fn failed(&mut self, id: u32) {
        let Some(statement) = self.by_id.get_mut(&id) else {
            return;
        };
        match statement.types_source {
            Some(ParameterTypesSource::Client) => {
                (statement.types, statement.types_unsent) = (None, false)
            }
            Some(ParameterTypesSource::Headwater) => statement.types_unsent = true,
            None => {}
        }
    }

    /// True for a statement that is a feed's.
    #[must_use]
    pub fn is_feed(&self, id: u32) -> bool {
        let statement = self.by_id.get(&self.resolved(id));
        statement.is_some_and(|statement| statement.text.is_feed())
    }

    /// Reads a COM_STMT_EXECUTE of a feed's SELECT. `None`: it is another statement.
    pub fn feed(
        &mut self,
        id: u32,
        payload: &[u8],
        capabilities: Capabilities,
        current: ParseContext<'_>,
    ) -> Option<FeedExecution> {
        let statement = self.by_id.get_mut(&id)?;
        let feed = Arc::clone(statement.text.feed.as_ref()?);
        let (mut is_read, mut turned) = (false, false);
        match ExecutePacket::parse(payload, statement.parameters, capabilities) {
            Ok(execute) => {
                statement.take_types(&execute, current);
                statement.untracked |=
                    execute.flags & !PARAMETER_COUNT_AVAILABLE != 0 || execute.iterations != 1;
                let types = statement.types.as_deref().unwrap_or_default();
                if let Ok(each) = execute.split_parameters(types) {
                    // A value that the server refuses leaves all earlier results: no query may precede it.
                    is_read = !each.iter().any(BoundParameter::is_date_with_time);
                    if !self.mariadb {
                        let kinds = &mut statement.kinds;
                        kinds.resize(each.len(), ParameterKinds::default());
                        for (kinds, parameter) in kinds.iter_mut().zip(&each) {
                            turned |= kinds.turns_text(parameter);
                            is_read &=
                                !parameter.is_non_ascii_text() && !kinds.loses_digits(parameter);
                            kinds.take(parameter);
                        }
                    }
                }
            }
            Err(_) => statement.mark_untracked(),
        }
        let typed = statement.parameters == 0 || statement.types.is_some();
        Some(FeedExecution {
            statement: id,
            feed,
            columns: statement.columns,
            cached_columns: statement.cached_columns.get().cloned(),
            plain: typed && is_read && !statement.long_data && !statement.untracked,
            types_settings: statement.types_settings.clone(),
            has_turned_text: turned,
        })
    }

    /// The server answered an execution of a feed's SELECT with these column definitions.
    pub fn receive_columns(&mut self, id: u32, sent_columns: SentColumnDefinitions) {
        if let Some(statement) = self.by_id.get_mut(&id)
            && statement.text.is_feed()
        {
            statement.cached_columns.receive(sent_columns);
        }
    }

    /// The column definitions that the client received last for a statement.
    #[must_use]
    pub fn cached_columns(&self, id: u32) -> Option<&ColumnFingerprint> {
        self.by_id.get(&id)?.cached_columns.get()
    }

    /// The columns of an internal statement, after its last reply.
    pub fn internal_columns(
        &mut self,
        number: u32,
        sent_columns: Option<ColumnFingerprint>,
    ) -> Option<ColumnFingerprint> {
        self.internal.columns(number, sent_columns)
    }

    /// A statement's parameters: their count and types.
    #[must_use]
    pub fn types(&self, id: u32) -> Option<(usize, &[u8])> {
        let statement = self.by_id.get(&id)?;
        let types = statement.types.as_deref().unwrap_or_default();
        Some((statement.parameters, types))
    }

    /// Relays an execution that is not read: it is too long, or one for many rows. Returns types that the server has not seen.
    pub fn relay_unread(&mut self, id: u32) -> Option<Vec<u8>> {
        let id = self.resolved(id);
        let statement = self.by_id.get_mut(&id)?;
        let unseen = std::mem::take(&mut statement.types_unsent);
        let types = statement.types.take().filter(|_| unseen);
        statement.mark_untracked();
        types
    }

    /// The statement that this id denotes.
    #[must_use]
    pub fn resolve_id(&self, id: u32) -> u32 {
        self.resolved(id)
    }

    /// The id to send to the server where it would take the client's for an internal statement.
    #[must_use]
    pub fn substitute_id(&self, id: u32) -> Option<u32> {
        /// Ids start at 1.
        const UNUSED_ID: u32 = 0;
        match id {
            LAST_PREPARED => self
                .last_is_internal
                .then(|| self.last.unwrap_or(UNUSED_ID)),
            _ => self.internal.has(id).then_some(UNUSED_ID),
        }
    }

    /// True where internal statements are prepared.
    #[must_use]
    pub fn has_internal(&self) -> bool {
        self.last_is_internal || self.internal.has_any()
    }

    /// The id of an internal statement.
    pub fn internal(&mut self, key: &NarrowedKey) -> Option<u32> {
        self.internal.find(key)
    }

    /// Makes room for an internal statement: returns those to close before. `None`: it would fail as others did.
    pub fn make_room(&mut self) -> Option<Vec<u32>> {
        self.internal.make_room()
    }

    /// An internal statement was prepared; `None`: it could not be.
    pub fn internal_prepared(&mut self, key: NarrowedKey, prepared: Option<(u32, CachedColumns)>) {
        // On MariaDB it is the last prepared statement: if its PREPARE failed, there is none.
        self.last_is_internal = self.mariadb;
        match prepared {
            Some((number, columns)) => self.internal.insert(key, number, columns),
            None => self.internal.fails(),
        }
    }

    /// Drops the internal statements of this text, which failed.
    pub fn internal_failed(&mut self, feed: &PreparedFeed) {
        self.internal.close_all(feed);
    }

    /// An execution was served without the server.
    pub fn executed_locally(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.types_unsent = statement.types.is_some();
        }
    }

    /// `PREPARE name` is relayed: the name's earlier statement is gone, whatever the outcome.
    pub fn forget(&mut self, name: &str) {
        self.by_name.forget(name);
    }

    /// Named statements may have changed unseen.
    pub fn forget_names(&mut self) {
        self.by_name = NamedStatements::default();
    }

    /// `PREPARE name` of a call has succeeded.
    pub fn name(&mut self, name: String, call: PreparedCall) {
        self.by_name.put_call(name, call, self.max_statements);
    }

    /// `PREPARE name` of a feed's SELECT has succeeded.
    pub fn name_feed(&mut self, name: String, feed: PreparedFeed, effects: StatementEffects) {
        let most = (self.max_statements, self.max_text_bytes);
        self.by_name.put_feed(name, feed, effects, most);
    }

    /// `EXECUTE name USING` these variables; `None`: no known call has this name.
    #[must_use]
    pub fn named_call(
        &self,
        name: &str,
        variables: Vec<String>,
        changes: u64,
    ) -> Option<RequestedCall> {
        self.by_name.call(name, variables, changes)
    }

    /// The feed's SELECT with this name, and its effects where it is relayed.
    #[must_use]
    pub fn named_feed(&self, name: &str) -> Option<(Arc<PreparedFeed>, StatementEffects)> {
        self.by_name.feed(name).cloned()
    }

    fn resolved(&self, id: u32) -> u32 {
        match self.last {
            Some(last) if self.mariadb && id == LAST_PREPARED => last,
            _ => id,
        }
    }
}

/// Packets of COM_STMT_CLOSE, which has no reply.
pub(crate) fn close_packets(ids: Vec<u32>) -> Vec<u8> {
    let close = |id: u32| [&[Command::StmtClose.byte()][..], &id.to_le_bytes()].concat();
    let packets = ids.into_iter().map(|id| packet::encode_first(&close(id)));
    packets.flatten().collect()
}

impl PreparedStatement {
    fn take_types(&mut self, execute: &ExecutePacket<'_>, current: ParseContext<'_>) {
        self.types_source = execute.types().map(|_| ParameterTypesSource::Client);
        if let Some(types) = execute.types() {
            let max_bytes = MAX_TYPES_BYTES.max(self.parameters.saturating_mul(TYPE_BYTES));
            self.types = (types.len() <= max_bytes).then(|| types.to_vec());
            let snapshot = || Arc::new(SettingsSnapshot::take(current));
            self.types_settings = execute.has_text().then(snapshot);
            self.types_unsent = false;
        }
    }

    /// It was executed in a way that is not followed: the server's types for it are unknown.
    fn mark_untracked(&mut self) {
        (self.types, self.types_unsent, self.untracked) = (None, false, true);
    }

    /// The values of an execution; `None`: some may not be numbers.
    fn numbers(
        &mut self,
        payload: &[u8],
        capabilities: Capabilities,
        current: ParseContext<'_>,
    ) -> Option<Vec<u64>> {
        let execute = ExecutePacket::parse(payload, self.parameters, capabilities).ok()?;
        self.take_types(&execute, current);
        if execute.iterations != 1 || self.long_data {
            return None;
        }
        let types = match (self.parameters, &self.types) {
            (0, _) => &[][..],
            (_, types) => types.as_deref()?,
        };
        execute.integer_values(types).ok()?.into_iter().collect()
    }
}

impl PreparedText {
    /// What executions of a text prepared in this database may do.
    #[must_use]
    pub fn new(class: StatementClass, text: &[u8], database: ParseContext<'_>) -> Self {
        let feed = matches!(class, StatementClass::Feed(_));
        let effects = match &class {
            StatementClass::Other(effects) | StatementClass::Feed(effects) => StatementEffects {
                // Only texts are run again.
                is_pure_read: false,
                ..*effects
            },
            // Without a served call before it, its tables may be views that run any code.
            StatementClass::FollowUp(_) => StatementEffects::STORED_CODE,
            _ => StatementEffects::ALL,
        };
        PreparedText {
            effects,
            call: PreparedCall::new(class, database),
            feed: feed.then(|| Arc::new(PreparedFeed::new(text, database))),
        }
    }

    /// True for a SELECT of a feed.
    #[must_use]
    pub fn is_feed(&self) -> bool {
        self.feed.is_some()
    }

    fn bytes(&self) -> usize {
        self.feed.as_ref().map_or(0, |feed| feed.text().len())
    }

    /// What an execution may do.
    #[must_use]
    pub fn effects(&self) -> StatementEffects {
        self.effects
    }

    /// True for a call.
    #[must_use]
    pub fn is_call(&self) -> bool {
        self.call.is_some()
    }
}

impl PreparedCall {
    /// The call in a text. Its procedure belongs to the database of its PREPARE, wherever it is executed.
    fn new(class: StatementClass, database: ParseContext<'_>) -> Option<Self> {
        match class {
            StatementClass::Call(mut call) => {
                let since = qualify(&mut call.database, database);
                let form = PreparedCallForm::Whole(call);
                Some(PreparedCall { form, since })
            }
            StatementClass::UnboundCall(open) => Some(PreparedCall::statement(open, database)),
            _ => None,
        }
    }

    /// The same for a call with unknown values.
    #[must_use]
    pub fn statement(mut open: CallStatement, database: ParseContext<'_>) -> Self {
        let since = qualify(&mut open.database, database);
        let form = PreparedCallForm::Open(open);
        PreparedCall { form, since }
    }

    /// The call after this many changes of the current database; `None`: unknown.
    fn at(self, changes: u64) -> Option<PreparedCallForm> {
        let certain = self.since.is_none_or(|since| since == changes);
        certain.then_some(self.form)
    }
}

/// Qualifies a name with the current database, or returns the change count at which that was current.
fn qualify(qualifier: &mut Option<String>, database: ParseContext<'_>) -> Option<u64> {
    if qualifier.is_none() {
        *qualifier = database
            .name
            .filter(|name| name.is_ascii())
            .and_then(|name| String::from_utf8(name.to_vec()).ok());
    }
    qualifier.is_none().then_some(database.changes)
}

fn bind_numbers(statement: CallStatement, numbers: Vec<u64>) -> RequestedCall {
    let needs_session = statement.session_expressions().next().is_some();
    // They mean what they meant at PREPARE.
    let quotes = statement
        .arguments()
        .any(|argument| matches!(argument, CallArgument::DoubleQuoted(_)));
    match (needs_session, numbers.is_empty() && !quotes) {
        (false, _) => RequestedCall::Statement(statement, CallValues::Given(numbers)),
        (true, true) => RequestedCall::in_session(statement),
        // A mix of parameters and variables is not resolved.
        (true, false) => RequestedCall::Statement(statement, CallValues::Invalid),
    }
}
