//! Whether a plan changes how columns are described in more than their key flags.
//!
//! Both servers describe what COALESCE and IFNULL make in one way where a row is made as it is told, and in another one (its name in the table,
//! its flags, digits, length, and type) where it comes through a temporary table: which of the two it is follows the order in which
//! tables are read, and that the numbers in the statement and what tables hold. A SELECT of one table has no temporary table but for what its text
//! says. MariaDB tells the columns of a LEFT JOIN as NOT NULL where it has read the one row that is joined while it planned, which it does
//! behind a row of which the statement says the whole unique key.
//!
//! MariaDB 10.11 and MySQL 9.7: `make_send_field` of functions and of fields, `join_read_const_table`.

use crate::equal::{Equal, conjuncts};
use crate::query::{Condition, Item, Operand, Query, Says};
use crate::scope::{Of, Scope, Seen};

/// What plans change of how columns are described, beside key flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Described {
    /// Nothing.
    Alike,
    /// On MariaDB whether one of them may be NULL.
    ByPlanOnMariadb,
    /// What functions make.
    ByPlan,
}

impl Described {
    /// True where how the server goes about the statement says more of its columns than key flags.
    #[must_use]
    pub fn is_by_plan(self, mariadb: bool) -> bool {
        match self {
            Described::Alike => false,
            Described::ByPlanOnMariadb => mariadb,
            Described::ByPlan => true,
        }
    }
}

/// Of a statement in whose rows these conditions hold, and these columns are equal.
pub(crate) fn described(
    query: &Query,
    scope: &Scope<'_>,
    equal: &Equal,
    holds: &[&Condition],
) -> Described {
    let computes =
        |item: &Item| matches!(item, Item::Operand(Operand::Coalesce(_) | Operand::Now, _));
    if query.items.iter().chain(&query.inner).any(computes) && has_more_tables(query) {
        return Described::ByPlan;
    }
    let outer = |seen: &Seen<'_>| seen.source.outer;
    let mut shown = query.items.iter().chain(&query.inner);
    let shows_outer = shown.any(|item| match item {
        Item::Operand(operand, _) => operand.columns().iter().any(|column| {
            let of = scope.resolve(column).ok();
            of.and_then(|of| scope.seen(of.table)).is_none_or(outer)
        }),
        Item::All | Item::AllOf(_) => scope.shown(item).any(outer),
    });
    let mut tables = scope.own().iter();
    match shows_outer && tables.any(|seen| is_read_ahead(seen, scope, equal, holds)) {
        true => Described::ByPlanOnMariadb,
        false => Described::Alike,
    }
}

/// A table beside that of messages, wherever it stands.
fn has_more_tables(query: &Query) -> bool {
    let on = query.sources.iter().filter_map(|source| source.on.as_ref());
    let filter = query.filter.iter().map(|(_, filter)| filter);
    !query.inner.is_empty() || query.sources.len() > 1 || on.chain(filter).any(has_select)
}

fn has_select(condition: &Condition) -> bool {
    match &condition.is {
        Says::And(all) | Says::Or(all) => all.iter().any(has_select),
        Says::Not(one) => has_select(one),
        Says::InRows(..) | Says::Exists(_) => true,
        Says::Compare(..)
        | Says::Pairs(..)
        | Says::Null(..)
        | Says::Between(..)
        | Says::Like(..)
        | Says::In(..)
        | Says::Truth(_) => false,
    }
}

/// A whole unique key of the table is said by literals, as far as those of another statement may say it: by a list of one, or between two that are
/// equal.
fn is_read_ahead(seen: &Seen<'_>, scope: &Scope<'_>, equal: &Equal, holds: &[&Condition]) -> bool {
    let mut own = equal.clone();
    let mut all = holds.to_vec();
    if let Some(on) = seen.source.on.as_ref().filter(|_| seen.source.outer) {
        conjuncts(on, &mut all);
        own.learn(&all, scope);
    }
    let between: Vec<Of> = all
        .iter()
        .filter_map(|condition| match &condition.is {
            Says::Between(Operand::Column(column), _, _, true) => scope.resolve(column).ok(),
            _ => None,
        })
        .collect();
    let is_said = |column: &usize| {
        let of = Of {
            table: seen.number,
            column: *column,
        };
        let mut ranges = between.iter();
        own.literal(of).is_some()
            || own.list(of).is_some()
            || ranges.any(|range| own.are_equal(*range, of))
    };
    let mut keys = seen.table.unique.iter();
    keys.any(|key| key.iter().all(is_said))
}
