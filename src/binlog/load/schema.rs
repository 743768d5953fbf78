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
    has_no_cascades(place.tables.show_create_queries(), conn).await?;
    let printed = binlog.show_create_queries(place.number());
    let printed = resume::print(conn, printed).await.map_err(&failed)?;
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
    has_no_cascades(vec![(&table.table, table.show_create_query())], conn).await?;
    let printed = resume::print(conn, vec![table.show_create_query()]);
    let printed = printed.await.map_err(&failed)?;
    Ok(match table.route(&columns) {
        Some(own) => adopt(binlog, generation, table.place, [own], printed),
        None => false,
    })
}

async fn has_no_cascades(tables: Vec<(&str, String)>, conn: &mut Conn) -> Result<(), BinlogError> {
    let keys = cascades::of(tables, conn)
        .await
        .map_err(BinlogError::while_doing("the tables' keys cannot be read"))?;
    match keys.into_iter().next() {
        Some(obstacle) => Err(obstacle.into()),
        None => Ok(()),
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
