//! Pages through Headwater in alternation with those of the smallest size.
//!
//! Sizes are loaded one after another, and the machine's speed drifts: the cost of a page as a multiple of another size's needs both at
//! once, without long work in between. The smallest size also alternates with itself: that ratio is the error of such multiples.

use super::StrategyError;
use super::figures::SizeComparison;
use super::flags::StrategiesFlags;
use super::measurement::{self, MeasurementEffort, ReaderPage, SessionGroup, StrategySessions};
use super::page::MessagePage;
use super::servers::{StrategyData, StrategyServers};
use super::strategy::{AppSession, TimelineStrategy};
use crate::bench::StopSignal;
use crate::demo::dataset::DatasetSize;
use crate::private_server::ServerKind;

/// A strategy, its connections to a size, and the place for its figures.
pub type ComparedStrategy<'a> = (
    &'a dyn TimelineStrategy,
    &'a mut StrategySessions,
    &'a mut Option<SizeComparison>,
);

/// Starts separate servers with the smallest size, and lets each strategy alternate between these pages and those.
///
/// # Errors
/// Fails if a server does not start, or a page cannot be read.
pub fn measure(
    kind: ServerKind,
    smallest: DatasetSize,
    pages_here: &[ReaderPage],
    strategies: &mut [ComparedStrategy<'_>],
    flags: &StrategiesFlags,
    effort: &MeasurementEffort,
    stop: &StopSignal,
) -> Result<(), StrategyError> {
    if strategies.is_empty() {
        return Ok(());
    }
    eprintln!("{}: beside the smallest size", kind.name());
    let mut servers = StrategyServers::start(
        kind,
        StrategyData::Generated(smallest, 0),
        flags.buffer_pool,
        stop,
    )?;
    let readers = servers.some_readers(effort.readers)?;
    servers.start_headwater(&readers)?;
    let (smallest_pages, _) = measurement::reader_pages(&servers, &readers, effort)?;
    let length = pages_here.len().min(smallest_pages.len());
    let read_page = |requested: &'_ [ReaderPage],
                     session: &mut dyn AppSession,
                     place: usize,
                     page: &mut MessagePage| {
        let (reader, bound) = requested.get(place).copied().unwrap_or_default();
        session.page(reader, bound, page)
    };
    let of_here = |session: &mut dyn AppSession, index: usize, page: &mut MessagePage| {
        read_page(pages_here, session, index, page)
    };
    let of_there = |session: &mut dyn AppSession, index: usize, page: &mut MessagePage| {
        read_page(&smallest_pages, session, index, page)
    };
    for (strategy, sessions_here, comparison) in strategies {
        let mut small = super::open_sessions(*strategy, &servers, effort)?;
        // This Headwater samples here what the other one has already sampled: which rows to cache, and which strategy costs less.
        measurement::read_pages(&mut small, &smallest_pages)?;
        let (small_sessions, once) = (&mut small, &of_there);
        measurement::measure_rates(
            &mut [SessionGroup {
                sessions: small_sessions,
                action: once,
            }],
            effort.rounds,
            length,
            stop,
        )?;
        let mut sides = [
            SessionGroup {
                sessions: sessions_here,
                action: &of_here,
            },
            SessionGroup {
                sessions: &mut small,
                action: &of_there,
            },
        ];
        let rates = measurement::measure_rates(&mut sides, effort.rounds, length, stop)?;
        if let [own, least] = rates.as_slice() {
            **comparison = Some(SizeComparison {
                pages_per_s: own.rate,
                page_p50_us: own.p50_us as f64,
                smallest_pages_per_s: least.rate,
                smallest_page_p50_us: least.p50_us as f64,
            });
        }
    }
    Ok(())
}
