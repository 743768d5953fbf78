//! Where the columns stand, and whether rows change by themselves.

use crate::account::Conn;
use crate::binlog::Binlog;
use crate::binlog::cascades;
use crate::binlog::error::BinlogError;
use crate::binlog::place::Place;
use crate::binlog::rows::texts;
use crate::log::following::Generation;

/// Learns where the columns stand. The stream listens to the tables already: a change of them begins everything anew.
/// False if the tables are not there.
pub(super) async fn learn(
    binlog: &Binlog,
    generation: Generation,
    place: &Place,
    conn: &mut Conn,
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
    let keys = cascades::of(&place.tables, conn).await.map_err(&failed)?;
    if let Some(obstacle) = keys.into_iter().next() {
        return Err(obstacle.into());
    }
    let Some(own) = place.tables.routes(&columns) else {
        // The tables are gone, or cannot be seen: nothing of them is to be kept.
        return Ok(false);
    };
    let mut state = binlog.state();
    let number = place.number();
    let learned = state.following.learn_columns(generation, number, own);
    drop(state);
    if learned {
        binlog.routes_changed();
    }
    Ok(learned)
}
