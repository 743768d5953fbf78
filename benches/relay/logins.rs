//! Connect, log in, quit, again and again, on several threads at a time.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use headwater_lab::bench::client::{BenchClient, BenchClientError};
use headwater_lab::bench::login::BenchAccount;
use headwater_lab::bench::measure::{SliceJob, run_parallel};

use crate::closed_loop::STOP;

/// Clients that come and go at a time.
const CLIENTS: usize = 8;

/// Does it for as long; returns how many sessions there were.
pub(crate) fn turn(
    address: &str,
    account: &BenchAccount,
    length: Duration,
) -> Result<u64, BenchClientError> {
    let until = Instant::now() + length;
    let come_and_go = || {
        let mut sessions = 0;
        while Instant::now() < until && !STOP.load(Ordering::Relaxed) {
            // Dropped, it says that it quits.
            BenchClient::connect(address, account)?;
            sessions += 1;
        }
        Ok(sessions)
    };
    let jobs = (0..CLIENTS).map(|_| -> SliceJob<'_, u64> { Box::new(come_and_go) });
    Ok(run_parallel(jobs.collect())?.into_iter().sum())
}
