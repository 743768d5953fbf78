//! Pages of Headwater beside those at the smallest size, read in turn.
//!
//! Sizes are loaded one after the other, and the machine is not as fast all the time: what a page costs at one size as a multiple of what it
//! costs at another one is only to be had where both are there at once, and nothing that takes long has its turn between. The smallest size is read
//! beside itself too: by so much such multiples err.

use super::Failure;
use super::course::{self, Ask, Effort, Side, Team};
use super::figures::Beside;
use super::flags::StrategiesFlags;
use super::page::Page;
use super::strategy::{Session, Strategy};
use super::world::{Data, World};
use crate::lab::bench::Stop;
use crate::lab::demo::dataset::Size;
use crate::lab::private_server::Kind;

/// A strategy, its connections to a size, and where the figures go.
pub type One<'a> = (&'a dyn Strategy, &'a mut Team, &'a mut Option<Beside>);

/// Starts servers of their own for the smallest size, and has each strategy read these pages in turn with pages there.
///
/// # Errors
/// When a part cannot be had, or a page.
pub fn measure(
    kind: Kind,
    smallest: Size,
    here: &[Ask],
    strategies: &mut [One<'_>],
    flags: &StrategiesFlags,
    effort: &Effort,
    stop: &Stop,
) -> Result<(), Failure> {
    if strategies.is_empty() {
        return Ok(());
    }
    eprintln!("{}: beside the smallest size", kind.name());
    let mut world = World::make(kind, Data::Made(smallest, 0), flags.buffer_pool, stop)?;
    let readers = world.some_readers(effort.readers)?;
    world.accelerate(&readers)?;
    let (there, _) = course::asks(&world, &readers, effort)?;
    let places = here.len().min(there.len());
    let asked = |asks: &'_ [Ask], session: &mut dyn Session, place: usize, page: &mut Page| {
        let (reader, bound) = asks.get(place).copied().unwrap_or_default();
        session.page(reader, bound, page)
    };
    let of_here = |session: &mut dyn Session, place: usize, page: &mut Page| {
        asked(here, session, place, page)
    };
    let of_there = |session: &mut dyn Session, place: usize, page: &mut Page| {
        asked(&there, session, place, page)
    };
    for (strategy, here_team, beside) in strategies {
        let mut small = super::team(*strategy, &world, effort)?;
        // Headwater learns there what it has learned here: which rows to keep, and which way costs less.
        course::pages(&mut small, &there)?;
        let (team, once) = (&mut small, &of_there);
        course::rates(&mut [Side { team, once }], effort.rounds, places, stop)?;
        let mut sides = [
            Side {
                team: here_team,
                once: &of_here,
            },
            Side {
                team: &mut small,
                once: &of_there,
            },
        ];
        let rates = course::rates(&mut sides, effort.rounds, places, stop)?;
        if let [own, least] = rates.as_slice() {
            **beside = Some(Beside {
                pages_per_s: own.rate,
                page_p50_us: own.p50_us as f64,
                smallest_pages_per_s: least.rate,
                smallest_page_p50_us: least.p50_us as f64,
            });
        }
    }
    Ok(())
}
