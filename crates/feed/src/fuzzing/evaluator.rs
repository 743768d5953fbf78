//! A slow, obvious evaluator of SELECTs over small tables, of another parser's tree: every combination of rows, filtered.
//!
//! `None` means that it does not know a construct: such statements are left out.

use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    JoinConstraint, JoinOperator, LimitClause, ObjectName, OrderByExpr, OrderByKind, OrderBySort,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator,
    SetQuantifier, TableAlias, TableFactor, TableWithJoins, UnaryOperator, Value as Literal,
};

/// A value of a small table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
}

/// Rows with named columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Relation {
    /// The table's name in the statement, and the column's.
    pub(super) columns: Vec<(String, String)>,
    pub(super) rows: Vec<Vec<Value>>,
}

/// Tables by name.
pub(super) type Tables = Vec<(String, Relation)>;

/// A row that names are resolved in, and the rows around it.
struct Scope<'a> {
    tables: &'a Tables,
    columns: &'a [(String, String)],
    row: &'a [Value],
    around: Option<&'a Scope<'a>>,
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// The rows of a statement.
pub(super) fn rows(query: &Query, tables: &Tables) -> Option<Vec<Vec<Value>>> {
    Some(relation(query, tables, None)?.rows)
}

fn relation(query: &Query, tables: &Tables, around: Option<&Scope<'_>>) -> Option<Relation> {
    let mut known = tables.clone();
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        let named = relation(&cte.query, &known, None)?;
        known.insert(0, (cte.alias.name.value.clone(), named));
    }
    let order: &[OrderByExpr] = match query.order_by.as_ref().map(|order| &order.kind) {
        None => &[],
        Some(OrderByKind::Expressions(order)) => order,
        Some(OrderByKind::All(_)) => return None,
    };
    let mut result = match query.body.as_ref() {
        SetExpr::Select(select) => self::select(select, order, &known, around)?,
        body => {
            let mut union = set(body, &known, around)?;
            sort_output(&mut union, order)?;
            union
        }
    };
    if let Some(limit) = &query.limit_clause {
        let (limit, offset) = match limit {
            LimitClause::LimitOffset { limit, offset, .. } => {
                (limit.as_ref()?, offset.as_ref().map(|offset| &offset.value))
            }
            LimitClause::OffsetCommaLimit { offset, limit } => (limit, Some(offset)),
        };
        let offset = offset.map_or(Some(0), number)?;
        let rows = result.rows.into_iter().skip(offset).take(number(limit)?);
        result.rows = rows.collect();
    }
    Some(result)
}

fn number(value: &Expr) -> Option<usize> {
    match value {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn set(body: &SetExpr, tables: &Tables, around: Option<&Scope<'_>>) -> Option<Relation> {
    match body {
        SetExpr::Select(select) => self::select(select, &[], tables, around),
        SetExpr::Query(query) => relation(query, tables, around),
        SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            set_quantifier,
            right,
        } => {
            let mut left = set(left, tables, around)?;
            let right = set(right, tables, around)?;
            (left.columns.len() == right.columns.len()).then_some(())?;
            left.rows.extend(right.rows);
            match set_quantifier {
                SetQuantifier::All => {}
                SetQuantifier::None | SetQuantifier::Distinct => unique(&mut left.rows),
                _ => return None,
            }
            Some(left)
        }
        _ => None,
    }
}

fn unique(rows: &mut Vec<Vec<Value>>) {
    let mut kept: Vec<Vec<Value>> = Vec::new();
    for row in rows.drain(..) {
        if !kept.contains(&row) {
            kept.push(row);
        }
    }
    *rows = kept;
}

/// Sorts by columns of the reply.
fn sort_output(result: &mut Relation, order: &[OrderByExpr]) -> Option<()> {
    let keys: Option<Vec<(usize, bool)>> = order
        .iter()
        .map(|by| {
            let Expr::Identifier(name) = &by.expr else {
                return None;
            };
            let mut columns = result.columns.iter();
            let at = columns.position(|(_, column)| same(column, &name.value))?;
            Some((at, is_descending(by)))
        })
        .collect();
    let keys = keys?;
    result.rows.sort_by(|a, b| {
        let each = keys.iter().map(|(at, descending)| {
            let compared = a.get(*at).cmp(&b.get(*at));
            if *descending {
                compared.reverse()
            } else {
                compared
            }
        });
        each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    Some(())
}

fn is_descending(by: &OrderByExpr) -> bool {
    matches!(by.options.sort, Some(OrderBySort::Desc))
}

fn name_of(name: &ObjectName) -> Option<String> {
    Some(name.0.last()?.as_ident()?.value.clone())
}

fn select(
    select: &Select,
    order: &[OrderByExpr],
    tables: &Tables,
    around: Option<&Scope<'_>>,
) -> Option<Relation> {
    let mut from = Relation {
        columns: Vec::new(),
        rows: vec![Vec::new()],
    };
    for joined in &select.from {
        let right = table_with_joins(joined, tables, around)?;
        from = cross(from, &right, &mut |_, _| Some(true))?;
    }
    let columns = from.columns;
    let scope = |row: &[Value], test: &mut dyn FnMut(&Scope<'_>) -> Option<Value>| {
        test(&Scope {
            tables,
            columns: &columns,
            row,
            around,
        })
    };
    let mut rows = Vec::new();
    for row in from.rows {
        let passes = match &select.selection {
            Some(filter) => scope(&row, &mut |scope| evaluate(filter, scope))?,
            None => Value::Integer(1),
        };
        if is_true(&passes) {
            rows.push(row);
        }
    }
    let GroupByExpr::Expressions(group, _) = &select.group_by else {
        return None;
    };
    let counts = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_count(expr),
        _ => false,
    });
    // Each group, by the values of its columns; a group of its own without GROUP BY.
    let mut groups: Vec<(Vec<Value>, Vec<Vec<Value>>)> = Vec::new();
    for row in rows {
        let key: Vec<Value> = match group.is_empty() {
            true if counts => Vec::new(),
            true => vec![Value::Integer(i64::try_from(groups.len()).ok()?)],
            false => {
                let key = group
                    .iter()
                    .map(|by| scope(&row, &mut |scope| evaluate(by, scope)));
                key.collect::<Option<_>>()?
            }
        };
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    if group.is_empty() && counts && groups.is_empty() {
        return None;
    }
    let mut named: Vec<(String, String)> = Vec::new();
    let mut output: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
    for (number, (_, rows)) in groups.iter().enumerate() {
        let first = rows.first()?;
        let mut shown = Vec::new();
        for item in &select.projection {
            let (expr, alias) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                    let of = match item {
                        SelectItem::QualifiedWildcard(
                            SelectItemQualifiedWildcardKind::ObjectName(name),
                            _,
                        ) => Some(name_of(name)?),
                        SelectItem::Wildcard(_) => None,
                        _ => return None,
                    };
                    for ((table, column), value) in columns.iter().zip(first) {
                        if of.as_ref().is_none_or(|of| same(of, table)) {
                            shown.push(value.clone());
                            if number == 0 {
                                named.push((table.clone(), column.clone()));
                            }
                        }
                    }
                    continue;
                }
                _ => return None,
            };
            shown.push(match is_count(expr) {
                true => count(expr, rows, &mut |row, expr| {
                    scope(row, &mut |scope| evaluate(expr, scope))
                })?,
                false => scope(first, &mut |scope| evaluate(expr, scope))?,
            });
            if number == 0 {
                let name = match (alias, expr) {
                    (Some(alias), _) => alias,
                    (None, Expr::Identifier(name)) => name.value.clone(),
                    (None, Expr::CompoundIdentifier(names)) => names.last()?.value.clone(),
                    (None, other) => other.to_string(),
                };
                named.push((String::new(), name));
            }
        }
        let mut keys = Vec::new();
        for by in order {
            // A name without a table is first one of the reply.
            let alias = match &by.expr {
                Expr::Identifier(name) => named
                    .iter()
                    .position(|(_, column)| same(column, &name.value)),
                _ => None,
            };
            keys.push(match alias {
                Some(at) => shown.get(at)?.clone(),
                None => extreme(&by.expr, rows, &mut |row, expr| {
                    scope(row, &mut |scope| evaluate(expr, scope))
                })?,
            });
        }
        output.push((keys, shown));
    }
    if groups.is_empty() {
        named = output_names(select, &columns)?;
    }
    output.sort_by(|(a, _), (b, _)| {
        let each = a.iter().zip(b).zip(order).map(|((a, b), by)| {
            if is_descending(by) {
                b.cmp(a)
            } else {
                a.cmp(b)
            }
        });
        each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    let mut rows: Vec<Vec<Value>> = output.into_iter().map(|(_, shown)| shown).collect();
    match &select.distinct {
        None | Some(Distinct::All) => {}
        Some(Distinct::Distinct) => unique(&mut rows),
        Some(_) => return None,
    }
    Some(Relation {
        columns: named,
        rows,
    })
}

/// The names of a reply without rows.
fn output_names(select: &Select, columns: &[(String, String)]) -> Option<Vec<(String, String)>> {
    let mut named = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = match expr {
                    Expr::Identifier(name) => name.value.clone(),
                    Expr::CompoundIdentifier(names) => names.last()?.value.clone(),
                    other => other.to_string(),
                };
                named.push((String::new(), name));
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                named.push((String::new(), alias.value.clone()));
            }
            SelectItem::Wildcard(_) => named.extend_from_slice(columns),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), _) => {
                let of = name_of(of)?;
                let own = columns.iter().filter(|(table, _)| same(table, &of));
                named.extend(own.cloned());
            }
            _ => return None,
        }
    }
    Some(named)
}

fn is_count(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if same(&function.name.to_string(), "COUNT"))
}

type RowValue<'a> = dyn FnMut(&[Value], &Expr) -> Option<Value> + 'a;

fn count(expr: &Expr, rows: &[Vec<Value>], value: &mut RowValue<'_>) -> Option<Value> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(arguments) = &function.args else {
        return None;
    };
    let mut values = Vec::new();
    for row in rows {
        match arguments.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => values.push(Value::Integer(1)),
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => values.push(value(row, expr)?),
            _ => return None,
        }
    }
    values.retain(|value| *value != Value::Null);
    if arguments.duplicate_treatment.is_some() {
        values.sort();
        values.dedup();
    }
    Some(Value::Integer(i64::try_from(values.len()).ok()?))
}

/// MIN or MAX of a group, or the value in its first row.
fn extreme(expr: &Expr, rows: &[Vec<Value>], value: &mut RowValue<'_>) -> Option<Value> {
    let Expr::Function(function) = expr else {
        return value(rows.first()?, expr);
    };
    let (FunctionArguments::List(arguments), name) = (&function.args, function.name.to_string())
    else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] = arguments.args.as_slice() else {
        return None;
    };
    if !(same(&name, "MIN") || same(&name, "MAX")) {
        return value(rows.first()?, expr);
    }
    let values: Option<Vec<Value>> = rows.iter().map(|row| value(row, of)).collect();
    let known = values?.into_iter().filter(|value| *value != Value::Null);
    let extreme = match same(&name, "MIN") {
        true => known.min(),
        false => known.max(),
    };
    Some(extreme.unwrap_or(Value::Null))
}

/// Whether a row of these columns passes.
type RowTest<'a> = dyn FnMut(&[(String, String)], &[Value]) -> Option<bool> + 'a;

fn cross(left: Relation, right: &Relation, passes: &mut RowTest<'_>) -> Option<Relation> {
    let columns = [&left.columns[..], &right.columns].concat();
    let mut rows = Vec::new();
    for a in &left.rows {
        for b in &right.rows {
            let row = [&a[..], b].concat();
            if passes(&columns, &row)? {
                rows.push(row);
            }
        }
    }
    Some(Relation { columns, rows })
}

fn table_with_joins(
    joined: &TableWithJoins,
    tables: &Tables,
    around: Option<&Scope<'_>>,
) -> Option<Relation> {
    let mut left = factor(&joined.relation, tables, around)?;
    for join in &joined.joins {
        let right = factor(&join.relation, tables, around)?;
        let (constraint, is_outer) = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint) => (constraint, false),
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                (constraint, true)
            }
            _ => return None,
        };
        let on = match constraint {
            JoinConstraint::On(on) => Some(on),
            JoinConstraint::None => None,
            _ => return None,
        };
        let mut passes = |columns: &[(String, String)], row: &[Value]| {
            let scope = Scope {
                tables,
                columns,
                row,
                around,
            };
            Some(match on {
                Some(on) => is_true(&evaluate(on, &scope)?),
                None => true,
            })
        };
        if !is_outer {
            left = cross(left, &right, &mut passes)?;
            continue;
        }
        let mut all = Relation {
            columns: [&left.columns[..], &right.columns].concat(),
            rows: Vec::new(),
        };
        for row in left.rows {
            let one = Relation {
                columns: left.columns.clone(),
                rows: vec![row.clone()],
            };
            let found = cross(one, &right, &mut passes)?;
            if found.rows.is_empty() {
                let nulls = vec![Value::Null; right.columns.len()];
                all.rows.push([row, nulls].concat());
            }
            all.rows.extend(found.rows);
        }
        left = all;
    }
    Some(left)
}

fn factor(factor: &TableFactor, tables: &Tables, around: Option<&Scope<'_>>) -> Option<Relation> {
    let (mut relation, alias) = match factor {
        TableFactor::Table { name, alias, .. } => {
            let name = name_of(name)?;
            let (_, table) = tables.iter().find(|(own, _)| same(own, &name))?;
            let mut table = table.clone();
            for (own, _) in &mut table.columns {
                own.clone_from(&name);
            }
            (table, alias.as_ref())
        }
        TableFactor::Derived {
            subquery, alias, ..
        } => (relation(subquery, tables, None)?, alias.as_ref()),
        TableFactor::NestedJoin {
            table_with_joins: joined,
            alias: None,
        } => (table_with_joins(joined, tables, around)?, None),
        _ => return None,
    };
    if let Some(TableAlias { name, columns, .. }) = alias {
        columns.is_empty().then_some(())?;
        for (table, _) in &mut relation.columns {
            table.clone_from(&name.value);
        }
    }
    Some(relation)
}

fn is_true(value: &Value) -> bool {
    matches!(value, Value::Integer(number) if *number != 0)
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::Integer(number) => Some(*number != 0),
        Value::Text(_) => Some(false),
    }
}

fn of_truth(value: Option<bool>) -> Value {
    value.map_or(Value::Null, |value| Value::Integer(i64::from(value)))
}

fn resolve(table: Option<&str>, column: &str, scope: &Scope<'_>) -> Option<Value> {
    let mut found = scope
        .columns
        .iter()
        .zip(scope.row)
        .filter(|((own, name), _)| {
            same(name, column) && table.is_none_or(|table| same(own, table))
        });
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Some(value.clone()),
        // Ambiguous, which the server refuses.
        (Some(_), Some(_)) => None,
        (None, _) => resolve(table, column, scope.around?),
    }
}

fn compare(left: &Value, op: &BinaryOperator, right: &Value) -> Option<Value> {
    if *op == BinaryOperator::Spaceship {
        return Some(of_truth(Some(left == right)));
    }
    let compared = match (left, right) {
        (Value::Null, _) | (_, Value::Null) => return Some(Value::Null),
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        _ => return None,
    };
    let holds = match op {
        BinaryOperator::Eq => compared.is_eq(),
        BinaryOperator::NotEq => compared.is_ne(),
        BinaryOperator::Lt => compared.is_lt(),
        BinaryOperator::LtEq => compared.is_le(),
        BinaryOperator::Gt => compared.is_gt(),
        BinaryOperator::GtEq => compared.is_ge(),
        _ => return None,
    };
    Some(of_truth(Some(holds)))
}

/// `(a, b) op (c, d)`.
fn compare_pairs(
    left: &[Expr],
    op: &BinaryOperator,
    right: &[Expr],
    scope: &Scope<'_>,
) -> Option<Value> {
    let ([a, b], [c, d]) = (left, right) else {
        return None;
    };
    let [a, b, c, d] = [a, b, c, d].map(|one| evaluate(one, scope));
    let (a, b, c, d) = (a?, b?, c?, d?);
    let both = |op: &BinaryOperator| {
        let (first, second) = (compare(&a, op, &c)?, compare(&b, op, &d)?);
        Some(and([truth(&first), truth(&second)]))
    };
    let holds = match op {
        BinaryOperator::Eq | BinaryOperator::Spaceship => both(op)?,
        BinaryOperator::NotEq => both(&BinaryOperator::Eq)?.map(|equal| !equal),
        _ => {
            let strict = match op {
                BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
                BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
                _ => return None,
            };
            let equal = truth(&compare(&a, &BinaryOperator::Eq, &c)?);
            let first = truth(&compare(&a, &strict, &c)?);
            let second = truth(&compare(&b, op, &d)?);
            or([first, and([equal, second])])
        }
    };
    Some(of_truth(holds))
}

fn and(all: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(true);
    for one in all {
        match one {
            Some(false) => return Some(false),
            None => known = None,
            Some(true) => {}
        }
    }
    known
}

fn or(all: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let negated = all.into_iter().map(|one| one.map(|one| !one));
    and(negated).map(|all| !all)
}

/// Whether a value is one of these: NULL where only an unknown one could be it.
fn one_of(value: &Value, list: &[Value], negated: bool) -> Option<Value> {
    let each: Option<Vec<Value>> = list
        .iter()
        .map(|one| compare(value, &BinaryOperator::Eq, one))
        .collect();
    let found = or(each?.iter().map(truth));
    Some(of_truth(match negated {
        true => found.map(|found| !found),
        false => found,
    }))
}

fn evaluate(expr: &Expr, scope: &Scope<'_>) -> Option<Value> {
    let value = |one: &Expr| evaluate(one, scope);
    let is = |one: &Expr, wanted: Option<bool>, negated: bool| {
        let holds = truth(&value(one)?) == wanted;
        Some(of_truth(Some(holds != negated)))
    };
    match expr {
        Expr::Nested(inner) => value(inner),
        Expr::Identifier(name) => resolve(None, &name.value, scope),
        Expr::CompoundIdentifier(names) => {
            let [.., table, column] = names.as_slice() else {
                return None;
            };
            resolve(Some(&table.value), &column.value, scope)
        }
        Expr::Value(literal) => match &literal.value {
            Literal::Number(digits, _) => digits.parse().ok().map(Value::Integer),
            Literal::SingleQuotedString(text) => Some(Value::Text(text.clone())),
            Literal::Boolean(truth) => Some(of_truth(Some(*truth))),
            Literal::Null => Some(Value::Null),
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => Some(of_truth(truth(&value(expr)?).map(|holds| !holds))),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match value(expr)? {
            Value::Integer(number) => Some(Value::Integer(-number)),
            _ => None,
        },
        Expr::BinaryOp { left, op, right } => match (op, left.as_ref(), right.as_ref()) {
            (BinaryOperator::And, ..) => {
                let both = [truth(&value(left)?), truth(&value(right)?)];
                Some(of_truth(and(both)))
            }
            (BinaryOperator::Or, ..) => {
                let both = [truth(&value(left)?), truth(&value(right)?)];
                Some(of_truth(or(both)))
            }
            (_, Expr::Tuple(left), Expr::Tuple(right)) => compare_pairs(left, op, right, scope),
            _ => compare(&value(left)?, op, &value(right)?),
        },
        Expr::IsNull(one) => Some(of_truth(Some(value(one)? == Value::Null))),
        Expr::IsNotNull(one) => Some(of_truth(Some(value(one)? != Value::Null))),
        Expr::IsTrue(one) => is(one, Some(true), false),
        Expr::IsNotTrue(one) => is(one, Some(true), true),
        Expr::IsFalse(one) => is(one, Some(false), false),
        Expr::IsNotFalse(one) => is(one, Some(false), true),
        Expr::Between {
            expr,
            negated,
            low,
            high,
        } => {
            let of = value(expr)?;
            let from = compare(&of, &BinaryOperator::GtEq, &value(low)?)?;
            let to = compare(&of, &BinaryOperator::LtEq, &value(high)?)?;
            let within = and([truth(&from), truth(&to)]);
            Some(of_truth(match negated {
                true => within.map(|within| !within),
                false => within,
            }))
        }
        Expr::InList {
            expr,
            list,
            negated,
        } => {
            let list: Option<Vec<Value>> = list.iter().map(value).collect();
            one_of(&value(expr)?, &list?, *negated)
        }
        Expr::InSubquery {
            expr,
            subquery,
            negated,
        } => {
            let rows = relation(subquery, scope.tables, Some(scope))?.rows;
            let list: Option<Vec<Value>> =
                rows.into_iter().map(|row| row.into_iter().next()).collect();
            one_of(&value(expr)?, &list?, *negated)
        }
        Expr::Exists { subquery, negated } => {
            let rows = relation(subquery, scope.tables, Some(scope))?.rows;
            Some(of_truth(Some(rows.is_empty() == *negated)))
        }
        Expr::Subquery(subquery) => {
            let rows = relation(subquery, scope.tables, Some(scope))?.rows;
            match rows.as_slice() {
                [] => Some(Value::Null),
                [row] => row.first().cloned(),
                // The server refuses it.
                _ => None,
            }
        }
        Expr::Case {
            operand: None,
            conditions,
            else_result,
            ..
        } => {
            for branch in conditions {
                if is_true(&value(&branch.condition)?) {
                    return value(&branch.result);
                }
            }
            else_result
                .as_ref()
                .map_or(Some(Value::Null), |one| value(one))
        }
        Expr::Function(function) => {
            let FunctionArguments::List(arguments) = &function.args else {
                return None;
            };
            let each: Option<Vec<Value>> = arguments
                .args
                .iter()
                .map(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => value(expr),
                    _ => None,
                })
                .collect();
            let each = each?;
            let name = function.name.to_string().to_ascii_uppercase();
            match (name.as_str(), each.as_slice()) {
                ("COALESCE" | "IFNULL", all) => {
                    let known = all.iter().find(|one| **one != Value::Null);
                    Some(known.cloned().unwrap_or(Value::Null))
                }
                ("IF", [condition, yes, no]) => {
                    Some(if is_true(condition) { yes } else { no }.clone())
                }
                ("ISNULL", [one]) => Some(of_truth(Some(*one == Value::Null))),
                ("NULLIF", [a, b]) => Some(match compare(a, &BinaryOperator::Eq, b)? {
                    Value::Integer(1) => Value::Null,
                    _ => a.clone(),
                }),
                _ => None,
            }
        }
        _ => None,
    }
}
