//! A row for each author: how many messages each has, the newest, the last time (`SELECT author, COUNT(*), MAX(id) ... GROUP BY author`). The
//! rows are made of the numbers of single authors, as those of [`crate::count`].
//!
//! Without an ORDER BY that tells all groups apart, the server chooses; the feed may decide (`ties = "id"`): then they come by author.

use crate::binding::FeedStatement;
use crate::count::count_shape;
use crate::definition::TieOrder;
use crate::equalities::{ColumnEqualities, conditions_of_every_row};
use crate::query::{
    AggregateFunction, AuthorGroups, ColumnReference, FeedSelect, GroupItem, GroupOperand,
    LargestColumns, LargestKind, LargestValue, MessageCount, Operand, SelectItem,
};
use crate::refusal::NarrowingRefusal;
use crate::schema::Schema;
use crate::scope::{NameScope, ScopedColumn};
use crate::shape::{FeedNames, StatementShape, message_column};
use crate::words::StatementWords;

/// The rows of a reply with one for each author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRows {
    /// Their columns.
    pub columns: Vec<GroupColumn>,
    /// What they are sorted by, and whether that is descending.
    pub order: Vec<(GroupColumn, bool)>,
    /// Their order is known: this tells all authors apart, or the feed orders what it leaves equal, by author as the last column.
    pub is_ordered: bool,
    /// The word of LIMIT's number.
    limit: Option<usize>,
    /// The word of OFFSET's number.
    offset: Option<usize>,
}

/// A column of such a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupColumn {
    /// The author.
    Author,
    /// How many messages they have.
    Count,
    /// Their newest message's id, or the largest value of another column.
    Largest,
}

impl GroupRows {
    /// OFFSET and LIMIT. `None`: one is no plain number.
    #[must_use]
    pub fn part(&self, of: FeedStatement<'_>) -> Option<(u64, u64)> {
        let number = |at: Option<usize>, without: u64| match at {
            Some(at) => of.row_count(at),
            None => Some(without),
        };
        let limit = number(self.limit, u64::MAX).filter(|limit| *limit > 0)?;
        Some((number(self.offset, 0)?, limit))
    }
}

/// Which columns are the author's.
pub(crate) struct AuthorColumns<'a> {
    scope: &'a NameScope<'a>,
    author: ScopedColumn,
    equal: ColumnEqualities,
}

impl<'a> AuthorColumns<'a> {
    pub(crate) fn of(
        rows: &FeedSelect,
        scope: &'a NameScope<'a>,
        feed: &FeedNames,
    ) -> Result<AuthorColumns<'a>, NarrowingRefusal> {
        let filter = rows.filter.as_ref().map(|(_, filter)| filter);
        let mut equal = ColumnEqualities::default();
        equal.add_conditions(&conditions_of_every_row(&rows.sources, filter), scope);
        Ok(AuthorColumns {
            scope,
            author: message_column(feed, scope, &feed.author)?,
            equal,
        })
    }

    pub(crate) fn contains(&self, column: &ColumnReference) -> bool {
        let of = self.scope.resolve(column);
        of.is_ok_and(|of| of == self.author || self.equal.are_equal(of, self.author))
    }
}

/// The shape of a statement with a row for each author.
pub(crate) fn author_groups_shape(
    query: &FeedSelect,
    groups: &AuthorGroups,
    words: &StatementWords,
    feed: &FeedNames,
    schema: &dyn Schema,
) -> Result<StatementShape, NarrowingRefusal> {
    let scope = NameScope::default().within(&query.sources, schema)?;
    let reading = GroupReading {
        groups,
        authors: AuthorColumns::of(query, &scope, feed)?,
        id: message_column(feed, &scope, &feed.id)?,
    };
    if !reading.is_author_or_alias(&groups.author) {
        return Err(NarrowingRefusal::Grouped);
    }
    let columns = groups.items.iter().map(|item| reading.column(item));
    let columns: Vec<GroupColumn> = columns.collect::<Result<_, _>>()?;
    let order = groups.order.iter().map(|(operand, descending)| {
        let by = reading.sorted(operand).ok_or(NarrowingRefusal::Order)?;
        Ok((by, *descending))
    });
    let order: Vec<(GroupColumn, bool)> = order.collect::<Result<_, NarrowingRefusal>>()?;
    let (rows, count) = reading.numbers(query, &columns)?;
    let numbers = count_shape(&rows, count, words, feed, schema)?;
    let row_counts = [query.limit, query.offset].into_iter().flatten();
    let row_dependencies = numbers.row_dependencies.map(|mut dependencies| {
        let words = row_counts.map(|at| at..at + 1);
        dependencies.independent_words.extend(words);
        dependencies
    });
    let count = numbers.count.map(|count| {
        let is_of_ids = count
            .largest_kind()
            .is_none_or(|kind| kind == LargestKind::Id);
        // No two authors have one newest message.
        let tells_apart = |(by, _): &(GroupColumn, bool)| match by {
            GroupColumn::Author => true,
            GroupColumn::Count => false,
            GroupColumn::Largest => is_of_ids,
        };
        let is_ordered = feed.ties == TieOrder::Id || order.iter().any(tells_apart);
        count.with_groups(GroupRows {
            columns,
            order,
            is_ordered,
            limit: query.limit,
            offset: query.offset,
        })
    });
    Ok(StatementShape {
        count,
        row_dependencies,
        ..numbers
    })
}

struct GroupReading<'a> {
    groups: &'a AuthorGroups,
    authors: AuthorColumns<'a>,
    id: ScopedColumn,
}

impl GroupReading<'_> {
    fn column(&self, item: &GroupItem) -> Result<GroupColumn, NarrowingRefusal> {
        match &item.operand {
            GroupOperand::Column(column) if self.authors.contains(column) => {
                Ok(GroupColumn::Author)
            }
            GroupOperand::Column(_) => Err(NarrowingRefusal::Grouped),
            // It counts no NULL, which an id never is.
            GroupOperand::Count(Some(column)) if !self.is_id(column) => {
                Err(NarrowingRefusal::Count)
            }
            GroupOperand::Count(_) => Ok(GroupColumn::Count),
            GroupOperand::Largest(_) => Ok(GroupColumn::Largest),
        }
    }

    fn is_id(&self, column: &ColumnReference) -> bool {
        self.authors.scope.resolve(column) == Ok(self.id)
    }

    /// GROUP BY takes a name for an alias only if no table has such a column.
    fn is_author_or_alias(&self, column: &ColumnReference) -> bool {
        let name = &column.name.text;
        let mut tables = self.authors.scope.innermost_tables().iter();
        let is_of_table = tables.any(|scoped| scoped.table.column_position(name).is_some());
        match self.aliased(column).as_slice() {
            [item] if !is_of_table => self.column(item) == Ok(GroupColumn::Author),
            _ => self.authors.contains(column),
        }
    }

    /// The items that have this alias.
    fn aliased(&self, column: &ColumnReference) -> Vec<&GroupItem> {
        let has_name = |item: &&GroupItem| {
            let alias = item.alias.as_ref();
            column.qualifier.is_empty()
                && alias.is_some_and(|alias| alias.text.eq_ignore_ascii_case(&column.name.text))
        };
        self.groups.items.iter().filter(has_name).collect()
    }

    /// What a key of ORDER BY sorts by, which takes a name for an alias first.
    fn sorted(&self, operand: &GroupOperand) -> Option<GroupColumn> {
        let shown = |column: GroupColumn| {
            let mut items = self.groups.items.iter();
            items.any(|item| self.column(item) == Ok(column))
        };
        match operand {
            GroupOperand::Column(column) => match self.aliased(column).as_slice() {
                [item] => self.column(item).ok(),
                [_, ..] => None,
                [] => self.authors.contains(column).then_some(GroupColumn::Author),
            },
            GroupOperand::Count(column) => {
                let counts_rows = column.as_ref().is_none_or(|column| self.is_id(column));
                (counts_rows && shown(GroupColumn::Count)).then_some(GroupColumn::Count)
            }
            GroupOperand::Largest(column) => {
                let of = self.authors.scope.resolve(column).ok()?;
                let largest = self.largest()?;
                (self.authors.scope.resolve(largest) == Ok(of)).then_some(GroupColumn::Largest)
            }
        }
    }

    /// The column of which the largest value is shown.
    fn largest(&self) -> Option<&ColumnReference> {
        let mut items = self.groups.items.iter();
        items.find_map(|item| match &item.operand {
            GroupOperand::Largest(column) => Some(column),
            _ => None,
        })
    }

    /// The SELECT of all that has numbers, and the numbers.
    fn numbers(
        &self,
        query: &FeedSelect,
        columns: &[GroupColumn],
    ) -> Result<(FeedSelect, MessageCount), NarrowingRefusal> {
        let number = |of: GroupColumn| columns.iter().filter(|column| **column == of).count();
        let function = match (number(GroupColumn::Count), number(GroupColumn::Largest)) {
            (1, 0) => AggregateFunction::Count,
            (counts @ (0 | 1), 1) => AggregateFunction::Largest(LargestValue {
                name: self.largest().map_or(0, |column| column.name.word),
                kind: LargestKind::Id,
                columns: match counts {
                    0 => LargestColumns::Value,
                    _ => LargestColumns::CountAndValue,
                },
            }),
            _ => return Err(NarrowingRefusal::Structure),
        };
        let largest = self.largest().cloned();
        let count = MessageCount {
            of_column: largest.is_some(),
            ..MessageCount::new(function, self.groups.from)
        };
        let items = largest
            .map(|column| SelectItem::Operand(Operand::Column(column), None))
            .into_iter();
        let rows = FeedSelect {
            items: items.collect(),
            group: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: None,
            author_groups: None,
            ..query.clone()
        };
        Ok((rows, count))
    }
}
