//! Every figure of a bench, as its JSON file has it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::cell::{BenchCell, ratio};
use super::check::BenchDifferences;
use super::client_pool::ProxyReport;
use super::data::{BenchData, BenchPage, ServerInfo};
use super::flags::BenchFlags;
use super::memory::{FullIndexMemory, IdleSessionMemory};
use super::push::PushFigures;
use super::scrape_bench::ScrapeFigures;
use super::shapes::ShapesReport;
use super::target_ratios::ProxyAnswerSource;
use super::targets::{TargetFigure, TargetInputs, targets};
use super::writes::WriteFigures;

/// A bench that ran to its end.
#[derive(Debug, Serialize)]
pub struct BenchReport {
    /// Version of this Headwater.
    pub headwater: &'static str,
    /// When it ended, in seconds since 1970.
    pub at: u64,
    /// Where it ran.
    pub machine: MachineInfo,
    /// What it ran against.
    pub server: ServerInfo,
    /// What it was told.
    pub settings: BenchSettings,
    /// The figures.
    pub cells: Vec<BenchCell>,
    /// What is aimed at, and what was reached.
    pub targets: Vec<TargetFigure>,
    /// What not every bench measures.
    #[serde(flatten)]
    pub extras: ExtraFigures,
    /// Answers that are not the procedure's.
    pub differences: BenchDifferences,
    /// What the Headwater under measurement logged on definitions.
    pub log: Vec<String>,
    /// What it counted, over all pages and numbers of connections.
    pub counts: Option<String>,
    /// Messages on all timelines together: rows of a mailbox table for this data.
    pub mailbox_rows: u64,
    /// The pages, and who was asked for them.
    pub pages: Vec<BenchPage>,
}

/// What is measured beside the ways of asking; `None` where it was not.
#[derive(Debug, Default, Serialize)]
pub struct ExtraFigures {
    /// What an idle session costs.
    pub idle: Option<IdleSessionMemory>,
    /// What everything in memory costs.
    pub full: Option<FullIndexMemory>,
    /// Readers and writers together: `--writes`.
    pub writes: Option<WriteFigures>,
    /// What it costs that somebody looks in: `--admin`.
    pub scraped: Option<ScrapeFigures>,
    /// The push model beside the pull model: `--push`.
    pub push: Option<PushFigures>,
    /// SELECTs of feeds in every shape: `--shapes`.
    pub shapes: Option<ShapesReport>,
}

/// The machine: server, Headwater and bench share it when the server is here too.
#[derive(Debug, Serialize)]
pub struct MachineInfo {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor's name, where the system tells it.
    pub processor: Option<String>,
    /// Processes that wanted a core when the bench began, mean of a minute: others take part where this is not near 0.
    pub load_before: Option<f64>,
}

impl MachineInfo {
    /// Looks at it now.
    #[must_use]
    pub fn inspect() -> MachineInfo {
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        MachineInfo {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: processor_name(),
            load_before: load.and_then(|load| load.split(' ').next()?.parse().ok()),
        }
    }
}

/// The flags that matter for the figures.
#[derive(Debug, Serialize)]
pub struct BenchSettings {
    /// The server.
    pub upstream: String,
    /// The database with the data.
    pub database: String,
    /// True when the Headwater under measurement was there before.
    pub running_proxy: bool,
    /// Whose targets apply.
    pub source: ProxyAnswerSource,
    /// Time for each cell, in seconds.
    pub seconds: f64,
    /// Numbers of connections.
    pub connections: Vec<u16>,
    /// Readers a page, at most.
    pub readers: usize,
    /// Which readers.
    pub seed: u64,
}

impl BenchReport {
    /// Puts it all together.
    #[must_use]
    pub fn new(
        flags: &BenchFlags,
        machine: MachineInfo,
        BenchData {
            server,
            pages,
            mailbox_rows,
        }: BenchData,
        mut cells: Vec<BenchCell>,
        differences: BenchDifferences,
        extras: ExtraFigures,
        said: ProxyReport,
    ) -> BenchReport {
        let ratios: Vec<_> = cells
            .iter()
            .map(|cell| ratio(&cells, cell.page, cell.connections, cell.way))
            .collect();
        for (cell, ratio) in cells.iter_mut().zip(ratios) {
            cell.ratio = ratio;
        }
        let source = ProxyAnswerSource::from_flags(flags);
        let measured = TargetInputs {
            cells: &cells,
            pages: &pages,
            idle: extras.idle.as_ref(),
            full: extras.full.as_ref(),
            writes: extras.writes.as_ref(),
            scraped: extras.scraped.as_ref(),
            push: extras.push.as_ref(),
        };
        BenchReport {
            headwater: env!("CARGO_PKG_VERSION"),
            at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            machine,
            settings: BenchSettings {
                upstream: flags.upstream.clone(),
                database: flags.database.clone(),
                running_proxy: flags.proxy.is_some(),
                source,
                seconds: flags.seconds.as_secs_f64(),
                connections: flags.connections.clone(),
                readers: flags.readers,
                seed: flags.seed,
            },
            targets: targets(&measured, source, server.mariadb),
            server,
            cells,
            extras,
            differences,
            log: said.log,
            counts: said.counts,
            mailbox_rows,
            pages,
        }
    }
}

fn processor_name() -> Option<String> {
    let facts = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = facts.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
