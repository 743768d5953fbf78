//! The statements that a session has prepared: what an execution may do, and which of them are calls.

mod by_name;
mod columns;
mod feed;
mod own;
mod stamp;

use std::collections::HashMap;
use std::sync::Arc;

use super::asked::{Values, Wanted};
use headwater_feed::variants::Columns;
use headwater_statement::{Argument, Call, CallStatement, Class, Effects};
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{Execute, LAST_PREPARED, Parameter};
use headwater_wire::reply::{Prepared, ToldColumns};

use by_name::ByName;
pub use by_name::ExecutedByName;
pub use columns::KeptColumns;
pub use feed::{Executed, PreparedFeed};
pub use own::Made;
use own::OwnStatements;
pub use stamp::SettingsStamp;

/// Types of more bytes than these (they come with names) are not kept, but for those of many parameters.
const TYPES_BYTES: usize = 256;
/// A type whose name is empty.
const TYPE_BYTES: usize = 3;
/// The flag of an execution that says only that a count of parameters comes along.
const COUNTED: u8 = 8;

/// Prepared statements, by id (COM_STMT_PREPARE) and by name (PREPARE).
#[derive(Debug)]
pub struct Statements {
    most: usize,
    /// On MariaDB the one prepared last has a second id.
    mariadb: bool,
    by_id: HashMap<u32, Statement>,
    last: Option<u32>,
    /// A statement of Headwater's own was prepared behind it.
    last_is_own: bool,
    own: OwnStatements,
    /// Texts of feeds are kept up to so many bytes.
    most_bytes: usize,
    bytes: usize,
    by_name: ByName,
}

/// What is known of a text that is being prepared.
#[derive(Debug)]
pub struct Text {
    effects: Effects,
    call: Option<PreparedCall>,
    feed: Option<Arc<PreparedFeed>>,
}

#[derive(Debug)]
struct Statement {
    text: Text,
    parameters: usize,
    columns: usize,
    told: KeptColumns,
    /// Types of the parameters, as the client gave them last.
    types: Option<Vec<u8>>,
    /// When they came: the server goes on reading text as the settings of then have it.
    typed: Option<Arc<SettingsStamp>>,
    /// Where the server has not seen those: their execution was owned.
    unseen: bool,
    /// Where the types in the last execution are from, if there were any.
    source: Option<TypesSource>,
    /// A value was sent ahead in pieces.
    long_data: bool,
    /// It was executed in a way after which the next one is the server's: with a cursor, or with types that were not read.
    strange: bool,
    /// What its parameters came as: on MySQL.
    kinds: Vec<Kinds>,
}

/// Who put types into an execution.
#[derive(Clone, Copy, Debug)]
enum TypesSource {
    Client,
    Headwater,
}

/// A call that is prepared.
#[derive(Clone, Debug)]
pub struct PreparedCall {
    form: CallForm,
    /// Its procedure has no database in front, and means the one that was current; how often that may have changed before.
    since: Option<u64>,
}

#[derive(Clone, Debug)]
enum CallForm {
    /// With all values.
    Whole(Call),
    /// With parameters or variables.
    Open(CallStatement),
}

/// What a text means follows these, while it is prepared.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// The current database, where it is known for certain.
    pub name: Option<&'a [u8]>,
    /// How often it may have changed before.
    pub changes: u64,
    /// Settings, where they are known for certain.
    pub modes: Option<Modes<'a>>,
    /// How often a statement may have set them before.
    pub mode_changes: u64,
    /// How often stored code may have run before. What it sets of these texts are read by (`sql_mode`, character sets) ends with it.
    pub code_runs: u64,
}

/// Settings that a prepared statement may keep from when it was prepared: those that texts are read by (`sql_mode`, character sets), and
/// whatever else a server may work out once and for all, such as a literal of a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes<'a> {
    /// A number that stands for those that plans follow.
    pub plans: u64,
    /// Those that rows depend on.
    pub rows: &'a [u8],
}

impl Modes<'_> {
    fn bytes(&self) -> Box<[u8]> {
        [&self.plans.to_le_bytes()[..], self.rows].concat().into()
    }

    /// True where these are the same ones.
    fn are(&self, bytes: &[u8]) -> bool {
        bytes
            .split_first_chunk()
            .is_some_and(|(plans, rows)| *plans == self.plans.to_le_bytes() && rows == self.rows)
    }
}

/// What a parameter came as: MySQL goes on comparing it so, whatever comes.
#[derive(Clone, Copy, Debug, Default)]
struct Kinds {
    /// A whole number.
    integer: bool,
    /// Another number, or a time.
    inexact: bool,
    /// Text.
    text: bool,
}

impl Kinds {
    fn take(&mut self, parameter: &Parameter<'_>) {
        self.integer |= parameter.is_integer();
        self.inexact |= parameter.is_number_or_time() && !parameter.is_integer();
        self.text |= parameter.is_text();
    }

    /// True for text that was a number or a time before.
    fn turns_text(self, parameter: &Parameter<'_>) -> bool {
        parameter.is_text() && (self.integer || self.inexact)
    }

    /// True for a number that a double may not tell from others, and may be compared as one.
    fn loses_digits(self, parameter: &Parameter<'_>) -> bool {
        let other = self.inexact || self.text && !parameter.is_text();
        other && parameter.value().is_great()
    }
}

/// An execution of a prepared call.
#[derive(Debug)]
pub struct Execution {
    /// The statement.
    pub statement: u32,
    /// What is called.
    pub wanted: Wanted,
}

impl Statements {
    /// Remembers up to so many of either kind, and texts of feeds up to so many bytes.
    #[must_use]
    pub fn new(most: usize, most_bytes: usize, mariadb: bool) -> Self {
        Statements {
            most,
            mariadb,
            by_id: HashMap::new(),
            last: None,
            last_is_own: false,
            own: OwnStatements::default(),
            most_bytes,
            bytes: 0,
            by_name: ByName::default(),
        }
    }

    /// So many of either kind are remembered.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// True where the server may hold some for the session.
    #[must_use]
    pub fn has_any(&self) -> bool {
        !self.by_id.is_empty()
    }

    /// The session was reset: there are none.
    pub fn clear(&mut self) {
        *self = Statements::new(self.most, self.most_bytes, self.mariadb);
    }

    /// A text goes on to be prepared: until it is, the one prepared last is not known.
    pub fn begin(&mut self) {
        self.last = None;
        self.last_is_own = false;
    }

    /// A text was prepared.
    pub fn insert(&mut self, mut text: Text, prepared: Prepared, told: ToldColumns) {
        self.last = Some(prepared.statement);
        if self.by_id.len() < self.most {
            let bytes = text.bytes();
            if self.bytes.saturating_add(bytes) > self.most_bytes {
                text.feed = None;
            }
            self.bytes += text.bytes();
            let mut columns = KeptColumns::default();
            if text.is_feed() {
                columns.hear(told);
            }
            let statement = Statement {
                text,
                parameters: prepared.parameters.into(),
                columns: prepared.columns.into(),
                told: columns,
                types: None,
                typed: None,
                unseen: false,
                source: None,
                long_data: false,
                strange: false,
                kinds: Vec::new(),
            };
            self.by_id.insert(prepared.statement, statement);
        }
    }

    /// COM_STMT_CLOSE.
    pub fn close(&mut self, id: u32) {
        let id = self.resolved(id);
        if let Some(closed) = self.by_id.remove(&id) {
            self.bytes -= closed.text.bytes();
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
    pub fn effects(&self, id: u32) -> Effects {
        let statement = self.by_id.get(&self.resolved(id));
        statement.map_or(Effects::ALL, |statement| statement.text.effects)
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
        current: Current<'_>,
    ) -> Option<Execution> {
        let id = self.resolved(id);
        let statement = self.by_id.get_mut(&id)?;
        let call = statement.text.call.clone()?;
        let numbers = statement.numbers(payload, capabilities, current);
        let wanted = match (call.at(current.changes), numbers) {
            (Some(CallForm::Open(open)), Some(numbers)) => open_with(open, numbers),
            (Some(CallForm::Open(open)), None) => Wanted::Statement(open, Values::Unfit),
            (Some(CallForm::Whole(call)), Some(_)) => Wanted::Call(call),
            (Some(CallForm::Whole(_)), None) | (None, _) => Wanted::Astray,
        };
        Some(Execution {
            statement: id,
            wanted,
        })
    }

    /// An execution goes on to the server: the payload that it has to have, where the server lacks the types in it.
    pub fn relayed(
        &mut self,
        id: u32,
        payload: &[u8],
        capabilities: Capabilities,
        current: Current<'_>,
    ) -> Option<Vec<u8>> {
        let statement = self.by_id.get_mut(&id)?;
        statement.long_data = false;
        if !statement.unseen {
            return None;
        }
        let typed = statement.typed.as_deref();
        // Else the server reads this text as it is to be read now, and the next ones as they were to be read when their types came.
        statement.unseen = typed.is_some_and(|typed| !typed.is_like(current, false));
        let execute = Execute::parse(payload, statement.parameters, capabilities).ok()?;
        match (execute.types(), &statement.types) {
            (None, Some(types)) => {
                statement.source = Some(TypesSource::Headwater);
                execute.with_types(payload, types)
            }
            _ => None,
        }
    }

    /// The payload that [`Self::relayed`] has made does not go to the server: it still lacks the types in it.
    pub fn not_sent(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id)
            && matches!(statement.source, Some(TypesSource::Headwater))
        {
            statement.unseen = true;
        }
    }

    /// The server has refused an execution: of types that came with it, it may have kept some.
    pub fn failed(&mut self, id: u32) {
        let Some(statement) = self.by_id.get_mut(&id) else {
            return;
        };
        match statement.source {
            Some(TypesSource::Client) => (statement.types, statement.unseen) = (None, false),
            Some(TypesSource::Headwater) => statement.unseen = true,
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
        current: Current<'_>,
    ) -> Option<Executed> {
        let statement = self.by_id.get_mut(&id)?;
        let feed = Arc::clone(statement.text.feed.as_ref()?);
        let (mut is_read, mut turned) = (false, false);
        match Execute::parse(payload, statement.parameters, capabilities) {
            Ok(execute) => {
                statement.take_types(&execute, current);
                statement.strange |= execute.flags & !COUNTED != 0 || execute.iterations != 1;
                let types = statement.types.as_deref().unwrap_or_default();
                if let Ok(each) = execute.each(types) {
                    // What the server refuses leaves all that was before: no question goes in front of it.
                    is_read = !each.iter().any(Parameter::is_malformed);
                    if !self.mariadb {
                        let kinds = &mut statement.kinds;
                        kinds.resize(each.len(), Kinds::default());
                        for (kinds, parameter) in kinds.iter_mut().zip(&each) {
                            turned |= kinds.turns_text(parameter);
                            is_read &=
                                !parameter.is_beyond_ascii() && !kinds.loses_digits(parameter);
                            kinds.take(parameter);
                        }
                    }
                }
            }
            Err(_) => statement.is_strange(),
        }
        let typed = statement.parameters == 0 || statement.types.is_some();
        Some(Executed {
            statement: id,
            feed,
            columns: statement.columns,
            told: statement.told.get().cloned(),
            plain: typed && is_read && !statement.long_data && !statement.strange,
            typed: statement.typed.clone(),
            turned,
        })
    }

    /// An execution of a feed's was answered by the server, which told this of its columns.
    pub fn heard(&mut self, id: u32, told: ToldColumns) {
        if let Some(statement) = self.by_id.get_mut(&id)
            && statement.text.is_feed()
        {
            statement.told.hear(told);
        }
    }

    /// What the client was told last of a statement's columns.
    #[must_use]
    pub fn told(&self, id: u32) -> Option<&Columns> {
        self.by_id.get(&id)?.told.get()
    }

    /// The columns of an own statement; `said`: those that it was answered with now, if it was told any.
    pub fn own_columns(&mut self, number: u32, said: Option<Columns>) -> Option<Columns> {
        self.own.columns(number, said)
    }

    /// The parameters of a statement: how many, and their types.
    #[must_use]
    pub fn types(&self, id: u32) -> Option<(usize, &[u8])> {
        let statement = self.by_id.get(&id)?;
        let types = statement.types.as_deref().unwrap_or_default();
        Some((statement.parameters, types))
    }

    /// An execution goes on that is not read: it is too long, or one for many rows. Returns types that the server has not seen.
    pub fn unread(&mut self, id: u32) -> Option<Vec<u8>> {
        let id = self.resolved(id);
        let statement = self.by_id.get_mut(&id)?;
        let unseen = std::mem::take(&mut statement.unseen);
        let types = statement.types.take().filter(|_| unseen);
        statement.is_strange();
        types
    }

    /// The statement that this id stands for.
    #[must_use]
    pub fn called(&self, id: u32) -> u32 {
        self.resolved(id)
    }

    /// The id that the server is to be told where it would take the client's for one of Headwater's own statements.
    #[must_use]
    pub fn meant(&self, id: u32) -> Option<u32> {
        /// Ids are counted from 1.
        const NOBODYS: u32 = 0;
        match id {
            LAST_PREPARED => self.last_is_own.then(|| self.last.unwrap_or(NOBODYS)),
            _ => self.own.has(id).then_some(NOBODYS),
        }
    }

    /// True where statements of Headwater's own are prepared.
    #[must_use]
    pub fn has_own(&self) -> bool {
        self.last_is_own || self.own.has_any()
    }

    /// The number of an own statement.
    pub fn own(&mut self, made: &Made) -> Option<u32> {
        self.own.find(made)
    }

    /// An own statement is about to be prepared: those that are to be closed before it. `None`: it would fail as others did.
    pub fn make_room(&mut self) -> Option<Vec<u32>> {
        self.own.make_room()
    }

    /// One was prepared; `None`: it could not be.
    pub fn own_prepared(&mut self, made: Made, prepared: Option<(u32, KeptColumns)>) {
        // On MariaDB it is the one prepared last: if it could not be, there is none.
        self.last_is_own = self.mariadb;
        match prepared {
            Some((number, columns)) => self.own.insert(made, number, columns),
            None => self.own.fails(),
        }
    }

    /// Those that are made from this text are of no use.
    pub fn own_failed(&mut self, of: &PreparedFeed) {
        self.own.end_all(of);
    }

    /// An execution was answered without the server.
    pub fn owned(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.unseen = statement.types.is_some();
        }
    }

    /// `PREPARE name` goes on to the server: what had this name is gone, whatever becomes of it.
    pub fn forget(&mut self, name: &str) {
        self.by_name.forget(name);
    }

    /// Statements with names may have come and gone unseen.
    pub fn forget_names(&mut self) {
        self.by_name = ByName::default();
    }

    /// `PREPARE name` of a call has succeeded.
    pub fn name(&mut self, name: String, call: PreparedCall) {
        self.by_name.put_call(name, call, self.most);
    }

    /// `PREPARE name` of a feed's SELECT has succeeded.
    pub fn name_feed(&mut self, name: String, feed: PreparedFeed, effects: Effects) {
        let most = (self.most, self.most_bytes);
        self.by_name.put_feed(name, feed, effects, most);
    }

    /// `EXECUTE name USING` these variables; `None`: no call is known by this name.
    #[must_use]
    pub fn named(&self, name: &str, variables: Vec<String>, changes: u64) -> Option<Wanted> {
        self.by_name.call(name, variables, changes)
    }

    /// The feed's SELECT that has this name, and what it may do where it is relayed.
    #[must_use]
    pub fn named_feed(&self, name: &str) -> Option<(Arc<PreparedFeed>, Effects)> {
        self.by_name.feed(name).cloned()
    }

    fn resolved(&self, id: u32) -> u32 {
        match self.last {
            Some(last) if self.mariadb && id == LAST_PREPARED => last,
            _ => id,
        }
    }
}

impl Statement {
    fn take_types(&mut self, execute: &Execute<'_>, current: Current<'_>) {
        self.source = execute.types().map(|_| TypesSource::Client);
        if let Some(types) = execute.types() {
            let most = TYPES_BYTES.max(self.parameters.saturating_mul(TYPE_BYTES));
            self.types = (types.len() <= most).then(|| types.to_vec());
            let stamp = || Arc::new(SettingsStamp::now(current));
            self.typed = execute.has_text().then(stamp);
            self.unseen = false;
        }
    }

    /// It was executed in a way that is not followed: what types the server has for it is not known.
    fn is_strange(&mut self) {
        (self.types, self.unseen, self.strange) = (None, false, true);
    }

    /// The values of an execution; `None`: some are not known to be numbers.
    fn numbers(
        &mut self,
        payload: &[u8],
        capabilities: Capabilities,
        current: Current<'_>,
    ) -> Option<Vec<u64>> {
        let execute = Execute::parse(payload, self.parameters, capabilities).ok()?;
        self.take_types(&execute, current);
        if execute.iterations != 1 || self.long_data {
            return None;
        }
        let types = match (self.parameters, &self.types) {
            (0, _) => &[][..],
            (_, types) => types.as_deref()?,
        };
        execute.numbers(types).ok()?.into_iter().collect()
    }
}

impl Text {
    /// What executions of a text may do, which is prepared in this database.
    #[must_use]
    pub fn new(class: Class, text: &[u8], database: Current<'_>) -> Self {
        let feed = matches!(class, Class::Feed(_));
        let effects = match &class {
            Class::Other(effects) | Class::Feed(effects) => Effects {
                // What runs twice runs as a text.
                spares: false,
                ..*effects
            },
            // Without an owned call before it, its tables may be views that run anything.
            Class::Tail(_) => Effects::STORED_CODE,
            _ => Effects::ALL,
        };
        Text {
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
    pub fn effects(&self) -> Effects {
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
    fn new(class: Class, database: Current<'_>) -> Option<Self> {
        match class {
            Class::Call(mut call) => {
                let since = place(&mut call.database, database);
                let form = CallForm::Whole(call);
                Some(PreparedCall { form, since })
            }
            Class::Unbound(open) => Some(PreparedCall::open(open, database)),
            _ => None,
        }
    }

    /// The same for one whose values are not known.
    #[must_use]
    pub fn open(mut open: CallStatement, database: Current<'_>) -> Self {
        let since = place(&mut open.database, database);
        let form = CallForm::Open(open);
        PreparedCall { form, since }
    }

    /// What it means after so many changes of the current database; `None`: nobody can tell.
    fn at(self, changes: u64) -> Option<CallForm> {
        let certain = self.since.is_none_or(|since| since == changes);
        certain.then_some(self.form)
    }
}

/// Puts the current database in front of a name that has none, or says since when it has been that one.
fn place(qualifier: &mut Option<String>, database: Current<'_>) -> Option<u64> {
    if qualifier.is_none() {
        *qualifier = database
            .name
            .filter(|name| name.is_ascii())
            .and_then(|name| String::from_utf8(name.to_vec()).ok());
    }
    qualifier.is_none().then_some(database.changes)
}

fn open_with(open: CallStatement, numbers: Vec<u64>) -> Wanted {
    let asked = open.expressions().next().is_some();
    // They mean what they meant when it was prepared.
    let quotes = open
        .arguments()
        .any(|argument| matches!(argument, Argument::DoubleQuoted(_)));
    match (asked, numbers.is_empty() && !quotes) {
        (false, _) => Wanted::Statement(open, Values::Given(numbers)),
        (true, true) => Wanted::in_session(open),
        // Which is which would have to be told apart.
        (true, false) => Wanted::Statement(open, Values::Unfit),
    }
}
