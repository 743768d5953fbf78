//! Runs a bench: pages, numbers of connections, rounds, and in each round every query path once.

use super::client_pool::ClientPool;
use super::data::{BenchData, BenchPage};
use super::flags::BenchFlags;
use super::login::BenchAccount;
use super::report::{BenchReport, ExtraFigures, MachineInfo};
use super::round_runner::{RoundRunner, round_count};
use super::{BenchError, StopSignal, memory, push, scrape_bench, shapes, writes};
use crate::feed::CLASSIC_FEED;
use crate::query_path::ConnectionRoute;

/// Measures everything; blocks until the end.
///
/// # Errors
/// Fails if a step fails. A difference is no error here.
pub fn run(
    flags: &BenchFlags,
    data: BenchData,
    stop: &StopSignal,
) -> Result<BenchReport, BenchError> {
    let account = BenchAccount::of(flags);
    let machine = MachineInfo::inspect();
    let BenchData { server, pages, .. } = &data;
    for BenchPage {
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
        Some(task) if flags.proxy.is_none() => {
            memory::measure_idle(flags, &account, server, *task)?
        }
        _ => None,
    };
    let full = match flags.proxy {
        None => memory::measure_full(flags)?,
        Some(_) => None,
    };
    let beside_writes = if flags.writes { writes::READERS } else { 0 };
    let most = flags.most_connections().max(beside_writes);
    let mut pool = ClientPool::connect(
        flags,
        &account,
        most,
        &[ConnectionRoute::Headwater, ConnectionRoute::Relay],
        flags.classic_feed().then_some(CLASSIC_FEED),
    )?;
    let turns: usize = pages
        .iter()
        .map(|page| {
            pool.query_paths(server.lateral, flags.classic_feed(), page.depth)
                .len()
                * flags.connections.len()
        })
        .sum();
    let mut runner = RoundRunner::new(turns, round_count(flags), stop);
    for page in pages {
        let paths = pool.query_paths(server.lateral, flags.classic_feed(), page.depth);
        runner.measure_page(page, &paths, flags, &mut pool)?;
    }
    let (cells, mut differences) = runner.finish();
    let writes = match pages.first() {
        Some(page) if flags.writes => {
            let measured = writes::measure(flags, &account, &page.tasks, &mut pool, stop)?;
            measured
                .differences
                .into_iter()
                .for_each(|d| differences.add(d));
            Some(measured.writes)
        }
        _ => None,
    };
    let proxy_report = pool.close();
    let scraped = match pages.first() {
        Some(page) if flags.admin => {
            Some(scrape_bench::measure(flags, &account, &page.tasks, stop)?)
        }
        _ => None,
    };
    let push = match flags.push {
        Some(users) => {
            let (push, more_differences) = push::measure(flags, users, &account, stop)?;
            differences.merge(more_differences);
            Some(push)
        }
        None => None,
    };
    let shapes = match flags.shapes {
        Some(messages) => {
            let (shapes, more_differences) =
                shapes::measure(flags, messages, &account, data.server.mariadb, stop)?;
            differences.merge(more_differences);
            Some(shapes)
        }
        None => None,
    };
    Ok(BenchReport::new(
        flags,
        machine,
        data,
        cells,
        differences,
        ExtraFigures {
            idle,
            full,
            writes,
            scraped,
            push,
            shapes,
        },
        proxy_report,
    ))
}
