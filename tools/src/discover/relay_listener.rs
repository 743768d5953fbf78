//! Relays every byte to the server for a while, and counts the SELECTs among them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::{DiscoverError, DiscoveredStatement, StatementSurvey};
use headwater_feed::tally::StatementTally;
use headwater_server::config::ServeSettings;
use headwater_server::server::ProxyServer;

/// How long commands in flight have at the end, in milliseconds.
const DRAIN_MS: u64 = 2_000;

/// Relays for this many seconds, or until Ctrl-C or SIGTERM. Open sessions are then closed between two commands.
pub(super) async fn count_selects(
    settings: &ServeSettings,
    seconds: u64,
) -> Result<StatementSurvey, DiscoverError> {
    let mut settings = settings.clone();
    settings.accelerate = false;
    // A running `serve` may use it.
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
    let statements = tally.statements();
    let times: u64 = statements.iter().map(|seen| seen.times).sum();
    let mut about = vec![format!(
        "{times} SELECTs with a descending order and a limit, {} of them different in more than their values, went by on {listen}",
        statements.len()
    )];
    if tally.uncounted() > 0 {
        let left_out = tally.uncounted();
        about.push(format!(
            "{left_out} more were not counted: there were too many different ones"
        ));
    }
    let statement = |stats| DiscoveredStatement {
        seen: stats,
        is_digest: false,
    };
    Ok(StatementSurvey {
        notes: about,
        statements: statements.into_iter().map(statement).collect(),
    })
}
