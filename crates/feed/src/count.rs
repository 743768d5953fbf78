//! Counts of messages: the number of a SELECT's rows is the sum over its authors, where each of their messages passes by itself.
//!
//! So the server is asked for the numbers of single authors, with the statement's own FROM and WHERE.

use std::fmt::Write as _;

use headwater_sql::{push_list, quoted};

use crate::author_groups::GroupRows;
use crate::authors::FollowNames;
use crate::binding::{FeedColumnTypes, FeedPosition, FeedStatement, ParameterValue};
use crate::joined_tables::ReferenceKeySource;
use crate::plan_dependence::PlanDependence;
use crate::query::{
    AggregateFunction, ColumnReference, FeedSelect, LargestColumns, LargestKind, LargestValue,
    Literal, MessageCount, Operand, OrderKey, SelectItem, TableReference,
};
use crate::refusal::NarrowingRefusal;
use crate::schema::{ComparisonClass, Schema, TableSchema};
use crate::shape::{FeedNames, StatementShape, select_shape};
use crate::words::{ListKind, StatementWords, WordKind};

/// A count of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountShape {
    /// What is shown of the messages.
    pub function: AggregateFunction,
    /// It is shown of each author's messages, a row for each author.
    pub groups: Option<GroupRows>,
    /// A time of each newest message, which orders these.
    newest_time: Option<NewestTime>,
    /// The word FROM of the SELECT whose rows are counted; `None`: all messages of the authors are.
    from: Option<usize>,
    /// A message may have several rows there, which count once, or as many as edges lead to its author.
    distinct: bool,
}

/// A time of the newest message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestTime {
    /// Its column.
    pub column: String,
    /// What its values are.
    pub kind: LargestKind,
}

impl CountShape {
    /// What the second number of each author is, if they have one.
    #[must_use]
    pub fn largest_kind(&self) -> Option<LargestKind> {
        let largest = self.function.largest().map(|largest| largest.kind);
        largest.or(self.newest_time.as_ref().map(|time| time.kind))
    }

    /// True if a time of each newest message orders these.
    #[must_use]
    pub fn has_newest_time(&self) -> bool {
        self.newest_time.is_some()
    }

    pub(crate) fn with_newest_time(self, newest_time: Option<NewestTime>) -> CountShape {
        CountShape {
            newest_time,
            ..self
        }
    }

    pub(crate) fn with_groups(self, groups: GroupRows) -> CountShape {
        CountShape {
            groups: Some(groups),
            ..self
        }
    }

    /// A shape of all messages of the authors.
    pub(crate) fn of_all(function: AggregateFunction) -> CountShape {
        CountShape {
            function,
            groups: None,
            newest_time: None,
            from: None,
            distinct: false,
        }
    }

    /// True if its numbers are those that make it what it is, and its times sort as moments do.
    fn fits(&self, of: FeedStatement<'_>) -> bool {
        let number = |at: usize| of.number(Literal::Number(at));
        let has_part = |groups: &GroupRows| groups.part(of).is_some();
        // Where clocks change, dates do not sort as moments do.
        let is_sorted = match self.largest_kind() {
            Some(LargestKind::Moment { is_zoned, .. }) => !is_zoned || of.utc_offset.is_some(),
            Some(LargestKind::Id) | None => true,
        };
        let has_its_numbers = match self.function {
            AggregateFunction::Exists { limit } => {
                limit.is_none_or(|at| number(at).is_some_and(|most| most > 0))
            }
            AggregateFunction::AnyRow { shown, limit } => {
                number(shown) == Some(1) && number(limit) == Some(1)
            }
            AggregateFunction::Count
            | AggregateFunction::Newest
            | AggregateFunction::Largest(_) => true,
        };
        is_sorted && has_its_numbers && self.groups.as_ref().is_none_or(has_part)
    }
}

impl AggregateFunction {
    /// True if an author's number is an id.
    #[must_use]
    pub fn is_of_ids(self) -> bool {
        self == AggregateFunction::Newest
    }

    /// True if it shows how many messages there are.
    #[must_use]
    pub fn counts(self) -> bool {
        match self {
            AggregateFunction::Count => true,
            AggregateFunction::Largest(largest) => largest.columns != LargestColumns::Value,
            AggregateFunction::Newest
            | AggregateFunction::Exists { .. }
            | AggregateFunction::AnyRow { .. } => false,
        }
    }

    /// The largest value that each author's number comes with.
    #[must_use]
    pub fn largest(self) -> Option<LargestValue> {
        match self {
            AggregateFunction::Largest(largest) => Some(largest),
            _ => None,
        }
    }
}

/// A schema in which no edge is there twice.
struct SingleEdges<'a> {
    schema: &'a dyn Schema,
    follow: &'a FollowNames,
    edges: TableSchema,
}

impl Schema for SingleEdges<'_> {
    fn table(&self, database: Option<&str>, name: &str) -> Option<&TableSchema> {
        let table = self.schema.table(database, name)?;
        Some(if name == self.follow.table {
            &self.edges
        } else {
            table
        })
    }
}

impl<'a> SingleEdges<'a> {
    fn of(schema: &'a dyn Schema, feed: &'a FeedNames) -> Option<SingleEdges<'a>> {
        let follow = feed.follow.as_ref()?;
        let mut edges = schema.table(None, &follow.table)?.clone();
        let key = [&follow.reader, &follow.author].map(|column| edges.column_position(column));
        edges
            .unique_keys
            .push(key.into_iter().collect::<Option<_>>()?);
        Some(SingleEdges {
            schema,
            follow,
            edges,
        })
    }
}

/// The readers and authors of a count, each ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedAuthors {
    /// Readers, whose followed authors are meant.
    pub readers: Vec<u64>,
    /// Single authors.
    pub authors: Vec<u64>,
}

/// Where the messages of a count are in the feed's order: both ends belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountWindow {
    /// Where they begin.
    pub lower: Option<FeedPosition>,
    /// Where they end.
    pub upper: Option<FeedPosition>,
}

impl CountWindow {
    fn add(&mut self, is_upper: bool, at: FeedPosition) {
        let narrower = |end: Option<FeedPosition>, choose: fn(FeedPosition, FeedPosition) -> _| {
            Some(end.map_or(at, |end| choose(end, at)))
        };
        match is_upper {
            true => self.upper = narrower(self.upper, Ord::min),
            false => self.lower = narrower(self.lower, Ord::max),
        }
    }
}

/// The shape of a count: that of a page of all the messages that it counts, each once.
pub(crate) fn count_shape(
    query: &FeedSelect,
    count: MessageCount,
    words: &StatementWords,
    feed: &FeedNames,
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    let mut tables = query.sources.iter();
    let message = tables.find(|source| source.table.text == feed.message);
    let message = message.ok_or(NarrowingRefusal::Names)?;
    let id = message.column(&feed.id);
    let mut page = FeedSelect {
        order_end: query.filter_end,
        ..query.clone()
    };
    let is_of_id = page.items.iter().all(|item| is_column(item, &id));
    let function = match count.function {
        AggregateFunction::Largest(largest) if !is_of_id => {
            let kind = moment_kind(&page.items, message, schema);
            let kind = kind.ok_or(NarrowingRefusal::Count)?;
            AggregateFunction::Largest(LargestValue { kind, ..largest })
        }
        AggregateFunction::Largest(largest) if largest.columns == LargestColumns::Value => {
            AggregateFunction::Newest
        }
        _ if count.of_column && !is_of_id => return Err(NarrowingRefusal::Count),
        function => function,
    };
    if page.items.is_empty() {
        page.items = vec![SelectItem::Operand(Operand::Column(id.clone()), None)];
    }
    let key = feed.key.iter().map(|key| message.column(key));
    page.order = key.chain([id]).map(OrderKey::descending).collect();
    let (mut shape, _) = select_shape(&page, words, feed, &[], schema)?;
    let mut copies = false;
    // Only a count depends on how often an edge is there.
    let counts = function.counts();
    if shape.row_dependencies.is_none()
        && let Some(single) = SingleEdges::of(schema, feed)
    {
        copies = counts;
        page.count = Some(MessageCount { copies, ..count });
        (shape, _) = select_shape(&page, words, feed, &[], &single)?;
        let lists = shape.row_dependencies.iter().flat_map(|keep| &keep.lists);
        // Other joins than those with edges may repeat a message, or several edges.
        if counts && lists.filter(|list| list.copies).count() != 1 {
            return Err(NarrowingRefusal::Count);
        }
    }
    let dependencies = shape.row_dependencies.as_mut();
    let dependencies = dependencies.ok_or(NarrowingRefusal::Count)?;
    // Rows that do not filter are followed as well: their table may lose its key.
    let by_author = |source: &ReferenceKeySource| *source == ReferenceKeySource::Author;
    let mut rows = dependencies.joined_rows.iter();
    if !rows.all(|row| by_author(&row.key_source) || !row.filters) {
        return Err(NarrowingRefusal::Count);
    }
    Ok(StatementShape {
        count: Some(CountShape {
            function,
            groups: None,
            newest_time: None,
            from: Some(count.from),
            distinct: copies || query.distinct || !query.group.is_empty(),
        }),
        bounds: Vec::new(),
        plan_dependence: PlanDependence::Alike,
        has_constant_subquery: false,
        replaceable_list: None,
        ..shape
    })
}

/// The kind of the only item, if that is a date of the message.
fn moment_kind(
    items: &[SelectItem],
    message: &TableReference,
    schema: &dyn Schema,
) -> Option<LargestKind> {
    let [item] = items else {
        return None;
    };
    let table = schema.table(None, &message.table.text)?;
    let mut columns = table.columns.iter().filter(|column| !column.is_virtual);
    let column = columns.find(|column| is_column(item, &message.column(&column.name)))?;
    match column.class {
        ComparisonClass::Moment(digits) => Some(LargestKind::Moment {
            digits,
            is_zoned: column.is_zoned,
        }),
        _ => None,
    }
}

/// True if the item is this column, with or without its table.
fn is_column(item: &SelectItem, column: &ColumnReference) -> bool {
    let SelectItem::Operand(Operand::Column(own), None) = item else {
        return false;
    };
    let table = |column: &ColumnReference| column.qualifier.last().map(|name| name.text.clone());
    own.name.text == column.name.text && (own.qualifier.is_empty() || table(own) == table(column))
}

impl StatementShape {
    /// Reads the authors of a count.
    ///
    /// # Errors
    /// A value is not plain where it has to be.
    pub fn bind_count(
        &self,
        of: FeedStatement<'_>,
        types: FeedColumnTypes,
    ) -> Result<CountedAuthors, NarrowingRefusal> {
        let is_plain = self
            .literal_checks
            .iter()
            .all(|check| of.passes_check(*check));
        if !self.count.as_ref().is_some_and(|count| count.fits(of)) {
            return Err(NarrowingRefusal::Count);
        }
        if !is_plain || of.parameters.contains(&ParameterValue::Other) {
            return Err(NarrowingRefusal::Types);
        }
        let (readers, authors) = self.authors.bind(of, types)?;
        Ok(CountedAuthors { readers, authors })
    }

    /// Where the messages of a count begin and end in the feed's order, if it says where they begin. `None`: it does not, or something of it
    /// is not read for certain.
    #[must_use]
    pub fn count_window(
        &self,
        of: FeedStatement<'_>,
        types: FeedColumnTypes,
    ) -> Option<CountWindow> {
        let mut window = CountWindow::default();
        let each = self.row_dependencies.iter().flat_map(|it| &it.bounds);
        for bound in each.flat_map(|(_, bounds)| bounds) {
            window.add(bound.upper, of.exact_position(bound, types)?);
        }
        window.lower.is_some().then_some(window)
    }

    /// A query for the ids of those of these messages that count.
    #[must_use]
    pub fn counted_messages(
        &self,
        of: FeedStatement<'_>,
        feed: &FeedNames,
        ids: &[u64],
    ) -> Option<String> {
        let id = format!("{}.{}", self.message_name(of)?, quoted(&feed.id));
        let rows = self.rows_where(of, &feed.id, ids)?;
        Some(format!("SELECT DISTINCT {id} {rows}"))
    }

    /// A query for the numbers of these authors' messages: their ids, with a number for each that has any.
    #[must_use]
    pub fn count_by_author(
        &self,
        of: FeedStatement<'_>,
        feed: &FeedNames,
        authors: &[u64],
    ) -> Option<String> {
        let count = self.count.as_ref()?;
        let author_of = |table: &str| format!("{table}.{}", quoted(&feed.author));
        let (table, rows) = match count.from {
            Some(_) => {
                let rows = self.rows_where(of, &feed.author, authors)?;
                (self.message_name(of)?, rows)
            }
            None => {
                let table = quoted(&feed.message);
                let mut rows = format!("FROM {table} WHERE {} IN (", author_of(&table));
                push_list(&mut rows, authors);
                rows.push(')');
                (table, rows)
            }
        };
        let author = author_of(&table);
        let number = match count.distinct {
            _ if count.function.is_of_ids() => {
                format!("MAX({table}.{})", quoted(&feed.id))
            }
            // How many there are is not shown.
            _ if count.function.largest().is_some() && !count.function.counts() => "1".to_owned(),
            true => format!("COUNT(DISTINCT {table}.{})", quoted(&feed.id)),
            false => "COUNT(*)".to_owned(),
        };
        let largest = match count.function.largest() {
            Some(largest) => {
                let name = of.words.text(largest.name, of.text);
                let column = format!("{table}.{}", std::str::from_utf8(name).ok()?);
                match largest.kind {
                    LargestKind::Id => format!(", MAX({column})"),
                    // In a temporary table, MariaDB has no date that the session's sql_mode does not accept.
                    LargestKind::Moment { .. } => format!(", MAX(CAST({column} AS CHAR))"),
                }
            }
            None => String::new(),
        };
        Some(match &count.newest_time {
            None => format!("SELECT {author}, {number}{largest} {rows} GROUP BY {author}"),
            Some(time) => {
                let names = [&feed.message, &feed.id, &time.column];
                let [message, id, column] = names.map(|name| quoted(name));
                format!(
                    "SELECT q.a, q.n, CAST(m.{column} AS CHAR) FROM (SELECT {author} AS a, {number} AS n {rows} GROUP BY {author}) q \
                     JOIN {message} m ON m.{id} = q.n"
                )
            }
        })
    }

    /// The statement with these authors only. It needs the rights that the whole one needs.
    #[must_use]
    pub fn count_of_authors(
        &self,
        of: FeedStatement<'_>,
        feed: &FeedNames,
        authors: &[u64],
    ) -> Option<String> {
        let (from, end) = self.row_bytes(of)?;
        let rows = self.rows_where(of, &feed.author, authors)?;
        let (before, after) = (rendered(of, 0, from)?, rendered(of, end, of.text.len())?);
        // What follows may be the word GROUP, or a parenthesis.
        Some(format!("{before}{rows} {after}"))
    }

    /// What the statement calls the message's table.
    fn message_name(&self, of: FeedStatement<'_>) -> Option<String> {
        let word = of.words.text(self.sites.first()?.qualifier, of.text);
        String::from_utf8(word.to_vec()).ok()
    }

    /// Where FROM begins, and where the condition of WHERE ends: before a comment that follows.
    fn row_bytes(&self, of: FeedStatement<'_>) -> Option<(usize, usize)> {
        let words = &of.words.words;
        let last = self.sites.first()?.filter_end.checked_sub(1)?;
        Some((
            words.get(self.count.as_ref()?.from?)?.start,
            words.get(last)?.end,
        ))
    }

    /// FROM and WHERE, with the condition that a column of the message has one of these values.
    fn rows_where(&self, of: FeedStatement<'_>, column: &str, values: &[u64]) -> Option<String> {
        let mut condition = format!("{}.{} IN (", self.message_name(of)?, quoted(column));
        push_list(&mut condition, values);
        condition.push(')');
        let (from, end) = self.row_bytes(of)?;
        Some(match self.sites.first()?.filter {
            None => format!("{} WHERE {condition}", rendered(of, from, end)?),
            Some(filter) => {
                let word = of.words.words.get(filter)?;
                let (tables, own) = (
                    rendered(of, from, word.start)?,
                    rendered(of, word.end, end)?,
                );
                format!("{tables}WHERE {condition} AND ({})", own.trim())
            }
        })
    }
}

/// True if the texts of a count's queries can be written: all values have certain literals.
#[must_use]
pub fn is_renderable(of: FeedStatement<'_>) -> bool {
    let mut values = of.parameters.iter();
    std::str::from_utf8(of.text).is_ok()
        && values.all(|value| push_literal(&mut String::new(), value).is_some())
}

/// The statement as a text, with values in place of its parameters. `None`: one has no certain literal.
#[must_use]
pub fn literal_text(of: FeedStatement<'_>) -> Option<String> {
    rendered(of, 0, of.text.len())
}

/// A part of the text, with values in place of its parameters. `None`: one has no certain literal.
fn rendered(of: FeedStatement<'_>, from: usize, end: usize) -> Option<String> {
    let mut out = String::new();
    let mut done = from;
    for (at, word) in of.words.words.iter().enumerate() {
        let is_parameter = matches!(
            word.kind,
            WordKind::Parameter | WordKind::List(ListKind::Parameters)
        );
        if !is_parameter || word.start < from || word.end > end {
            continue;
        }
        out.push_str(std::str::from_utf8(of.text.get(done..word.start)?).ok()?);
        done = word.end;
        let mut values = of.parameters(at)?.iter();
        let marks = std::str::from_utf8(of.text.get(word.start..word.end)?).ok()?;
        for mark in marks.chars() {
            match mark {
                '?' => push_literal(&mut out, values.next()?)?,
                other => out.push(other),
            }
        }
    }
    out.push_str(std::str::from_utf8(of.text.get(done..end)?).ok()?);
    Some(out)
}

fn push_literal(out: &mut String, value: &ParameterValue) -> Option<()> {
    match value {
        ParameterValue::Integer(value) | ParameterValue::Whole(value) => {
            write!(out, "{value}").ok()
        }
        ParameterValue::Null => {
            out.push_str("NULL");
            Some(())
        }
        // Letters that mean the same in every character set and mode.
        ParameterValue::Text(text) => {
            let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !b"'\"\\".contains(byte);
            let text = text.iter().all(is_plain).then_some(text)?;
            write!(out, "'{}'", std::str::from_utf8(text).ok()?).ok()
        }
        // A moment is compared by its type.
        ParameterValue::Moment(_) | ParameterValue::Other => None,
    }
}
