//! Pages of Headwater beside those at the smallest size, read in turn.
//!
//! Sizes are loaded one after the other, and the machine is not as fast all the time: what a page costs at one size as a multiple of what it
//! costs at another one is only to be had where both are there at once, and nothing that takes long has its turn between. The smallest size is read
//! beside itself too: by so much such multiples err.

use super::StrategyError;
use super::figures::SizeComparison;
use super::flags::StrategiesFlags;
use super::measurement::{self, MeasurementEffort, ReaderPage, SessionGroup, StrategySessions};
use super::page::MessagePage;
use super::servers::{StrategyData, StrategyServers};
use super::strategy::{AppSession, TimelineStrategy};
use crate::lab::bench::StopSignal;
use crate::lab::demo::dataset::DatasetSize;
use crate::lab::private_server::ServerKind;

/// A strategy, its connections to a size, and where the figures go.
pub type ComparedStrategy<'a> = (
    &'a dyn TimelineStrategy,
    &'a mut StrategySessions,
    &'a mut Option<SizeComparison>,
);

/// Starts servers of their own for the smallest size, and has each strategy read these pages in turn with pages there.
///
/// # Errors
/// When a part cannot be had, or a page.
pub fn measure(
    kind: ServerKind,
    smallest: DatasetSize,
    here: &[ReaderPage],
    strategies: &mut [ComparedStrategy<'_>],
    flags: &StrategiesFlags,
    effort: &MeasurementEffort,
    stop: &StopSignal,
) -> Result<(), StrategyError> {
    if strategies.is_empty() {
        return Ok(());
    }
    eprintln!("{}: beside the smallest size", kind.name());
    let mut world = StrategyServers::start(
        kind,
        StrategyData::Generated(smallest, 0),
        flags.buffer_pool,
        stop,
    )?;
    let readers = world.some_readers(effort.readers)?;
    world.start_headwater(&readers)?;
    let (there, _) = measurement::reader_pages(&world, &readers, effort)?;
    let places = here.len().min(there.len());
    let asked = |asks: &'_ [ReaderPage],
                 session: &mut dyn AppSession,
                 place: usize,
                 page: &mut MessagePage| {
        let (reader, bound) = asks.get(place).copied().unwrap_or_default();
        session.page(reader, bound, page)
    };
    let of_here = |session: &mut dyn AppSession, place: usize, page: &mut MessagePage| {
        asked(here, session, place, page)
    };
    let of_there = |session: &mut dyn AppSession, place: usize, page: &mut MessagePage| {
        asked(&there, session, place, page)
    };
    for (strategy, here_team, beside) in strategies {
        let mut small = super::open_sessions(*strategy, &world, effort)?;
        // Headwater learns there what it has learned here: which rows to keep, and which way costs less.
        measurement::read_pages(&mut small, &there)?;
        let (team, once) = (&mut small, &of_there);
        measurement::measure_rates(
            &mut [SessionGroup {
                sessions: team,
                action: once,
            }],
            effort.rounds,
            places,
            stop,
        )?;
        let mut sides = [
            SessionGroup {
                sessions: here_team,
                action: &of_here,
            },
            SessionGroup {
                sessions: &mut small,
                action: &of_there,
            },
        ];
        let rates = measurement::measure_rates(&mut sides, effort.rounds, places, stop)?;
        if let [own, least] = rates.as_slice() {
            **beside = Some(SizeComparison {
                pages_per_s: own.rate,
                page_p50_us: own.p50_us as f64,
                smallest_pages_per_s: least.rate,
                smallest_page_p50_us: least.p50_us as f64,
            });
        }
    }
    Ok(())
}
