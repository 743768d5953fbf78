//! Waits until memory is warm: figures taken during the fill mean nothing.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;

use super::{DATABASE, DemoError, accounts, connect};
use headwater_proxy::session::session_counters::SessionEvent;
use headwater_proxy::session::shared_state::SharedState;

const CONNECTIONS: u32 = 4;
/// Time limit; with many readers or little memory, the measurement starts with what is cached by then.
const WARMUP_TIMEOUT: Duration = Duration::from_secs(60);

/// Repeats a call for each reader until memory answers all of them. Prints the time since `start`.
pub(super) async fn wait_until_warm(
    proxy: SocketAddr,
    shared: &SharedState,
    users: u32,
    start: Instant,
) -> Result<(), DemoError> {
    loop {
        let before = shared.counters.count_of(SessionEvent::CallFromMemory);
        let calls = call_each_reader(proxy, users).await?;
        let answered = shared.counters.count_of(SessionEvent::CallFromMemory) - before;
        let seconds = start.elapsed().as_secs_f64();
        if answered >= calls {
            println!(
                "memory is warm: it holds the timelines of all {users} readers, {seconds:.1} s after Headwater's start\n"
            );
            return Ok(());
        }
        if start.elapsed() > WARMUP_TIMEOUT {
            println!(
                "memory is not warm after {seconds:.0} s: it answered {answered} of the last {calls} calls\n"
            );
            return Ok(());
        }
    }
}

/// Makes one call for each reader; returns the number of calls.
async fn call_each_reader(proxy: SocketAddr, users: u32) -> Result<u64, DemoError> {
    let mut tasks = JoinSet::new();
    for first in 1..=CONNECTIONS {
        let mut conn = connect(proxy, accounts::APP, Some(DATABASE)).await?;
        tasks.spawn(async move {
            let calling = || DemoError::client("fill memory");
            for reader in (first..=users).step_by(CONNECTIONS as usize) {
                let call = format!("CALL fetch_timeline_ids({reader})");
                conn.query_drop(call).await.map_err(calling())?;
            }
            conn.disconnect().await.map_err(calling())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| DemoError::System {
            doing: "wait for a connection",
            source: error.into(),
        })??;
    }
    Ok(u64::from(users))
}
