//! Tails: the SELECT that joins the result table with the messages, after a call.
//!
//! A tail is recognised from its syntax tree, strictly: the tree is rendered again from the few parts
//! that may vary, and must come out as it was parsed. Whatever else a statement has (a hint, a
//! condition, a lock, another table) makes the two differ, and the statement is no tail.

use sqlparser::ast::{
    Expr, Ident, JoinOperator, LimitClause, SelectItem, SetExpr, Statement, TableFactor,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use super::lexer::{Kind, Lexer};
use crate::timeline::Definition;

/// Expressions nest no deeper than this in a tail; a deeper text is none.
const DEPTH: usize = 16;

/// `SELECT <columns of message> FROM message [AS m] [INNER] JOIN fetch_timeline_tt [AS t] USING(id)
/// ORDER BY m.id DESC LIMIT k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Whose tables it names (its place among the definitions).
    pub definition: usize,
    /// Rows it asks for at most.
    pub limit: u64,
    /// The select list, as written.
    columns: String,
    /// The message table and its alias, as written.
    table: String,
    /// The message id, qualified, as in its ORDER BY.
    id: String,
}

/// How the ids are put into a tail, so that its reply has the column definitions of the real join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailForm {
    /// `WHERE message.id IN (...)` in place of the join: read by key, in order, no temporary table.
    List,
    /// The same through a temporary table, where the real join sorts through one: there the server
    /// reports columns without their key flags.
    BufferedList,
}

impl Tail {
    /// Reads a tail; `None` is any other text.
    #[must_use]
    pub fn parse(text: &[u8], definitions: &[Definition]) -> Option<Tail> {
        let plain = Lexer::new(text).all(|token| match token.kind {
            Kind::Word | Kind::Number | Kind::Quoted => token.text.is_ascii(),
            Kind::Punct(byte) => b",.();".contains(&byte),
            Kind::Text | Kind::Opaque => false,
        });
        if !plain {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let statements = Parser::new(&MySqlDialect {})
            .with_recursion_limit(DEPTH)
            .try_with_sql(text)
            .ok()?
            .parse_statements()
            .ok()?;
        let [statement] = statements.as_slice() else {
            return None;
        };
        (0..definitions.len())
            .find_map(|number| read(statement, number, definitions.get(number)?))
    }

    /// The statement that returns these ids' messages as the tail would.
    #[must_use]
    pub fn rewrite(&self, form: TailForm, ids: &[u64]) -> String {
        let Tail { columns, table, id, limit, .. } = self;
        let buffered = match form {
            TailForm::List => "",
            TailForm::BufferedList => "SQL_BUFFER_RESULT ",
        };
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        format!(
            "SELECT {buffered}{columns} FROM {table} WHERE {id} IN ({}) ORDER BY {id} DESC LIMIT {limit}",
            ids.join(",")
        )
    }
}

fn read(statement: &Statement, number: usize, definition: &Definition) -> Option<Tail> {
    let Statement::Query(query) = statement else {
        return None;
    };
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let [from] = select.from.as_slice() else {
        return None;
    };
    let [join] = from.joins.as_slice() else {
        return None;
    };
    let word = match &join.join_operator {
        JoinOperator::Join(_) => "JOIN",
        JoinOperator::Inner(_) => "INNER JOIN",
        _ => return None,
    };
    let (table, qualifier) = table(&from.relation, &definition.message.table)?;
    let (result, _) = self::table(&join.relation, &definition.result.table)?;
    let columns = select
        .projection
        .iter()
        .map(|item| column(item, &qualifier, definition))
        .collect::<Option<Vec<String>>>()?
        .join(", ");
    let limit = limit(query.limit_clause.as_ref()?)?;
    let id = order(query.order_by.as_ref()?.to_string(), &qualifier, &definition.message.id)?;
    let using = using(&join.join_operator, &definition.result.id)?;
    if !definition.message.id.eq_ignore_ascii_case(&definition.result.id) {
        return None;
    }
    let rendered = format!(
        "SELECT {columns} FROM {table} {word} {result} USING({using}) ORDER BY {id} DESC LIMIT {limit}"
    );
    (rendered == statement.to_string()).then_some(Tail { definition: number, limit, columns, table, id })
}

/// A plain table of this name: as written, and what qualifies its columns.
fn table(factor: &TableFactor, wanted: &str) -> Option<(String, Ident)> {
    let TableFactor::Table { name, alias, .. } = factor else {
        return None;
    };
    let [part] = name.0.as_slice() else {
        return None;
    };
    let name = part.as_ident().filter(|ident| is_name(ident) && ident.value == wanted)?;
    let Some(alias) = alias else {
        return Some((name.to_string(), name.clone()));
    };
    let qualifier = Some(&alias.name).filter(|ident| is_name(ident))?;
    let word = if alias.explicit { "AS " } else { "" };
    Some((format!("{name} {word}{qualifier}"), qualifier.clone()))
}

/// A column of the message table and of no other. A bare `id` may be the result table's.
fn column(item: &SelectItem, qualifier: &Ident, definition: &Definition) -> Option<String> {
    let (expression, alias) = match item {
        SelectItem::UnnamedExpr(expression) => (expression, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
        _ => return None,
    };
    let name = match expression {
        Expr::Identifier(name)
            if is_name(name) && !name.value.eq_ignore_ascii_case(&definition.result.id) =>
        {
            name.to_string()
        }
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, name] if table.value == qualifier.value && is_name(table) && is_name(name) => {
                format!("{table}.{name}")
            }
            _ => return None,
        },
        _ => return None,
    };
    match alias {
        None => Some(name),
        Some(alias) if is_name(alias) => Some(format!("{name} AS {alias}")),
        Some(_) => None,
    }
}

/// The qualified id of `ORDER BY message.id DESC`, as written.
fn order(rendered: String, qualifier: &Ident, id: &str) -> Option<String> {
    let by = rendered.strip_prefix("ORDER BY ")?.strip_suffix(" DESC")?;
    let (table, column) = by.split_once('.')?;
    let is = |written: &str, name: &str| written == name || written == format!("`{name}`");
    let is_id = is(&column.to_ascii_lowercase(), &id.to_ascii_lowercase());
    (is(table, &qualifier.value) && is_id).then(|| by.to_owned())
}

fn using(operator: &JoinOperator, id: &str) -> Option<String> {
    use sqlparser::ast::JoinConstraint::Using;
    let (JoinOperator::Join(Using(names)) | JoinOperator::Inner(Using(names))) = operator else {
        return None;
    };
    let [name] = names.as_slice() else {
        return None;
    };
    let [part] = name.0.as_slice() else {
        return None;
    };
    let name = part.as_ident().filter(|name| is_name(name))?;
    name.value.eq_ignore_ascii_case(id).then(|| name.to_string())
}

fn limit(clause: &LimitClause) -> Option<u64> {
    let LimitClause::LimitOffset { limit: Some(limit), offset: None, .. } = clause else {
        return None;
    };
    let digits = limit.to_string();
    let limit: u64 = digits.parse().ok()?;
    // `LIMIT 0` has its own plan.
    (limit > 0 && digits == limit.to_string()).then_some(limit)
}

/// A name, bare or in back quotes; not a string.
fn is_name(ident: &Ident) -> bool {
    matches!(ident.quote_style, None | Some('`')) && !ident.value.contains('`')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tail(text: &str) -> Option<Tail> {
        Tail::parse(text.as_bytes(), &[Definition::classic()])
    }

    #[test]
    fn the_classic_tail_keeps_its_columns_as_written() {
        let text = "SELECT message.id,user_id,body FROM message\n  INNER JOIN fetch_timeline_tt USING(id)\n  ORDER BY message.id DESC LIMIT 20;";
        assert_eq!(
            tail(text).unwrap().rewrite(TailForm::List, &[9, 7]),
            "SELECT message.id, user_id, body FROM message WHERE message.id IN (9,7) ORDER BY message.id DESC LIMIT 20"
        );
    }

    #[test]
    fn aliases_case_comments_and_back_quotes_are_kept() {
        let text = "/* app */ select m.`ID` as x, m.body b from `message` as m join fetch_timeline_tt t using (`id`) order by m.id desc limit 5";
        assert_eq!(
            tail(text).unwrap().rewrite(TailForm::BufferedList, &[3]),
            "SELECT SQL_BUFFER_RESULT m.`ID` AS x, m.body AS b FROM `message` AS m WHERE m.id IN (3) ORDER BY m.id DESC LIMIT 5"
        );
    }

    #[test]
    fn anything_more_or_else_is_no_tail() {
        let classic = "SELECT message.id,user_id,body FROM message INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";
        assert!(tail(classic).is_some());
        for (from, to) in [
            ("message.id,", "id,"),
            ("message.id,", "*,"),
            ("message.id,", "message.*,"),
            ("message.id,", "fetch_timeline_tt.id,"),
            ("message.id,", "count(*),"),
            ("message.id,", "'x',"),
            ("message.id,", "1,"),
            ("message.id,", "@a,"),
            ("SELECT ", "SELECT DISTINCT "),
            ("SELECT ", "SELECT SQL_NO_CACHE "),
            ("SELECT ", "SELECT SQL_CALC_FOUND_ROWS "),
            ("SELECT ", "SELECT STRAIGHT_JOIN "),
            ("SELECT ", "SELECT /*+ NO_ICP(message) */ "),
            ("SELECT ", "SELECT /*!50000 SQL_NO_CACHE */ "),
            ("SELECT ", "EXPLAIN SELECT "),
            ("SELECT ", "WITH x AS (SELECT 1) SELECT "),
            ("FROM message", "FROM other.message"),
            ("FROM message", "FROM message PARTITION (p0)"),
            ("FROM message", "FROM message FORCE INDEX (PRIMARY)"),
            ("FROM message", "FROM MESSAGE"),
            ("INNER JOIN", "LEFT JOIN"),
            ("INNER JOIN", "NATURAL JOIN"),
            ("INNER JOIN", "STRAIGHT_JOIN"),
            ("INNER JOIN", "JOIN user USING(id) JOIN"),
            ("USING(id)", "ON 1"),
            ("USING(id)", "USING(id, body)"),
            ("USING(id)", "USING(id) WHERE body > 1"),
            ("USING(id)", "USING(id) GROUP BY body"),
            ("DESC", ""),
            ("DESC", "ASC"),
            ("DESC", "DESC, body"),
            ("ORDER BY message.id", "ORDER BY id"),
            ("ORDER BY message.id", "ORDER BY body"),
            ("ORDER BY message.id", "ORDER BY message.body"),
            ("LIMIT 20", ""),
            ("LIMIT 20", "LIMIT 0"),
            ("LIMIT 20", "LIMIT 5, 20"),
            ("LIMIT 20", "LIMIT 20 OFFSET 5"),
            ("LIMIT 20", "LIMIT 20 FOR UPDATE"),
            ("LIMIT 20", "LIMIT 20 LOCK IN SHARE MODE"),
            ("LIMIT 20", "LIMIT 20 INTO @a, @b, @c"),
            ("LIMIT 20", "LIMIT 20 UNION SELECT 1,2,3"),
            ("LIMIT 20", "LIMIT 20; SELECT 1"),
            ("LIMIT 20", "LIMIT ?"),
        ] {
            let text = classic.replacen(from, to, 1);
            assert_ne!(text, classic, "{from} is not in the text");
            assert_eq!(tail(&text), None, "{text}");
        }
    }
}
