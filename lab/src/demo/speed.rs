//! A short measurement of the same timelines with and without Headwater. `headwater bench` is the
//! thorough one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;

use super::show::FOLLOW_UP_SELECT;
use super::{DATABASE, DemoError, accounts, connect};
use crate::query_path::PageTask;

const CONNECTIONS: u64 = 4;
/// Both sides alternate, so that a busy moment of the machine affects both.
const ROUNDS: u64 = 3;
const TURN_TIME: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpeedQuery {
    Join,
    Call,
    CallAndFollowUp,
}

/// Prints timelines a second, directly and through Headwater.
pub(super) async fn compare(
    direct: SocketAddr,
    proxy: SocketAddr,
    users: u32,
) -> Result<(), DemoError> {
    println!("timelines a second, {CONNECTIONS} connections, random readers, from warm memory\n");
    // Headwater samples from the first statements how many rows a template's filter passes, and what both strategies cost.
    rate(proxy, SpeedQuery::Join, users, ROUNDS).await?;
    println!(
        "{:<28}{:>10}{:>12}{:>8}",
        "", "directly", "Headwater", "ratio"
    );
    for (query, name) in [
        (SpeedQuery::Join, "one plain join"),
        (SpeedQuery::Call, "CALL"),
        (SpeedQuery::CallAndFollowUp, "CALL, then the join"),
    ] {
        let (mut without, mut with) = (0.0, 0.0);
        for round in 0..ROUNDS {
            without += rate(direct, query, users, round).await?;
            with += rate(proxy, query, users, round).await?;
        }
        let rounds = ROUNDS as f64;
        let (without, with) = (without / rounds, with / rounds);
        println!(
            "{name:<28}{without:>10.0}{with:>12.0}{:>8.2}",
            with / without
        );
    }
    println!();
    Ok(())
}

async fn rate(
    addr: SocketAddr,
    query: SpeedQuery,
    users: u32,
    round: u64,
) -> Result<f64, DemoError> {
    let mut tasks = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let conn = connect(addr, accounts::APP, Some(DATABASE)).await?;
        tasks.spawn(measure_connection(
            conn,
            query,
            users,
            round * CONNECTIONS + connection,
        ));
    }
    let mut done = 0.0;
    while let Some(result) = tasks.join_next().await {
        done += result.map_err(|error| DemoError::System {
            doing: "wait for a connection's turn",
            source: error.into(),
        })??;
    }
    Ok(done)
}

/// Timelines a second of one connection. The same `seed` gives the same readers.
async fn measure_connection(
    mut conn: Conn,
    query: SpeedQuery,
    users: u32,
    seed: u64,
) -> Result<f64, DemoError> {
    let measuring = || DemoError::client("measure");
    let start = Instant::now();
    let mut count = 0_u64;
    while start.elapsed() < TURN_TIME {
        let reader = sample_reader(users, seed, count);
        conn.query_drop(first_statement(query, reader))
            .await
            .map_err(measuring())?;
        if query == SpeedQuery::CallAndFollowUp {
            conn.query_drop(FOLLOW_UP_SELECT)
                .await
                .map_err(measuring())?;
        }
        count += 1;
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    conn.disconnect().await.map_err(measuring())?;
    Ok(rate)
}

/// The timeline's SELECT, or the CALL before it.
fn first_statement(query: SpeedQuery, reader: u64) -> String {
    match query {
        SpeedQuery::Join => {
            let task = PageTask {
                reader,
                bound: None,
            };
            task.join()
        }
        SpeedQuery::Call | SpeedQuery::CallAndFollowUp => {
            format!("CALL fetch_timeline_ids({reader})")
        }
    }
}

/// One of `1..=users`, by multiplying with an odd constant (Fibonacci hashing).
fn sample_reader(users: u32, seed: u64, count: u64) -> u64 {
    let mixed = (seed << 32 | count).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    mixed % u64::from(users.max(1)) + 1
}
