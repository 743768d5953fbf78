//! Rows that a message refers to: of tables that are joined by their key, which a column of the message's names.

use crate::equalities::conjuncts;
use crate::query::{ColumnReference, ComparisonOperator, ConditionKind, Operand, SelectCondition};
use crate::schema::ComparisonClass;
use crate::scope::{NameScope, ScopedColumn, ScopedTable};

/// A row that a message's row is made of as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedRowReference {
    /// Its table.
    pub table: String,
    /// The table's key.
    pub id: String,
    /// What says which row it is.
    pub key_source: ReferenceKeySource,
    /// Whether a message passes depends on it.
    pub filters: bool,
}

/// A column of the message's that holds a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceKeySource {
    /// Its author, whom memory knows.
    Author,
    /// This one, where the answer shows it.
    Column(String),
}

/// Where tables are looked for that messages refer to.
pub(crate) struct JoinedTableSearch<'s, 'a> {
    pub(crate) scope: &'s NameScope<'a>,
    /// The message's author, and a column that is equal to it in every row.
    pub(crate) author: ScopedColumn,
    pub(crate) equal_author: Option<ScopedColumn>,
}

/// What was found.
pub(crate) struct JoinedTableMatches<'q> {
    references: Vec<JoinedRowReference>,
    /// Their numbers in the statement.
    pub(crate) numbers: Vec<usize>,
    /// The conditions that say which rows they are, where these hold in every row.
    pub(crate) key_conditions: Vec<&'q SelectCondition>,
    /// What else is said in ON of those of a LEFT JOIN.
    pub(crate) extra_on_conditions: Vec<&'q SelectCondition>,
}

impl<'a> JoinedTableSearch<'_, 'a> {
    /// These tables, joined by their keys. `None`: one of them is not.
    pub(crate) fn references<'q>(
        &self,
        tables: &[&ScopedTable<'a>],
        holds: &[&'q SelectCondition],
    ) -> Option<JoinedTableMatches<'q>>
    where
        'a: 'q,
    {
        let mut found = JoinedTableMatches {
            references: Vec::new(),
            numbers: tables.iter().map(|seen| seen.number).collect(),
            key_conditions: Vec::new(),
            extra_on_conditions: Vec::new(),
        };
        for seen in tables {
            let mut on = Vec::new();
            if seen.source.outer {
                conjuncts(seen.source.on.as_ref()?, &mut on);
            }
            let all = if seen.source.outer { &on[..] } else { holds };
            let mut keys = all
                .iter()
                .filter_map(|one| Some((*one, self.key_reference(one, seen)?)));
            let (own, (id, by)) = keys.next()?;
            if seen.source.outer {
                let others = on.iter().filter(|one| !std::ptr::eq(**one, own));
                found.extra_on_conditions.extend(others);
            } else {
                found.key_conditions.push(own);
            }
            found.references.push(JoinedRowReference {
                table: seen.source.table.text.clone(),
                id: seen.table.columns.get(id)?.name.clone(),
                key_source: by,
                filters: !seen.source.outer,
            });
        }
        Some(found)
    }

    /// The key's column, and what it is equal to, where a condition says that.
    fn key_reference(
        &self,
        condition: &SelectCondition,
        seen: &ScopedTable<'_>,
    ) -> Option<(usize, ReferenceKeySource)> {
        let ConditionKind::Compare(
            Operand::Column(left),
            ComparisonOperator::Equal,
            Operand::Column(right),
        ) = &condition.kind
        else {
            return None;
        };
        let (left, right) = (
            self.scope.resolve(left).ok()?,
            self.scope.resolve(right).ok()?,
        );
        let (own, other) = match (left.table == seen.number, right.table == seen.number) {
            (true, false) => (left, right),
            (false, true) => (right, left),
            _ => return None,
        };
        let whole = [own, other].map(|of| self.scope.class(of) == ComparisonClass::Integer);
        let unique = seen
            .table
            .unique_keys
            .iter()
            .any(|key| *key == [own.column]);
        let by = if other == self.author || self.equal_author == Some(other) {
            ReferenceKeySource::Author
        } else if other.table == self.author.table {
            ReferenceKeySource::Column(self.scope.column_schema(other)?.name.clone())
        } else {
            return None;
        };
        (whole == [true, true] && unique).then_some((own.column, by))
    }

    /// The tables, where `rest` says which messages pass.
    pub(crate) fn mark_filtering(
        &self,
        found: JoinedTableMatches<'_>,
        rest: &[&SelectCondition],
    ) -> Vec<JoinedRowReference> {
        let mut decide = Vec::new();
        for condition in rest.iter().chain(&found.extra_on_conditions) {
            visit_columns(condition, &mut |column| {
                decide.extend(self.scope.resolve(column).ok().map(|of| of.table));
            });
        }
        let numbers = found.numbers.iter();
        let each = found.references.into_iter().zip(numbers);
        let refers = each.map(|(refer, number)| JoinedRowReference {
            filters: refer.filters || decide.contains(number),
            ..refer
        });
        refers.collect()
    }
}

/// Every column in a condition without a SELECT in it.
pub(crate) fn visit_columns<'q>(
    condition: &'q SelectCondition,
    each: &mut impl FnMut(&'q ColumnReference),
) {
    let mut operands = |all: &[&'q Operand]| {
        let columns = all.iter().flat_map(|operand| operand.columns());
        columns.for_each(&mut *each);
    };
    match &condition.kind {
        ConditionKind::And(all) | ConditionKind::Or(all) => {
            all.iter().for_each(|one| visit_columns(one, each))
        }
        ConditionKind::Not(one) => visit_columns(one, each),
        ConditionKind::Compare(left, _, right) => operands(&[left, right]),
        ConditionKind::ComparePairs([a, b], _, [c, d]) => operands(&[a, b, c, d]),
        ConditionKind::Between(operand, from, to, _) => operands(&[operand, from, to]),
        ConditionKind::Null(operand, _)
        | ConditionKind::Like(operand, ..)
        | ConditionKind::In(operand, ..) => {
            operands(&[operand]);
        }
        ConditionKind::Truth(column) => each(column),
        ConditionKind::InSubquery(..) | ConditionKind::Exists(_) => {}
    }
}
