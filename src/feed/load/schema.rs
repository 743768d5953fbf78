//! Where the columns stand, and whether rows change by themselves.

use crate::account::Conn;
use crate::feed::Feed;
use crate::feed::cascades;
use crate::feed::error::FeedError;
use crate::feed::place::Place;
use crate::feed::routes::Routes;
use crate::feed::rows::texts;

/// Learns where the columns stand. The stream listens to the tables already: a change of them begins everything anew.
/// False if the tables are not there.
pub(super) async fn learn(
    feed: &Feed,
    generation: u64,
    place: &Place,
    conn: &mut Conn,
) -> Result<bool, FeedError> {
    let failed = FeedError::while_doing("the tables' columns cannot be read");
    let rows = conn.rows(&place.columns_query()).await.map_err(&failed)?;
    let columns: Vec<(String, String)> = rows
        .iter()
        .filter_map(texts)
        .map(|[table, column]| (table, column))
        .collect();
    let keys = cascades::of(place, conn).await.map_err(&failed)?;
    if let Some(obstacle) = keys.into_iter().next() {
        return Err(obstacle.into());
    }
    let Some(own) = place.routes(&columns) else {
        // The tables are gone, or cannot be seen: nothing of them is to be kept.
        return Ok(false);
    };
    let mut state = feed.state();
    if state.generation != generation {
        return Ok(false);
    }
    let mut routes = Routes::clone(&state.routes);
    routes.routes.retain(|route| route.place != place.number);
    routes.routes.extend(own);
    state.routes = std::sync::Arc::new(routes);
    drop(state);
    feed.routes_changed();
    Ok(true)
}
