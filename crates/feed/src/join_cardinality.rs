//! Whether a message can have several rows in a join.

use std::collections::BTreeSet;

use crate::equalities::ColumnEqualities;
use crate::scope::{NameScope, ScopedColumn};

/// The tables that have at most one row per message: each column of a unique key equals a literal, or a column of a table that is already
/// known to be such. `always`: the equalities of every row.
#[must_use]
pub fn single_row_tables(
    scope: &NameScope<'_>,
    always: &ColumnEqualities,
    message: usize,
) -> BTreeSet<usize> {
    let mut single = BTreeSet::from([message]);
    let tables = scope.innermost_tables();
    loop {
        let before = single.len();
        for scoped in tables {
            if single.contains(&scoped.number) {
                continue;
            }
            let mut equal = always.clone();
            if let Some(outer_join) = scoped.source.outer {
                // A joined row meets its ON. Conditions of WHERE on an outer table only remove rows.
                equal.add_conditions(&scope.outer_join_conditions(outer_join), scope);
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
