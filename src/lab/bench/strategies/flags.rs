//! What can be said to `headwater bench strategies`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::course::{Effort, SLICE};
use crate::lab::bench::flags::seconds;
use crate::lab::demo::dataset::Size;
use crate::lab::private_server::Kind;

/// Flags of `headwater bench strategies`.
#[derive(Args, Clone, Debug)]
pub struct StrategiesFlags {
    /// Small data, and all of it within five minutes
    #[arg(long)]
    pub quick: bool,
    /// Users of the data set; 10,000 if left out, 400 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(50..=1_000_000))]
    pub users: Option<u32>,
    /// Their messages; 1,000,000 if left out, 20,000 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub messages: Option<u64>,
    /// Authors that a user follows, on average
    #[arg(long, value_name = "N", default_value_t = Size::CLASSIC.mean_follows)]
    pub mean_follows: f64,
    /// Readers whose pages are compared with the procedure's; all of them if left out, 200 with --quick
    #[arg(long, value_name = "N")]
    pub readers: Option<usize>,
    /// Time for each rate of each strategy, in seconds; 3 if left out, 0.6 with --quick
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Connections that read, and that write
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub connections: u16,
    /// The servers that have the messages, with a comma between
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "mariadb,mysql"
    )]
    pub server: Vec<Product>,
    /// Write every figure to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a report to this folder: README.md, charts, figures.json
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Product {
    /// The distribution's MariaDB.
    Mariadb,
    /// MySQL 9.7.
    Mysql,
}

impl StrategiesFlags {
    /// What is to be loaded.
    #[must_use]
    pub fn size(&self) -> Size {
        let (users, messages) = match self.quick {
            true => (400, 20_000),
            false => (Size::CLASSIC.users, Size::CLASSIC.messages),
        };
        Size {
            users: self.users.unwrap_or(users),
            messages: self.messages.unwrap_or(messages),
            mean_follows: self.mean_follows,
            ..Size::CLASSIC
        }
    }

    /// How much is to be done.
    #[must_use]
    pub fn effort(&self) -> Effort {
        let seconds = match self.quick {
            true => Duration::from_millis(600),
            false => Duration::from_secs(3),
        };
        let seconds = self.seconds.unwrap_or(seconds);
        let rounds = seconds.as_millis().div_ceil(SLICE.as_millis());
        let (compared, readers, changes) = match self.quick {
            true => (200, 200, 10),
            false => (usize::MAX, 1_000, 40),
        };
        Effort {
            connections: usize::from(self.connections),
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
            compared: self.readers.unwrap_or(compared),
            readers,
            changes,
            staleness: seconds * 2,
        }
    }

    /// The servers, once each.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let kind = |product: &Product| match product {
            Product::Mariadb => Kind::Mariadb,
            Product::Mysql => Kind::Mysql,
        };
        let mut kinds: Vec<Kind> = Vec::new();
        for kind in self.server.iter().map(kind) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }
}
