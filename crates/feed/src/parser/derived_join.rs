//! `JOIN (SELECT f.author FROM follow f WHERE f.reader = 7) d ON d.author = m.author`: read as the join of the inner tables, with the inner
//! WHERE in their ON. Only conditions may name its columns.

use super::word_reader::WordReader;
use crate::query::{
    ColumnReference, ConditionKind, FeedSelect, Operand, SelectCondition, SelectItem,
    SqlIdentifier, Subquery, TableReference,
};
use crate::refusal::NarrowingRefusal;

/// A SELECT in a join.
#[derive(Clone, Debug)]
pub(super) struct DerivedJoin {
    /// Its alias.
    alias: String,
    /// Its columns: their names, and the inner ones.
    columns: Vec<(String, ColumnReference)>,
}

/// Begins the names of inner tables, so that they are nobody else's.
const INNER: char = '\u{1}';

impl WordReader<'_> {
    /// The tables of `(SELECT ...) alias`, and its WHERE.
    pub(super) fn derived_join(
        &mut self,
    ) -> Result<(Vec<TableReference>, Option<SelectCondition>), NarrowingRefusal> {
        // Elsewhere names would have to be resolved in several places.
        if !self.joins_selects || self.depth() != self.derived_depth {
            return Err(NarrowingRefusal::Structure);
        }
        let (number, before) = (self.position(), self.derived_joins.len());
        self.expect_punct(b'(')?;
        self.expect_keyword("SELECT")?;
        self.take_keyword("ALL");
        let items = self.separated(|reader| {
            let column = reader.column()?;
            let name = reader.optional_alias()?;
            Ok((name, column))
        })?;
        self.expect_keyword("FROM")?;
        self.derived_depth += 1;
        let sources = self.nested(WordReader::table_references);
        self.derived_depth -= 1;
        let mut sources = sources?;
        let mut filter = self.filter()?.map(|(_, filter)| filter);
        self.expect_punct(b')')?;
        let alias = self.optional_alias()?.ok_or(NarrowingRefusal::Structure)?;
        let names: Vec<String> = sources
            .iter()
            .map(|source| source.reference_name().to_owned())
            .collect();
        let within = self.derived_joins.split_off(before);
        let rename = |column: &mut ColumnReference| {
            if !inner_column(&within, column) {
                return false;
            }
            // A name starts with this sign if it was renamed before.
            let is_inner =
                matches!(column.qualifier.as_slice(), [table] if table.text.starts_with(INNER));
            let name = match column.qualifier.as_slice() {
                [] if names.len() == 1 => names.first(),
                [table] => names.iter().find(|name| **name == table.text),
                _ => None,
            };
            match name {
                _ if is_inner => true,
                Some(name) => {
                    let word = column.qualifier.first().unwrap_or(&column.name).word;
                    let text = format!("{INNER}{number}{INNER}{name}");
                    column.qualifier = vec![SqlIdentifier { text, word }];
                    true
                }
                None => false,
            }
        };
        let mut columns = Vec::new();
        for (name, mut column) in items {
            let name = name.map_or_else(|| column.name.text.clone(), |name| name.text);
            rename(&mut column)
                .then_some(())
                .ok_or(NarrowingRefusal::Structure)?;
            columns.push((name, column));
        }
        for source in &mut sources {
            let called = source.alias.as_ref().unwrap_or(&source.table);
            if !called.text.starts_with(INNER) {
                source.alias = Some(SqlIdentifier {
                    text: format!("{INNER}{number}{INNER}{}", called.text),
                    word: called.word,
                });
            }
            source.is_flattened = true;
        }
        let on = sources.iter_mut().filter_map(|source| source.on.as_mut());
        for condition in on.chain(&mut filter) {
            rewrite(condition, &rename).ok_or(NarrowingRefusal::Structure)?;
        }
        self.derived_joins.push(DerivedJoin {
            alias: alias.text,
            columns,
        });
        Ok((sources, filter))
    }

    /// The same SELECT, with the inner columns in place of those of SELECTs in its joins.
    pub(super) fn with_inner_columns(
        &self,
        mut query: FeedSelect,
    ) -> Result<FeedSelect, NarrowingRefusal> {
        if self.derived_joins.is_empty() {
            return Ok(query);
        }
        let is_its = |name: &[SqlIdentifier]| {
            let mut joins = self.derived_joins.iter();
            joins.any(|join| matches!(name, [table] if table.text == join.alias))
        };
        let may_be_its = |column: &ColumnReference| {
            let mut columns = self.derived_joins.iter().flat_map(|join| &join.columns);
            is_its(&column.qualifier)
                || column.qualifier.is_empty()
                    && columns.any(|(name, _)| name.eq_ignore_ascii_case(&column.name.text))
        };
        for item in query.items.iter().chain(&query.derived_items) {
            let shows = match item {
                SelectItem::All => true,
                SelectItem::AllOf(name) => is_its(name),
                SelectItem::Operand(operand, _) => {
                    operand.has_subquery() || operand.columns().into_iter().any(may_be_its)
                }
            };
            if shows {
                return Err(NarrowingRefusal::Structure);
            }
        }
        let order = query.order.iter().map(|key| &key.column);
        if order.chain(&query.group).any(may_be_its) {
            return Err(NarrowingRefusal::Structure);
        }
        let inner = |column: &mut ColumnReference| inner_column(&self.derived_joins, column);
        let on = query
            .sources
            .iter_mut()
            .filter_map(|source| source.on.as_mut());
        let filter = query.filter.iter_mut().map(|(_, filter)| filter);
        for condition in on.chain(filter) {
            rewrite(condition, &inner).ok_or(NarrowingRefusal::Structure)?;
        }
        let columns = self.derived_joins.iter().flat_map(|join| &join.columns);
        query.inner_columns = columns.map(|(_, column)| column.clone()).collect();
        Ok(query)
    }
}

/// Puts the inner column in place of one of these SELECTs'. False: they have no such column.
fn inner_column(joins: &[DerivedJoin], column: &mut ColumnReference) -> bool {
    let [table] = column.qualifier.as_slice() else {
        return true;
    };
    let Some(join) = joins.iter().find(|join| join.alias == table.text) else {
        return true;
    };
    let mut named = join.columns.iter();
    let of = named.find(|(name, _)| name.eq_ignore_ascii_case(&column.name.text));
    match of {
        Some((_, of)) => {
            *column = of.clone();
            true
        }
        None => false,
    }
}

/// Changes every column of a condition, subqueries included. `None`: one of them cannot be.
fn rewrite(
    condition: &mut SelectCondition,
    change: &dyn Fn(&mut ColumnReference) -> bool,
) -> Option<()> {
    match &mut condition.kind {
        ConditionKind::And(all) | ConditionKind::Or(all) => {
            all.iter_mut().try_for_each(|one| rewrite(one, change))
        }
        ConditionKind::Not(one) => rewrite(one, change),
        ConditionKind::Compare(left, _, right) => operands([left, right], change),
        ConditionKind::ComparePairs([a, b], _, [c, d]) => operands([a, b, c, d], change),
        ConditionKind::Between(operand, from, to, _) => operands([operand, from, to], change),
        ConditionKind::Null(operand, _)
        | ConditionKind::IsTruth(operand, ..)
        | ConditionKind::Like(operand, ..)
        | ConditionKind::In(operand, ..) => operands([operand], change),
        ConditionKind::Truth(column) => change(column).then_some(()),
        ConditionKind::InSubquery(operand, rows, _) => {
            operands([operand], change)?;
            is_apart(rows, change)
        }
        ConditionKind::Exists(rows) => is_apart(rows, change),
    }
}

/// A subquery stays as it is, if it names none of the columns.
fn is_apart(rows: &Subquery, change: &dyn Fn(&mut ColumnReference) -> bool) -> Option<()> {
    let mut apart = true;
    let mut each = |column: &ColumnReference| {
        let mut changed = column.clone();
        apart &= change(&mut changed) && changed == *column;
    };
    rows.columns.iter().for_each(&mut each);
    let on = rows.sources.iter().filter_map(|source| source.on.as_ref());
    on.chain(&rows.filter)
        .for_each(|condition| condition.visit_all_columns(&mut each));
    apart.then_some(())
}

fn operands<const N: usize>(
    all: [&mut Operand; N],
    change: &dyn Fn(&mut ColumnReference) -> bool,
) -> Option<()> {
    all.into_iter().try_for_each(|operand| match operand {
        Operand::Column(column) => change(column).then_some(()),
        Operand::Literal(_) | Operand::Now => Some(()),
        Operand::Coalesce(all) | Operand::Function(_, all) => {
            all.iter_mut().try_for_each(|one| operands([one], change))
        }
        Operand::Count(_) | Operand::Case(..) | Operand::Subquery(_) | Operand::Condition(_) => {
            None
        }
    })
}
