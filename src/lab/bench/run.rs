//! The course of a bench: pages, numbers of connections, rounds, and in each round every way once.

use super::course::{Course, rounds};
use super::crew::Crew;
use super::data::{Data, Page};
use super::flags::BenchFlags;
use super::login::Account;
use super::report::{Extras, Machine, Report};
use super::way::Route;
use super::{BenchError, Stop, memory, push, scraped, shapes, writes};
use crate::lab::feed::FEED;

/// Measures everything; blocks.
///
/// # Errors
/// When something fails on the way. Differences are no error here.
pub fn run(flags: &BenchFlags, data: Data, stop: &Stop) -> Result<Report, BenchError> {
    let account = Account {
        user: flags.user().to_owned(),
        password: flags.password.clone(),
        database: flags.database.clone(),
    };
    let machine = Machine::look();
    let Data { server, pages, .. } = &data;
    for Page {
        depth,
        asked,
        eligible,
        readers,
        ..
    } in pages
    {
        eprintln!("{depth}: {asked}, of the {eligible} readers who have it, of {readers} in all");
    }
    let idle = match pages.first().and_then(|page| page.tasks.first()) {
        Some(task) if flags.proxy.is_none() => memory::measure(flags, &account, server, *task)?,
        _ => None,
    };
    let full = match flags.proxy {
        None => memory::full(flags)?,
        Some(_) => None,
    };
    let most = flags.connections.iter().copied().max().map(usize::from);
    let most = most.max(flags.writes.then_some(writes::READERS));
    let mut crew = Crew::gather(
        flags,
        &account,
        most.unwrap_or(1),
        &[Route::Headwater, Route::Relay],
        flags.classic_feed().then_some(FEED),
    )?;
    let turns: usize = pages
        .iter()
        .map(|page| {
            crew.ways(server.lateral, flags.classic_feed(), page.depth)
                .len()
                * flags.connections.len()
        })
        .sum();
    let mut course = Course::new(turns, rounds(flags), stop);
    for page in pages {
        let ways = crew.ways(server.lateral, flags.classic_feed(), page.depth);
        course.page(page, &ways, flags, &mut crew)?;
    }
    let (cells, mut differences) = course.finish();
    let writes = match pages.first() {
        Some(page) if flags.writes => {
            let measured = writes::measure(flags, &account, &page.tasks, &mut crew, stop)?;
            measured
                .differences
                .into_iter()
                .for_each(|d| differences.add(d));
            Some(measured.writes)
        }
        _ => None,
    };
    let said = crew.dismiss();
    let scraped = match pages.first() {
        Some(page) if flags.admin => Some(scraped::measure(flags, &account, &page.tasks, stop)?),
        _ => None,
    };
    let push = match flags.push {
        Some(users) => {
            let (push, found) = push::measure(flags, users, &account, stop)?;
            differences.join(found);
            Some(push)
        }
        None => None,
    };
    let shapes = match flags.shapes {
        Some(messages) => {
            let (shapes, found) =
                shapes::measure(flags, messages, &account, data.server.mariadb, stop)?;
            differences.join(found);
            Some(shapes)
        }
        None => None,
    };
    Ok(Report::new(
        flags,
        machine,
        data,
        cells,
        differences,
        Extras {
            idle,
            full,
            writes,
            scraped,
            push,
            shapes,
        },
        said,
    ))
}
