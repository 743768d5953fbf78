//! Whether a plan changes column definitions in more than their key flags.
//!
//! Where rows go through a temporary table, both servers describe the results of COALESCE and IFNULL differently (their name in the table,
//! flags, digits, length, and type) than where they send them as evaluated. They also name other tables and databases for columns of a
//! SELECT in FROM. Whether there is a temporary table depends on the order in which tables are read, and that on the statement's numbers
//! and on what the tables hold. A SELECT of one table has one only for DISTINCT and where its text requires it.
//!
//! MariaDB describes columns of a LEFT JOIN as NOT NULL where it treats the join as an inner one without a temporary table: where a
//! condition is true of no row of NULLs, or where it read the one joined row while planning, after a row whose whole unique key the
//! statement gives.
//!
//! EXPLAIN shows whether there is a temporary table, except for a condition with a subquery that names only constants: MariaDB evaluates it
//! at execution, and then makes no rows where it is not true.
//!
//! MariaDB 10.11 and MySQL 9.7: `exec_const_cond`, `make_send_field` of functions and of fields, `simplify_joins`, `join_read_const_table`.

use std::collections::BTreeSet;

use crate::equalities::{ColumnEqualities, conjuncts};
use crate::query::visit_columns;
use crate::query::{
    ColumnReference, ConditionKind, FeedSelect, Operand, OuterSelect, SelectCondition, SelectItem,
};
use crate::schema::Schema;
use crate::scope::{NameScope, ScopedColumn, ScopedTable};

/// What plans change in column definitions, besides key flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanDependence {
    /// Nothing.
    Alike,
    /// On MariaDB, whether a column may be NULL.
    ByPlanOnMariadb,
    /// The results of functions, or the columns of a SELECT in FROM.
    ByPlan,
}

impl PlanDependence {
    /// True if the plan changes more of the column definitions than key flags.
    #[must_use]
    pub fn is_by_plan(self, mariadb: bool) -> bool {
        match self {
            PlanDependence::Alike => false,
            PlanDependence::ByPlanOnMariadb => mariadb,
            PlanDependence::ByPlan => true,
        }
    }
}

/// What plans change in the column definitions of a SELECT around a page. The page itself is a temporary table under every plan.
pub(crate) fn of_outer(outer: &OuterSelect) -> PlanDependence {
    let has_outer_join = outer.sources.iter().any(|source| source.outer.is_some());
    match (
        outer.items.iter().any(SelectItem::is_computed),
        has_outer_join,
    ) {
        (true, _) => PlanDependence::ByPlan,
        (false, true) => PlanDependence::ByPlanOnMariadb,
        (false, false) => PlanDependence::Alike,
    }
}

/// True if a condition around a page has a subquery, besides the page.
pub(crate) fn has_subquery_around(outer: &OuterSelect) -> bool {
    let on = outer.sources.iter().filter_map(|source| source.on.as_ref());
    let mut has = false;
    for condition in on.chain(&outer.filter) {
        condition.visit_subqueries(&mut |rows| {
            has |= !rows.sources.iter().any(|source| source.is_page);
        });
    }
    has
}

/// A statement with the conditions and equalities that hold in its rows.
pub(crate) struct SelectAnalysis<'s, 'a> {
    pub(crate) query: &'s FeedSelect,
    pub(crate) scope: &'s NameScope<'a>,
    pub(crate) schema: &'s dyn Schema,
    pub(crate) equal: &'s ColumnEqualities,
    pub(crate) holds: &'s [&'s SelectCondition],
    /// A column whose list has several values.
    pub(crate) listed: Option<ScopedColumn>,
}

impl SelectAnalysis<'_, '_> {
    pub(crate) fn plan_dependence(&self) -> PlanDependence {
        let query = self.query;
        let mut items = query.items.iter().chain(&query.derived_items);
        let has_more_tables = query.sources.len() > 1 || self.conditions().any(has_subquery);
        let is_derived = !query.derived_items.is_empty();
        if is_derived && (query.distinct || has_more_tables)
            || items.any(SelectItem::is_computed) && (is_derived || has_more_tables)
        {
            return PlanDependence::ByPlan;
        }
        let inner = self
            .scope
            .innermost_tables()
            .iter()
            .filter(|scoped| scoped.source.outer.is_none());
        let mut ahead = inner.filter(|scoped| self.is_read_ahead(scoped));
        let shown = self.shown_not_null();
        let is_joined = !shown.is_empty() && ahead.any(|scoped| self.determines_join(scoped));
        let rejects = self.rejects_nulls();
        match is_joined || !shown.is_disjoint(&rejects) {
            true => PlanDependence::ByPlanOnMariadb,
            false => PlanDependence::Alike,
        }
    }

    /// True if a condition has a subquery that names only constants.
    pub(crate) fn has_constant_subquery(&self) -> bool {
        let mut selects = Vec::new();
        self.conditions()
            .for_each(|one| collect_subqueries(one, &mut selects));
        selects.into_iter().any(|select| {
            let mut is_constant = true;
            self.visit_own_columns(select, self.scope, &mut |of| {
                is_constant &= self.is_constant(of)
            });
            is_constant
        })
    }

    /// WHERE, and each ON.
    fn conditions(&self) -> impl Iterator<Item = &SelectCondition> {
        let on = self
            .query
            .sources
            .iter()
            .filter_map(|source| source.on.as_ref());
        on.chain(self.query.filter.iter().map(|(_, filter)| filter))
    }

    /// True if a column may be known before rows are read: by a literal, or in a row read ahead. After such a row, others may be.
    fn is_constant(&self, of: ScopedColumn) -> bool {
        let mut tables = self.scope.innermost_tables().iter();
        let is_outer = self
            .scope
            .table(of.table)
            .is_none_or(|scoped| scoped.source.outer.is_some());
        is_outer || self.is_determined(of, &[]) || tables.any(|scoped| self.is_read_ahead(scoped))
    }

    /// The tables of LEFT JOINs with a shown column that is NOT NULL. Of other tables, no join changes the definitions.
    fn shown_not_null(&self) -> BTreeSet<usize> {
        let (query, scope) = (self.query, self.scope);
        let mut tables = BTreeSet::new();
        for item in query.items.iter().chain(&query.derived_items) {
            match item {
                SelectItem::Operand(operand, _) => {
                    let columns = operand.columns();
                    let shown = columns
                        .iter()
                        .filter_map(|column| scope.resolve(column).ok());
                    let never = shown.filter(|of| {
                        scope
                            .column_schema(*of)
                            .is_none_or(|facts| !facts.is_nullable)
                    });
                    tables.extend(never.map(|of| of.table));
                }
                SelectItem::All | SelectItem::AllOf(_) => {
                    let never = |scoped: &&ScopedTable<'_>| {
                        scoped
                            .table
                            .columns
                            .iter()
                            .any(|column| !column.is_nullable)
                    };
                    tables.extend(
                        scope
                            .shown_tables(item)
                            .filter(never)
                            .map(|scoped| scoped.number),
                    );
                }
            }
        }
        let outer = scope
            .innermost_tables()
            .iter()
            .filter(|scoped| scoped.source.outer.is_some());
        let outer: BTreeSet<usize> = outer.map(|scoped| scoped.number).collect();
        &tables & &outer
    }

    /// The tables of LEFT JOINs that may be inner joins. A condition that holds in each row names them and may be true of no row of NULLs,
    /// or it names a table whose ON names them.
    fn rejects_nulls(&self) -> BTreeSet<usize> {
        let mut tables = BTreeSet::new();
        let mut conditions = self.holds.to_vec();
        let mut joins: Vec<&ScopedTable<'_>> = self
            .scope
            .innermost_tables()
            .iter()
            .filter(|scoped| scoped.source.outer.is_some())
            .collect();
        while let Some(condition) = conditions.pop() {
            if matches!(condition.kind, ConditionKind::Null(_, true)) {
                continue;
            }
            self.visit_own_columns(condition, self.scope, &mut |of| {
                tables.insert(of.table);
            });
            let named: BTreeSet<usize> = joins
                .iter()
                .filter(|scoped| tables.contains(&scoped.number))
                .filter_map(|scoped| scoped.source.outer)
                .collect();
            joins.retain(|scoped| {
                let is_named = scoped
                    .source
                    .outer
                    .is_some_and(|join| named.contains(&join));
                if is_named {
                    tables.insert(scoped.number);
                    if let Some(on) = &scoped.source.on {
                        conjuncts(on, &mut conditions);
                    }
                }
                !is_named
            });
        }
        tables
    }

    /// True if a row of this table decides which row of a LEFT JOIN's table is joined.
    fn determines_join(&self, scoped: &ScopedTable<'_>) -> bool {
        let outer = self
            .scope
            .innermost_tables()
            .iter()
            .filter(|other| other.source.outer.is_some());
        let mut on = outer.filter_map(|other| other.source.on.as_ref());
        on.any(|on| {
            let mut depends = has_subquery(on);
            self.visit_own_columns(on, self.scope, &mut |of| {
                depends |= of.table == scoped.number
            });
            depends
        })
    }

    /// Visits every column of the statement's own tables in a condition and its subqueries.
    fn visit_own_columns(
        &self,
        condition: &SelectCondition,
        scope: &NameScope<'_>,
        each: &mut dyn FnMut(ScopedColumn),
    ) {
        let resolve_own = |scope: &NameScope<'_>, column: &ColumnReference| {
            let of = scope.resolve(column).ok();
            of.filter(|of| of.table < self.scope.innermost_tables().len())
        };
        visit_columns(condition, &mut |column| {
            resolve_own(scope, column).into_iter().for_each(&mut *each);
        });
        let mut selects = Vec::new();
        collect_subqueries(condition, &mut selects);
        for select in selects {
            if let ConditionKind::InSubquery(operand, ..) = &select.kind {
                let columns = operand.columns().into_iter();
                columns
                    .filter_map(|column| resolve_own(scope, column))
                    .for_each(&mut *each);
            }
            select.visit_subqueries(&mut |rows| {
                let Ok(within) = scope.within(&rows.sources, self.schema) else {
                    return;
                };
                let shown = rows.columns.iter();
                shown
                    .filter_map(|column| resolve_own(&within, column))
                    .for_each(&mut *each);
                let on = rows.sources.iter().filter_map(|source| source.on.as_ref());
                for condition in on.chain(&rows.filter) {
                    self.visit_own_columns(condition, &within, each);
                }
            });
        }
    }

    /// True if literals give a whole unique key of the table, in this statement or another of its template: by a list of one, or between
    /// two equal ones.
    fn is_read_ahead(&self, scoped: &ScopedTable<'_>) -> bool {
        let between: Vec<ScopedColumn> = self
            .holds
            .iter()
            .filter_map(|condition| match &condition.kind {
                ConditionKind::Between(Operand::Column(column), _, _, true) => {
                    self.scope.resolve(column).ok()
                }
                _ => None,
            })
            .collect();
        let is_said = |column: &usize| {
            let of = ScopedColumn {
                table: scoped.number,
                column: *column,
            };
            self.is_determined(of, &between)
        };
        let mut keys = scoped.table.unique_keys.iter();
        keys.any(|key| key.iter().all(is_said))
    }

    /// True if literals give the column, or it equals one of `others`.
    fn is_determined(&self, of: ScopedColumn, others: &[ScopedColumn]) -> bool {
        self.equal.literal(of).is_some()
            || self.equal.list(of).is_some() && self.listed != Some(of)
            || others.iter().any(|other| self.equal.are_equal(*other, of))
    }
}

/// True if a part of the condition has a subquery.
pub(crate) fn has_subquery(condition: &SelectCondition) -> bool {
    let mut has = false;
    condition.visit_subqueries(&mut |_| has = true);
    has
}

/// The parts of a condition, undivided, that have a subquery.
fn collect_subqueries<'q>(condition: &'q SelectCondition, all: &mut Vec<&'q SelectCondition>) {
    match condition.parts() {
        [] if has_subquery(condition) => all.push(condition),
        parts => parts.iter().for_each(|part| collect_subqueries(part, all)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::tests::shaped;

    fn of(items: &str, from: &str, condition: &str) -> PlanDependence {
        let text = format!(
            "SELECT m.id, {items} FROM message m {from} WHERE m.user_id IN (1, 2) AND {condition} ORDER BY m.id DESC LIMIT 9"
        );
        shaped(&text, false).unwrap().plan_dependence
    }

    type DescriptionCase = (&'static str, &'static str, &'static str, PlanDependence);

    /// Checks cases of items, FROM and conditions.
    #[track_caller]
    fn all_are(cases: &[DescriptionCase]) {
        for (items, from, condition, expected) in cases {
            assert_eq!(
                of(items, from, condition),
                *expected,
                "{items} {from} {condition}"
            );
        }
    }

    #[test]
    fn what_functions_make_follows_the_plan_where_there_is_another_table() {
        let users = "JOIN users u ON u.id = m.user_id";
        let edges = "m.user_id IN (SELECT author FROM follower WHERE reader = 5)";
        all_are(&[
            (
                "COALESCE(m.body, 'x')",
                "",
                "m.hidden = 0",
                PlanDependence::Alike,
            ),
            (
                "COALESCE(m.body, 'x')",
                users,
                "m.hidden = 0",
                PlanDependence::ByPlan,
            ),
            ("IFNULL(m.body, 'x')", "", edges, PlanDependence::ByPlan),
            ("m.body, 5", users, edges, PlanDependence::Alike),
            (
                "m.body",
                users,
                "COALESCE(m.body, 'x') = 'y'",
                PlanDependence::Alike,
            ),
        ]);
    }

    #[test]
    fn columns_of_a_select_in_from_follow_the_plan_where_it_may_have_a_temporary_table() {
        let users = "JOIN users u ON u.id = m.user_id";
        for (front, from, expected) in [
            ("SELECT", "", PlanDependence::Alike),
            ("SELECT DISTINCT", "", PlanDependence::ByPlan),
            ("SELECT", users, PlanDependence::ByPlan),
            ("SELECT DISTINCT", users, PlanDependence::ByPlan),
        ] {
            let text = format!(
                "{front} d.id FROM (SELECT m.id FROM message m {from} WHERE m.user_id IN (1, 2)) d ORDER BY d.id DESC LIMIT 9"
            );
            let described = shaped(&text, false).unwrap().plan_dependence;
            assert_eq!(described, expected, "{text}");
        }
    }

    #[test]
    fn columns_of_a_left_join_follow_the_plan_where_it_may_be_an_inner_one() {
        let users = "LEFT JOIN users u ON u.id = m.user_id";
        let both = "LEFT JOIN users u ON u.id = m.user_id LEFT JOIN block b ON b.who = u.id AND b.whom = 7";
        all_are(&[
            (
                "u.name",
                users,
                "u.name = 'x'",
                PlanDependence::ByPlanOnMariadb,
            ),
            (
                "u.*",
                users,
                "u.nick = 'x'",
                PlanDependence::ByPlanOnMariadb,
            ),
            ("u.nick", users, "u.name = 'x'", PlanDependence::Alike),
            (
                "u.name",
                users,
                "u.id IS NOT NULL",
                PlanDependence::ByPlanOnMariadb,
            ),
            ("u.name", users, "u.id IS NULL", PlanDependence::Alike),
            (
                "u.name",
                users,
                "(u.id IS NULL OR u.name = 'x')",
                PlanDependence::ByPlanOnMariadb,
            ),
            ("m.body", users, "u.name = 'x'", PlanDependence::Alike),
            ("u.name", both, "b.whom IS NULL", PlanDependence::Alike),
            (
                "u.name",
                both,
                "b.whom = 7",
                PlanDependence::ByPlanOnMariadb,
            ),
            ("b.who", both, "u.name = 'x'", PlanDependence::Alike),
            (
                "u.name",
                users,
                "EXISTS (SELECT 1 FROM block b WHERE b.who = u.id)",
                PlanDependence::ByPlanOnMariadb,
            ),
            (
                "u.name",
                users,
                "u.id NOT IN (SELECT whom FROM block WHERE who = 3)",
                PlanDependence::ByPlanOnMariadb,
            ),
            (
                "u.name",
                users,
                "EXISTS (SELECT 1 FROM block b WHERE b.who = m.user_id)",
                PlanDependence::Alike,
            ),
        ]);
    }

    #[test]
    fn a_select_in_a_condition_is_constant_where_it_names_nothing_else() {
        let of = |authors: &str, condition: &str| {
            let text = format!(
                "SELECT m.id FROM message m WHERE {authors} AND {condition} ORDER BY m.id DESC LIMIT 9"
            );
            shaped(&text, false).unwrap().has_constant_subquery
        };
        let edges = "m.user_id IN (SELECT author FROM follower WHERE reader = 5)";
        let named = "m.user_id IN (7)";
        for (authors, condition, expected) in [
            (named, "m.hidden = 0", false),
            (
                named,
                "m.user_id NOT IN (SELECT whom FROM block WHERE who = 3)",
                true,
            ),
            (
                edges,
                "m.user_id NOT IN (SELECT whom FROM block WHERE who = 3)",
                false,
            ),
            (
                named,
                "m.id NOT IN (SELECT message_id FROM tag WHERE name = 'x')",
                false,
            ),
            (
                edges,
                "EXISTS (SELECT 1 FROM block b WHERE b.who = 3)",
                true,
            ),
            (
                edges,
                "NOT EXISTS (SELECT 1 FROM block b WHERE b.whom = m.user_id)",
                false,
            ),
            (
                named,
                "(m.hidden = 0 OR EXISTS (SELECT 1 FROM block b WHERE b.whom = m.user_id))",
                true,
            ),
            (
                edges,
                "m.id = 5 AND EXISTS (SELECT 1 FROM tag t WHERE t.message_id = m.id)",
                true,
            ),
        ] {
            assert_eq!(of(authors, condition), expected, "{authors} {condition}");
        }
    }

    #[test]
    fn columns_of_a_left_join_follow_the_plan_behind_a_row_that_is_read_ahead() {
        let users = "LEFT JOIN users u ON u.id = m.user_id";
        all_are(&[
            ("u.name", users, "m.hidden = 0", PlanDependence::Alike),
            ("u.name", users, "m.id < 7", PlanDependence::Alike),
            ("u.name", users, "m.id = 7", PlanDependence::ByPlanOnMariadb),
            (
                "*",
                users,
                "m.id IN (7, 8)",
                PlanDependence::ByPlanOnMariadb,
            ),
            (
                "u.*",
                users,
                "m.id BETWEEN 7 AND 8",
                PlanDependence::ByPlanOnMariadb,
            ),
            ("m.body", users, "m.id = 7", PlanDependence::Alike),
            ("u.nick", users, "m.id = 7", PlanDependence::Alike),
            (
                "u.name",
                "JOIN users u ON u.id = m.user_id",
                "m.id = 7",
                PlanDependence::Alike,
            ),
        ]);
    }
}
