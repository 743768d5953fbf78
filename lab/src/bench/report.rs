//! All figures of a bench, as the JSON file contains them.

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

/// A finished bench.
#[derive(Debug, Serialize)]
pub struct BenchReport {
    /// Version of this Headwater.
    pub headwater: &'static str,
    /// When it ended, in seconds since 1970.
    pub at: u64,
    /// The machine that it ran on.
    pub machine: MachineInfo,
    /// The server that it measured.
    pub server: ServerInfo,
    /// Its settings.
    pub settings: BenchSettings,
    /// The figures.
    pub cells: Vec<BenchCell>,
    /// The target figures, and what was reached.
    pub targets: Vec<TargetFigure>,
    /// Figures of the optional measurements.
    #[serde(flatten)]
    pub extras: ExtraFigures,
    /// Answers that differ from the procedure's.
    pub differences: BenchDifferences,
    /// Log lines about definitions from the measured Headwater.
    pub log: Vec<String>,
    /// Its counters, over all pages and numbers of connections.
    pub counts: Option<String>,
    /// Messages of all timelines together: rows of a mailbox table for this data.
    pub mailbox_rows: u64,
    /// The pages and their readers.
    pub pages: Vec<BenchPage>,
}

/// Optional measurements; `None` if not measured.
#[derive(Debug, Default, Serialize)]
pub struct ExtraFigures {
    /// The memory of an idle session.
    pub idle: Option<IdleSessionMemory>,
    /// The memory of a full index.
    pub full: Option<FullIndexMemory>,
    /// Readers and writers in parallel: `--writes`.
    pub writes: Option<WriteFigures>,
    /// The cost of scrapes at the admin port: `--admin`.
    pub scraped: Option<ScrapeFigures>,
    /// The push model and the pull model: `--push`.
    pub push: Option<PushFigures>,
    /// SELECTs of feeds in every shape: `--shapes`.
    pub shapes: Option<ShapesReport>,
}

/// The machine: a local server shares it with Headwater and the bench.
#[derive(Debug, Serialize)]
pub struct MachineInfo {
    /// Cores available to this process.
    pub cores: usize,
    /// The processor's name, if the system reports it.
    pub processor: Option<String>,
    /// Load average of a minute when the bench began: well above 0, other processes disturb the figures.
    pub load_before: Option<f64>,
}

impl MachineInfo {
    /// Reads the current values.
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

/// The settings that matter for the figures.
#[derive(Debug, Serialize)]
pub struct BenchSettings {
    /// The server.
    pub upstream: String,
    /// The database with the data.
    pub database: String,
    /// True if the measured Headwater was already running.
    pub running_proxy: bool,
    /// The source of Headwater's answers, which decides the targets.
    pub source: ProxyAnswerSource,
    /// Time for each cell, in seconds.
    pub seconds: f64,
    /// The measured numbers of connections.
    pub connections: Vec<u16>,
    /// Maximum number of readers for a page.
    pub readers: usize,
    /// The seed that chose the readers.
    pub seed: u64,
}

impl BenchReport {
    /// Combines all figures.
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
        proxy_report: ProxyReport,
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
            log: proxy_report.log,
            counts: proxy_report.counts,
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
