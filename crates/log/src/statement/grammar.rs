//! What a logged statement means for the tables, in one reading mode: by its first words, and by the names at the positions where such
//! a statement names tables.

use super::CreateSelectEffect;
use super::lexer::{LoggedStatementLexer, LoggedToken, LoggedTokenKind};
use super::routed_names::RoutedTableNames;

/// The meaning of a statement in one reading mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementMeaning {
    /// It changes neither rows nor definitions of the tables.
    Harmless,
    /// The same, but a procedure, a view or a privilege may have changed.
    Redefines,
    /// It names one of the tables as the object of a change, or their database.
    Tables,
    /// It may change rows without row events.
    Rows,
    /// Its remainder cannot be read: harmless if it contains no name of this scope.
    Unreadable(UncertaintyScope),
}

/// What an unreadable statement may be about, from the part that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UncertaintyScope {
    /// Nothing more than was read: it names no further tables.
    Nothing,
    /// At most new names of tables: an existing one would be refused.
    NewNames,
    Tables,
    Database,
    Anything,
}

/// Objects without rows: stored programs, accounts and the like.
const DEFINITION_OBJECTS: [&str; 12] = [
    "EVENT",
    "FUNCTION",
    "LIBRARY",
    "PACKAGE",
    "PROCEDURE",
    "ROLE",
    "SERVER",
    "TRIGGER",
    "USER",
    "VIEW",
    "JSON",
    "LOADABLE",
];
/// Parts of the server; no rows change.
const STORAGE_OBJECTS: [&str; 6] = [
    "INSTANCE",
    "LOGFILE",
    "REFERENCE",
    "RESOURCE",
    "TABLESPACE",
    "UNDO",
];
const TABLE_WORDS: [&str; 2] = ["TABLE", "TABLES"];
const WORDS_BEFORE_NAMES: [&str; 4] = ["EXISTS", "TABLE", "TABLES", "TO"];
const DATABASE_WORDS: [&str; 2] = ["DATABASE", "SCHEMA"];
/// Words that may stand between the verb and its object.
const MODIFIER_WORDS: [&str; 9] = [
    "AGGREGATE",
    "FULLTEXT",
    "IGNORE",
    "OFFLINE",
    "ONLINE",
    "OR",
    "UNIQUE",
    "VECTOR",
    "SPATIAL",
];
/// First words after `ALTER TABLE name` that begin a list of changes, or concern the table's own partitions: `EXCHANGE PARTITION` and
/// `CONVERT TABLE`, which involve another table, stand alone (`sql_yacc.yy` of both).
const ALTER_TABLE_CHANGES: [&str; 24] = [
    "ADD",
    "ALTER",
    "AUTO_INCREMENT",
    "AVG_ROW_LENGTH",
    "CHANGE",
    "CHARACTER",
    "CHARSET",
    "CHECKSUM",
    "COLLATE",
    "COMMENT",
    "CONNECTION",
    "DEFAULT",
    "DROP",
    "ENGINE",
    "FORCE",
    "KEY_BLOCK_SIZE",
    "MAX_ROWS",
    "MIN_ROWS",
    "MODIFY",
    "ORDER",
    "PARTITION",
    "RENAME",
    "REORGANIZE",
    "ROW_FORMAT",
];
const UNLOGGED_MODIFIERS: [&str; 2] = ["LOCAL", "NO_WRITE_TO_BINLOG"];
/// Settings that would change how the rest of a statement is read.
const READING_SETTINGS: [&str; 3] = ["SQL_MODE", "CHARACTER_SET", "COLLATION"];

use StatementMeaning::{Harmless, Redefines, Rows, Tables, Unreadable};

enum GrammarResult {
    /// Valid whatever follows.
    Decided(StatementMeaning),
    /// Valid if the statement can be read to its end; otherwise it may be about this scope.
    IfReadable(StatementMeaning, UncertaintyScope),
}

use GrammarResult::{Decided, IfReadable};

/// The meaning of a statement; `None`: no server has read it in this mode.
pub(crate) fn meaning(
    mut tokens: LoggedStatementLexer<'_>,
    names: &RoutedTableNames<'_>,
    create_select: CreateSelectEffect,
) -> Option<StatementMeaning> {
    let mut grammar = LoggedStatementGrammar {
        tokens: &mut tokens,
        names,
        create_select,
    };
    let result = grammar.statement();
    if let Decided(meaning @ (Harmless | Redefines)) = result {
        return Some(meaning);
    }
    tokens.by_ref().for_each(drop);
    match (tokens.fault(), result) {
        (Some(LoggedTokenKind::Invalid), _) => None,
        (_, Decided(meaning))
        | (_, IfReadable(meaning @ Tables, _))
        | (None, IfReadable(meaning, _)) => Some(meaning),
        (Some(_), IfReadable(_, scope)) => Some(Unreadable(scope)),
    }
}

struct LoggedStatementGrammar<'a, 't> {
    tokens: &'t mut LoggedStatementLexer<'a>,
    names: &'t RoutedTableNames<'t>,
    create_select: CreateSelectEffect,
}

type QualifiedTableToken<'a> = (Option<LoggedToken<'a>>, LoggedToken<'a>);

impl<'a> LoggedStatementGrammar<'a, '_> {
    fn statement(&mut self) -> GrammarResult {
        let Some(first) = self.tokens.next() else {
            return IfReadable(Harmless, UncertaintyScope::Anything);
        };
        if first.is_keyword("SET") {
            return self.set();
        }
        self.verb(&first)
    }

    fn verb(&mut self, first: &LoggedToken<'a>) -> GrammarResult {
        let verb = |word: &str| first.is_keyword(word);
        if first.is_any_keyword(&["GRANT", "REVOKE"]) {
            return Decided(Redefines);
        }
        if first.is_any_keyword(&["INSTALL", "UNINSTALL"]) {
            return Decided(Harmless);
        }
        if verb("FLUSH") {
            let privileges = self
                .skip(&UNLOGGED_MODIFIERS)
                .is_some_and(|next| next.is_keyword("PRIVILEGES"));
            return Decided(if privileges { Redefines } else { Harmless });
        }
        if first.is_any_keyword(&["ANALYZE", "OPTIMIZE"]) {
            // ANALYZE of a table. MariaDB's ANALYZE of a statement executes it.
            let table = self
                .skip(&UNLOGGED_MODIFIERS)
                .is_some_and(|next| next.is_any_keyword(&TABLE_WORDS));
            return if table {
                Decided(Harmless)
            } else {
                unknown_result()
            };
        }
        if verb("REPAIR") {
            return self.any_table();
        }
        if verb("TRUNCATE") {
            if self
                .tokens
                .peek()
                .is_some_and(|next| next.is_keyword("TABLE"))
            {
                self.tokens.next();
            }
            return self.single_table();
        }
        if verb("RENAME") {
            self.rename()
        } else if verb("DROP") {
            self.drop()
        } else if verb("ALTER") {
            self.alter()
        } else if verb("CREATE") {
            self.create()
        } else {
            unknown_result()
        }
    }

    /// SET PASSWORD, SET DEFAULT ROLE, and MariaDB's SET STATEMENT ... FOR another statement.
    fn set(&mut self) -> GrammarResult {
        let Some(next) = self.tokens.next() else {
            return unknown_result();
        };
        if next.is_keyword("PASSWORD") {
            return Decided(Harmless);
        }
        if next.is_keyword("DEFAULT")
            && self
                .tokens
                .next()
                .is_some_and(|next| next.is_keyword("ROLE"))
        {
            return Decided(Redefines);
        }
        if !next.is_keyword("STATEMENT") {
            return unknown_result();
        }
        while let Some(token) = self.tokens.next() {
            let starts = |name: &&str| {
                let start = token.text.get(..name.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
            };
            match token.kind {
                // It may call a function.
                LoggedTokenKind::Punctuation(b'(') => return unknown_result(),
                _ if token.is_name() && READING_SETTINGS.iter().any(starts) => {
                    return unknown_result();
                }
                _ if token.is_keyword("FOR") => {
                    let first = self.tokens.next();
                    return first.map_or_else(unknown_result, |first| self.verb(&first));
                }
                _ => {}
            }
        }
        unknown_result()
    }

    fn rename(&mut self) -> GrammarResult {
        match self.tokens.next() {
            Some(object) if object.is_keyword("USER") => Decided(Redefines),
            Some(object) if object.is_any_keyword(&TABLE_WORDS) => self.any_table(),
            _ => unknown_result(),
        }
    }

    fn drop(&mut self) -> GrammarResult {
        let Some(mut object) = self.skip(&MODIFIER_WORDS) else {
            return unknown_result();
        };
        if object.is_keyword("TEMPORARY") {
            match self.tokens.next() {
                // It belongs to the session alone.
                Some(next) if next.is_any_keyword(&TABLE_WORDS) || next.is_keyword("SEQUENCE") => {
                    return Decided(Harmless);
                }
                Some(next) => object = next,
                None => return unknown_result(),
            }
        }
        if object.is_any_keyword(&TABLE_WORDS) || object.is_keyword("SEQUENCE") {
            self.any_table()
        } else if object.is_keyword("INDEX") {
            self.index_table()
        } else if object.is_any_keyword(&DATABASE_WORDS) {
            self.database()
        } else {
            definition_result(&object)
        }
    }

    fn alter(&mut self) -> GrammarResult {
        let Some(object) = self.object() else {
            return unknown_result();
        };
        if object.is_keyword("TABLE") {
            self.alter_table()
        } else if object.is_keyword("SEQUENCE") {
            self.single_table()
        } else if object.is_any_keyword(&DATABASE_WORDS) {
            // `#mysql50#name` moves all tables (UPGRADE DATA DIRECTORY NAME).
            let old = self.tokens.peek();
            let old = old.is_some_and(|name| {
                name.kind != LoggedTokenKind::Word && name.text.starts_with(b"#")
            });
            if old {
                unknown_result()
            } else {
                Decided(Redefines)
            }
        } else {
            definition_result(&object)
        }
    }

    fn create(&mut self) -> GrammarResult {
        let mut replaces = false;
        let mut temporary = false;
        loop {
            let Some(object) = self.object() else {
                return unknown_result();
            };
            if object.is_keyword("REPLACE") {
                replaces = true;
            } else if object.is_keyword("TEMPORARY") {
                temporary = true;
            } else if object.is_keyword("TABLE") {
                return self.create_table(temporary);
            } else if object.is_keyword("SEQUENCE") {
                return if temporary {
                    Decided(Harmless)
                } else {
                    self.single_table()
                };
            } else if object.is_keyword("INDEX") {
                return self.index_table();
            } else if object.is_any_keyword(&DATABASE_WORDS) {
                // If the database exists, only MariaDB's OR REPLACE has an effect.
                return if replaces {
                    self.database()
                } else {
                    Decided(Redefines)
                };
            } else {
                return definition_result(&object);
            }
        }
    }

    fn create_table(&mut self, temporary: bool) -> GrammarResult {
        let Some(table) = self.target() else {
            return unknown_result();
        };
        if !temporary && self.is_table(&table) {
            return IfReadable(Tables, UncertaintyScope::Anything);
        }
        if self.may_be_database(&table) {
            return IfReadable(Harmless, UncertaintyScope::Anything);
        }
        if self.create_select == CreateSelectEffect::Never
            || self.create_select == CreateSelectEffect::Temporary && !temporary
        {
            return IfReadable(Harmless, UncertaintyScope::Nothing);
        }
        // Filled by a query: in row format the log has the table without the query, and the rows after it. A session that logs statements
        // may have called a function there that changes other tables.
        while let Some(token) = self.tokens.next() {
            if token.is_keyword("SELECT") || token.is_keyword("TABLE") {
                return IfReadable(Rows, UncertaintyScope::Anything);
            }
            if token.is_keyword("VALUES") {
                let next = self.tokens.peek();
                if !next.is_some_and(|next| next.is_any_keyword(&["LESS", "IN"])) {
                    return IfReadable(Rows, UncertaintyScope::Anything);
                }
            }
        }
        IfReadable(Harmless, UncertaintyScope::Anything)
    }

    /// Checks the table itself, and those that it is renamed to or exchanged with; column names do not matter.
    fn alter_table(&mut self) -> GrammarResult {
        let Some(table) = self.target() else {
            return IfReadable(Harmless, UncertaintyScope::Tables);
        };
        if self.is_table(&table) {
            return IfReadable(Tables, UncertaintyScope::Tables);
        }
        // If such a word is read, no point follows the name.
        let change = |next: LoggedToken<'_>| next.is_any_keyword(&ALTER_TABLE_CHANGES);
        let scope = match self.tokens.peek().is_some_and(change) {
            true => UncertaintyScope::NewNames,
            false => UncertaintyScope::Tables,
        };
        let mut depth = 0_usize;
        let mut expected = false;
        let mut other = false;
        while let Some(token) = self.tokens.next() {
            match token.kind {
                LoggedTokenKind::Punctuation(b'(') => {
                    depth += 1;
                    expected = false;
                }
                LoggedTokenKind::Punctuation(b')') => depth = depth.saturating_sub(1),
                _ if depth > 0 => {}
                LoggedTokenKind::Punctuation(b',') => (expected, other) = (false, false),
                LoggedTokenKind::Punctuation(b'=' | b'.') => {}
                _ if token.is_keyword("RENAME") => {
                    let next = self.tokens.peek();
                    other =
                        next.is_some_and(|next| next.is_any_keyword(&["COLUMN", "INDEX", "KEY"]));
                    expected = !other;
                }
                _ if token.is_any_keyword(&["TABLE", "TO", "AS"]) => expected = !other,
                _ if expected && token.is_name() => {
                    expected = false;
                    let table = self.qualified(token);
                    if self.is_table(&table) {
                        return IfReadable(Tables, UncertaintyScope::Tables);
                    }
                }
                _ => expected = false,
            }
        }
        IfReadable(Harmless, scope)
    }

    fn any_table(&mut self) -> GrammarResult {
        while let Some(token) = self.tokens.next() {
            if !token.is_name() {
                continue;
            }
            // After a keyword a point stands for the current database; and some of these words may be names.
            let table = match token.is_any_keyword(&WORDS_BEFORE_NAMES) {
                true => (None, token),
                false => self.qualified(token),
            };
            if self.is_table(&table) {
                return IfReadable(Tables, UncertaintyScope::Tables);
            }
        }
        IfReadable(Harmless, UncertaintyScope::Tables)
    }

    fn single_table(&mut self) -> GrammarResult {
        match self.target() {
            None => IfReadable(Harmless, UncertaintyScope::Tables),
            Some(table) if self.is_table(&table) => IfReadable(Tables, UncertaintyScope::Tables),
            Some(table) if self.may_be_database(&table) => {
                IfReadable(Harmless, UncertaintyScope::Tables)
            }
            Some(_) => IfReadable(Harmless, UncertaintyScope::Nothing),
        }
    }

    fn index_table(&mut self) -> GrammarResult {
        while let Some(token) = self.tokens.next() {
            if token.is_keyword("ON") {
                return self.single_table();
            }
        }
        IfReadable(Harmless, UncertaintyScope::Tables)
    }

    fn database(&mut self) -> GrammarResult {
        let Some((before, name)) = self.target() else {
            return IfReadable(Harmless, UncertaintyScope::Database);
        };
        let is_routed = |name: &LoggedToken<'_>| self.names.is_database(name);
        match is_routed(&name) || before.as_ref().is_some_and(is_routed) {
            true => IfReadable(Tables, UncertaintyScope::Database),
            false => IfReadable(Harmless, UncertaintyScope::Nothing),
        }
    }

    /// Reads the name of the statement's table.
    fn target(&mut self) -> Option<QualifiedTableToken<'a>> {
        let mut first = self.tokens.next()?;
        if first.is_keyword("IF") {
            let exists = |token: &LoggedToken<'_>| token.is_keyword("EXISTS");
            self.skip(&["NOT"]).filter(exists)?;
            first = self.tokens.next()?;
        }
        if first.is_punct(b'.') {
            first = self.tokens.next()?;
        }
        first.is_name().then(|| self.qualified(first))
    }

    /// Reads a name and its qualified parts.
    fn qualified(&mut self, first: LoggedToken<'a>) -> QualifiedTableToken<'a> {
        let mut name = (None, first);
        while self.tokens.peek().is_some_and(|next| next.is_punct(b'.')) {
            self.tokens.next();
            match self.tokens.next() {
                Some(next) if next.is_name() => name = (Some(name.1), next),
                _ => break,
            }
        }
        name
    }

    /// True if a name may be that of a timeline's database: what follows cannot be read, and may be a point.
    fn may_be_database(&self, (database, name): &QualifiedTableToken<'a>) -> bool {
        let fault = |next: LoggedToken<'_>| {
            matches!(
                next.kind,
                LoggedTokenKind::Undecidable | LoggedTokenKind::Invalid
            )
        };
        let unread = self.tokens.fault().is_some() || self.tokens.peek().is_some_and(fault);
        database.is_none() && unread && self.names.is_database(name)
    }

    fn is_table(&self, (database, name): &QualifiedTableToken<'a>) -> bool {
        self.names.is_table(database.as_ref(), name)
    }

    /// Consumes these words and returns the first other one.
    fn skip(&mut self, words: &[&str]) -> Option<LoggedToken<'a>> {
        self.tokens.find(|token| !token.is_any_keyword(words))
    }

    /// Returns the object of a statement, after modifiers, the definer and options.
    fn object(&mut self) -> Option<LoggedToken<'a>> {
        loop {
            let token = self.skip(&MODIFIER_WORDS)?;
            if token.is_keyword("DEFINER") {
                self.skip_definer()?;
            } else if token.is_keyword("ALGORITHM") {
                self.tokens.next().filter(|next| next.is_punct(b'='))?;
                self.tokens.next()?;
            } else if token.is_keyword("SQL") {
                self.tokens
                    .next()
                    .filter(|next| next.is_keyword("SECURITY"))?;
                self.tokens.next()?;
            } else {
                return Some(token);
            }
        }
    }

    /// Skips `= name`, `= name@host` or `= CURRENT_USER()`.
    fn skip_definer(&mut self) -> Option<()> {
        self.tokens.next().filter(|next| next.is_punct(b'='))?;
        self.tokens.next()?;
        let next = self.tokens.peek()?;
        if next.is_punct(b'@') {
            self.tokens.next();
            self.tokens.next()?;
        } else if next.is_punct(b'(') {
            self.tokens.next();
            self.tokens.next().filter(|next| next.is_punct(b')'))?;
        }
        Some(())
    }
}

/// The result for unknown statements: they may do anything.
fn unknown_result() -> GrammarResult {
    IfReadable(Rows, UncertaintyScope::Anything)
}

fn definition_result(object: &LoggedToken<'_>) -> GrammarResult {
    if object.is_any_keyword(&DEFINITION_OBJECTS) {
        Decided(Redefines)
    } else if object.is_any_keyword(&STORAGE_OBJECTS) {
        Decided(Harmless)
    } else {
        unknown_result()
    }
}
