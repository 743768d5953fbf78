//! What a statement that is relayed may leave behind in its session.

use headwater_sql::lexer::{Kind, Lexer, Token};
use headwater_sql::variable::sets_variables_alone;
use headwater_sql::words::{holds, holds_word};
use headwater_timeline::Definition;

use crate::one_shot::NextTransaction;

/// What a statement may have done, or may see, besides its own answer. True means *possibly*; false is certain.
///
/// The server's stored functions and triggers can do nearly all of it out of sight: [`Effects::stored_code`] says whether any
/// may have run, and the other fields speak of what the text itself asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Set the next transaction's characteristics alone (`SET TRANSACTION` without a scope, `SET @@transaction_isolation`).
    pub one_shot: bool,
    /// What it sets for the next transaction lets that read what is committed, without locks: a level that does, or whether it writes.
    pub one_shot_reads: bool,
    /// Created, changed or dropped temporary tables.
    pub temp_tables: bool,
    /// Ran stored functions or triggers (a table that is read may be a view that calls some).
    pub stored_code: bool,
    /// Would have run such, if the server had any functions: none were known of when the text was looked at.
    pub trusts: bool,
    /// Changed session settings, roles or the current database.
    pub settings: bool,
    /// Changed the current database.
    pub database: bool,
    /// Prepared statements by name, or dropped some (no function and no trigger can).
    pub dynamic: bool,
    /// Takes table locks or gives them back.
    pub locks: Locks,
    /// Asks for what the statement before it left: row counts, warnings, the last insert id, profiles; or how a result
    /// table was made.
    pub diagnostics: bool,
    /// Changed tables, procedures or privileges, so that a definition has to be checked again.
    pub definition: bool,
    /// Reads or changes the result table or the heads table, by name or through stored code.
    pub result_table: bool,
    /// Certainly only reads (or sets user variables to what stands in it), and nothing of the result tables or of what the
    /// statement before it left: it may run while they are not written, and may run twice.
    pub spares: bool,
    /// Leaves some of what the statement before it left: `SET @name = 1` keeps `FOUND_ROWS()`, and warnings on MariaDB.
    pub keeps_counts: bool,
    /// Leaves a user variable or a named lock in the session.
    pub own: bool,
}

/// What a statement's own text does to the session's table locks. What takes some in other ways (several statements at
/// once) counts as nothing: under locks that were not foreseen, own lookups fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// Leaves them as they are.
    Kept,
    /// Takes some (`LOCK TABLES`).
    Taken,
    /// Gives them all back (`UNLOCK TABLES`, or the start of a transaction).
    Released,
}

impl Effects {
    /// Nothing at all.
    pub const NONE: Self = Self {
        one_shot: false,
        one_shot_reads: false,
        temp_tables: false,
        stored_code: false,
        trusts: false,
        settings: false,
        database: false,
        dynamic: false,
        locks: Locks::Kept,
        diagnostics: false,
        definition: false,
        result_table: false,
        spares: false,
        keeps_counts: false,
        own: false,
    };

    /// All that there is: for a text that was not looked at, or not understood.
    pub const ALL: Self = Self {
        one_shot: true,
        one_shot_reads: false,
        temp_tables: true,
        stored_code: true,
        trusts: false,
        settings: true,
        database: true,
        dynamic: true,
        locks: Locks::Kept,
        diagnostics: true,
        definition: true,
        result_table: true,
        spares: false,
        keeps_counts: false,
        own: true,
    };

    /// Gives table locks back.
    const UNLOCKS: Self = Self {
        locks: Locks::Released,
        ..Self::NONE
    };

    /// May run stored code: what any statement may do that reads or writes tables or calls functions.
    pub const STORED_CODE: Self = Self {
        stored_code: true,
        ..Self::NONE
    };

    /// The same on a server that may have functions.
    #[must_use]
    pub fn distrusted(self) -> Self {
        match self.trusts {
            true => Self {
                stored_code: true,
                trusts: false,
                result_table: true,
                spares: false,
                ..self
            },
            false => self,
        }
    }

    fn for_next(self, next: NextTransaction) -> Self {
        Self {
            one_shot: next != NextTransaction::AsEver,
            one_shot_reads: next == NextTransaction::Snapshot,
            ..self
        }
    }

    /// True for what certainly does nothing in a transaction but read: it may begin or end one as well.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        let acts = self.one_shot
            || self.temp_tables
            || self.stored_code
            || self.settings
            || self.database
            || self.dynamic
            || self.definition;
        !acts && self.locks != Locks::Taken
    }

    /// True for what may leave something in its session that a new one would lack.
    #[must_use]
    pub fn leaves_own(&self) -> bool {
        self.own
            || self.one_shot
            || self.temp_tables
            || self.settings
            || self.dynamic
            || self.locks == Locks::Taken
    }

    /// The effects of a text. One that is not a plain statement may do all that it has the words for.
    ///
    /// Where the server is known to have `no_functions`, a SELECT runs no stored code.
    pub fn of(text: &[u8], definitions: &[Definition], no_functions: bool) -> Self {
        if sets_variables_alone(text) {
            return Self {
                spares: true,
                keeps_counts: true,
                own: true,
                ..Self::NONE
            };
        }
        let Some(outline) = Outline::read(text) else {
            return Self::of_unread(text);
        };
        let verb = outline.effects(no_functions);
        let verb = match verb.one_shot && outline.word(0, &["SET"]) && !outline.statement {
            true => verb.for_next(NextTransaction::of(text)),
            false => verb,
        };
        let named = names_result(text, definitions);
        // What a result table was made with (engine, character set) only the procedure leaves as it is.
        let described = named && outline.word(0, &["SHOW"]) && outline.word(1, &["CREATE"]);
        let result_table = verb.result_table || verb.stored_code || named;
        let diagnostics = verb.diagnostics || outline.diagnostics || described;
        Self {
            diagnostics,
            result_table,
            own: verb.own || outline.own,
            // The server's own views tell of temporary tables: information_schema, performance_schema.
            spares: verb.spares && !result_table && !diagnostics && !holds(text, "_SCHEMA"),
            ..verb
        }
    }
}

impl Effects {
    /// What a text may do whose tokens are not certain (a backslash in a string, a hint, several statements): anything, save
    /// what no statement does without a word for it, and the text does not hold that word anywhere.
    fn of_unread(text: &[u8]) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| holds(text, word));
        let runs_another = has(&["CALL", "EXECUTE"]);
        Self {
            one_shot: runs_another || has(TRANSACTION),
            diagnostics: runs_another || has(DIAGNOSTICS) || has(&["SHOW"]),
            definition: runs_another || has(DEFINES),
            database: runs_another || holds_word(text, "USE") || has(&["DATABASE", "SCHEMA"]),
            dynamic: runs_another || has(&["PREPARE"]),
            ..Self::ALL
        }
    }
}

/// What is kept of a statement while its tokens pass.
#[derive(Default)]
struct Outline<'a> {
    start: [Option<Token<'a>>; 3],
    tokens: usize,
    parenthesis: bool,
    from: bool,
    temporary: bool,
    transaction: bool,
    statement: bool,
    diagnostics: bool,
    /// Something besides reading: a variable that is set, a lock, a file, a function that is not known to have no effect.
    acts: bool,
    /// A variable may be set, or a named lock taken.
    own: bool,
    last: Option<Token<'a>>,
}

impl<'a> Outline<'a> {
    /// `None`: opaque, empty, or more than one statement.
    fn read(text: &'a [u8]) -> Option<Self> {
        let mut outline = Self::default();
        let mut ended = false;
        for token in Lexer::new(text) {
            if ended || token.kind == Kind::Opaque {
                return None;
            }
            ended = token.is_punct(b';');
            if !ended {
                outline.add(token);
            }
        }
        (outline.tokens > 0).then_some(outline)
    }

    fn add(&mut self, token: Token<'a>) {
        if let Some(place) = self.start.get_mut(self.tokens) {
            *place = Some(token);
        }
        self.tokens += 1;
        match token.kind {
            // A colon: `@name := 1`.
            Kind::Punct(b':') => (self.acts, self.own) = (true, true),
            Kind::Punct(b'(') => self.opens(),
            Kind::Word => self.add_word(&token),
            _ => {}
        }
        // What is quoted can be a variable's name (@@`warning_count`) or a function's (`row_count`()).
        if let Some(name) = token.unquoted() {
            self.transaction |= is_one_of(name, TRANSACTION);
            self.diagnostics |= is_one_of(name, DIAGNOSTICS);
            self.own |= is_one_of(name, &["GET_LOCK"]);
        }
        self.last = Some(token);
    }

    /// A parenthesis: what stands in front of it may be called.
    fn opens(&mut self) {
        self.parenthesis = true;
        if let Some(name) = self.last.filter(|last| last.unquoted().is_some()) {
            self.acts |= !HARMLESS.contains(&name.text.to_ascii_uppercase().as_slice());
        }
    }

    fn add_word(&mut self, token: &Token<'_>) {
        self.acts |= is_one_of(token.text, ACTS);
        self.own |= token.is_word("INTO") && self.word(0, &["SELECT"]);
        // MySQL reads a whole table by TABLE as well: SELECT 1 UNION TABLE t.
        self.from |= token.is_word("FROM") || token.is_word("TABLE");
        self.temporary |= token.is_word("TEMPORARY");
        self.statement |= token.is_word("STATEMENT");
    }

    fn word(&self, at: usize, words: &[&str]) -> bool {
        let token = self.start.get(at).copied().flatten();
        token.is_some_and(|token| words.iter().any(|word| token.is_word(word)))
    }

    fn effects(&self, no_functions: bool) -> Effects {
        let calls = Effects {
            stored_code: self.parenthesis,
            ..Effects::NONE
        };
        let Some(verb) = VERBS
            .iter()
            .find(|(words, _)| self.word(0, words))
            .map(|&(_, verb)| verb)
        else {
            return Effects::ALL;
        };
        match verb {
            Verb::Read => Effects {
                stored_code: (self.parenthesis || self.from) && !no_functions,
                trusts: (self.parenthesis || self.from) && no_functions,
                spares: !self.acts,
                ..Effects::NONE
            },
            Verb::Work => Effects::STORED_CODE,
            Verb::Set => self.set(),
            Verb::Use => Effects {
                settings: true,
                database: true,
                ..calls
            },
            Verb::Show => Effects {
                result_table: !self.word(1, SHOWS_NO_TABLE),
                ..calls
            },
            Verb::Begin if self.tokens == 1 || (self.tokens == 2 && self.word(1, &["WORK"])) => {
                Effects::UNLOCKS
            }
            Verb::Start if self.word(1, &["TRANSACTION"]) => Effects::UNLOCKS,
            Verb::Begin | Verb::Start => Effects::ALL,
            Verb::End => Effects::NONE,
            Verb::Unlock if self.word(1, &["TABLES", "TABLE"]) => Effects::UNLOCKS,
            Verb::Unlock => Effects::ALL,
            Verb::Lock => Effects {
                locks: Locks::Taken,
                ..Effects::STORED_CODE
            },
            Verb::Define => self.define(),
        }
    }

    fn set(&self) -> Effects {
        // MariaDB: SET STATEMENT variable = value FOR a whole statement.
        if self.statement {
            return Effects::ALL;
        }
        Effects {
            settings: true,
            one_shot: self.transaction,
            stored_code: self.parenthesis,
            ..Effects::NONE
        }
    }

    fn define(&self) -> Effects {
        let table = self.word(1, &["TABLE", "TABLES", "TEMPORARY", "INDEX", "UNIQUE"]);
        // A name without TEMPORARY means a temporary table where there is one, save in CREATE TABLE.
        let temp_tables = self.temporary
            || !(self.word(0, &["CREATE", "GRANT", "REVOKE"]) && self.word(1, &["TABLE"]));
        Effects {
            temp_tables,
            definition: !self.word(1, &["TEMPORARY"]),
            // DROP DATABASE leaves no current database; ALTER USER, RENAME USER and the like concern the session's rights.
            settings: !table,
            database: self.word(0, &["CREATE", "ALTER", "DROP"])
                && !table
                && !self.word(
                    1,
                    &["PROCEDURE", "FUNCTION", "VIEW", "TRIGGER", "EVENT", "USER"],
                ),
            ..Effects::STORED_CODE
        }
    }
}

fn is_one_of(name: &[u8], words: &[&str]) -> bool {
    let mut words = words.iter();
    words.any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
}

#[derive(Clone, Copy)]
enum Verb {
    Read,
    Work,
    Set,
    Use,
    Show,
    Begin,
    Start,
    End,
    Lock,
    Unlock,
    Define,
}

/// The statements that are understood. The rest (CALL, EXECUTE, PREPARE, XA, FLUSH, MariaDB's compound ones, ...) may do anything.
const VERBS: &[(&[&str], Verb)] = &[
    (&["SELECT"], Verb::Read),
    (
        &[
            "INSERT", "REPLACE", "UPDATE", "DELETE", "DO", "LOAD", "WITH", "VALUES", "TABLE",
        ],
        Verb::Work,
    ),
    (&["EXPLAIN", "DESCRIBE", "DESC"], Verb::Work),
    (&["SET"], Verb::Set),
    (&["USE"], Verb::Use),
    (&["SHOW"], Verb::Show),
    (&["BEGIN"], Verb::Begin),
    (&["START"], Verb::Start),
    (&["COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"], Verb::End),
    (&["LOCK"], Verb::Lock),
    (&["UNLOCK"], Verb::Unlock),
    (DEFINES, Verb::Define),
];

/// First words of statements that change tables, procedures or privileges.
const DEFINES: &[&str] = &[
    "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE",
];

/// Variables and words by which the next transaction alone may be set.
const TRANSACTION: &[&str] = &[
    "TRANSACTION",
    "TRANSACTION_ISOLATION",
    "TRANSACTION_READ_ONLY",
    "TX_ISOLATION",
    "TX_READ_ONLY",
];

/// Words, functions and variables that tell of the statement before.
const DIAGNOSTICS: &[&str] = &[
    "ROW_COUNT",
    "FOUND_ROWS",
    "LAST_INSERT_ID",
    "IDENTITY",
    "WARNINGS",
    "ERRORS",
    "WARNING_COUNT",
    "ERROR_COUNT",
    "DIAGNOSTICS",
    "PROFILE",
    "PROFILES",
    "PROFILING",
    "LAST_GTID",
];

/// Words of a SELECT that does more than read.
const ACTS: &[&str] = &["INTO", "LOCK", "FOR", "NEXT", "PREVIOUS", "PROCEDURE"];

/// What may stand in front of a parenthesis and does nothing but compute.
#[rustfmt::skip]
const HARMLESS: &[&[u8]] = &[
    b"ABS", b"AGAINST", b"ALL", b"AND", b"ANY", b"AS", b"AVG", b"BETWEEN", b"BY", b"CAST", b"CEIL", b"CEILING",
    b"CHAR_LENGTH", b"COALESCE", b"CONCAT", b"CONCAT_WS", b"CONVERT", b"COUNT", b"CURDATE", b"CURRENT_TIMESTAMP", b"DATE",
    b"DATEDIFF", b"DATE_ADD", b"DATE_FORMAT", b"DATE_SUB", b"DAY", b"DISTINCT", b"ELSE", b"EXISTS", b"FLOOR", b"FROM",
    b"FROM_UNIXTIME", b"GREATEST", b"GROUP_CONCAT", b"HAVING", b"HOUR", b"IF", b"IFNULL", b"IN", b"INTERVAL", b"JOIN",
    b"LEAST", b"LEFT", b"LENGTH", b"LIKE", b"LOWER", b"MATCH", b"MAX", b"MD5", b"MIN", b"MINUTE", b"MOD", b"MONTH", b"NOT",
    b"NOW", b"NULLIF", b"ON", b"OR", b"OVER", b"REPLACE", b"RIGHT", b"ROUND", b"SECOND", b"SELECT", b"SOME", b"SUBSTR",
    b"SUBSTRING", b"SUM", b"THEN", b"TRIM", b"UNION", b"UNIX_TIMESTAMP", b"UPPER", b"USING", b"VALUES", b"WHEN", b"WHERE",
    b"YEAR",
];

/// What SHOW lists without a look at tables. (`SHOW TABLES` lists temporary ones since MariaDB 11.2.)
const SHOWS_NO_TABLE: &[&str] = &[
    "CHARACTER",
    "CHARSET",
    "COLLATION",
    "DATABASES",
    "ENGINES",
    "ERRORS",
    "GLOBAL",
    "GRANTS",
    "LOCAL",
    "PLUGINS",
    "PRIVILEGES",
    "PROCESSLIST",
    "SCHEMAS",
    "SESSION",
    "STATUS",
    "VARIABLES",
    "WARNINGS",
];

/// Whether a definition's temporary table is named anywhere, a string or a comment included.
fn names_result(text: &[u8], definitions: &[Definition]) -> bool {
    definitions
        .iter()
        .flat_map(|definition| [&definition.result.table, &definition.heads.table])
        .any(|table| {
            holds(text, table) || (table.contains('`') && holds(text, &table.replace('`', "``")))
        })
}
