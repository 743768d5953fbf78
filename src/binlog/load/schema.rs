//! Where the columns stand, and whether rows change by themselves.

use crate::account::AccountConnection;
use crate::binlog::Binlog;
use crate::binlog::cached_timeline::CachedTimeline;
use crate::binlog::error::BinlogError;
use crate::binlog::foreign_keys;
use crate::binlog::resumption;
use crate::binlog::row_decoding::texts;
use crate::index::TimelineId;
use crate::log::joined_table::JoinedTable;
use crate::log::replication_state::StreamGeneration;
use crate::log::routes::TableRoute;

/// Learns where the columns stand. The stream listens to the tables already: a change of them begins everything anew.
/// False if the tables are not there.
pub(super) async fn load_columns(
    binlog: &Binlog,
    generation: StreamGeneration,
    place: &CachedTimeline,
    conn: &mut AccountConnection,
) -> Result<bool, BinlogError> {
    let failed = BinlogError::while_doing("the tables' columns cannot be read");
    let rows = conn
        .rows(&place.tables.columns_query())
        .await
        .map_err(&failed)?;
    let columns: Vec<(String, String)> = rows
        .iter()
        .filter_map(texts)
        .map(|[table, column]| (table, column))
        .collect();
    let printed = table_fingerprint(binlog, place.id(), conn).await?;
    let Some(own) = place.tables.routes(&columns) else {
        // The tables are gone, or cannot be seen: nothing of them is to be kept.
        return Ok(false);
    };
    Ok(adopt_columns(binlog, generation, place.id(), own, printed))
}

/// The same of a table that messages refer to.
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
    let printed = table_fingerprint(binlog, table.timeline_id, conn).await?;
    Ok(match table.route(&columns) {
        Some(own) => adopt_columns(binlog, generation, table.timeline_id, [own], printed),
        None => false,
    })
}

/// How a place's tables are defined, if none of their keys changes rows by itself.
async fn table_fingerprint(
    binlog: &Binlog,
    place: TimelineId,
    conn: &mut AccountConnection,
) -> Result<Option<String>, BinlogError> {
    let created = foreign_keys::load_table_definitions(binlog.show_create_queries(place), conn)
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
    place: TimelineId,
    own: impl IntoIterator<Item = TableRoute>,
    printed: Option<String>,
) -> bool {
    let mut state = binlog.state();
    let learned = state.following.set_columns(generation, place, own);
    if learned {
        match printed {
            Some(printed) => binlog.table_fingerprints().insert(place, printed),
            None => binlog.table_fingerprints().remove(&place),
        };
    }
    drop(state);
    if learned {
        binlog.routes_changed();
    }
    learned
}
