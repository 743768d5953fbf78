//! The statements that write pending ids into the session's real temporary tables.

use crate::result_table::{PendingIds, TableRowCount};
use headwater_sql::quoted;
use headwater_timeline::AuthorHead;
use headwater_timeline::definition::TimelineDefinition;

/// The statements, in order, that give the server's tables the rows that the procedure would have left.
pub(crate) fn write_statements(
    definition: &TimelineDefinition,
    pending: &PendingIds,
    result: TableRowCount,
    heads: TableRowCount,
) -> Vec<String> {
    let mut statements = Vec::new();
    if let Some(ids) = &pending.ids {
        let options = &pending.options.result;
        write_result(definition, ids, result, options, &mut statements);
    }
    if let Some(rows) = &pending.heads {
        let options = &pending.options.heads;
        write_heads(definition, rows, heads, options, &mut statements);
    }
    statements
}

fn write_result(
    definition: &TimelineDefinition,
    ids: &[u64],
    result: TableRowCount,
    options: &str,
    statements: &mut Vec<String>,
) {
    let table = quoted(&definition.result.table);
    let id = quoted(&definition.result.id);
    let id_type = definition.id_type.sql();
    statements.push(format!(
        "CREATE TEMPORARY TABLE IF NOT EXISTS {table} ({id} {id_type} NOT NULL PRIMARY KEY) {options}"
    ));
    if result != TableRowCount::Absent {
        statements.push(format!("DELETE FROM {table}"));
    }
    if !ids.is_empty() {
        statements.push(format!("INSERT INTO {table} VALUES {}", values(ids)));
    }
}

fn write_heads(
    definition: &TimelineDefinition,
    rows: &[AuthorHead],
    heads: TableRowCount,
    options: &str,
    statements: &mut Vec<String>,
) {
    let table = quoted(&definition.heads.table);
    statements.push(format!(
        "CREATE TEMPORARY TABLE IF NOT EXISTS {table} ({} {} NOT NULL,{} {} NOT NULL) {options}",
        quoted(&definition.heads.author),
        definition.user_type.sql(),
        quoted(&definition.heads.head),
        definition.id_type.sql(),
    ));
    if heads != TableRowCount::Absent {
        statements.push(format!("DELETE FROM {table}"));
    }
    if !rows.is_empty() {
        let rows: Vec<String> = rows
            .iter()
            .map(|head| format!("({},{})", head.author, head.id))
            .collect();
        statements.push(format!("INSERT INTO {table} VALUES {}", rows.join(",")));
    }
}

fn values(ids: &[u64]) -> String {
    let values: Vec<String> = ids.iter().map(|id| format!("({id})")).collect();
    values.join(",")
}
