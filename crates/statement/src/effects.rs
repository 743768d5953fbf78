//! The effects of a relayed statement on its session.

use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};
use headwater_sql::user_variable::sets_variables_alone;
use headwater_sql::word_search::{contains_ignoring_case, contains_whole_word};
use headwater_timeline::TimelineDefinition;

use crate::next_transaction::NextTransaction;

/// What a statement may do or observe, besides its own reply. True means *possibly*; false is certain.
///
/// Stored functions and triggers can do nearly all of it invisibly: [`StatementEffects::stored_code`] is true if any may have run.
/// The other fields describe the text itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementEffects {
    /// Sets characteristics of the next transaction only (`SET TRANSACTION` without a scope, `SET @@transaction_isolation`).
    pub next_transaction: bool,
    /// The next transaction still reads committed data without locks: it sets a level that does so, or only whether it writes.
    pub next_transaction_reads: bool,
    /// Creates, changes or drops temporary tables.
    pub temp_tables: bool,
    /// Runs stored functions or triggers (a table that is read may be a view that calls functions).
    pub stored_code: bool,
    /// Would run stored code if the server had functions; none were known when the text was classified.
    pub assumes_no_functions: bool,
    /// Changes session settings, roles or the current database.
    pub settings: bool,
    /// Changes the current database.
    pub database: bool,
    /// Prepares or drops statements by name (no function or trigger can).
    pub dynamic: bool,
    /// Takes or releases table locks.
    pub locks: TableLockEffect,
    /// Reads the previous statement's row counts, warnings, last insert id or profiles; or how a result table was created.
    pub diagnostics: bool,
    /// Changes tables, procedures or privileges, so that definitions must be checked again.
    pub definition: bool,
    /// Reads or changes the result table or the heads table, by name or through stored code.
    pub result_table: bool,
    /// Surely only reads (or sets user variables to values in the text), but neither result tables nor the previous statement's state.
    /// It may run while result tables are not written, and may run twice.
    pub is_pure_read: bool,
    /// Preserves some of the previous statement's state: `SET @name = 1` preserves `FOUND_ROWS()`, and warnings on MariaDB.
    pub preserves_row_counts: bool,
    /// Leaves a user variable or a named lock in the session.
    pub session_values: bool,
    /// Counts or adds up rows: MariaDB preserves `FOUND_ROWS()` where it sees by the conditions' constants that there are none.
    pub aggregates: bool,
}

/// The effect of a statement's own text on the session's table locks. Other ways to take locks (several statements at once) do not
/// count: under unforeseen locks, internal lookups fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLockEffect {
    /// No change.
    Unchanged,
    /// Takes locks (`LOCK TABLES`).
    Taken,
    /// Releases all locks (`UNLOCK TABLES`, or the start of a transaction).
    Released,
}

impl StatementEffects {
    /// No effects.
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
        aggregates: false,
    };

    /// All effects: for a text that was not parsed, or not understood.
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
        aggregates: false,
    };

    const UNLOCKS: Self = Self {
        locks: TableLockEffect::Released,
        ..Self::NONE
    };

    /// May run stored code, as any statement may that reads or writes tables or calls functions.
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

    /// True if it surely only reads in a transaction; it may begin or end one as well.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        let has_effect = self.next_transaction
            || self.temp_tables
            || self.stored_code
            || self.settings
            || self.database
            || self.dynamic
            || self.definition;
        !has_effect && self.locks != TableLockEffect::Taken
    }

    /// True if it may leave session state that a new session would lack.
    #[must_use]
    pub fn leaves_session_state(&self) -> bool {
        self.session_values
            || self.next_transaction
            || self.temp_tables
            || self.settings
            || self.dynamic
            || self.locks == TableLockEffect::Taken
    }

    /// The effects of a text. One that is not a plain statement has every effect that it has the words for.
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
        let verb_effects = outline.effects(no_functions);
        let statement_effects = match verb_effects.next_transaction
            && outline.word(0, &["SET"])
            && !outline.statement
        {
            true => verb_effects.with_next_transaction(NextTransaction::of(text)),
            false => verb_effects,
        };
        let names_table = names_result_table(text, definitions);
        // Only the procedure itself creates a result table with its own options (engine, character set).
        let shows_definition =
            names_table && outline.word(0, &["SHOW"]) && outline.word(1, &["CREATE"]);
        let result_table =
            statement_effects.result_table || statement_effects.stored_code || names_table;
        let diagnostics = statement_effects.diagnostics || outline.diagnostics || shows_definition;
        Self {
            diagnostics,
            result_table,
            session_values: statement_effects.session_values || outline.session_values,
            aggregates: outline.aggregates,
            // The server's own views show temporary tables: information_schema, performance_schema.
            is_pure_read: statement_effects.is_pure_read
                && !result_table
                && !diagnostics
                && !contains_ignoring_case(text, "_SCHEMA"),
            ..statement_effects
        }
    }
}

impl StatementEffects {
    /// The effects of a text with uncertain tokens (a backslash in a string, a hint, several statements): all effects, except those that
    /// need a word which the text does not contain.
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

/// What is collected from a statement's tokens.
#[derive(Default)]
struct StatementOutline<'a> {
    start: [Option<SqlToken<'a>>; 3],
    tokens: usize,
    /// It begins with a parenthesis.
    is_in_parentheses: bool,
    parenthesis: bool,
    /// It names a statement that writes.
    writes: bool,
    from: bool,
    temporary: bool,
    transaction: bool,
    statement: bool,
    diagnostics: bool,
    /// It does more than read: a variable that is set, a lock, a file, a function that is not known to be pure.
    has_side_effects: bool,
    /// It may set a variable, or take a named lock.
    session_values: bool,
    aggregates: bool,
    last: Option<SqlToken<'a>>,
}

/// Aggregate functions that only read.
const AGGREGATE_FUNCTIONS: &[&str] = &["COUNT", "MAX", "MIN", "SUM", "AVG", "GROUP_CONCAT"];

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
        // The verb of `(SELECT ...) UNION ...` is behind its parentheses.
        if self.tokens == 0 && token.is_punct(b'(') {
            (self.is_in_parentheses, self.parenthesis) = (true, true);
            return;
        }
        if let Some(slot) = self.start.get_mut(self.tokens) {
            *slot = Some(token);
        }
        self.tokens += 1;
        match token.kind {
            // A colon: `@name := 1`.
            TokenKind::Punct(b':') => (self.has_side_effects, self.session_values) = (true, true),
            TokenKind::Punct(b'(') => self.add_parenthesis(),
            TokenKind::Word => self.add_word(&token),
            _ => {}
        }
        // A quoted name can be a variable's (@@`warning_count`) or a function's (`row_count`()).
        if let Some(name) = token.unquoted() {
            self.transaction |= is_one_of(name, TRANSACTION_WORDS);
            self.diagnostics |= is_one_of(name, DIAGNOSTICS_WORDS);
            self.session_values |= is_one_of(name, &["GET_LOCK"]);
        }
        self.last = Some(token);
    }

    /// A parenthesis: the name before it may be called.
    fn add_parenthesis(&mut self) {
        self.parenthesis = true;
        if let Some(name) = self.last.filter(|last| last.unquoted().is_some()) {
            self.aggregates |= is_one_of(name.text, AGGREGATE_FUNCTIONS);
            self.has_side_effects |=
                !PURE_BEFORE_PARENTHESIS.contains(&name.text.to_ascii_uppercase().as_slice());
        }
    }

    fn add_word(&mut self, token: &SqlToken<'_>) {
        self.has_side_effects |= is_one_of(token.text, SIDE_EFFECT_WORDS);
        self.session_values |= token.is_word("INTO") && self.word(0, &["SELECT", "WITH"]);
        // MySQL also reads a whole table by TABLE: SELECT 1 UNION TABLE t.
        self.from |= token.is_word("FROM") || token.is_word("TABLE");
        self.writes |= is_one_of(token.text, &["UPDATE", "DELETE", "INSERT"]);
        self.temporary |= token.is_word("TEMPORARY");
        self.statement |= token.is_word("STATEMENT");
    }

    fn word(&self, at: usize, words: &[&str]) -> bool {
        let token = self.start.get(at).copied().flatten();
        token.is_some_and(|token| words.iter().any(|word| token.is_word(word)))
    }

    fn effects(&self, no_functions: bool) -> StatementEffects {
        let base = StatementEffects {
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
        let is_read = matches!(verb, StatementVerb::Read | StatementVerb::With);
        if self.is_in_parentheses && !is_read {
            return StatementEffects::ALL;
        }
        match verb {
            StatementVerb::With if self.writes => StatementEffects::STORED_CODE,
            StatementVerb::Read | StatementVerb::With => StatementEffects {
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
                ..base
            },
            StatementVerb::Show => StatementEffects {
                result_table: !self.word(1, SHOWS_NO_TABLE),
                ..base
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
        // Without TEMPORARY, a name means a temporary table if there is one, except in CREATE TABLE.
        let temp_tables = self.temporary
            || !(self.word(0, &["CREATE", "GRANT", "REVOKE"]) && self.word(1, &["TABLE"]));
        StatementEffects {
            temp_tables,
            definition: !self.word(1, &["TEMPORARY"]),
            // DROP DATABASE leaves no current database; ALTER USER, RENAME USER and the like affect the session's privileges.
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
    /// SELECT, UPDATE or DELETE.
    With,
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

/// The statements that are understood. All others (CALL, EXECUTE, PREPARE, XA, FLUSH, MariaDB's compound ones, ...) may do anything.
const VERBS: &[(&[&str], StatementVerb)] = &[
    (&["SELECT"], StatementVerb::Read),
    (&["WITH"], StatementVerb::With),
    (
        &[
            "INSERT", "REPLACE", "UPDATE", "DELETE", "DO", "LOAD", "VALUES", "TABLE",
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

/// Variables and words that may set the next transaction only.
const TRANSACTION_WORDS: &[&str] = &[
    "TRANSACTION",
    "TRANSACTION_ISOLATION",
    "TRANSACTION_READ_ONLY",
    "TX_ISOLATION",
    "TX_READ_ONLY",
];

/// Words, functions and variables that read the previous statement's state.
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

/// Words that may precede a parenthesis and only compute.
#[rustfmt::skip]
const PURE_BEFORE_PARENTHESIS: &[&[u8]] = &[
    b"ABS", b"AGAINST", b"ALL", b"AND", b"ANY", b"AS", b"AVG", b"BETWEEN", b"BY", b"CAST", b"CEIL", b"CEILING",
    b"CHAR_LENGTH", b"COALESCE", b"CONCAT", b"CONCAT_WS", b"CONVERT", b"COUNT", b"CURDATE", b"CURRENT_TIMESTAMP", b"DATE",
    b"DATEDIFF", b"DATE_ADD", b"DATE_FORMAT", b"DATE_SUB", b"DAY", b"DISTINCT", b"ELSE", b"EXISTS", b"FLOOR", b"FROM",
    b"FROM_UNIXTIME", b"GREATEST", b"GROUP_CONCAT", b"HAVING", b"HOUR", b"IF", b"IFNULL", b"IN", b"INTERVAL", b"JOIN",
    b"LEAST", b"LEFT", b"LENGTH", b"LIKE", b"LOWER", b"MATCH", b"MAX", b"MIN", b"MINUTE", b"MOD", b"MONTH", b"NOT",
    b"NOW", b"NULLIF", b"ON", b"OR", b"OVER", b"REPLACE", b"RIGHT", b"ROUND", b"SECOND", b"SELECT", b"SOME", b"SUBSTR",
    b"SUBSTRING", b"SUM", b"THEN", b"TRIM", b"UNION", b"UNIX_TIMESTAMP", b"UPPER", b"USING", b"VALUES", b"WHEN", b"WHERE",
    b"YEAR",
];

/// What SHOW lists without reading tables. (`SHOW TABLES` lists temporary ones since MariaDB 11.2.)
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

/// Whether a text contains the name of a definition's temporary table anywhere, strings and comments included.
fn names_result_table(text: &[u8], definitions: &[TimelineDefinition]) -> bool {
    definitions
        .iter()
        .flat_map(|definition| [&definition.result.table, &definition.heads.table])
        .any(|table| {
            contains_ignoring_case(text, table)
                || (table.contains('`') && contains_ignoring_case(text, &table.replace('`', "``")))
        })
}
