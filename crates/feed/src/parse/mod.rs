//! The grammar: what of a SELECT both servers read alike under every `sql_mode`, and nothing else.
//!
//! It is a part of the servers' own (MySQL 9.7 and MariaDB 10.11, `sql_yacc.yy`), without operators whose meaning or whose
//! precedence a mode changes: `||`, `NOT` before a comparison, comparisons of comparisons.

mod condition;
mod derived;
mod words;

#[cfg(test)]
mod tests;

use headwater_sql::NameCase;

use crate::query::{Column, Condition, Item, Key, Literal, Name, Operand, Query, Source};
use crate::refused::Refused;
use crate::words::{Is, Words};
use words::Reader;

/// Reads a text whose words are known.
///
/// # Errors
/// Why it is none that can be narrowed.
pub fn parse(text: &[u8], words: &Words) -> Result<Query, Refused> {
    parse_as(text, words, NameCase::Kept)
}

/// The same for a server that compares names so. All names are folded: those of columns have no case anyway.
///
/// # Errors
/// As [`parse`].
pub fn parse_as(text: &[u8], words: &Words, case: NameCase) -> Result<Query, Refused> {
    let mut reader = Reader::new(text, words, case);
    let query = reader.query()?;
    match reader.is_at_end() {
        true => Ok(query),
        false => Err(reader.astray()),
    }
}

impl Reader<'_> {
    fn query(&mut self) -> Result<Query, Refused> {
        self.keyword("SELECT")?;
        let distinct = self.takes("DISTINCT") || self.takes("DISTINCTROW");
        if !distinct {
            self.takes("ALL");
        }
        let items = self.separated(Reader::item)?;
        self.keyword("FROM")?;
        let derived = self.derived()?;
        let (sources, filter) = match &derived {
            Some(_) => (Vec::new(), None),
            None => (self.sources()?, self.filter()?),
        };
        let filter_end = self.place();
        let mut group = Vec::new();
        if self.takes("GROUP") {
            self.keyword("BY")?;
            group = self.separated(Reader::column)?;
        }
        if self.is_at_end() || self.is_next("LIMIT") {
            return Err(Refused::Order);
        }
        self.keyword("ORDER")?;
        self.keyword("BY")?;
        let order = self.separated(Reader::key)?;
        if order.iter().any(|key| self.is_string(key, &items)) {
            return Err(Refused::Order);
        }
        if self.is_at_end() {
            return Err(Refused::Limit);
        }
        self.keyword("LIMIT")?;
        let first = self.count()?;
        let (limit, offset) = if self.takes_punct(b',') {
            (self.count()?, Some(first))
        } else if self.takes("OFFSET") {
            (first, Some(self.count()?))
        } else {
            (first, None)
        };
        let query = Query {
            distinct,
            items,
            sources,
            filter,
            filter_end,
            group,
            order,
            limit,
            offset,
            inner: Vec::new(),
        };
        match derived {
            Some(derived) => derived.read_through(query),
            None => Ok(query),
        }
    }

    /// WHERE, if it is next: where the word stands, and its condition.
    fn filter(&mut self) -> Result<Option<(usize, Condition)>, Refused> {
        match self.place_of("WHERE") {
            Some(at) => Ok(Some((at, self.condition()?))),
            None => Ok(None),
        }
    }

    /// A plain number, or a parameter.
    fn count(&mut self) -> Result<usize, Refused> {
        match self.peek() {
            Some(Is::Number | Is::Parameter) => Ok(self.advance()),
            _ => Err(Refused::Limit),
        }
    }

    fn item(&mut self) -> Result<Item, Refused> {
        if self.takes_punct(b'*') {
            return Ok(Item::All);
        }
        if let Some(qualifier) = self.all_of() {
            return Ok(Item::AllOf(qualifier));
        }
        let operand = self.operand()?;
        Ok(Item::Operand(operand, self.named()?))
    }

    /// Whether this may sort by a string of the answer, which orders nothing: servers call a string that is given no name by what stands in
    /// it, without white space in front.
    fn is_string(&self, key: &Key, items: &[Item]) -> bool {
        let name = key.column.name.text.as_bytes();
        let may_be_called_so = |item: &Item| {
            let Item::Operand(Operand::Literal(Literal::Text(at)), None) = item else {
                return false;
            };
            let quoted = self.written(*at);
            let string = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            // A letter of another alphabet may be folded to one of the name's.
            let is_plain = |byte: &u8| (b' '..=b'~').contains(byte);
            !string.iter().all(is_plain) || string.trim_ascii().eq_ignore_ascii_case(name)
        };
        key.column.qualifier.is_empty() && items.iter().any(may_be_called_so)
    }

    /// The name that a column or a table is given, with AS or without.
    fn named(&mut self) -> Result<Option<Name>, Refused> {
        match self.takes("AS") {
            true => self.name().map(Some),
            false => Ok(self.alias()),
        }
    }

    /// `t.*` or `db.t.*`.
    fn all_of(&mut self) -> Option<Vec<Name>> {
        let start = self.place();
        let mut qualifier = Vec::new();
        while qualifier.len() < 2 {
            let Ok(name) = self.name_behind_point(!qualifier.is_empty()) else {
                break;
            };
            qualifier.push(name);
            if !self.takes_punct(b'.') {
                break;
            }
            if self.takes_punct(b'*') {
                return Some(qualifier);
            }
        }
        self.go_back(start);
        None
    }

    fn sources(&mut self) -> Result<Vec<Source>, Refused> {
        let mut sources = Vec::new();
        self.joined(&mut sources)?;
        while self.takes_punct(b',') {
            self.joined(&mut sources)?;
        }
        Ok(sources)
    }

    /// A table, and what is joined to it. Parentheses around the first ones of a chain of joins change nothing.
    fn joined(&mut self, sources: &mut Vec<Source>) -> Result<(), Refused> {
        if self.takes_punct(b'(') {
            if self.is_next("SELECT") || self.is_next("WITH") || self.is_next("VALUES") {
                return Err(Refused::Structure);
            }
            self.deeper(|reader| reader.joined(sources))?;
            self.punct(b')')?;
        } else {
            sources.push(self.source(false)?);
        }
        loop {
            let cross = self.takes("CROSS");
            let inner = !cross && self.takes("INNER");
            let outer = !cross && !inner && self.takes("LEFT");
            if outer {
                self.takes("OUTER");
            }
            if !self.takes("JOIN") {
                return match cross || inner || outer {
                    true => Err(Refused::NotUnderstood),
                    false => Ok(()),
                };
            }
            let mut source = self.source(outer)?;
            if self.takes("ON") {
                source.on = Some(self.condition()?);
            } else if outer || self.is_next("USING") {
                return Err(Refused::NotUnderstood);
            }
            sources.push(source);
        }
    }

    fn source(&mut self, outer: bool) -> Result<Source, Refused> {
        if self.is_next_punct(b'(') {
            return Err(Refused::Structure);
        }
        let first = self.name()?;
        let (database, table) = match self.takes_punct(b'.') {
            true => (Some(first), self.name_behind_point(true)?),
            false => (None, first),
        };
        // A function in place of a table: JSON_TABLE(...).
        if self.is_next_punct(b'(') {
            return Err(Refused::Structure);
        }
        Ok(Source {
            database,
            table,
            alias: self.named()?,
            outer,
            on: None,
        })
    }

    fn key(&mut self) -> Result<Key, Refused> {
        let column = match self.peek() {
            Some(Is::Name | Is::Quoted) => self.column()?,
            _ => return Err(Refused::Order),
        };
        let descending = self.takes("DESC");
        if !descending {
            self.takes("ASC");
        }
        Ok(Key { column, descending })
    }

    /// A column, with its table and database in front or not.
    fn column(&mut self) -> Result<Column, Refused> {
        let mut names = vec![self.name()?];
        while names.len() < 3 && self.takes_punct(b'.') {
            names.push(self.name_behind_point(true)?);
        }
        let name = names.pop().ok_or(Refused::NotUnderstood)?;
        if self.is_next_punct(b'(') {
            return Err(Refused::NotPlain);
        }
        Ok(Column {
            qualifier: names,
            name,
        })
    }

    fn separated<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, Refused>,
    ) -> Result<Vec<T>, Refused> {
        let mut all = vec![one(self)?];
        while self.takes_punct(b',') {
            all.push(one(self)?);
        }
        Ok(all)
    }
}
