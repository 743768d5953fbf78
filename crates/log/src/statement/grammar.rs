//! What a logged statement means for the tables, in one reading: by its first words, and by the names that stand where a
//! statement of its kind names tables.

use super::CreateSelectEffect;
use super::lexer::{LoggedStatementLexer, LoggedToken, LoggedTokenKind};
use super::routed_names::RoutedTableNames;

/// What one reading makes of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementMeaning {
    /// No row of the tables is changed, nor their form.
    Harmless,
    /// So it is; but a procedure, a view or a right may be another now.
    Redefines,
    /// It names one of the tables where it changes them, or their database.
    Tables,
    /// It may change rows that are not told.
    Rows,
    /// It cannot be read on from somewhere: harmless if what this names stands nowhere in it.
    Unreadable(UncertaintyScope),
}

/// What an unreadable statement may be about, by what was read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UncertaintyScope {
    /// No more than was read: it names no further tables.
    Nothing,
    /// New names of tables at most: one that there is would be refused.
    NewNames,
    /// Tables that it names.
    Tables,
    /// A database that it names.
    Database,
    /// Anything.
    Anything,
}

/// What is made and dropped, and holds no row: stored programs, accounts and the like.
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
/// What the server itself is made of; rows are where they were.
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
/// Words that may stand between the verb and what it is about.
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
/// First words behind `ALTER TABLE name` that stand in a list of changes, or for one of the table's own partitions: `EXCHANGE PARTITION` and
/// `CONVERT TABLE`, which take another table in, stand alone (`sql_yacc.yy` of both).
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
/// Settings under which the rest of a statement would be read otherwise than its event says.
const READING_SETTINGS: [&str; 3] = ["SQL_MODE", "CHARACTER_SET", "COLLATION"];

use StatementMeaning::{Harmless, Redefines, Rows, Tables, Unreadable};

/// What the words so far come to.
enum GrammarResult {
    /// Whatever stands behind them.
    Decided(StatementMeaning),
    /// If it can be read to its end; else it is about something of this scope.
    IfReadable(StatementMeaning, UncertaintyScope),
}

use GrammarResult::{Decided, IfReadable};

/// Reads a statement. `None`: no server has read it in this way.
pub(crate) fn meaning(
    mut tokens: LoggedStatementLexer<'_>,
    names: &RoutedTableNames<'_>,
    selects: CreateSelectEffect,
) -> Option<StatementMeaning> {
    let mut grammar = LoggedStatementGrammar {
        tokens: &mut tokens,
        names,
        create_select: selects,
    };
    let found = grammar.statement();
    if let Decided(meaning @ (Harmless | Redefines)) = found {
        return Some(meaning);
    }
    tokens.by_ref().for_each(drop);
    match (tokens.fault(), found) {
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

/// A table's name, with what stands before its point.
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
            // Of a table. MariaDB's ANALYZE of a statement carries that out.
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

    /// SET PASSWORD, SET DEFAULT ROLE, and MariaDB's SET STATEMENT ... FOR another one.
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
                // A function may be called.
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
                // It is nobody's but the session's.
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
            // `#mysql50#name` takes all tables along (UPGRADE DATA DIRECTORY NAME).
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
                // Where it is there already, only MariaDB's OR REPLACE does anything.
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
        // Filled by a query: with row format the log has the table without the query, and the rows behind it. A session that logs
        // statements may have called a function there that changes other tables.
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

    /// The table itself, and those that it is renamed to or exchanged with; columns may be named as they like.
    fn alter_table(&mut self) -> GrammarResult {
        let Some(table) = self.target() else {
            return IfReadable(Harmless, UncertaintyScope::Tables);
        };
        if self.is_table(&table) {
            return IfReadable(Tables, UncertaintyScope::Tables);
        }
        // Where one is read, no point follows the name.
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

    /// Every name may be one of a table's.
    fn any_table(&mut self) -> GrammarResult {
        while let Some(token) = self.tokens.next() {
            if !token.is_name() {
                continue;
            }
            // Behind a keyword a point stands for the current database; and some of these words may be names.
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

    /// One table is named, and nothing else.
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

    /// The table of an index.
    fn index_table(&mut self) -> GrammarResult {
        while let Some(token) = self.tokens.next() {
            if token.is_keyword("ON") {
                return self.single_table();
            }
        }
        IfReadable(Harmless, UncertaintyScope::Tables)
    }

    /// One database is named, and nothing else.
    fn database(&mut self) -> GrammarResult {
        let Some((before, name)) = self.target() else {
            return IfReadable(Harmless, UncertaintyScope::Database);
        };
        let own = |name: &LoggedToken<'_>| self.names.is_database(name);
        match own(&name) || before.as_ref().is_some_and(own) {
            true => IfReadable(Tables, UncertaintyScope::Database),
            false => IfReadable(Harmless, UncertaintyScope::Nothing),
        }
    }

    /// The table that a statement is about.
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

    /// A name, and what may follow it behind a point.
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

    /// True where a name that was read may be that of a timeline's database: what follows cannot be read, a point perhaps.
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

    /// The first word that is not one of these.
    fn skip(&mut self, words: &[&str]) -> Option<LoggedToken<'a>> {
        self.tokens.find(|token| !token.is_any_keyword(words))
    }

    /// What a statement is about: behind words in between, who defined it, and how.
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

    /// `= name`, `= name@host`, `= CURRENT_USER()`.
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

/// What is not known may do anything.
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
