//! A request for a count, and the reply that is made of its numbers.

use std::cmp::Ordering;
use std::sync::Arc;

use headwater_feed::Template;
use headwater_feed::author_groups::{GroupColumn, GroupRows};
use headwater_feed::binding::ParameterType;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::query::{AggregateFunction, LargestColumns, LargestKind, LargestValue};
use headwater_rows::CacheKey;
use headwater_rows::template::ResultEnvelope;
use headwater_timeline::datetime::DatetimeValue;
use headwater_wire::packet;
use headwater_wire::status;

use super::AuthorListQuery;
use super::cached_page::FeedCacheScope;
use super::count::{AuthorValue, CountTotal, CountUnit, CountedWindow};
use super::count_row::{CellFormat, CellValue, envelope_formats, row_of_values};
use crate::cached_rows::CachedPage;

/// A count that memory may answer.
#[derive(Clone, Debug)]
pub struct FeedCountRequest {
    /// The template.
    pub template: Arc<Template>,
    /// The readers whose follows are the authors.
    pub readers: Vec<u64>,
    /// Further authors, ascending.
    pub authors: Vec<u64>,
    /// The list that names an author for each edge, each of which counts the author's messages.
    pub copies: Option<usize>,
    /// The messages that may count, if the statement says where they begin.
    pub window: Option<CountedWindow>,
    /// The reply is one to an execution.
    pub(super) binary: bool,
    /// The types of an execution's parameters, each once: by them the server may plan otherwise, and describe columns so.
    pub(super) parameter_types: Vec<ParameterType>,
    /// OFFSET and LIMIT.
    pub(super) part: (u64, u64),
    /// What the status flags of its reply say of transactions.
    pub(super) transaction_status: u16,
    pub(super) scope: FeedCacheScope,
}

impl FeedCountRequest {
    /// The key of what is counted in one generation of the log.
    #[must_use]
    pub fn cache_key(&self, unit: CountUnit, generation: u64) -> CacheKey {
        let cache = &self.template.row_cache;
        cache.cache_key(&self.key_in(unit, generation))
    }

    pub(super) fn key_in(&self, unit: CountUnit, generation: u64) -> Vec<u8> {
        let scope = match (&self.window, unit) {
            (Some(window), CountUnit::Messages) => &window.scope,
            _ => &self.scope,
        };
        scope.cache_key_in(generation)
    }

    /// What surrounds the numbers of so many authors; `None`: it is not known.
    pub(super) fn envelope(
        &self,
        unit: CountUnit,
        generation: u64,
        authors: AuthorCountBucket,
    ) -> Option<Arc<ResultEnvelope>> {
        let key = self.envelope_key(unit, generation, self.transaction_status);
        let (_, envelope) = self.template.row_cache.lookup(&key, authors.number())?;
        Some(envelope)
    }

    /// The key of what surrounds the numbers, where status flags say this of transactions.
    pub(super) fn envelope_key(
        &self,
        unit: CountUnit,
        generation: u64,
        transaction_status: u16,
    ) -> Vec<u8> {
        let mut key = self.key_in(unit, generation);
        key.extend(self.parameter_types.iter().flatten());
        if transaction_status != status::AUTOCOMMIT {
            key.extend_from_slice(&transaction_status.to_le_bytes());
        }
        key
    }

    /// Author lists besides the readers' follows.
    #[must_use]
    pub fn lists(&self) -> &[AuthorListQuery] {
        &self.scope.lists
    }

    /// The reply with this number, and what surrounds it; `None`: that is not known.
    #[must_use]
    pub fn page(&self, counted: &CountTotal) -> Option<(CachedPage, Arc<ResultEnvelope>)> {
        let kind = AuthorCountBucket::of(counted.authors);
        let envelope = self.envelope(counted.unit, counted.generation, kind)?;
        // Numbers in text rows need none.
        let formats = match self.binary || self.function().largest().is_some() {
            true => envelope_formats(&envelope, self.function())?,
            false => vec![CellFormat::Number { bytes: 0 }; envelope.columns],
        };
        let (rows, skipped) = self.rows(counted);
        let mut packets = envelope.head_packets.clone();
        let mut sequence = envelope.sequence;
        for row in &rows {
            sequence = packet::encode(
                sequence,
                &row_of_values(row, &formats, self.binary),
                &mut packets,
            );
        }
        let rows = rows.len() as u64;
        let page = CachedPage {
            packets,
            rows,
            found_rows: skipped + rows,
        };
        Some((page, envelope))
    }

    /// The rows, and how many OFFSET skips.
    fn rows(&self, counted: &CountTotal) -> (Vec<Vec<Option<CellValue>>>, u64) {
        let AuthorValue {
            number: total,
            largest,
        } = counted.total;
        if let Some(groups) = self.groups() {
            return self.group_rows(groups, counted);
        }
        let row = match self.function() {
            AggregateFunction::Count => Some(vec![Some(total)]),
            AggregateFunction::Newest => Some(vec![total.checked_sub(1)]),
            AggregateFunction::Exists { .. } => Some(vec![Some(total.min(1))]),
            AggregateFunction::AnyRow { .. } => (total > 0).then(|| vec![Some(1)]),
            AggregateFunction::Largest(shown) => {
                return (vec![largest_row(shown, total, largest)], 0);
            }
        };
        let cells = |row: Vec<Option<u64>>| row.into_iter().map(|it| it.map(CellValue::Number));
        (row.into_iter().map(|row| cells(row).collect()).collect(), 0)
    }

    /// A row for each author who has a message.
    fn group_rows(
        &self,
        groups: &GroupRows,
        counted: &CountTotal,
    ) -> (Vec<Vec<Option<CellValue>>>, u64) {
        let each = self.sorted_groups(groups, counted);
        let (offset, limit) = self.part;
        let part = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let skipped = part(offset).min(each.len());
        let shown = each.into_iter().skip(skipped).take(part(limit));
        let cell = |column: &GroupColumn, author: u64, value: AuthorValue| match column {
            GroupColumn::Author => Some(CellValue::Number(author)),
            GroupColumn::Count => Some(CellValue::Number(value.number)),
            GroupColumn::Largest => self.largest_cell(value),
        };
        let row = |(author, value): (u64, AuthorValue)| {
            let columns = groups.columns.iter();
            columns.map(|column| cell(column, author, value)).collect()
        };
        (shown.map(row).collect(), skipped as u64)
    }

    /// Each author who has a message, in the order of the rows.
    fn sorted_groups(&self, groups: &GroupRows, counted: &CountTotal) -> Vec<(u64, AuthorValue)> {
        let has_message = |(_, value): &&(u64, AuthorValue)| value.number > 0;
        let mut each: Vec<_> = counted.each.iter().filter(has_message).copied().collect();
        each.sort_unstable_by(|one, other| {
            let by_order = self.compare_groups(groups, one, other);
            let last = groups
                .order
                .last()
                .is_some_and(|(_, descending)| *descending);
            by_order.then_with(|| directed(one.0.cmp(&other.0), last))
        });
        each
    }

    /// How two rows are sorted by the statement's order.
    fn compare_groups(
        &self,
        groups: &GroupRows,
        one: &(u64, AuthorValue),
        other: &(u64, AuthorValue),
    ) -> Ordering {
        let rank = |by: GroupColumn, group: &(u64, AuthorValue)| match by {
            GroupColumn::Author => group.0,
            GroupColumn::Count => group.1.number,
            GroupColumn::Largest if self.function().is_of_ids() => group.1.number,
            GroupColumn::Largest => group.1.largest,
        };
        let mut keys = groups.order.iter();
        let ordering = |(by, descending): &(GroupColumn, bool)| {
            directed(rank(*by, one).cmp(&rank(*by, other)), *descending)
        };
        let first = keys.find_map(|key| Some(ordering(key)).filter(|it| it.is_ne()));
        first.unwrap_or(Ordering::Equal)
    }

    /// True if the statement or the feed says in which order the rows come.
    pub(super) fn knows_order(&self, counted: &CountTotal) -> bool {
        let Some(groups) = self.groups().filter(|groups| !groups.is_ordered) else {
            return true;
        };
        let each = self.sorted_groups(groups, counted);
        let (offset, limit) = self.part;
        let pairs = each.iter().zip(each.iter().skip(1));
        let end = usize::try_from(offset.saturating_add(limit)).unwrap_or(usize::MAX);
        let mut pairs = pairs.take(end);
        pairs.all(|(one, other)| self.compare_groups(groups, one, other).is_ne())
    }

    /// The rows of a statement with one for each author.
    #[must_use]
    pub fn groups(&self) -> Option<&GroupRows> {
        self.template.shape.count.as_ref()?.groups.as_ref()
    }

    fn largest_cell(&self, value: AuthorValue) -> Option<CellValue> {
        match self.function() {
            AggregateFunction::Largest(shown) => largest_cell(shown.kind, value.largest),
            _ => value.number.checked_sub(1).map(CellValue::Number),
        }
    }

    /// What is shown of the messages.
    #[must_use]
    pub fn function(&self) -> AggregateFunction {
        let count = self.template.shape.count.as_ref();
        count.map_or(AggregateFunction::Count, |count| count.function)
    }

    /// Adds what is known of one author or message.
    #[must_use]
    pub fn add(&self, total: AuthorValue, value: AuthorValue) -> Option<AuthorValue> {
        Some(AuthorValue {
            number: match self.function() {
                function if function.is_of_ids() => total.number.max(value.number),
                _ => total.number.checked_add(value.number)?,
            },
            largest: total.largest.max(value.largest),
        })
    }

    /// What a message adds.
    #[must_use]
    pub fn number_of(&self, message: u64, copies: u64) -> u64 {
        match self.function().is_of_ids() {
            true => message.saturating_add(1),
            false => copies,
        }
    }
}

/// The row that shows the largest value, with or without how many messages there are.
fn largest_row(shown: LargestValue, total: u64, largest: u64) -> Vec<Option<CellValue>> {
    let count = Some(CellValue::Number(total));
    let value = largest_cell(shown.kind, largest);
    match shown.columns {
        LargestColumns::Value => vec![value],
        LargestColumns::CountAndValue => vec![count, value],
        LargestColumns::ValueAndCount => vec![value, count],
    }
}

/// What is shown of a largest value, of which this is the number above it.
fn largest_cell(kind: LargestKind, largest: u64) -> Option<CellValue> {
    let value = largest.checked_sub(1)?;
    match kind {
        LargestKind::Id => Some(CellValue::Number(value)),
        LargestKind::Moment { .. } => DatetimeValue::from_packed(value).map(CellValue::Moment),
    }
}

/// The ordering, or its reverse.
pub(super) fn directed(ordering: Ordering, descending: bool) -> Ordering {
    match descending {
        true => ordering.reverse(),
        false => ordering,
    }
}
