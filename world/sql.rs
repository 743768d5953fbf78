//! The SELECTs that the model answers: those that Headwater sends, and an app's pages. It uses an independent SQL parser, and refuses all
//! that the parser or the model does not support.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Join, JoinConstraint, JoinOperator, LimitClause, ObjectName, OrderByKind, OrderBySort, Query,
    Select, SelectItem, SetExpr, Statement, TableFactor, UnaryOperator, Value as Literal,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::condition::RowCondition;
use crate::model::ModelState;

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CellValue {
    Null,
    Number(i128),
    Text(String),
}

impl fmt::Display for CellValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CellValue::Null => write!(f, "NULL"),
            CellValue::Number(number) => write!(f, "{number}"),
            CellValue::Text(text) => write!(f, "{text}"),
        }
    }
}

/// The result of a SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectResult {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<CellValue>>,
}

/// An unsupported construct.
#[derive(Debug)]
pub(crate) struct UnsupportedSql(pub String);

pub(crate) type SqlResult<T> = Result<T, UnsupportedSql>;

fn unknown<T>(what: impl fmt::Debug) -> SqlResult<T> {
    Err(UnsupportedSql(format!("{what:?}")))
}

/// A statement with its numbers inserted.
pub(crate) fn bound(text: &str, values: &[u64]) -> String {
    let mut values = values.iter();
    let parts = text.split('?').map(|part| match values.next() {
        Some(value) => format!("{part}{value}"),
        None => part.to_owned(),
    });
    parts.collect()
}

/// Limit of cached parsed SELECTs: three of four come again.
const MAX_CACHED: usize = 2_000;

static PARSE_CACHE: LazyLock<Mutex<HashMap<String, Arc<Query>>>> = LazyLock::new(Mutex::default);

/// Parses a SELECT, or returns it from the cache of all worlds.
pub(crate) fn parse(text: &str) -> SqlResult<Arc<Query>> {
    let read = || PARSE_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(query) = read().get(text) {
        return Ok(Arc::clone(query));
    }
    let query = Arc::new(parse_anew(text)?);
    let mut read = read();
    if read.len() >= MAX_CACHED {
        read.clear();
    }
    read.insert(text.to_owned(), Arc::clone(&query));
    Ok(query)
}

fn parse_anew(text: &str) -> SqlResult<Query> {
    let parsed = Parser::parse_sql(&MySqlDialect {}, text);
    let mut statements = parsed.map_err(|error| UnsupportedSql(format!("{error}: {text}")))?;
    match (statements.pop(), statements.len()) {
        (Some(Statement::Query(query)), 0) => Ok(*query),
        _ => unknown(text),
    }
}

/// A row of a SELECT's source, and that of the outer SELECT.
pub(crate) struct RowScope<'a> {
    source: &'a SelectSource,
    row: &'a [CellValue],
    outer: Option<&'a RowScope<'a>>,
}

struct NamedTable {
    name: String,
    relation: Arc<SelectResult>,
}

/// The source of a SELECT: a table and those joined to it.
struct SelectSource {
    /// The tables' names and numbers of columns.
    tables: Vec<(String, usize)>,
    columns: Vec<String>,
}

impl SelectSource {
    fn add(&mut self, table: &NamedTable) {
        let columns = &table.relation.columns;
        self.tables.push((table.name.clone(), columns.len()));
        self.columns.extend_from_slice(columns);
    }
}

/// The result of a query on this state.
pub(crate) fn evaluate(query: &Query, state: &ModelState) -> SqlResult<SelectResult> {
    let evaluation = SelectEvaluation {
        state,
        alike: RefCell::default(),
    };
    evaluation.query(query, None)
}

/// A table joined to another.
struct JoinedSource<'q> {
    table: NamedTable,
    on: &'q Expr,
    /// LEFT JOIN: rows without a match stay.
    is_outer: bool,
}

struct SelectEvaluation<'a> {
    state: &'a ModelState,
    /// Results of subqueries that do not depend on the outer row, by their position.
    alike: RefCell<BTreeMap<usize, Arc<SelectResult>>>,
}

impl SelectEvaluation<'_> {
    fn query(&self, query: &Query, outer: Option<&RowScope<'_>>) -> SqlResult<SelectResult> {
        let (limit, offset) = match &query.limit_clause {
            None => (None, 0),
            Some(LimitClause::LimitOffset {
                limit: Some(Expr::Value(limit)),
                offset,
                ..
            }) => {
                let offset = match offset.as_ref().map(|offset| &offset.value) {
                    None => 0,
                    Some(Expr::Value(value)) => number(&value.value)?,
                    other => return unknown(other),
                };
                (Some(number(&limit.value)?), offset)
            }
            other => return unknown(other),
        };
        let order: Vec<(&Expr, bool)> = match &query.order_by {
            None => Vec::new(),
            Some(by) => match &by.kind {
                OrderByKind::Expressions(each) => each
                    .iter()
                    .map(|by| (&by.expr, by.options.sort == Some(OrderBySort::Desc)))
                    .collect(),
                other => return unknown(other),
            },
        };
        let mut relation = match &*query.body {
            SetExpr::Select(select) => self.select(select, &order, outer)?,
            other => {
                if !order.is_empty() {
                    return unknown(query);
                }
                self.body(other, outer)?
            }
        };
        if let Some(limit) = limit {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            relation.rows.drain(..offset.min(relation.rows.len()));
            relation
                .rows
                .truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        Ok(relation)
    }

    fn body(&self, body: &SetExpr, outer: Option<&RowScope<'_>>) -> SqlResult<SelectResult> {
        match body {
            SetExpr::Select(select) => self.select(select, &[], outer),
            SetExpr::Query(query) => self.query(query, outer),
            SetExpr::SetOperation { left, right, .. } => {
                let mut all = self.body(left, outer)?;
                all.rows.extend(self.body(right, outer)?.rows);
                Ok(all)
            }
            other => unknown(other),
        }
    }

    fn select(
        &self,
        select: &Select,
        order: &[(&Expr, bool)],
        outer: Option<&RowScope<'_>>,
    ) -> SqlResult<SelectResult> {
        let from = match &select.from[..] {
            [] => NamedTable {
                name: String::new(),
                relation: Arc::new(SelectResult {
                    columns: Vec::new(),
                    rows: vec![Vec::new()],
                }),
            },
            [one] => self.table(&one.relation)?,
            more => return unknown(more),
        };
        let joins = select.from.first().map_or(&[][..], |one| &one.joins);
        let mut source = SelectSource {
            tables: Vec::new(),
            columns: Vec::new(),
        };
        source.add(&from);
        let joined: SqlResult<Vec<JoinedSource>> =
            joins.iter().map(|join| self.joined(join)).collect();
        let joined = joined?;
        for join in &joined {
            source.add(&join.table);
        }
        let sieve = select
            .selection
            .as_ref()
            .map_or(RowCondition::Open, |condition| {
                RowCondition::from_expression(condition, &from.name, &from.relation.columns, outer)
            });
        let mut matching = Vec::new();
        for row in &from.relation.rows {
            if !sieve.matches(row) {
                continue;
            }
            for row in self.join_row(Cow::Borrowed(row), &source, &joined, outer)? {
                let scope = RowScope {
                    source: &source,
                    row: &row,
                    outer,
                };
                let passes = match &select.selection {
                    None => true,
                    Some(condition) => self.is_true(condition, &scope)?,
                };
                if passes {
                    matching.push(row);
                }
            }
        }
        let mut items = Vec::new();
        for item in &select.projection {
            items.push(match item {
                SelectItem::UnnamedExpr(expr) => (expr, shown(expr)),
                SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value.clone()),
                other => return unknown(other),
            });
        }
        let columns = items.iter().map(|(_, name)| name.clone()).collect();
        let grouped = match &select.group_by {
            GroupByExpr::Expressions(by, _) => by,
            other => return unknown(other),
        };
        let aggregates = items.iter().any(|(expr, _)| is_aggregate(expr));
        if aggregates {
            let relation = self.groups(&source, &matching, grouped, &items, columns, outer)?;
            return sorted_groups(relation, order);
        }
        let mut result_rows = Vec::new();
        for row in &matching {
            let scope = RowScope {
                source: &source,
                row,
                outer,
            };
            let cells: SqlResult<Vec<CellValue>> = items
                .iter()
                .map(|(expr, _)| self.value(expr, &scope))
                .collect();
            let cells = cells?;
            let keys: SqlResult<Vec<CellValue>> = order
                .iter()
                .map(|(expr, _)| {
                    let alias = items.iter().position(|(_, name)| *name == shown(expr));
                    match alias {
                        Some(index) => Ok(cells[index].clone()),
                        None => self.value(expr, &scope),
                    }
                })
                .collect();
            result_rows.push((keys?, cells));
        }
        result_rows.sort_by(|(left, _), (right, _)| {
            let each = order.iter().zip(left.iter().zip(right));
            let each = each.map(|((_, down), (left, right))| match down {
                true => right.cmp(left),
                false => left.cmp(right),
            });
            each.fold(Ordering::Equal, Ordering::then)
        });
        Ok(SelectResult {
            columns,
            rows: result_rows.into_iter().map(|(_, cells)| cells).collect(),
        })
    }

    fn groups(
        &self,
        source: &SelectSource,
        rows: &[Cow<'_, [CellValue]>],
        by: &[Expr],
        items: &[(&Expr, String)],
        columns: Vec<String>,
        outer: Option<&RowScope<'_>>,
    ) -> SqlResult<SelectResult> {
        let mut groups: Vec<(Vec<CellValue>, Vec<&[CellValue]>)> = Vec::new();
        if by.is_empty() {
            groups.push((Vec::new(), rows.iter().map(|row| &**row).collect()));
        } else {
            for row in rows {
                let scope = RowScope { source, row, outer };
                let key: SqlResult<Vec<CellValue>> =
                    by.iter().map(|expr| self.value(expr, &scope)).collect();
                let key = key?;
                match groups.iter_mut().find(|(other, _)| *other == key) {
                    Some((_, group)) => group.push(row),
                    None => groups.push((key, vec![row])),
                }
            }
        }
        let mut result_rows = Vec::new();
        for (_, group) in groups {
            let mut cells = Vec::new();
            for (expr, _) in items {
                let scopes = group.iter().map(|row| RowScope { source, row, outer });
                cells.push(match expr {
                    Expr::Function(function) => self.aggregate(function, scopes)?,
                    other => match scopes.into_iter().next() {
                        Some(scope) => self.value(other, &scope)?,
                        None => CellValue::Null,
                    },
                });
            }
            result_rows.push(cells);
        }
        Ok(SelectResult {
            columns,
            rows: result_rows,
        })
    }

    fn aggregate<'s>(
        &self,
        function: &Function,
        scopes: impl Iterator<Item = RowScope<'s>>,
    ) -> SqlResult<CellValue> {
        let argument = match &function.args {
            FunctionArguments::List(list) => match &list.args[..] {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => Some(expr),
                [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => None,
                other => return unknown(other),
            },
            other => return unknown(other),
        };
        let mut values = Vec::new();
        for scope in scopes {
            let value = match argument {
                Some(expr) => self.value(expr, &scope)?,
                None => CellValue::Number(1),
            };
            if value != CellValue::Null {
                values.push(value);
            }
        }
        let numbers = values.iter().filter_map(|value| match value {
            CellValue::Number(number) => Some(*number),
            _ => None,
        });
        match last(&function.name).to_ascii_uppercase().as_str() {
            "COUNT" => Ok(CellValue::Number(i128::try_from(values.len()).unwrap_or(0))),
            "MAX" => Ok(values.into_iter().max().unwrap_or(CellValue::Null)),
            "BIT_XOR" => Ok(CellValue::Number(numbers.fold(0, |all, one| all ^ one))),
            "GROUP_CONCAT" => {
                let each: Vec<String> = values.iter().map(CellValue::to_string).collect();
                Ok(match each.is_empty() {
                    true => CellValue::Null,
                    false => CellValue::Text(each.join(",")),
                })
            }
            _ => unknown(function),
        }
    }

    /// This row with the matching rows of the joined tables.
    fn join_row<'r>(
        &self,
        row: Cow<'r, [CellValue]>,
        source: &SelectSource,
        joined: &[JoinedSource<'_>],
        outer: Option<&RowScope<'_>>,
    ) -> SqlResult<Vec<Cow<'r, [CellValue]>>> {
        let mut rows = vec![row];
        for join in joined {
            let mut more = Vec::new();
            for row in rows {
                let before = more.len();
                for other in &join.table.relation.rows {
                    let both = [&row[..], other].concat();
                    let scope = RowScope {
                        source,
                        row: &both,
                        outer,
                    };
                    if self.is_true(join.on, &scope)? {
                        more.push(Cow::Owned(both));
                    }
                }
                if join.is_outer && more.len() == before {
                    let nulls = vec![CellValue::Null; join.table.relation.columns.len()];
                    more.push(Cow::Owned([&row[..], &nulls].concat()));
                }
            }
            rows = more;
        }
        Ok(rows)
    }

    fn joined<'q>(&self, join: &'q Join) -> SqlResult<JoinedSource<'q>> {
        let (on, is_outer) = match &join.join_operator {
            JoinOperator::Join(JoinConstraint::On(on))
            | JoinOperator::Inner(JoinConstraint::On(on)) => (on, false),
            JoinOperator::Left(JoinConstraint::On(on))
            | JoinOperator::LeftOuter(JoinConstraint::On(on)) => (on, true),
            other => return unknown(other),
        };
        Ok(JoinedSource {
            table: self.table(&join.relation)?,
            on,
            is_outer,
        })
    }

    fn table(&self, factor: &TableFactor) -> SqlResult<NamedTable> {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let table = last(name);
                let relation = self
                    .state
                    .relation(&table)
                    .ok_or(UnsupportedSql(table.clone()))?;
                Ok(NamedTable {
                    name: alias.as_ref().map_or(table, |it| it.name.value.clone()),
                    relation,
                })
            }
            TableFactor::Derived {
                subquery, alias, ..
            } => Ok(NamedTable {
                name: alias
                    .as_ref()
                    .map_or(String::new(), |it| it.name.value.clone()),
                relation: Arc::new(self.query(subquery, None)?),
            }),
            other => unknown(other),
        }
    }

    /// The result of a subquery: computed once, if it does not refer to the outer row.
    fn nested(&self, query: &Query, scope: &RowScope<'_>) -> SqlResult<Arc<SelectResult>> {
        let index = std::ptr::from_ref(query).addr();
        if let Some(known) = self.alike.borrow().get(&index) {
            return Ok(Arc::clone(known));
        }
        match self.query(query, None) {
            Ok(relation) => {
                let relation = Arc::new(relation);
                self.alike.borrow_mut().insert(index, Arc::clone(&relation));
                Ok(relation)
            }
            Err(_) => self.query(query, Some(scope)).map(Arc::new),
        }
    }

    fn is_true(&self, condition: &Expr, scope: &RowScope<'_>) -> SqlResult<bool> {
        Ok(matches!(self.value(condition, scope)?, CellValue::Number(n) if n != 0))
    }

    fn value(&self, expr: &Expr, scope: &RowScope<'_>) -> SqlResult<CellValue> {
        let truth = |is: bool| CellValue::Number(i128::from(is));
        Ok(match expr {
            Expr::Value(value) => match &value.value {
                Literal::Null => CellValue::Null,
                Literal::SingleQuotedString(text) => CellValue::Text(text.clone()),
                other => CellValue::Number(number(other)?),
            },
            Expr::Nested(inner) => self.value(inner, scope)?,
            Expr::Identifier(name) => scope.find(None, &name.value)?,
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [.., table, name] => scope.find(Some(&table.value), &name.value)?,
                other => return unknown(other),
            },
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match self.value(expr, scope)? {
                CellValue::Number(number) => CellValue::Number(-number),
                other => return unknown(other),
            },
            Expr::IsNotNull(inner) => truth(self.value(inner, scope)? != CellValue::Null),
            Expr::IsNull(inner) => truth(self.value(inner, scope)? == CellValue::Null),
            Expr::InList {
                expr,
                list,
                negated,
            } => {
                let value = self.value(expr, scope)?;
                let mut is = false;
                for one in list {
                    is |= value != CellValue::Null && self.value(one, scope)? == value;
                }
                truth(is != *negated)
            }
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let value = self.value(expr, scope)?;
                let among = self.nested(subquery, scope)?;
                let is = among.rows.iter().any(|row| row.first() == Some(&value));
                truth(is != *negated)
            }
            Expr::Between {
                expr,
                negated: false,
                low,
                high,
            } => {
                let value = self.value(expr, scope)?;
                let (low, high) = (self.value(low, scope)?, self.value(high, scope)?);
                truth(value != CellValue::Null && low <= value && value <= high)
            }
            Expr::Exists { subquery, negated } => {
                let subquery_rows = self.query(subquery, Some(scope))?;
                truth(subquery_rows.rows.is_empty() == *negated)
            }
            Expr::Subquery(query) => {
                let subquery_rows = self.query(query, Some(scope))?;
                let first = subquery_rows.rows.into_iter().next();
                first
                    .and_then(|row| row.into_iter().next())
                    .unwrap_or(CellValue::Null)
            }
            Expr::BinaryOp { left, op, right } => {
                let (left, right) = (self.value(left, scope)?, self.value(right, scope)?);
                let null = left == CellValue::Null || right == CellValue::Null;
                match op {
                    BinaryOperator::And | BinaryOperator::Or => {
                        let is =
                            |value: &CellValue| matches!(value, CellValue::Number(n) if *n != 0);
                        truth(match op {
                            BinaryOperator::And => is(&left) && is(&right),
                            _ => is(&left) || is(&right),
                        })
                    }
                    _ if null => CellValue::Null,
                    BinaryOperator::Eq => truth(left == right),
                    BinaryOperator::NotEq => truth(left != right),
                    BinaryOperator::Lt => truth(left < right),
                    BinaryOperator::LtEq => truth(left <= right),
                    BinaryOperator::Gt => truth(left > right),
                    BinaryOperator::GtEq => truth(left >= right),
                    other => return unknown(other),
                }
            }
            other => return unknown(other),
        })
    }
}

/// The groups in this order of shown columns.
fn sorted_groups(mut relation: SelectResult, order: &[(&Expr, bool)]) -> SqlResult<SelectResult> {
    for (expr, down) in order.iter().rev() {
        let name = shown(expr);
        let Some(column) = relation.columns.iter().position(|it| *it == name) else {
            return unknown(expr);
        };
        relation.rows.sort_by(|left, right| match down {
            true => right[column].cmp(&left[column]),
            false => left[column].cmp(&right[column]),
        });
    }
    Ok(relation)
}

impl RowScope<'_> {
    pub(crate) fn find(&self, table: Option<&str>, column: &str) -> SqlResult<CellValue> {
        let mut before = 0;
        let index = self.source.tables.iter().find_map(|(name, count)| {
            let columns_of_table = before..before + count;
            before = columns_of_table.end;
            let columns = self.source.columns.get(columns_of_table.clone())?;
            let index = columns.iter().position(|name| name == column)?;
            let is_here = table.is_none_or(|table| table == name);
            is_here.then_some(columns_of_table.start + index)
        });
        match (index, self.outer) {
            (Some(index), _) => Ok(self.row[index].clone()),
            (None, Some(outer)) => outer.find(table, column),
            (None, None) => unknown((table, column)),
        }
    }
}

pub(crate) fn number(literal: &Literal) -> SqlResult<i128> {
    match literal {
        Literal::Number(text, _) => text.to_string().parse().or_else(|_| unknown(literal)),
        Literal::Boolean(is) => Ok(i128::from(*is)),
        other => unknown(other),
    }
}

fn last(name: &ObjectName) -> String {
    let part = name.0.last().and_then(|part| part.as_ident());
    part.map_or(String::new(), |ident| ident.value.clone())
}

fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(_))
}

/// The name of a column without an alias.
fn shown(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(parts) => {
            parts.last().map_or(String::new(), |it| it.value.clone())
        }
        other => other.to_string(),
    }
}
