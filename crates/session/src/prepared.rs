//! The statements that a session has prepared: what an execution may do, and which of them are calls.

use std::collections::HashMap;

use super::asked::{Values, Wanted};
use headwater_statement::{Argument, Call, CallStatement, Class, Effects};
use headwater_wire::capability::Capabilities;
use headwater_wire::command::{Execute, LAST_PREPARED};
use headwater_wire::reply::Prepared;

/// Types of more bytes than these (they come with names) are not kept.
const TYPES_BYTES: usize = 256;

/// Prepared statements, by id (COM_STMT_PREPARE) and by name (PREPARE).
#[derive(Debug)]
pub struct Statements {
    most: usize,
    /// On MariaDB the one prepared last has a second id.
    mariadb: bool,
    by_id: HashMap<u32, Statement>,
    last: Option<u32>,
    /// Those that are calls.
    by_name: HashMap<String, PreparedCall>,
}

/// What is known of a text that is being prepared.
#[derive(Debug)]
pub struct Text {
    effects: Effects,
    call: Option<PreparedCall>,
}

#[derive(Debug)]
struct Statement {
    text: Text,
    parameters: usize,
    /// Types of the parameters, as the client gave them last.
    types: Option<Vec<u8>>,
    /// Where the server has not seen those: their execution was owned.
    unseen: bool,
    /// A value was sent ahead in pieces.
    long_data: bool,
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

/// The database that is current while a text is prepared.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// Where it is known for certain.
    pub name: Option<&'a [u8]>,
    /// How often it may have changed before.
    pub changes: u64,
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
    /// Remembers up to so many of either kind.
    #[must_use]
    pub fn new(most: usize, mariadb: bool) -> Self {
        Statements {
            most,
            mariadb,
            by_id: HashMap::new(),
            last: None,
            by_name: HashMap::new(),
        }
    }

    /// So many of either kind are remembered.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// The session was reset: there are none.
    pub fn clear(&mut self) {
        *self = Statements::new(self.most, self.mariadb);
    }

    /// A text goes on to be prepared: until it is, the one prepared last is not known.
    pub fn begin(&mut self) {
        self.last = None;
    }

    /// A text was prepared.
    pub fn insert(&mut self, text: Text, prepared: Prepared) {
        self.last = Some(prepared.statement);
        if self.by_id.len() < self.most {
            let statement = Statement {
                text,
                parameters: prepared.parameters.into(),
                types: None,
                unseen: false,
                long_data: false,
            };
            self.by_id.insert(prepared.statement, statement);
        }
    }

    /// COM_STMT_CLOSE.
    pub fn close(&mut self, id: u32) {
        self.by_id.remove(&self.resolved(id));
        if self.by_id.is_empty() {
            self.by_id = HashMap::new();
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
        changes: u64,
    ) -> Option<Execution> {
        let id = self.resolved(id);
        let statement = self.by_id.get_mut(&id)?;
        let call = statement.text.call.clone()?;
        let numbers = statement.numbers(payload, capabilities);
        let wanted = match (call.at(changes), numbers) {
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
    ) -> Option<Vec<u8>> {
        let statement = self.by_id.get_mut(&id)?;
        statement.long_data = false;
        if !std::mem::take(&mut statement.unseen) {
            return None;
        }
        let execute = Execute::parse(payload, statement.parameters, capabilities).ok()?;
        match (execute.types(), &statement.types) {
            (None, Some(types)) => execute.with_types(payload, types),
            _ => None,
        }
    }

    /// An execution was answered without the server.
    pub fn owned(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.unseen = statement.types.is_some();
        }
    }

    /// `PREPARE name` goes on to the server: what had this name is gone, whatever becomes of it.
    pub fn forget(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// Statements with names may have come and gone unseen.
    pub fn forget_names(&mut self) {
        self.by_name = HashMap::new();
    }

    /// `PREPARE name` of a call has succeeded.
    pub fn name(&mut self, name: String, call: PreparedCall) {
        if self.by_name.len() < self.most {
            self.by_name.insert(name, call);
        }
    }

    /// `EXECUTE name USING` these variables; `None`: no call is known by this name.
    #[must_use]
    pub fn named(&self, name: &str, variables: Vec<String>, changes: u64) -> Option<Wanted> {
        Some(match self.by_name.get(name)?.clone().at(changes) {
            Some(CallForm::Whole(call)) if variables.is_empty() => Wanted::Call(call),
            Some(CallForm::Open(open)) if open.parameters() == variables.len() => {
                Wanted::Statement(open, Values::Expressions(variables))
            }
            Some(CallForm::Open(open)) => Wanted::Statement(open, Values::Unfit),
            Some(CallForm::Whole(_)) | None => Wanted::Astray,
        })
    }

    fn resolved(&self, id: u32) -> u32 {
        match self.last {
            Some(last) if self.mariadb && id == LAST_PREPARED => last,
            _ => id,
        }
    }
}

impl Statement {
    /// The values of an execution; `None`: some are not known to be numbers.
    fn numbers(&mut self, payload: &[u8], capabilities: Capabilities) -> Option<Vec<u64>> {
        let execute = Execute::parse(payload, self.parameters, capabilities).ok()?;
        if let Some(types) = execute.types() {
            self.types = (types.len() <= TYPES_BYTES).then(|| types.to_vec());
            self.unseen = false;
        }
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
    pub fn new(class: Class, database: Current<'_>) -> Self {
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
        }
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
