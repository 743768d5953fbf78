//! Whether a message can have several rows in a join.

use std::collections::BTreeSet;

use crate::equalities::ColumnEqualities;
use crate::plan_dependence::has_subquery;
use crate::query::{SelectCondition, visit_columns};
use crate::scope::{NameScope, ScopedColumn};

/// The tables that have at most one row per message: each column of a unique key equals a literal, or a column of a table that is already
/// known to be such. `always`: the equalities of every row.
#[must_use]
pub fn single_row_tables(
    scope: &NameScope<'_>,
    always: &ColumnEqualities,
    message: usize,
) -> BTreeSet<usize> {
    with_single_rows(scope, always, BTreeSet::from([message]))
}

/// True if the innermost SELECT has one row at most for each row of the SELECTs around it.
pub(crate) fn has_one_row(scope: &NameScope<'_>, always: &ColumnEqualities) -> bool {
    let own = scope.innermost_tables().iter().map(|scoped| scoped.number);
    let own: BTreeSet<usize> = own.collect();
    let around = scope.all_tables().map(|scoped| scoped.number);
    let around = around.filter(|number| !own.contains(number)).collect();
    own.is_subset(&with_single_rows(scope, always, around))
}

/// Adds the tables that have at most one row for each row of these.
pub(crate) fn with_single_rows(
    scope: &NameScope<'_>,
    always: &ColumnEqualities,
    mut single: BTreeSet<usize>,
) -> BTreeSet<usize> {
    let tables = scope.innermost_tables();
    loop {
        let before = single.len();
        for scoped in tables {
            if single.contains(&scoped.number) {
                continue;
            }
            let mut equal = always.clone();
            if let Some(outer_join) = scoped.source.outer {
                let on = scope.outer_join_conditions(outer_join);
                // Another row of a table that the ON names may join another row, or none.
                let is_settled = |condition: &&SelectCondition| {
                    let mut settled = !has_subquery(condition);
                    visit_columns(condition, &mut |column| {
                        let table = scope
                            .resolve(column)
                            .ok()
                            .and_then(|of| scope.table(of.table));
                        settled &= table.is_some_and(|named| {
                            single.contains(&named.number) || named.source.outer == Some(outer_join)
                        });
                    });
                    settled
                };
                if !on.iter().all(is_settled) {
                    continue;
                }
                // A joined row meets its ON. Conditions of WHERE on an outer table only remove rows.
                equal.add_conditions(&on, scope);
            }
            let known = |column: &usize| {
                let of = ScopedColumn {
                    table: scoped.number,
                    column: *column,
                };
                let mut equals = equal.equal_columns(of);
                equal.literal(of).is_some() || equals.any(|other| single.contains(&other.table))
            };
            if scoped
                .table
                .unique_keys
                .iter()
                .any(|key| !key.is_empty() && key.iter().all(known))
            {
                single.insert(scoped.number);
            }
        }
        if single.len() == before {
            return single;
        }
    }
}
