//! The join through Headwater while others insert messages.

use super::figures::Beside;
use super::statements::Sort;
use crate::lab::bench::client::{Client, ClientError};
use crate::lab::bench::course::rounds;
use crate::lab::bench::crew::Crew;
use crate::lab::bench::figures::Figures;
use crate::lab::bench::flags::BenchFlags;
use crate::lab::bench::login::Account;
use crate::lab::bench::measure::{Job, Lane, SLICE, repeat, together};
use crate::lab::bench::way::{Route, packet};
use crate::lab::bench::writes::PER_SECOND;
use crate::lab::bench::writes::pace::Pace;
use crate::lab::bench::{BenchError, Stop};

const WRITERS: usize = 8;

/// Reads on as many connections as can be, and inserts so many messages a second.
///
/// # Errors
/// When a connection fails or a statement is refused.
pub fn measure(
    flags: &BenchFlags,
    account: &Account,
    readers: &[u64],
    users: u32,
    crew: &mut Crew,
    stop: &Stop,
) -> Result<Beside, BenchError> {
    eprintln!("join, beside {PER_SECOND} inserts a second");
    let joins: Vec<Vec<u8>> = readers
        .iter()
        .map(|reader| packet(&Sort::Join.of_reader(*reader)))
        .collect();
    let address = crew.address(Route::Headwater).to_owned();
    let at = BenchError::at(&address);
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        writers.push(Client::connect(&address, account).map_err(&at)?);
    }
    let (clients, _) = crew.clients(Route::Headwater, super::CONNECTIONS);
    let mut reading = Lane::several(clients.len(), joins.len())?;
    let mut writing = Lane::several(WRITERS, users as usize)?;
    // Round 0 warms up and does not count.
    for round in 0..=rounds(flags) {
        let mut jobs: Vec<Job<'_, ()>> = Vec::new();
        for (client, lane) in clients.iter_mut().zip(&mut reading) {
            let joins = &joins;
            jobs.push(Box::new(move || {
                let mut rows = Vec::new();
                repeat(SLICE, joins.len(), lane, stop, |place| {
                    let join = joins.get(place);
                    join.map_or(Ok(()), |join| client.ask(join, &mut rows))
                })
            }));
        }
        for (hand, (client, lane)) in (0..).zip(writers.iter_mut().zip(&mut writing)) {
            jobs.push(Box::new(move || write(hand, client, lane, users, stop)));
        }
        together(jobs).map_err(&at)?;
        if stop.asked() {
            return Err(BenchError::Stopped);
        }
        if round == 0 {
            reading
                .iter_mut()
                .chain(&mut writing)
                .for_each(Lane::forget);
        }
    }
    Ok(Beside {
        feeds: Figures::of(&reading)?,
        inserts: Figures::of(&writing)?,
    })
}

fn write(
    hand: u32,
    client: &mut Client,
    lane: &mut Lane,
    users: u32,
    stop: &Stop,
) -> Result<(), ClientError> {
    let pace = Pace {
        per_second: PER_SECOND,
        hands: u32::try_from(WRITERS).unwrap_or(u32::MAX),
    };
    let mut none = Vec::new();
    pace.keep(hand, users as usize, lane, stop, |place| {
        let author = 1 + place;
        let insert = packet(&format!(
            "INSERT INTO post (author, created_at, kind, rare, body) VALUES ({author}, NOW(), 1, 1, 'written by the bench')"
        ));
        client.ask(&insert, &mut none)
    })
}
