//! What a statement that is relayed may leave behind in its session.

use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};
use headwater_sql::user_variable::sets_variables_alone;
use headwater_sql::word_search::{contains_ignoring_case, contains_whole_word};
use headwater_timeline::TimelineDefinition;

use crate::next_transaction::NextTransaction;

/// What a statement may have done, or may see, besides its own answer. True means *possibly*; false is certain.
///
/// The server's stored functions and triggers can do nearly all of it out of sight: [`StatementEffects::stored_code`] says whether any
/// may have run, and the other fields speak of what the text itself asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementEffects {
    /// Set the next transaction's characteristics alone (`SET TRANSACTION` without a scope, `SET @@transaction_isolation`).
    pub next_transaction: bool,
    /// What it sets for the next transaction lets that read what is committed, without locks: a level that does, or whether it writes.
    pub next_transaction_reads: bool,
    /// Created, changed or dropped temporary tables.
    pub temp_tables: bool,
    /// Ran stored functions or triggers (a table that is read may be a view that calls some).
    pub stored_code: bool,
    /// Would have run such, if the server had any functions: none were known of when the text was looked at.
    pub assumes_no_functions: bool,
    /// Changed session settings, roles or the current database.
    pub settings: bool,
    /// Changed the current database.
    pub database: bool,
    /// Prepared statements by name, or dropped some (no function and no trigger can).
    pub dynamic: bool,
    /// Takes table locks or gives them back.
    pub locks: TableLockEffect,
    /// Asks for what the statement before it left: row counts, warnings, the last insert id, profiles; or how a result
    /// table was made.
    pub diagnostics: bool,
    /// Changed tables, procedures or privileges, so that a definition has to be checked again.
    pub definition: bool,
    /// Reads or changes the result table or the heads table, by name or through stored code.
    pub result_table: bool,
    /// Certainly only reads (or sets user variables to what stands in it), and nothing of the result tables or of what the
    /// statement before it left: it may run while they are not written, and may run twice.
    pub is_pure_read: bool,
    /// Leaves some of what the statement before it left: `SET @name = 1` keeps `FOUND_ROWS()`, and warnings on MariaDB.
    pub preserves_row_counts: bool,
    /// Leaves a user variable or a named lock in the session.
    pub session_values: bool,
}

/// What a statement's own text does to the session's table locks. What takes some in other ways (several statements at
/// once) counts as nothing: under locks that were not foreseen, own lookups fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLockEffect {
    /// Leaves them as they are.
    Unchanged,
    /// Takes some (`LOCK TABLES`).
    Taken,
    /// Gives them all back (`UNLOCK TABLES`, or the start of a transaction).
    Released,
}

impl StatementEffects {
    /// Nothing at all.
    pub const NONE: Self = Self {
        next_transaction: false,
        next_transaction_reads: false,
        temp_tables: false,
        stored_code: false,
        assumes_no_functions: false,
        settings: false,
        database: false,
        dynamic: false,
        locks: TableLockEffect::Unchanged,
        diagnostics: false,
        definition: false,
        result_table: false,
        is_pure_read: false,
        preserves_row_counts: false,
        session_values: false,
    };

    /// All that there is: for a text that was not looked at, or not understood.
    pub const ALL: Self = Self {
        next_transaction: true,
        next_transaction_reads: false,
        temp_tables: true,
        stored_code: true,
        assumes_no_functions: false,
        settings: true,
        database: true,
        dynamic: true,
        locks: TableLockEffect::Unchanged,
        diagnostics: true,
        definition: true,
        result_table: true,
        is_pure_read: false,
        preserves_row_counts: false,
        session_values: true,
    };

    /// Gives table locks back.
    const UNLOCKS: Self = Self {
        locks: TableLockEffect::Released,
        ..Self::NONE
    };

    /// May run stored code: what any statement may do that reads or writes tables or calls functions.
    pub const STORED_CODE: Self = Self {
        stored_code: true,
        ..Self::NONE
    };

    /// The same on a server that may have functions.
    #[must_use]
    pub fn assuming_functions(self) -> Self {
        match self.assumes_no_functions {
            true => Self {
                stored_code: true,
                assumes_no_functions: false,
                result_table: true,
                is_pure_read: false,
                ..self
            },
            false => self,
        }
    }

    fn with_next_transaction(self, next: NextTransaction) -> Self {
        Self {
            next_transaction: next != NextTransaction::Unchanged,
            next_transaction_reads: next == NextTransaction::Snapshot,
            ..self
        }
    }

    /// True for what certainly does nothing in a transaction but read: it may begin or end one as well.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        let acts = self.next_transaction
            || self.temp_tables
            || self.stored_code
            || self.settings
            || self.database
            || self.dynamic
            || self.definition;
        !acts && self.locks != TableLockEffect::Taken
    }

    /// True for what may leave something in its session that a new one would lack.
    #[must_use]
    pub fn leaves_session_state(&self) -> bool {
        self.session_values
            || self.next_transaction
            || self.temp_tables
            || self.settings
            || self.dynamic
            || self.locks == TableLockEffect::Taken
    }

    /// The effects of a text. One that is not a plain statement may do all that it has the words for.
    ///
    /// Where the server is known to have `no_functions`, a SELECT runs no stored code.
    pub fn of(text: &[u8], definitions: &[TimelineDefinition], no_functions: bool) -> Self {
        if sets_variables_alone(text) {
            return Self {
                is_pure_read: true,
                preserves_row_counts: true,
                session_values: true,
                ..Self::NONE
            };
        }
        let Some(outline) = StatementOutline::read(text) else {
            return Self::of_unparsed(text);
        };
        let verb = outline.effects(no_functions);
        let verb = match verb.next_transaction && outline.word(0, &["SET"]) && !outline.statement {
            true => verb.with_next_transaction(NextTransaction::of(text)),
            false => verb,
        };
        let named = names_result_table(text, definitions);
        // What a result table was made with (engine, character set) only the procedure leaves as it is.
        let described = named && outline.word(0, &["SHOW"]) && outline.word(1, &["CREATE"]);
        let result_table = verb.result_table || verb.stored_code || named;
        let diagnostics = verb.diagnostics || outline.diagnostics || described;
        Self {
            diagnostics,
            result_table,
            session_values: verb.session_values || outline.session_values,
            // The server's own views tell of temporary tables: information_schema, performance_schema.
            is_pure_read: verb.is_pure_read
                && !result_table
                && !diagnostics
                && !contains_ignoring_case(text, "_SCHEMA"),
            ..verb
        }
    }
}

impl StatementEffects {
    /// What a text may do whose tokens are not certain (a backslash in a string, a hint, several statements): anything, save
    /// what no statement does without a word for it, and the text does not hold that word anywhere.
    fn of_unparsed(text: &[u8]) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| contains_ignoring_case(text, word));
        let runs_another = has(&["CALL", "EXECUTE"]);
        Self {
            next_transaction: runs_another || has(TRANSACTION_WORDS),
            diagnostics: runs_another || has(DIAGNOSTICS_WORDS) || has(&["SHOW"]),
            definition: runs_another || has(DEFINITION_VERBS),
            database: runs_another
                || contains_whole_word(text, "USE")
                || has(&["DATABASE", "SCHEMA"]),
            dynamic: runs_another || has(&["PREPARE"]),
            ..Self::ALL
        }
    }
}

/// What is kept of a statement while its tokens pass.
#[derive(Default)]
struct StatementOutline<'a> {
    start: [Option<SqlToken<'a>>; 3],
    tokens: usize,
    parenthesis: bool,
    from: bool,
    temporary: bool,
    transaction: bool,
    statement: bool,
    diagnostics: bool,
    /// Something besides reading: a variable that is set, a lock, a file, a function that is not known to have no effect.
    has_side_effects: bool,
    /// A variable may be set, or a named lock taken.
    session_values: bool,
    last: Option<SqlToken<'a>>,
}

impl<'a> StatementOutline<'a> {
    /// `None`: opaque, empty, or more than one statement.
    fn read(text: &'a [u8]) -> Option<Self> {
        let mut outline = Self::default();
        let mut ended = false;
        for token in Lexer::new(text) {
            if ended || token.kind == TokenKind::Opaque {
                return None;
            }
            ended = token.is_punct(b';');
            if !ended {
                outline.add(token);
            }
        }
        (outline.tokens > 0).then_some(outline)
    }

    fn add(&mut self, token: SqlToken<'a>) {
        if let Some(place) = self.start.get_mut(self.tokens) {
            *place = Some(token);
        }
        self.tokens += 1;
        match token.kind {
            // A colon: `@name := 1`.
            TokenKind::Punct(b':') => (self.has_side_effects, self.session_values) = (true, true),
            TokenKind::Punct(b'(') => self.add_parenthesis(),
            TokenKind::Word => self.add_word(&token),
            _ => {}
        }
        // What is quoted can be a variable's name (@@`warning_count`) or a function's (`row_count`()).
        if let Some(name) = token.unquoted() {
            self.transaction |= is_one_of(name, TRANSACTION_WORDS);
            self.diagnostics |= is_one_of(name, DIAGNOSTICS_WORDS);
            self.session_values |= is_one_of(name, &["GET_LOCK"]);
        }
        self.last = Some(token);
    }

    /// A parenthesis: what stands in front of it may be called.
    fn add_parenthesis(&mut self) {
        self.parenthesis = true;
        if let Some(name) = self.last.filter(|last| last.unquoted().is_some()) {
            self.has_side_effects |=
                !PURE_BEFORE_PARENTHESIS.contains(&name.text.to_ascii_uppercase().as_slice());
        }
    }

    fn add_word(&mut self, token: &SqlToken<'_>) {
        self.has_side_effects |= is_one_of(token.text, SIDE_EFFECT_WORDS);
        self.session_values |= token.is_word("INTO") && self.word(0, &["SELECT"]);
        // MySQL reads a whole table by TABLE as well: SELECT 1 UNION TABLE t.
        self.from |= token.is_word("FROM") || token.is_word("TABLE");
        self.temporary |= token.is_word("TEMPORARY");
        self.statement |= token.is_word("STATEMENT");
    }

    fn word(&self, at: usize, words: &[&str]) -> bool {
        let token = self.start.get(at).copied().flatten();
        token.is_some_and(|token| words.iter().any(|word| token.is_word(word)))
    }

    fn effects(&self, no_functions: bool) -> StatementEffects {
        let calls = StatementEffects {
            stored_code: self.parenthesis,
            ..StatementEffects::NONE
        };
        let Some(verb) = VERBS
            .iter()
            .find(|(words, _)| self.word(0, words))
            .map(|&(_, verb)| verb)
        else {
            return StatementEffects::ALL;
        };
        match verb {
            StatementVerb::Read => StatementEffects {
                stored_code: (self.parenthesis || self.from) && !no_functions,
                assumes_no_functions: (self.parenthesis || self.from) && no_functions,
                is_pure_read: !self.has_side_effects,
                ..StatementEffects::NONE
            },
            StatementVerb::Work => StatementEffects::STORED_CODE,
            StatementVerb::Set => self.set(),
            StatementVerb::Use => StatementEffects {
                settings: true,
                database: true,
                ..calls
            },
            StatementVerb::Show => StatementEffects {
                result_table: !self.word(1, SHOWS_NO_TABLE),
                ..calls
            },
            StatementVerb::Begin
                if self.tokens == 1 || (self.tokens == 2 && self.word(1, &["WORK"])) =>
            {
                StatementEffects::UNLOCKS
            }
            StatementVerb::Start if self.word(1, &["TRANSACTION"]) => StatementEffects::UNLOCKS,
            StatementVerb::Begin | StatementVerb::Start => StatementEffects::ALL,
            StatementVerb::End => StatementEffects::NONE,
            StatementVerb::Unlock if self.word(1, &["TABLES", "TABLE"]) => {
                StatementEffects::UNLOCKS
            }
            StatementVerb::Unlock => StatementEffects::ALL,
            StatementVerb::Lock => StatementEffects {
                locks: TableLockEffect::Taken,
                ..StatementEffects::STORED_CODE
            },
            StatementVerb::Define => self.define(),
        }
    }

    fn set(&self) -> StatementEffects {
        // MariaDB: SET STATEMENT variable = value FOR a whole statement.
        if self.statement {
            return StatementEffects::ALL;
        }
        StatementEffects {
            settings: true,
            next_transaction: self.transaction,
            stored_code: self.parenthesis,
            ..StatementEffects::NONE
        }
    }

    fn define(&self) -> StatementEffects {
        let table = self.word(1, &["TABLE", "TABLES", "TEMPORARY", "INDEX", "UNIQUE"]);
        // A name without TEMPORARY means a temporary table where there is one, save in CREATE TABLE.
        let temp_tables = self.temporary
            || !(self.word(0, &["CREATE", "GRANT", "REVOKE"]) && self.word(1, &["TABLE"]));
        StatementEffects {
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
            ..StatementEffects::STORED_CODE
        }
    }
}

fn is_one_of(name: &[u8], words: &[&str]) -> bool {
    let mut words = words.iter();
    words.any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
}

#[derive(Clone, Copy)]
enum StatementVerb {
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
const VERBS: &[(&[&str], StatementVerb)] = &[
    (&["SELECT"], StatementVerb::Read),
    (
        &[
            "INSERT", "REPLACE", "UPDATE", "DELETE", "DO", "LOAD", "WITH", "VALUES", "TABLE",
        ],
        StatementVerb::Work,
    ),
    (&["EXPLAIN", "DESCRIBE", "DESC"], StatementVerb::Work),
    (&["SET"], StatementVerb::Set),
    (&["USE"], StatementVerb::Use),
    (&["SHOW"], StatementVerb::Show),
    (&["BEGIN"], StatementVerb::Begin),
    (&["START"], StatementVerb::Start),
    (
        &["COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"],
        StatementVerb::End,
    ),
    (&["LOCK"], StatementVerb::Lock),
    (&["UNLOCK"], StatementVerb::Unlock),
    (DEFINITION_VERBS, StatementVerb::Define),
];

/// First words of statements that change tables, procedures or privileges.
const DEFINITION_VERBS: &[&str] = &[
    "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE",
];

/// Variables and words by which the next transaction alone may be set.
const TRANSACTION_WORDS: &[&str] = &[
    "TRANSACTION",
    "TRANSACTION_ISOLATION",
    "TRANSACTION_READ_ONLY",
    "TX_ISOLATION",
    "TX_READ_ONLY",
];

/// Words, functions and variables that tell of the statement before.
const DIAGNOSTICS_WORDS: &[&str] = &[
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
const SIDE_EFFECT_WORDS: &[&str] = &["INTO", "LOCK", "FOR", "NEXT", "PREVIOUS", "PROCEDURE"];

/// What may stand in front of a parenthesis and does nothing but compute.
#[rustfmt::skip]
const PURE_BEFORE_PARENTHESIS: &[&[u8]] = &[
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
fn names_result_table(text: &[u8], definitions: &[TimelineDefinition]) -> bool {
    definitions
        .iter()
        .flat_map(|definition| [&definition.result.table, &definition.heads.table])
        .any(|table| {
            contains_ignoring_case(text, table)
                || (table.contains('`') && contains_ignoring_case(text, &table.replace('`', "``")))
        })
}
