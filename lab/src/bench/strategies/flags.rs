//! The flags of `headwater bench strategies`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::article::ArticleRun;
use super::growth::{self, GrowthAxis};
use super::measurement::{MeasurementEffort, TURN_TIME};
use super::names;
use crate::bench::flags::seconds;
use crate::demo::dataset::DatasetSize;
use crate::private_server::ServerKind;

/// Flags of `headwater bench strategies`.
#[derive(Args, Clone, Debug)]
pub struct StrategiesFlags {
    /// Small data, and all of it within five minutes
    #[arg(long)]
    pub quick: bool,
    /// These strategies alone, with commas between
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    pub only: Vec<String>,
    /// A measurement that an article has reported, on its data: what was told then, beside what is measured now
    #[arg(long, value_name = "NAME", conflicts_with_all = ["quick", "growth", "users", "messages", "mean_follows", "only"])]
    pub run: Option<ArticleRun>,
    /// How reads, writes and room grow with follows, messages and users, or with those of them that are named; with --quick over small sizes
    ///
    /// Follows from 10 to 5,000 a reader, messages from 100 thousand to 100 million, users from 10 thousand to a million, each size on data
    /// of its own, the greatest last. A size is left out, and named, where it would not fit on the disk or into --minutes; so is a strategy
    /// that would push more than 72 million messages. 100 million messages take about 25 GB. By messages and by users, pages of Headwater are
    /// also read in turn with those of the smallest size, on servers of its own.
    #[arg(long, value_name = "AXES", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "follows,messages,users", conflicts_with_all = ["users", "messages", "mean_follows"])]
    pub growth: Vec<GrowthAxis>,
    /// With --growth: a size that would probably end later than this is left out
    #[arg(long, value_name = "N", default_value_t = 60, requires = "growth", value_parser = clap::value_parser!(u16).range(1..))]
    pub minutes: u16,
    /// With --growth and --report: keep what growth.json in that folder has, and measure what it lacks
    #[arg(long, requires = "growth", requires = "report")]
    pub resume: bool,
    /// Users of the data set; 10,000 if left out, 400 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(50..=1_000_000))]
    pub users: Option<u32>,
    /// Their messages; 1,000,000 if left out, 20,000 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub messages: Option<u64>,
    /// Authors that a user follows, on average
    #[arg(long, value_name = "N", default_value_t = DatasetSize::CLASSIC.mean_follows)]
    pub mean_follows: f64,
    /// Your own follows in place of made up ones: a file with a line for each, who reads and who is read
    ///
    /// Users may be called anything. For the classic tables: mysql -N -e 'SELECT user_id, follower_id FROM follower' app > follows.tsv
    #[arg(long, value_name = "FILE", requires = "messages_from", conflicts_with_all = ["run", "growth", "users", "messages", "mean_follows"])]
    pub follows_from: Option<PathBuf>,
    /// Your own messages: a file with a line for each, its id, its author, and its length in bytes if you like
    ///
    /// An id is a number that grows with time. No text is asked for: mysql -N -e 'SELECT id, user_id, LENGTH(body) FROM message' app > messages.tsv
    #[arg(long, value_name = "FILE", requires = "follows_from")]
    pub messages_from: Option<PathBuf>,
    /// Readers whose pages are compared with the procedure's; all of them if left out, 200 with --quick and with --growth
    #[arg(long, value_name = "N")]
    pub readers: Option<usize>,
    /// Time for each rate of each strategy, in seconds; 3 if left out, 0.6 with --quick
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Connections that read, and that write
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub connections: u16,
    /// Memory for the pages of each server's tables (innodb_buffer_pool_size), in gigabytes
    #[arg(long, value_name = "GB", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub buffer_pool: u16,
    /// The servers that have the messages, with a comma between
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "mariadb,mysql"
    )]
    pub server: Vec<ServerChoice>,
    /// Write every figure to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a report to this folder: README.md, charts, figures.json; with --growth growth.md, with --run NAME.md
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServerChoice {
    /// The distribution's MariaDB.
    Mariadb,
    /// MySQL 9.7.
    Mysql,
}

impl StrategiesFlags {
    /// The size of the data set.
    #[must_use]
    pub fn size(&self) -> DatasetSize {
        if let Some(run) = self.run {
            return run.size();
        }
        let (users, messages) = match self.quick {
            true => (400, 20_000),
            false => (DatasetSize::CLASSIC.users, DatasetSize::CLASSIC.messages),
        };
        DatasetSize {
            users: self.users.unwrap_or(users),
            messages: self.messages.unwrap_or(messages),
            mean_follows: self.mean_follows,
            ..DatasetSize::CLASSIC
        }
    }

    /// Additional readers, who all follow one more author; none for the articles' measurements, which had none.
    #[must_use]
    pub fn fans(&self) -> u32 {
        match (self.run, self.quick) {
            (Some(_), _) => 0,
            (None, true) => 1_000,
            (None, false) => 100_000,
        }
    }

    /// True if the strategy is to be measured.
    #[must_use]
    pub fn includes(&self, name: &str) -> bool {
        if let Some(run) = self.run {
            return run.strategies().contains(&name);
        }
        match self.only.is_empty() {
            true => self.growth.is_empty() || growth::DEFAULT_STRATEGIES.contains(&name),
            false => self.only.iter().any(|only| only == name),
        }
    }

    /// The extent of the measurement.
    #[must_use]
    pub fn effort(&self) -> MeasurementEffort {
        let seconds = match self.quick {
            true => Duration::from_millis(600),
            false => Duration::from_secs(3),
        };
        let seconds = self.seconds.unwrap_or(seconds);
        let rounds = seconds.as_millis().div_ceil(TURN_TIME.as_millis());
        let (compared, readers, changes) = match self.quick {
            true => (200, 200, 10),
            false => (usize::MAX, 1_000, 40),
        };
        MeasurementEffort {
            connections: usize::from(self.connections),
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
            compared: self.readers.unwrap_or(compared),
            readers,
            deep: true,
            changes,
            staleness: seconds * 2,
            most_pushed: f64::INFINITY,
        }
    }

    /// The servers, without duplicates.
    #[must_use]
    pub fn kinds(&self) -> Vec<ServerKind> {
        let kind = |product: &ServerChoice| match product {
            ServerChoice::Mariadb => ServerKind::Mariadb,
            ServerChoice::Mysql => ServerKind::Mysql,
        };
        let mut kinds: Vec<ServerKind> = Vec::new();
        for kind in self.server.iter().map(kind) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }
}
