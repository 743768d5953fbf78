//! Looks now and then whether the server's settings are still such that its log tells everything: most can be changed while it
//! runs, and the log does not tell of that. Nor does it tell where it was begun anew (RESET MASTER) and has come to the same
//! length again: the server counts such statements.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::control::Control;
use super::error::FeedError;
use super::obstacles::{self, Obstacle, ServerFacts};
use super::rows::text;
use super::{Feed, Phase};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// A look that takes longer is given up, with its connection.
const LATEST: Duration = Duration::from_secs(5);

/// Looks for good.
pub(super) async fn run(feed: Arc<Feed>) {
    let mut control = Control::default();
    let mut last: Option<Seen> = None;
    loop {
        tokio::time::sleep(EVERY).await;
        let (generation, server) = {
            let state = feed.state();
            match &state.server {
                Some(server) if state.phase != Phase::Aside => {
                    (state.generation, Arc::clone(server))
                }
                _ => continue,
            }
        };
        let look = look(&feed, generation, &server, &mut control);
        match tokio::time::timeout(LATEST, look).await {
            Ok(Ok(seen)) => {
                // Since an earlier stream, too: then this one may have begun before.
                let reset = last.is_some_and(|last| last.resets != seen.resets);
                if let Some(obstacle) = &seen.obstacle {
                    feed.begin_anew(generation, obstacle.clone().into());
                } else if reset {
                    feed.begin_anew(generation, FeedError::Reset);
                }
                last = Some(seen);
            }
            Ok(Err(error)) => tracing::debug!("the server's settings are not looked at: {error}"),
            Err(_) => tracing::debug!("the server's settings are not looked at: it is too slow"),
        }
    }
}

/// What a look has seen.
struct Seen {
    obstacle: Option<Obstacle>,
    /// How many RESET statements the server has counted.
    resets: Option<String>,
}

async fn look(
    feed: &Feed,
    generation: u64,
    server: &ServerFacts,
    control: &mut Control,
) -> Result<Seen, FeedError> {
    let failed = FeedError::while_doing("the server's settings cannot be read");
    let mut conn = control.take(feed, generation, server).await?;
    let (_, obstacles) = obstacles::survey(&mut conn).await.map_err(&failed)?;
    let resets: Option<Row> = conn
        .query_first("SHOW GLOBAL STATUS LIKE 'Com_reset'")
        .await
        .map_err(&failed)?;
    control.put_back(generation, conn);
    Ok(Seen {
        obstacle: obstacles.into_iter().next(),
        resets: resets.and_then(|row| text(&row, 1)),
    })
}
