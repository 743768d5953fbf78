//! What a logged statement means for the tables, in one reading: by its first words, and by the names that stand where a
//! statement of its kind names tables.

use super::Selects;
use super::lexer::{Kind, Lexer, Token};
use super::names::Names;

/// What one reading makes of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// No row of the tables is changed, nor their form.
    Harmless,
    /// So it is; but a procedure, a view or a right may be another now.
    Redefines,
    /// It names one of the tables where it changes them, or their database.
    Tables,
    /// It may change rows that are not told.
    Rows,
    /// It cannot be read on from somewhere: harmless if what this names stands nowhere in it.
    Unsure(Scope),
}

/// What an unreadable statement may be about, by what was read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
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
const DEFINITIONS: [&str; 12] = [
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
const STORES: [&str; 6] = [
    "INSTANCE",
    "LOGFILE",
    "REFERENCE",
    "RESOURCE",
    "TABLESPACE",
    "UNDO",
];
const TABLES: [&str; 2] = ["TABLE", "TABLES"];
const BEFORE_NAMES: [&str; 4] = ["EXISTS", "TABLE", "TABLES", "TO"];
const DATABASES: [&str; 2] = ["DATABASE", "SCHEMA"];
/// Words that may stand between the verb and what it is about.
const BETWEEN: [&str; 9] = [
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
const CHANGES: [&str; 24] = [
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
const UNLOGGED: [&str; 2] = ["LOCAL", "NO_WRITE_TO_BINLOG"];
/// Settings under which the rest of a statement would be read otherwise than its event says.
const READING: [&str; 3] = ["SQL_MODE", "CHARACTER_SET", "COLLATION"];

use Meaning::{Harmless, Redefines, Rows, Tables, Unsure};

/// What the words so far come to.
enum Found {
    /// Whatever stands behind them.
    Decided(Meaning),
    /// If it can be read to its end; else it is about something of this scope.
    Read(Meaning, Scope),
}

use Found::{Decided, Read};

/// Reads a statement. `None`: no server has read it in this way.
pub(crate) fn meaning(
    mut tokens: Lexer<'_>,
    names: &Names<'_>,
    selects: Selects,
) -> Option<Meaning> {
    let mut grammar = Grammar {
        tokens: &mut tokens,
        names,
        selects,
    };
    let found = grammar.statement();
    if let Decided(meaning @ (Harmless | Redefines)) = found {
        return Some(meaning);
    }
    tokens.by_ref().for_each(drop);
    match (tokens.fault(), found) {
        (Some(Kind::Broken), _) => None,
        (_, Decided(meaning)) | (_, Read(meaning @ Tables, _)) | (None, Read(meaning, _)) => {
            Some(meaning)
        }
        (Some(_), Read(_, scope)) => Some(Unsure(scope)),
    }
}

struct Grammar<'a, 't> {
    tokens: &'t mut Lexer<'a>,
    names: &'t Names<'t>,
    selects: Selects,
}

/// A table's name, with what stands before its point.
type Qualified<'a> = (Option<Token<'a>>, Token<'a>);

impl<'a> Grammar<'a, '_> {
    fn statement(&mut self) -> Found {
        let Some(first) = self.tokens.next() else {
            return Read(Harmless, Scope::Anything);
        };
        if first.is("SET") {
            return self.set();
        }
        self.verb(&first)
    }

    fn verb(&mut self, first: &Token<'a>) -> Found {
        let verb = |word: &str| first.is(word);
        if first.is_one_of(&["GRANT", "REVOKE"]) {
            return Decided(Redefines);
        }
        if first.is_one_of(&["INSTALL", "UNINSTALL"]) {
            return Decided(Harmless);
        }
        if verb("FLUSH") {
            let privileges = self
                .skip(&UNLOGGED)
                .is_some_and(|next| next.is("PRIVILEGES"));
            return Decided(if privileges { Redefines } else { Harmless });
        }
        if first.is_one_of(&["ANALYZE", "OPTIMIZE"]) {
            // Of a table. MariaDB's ANALYZE of a statement carries that out.
            let table = self
                .skip(&UNLOGGED)
                .is_some_and(|next| next.is_one_of(&TABLES));
            return if table { Decided(Harmless) } else { unknown() };
        }
        if verb("REPAIR") {
            return self.any_name();
        }
        if verb("TRUNCATE") {
            if self.tokens.peek().is_some_and(|next| next.is("TABLE")) {
                self.tokens.next();
            }
            return self.only_name();
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
            unknown()
        }
    }

    /// SET PASSWORD, SET DEFAULT ROLE, and MariaDB's SET STATEMENT ... FOR another one.
    fn set(&mut self) -> Found {
        let Some(next) = self.tokens.next() else {
            return unknown();
        };
        if next.is("PASSWORD") {
            return Decided(Harmless);
        }
        if next.is("DEFAULT") && self.tokens.next().is_some_and(|next| next.is("ROLE")) {
            return Decided(Redefines);
        }
        if !next.is("STATEMENT") {
            return unknown();
        }
        while let Some(token) = self.tokens.next() {
            let starts = |name: &&str| {
                let start = token.text.get(..name.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
            };
            match token.kind {
                // A function may be called.
                Kind::Punct(b'(') => return unknown(),
                _ if token.names() && READING.iter().any(starts) => return unknown(),
                _ if token.is("FOR") => {
                    let first = self.tokens.next();
                    return first.map_or_else(unknown, |first| self.verb(&first));
                }
                _ => {}
            }
        }
        unknown()
    }

    fn rename(&mut self) -> Found {
        match self.tokens.next() {
            Some(object) if object.is("USER") => Decided(Redefines),
            Some(object) if object.is_one_of(&TABLES) => self.any_name(),
            _ => unknown(),
        }
    }

    fn drop(&mut self) -> Found {
        let Some(mut object) = self.skip(&BETWEEN) else {
            return unknown();
        };
        if object.is("TEMPORARY") {
            match self.tokens.next() {
                // It is nobody's but the session's.
                Some(next) if next.is_one_of(&TABLES) || next.is("SEQUENCE") => {
                    return Decided(Harmless);
                }
                Some(next) => object = next,
                None => return unknown(),
            }
        }
        if object.is_one_of(&TABLES) || object.is("SEQUENCE") {
            self.any_name()
        } else if object.is("INDEX") {
            self.behind_on()
        } else if object.is_one_of(&DATABASES) {
            self.database()
        } else {
            definition(&object)
        }
    }

    fn alter(&mut self) -> Found {
        let Some(object) = self.object() else {
            return unknown();
        };
        if object.is("TABLE") {
            self.alter_table()
        } else if object.is("SEQUENCE") {
            self.only_name()
        } else if object.is_one_of(&DATABASES) {
            // `#mysql50#name` takes all tables along (UPGRADE DATA DIRECTORY NAME).
            let old = self.tokens.peek();
            let old =
                old.is_some_and(|name| name.kind != Kind::Word && name.text.starts_with(b"#"));
            if old { unknown() } else { Decided(Redefines) }
        } else {
            definition(&object)
        }
    }

    fn create(&mut self) -> Found {
        let mut replaces = false;
        let mut temporary = false;
        loop {
            let Some(object) = self.object() else {
                return unknown();
            };
            if object.is("REPLACE") {
                replaces = true;
            } else if object.is("TEMPORARY") {
                temporary = true;
            } else if object.is("TABLE") {
                return self.create_table(temporary);
            } else if object.is("SEQUENCE") {
                return if temporary {
                    Decided(Harmless)
                } else {
                    self.only_name()
                };
            } else if object.is("INDEX") {
                return self.behind_on();
            } else if object.is_one_of(&DATABASES) {
                // Where it is there already, only MariaDB's OR REPLACE does anything.
                return if replaces {
                    self.database()
                } else {
                    Decided(Redefines)
                };
            } else {
                return definition(&object);
            }
        }
    }

    fn create_table(&mut self, temporary: bool) -> Found {
        let Some(table) = self.target() else {
            return unknown();
        };
        if !temporary && self.is_table(&table) {
            return Read(Tables, Scope::Anything);
        }
        if self.is_open(&table) {
            return Read(Harmless, Scope::Anything);
        }
        if self.selects == Selects::Never || self.selects == Selects::Temporary && !temporary {
            return Read(Harmless, Scope::Nothing);
        }
        // Filled by a query: with row format the log has the table without the query, and the rows behind it. A session that logs
        // statements may have called a function there that changes other tables.
        while let Some(token) = self.tokens.next() {
            if token.is("SELECT") || token.is("TABLE") {
                return Read(Rows, Scope::Anything);
            }
            if token.is("VALUES") {
                let next = self.tokens.peek();
                if !next.is_some_and(|next| next.is_one_of(&["LESS", "IN"])) {
                    return Read(Rows, Scope::Anything);
                }
            }
        }
        Read(Harmless, Scope::Anything)
    }

    /// The table itself, and those that it is renamed to or exchanged with; columns may be named as they like.
    fn alter_table(&mut self) -> Found {
        let Some(table) = self.target() else {
            return Read(Harmless, Scope::Tables);
        };
        if self.is_table(&table) {
            return Read(Tables, Scope::Tables);
        }
        // Where one is read, no point follows the name.
        let change = |next: Token<'_>| next.is_one_of(&CHANGES);
        let scope = match self.tokens.peek().is_some_and(change) {
            true => Scope::NewNames,
            false => Scope::Tables,
        };
        let mut depth = 0_usize;
        let mut expected = false;
        let mut other = false;
        while let Some(token) = self.tokens.next() {
            match token.kind {
                Kind::Punct(b'(') => {
                    depth += 1;
                    expected = false;
                }
                Kind::Punct(b')') => depth = depth.saturating_sub(1),
                _ if depth > 0 => {}
                Kind::Punct(b',') => (expected, other) = (false, false),
                Kind::Punct(b'=' | b'.') => {}
                _ if token.is("RENAME") => {
                    let next = self.tokens.peek();
                    other = next.is_some_and(|next| next.is_one_of(&["COLUMN", "INDEX", "KEY"]));
                    expected = !other;
                }
                _ if token.is_one_of(&["TABLE", "TO", "AS"]) => expected = !other,
                _ if expected && token.names() => {
                    expected = false;
                    let table = self.qualified(token);
                    if self.is_table(&table) {
                        return Read(Tables, Scope::Tables);
                    }
                }
                _ => expected = false,
            }
        }
        Read(Harmless, scope)
    }

    /// Every name may be one of a table's.
    fn any_name(&mut self) -> Found {
        while let Some(token) = self.tokens.next() {
            if !token.names() {
                continue;
            }
            // Behind a keyword a point stands for the current database; and some of these words may be names.
            let table = match token.is_one_of(&BEFORE_NAMES) {
                true => (None, token),
                false => self.qualified(token),
            };
            if self.is_table(&table) {
                return Read(Tables, Scope::Tables);
            }
        }
        Read(Harmless, Scope::Tables)
    }

    /// One table is named, and nothing else.
    fn only_name(&mut self) -> Found {
        match self.target() {
            None => Read(Harmless, Scope::Tables),
            Some(table) if self.is_table(&table) => Read(Tables, Scope::Tables),
            Some(table) if self.is_open(&table) => Read(Harmless, Scope::Tables),
            Some(_) => Read(Harmless, Scope::Nothing),
        }
    }

    /// The table of an index.
    fn behind_on(&mut self) -> Found {
        while let Some(token) = self.tokens.next() {
            if token.is("ON") {
                return self.only_name();
            }
        }
        Read(Harmless, Scope::Tables)
    }

    /// One database is named, and nothing else.
    fn database(&mut self) -> Found {
        let Some((before, name)) = self.target() else {
            return Read(Harmless, Scope::Database);
        };
        let own = |name: &Token<'_>| self.names.is_database(name);
        match own(&name) || before.as_ref().is_some_and(own) {
            true => Read(Tables, Scope::Database),
            false => Read(Harmless, Scope::Nothing),
        }
    }

    /// The table that a statement is about.
    fn target(&mut self) -> Option<Qualified<'a>> {
        let mut first = self.tokens.next()?;
        if first.is("IF") {
            let exists = |token: &Token<'_>| token.is("EXISTS");
            self.skip(&["NOT"]).filter(exists)?;
            first = self.tokens.next()?;
        }
        if first.is_punct(b'.') {
            first = self.tokens.next()?;
        }
        first.names().then(|| self.qualified(first))
    }

    /// A name, and what may follow it behind a point.
    fn qualified(&mut self, first: Token<'a>) -> Qualified<'a> {
        let mut name = (None, first);
        while self.tokens.peek().is_some_and(|next| next.is_punct(b'.')) {
            self.tokens.next();
            match self.tokens.next() {
                Some(next) if next.names() => name = (Some(name.1), next),
                _ => break,
            }
        }
        name
    }

    /// True where a name that was read may be that of a timeline's database: what follows cannot be read, a point perhaps.
    fn is_open(&self, (database, name): &Qualified<'a>) -> bool {
        let fault = |next: Token<'_>| matches!(next.kind, Kind::Unsure | Kind::Broken);
        let unread = self.tokens.fault().is_some() || self.tokens.peek().is_some_and(fault);
        database.is_none() && unread && self.names.is_database(name)
    }

    fn is_table(&self, (database, name): &Qualified<'a>) -> bool {
        self.names.is_table(database.as_ref(), name)
    }

    /// The first word that is not one of these.
    fn skip(&mut self, words: &[&str]) -> Option<Token<'a>> {
        self.tokens.find(|token| !token.is_one_of(words))
    }

    /// What a statement is about: behind words in between, who defined it, and how.
    fn object(&mut self) -> Option<Token<'a>> {
        loop {
            let token = self.skip(&BETWEEN)?;
            if token.is("DEFINER") {
                self.skip_definer()?;
            } else if token.is("ALGORITHM") {
                self.tokens.next().filter(|next| next.is_punct(b'='))?;
                self.tokens.next()?;
            } else if token.is("SQL") {
                self.tokens.next().filter(|next| next.is("SECURITY"))?;
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
fn unknown() -> Found {
    Read(Rows, Scope::Anything)
}

fn definition(object: &Token<'_>) -> Found {
    if object.is_one_of(&DEFINITIONS) {
        Decided(Redefines)
    } else if object.is_one_of(&STORES) {
        Decided(Harmless)
    } else {
        unknown()
    }
}
