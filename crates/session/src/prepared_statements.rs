//! The statements that a session has prepared: what an execution may do, and which of them are calls.

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
use headwater_wire::command::{BoundParameter, ExecutePacket, LAST_PREPARED};
use headwater_wire::reply::{PrepareOkPacket, SentColumnDefinitions};

pub use cached_columns::CachedColumns;
use internal_statements::InternalStatements;
pub use internal_statements::NarrowedKey;
pub use named_statements::NamedExecution;
use named_statements::NamedStatements;
pub use prepared_feed::{FeedExecution, PreparedFeed};
pub use settings_snapshot::SettingsSnapshot;

/// Types of more bytes than these (they come with names) are not kept, but for those of many parameters.
const MAX_TYPES_BYTES: usize = 256;
/// A type whose name is empty.
const TYPE_BYTES: usize = 3;
/// The flag of an execution that says only that a count of parameters comes along.
const PARAMETER_COUNT_AVAILABLE: u8 = 8;

/// Prepared statements, by id (COM_STMT_PREPARE) and by name (PREPARE).
#[derive(Debug)]
pub struct PreparedStatements {
    max_statements: usize,
    /// On MariaDB the one prepared last has a second id.
    mariadb: bool,
    by_id: HashMap<u32, PreparedStatement>,
    last: Option<u32>,
    /// A statement of Headwater's own was prepared behind it.
    last_is_internal: bool,
    internal: InternalStatements,
    /// Texts of feeds are kept up to so many bytes.
    max_text_bytes: usize,
    text_bytes: usize,
    by_name: NamedStatements,
}

/// What is known of a text that is being prepared.
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
    /// Types of the parameters, as the client gave them last.
    types: Option<Vec<u8>>,
    /// When they came: the server goes on reading text as the settings of then have it.
    types_settings: Option<Arc<SettingsSnapshot>>,
    /// Where the server has not seen those: their execution was owned.
    types_unsent: bool,
    /// Where the types in the last execution are from, if there were any.
    types_source: Option<ParameterTypesSource>,
    /// A value was sent ahead in pieces.
    long_data: bool,
    /// It was executed in a way after which the next one is the server's: with a cursor, or with types that were not read.
    untracked: bool,
    /// What its parameters came as: on MySQL.
    kinds: Vec<ParameterKinds>,
}

/// Who put types into an execution.
#[derive(Clone, Copy, Debug)]
enum ParameterTypesSource {
    Client,
    Headwater,
}

/// A call that is prepared.
#[derive(Clone, Debug)]
pub struct PreparedCall {
    form: PreparedCallForm,
    /// Its procedure has no database in front, and means the one that was current; how often that may have changed before.
    since: Option<u64>,
}

#[derive(Clone, Debug)]
enum PreparedCallForm {
    /// With all values.
    Whole(TimelineCall),
    /// With parameters or variables.
    Open(CallStatement),
}

/// What a text means follows these, while it is prepared.
#[derive(Clone, Copy, Debug)]
pub struct ParseContext<'a> {
    /// The current database, where it is known for certain.
    pub name: Option<&'a [u8]>,
    /// How often it may have changed before.
    pub changes: u64,
    /// Settings, where they are known for certain.
    pub parse_modes: Option<ParseModes<'a>>,
    /// How often a statement may have set them before.
    pub mode_changes: u64,
    /// How often stored code may have run before. What it sets of these texts are read by (`sql_mode`, character sets) ends with it.
    pub code_runs: u64,
}

/// Settings that a prepared statement may keep from when it was prepared: those that texts are read by (`sql_mode`, character sets), and
/// whatever else a server may work out once and for all, such as a literal of a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseModes<'a> {
    /// A number that stands for those that plans follow.
    pub plan_settings: u64,
    /// Those that rows depend on.
    pub row_settings: &'a [u8],
}

impl ParseModes<'_> {
    fn bytes(&self) -> Box<[u8]> {
        [&self.plan_settings.to_le_bytes()[..], self.row_settings]
            .concat()
            .into()
    }

    /// True where these are the same ones.
    fn equals(&self, bytes: &[u8]) -> bool {
        bytes.split_first_chunk().is_some_and(|(plans, rows)| {
            *plans == self.plan_settings.to_le_bytes() && rows == self.row_settings
        })
    }
}

/// What a parameter came as: MySQL goes on comparing it so, whatever comes.
#[derive(Clone, Copy, Debug, Default)]
struct ParameterKinds {
    /// A whole number.
    integer: bool,
    /// Another number, or a time.
    inexact: bool,
    /// Text.
    text: bool,
}

impl ParameterKinds {
    fn take(&mut self, parameter: &BoundParameter<'_>) {
        self.integer |= parameter.is_integer();
        self.inexact |= parameter.is_number_or_time() && !parameter.is_integer();
        self.text |= parameter.is_text();
    }

    /// True for text that was a number or a time before.
    fn turns_text(self, parameter: &BoundParameter<'_>) -> bool {
        parameter.is_text() && (self.integer || self.inexact)
    }

    /// True for a number that a double may not tell from others, and may be compared as one.
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
    /// What is called.
    pub call: RequestedCall,
}

impl PreparedStatements {
    /// Remembers up to so many of either kind, and texts of feeds up to so many bytes.
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

    /// So many of either kind are remembered.
    #[must_use]
    pub fn max_statements(&self) -> usize {
        self.max_statements
    }

    /// True where the server may hold some for the session.
    #[must_use]
    pub fn has_any(&self) -> bool {
        !self.by_id.is_empty()
    }

    /// The session was reset: there are none.
    pub fn clear(&mut self) {
        *self = PreparedStatements::new(self.max_statements, self.max_text_bytes, self.mariadb);
    }

    /// A text goes on to be prepared: until it is, the one prepared last is not known.
    pub fn begin(&mut self) {
        self.last = None;
        self.last_is_internal = false;
    }

    /// A text was prepared.
    pub fn insert(
        &mut self,
        mut text: PreparedText,
        prepared: PrepareOkPacket,
        told: SentColumnDefinitions,
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
                columns.receive(told);
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

    /// COM_STMT_SEND_LONG_DATA, or COM_STMT_RESET, which drops such.
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

    /// Reads a COM_STMT_EXECUTE of a call. `None`: it is none.
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

    /// An execution goes on to the server: the payload that it has to have, where the server lacks the types in it.
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
        // Else the server reads this text as it is to be read now, and the next ones as they were to be read when their types came.
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

    /// The payload that [`Self::relay_execution`] has made does not go to the server: it still lacks the types in it.
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

    /// The server has refused an execution: of types that came with it, it may have kept some.
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

    /// Reads a COM_STMT_EXECUTE of a feed's. `None`: it is none.
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
                    // What the server refuses leaves all that was before: no question goes in front of it.
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

    /// An execution of a feed's was answered by the server, which told this of its columns.
    pub fn receive_columns(&mut self, id: u32, told: SentColumnDefinitions) {
        if let Some(statement) = self.by_id.get_mut(&id)
            && statement.text.is_feed()
        {
            statement.cached_columns.receive(told);
        }
    }

    /// What the client was told last of a statement's columns.
    #[must_use]
    pub fn cached_columns(&self, id: u32) -> Option<&ColumnFingerprint> {
        self.by_id.get(&id)?.cached_columns.get()
    }

    /// The columns of an own statement; `said`: those that it was answered with now, if it was told any.
    pub fn internal_columns(
        &mut self,
        number: u32,
        said: Option<ColumnFingerprint>,
    ) -> Option<ColumnFingerprint> {
        self.internal.columns(number, said)
    }

    /// The parameters of a statement: how many, and their types.
    #[must_use]
    pub fn types(&self, id: u32) -> Option<(usize, &[u8])> {
        let statement = self.by_id.get(&id)?;
        let types = statement.types.as_deref().unwrap_or_default();
        Some((statement.parameters, types))
    }

    /// An execution goes on that is not read: it is too long, or one for many rows. Returns types that the server has not seen.
    pub fn relay_unread(&mut self, id: u32) -> Option<Vec<u8>> {
        let id = self.resolved(id);
        let statement = self.by_id.get_mut(&id)?;
        let unseen = std::mem::take(&mut statement.types_unsent);
        let types = statement.types.take().filter(|_| unseen);
        statement.mark_untracked();
        types
    }

    /// The statement that this id stands for.
    #[must_use]
    pub fn resolve_id(&self, id: u32) -> u32 {
        self.resolved(id)
    }

    /// The id that the server is to be told where it would take the client's for one of Headwater's own statements.
    #[must_use]
    pub fn substitute_id(&self, id: u32) -> Option<u32> {
        /// Ids are counted from 1.
        const UNUSED_ID: u32 = 0;
        match id {
            LAST_PREPARED => self
                .last_is_internal
                .then(|| self.last.unwrap_or(UNUSED_ID)),
            _ => self.internal.has(id).then_some(UNUSED_ID),
        }
    }

    /// True where statements of Headwater's own are prepared.
    #[must_use]
    pub fn has_internal(&self) -> bool {
        self.last_is_internal || self.internal.has_any()
    }

    /// The number of an own statement.
    pub fn internal(&mut self, made: &NarrowedKey) -> Option<u32> {
        self.internal.find(made)
    }

    /// An own statement is about to be prepared: those that are to be closed before it. `None`: it would fail as others did.
    pub fn make_room(&mut self) -> Option<Vec<u32>> {
        self.internal.make_room()
    }

    /// One was prepared; `None`: it could not be.
    pub fn internal_prepared(&mut self, made: NarrowedKey, prepared: Option<(u32, CachedColumns)>) {
        // On MariaDB it is the one prepared last: if it could not be, there is none.
        self.last_is_internal = self.mariadb;
        match prepared {
            Some((number, columns)) => self.internal.insert(made, number, columns),
            None => self.internal.fails(),
        }
    }

    /// Those that are made from this text are of no use.
    pub fn internal_failed(&mut self, of: &PreparedFeed) {
        self.internal.close_all(of);
    }

    /// An execution was answered without the server.
    pub fn executed_locally(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.types_unsent = statement.types.is_some();
        }
    }

    /// `PREPARE name` goes on to the server: what had this name is gone, whatever becomes of it.
    pub fn forget(&mut self, name: &str) {
        self.by_name.forget(name);
    }

    /// Statements with names may have come and gone unseen.
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

    /// `EXECUTE name USING` these variables; `None`: no call is known by this name.
    #[must_use]
    pub fn named_call(
        &self,
        name: &str,
        variables: Vec<String>,
        changes: u64,
    ) -> Option<RequestedCall> {
        self.by_name.call(name, variables, changes)
    }

    /// The feed's SELECT that has this name, and what it may do where it is relayed.
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

impl PreparedStatement {
    fn take_types(&mut self, execute: &ExecutePacket<'_>, current: ParseContext<'_>) {
        self.types_source = execute.types().map(|_| ParameterTypesSource::Client);
        if let Some(types) = execute.types() {
            let most = MAX_TYPES_BYTES.max(self.parameters.saturating_mul(TYPE_BYTES));
            self.types = (types.len() <= most).then(|| types.to_vec());
            let stamp = || Arc::new(SettingsSnapshot::take(current));
            self.types_settings = execute.has_text().then(stamp);
            self.types_unsent = false;
        }
    }

    /// It was executed in a way that is not followed: what types the server has for it is not known.
    fn mark_untracked(&mut self) {
        (self.types, self.types_unsent, self.untracked) = (None, false, true);
    }

    /// The values of an execution; `None`: some are not known to be numbers.
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
    /// What executions of a text may do, which is prepared in this database.
    #[must_use]
    pub fn new(class: StatementClass, text: &[u8], database: ParseContext<'_>) -> Self {
        let feed = matches!(class, StatementClass::Feed(_));
        let effects = match &class {
            StatementClass::Other(effects) | StatementClass::Feed(effects) => StatementEffects {
                // What runs twice runs as a text.
                is_pure_read: false,
                ..*effects
            },
            // Without an owned call before it, its tables may be views that run anything.
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

    /// How many bytes of it are kept.
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
    /// The call that a text is. Its procedure is found where it is prepared, wherever it is executed.
    fn new(class: StatementClass, database: ParseContext<'_>) -> Option<Self> {
        match class {
            StatementClass::Call(mut call) => {
                let since = qualify(&mut call.database, database);
                let form = PreparedCallForm::Whole(call);
                Some(PreparedCall { form, since })
            }
            StatementClass::UnboundCall(open) => Some(PreparedCall::open(open, database)),
            _ => None,
        }
    }

    /// The same for one whose values are not known.
    #[must_use]
    pub fn open(mut open: CallStatement, database: ParseContext<'_>) -> Self {
        let since = qualify(&mut open.database, database);
        let form = PreparedCallForm::Open(open);
        PreparedCall { form, since }
    }

    /// What it means after so many changes of the current database; `None`: nobody can tell.
    fn at(self, changes: u64) -> Option<PreparedCallForm> {
        let certain = self.since.is_none_or(|since| since == changes);
        certain.then_some(self.form)
    }
}

/// Puts the current database in front of a name that has none, or says since when it has been that one.
fn qualify(qualifier: &mut Option<String>, database: ParseContext<'_>) -> Option<u64> {
    if qualifier.is_none() {
        *qualifier = database
            .name
            .filter(|name| name.is_ascii())
            .and_then(|name| String::from_utf8(name.to_vec()).ok());
    }
    qualifier.is_none().then_some(database.changes)
}

fn bind_numbers(open: CallStatement, numbers: Vec<u64>) -> RequestedCall {
    let asked = open.session_expressions().next().is_some();
    // They mean what they meant when it was prepared.
    let quotes = open
        .arguments()
        .any(|argument| matches!(argument, CallArgument::DoubleQuoted(_)));
    match (asked, numbers.is_empty() && !quotes) {
        (false, _) => RequestedCall::Statement(open, CallValues::Given(numbers)),
        (true, true) => RequestedCall::in_session(open),
        // Which is which would have to be told apart.
        (true, false) => RequestedCall::Statement(open, CallValues::Invalid),
    }
}
