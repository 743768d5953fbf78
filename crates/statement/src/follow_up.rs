//! The follow-up SELECT: the client's join of the result table with the messages. Headwater may send it with ids in the table's place.
//!
//! It is recognised by its syntax tree. Then the recognised parts are written out again, and must equal the client's text token by
//! token: so no part of the text goes unchecked, whatever the parser accepts.

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

/// A follow-up: `SELECT columns of message FROM message JOIN result table ON the ids ORDER BY message.id DESC LIMIT k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUpSelect {
    /// Its LIMIT, at least 1.
    pub limit: u64,
    pub(super) text: String,
    /// Byte offsets of the end of `SELECT`, of `FROM` and of `ORDER`.
    pub(super) select_end: usize,
    pub(super) from_at: usize,
    pub(super) order_at: usize,
    template: String,
    /// The message table as in FROM, with its alias.
    pub(super) message: String,
    /// The name that qualifies the message table's columns.
    pub(super) qualifier: String,
    pub(super) names: FollowUpNames,
}

/// The definition's names that its follow-up SELECTs use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FollowUpNames {
    pub(super) message: String,
    pub(super) id: String,
    pub(super) result: String,
    pub(super) result_id: String,
    pub(super) case: NameCase,
}

/// Longer texts are not parsed.
pub(super) const MAX_TEXT_BYTES: usize = 8 * 1024;
const MAX_TOKENS: usize = 400;
const MAX_DEPTH: usize = 16;

impl FollowUpSelect {
    /// Parses a follow-up SELECT. `None`: any other text.
    pub fn parse(text: &[u8], definitions: &[TimelineDefinition]) -> Option<Self> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let text = std::str::from_utf8(text)
            .ok()
            .filter(|text| text.is_ascii())?;
        let tokens = select_tokens(text)?;
        let query = syntax_tree(&tokens)?;
        let parts = definitions
            .iter()
            .find_map(|definition| FollowUpParts::of(&query, definition))?;
        if !are_same_tokens(&tokens, &parts.canonical_sql()) {
            return None;
        }
        let find_word = |word: &str| tokens.iter().find(|token| token.is_word(word));
        let select = tokens.first()?;
        Some(Self {
            limit: parts.limit,
            text: text.into(),
            select_end: select.at + select.text.len(),
            from_at: find_word("FROM")?.at,
            order_at: find_word("ORDER")?.at,
            template: template(&tokens)?,
            message: parts.message.sql(),
            qualifier: parts.message.qualifier().to_string(),
            names: parts.names,
        })
    }

    /// Its text up to the number after LIMIT. Texts that differ only in that, in comments or in the kind of white space show each message
    /// alike. All columns have names of their own, so a reply contains no part of the text.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// The name that qualifies the message table's columns, as written.
    pub fn qualifier(&self) -> &[u8] {
        self.qualifier.as_bytes()
    }

    /// Whether it follows calls of this definition.
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

/// The tokens before the semicolon. `None`: not a SELECT, or with a token that no follow-up SELECT has.
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

/// The text before the number after LIMIT.
fn template(tokens: &[SqlToken<'_>]) -> Option<String> {
    let (last, front) = tokens.split_last()?;
    let mut words = String::new();
    let mut end = 0;
    for token in front {
        // After `m. ` a reserved word is none of its columns.
        if token.at > end && !words.is_empty() {
            words.push(' ');
        }
        words.push_str(std::str::from_utf8(token.text).ok()?);
        end = token.at + token.text.len();
    }
    (last.kind == TokenKind::Number).then_some(words)
}

/// The parser reads the tokens alone, so it cannot read comments or white space differently.
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
        let are_tables = |message: &FollowUpTable, result: &FollowUpTable| {
            let has_name = |table: &FollowUpTable, name: &str| {
                names.case.is_same_name(&table.name.value, name)
            };
            has_name(message, &names.message) && has_name(result, &names.result)
        };
        let (message, result) = match (are_tables(&first, &second), are_tables(&second, &first)) {
            (true, _) => (&first, &second),
            (_, true) => (&second, &first),
            _ => return None,
        };
        check_distinct_names(message, result, &names)?;
        let parts = Self {
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
        Some(parts)
    }

    /// The whole text, without words that make no difference.
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
    /// The name that qualifies its columns.
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
                let is_common = column.value.eq_ignore_ascii_case(&names.id)
                    && names.id.eq_ignore_ascii_case(&names.result_id);
                return is_common.then(|| format!("USING {column}"));
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
        let are_ids = |left, right| {
            is_column(left, message, &names.id) && is_column(right, result, &names.result_id)
        };
        (are_ids(left, right) || are_ids(right, left)).then(|| format!("{word} {left} = {right}"))
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
    // A parser may read as an alias what servers read as the next clause.
    let is_ambiguous = alias
        .as_ref()
        .is_some_and(|alias| alias.quote_style.is_none() && is_keyword(&alias.value));
    (!is_ambiguous && is_plain(&name)).then_some(FollowUpTable { name, alias })
}

/// Whether both servers read it as a name, as written.
fn is_plain(name: &Ident) -> bool {
    name.quote_style.is_some() || !is_reserved(&name.value)
}

/// Neither table may have a name in the text that could mean the other.
fn check_distinct_names(
    message: &FollowUpTable,
    result: &FollowUpTable,
    names: &FollowUpNames,
) -> Option<()> {
    let is_same_name = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let message = &message.qualifier().value;
    let result = &result.qualifier().value;
    (!is_same_name(message, result)
        && !is_same_name(message, &names.result)
        && !is_same_name(result, &names.message))
    .then_some(())
}

/// A column of the message table. Unqualified, the id could be the result table's; every other name keeps its meaning without the join,
/// as the result table has one column only. (`*` would contain the id as well.)
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
    let is_message_column = match expr {
        Expr::Identifier(name) => is_plain(name) && !is_id(name),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, _] => table.value == message.qualifier().value,
            _ => false,
        },
        _ => false,
    };
    if !is_message_column || alias.is_some_and(|alias| is_id(alias) || !is_plain(alias)) {
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
        // Table aliases compare with case, column names without.
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

fn unqualified_name(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

/// Whether both have the same tokens, ignoring the case of words; `AS`, `INNER`, `CROSS` and parentheses make no difference.
fn are_same_tokens(tokens: &[SqlToken<'_>], canonical: &str) -> bool {
    let is_significant = |token: &&SqlToken<'_>| {
        let is_optional = ["AS", "INNER", "CROSS"]
            .iter()
            .any(|word| token.is_word(word));
        !(is_optional || token.is_punct(b'(') || token.is_punct(b')'))
    };
    let other: Vec<_> = Lexer::new(canonical.as_bytes()).collect();
    let equal = |(a, b): (&SqlToken<'_>, &SqlToken<'_>)| {
        a.kind == b.kind && a.text.eq_ignore_ascii_case(b.text)
    };
    let (ours, theirs) = (
        tokens.iter().filter(is_significant),
        other.iter().filter(is_significant),
    );
    ours.clone().count() == theirs.clone().count() && ours.zip(theirs).all(equal)
}
