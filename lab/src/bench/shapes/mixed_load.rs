//! A feed's statement through Headwater during inserts.

use super::figures::MixedLoadFigures;
use super::statements::FeedShape;
use crate::bench::client::{BenchClient, BenchClientError};
use crate::bench::client_pool::ClientPool;
use crate::bench::figures::LatencyFigures;
use crate::bench::flags::BenchFlags;
use crate::bench::login::BenchAccount;
use crate::bench::measure::{ConnectionTally, SLICE_TIME, SliceJob, repeat_for, run_parallel};
use crate::bench::round_runner::round_count;
use crate::bench::writes::pace::InsertPace;
use crate::bench::{BenchError, StopSignal};
use crate::query_path::{ConnectionRoute, query_packet};

const WRITERS: usize = 8;

/// What is read, and how many messages are inserted a second.
#[derive(Clone, Copy, Debug)]
pub struct MixedLoad {
    /// The statements.
    pub shape: FeedShape,
    /// Inserts a second.
    pub inserts: u32,
}

/// Reads on all connections, and inserts so many messages a second.
///
/// # Errors
/// Fails if a connection fails or a statement is refused.
pub fn measure(
    load: MixedLoad,
    flags: &BenchFlags,
    account: &BenchAccount,
    readers: &[u64],
    users: u32,
    pool: &mut ClientPool,
    stop: &StopSignal,
) -> Result<MixedLoadFigures, BenchError> {
    let MixedLoad { shape, inserts } = load;
    eprintln!("{}, beside {inserts} inserts a second", shape.name());
    let selects: Vec<Vec<u8>> = readers
        .iter()
        .map(|reader| query_packet(&shape.reader_select(*reader)))
        .collect();
    let address = pool.address(ConnectionRoute::Headwater).to_owned();
    let at = BenchError::for_address(&address);
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        writers.push(BenchClient::connect(&address, account).map_err(&at)?);
    }
    let (clients, _) = pool.clients(ConnectionRoute::Headwater, super::CONNECTIONS);
    let mut reading = ConnectionTally::for_connections(clients.len(), selects.len())?;
    let mut writing = ConnectionTally::for_connections(WRITERS, users as usize)?;
    // Round 0 warms up and does not count.
    for round in 0..=round_count(flags) {
        let mut jobs: Vec<SliceJob<'_, ()>> = Vec::new();
        for (client, tally) in clients.iter_mut().zip(&mut reading) {
            let selects = &selects;
            jobs.push(Box::new(move || {
                let mut rows = Vec::new();
                repeat_for(SLICE_TIME, selects.len(), tally, stop, |index| {
                    let select = selects.get(index);
                    select.map_or(Ok(()), |select| client.query(select, &mut rows))
                })
            }));
        }
        for (connection, (client, tally)) in (0..).zip(writers.iter_mut().zip(&mut writing)) {
            jobs.push(Box::new(move || {
                run_writer((connection, inserts), client, tally, users, stop)
            }));
        }
        run_parallel(jobs).map_err(&at)?;
        if stop.is_requested() {
            return Err(BenchError::Stopped);
        }
        if round == 0 {
            reading
                .iter_mut()
                .chain(&mut writing)
                .for_each(ConnectionTally::reset);
        }
    }
    Ok(MixedLoadFigures {
        feeds: LatencyFigures::from_lanes(&reading)?,
        inserts: LatencyFigures::from_lanes(&writing)?,
    })
}

fn run_writer(
    (connection, per_second): (u32, u32),
    client: &mut BenchClient,
    tally: &mut ConnectionTally,
    users: u32,
    stop: &StopSignal,
) -> Result<(), BenchClientError> {
    let pace = InsertPace {
        per_second,
        connections: u32::try_from(WRITERS).unwrap_or(u32::MAX),
    };
    let mut none = Vec::new();
    pace.run_slice(connection, users as usize, tally, stop, |index| {
        let author = 1 + index;
        let insert = query_packet(&format!(
            "INSERT INTO post (author, created_at, kind, rare, body) VALUES ({author}, NOW(), 1, 1, 'written by the bench')"
        ));
        client.query(&insert, &mut none)
    })
}
