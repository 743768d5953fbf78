//! The tail: the client's SELECT that joins the result table with the messages, and the ways to ask it with ids in the table's place.
//!
//! It is recognised from its syntax tree. Then what was recognised is written out again and has to be the client's text,
//! token by token: so nothing is in the text that was not looked at, whatever a parser lets pass.

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, LimitClause, ObjectName,
    OrderByKind, OrderBySort, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
    Value,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use headwater_sql::NameCase;
use headwater_sql::keyword::{is_keyword, is_reserved};
use headwater_sql::lexer::{Lexer, SqlToken, TokenKind};
use headwater_timeline::TimelineDefinition;

/// A tail: `SELECT columns of message FROM message JOIN result table ON the ids ORDER BY message.id DESC LIMIT k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUpSelect {
    /// Its LIMIT, at least 1.
    pub limit: u64,
    /// The client's text.
    pub(super) text: String,
    /// Where the text behind `SELECT` starts, `FROM` starts and `ORDER` starts, in bytes.
    pub(super) select_end: usize,
    pub(super) from_at: usize,
    pub(super) order_at: usize,
    template: String,
    /// The message table as it stands in FROM, its alias included.
    pub(super) message: String,
    /// The name by which the text calls the message table.
    pub(super) qualifier: String,
    /// The names that it was recognised by.
    pub(super) names: FollowUpNames,
}

/// What a definition has to have for a tail to be its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FollowUpNames {
    pub(super) message: String,
    pub(super) id: String,
    pub(super) result: String,
    pub(super) result_id: String,
    pub(super) case: NameCase,
}

/// Longer texts are not looked at.
pub(super) const MAX_TEXT_BYTES: usize = 8 * 1024;
const MAX_TOKENS: usize = 400;
const MAX_DEPTH: usize = 16;

impl FollowUpSelect {
    /// Reads a tail; `None` is any other text.
    pub fn parse(text: &[u8], definitions: &[TimelineDefinition]) -> Option<Self> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let text = std::str::from_utf8(text)
            .ok()
            .filter(|text| text.is_ascii())?;
        let tokens = select_tokens(text)?;
        let query = syntax_tree(&tokens)?;
        let shape = definitions
            .iter()
            .find_map(|definition| FollowUpParts::of(&query, definition))?;
        if !are_same_tokens(&tokens, &shape.canonical_sql()) {
            return None;
        }
        let place = |word: &str| tokens.iter().find(|token| token.is_word(word));
        let select = tokens.first()?;
        Some(Self {
            limit: shape.limit,
            text: text.into(),
            select_end: select.at + select.text.len(),
            from_at: place("FROM")?.at,
            order_at: place("ORDER")?.at,
            template: template(&tokens)?,
            message: shape.message.sql(),
            qualifier: shape.message.qualifier().to_string(),
            names: shape.names,
        })
    }

    /// Its words up to the number behind LIMIT: tails that differ in that, in comments or in which white space stands between words show each
    /// message alike. All columns have names of their own, so no part of the text is told.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// The name by which it calls the message table, as it stands there.
    pub fn qualifier(&self) -> &[u8] {
        self.qualifier.as_bytes()
    }

    /// Whether it is the tail of this definition's calls.
    pub fn belongs_to(&self, definition: &TimelineDefinition) -> bool {
        self.names == FollowUpNames::of(definition)
    }
}

impl FollowUpNames {
    fn of(definition: &TimelineDefinition) -> Self {
        Self {
            message: definition.message.table.clone(),
            id: definition.message.id.clone(),
            result: definition.result.table.clone(),
            result_id: definition.result.id.clone(),
            case: definition.name_case,
        }
    }
}

/// The tokens before the semicolon. `None`: not a SELECT, or with something in it that no tail has.
fn select_tokens(text: &str) -> Option<Vec<SqlToken<'_>>> {
    let mut lexer = Lexer::new(text.as_bytes());
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next() {
        if token.is_punct(b';') {
            lexer.is_at_end().then_some(())?;
            break;
        }
        match token.kind {
            TokenKind::Word | TokenKind::QuotedName | TokenKind::Number => {}
            TokenKind::Punct(byte) if b",.()=".contains(&byte) => {}
            TokenKind::Punct(_) | TokenKind::QuotedText | TokenKind::Opaque => return None,
        }
        if tokens.len() == MAX_TOKENS {
            return None;
        }
        tokens.push(token);
    }
    tokens.first().filter(|token| token.is_word("SELECT"))?;
    Some(tokens)
}

/// What stands in front of the number behind LIMIT.
fn template(tokens: &[SqlToken<'_>]) -> Option<String> {
    let (last, front) = tokens.split_last()?;
    let mut words = String::new();
    let mut end = 0;
    for token in front {
        // Behind `m. ` a reserved word is none of its columns.
        if token.at > end && !words.is_empty() {
            words.push(' ');
        }
        words.push_str(std::str::from_utf8(token.text).ok()?);
        end = token.at + token.text.len();
    }
    (last.kind == TokenKind::Number).then_some(words)
}

/// The parser sees the tokens alone, so it cannot read comments or white space in another way.
fn syntax_tree(tokens: &[SqlToken<'_>]) -> Option<Query> {
    let words: Vec<_> = tokens
        .iter()
        .map(|token| String::from_utf8_lossy(token.text))
        .collect();
    let text = words.join(" ").replace(" . ", ".");
    let mut parser = Parser::new(&MySqlDialect {})
        .with_recursion_limit(MAX_DEPTH)
        .try_with_sql(&text)
        .ok()?;
    Some(*parser.parse_query().ok()?)
}

/// The parts of a tail.
struct FollowUpParts {
    select_items: Vec<String>,
    first: FollowUpTable,
    second: FollowUpTable,
    message: FollowUpTable,
    condition: String,
    order: String,
    limit: u64,
    names: FollowUpNames,
}

#[derive(Clone)]
struct FollowUpTable {
    name: Ident,
    alias: Option<Ident>,
}

impl FollowUpParts {
    fn of(query: &Query, definition: &TimelineDefinition) -> Option<Self> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let (first, second, condition) = parse_join(select)?;
        let names = FollowUpNames::of(definition);
        let are = |message: &FollowUpTable, result: &FollowUpTable| {
            let same = |table: &FollowUpTable, name: &str| {
                names.case.is_same_name(&table.name.value, name)
            };
            same(message, &names.message) && same(result, &names.result)
        };
        let (message, result) = match (are(&first, &second), are(&second, &first)) {
            (true, _) => (&first, &second),
            (_, true) => (&second, &first),
            _ => return None,
        };
        check_distinct_names(message, result, &names)?;
        let shape = Self {
            select_items: select
                .projection
                .iter()
                .map(|item| column_sql(item, message, &names))
                .collect::<Option<_>>()?,
            message: message.clone(),
            condition: condition.checked_sql(message, result, &names)?,
            order: order_sql(query, message, &names)?,
            limit: parse_limit(query)?,
            names,
            first,
            second,
        };
        Some(shape)
    }

    /// The whole text, less the words that make no difference.
    fn canonical_sql(&self) -> String {
        let Self {
            select_items: items,
            first,
            second,
            condition,
            order,
            limit,
            ..
        } = self;
        let (first, second) = (first.sql(), second.sql());
        let from = match condition.strip_prefix("WHERE") {
            Some(_) => format!("{first} , {second} {condition}"),
            None => format!("{first} JOIN {second} {condition}"),
        };
        format!(
            "SELECT {} FROM {from} ORDER BY {order} DESC LIMIT {limit}",
            items.join(" , ")
        )
    }
}

impl FollowUpTable {
    /// The name by which columns are called.
    fn qualifier(&self) -> &Ident {
        self.alias.as_ref().unwrap_or(&self.name)
    }

    fn sql(&self) -> String {
        match &self.alias {
            Some(alias) => format!("{} AS {alias}", self.name),
            None => self.name.to_string(),
        }
    }
}

/// What says that the ids are equal.
enum FollowUpCondition<'q> {
    Using(&'q ObjectName),
    On(&'q Expr),
    Where(&'q Expr),
}

impl FollowUpCondition<'_> {
    fn checked_sql(
        &self,
        message: &FollowUpTable,
        result: &FollowUpTable,
        names: &FollowUpNames,
    ) -> Option<String> {
        let (word, expr) = match self {
            Self::Using(column) => {
                let column = unqualified_name(column)?;
                let common = column.value.eq_ignore_ascii_case(&names.id)
                    && names.id.eq_ignore_ascii_case(&names.result_id);
                return common.then(|| format!("USING {column}"));
            }
            Self::On(expr) => ("ON", expr),
            Self::Where(expr) => ("WHERE", expr),
        };
        let Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } = within_parentheses(expr)
        else {
            return None;
        };
        let ids = |left, right| {
            is_column(left, message, &names.id) && is_column(right, result, &names.result_id)
        };
        (ids(left, right) || ids(right, left)).then(|| format!("{word} {left} = {right}"))
    }
}

/// The two tables and how they are joined.
fn parse_join(select: &Select) -> Option<(FollowUpTable, FollowUpTable, FollowUpCondition<'_>)> {
    match select.from.as_slice() {
        [TableWithJoins { relation, joins }] => {
            let [join] = joins.as_slice() else {
                return None;
            };
            let (JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint)) = &join.join_operator
            else {
                return None;
            };
            let condition = match (constraint, &select.selection) {
                (JoinConstraint::Using(columns), None) => match columns.as_slice() {
                    [column] => FollowUpCondition::Using(column),
                    _ => return None,
                },
                (JoinConstraint::On(expr), None) => FollowUpCondition::On(expr),
                _ => return None,
            };
            Some((
                parse_table(relation)?,
                parse_table(&join.relation)?,
                condition,
            ))
        }
        [first, second] if first.joins.is_empty() && second.joins.is_empty() => {
            let condition = FollowUpCondition::Where(select.selection.as_ref()?);
            Some((
                parse_table(&first.relation)?,
                parse_table(&second.relation)?,
                condition,
            ))
        }
        _ => None,
    }
}

fn parse_table(factor: &TableFactor) -> Option<FollowUpTable> {
    let TableFactor::Table { name, alias, .. } = factor else {
        return None;
    };
    let name = unqualified_name(name)?.clone();
    let alias = alias.as_ref().map(|alias| alias.name.clone());
    // A parser may take for an alias what the servers take for the next clause.
    let doubtful = alias
        .as_ref()
        .is_some_and(|alias| alias.quote_style.is_none() && is_keyword(&alias.value));
    (!doubtful && is_plain(&name)).then_some(FollowUpTable { name, alias })
}

/// Whether both servers take it for a name as it stands.
fn is_plain(name: &Ident) -> bool {
    name.quote_style.is_some() || !is_reserved(&name.value)
}

/// Neither table may be called by a name that could mean the other.
fn check_distinct_names(
    message: &FollowUpTable,
    result: &FollowUpTable,
    names: &FollowUpNames,
) -> Option<()> {
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let message = &message.qualifier().value;
    let result = &result.qualifier().value;
    (!same(message, result) && !same(message, &names.result) && !same(result, &names.message))
        .then_some(())
}

/// A column of the message table. Unqualified, the id could be the result table's; every other name means what it meant in
/// the join, as the result table has one column only. (`*` would hold the id as well.)
fn column_sql(item: &SelectItem, message: &FollowUpTable, names: &FollowUpNames) -> Option<String> {
    let is_id = |name: &Ident| {
        [&names.id, &names.result_id]
            .iter()
            .any(|id| name.value.eq_ignore_ascii_case(id))
    };
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
        _ => return None,
    };
    let own = match expr {
        Expr::Identifier(name) => is_plain(name) && !is_id(name),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, _] => table.value == message.qualifier().value,
            _ => false,
        },
        _ => false,
    };
    if !own || alias.is_some_and(|alias| is_id(alias) || !is_plain(alias)) {
        return None;
    }
    Some(alias.map_or_else(|| expr.to_string(), |alias| format!("{expr} {alias}")))
}

fn order_sql(query: &Query, message: &FollowUpTable, names: &FollowUpNames) -> Option<String> {
    let OrderByKind::Expressions(keys) = &query.order_by.as_ref()?.kind else {
        return None;
    };
    let [key] = keys.as_slice() else {
        return None;
    };
    let descending = key.options.sort == Some(OrderBySort::Desc);
    (descending && is_column(&key.expr, message, &names.id)).then(|| key.expr.to_string())
}

fn parse_limit(query: &Query) -> Option<u64> {
    let LimitClause::LimitOffset {
        limit: Some(Expr::Value(value)),
        ..
    } = query.limit_clause.as_ref()?
    else {
        return None;
    };
    let Value::Number(digits, _) = &value.value else {
        return None;
    };
    digits.parse().ok().filter(|&limit| limit > 0)
}

fn is_column(expr: &Expr, table: &FollowUpTable, name: &str) -> bool {
    let Expr::CompoundIdentifier(parts) = expr else {
        return false;
    };
    match parts.as_slice() {
        // Aliases of tables are told apart by case, names of columns are not.
        [qualifier, column] => {
            qualifier.value == table.qualifier().value && column.value.eq_ignore_ascii_case(name)
        }
        _ => false,
    }
}

fn within_parentheses(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => inner,
        other => other,
    }
}

/// A name without a database in front.
fn unqualified_name(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

/// Whether both are the same tokens, whatever the case of words; `AS`, `INNER`, `CROSS` and parentheses make no difference.
fn are_same_tokens(tokens: &[SqlToken<'_>], written_out: &str) -> bool {
    let counts = |token: &&SqlToken<'_>| {
        let idle = ["AS", "INNER", "CROSS"]
            .iter()
            .any(|word| token.is_word(word));
        !(idle || token.is_punct(b'(') || token.is_punct(b')'))
    };
    let other: Vec<_> = Lexer::new(written_out.as_bytes()).collect();
    let equal = |(a, b): (&SqlToken<'_>, &SqlToken<'_>)| {
        a.kind == b.kind && a.text.eq_ignore_ascii_case(b.text)
    };
    let (ours, theirs) = (tokens.iter().filter(counts), other.iter().filter(counts));
    ours.clone().count() == theirs.clone().count() && ours.zip(theirs).all(equal)
}
