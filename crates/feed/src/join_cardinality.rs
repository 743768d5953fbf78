//! Whether a message can have several rows in a join.

use std::collections::BTreeSet;

use crate::equalities::{ColumnEqualities, conjuncts};
use crate::scope::{NameScope, ScopedColumn};

/// The tables that have one row at most for each message: some unique key of theirs is equal, column by column, to literals and to
/// columns of tables of which that is known already. `always`: what is equal in every row.
#[must_use]
pub fn single_row_tables(
    scope: &NameScope<'_>,
    always: &ColumnEqualities,
    message: usize,
) -> BTreeSet<usize> {
    let mut single = BTreeSet::from([message]);
    let own = scope.innermost_tables();
    loop {
        let before = single.len();
        for seen in own {
            if single.contains(&seen.number) {
                continue;
            }
            let mut equal = always.clone();
            if let Some(on) = seen.source.on.as_ref().filter(|_| seen.source.outer) {
                // Of a row that is joined, its ON holds. What WHERE says beside that of an outer table only takes rows away.
                let mut all = Vec::new();
                conjuncts(on, &mut all);
                equal.add_conditions(&all, scope);
            }
            let known = |column: &usize| {
                let of = ScopedColumn {
                    table: seen.number,
                    column: *column,
                };
                let mut equals = equal.equal_columns(of);
                equal.literal(of).is_some() || equals.any(|other| single.contains(&other.table))
            };
            if seen
                .table
                .unique_keys
                .iter()
                .any(|key| !key.is_empty() && key.iter().all(known))
            {
                single.insert(seen.number);
            }
        }
        if single.len() == before {
            return single;
        }
    }
}
