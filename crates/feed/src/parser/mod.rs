//! The grammar: the part of SELECT that both servers read alike under every `sql_mode`.
//!
//! It is a part of the servers' own grammars (MySQL 9.7 and MariaDB 10.11, `sql_yacc.yy`), without operators whose meaning or precedence a
//! mode changes: `||`, `NOT` before a comparison, comparisons of comparisons.

mod author_groups;
mod condition;
mod count;
mod derived_join;
mod derived_table;
mod id_list;
mod newest;
mod outer_select;
mod word_reader;

#[cfg(test)]
mod tests;

use headwater_sql::NameCase;

use crate::query::{
    ColumnReference, ComparisonOperator, ConditionKind, FeedSelect, Literal, Operand, OrderKey,
    SelectCondition, SelectItem, SqlIdentifier, TableReference,
};
use crate::refusal::NarrowingRefusal;
use crate::words::{StatementWords, WordKind};
use word_reader::{NamedSelect, WordReader};

/// Parses a text into a SELECT.
///
/// # Errors
/// Why it cannot be narrowed.
pub fn parse(text: &[u8], words: &StatementWords) -> Result<FeedSelect, NarrowingRefusal> {
    parse_as(text, words, NameCase::Sensitive)
}

/// Parses a text for a server with this case of names. All names are folded: column names have no case anyway.
///
/// # Errors
/// As [`parse`].
pub fn parse_as(
    text: &[u8],
    words: &StatementWords,
    case: NameCase,
) -> Result<FeedSelect, NarrowingRefusal> {
    parse_or_place(text, words, case).map_err(|(why, _)| why)
}

/// Where the grammar ends in a text that it does not know: a few words from there on. `None`: it knows the text.
#[must_use]
pub fn refused_words(text: &[u8], words: &StatementWords) -> Option<String> {
    /// Most characters that are shown.
    const MOST: usize = 40;
    let (_, place) = parse_or_place(text, words, NameCase::Sensitive).err()?;
    let rest = String::from_utf8_lossy(text.get(place..)?);
    let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(match rest.char_indices().nth(MOST) {
        None if rest.is_empty() => "its end".to_owned(),
        None => format!("`{rest}`"),
        Some((end, _)) => format!("`{} ...`", rest.get(..end).unwrap_or_default()),
    })
}

/// Parses a text, or says why not, and the byte from which on nothing was read.
fn parse_or_place(
    text: &[u8],
    words: &StatementWords,
    case: NameCase,
) -> Result<FeedSelect, (NarrowingRefusal, usize)> {
    let counted = counted_or_place(text, words, case);
    if let Some(Ok(count)) = counted {
        return Ok(count);
    }
    let mut reader = WordReader::new(text, words, case);
    let named = reader.with_selects().map_err(|why| match why {
        NarrowingRefusal::NotUnderstood => NarrowingRefusal::Structure,
        why => why,
    });
    let query = named.and_then(|()| reader.query());
    let mut groups = WordReader::new(text, words, case);
    let of_groups = groups.author_groups();
    let of_groups = of_groups.and_then(|query| groups.at_end(query));
    let why = match query.and_then(|query| reader.at_end(query)) {
        // Which of the two it is depends on what it groups by.
        Ok(query) => {
            return Ok(FeedSelect {
                author_groups: of_groups.ok().and_then(|query| query.author_groups),
                ..query
            });
        }
        Err(why) => why,
    };
    if let Ok(query) = of_groups {
        return Ok(query);
    }
    let mut by_ids = WordReader::new(text, words, case);
    let query = by_ids.id_list_select();
    if let Ok(query) = query.and_then(|query| by_ids.at_end(query)) {
        return Ok(query);
    }
    let mut newest = WordReader::new(text, words, case);
    let query = newest.newest_select();
    if let Ok(query) = query.and_then(|query| newest.at_end(query)) {
        return Ok(query);
    }
    // A page may be within another SELECT.
    let mut outer = WordReader::new(text, words, case);
    let query = outer.outer_select();
    let query = query.and_then(|query| outer.at_end(query));
    query.map_err(|_| match counted {
        Some(Err(refused)) => refused,
        _ => (why, reader.furthest().max(outer.furthest())),
    })
}

/// The count that a text is, or why it is none that is known; `None`: it does not begin as one.
fn counted_or_place(
    text: &[u8],
    words: &StatementWords,
    case: NameCase,
) -> Option<Result<FeedSelect, (NarrowingRefusal, usize)>> {
    let mut reader = WordReader::new(text, words, case);
    reader.begins_count().then(|| {
        let query = reader.count_select();
        let query = query.and_then(|query| reader.at_end(query));
        query.map_err(|why| (why, reader.furthest()))
    })
}

impl WordReader<'_> {
    fn at_end(&self, query: FeedSelect) -> Result<FeedSelect, NarrowingRefusal> {
        match self.is_at_end() {
            true => Ok(query),
            false => Err(self.refusal()),
        }
    }

    fn query(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        let Some(union) = self.union()? else {
            return self.select();
        };
        let end = self.position();
        let query = self.order_and_limit(FeedSelect {
            items: vec![SelectItem::All],
            filter_end: end,
            ..FeedSelect::default()
        })?;
        union.read_through(query)
    }

    fn select(&mut self) -> Result<FeedSelect, NarrowingRefusal> {
        self.expect_keyword("SELECT")?;
        let distinct = self.distinct();
        let items = self.separated(WordReader::item)?;
        self.expect_keyword("FROM")?;
        let derived = self.derived()?;
        let (sources, filter) = match &derived {
            Some(_) => (Vec::new(), None),
            None => {
                self.joins_selects = true;
                let sources = self.table_references();
                self.joins_selects = false;
                (sources?, self.filter()?)
            }
        };
        let filter_end = self.position();
        let group = self.group()?;
        let query = self.order_and_limit(FeedSelect {
            distinct,
            items,
            sources,
            filter,
            filter_end,
            group,
            ..FeedSelect::default()
        })?;
        match derived {
            Some(derived) => derived.read_through(query),
            None => self.with_inner_columns(query),
        }
    }

    /// DISTINCT or ALL after SELECT; true for DISTINCT.
    fn distinct(&mut self) -> bool {
        let distinct = self.take_keyword("DISTINCT") || self.take_keyword("DISTINCTROW");
        if !distinct {
            self.take_keyword("ALL");
        }
        distinct
    }

    /// GROUP BY, if it is next.
    fn group(&mut self) -> Result<Vec<ColumnReference>, NarrowingRefusal> {
        if !self.take_keyword("GROUP") {
            return Ok(Vec::new());
        }
        self.expect_keyword("BY")?;
        self.separated(WordReader::column)
    }

    /// Reads ORDER BY and LIMIT of a SELECT.
    fn order_and_limit(&mut self, query: FeedSelect) -> Result<FeedSelect, NarrowingRefusal> {
        let items = &query.items;
        if self.is_at_end() || self.is_next("LIMIT") {
            return Err(NarrowingRefusal::Order);
        }
        self.expect_keyword("ORDER")?;
        self.expect_keyword("BY")?;
        let order = self.separated(WordReader::order_key)?;
        if order.iter().any(|key| self.may_sort_by_string(key, items)) {
            return Err(NarrowingRefusal::Order);
        }
        if self.is_at_end() {
            return Err(NarrowingRefusal::Limit);
        }
        let order_end = self.position();
        let (limit, offset) = self.limit()?;
        Ok(FeedSelect {
            order,
            order_end,
            limit: Some(limit),
            offset,
            ..query
        })
    }

    /// LIMIT: the positions of its number, and of OFFSET's.
    fn limit(&mut self) -> Result<(usize, Option<usize>), NarrowingRefusal> {
        self.expect_keyword("LIMIT")?;
        let first = self.row_count()?;
        Ok(if self.take_punct(b',') {
            (self.row_count()?, Some(first))
        } else if self.take_keyword("OFFSET") {
            (first, Some(self.row_count()?))
        } else {
            (first, None)
        })
    }

    /// LIMIT and OFFSET, if they are next.
    fn limit_if_next(&mut self) -> Result<(Option<usize>, Option<usize>), NarrowingRefusal> {
        match self.is_next("LIMIT") {
            true => self.limit().map(|(limit, offset)| (Some(limit), offset)),
            false => Ok((None, None)),
        }
    }

    /// DESC or ASC, if it is next. True for DESC.
    fn is_descending(&mut self) -> bool {
        let descending = self.take_keyword("DESC");
        if !descending {
            self.take_keyword("ASC");
        }
        descending
    }

    /// WHERE, if it is next: the position of the word, and the condition.
    fn filter(&mut self) -> Result<Option<(usize, SelectCondition)>, NarrowingRefusal> {
        match self.take_keyword_position("WHERE") {
            Some(at) => Ok(Some((at, self.condition()?))),
            None => Ok(None),
        }
    }

    /// A plain number, or a parameter.
    fn row_count(&mut self) -> Result<usize, NarrowingRefusal> {
        match self.peek() {
            Some(WordKind::Number | WordKind::Parameter) => Ok(self.advance()),
            _ => Err(NarrowingRefusal::Limit),
        }
    }

    fn item(&mut self) -> Result<SelectItem, NarrowingRefusal> {
        if self.take_punct(b'*') {
            return Ok(SelectItem::All);
        }
        if let Some(qualifier) = self.all_of() {
            return Ok(SelectItem::AllOf(qualifier));
        }
        let operand = match self.count()? {
            Some(count) => count,
            None => self.value()?,
        };
        Ok(SelectItem::Operand(operand, self.column_alias()?))
    }

    /// The alias of a column of the reply: after AS, it may be a string.
    fn column_alias(&mut self) -> Result<Option<SqlIdentifier>, NarrowingRefusal> {
        if !self.take_keyword("AS") {
            return Ok(self.alias());
        }
        match self.string_as_name() {
            Some(name) => Ok(Some(name)),
            None => self.name().map(Some),
        }
    }

    /// An operand, or a condition as a value: `a IS NULL`, `EXISTS (...)`.
    fn value(&mut self) -> Result<Operand, NarrowingRefusal> {
        let start = self.position();
        let operand = self.operand_in_parentheses();
        if operand.is_ok() && !self.continues_condition() {
            return operand;
        }
        self.rewind(start);
        let is_condition = self.is_next_punct(b'(')
            || self.is_next("EXISTS")
            || self.is_next("NOT")
            || operand.is_ok();
        if !is_condition {
            return operand;
        }
        let condition = self.condition()?;
        Ok(Operand::Condition(Box::new(condition)))
    }

    /// True if what was read is the left side of a predicate.
    fn continues_condition(&self) -> bool {
        const WORDS: [&str; 7] = ["IS", "IN", "NOT", "BETWEEN", "LIKE", "AND", "OR"];
        const SIGNS: [u8; 4] = [b'=', b'<', b'>', b'!'];
        WORDS.iter().any(|word| self.is_next(word))
            || SIGNS.iter().any(|sign| self.is_next_punct(*sign))
    }

    /// `COUNT(*)`, `COUNT(a)` or `COUNT(DISTINCT a)`, if it is next.
    fn count(&mut self) -> Result<Option<Operand>, NarrowingRefusal> {
        if !(self.is_next("COUNT") && self.is_call()) {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let column = match self.take_punct(b'*') {
            true => None,
            false => {
                self.take_keyword("DISTINCT");
                Some(self.column()?)
            }
        };
        self.expect_punct(b')')?;
        Ok(Some(Operand::Count(column)))
    }

    /// True if this may sort by a string of the reply, which orders nothing. Servers name a string without an alias by its content, without
    /// leading white space.
    pub(super) fn may_sort_by_string(&self, key: &OrderKey, items: &[SelectItem]) -> bool {
        let name = key.column.name.text.as_bytes();
        let may_be_called_so = |item: &SelectItem| {
            let SelectItem::Operand(Operand::Literal(Literal::Text(at)), None) = item else {
                return false;
            };
            let quoted = self.word_text(*at);
            let string = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            // A letter of another alphabet may be folded to one of the name's.
            let is_plain = |byte: &u8| (b' '..=b'~').contains(byte);
            !string.iter().all(is_plain) || string.trim_ascii().eq_ignore_ascii_case(name)
        };
        key.column.qualifier.is_empty() && items.iter().any(may_be_called_so)
    }

    /// The alias of a column or a table, with or without AS.
    fn optional_alias(&mut self) -> Result<Option<SqlIdentifier>, NarrowingRefusal> {
        match self.take_keyword("AS") {
            true => self.name().map(Some),
            false => Ok(self.alias()),
        }
    }

    /// `t.*` or `db.t.*`.
    fn all_of(&mut self) -> Option<Vec<SqlIdentifier>> {
        let start = self.position();
        let mut qualifier = Vec::new();
        while qualifier.len() < 2 {
            let Ok(name) = self.name_after_point(!qualifier.is_empty()) else {
                break;
            };
            qualifier.push(name);
            if !self.take_punct(b'.') {
                break;
            }
            if self.take_punct(b'*') {
                return Some(qualifier);
            }
        }
        self.rewind(start);
        None
    }

    fn table_references(&mut self) -> Result<Vec<TableReference>, NarrowingRefusal> {
        let mut sources = Vec::new();
        self.join_chain(&mut sources)?;
        while self.take_punct(b',') {
            self.join_chain(&mut sources)?;
        }
        Ok(sources)
    }

    /// A table with its joins. Parentheses around the first ones of a chain of joins change nothing.
    fn join_chain(&mut self, sources: &mut Vec<TableReference>) -> Result<(), NarrowingRefusal> {
        if self.is_next_punct(b'(') && !self.begins_select() {
            self.advance();
            if self.is_next("WITH") || self.is_next("VALUES") {
                return Err(NarrowingRefusal::Structure);
            }
            self.nested(|reader| reader.join_chain(sources))?;
            self.expect_punct(b')')?;
        } else {
            sources.push(self.table_reference()?);
        }
        loop {
            let cross = self.take_keyword("CROSS");
            let inner = !cross && self.take_keyword("INNER");
            let outer = !cross && !inner && self.take_keyword("LEFT");
            if outer {
                self.take_keyword("OUTER");
            }
            if !self.take_keyword("JOIN") {
                return match cross || inner || outer {
                    true => Err(NarrowingRefusal::NotUnderstood),
                    false => Ok(()),
                };
            }
            let first = sources.len();
            let mut within = None;
            if self.begins_select() && !self.wants_page() {
                let (mut inner, filter) = self.derived_join()?;
                let has_outer = inner.iter().any(|source| source.outer.is_some());
                let has_condition = inner.first().is_some_and(|first| first.on.is_some());
                if has_outer || has_condition {
                    return Err(NarrowingRefusal::Structure);
                }
                sources.append(&mut inner);
                within = filter;
            } else if self.is_next_punct(b'(') && !self.begins_select() {
                self.tables_in_parentheses(outer, sources)?;
            } else {
                sources.push(self.table_reference()?);
            }
            let is_using = self.is_next("USING");
            let on = match self.take_keyword("ON") {
                true => Some(self.condition()?),
                false if is_using => Some(self.using(sources)?),
                false if outer => return Err(NarrowingRefusal::NotUnderstood),
                false => None,
            };
            let on = match (on, within) {
                (Some(on), Some(within)) => Some(on.and(within)),
                (on, within) => on.or(within),
            };
            for source in sources.iter_mut().skip(first).filter(|_| outer) {
                source.outer = Some(first);
            }
            if let Some(source) = sources.get_mut(first) {
                source.on = on;
                source.is_using = is_using;
            }
        }
    }

    /// `USING (a)` between the first two tables.
    fn using(&mut self, sources: &[TableReference]) -> Result<SelectCondition, NarrowingRefusal> {
        let start = self.position();
        self.expect_keyword("USING")?;
        self.expect_punct(b'(')?;
        let name = self.name()?;
        self.expect_punct(b')')?;
        let [left, right] = sources else {
            return Err(NarrowingRefusal::NotUnderstood);
        };
        if left.is_flattened || right.is_flattened {
            return Err(NarrowingRefusal::Structure);
        }
        let of = |source: &TableReference| {
            let qualifier = source.alias.as_ref().unwrap_or(&source.table).clone();
            Operand::Column(ColumnReference {
                qualifier: vec![qualifier],
                name: name.clone(),
            })
        };
        Ok(SelectCondition {
            kind: ConditionKind::Compare(of(left), ComparisonOperator::Equal, of(right)),
            words: start..self.position(),
        })
    }

    /// `JOIN (a JOIN b ON ...)`, `LEFT JOIN (a JOIN b ON ...)`: a chain of joins in parentheses, with inner ones on a nullable side.
    fn tables_in_parentheses(
        &mut self,
        nullable: bool,
        sources: &mut Vec<TableReference>,
    ) -> Result<(), NarrowingRefusal> {
        self.expect_punct(b'(')?;
        if self.is_next("SELECT") || self.is_next("WITH") || self.is_next("VALUES") {
            return Err(NarrowingRefusal::Structure);
        }
        let mut joined = Vec::new();
        self.nested(|reader| reader.join_chain(&mut joined))?;
        self.expect_punct(b')')?;
        let has_outer = joined.iter().any(|source| source.outer.is_some());
        let has_condition = joined.first().is_some_and(|first| first.on.is_some());
        if nullable && has_outer || has_condition {
            return Err(NarrowingRefusal::Structure);
        }
        let before = sources.len();
        for source in &mut joined {
            source.outer = source.outer.map(|first| first + before);
        }
        sources.append(&mut joined);
        Ok(())
    }

    fn table_reference(&mut self) -> Result<TableReference, NarrowingRefusal> {
        if self.is_next_punct(b'(') {
            return self.page_in_from();
        }
        let first = self.name()?;
        let (database, table) = match self.take_punct(b'.') {
            true => (Some(first), self.name_after_point(true)?),
            false => (None, first),
        };
        // A function in place of a table: JSON_TABLE(...).
        if self.is_next_punct(b'(') {
            return Err(NarrowingRefusal::Structure);
        }
        // What WITH names is read where IN reads it alone.
        let is_named = |select: &NamedSelect| select.name.eq_ignore_ascii_case(&table.text);
        let may_be_named = !self.named_selects.is_empty() && !table.text.is_ascii();
        if database.is_none() && (may_be_named || self.named_selects.iter().any(is_named)) {
            return Err(NarrowingRefusal::Structure);
        }
        let alias = self.optional_alias()?;
        let is_page = database.is_none() && self.note_page_name(&table)?;
        Ok(TableReference {
            database,
            table,
            alias,
            is_page,
            is_using: false,
            is_flattened: false,
            outer: None,
            on: None,
        })
    }

    fn order_key(&mut self) -> Result<OrderKey, NarrowingRefusal> {
        let is_extreme = (self.is_next("MIN") || self.is_next("MAX")) && self.is_call();
        let mut is_null = self.is_next("ISNULL") && self.is_call();
        let is_call = is_extreme || is_null;
        if is_call {
            self.advance();
            self.advance();
        }
        let column = match self.peek() {
            Some(WordKind::Name | WordKind::Quoted) => self.column()?,
            _ => return Err(NarrowingRefusal::Order),
        };
        if is_call {
            self.expect_punct(b')')?;
        } else if self.take_keyword("IS") {
            self.expect_keyword("NULL")?;
            is_null = true;
        }
        Ok(OrderKey {
            column,
            descending: self.is_descending(),
            is_extreme,
            is_null,
        })
    }

    /// A column, with or without its table and database.
    fn column(&mut self) -> Result<ColumnReference, NarrowingRefusal> {
        let mut names = vec![self.name()?];
        while names.len() < 3 && self.take_punct(b'.') {
            names.push(self.name_after_point(true)?);
        }
        let name = names.pop().ok_or(NarrowingRefusal::NotUnderstood)?;
        if self.is_next_punct(b'(') {
            return Err(NarrowingRefusal::NotPlain);
        }
        Ok(ColumnReference {
            qualifier: names,
            name,
        })
    }

    fn separated<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, NarrowingRefusal>,
    ) -> Result<Vec<T>, NarrowingRefusal> {
        let mut all = vec![one(self)?];
        while self.take_punct(b',') {
            all.push(one(self)?);
        }
        Ok(all)
    }
}
