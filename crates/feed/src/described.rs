//! Whether a plan changes how columns are described in more than their key flags.
//!
//! Both servers describe what COALESCE and IFNULL make in one way where a row is made as it is told, and in another one (its name in the table,
//! its flags, digits, length, and type) where it comes through a temporary table: which of the two it is follows the order in which
//! tables are read, and that the numbers in the statement and what tables hold. A SELECT of one table has no temporary table but for what its text
//! says. MariaDB tells the columns of a LEFT JOIN as NOT NULL where it has read the one row that is joined while it planned, which it does
//! behind a row of which the statement says the whole unique key.
//!
//! MariaDB 10.11 and MySQL 9.7: `make_send_field` of functions and of fields, `join_read_const_table`.

use crate::equal::Equal;
use crate::query::{Condition, Item, Operand, Query, Says};
use crate::refers::columns;
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
    /// On MySQL from which table they are: of what DISTINCT makes of a SELECT in FROM it says either, under the same plan.
    UnsureOnMysql,
}

impl Described {
    /// True where how the server goes about the statement says more of its columns than key flags.
    #[must_use]
    pub fn is_by_plan(self, mariadb: bool) -> bool {
        match self {
            Described::Alike | Described::UnsureOnMysql => false,
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
    if query.distinct && !query.inner.is_empty() {
        return Described::UnsureOnMysql;
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
    let inner = scope.own().iter().filter(|seen| !outer(seen));
    let mut ahead = inner.filter(|seen| is_read_ahead(seen, scope, equal, holds));
    match shows_outer && ahead.any(|seen| says_what_is_joined(seen, scope)) {
        true => Described::ByPlanOnMariadb,
        false => Described::Alike,
    }
}

/// Which row of a LEFT JOIN's table is joined follows a row of this table.
fn says_what_is_joined(seen: &Seen<'_>, scope: &Scope<'_>) -> bool {
    let outer = scope.own().iter().filter(|other| other.source.outer);
    let mut on = outer.filter_map(|other| other.source.on.as_ref());
    on.any(|on| {
        let mut says = has_select(on);
        columns(on, &mut |column| {
            let of = scope.resolve(column);
            says |= of.is_ok_and(|of| of.table == seen.number);
        });
        says
    })
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
    let between: Vec<Of> = holds
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
        equal.literal(of).is_some()
            || equal.list(of).is_some()
            || ranges.any(|range| equal.are_equal(*range, of))
    };
    let mut keys = seen.table.unique.iter();
    keys.any(|key| key.iter().all(is_said))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::tests::shaped;

    fn of(items: &str, from: &str, condition: &str) -> Described {
        let text = format!(
            "SELECT m.id, {items} FROM message m {from} WHERE m.user_id IN (1, 2) AND {condition} ORDER BY m.id DESC LIMIT 9"
        );
        shaped(&text, false).unwrap().described
    }

    #[test]
    fn what_functions_make_follows_the_plan_where_there_is_another_table() {
        let users = "JOIN users u ON u.id = m.user_id";
        let edges = "m.user_id IN (SELECT author FROM follower WHERE reader = 5)";
        for (items, from, condition, expected) in [
            (
                "COALESCE(m.body, 'x')",
                "",
                "m.hidden = 0",
                Described::Alike,
            ),
            (
                "COALESCE(m.body, 'x')",
                users,
                "m.hidden = 0",
                Described::ByPlan,
            ),
            ("IFNULL(m.body, 'x')", "", edges, Described::ByPlan),
            ("m.body, 5", users, edges, Described::Alike),
            (
                "m.body",
                users,
                "COALESCE(m.body, 'x') = 'y'",
                Described::Alike,
            ),
        ] {
            assert_eq!(
                of(items, from, condition),
                expected,
                "{items} {from} {condition}"
            );
        }
    }

    #[test]
    fn columns_of_a_left_join_follow_the_plan_behind_a_row_that_is_read_ahead() {
        let users = "LEFT JOIN users u ON u.id = m.user_id";
        for (items, from, condition, expected) in [
            ("u.name", users, "m.hidden = 0", Described::Alike),
            ("u.name", users, "m.id < 7", Described::Alike),
            ("u.name", users, "m.id = 7", Described::ByPlanOnMariadb),
            ("*", users, "m.id IN (7, 8)", Described::ByPlanOnMariadb),
            (
                "u.*",
                users,
                "m.id BETWEEN 7 AND 8",
                Described::ByPlanOnMariadb,
            ),
            ("m.body", users, "m.id = 7", Described::Alike),
            (
                "u.name",
                "JOIN users u ON u.id = m.user_id",
                "m.id = 7",
                Described::Alike,
            ),
        ] {
            assert_eq!(
                of(items, from, condition),
                expected,
                "{items} {from} {condition}"
            );
        }
    }
}
