//! Stands in front of the server for a while, relays every byte, and counts the SELECTs that go by.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::{DiscoverError, DiscoveredStatement, StatementSurvey};
use crate::config::ServeSettings;
use crate::feed::tally::StatementTally;
use crate::server::ProxyServer;

/// Commands in flight at the end have so long.
const DRAIN_MS: u64 = 2_000;

/// Relays for so many seconds, or until Ctrl-C or SIGTERM. Sessions that are open then are closed between two commands.
pub(super) async fn count_selects(
    settings: &ServeSettings,
    seconds: u64,
) -> Result<StatementSurvey, DiscoverError> {
    let mut settings = settings.clone();
    settings.accelerate = false;
    // Whoever serves may have it.
    settings.socket = None;
    settings.listeners.clear();
    settings.service = None;
    settings.feeds.clear();
    settings.limits.drain_ms = settings.limits.drain_ms.min(DRAIN_MS);
    let tally = Arc::new(Mutex::new(StatementTally::default()));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DiscoverError::Signal)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(DiscoverError::Signal)?;
    let server = ProxyServer::bind_counting(&settings, Arc::clone(&tally)).await?;
    let listen = &settings.listen;
    eprintln!(
        "headwater: relaying on {listen} for {seconds} s, and looking at what goes by: have your app connect there. Ctrl-C ends it earlier"
    );
    server
        .run(async {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
        .await;
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = tally.statements();
    let times: u64 = seen.iter().map(|seen| seen.times).sum();
    let mut about = vec![format!(
        "{times} SELECTs with a descending order and a limit, {} of them different in more than their values, went by on {listen}",
        seen.len()
    )];
    if tally.uncounted() > 0 {
        let left_out = tally.uncounted();
        about.push(format!(
            "{left_out} more were not counted: there were too many different ones"
        ));
    }
    let statement = |seen| DiscoveredStatement {
        seen,
        is_digest: false,
    };
    Ok(StatementSurvey {
        notes: about,
        statements: seen.into_iter().map(statement).collect(),
    })
}
