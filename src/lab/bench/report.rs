//! Every figure of a bench, as its JSON file has it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::aims::Source;
use super::cell::{Cell, ratio};
use super::check::Differences;
use super::crew::Said;
use super::data::{Data, Page, Server};
use super::flags::BenchFlags;
use super::memory::{Full, Idle};
use super::push::Push;
use super::scraped::Scraped;
use super::shapes::Shapes;
use super::targets::{Measured, Target, targets};
use super::writes::Writes;

/// A bench that ran to its end.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of this Headwater.
    pub headwater: &'static str,
    /// When it ended, in seconds since 1970.
    pub at: u64,
    /// Where it ran.
    pub machine: Machine,
    /// What it ran against.
    pub server: Server,
    /// What it was told.
    pub settings: Settings,
    /// The figures.
    pub cells: Vec<Cell>,
    /// What is aimed at, and what was reached.
    pub targets: Vec<Target>,
    /// What not every bench measures.
    #[serde(flatten)]
    pub extras: Extras,
    /// Answers that are not the procedure's.
    pub differences: Differences,
    /// What the Headwater under measurement logged on definitions.
    pub log: Vec<String>,
    /// What it counted, over all pages and numbers of connections.
    pub counts: Option<String>,
    /// Messages on all timelines together: rows of a mailbox table for this data.
    pub mailbox_rows: u64,
    /// The pages, and who was asked for them.
    pub pages: Vec<Page>,
}

/// What is measured beside the ways of asking; `None` where it was not.
#[derive(Debug, Default, Serialize)]
pub struct Extras {
    /// What an idle session costs.
    pub idle: Option<Idle>,
    /// What everything in memory costs.
    pub full: Option<Full>,
    /// Readers and writers together: `--writes`.
    pub writes: Option<Writes>,
    /// What it costs that somebody looks in: `--admin`.
    pub scraped: Option<Scraped>,
    /// The push model beside the pull model: `--push`.
    pub push: Option<Push>,
    /// SELECTs of feeds in every shape: `--shapes`.
    pub shapes: Option<Shapes>,
}

/// The machine: server, Headwater and bench share it when the server is here too.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor's name, where the system tells it.
    pub processor: Option<String>,
    /// Processes that wanted a core when the bench began, mean of a minute: others take part where this is not near 0.
    pub load_before: Option<f64>,
}

impl Machine {
    /// Looks at it now.
    #[must_use]
    pub fn look() -> Machine {
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        Machine {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: processor(),
            load_before: load.and_then(|load| load.split(' ').next()?.parse().ok()),
        }
    }
}

/// The flags that matter for the figures.
#[derive(Debug, Serialize)]
pub struct Settings {
    /// The server.
    pub upstream: String,
    /// The database with the data.
    pub database: String,
    /// True when the Headwater under measurement was there before.
    pub running_proxy: bool,
    /// Whose targets apply.
    pub source: Source,
    /// Time for each cell, in seconds.
    pub seconds: f64,
    /// Numbers of connections.
    pub connections: Vec<u16>,
    /// Readers a page, at most.
    pub readers: usize,
    /// Which readers.
    pub seed: u64,
}

impl Report {
    /// Puts it all together.
    #[must_use]
    pub fn new(
        flags: &BenchFlags,
        machine: Machine,
        Data {
            server,
            pages,
            mailbox_rows,
        }: Data,
        mut cells: Vec<Cell>,
        differences: Differences,
        extras: Extras,
        said: Said,
    ) -> Report {
        let ratios: Vec<_> = cells
            .iter()
            .map(|cell| ratio(&cells, cell.page, cell.connections, cell.way))
            .collect();
        for (cell, ratio) in cells.iter_mut().zip(ratios) {
            cell.ratio = ratio;
        }
        let source = Source::of(flags);
        let measured = Measured {
            cells: &cells,
            pages: &pages,
            idle: extras.idle.as_ref(),
            full: extras.full.as_ref(),
            writes: extras.writes.as_ref(),
            scraped: extras.scraped.as_ref(),
            push: extras.push.as_ref(),
        };
        Report {
            headwater: env!("CARGO_PKG_VERSION"),
            at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            machine,
            settings: Settings {
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

fn processor() -> Option<String> {
    let facts = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = facts.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
