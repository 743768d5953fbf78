//! Where the columns stand, and whether rows change by themselves.

use crate::account::Conn;
use crate::binlog::Binlog;
use crate::binlog::cascades;
use crate::binlog::error::BinlogError;
use crate::binlog::place::Place;
use crate::binlog::resume;
use crate::binlog::rows::texts;
use crate::index::PlaceId;
use crate::log::following::Generation;
use crate::log::referred::Referred;
use crate::log::routes::Route;

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
    let printed = printed(binlog, place.number(), conn).await?;
    let Some(own) = place.tables.routes(&columns) else {
        // The tables are gone, or cannot be seen: nothing of them is to be kept.
        return Ok(false);
    };
    Ok(adopt(binlog, generation, place.number(), own, printed))
}

/// The same of a table that messages refer to.
pub(super) async fn learn_referred(
    binlog: &Binlog,
    generation: Generation,
    table: &Referred,
    conn: &mut Conn,
) -> Result<bool, BinlogError> {
    let failed = BinlogError::while_doing("a table's columns cannot be read");
    let rows = conn.rows(&table.columns_query()).await.map_err(&failed)?;
    let columns: Vec<String> = rows
        .iter()
        .filter_map(texts)
        .map(|[column]| column)
        .collect();
    let printed = printed(binlog, table.place, conn).await?;
    Ok(match table.route(&columns) {
        Some(own) => adopt(binlog, generation, table.place, [own], printed),
        None => false,
    })
}

/// How a place's tables are defined, if none of their keys changes rows by itself.
async fn printed(
    binlog: &Binlog,
    place: PlaceId,
    conn: &mut Conn,
) -> Result<Option<String>, BinlogError> {
    let created = cascades::created(binlog.show_create_queries(place), conn)
        .await
        .map_err(BinlogError::while_doing("the tables' keys cannot be read"))?;
    match cascades::of(&created).into_iter().next() {
        Some(obstacle) => Err(obstacle.into()),
        None => Ok(resume::print(&created)),
    }
}

fn adopt(
    binlog: &Binlog,
    generation: Generation,
    place: PlaceId,
    own: impl IntoIterator<Item = Route>,
    printed: Option<String>,
) -> bool {
    let mut state = binlog.state();
    let learned = state.following.learn_columns(generation, place, own);
    if learned {
        match printed {
            Some(printed) => binlog.prints().insert(place, printed),
            None => binlog.prints().remove(&place),
        };
    }
    drop(state);
    if learned {
        binlog.routes_changed();
    }
    learned
}
