//! Positions of the columns, and whether rows change by themselves.

use crate::account::AccountConnection;
use crate::binlog::Binlog;
use crate::binlog::cached_timeline::CachedTimeline;
use crate::binlog::error::BinlogError;
use crate::binlog::foreign_keys;
use crate::binlog::resumption;
use crate::binlog::row_decoding::texts;
use headwater_log::joined_table::JoinedTable;
use headwater_log::replication_state::StreamGeneration;
use headwater_log::routes::TableRoute;
use headwater_timeline::index::TableId;

/// Reads the columns' positions. The stream follows the tables already: a change of them restarts everything. False if the tables do not
/// exist.
pub(super) async fn load_columns(
    binlog: &Binlog,
    generation: StreamGeneration,
    timeline: &CachedTimeline,
    conn: &mut AccountConnection,
) -> Result<bool, BinlogError> {
    let failed = BinlogError::while_doing("the tables' columns cannot be read");
    let rows = conn
        .rows(&timeline.tables.columns_query())
        .await
        .map_err(&failed)?;
    let columns: Vec<(String, String)> = rows
        .iter()
        .filter_map(texts)
        .map(|[table, column]| (table, column))
        .collect();
    let printed = table_fingerprint(binlog, timeline.id().into(), conn).await?;
    let Some(routes) = timeline.tables.routes(&columns) else {
        // The tables are gone, or not visible: nothing of them is cached.
        return Ok(false);
    };
    Ok(adopt_columns(
        binlog,
        generation,
        timeline.id().into(),
        routes,
        printed,
    ))
}

/// The same for a joined table.
pub(super) async fn load_joined_columns(
    binlog: &Binlog,
    generation: StreamGeneration,
    table: &JoinedTable,
    conn: &mut AccountConnection,
) -> Result<bool, BinlogError> {
    let failed = BinlogError::while_doing("a table's columns cannot be read");
    let rows = conn.rows(&table.columns_query()).await.map_err(&failed)?;
    let columns: Vec<String> = rows
        .iter()
        .filter_map(texts)
        .map(|[column]| column)
        .collect();
    let printed = table_fingerprint(binlog, table.table_id, conn).await?;
    Ok(match table.route(&columns) {
        Some(route) => adopt_columns(binlog, generation, table.table_id, [route], printed),
        None => false,
    })
}

/// The definitions of a timeline's tables, if no foreign key changes their rows.
async fn table_fingerprint(
    binlog: &Binlog,
    table: TableId,
    conn: &mut AccountConnection,
) -> Result<Option<String>, BinlogError> {
    let created = foreign_keys::load_table_definitions(binlog.show_create_queries(table), conn)
        .await
        .map_err(BinlogError::while_doing("the tables' keys cannot be read"))?;
    match foreign_keys::cascading_keys(&created).into_iter().next() {
        Some(obstacle) => Err(obstacle.into()),
        None => Ok(resumption::fingerprint(&created)),
    }
}

fn adopt_columns(
    binlog: &Binlog,
    generation: StreamGeneration,
    table: TableId,
    routes: impl IntoIterator<Item = TableRoute>,
    printed: Option<String>,
) -> bool {
    let mut state = binlog.state();
    let adopted = state.replication.set_columns(generation, table, routes);
    if adopted {
        match printed {
            Some(printed) => binlog.table_fingerprints().insert(table, printed),
            None => binlog.table_fingerprints().remove(&table),
        };
    }
    drop(state);
    if adopted {
        binlog.routes_changed();
    }
    adopted
}
