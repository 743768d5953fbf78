//! What a run is told.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use headwater_lab::private_server::ServerKind;

use crate::score::{Contender, RelayFigure};

/// Relaying alone: Headwater beside HAProxy and MySQL Router, in turn, in front of one server.
#[derive(Debug, Parser)]
#[command(name = "make bench-relay", max_term_width = 100)]
pub(crate) struct RelayFlags {
    /// Time that each contender has in each round of a figure, in seconds
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Rounds of each figure: a ratio is the median of as many
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// The server behind them
    #[arg(long, value_enum, default_value_t = ServerSelection::Both)]
    server: ServerSelection,
    /// What is measured
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = RelayFigure::ALL)]
    pub(crate) figures: Vec<RelayFigure>,
    /// Who is measured
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Contender::ALL)]
    pub(crate) contenders: Vec<Contender>,
    /// Further flags of `headwater serve`, such as "--relay-only"
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    headwater_args: String,
    /// What cargo says to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServerSelection {
    /// The distribution's MariaDB
    Mariadb,
    /// MySQL 9.7
    Mysql,
    /// One after the other
    Both,
}

impl RelayFlags {
    pub(crate) fn kinds(&self) -> &'static [ServerKind] {
        match self.server {
            ServerSelection::Mariadb => &[ServerKind::Mariadb],
            ServerSelection::Mysql => &[ServerKind::Mysql],
            ServerSelection::Both => &[ServerKind::Mariadb, ServerKind::Mysql],
        }
    }

    pub(crate) fn headwater(&self) -> Vec<String> {
        self.headwater_args
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn seconds(&self) -> Duration {
        Duration::try_from_secs_f64(self.seconds).unwrap_or(Duration::from_secs(3))
    }

    /// Turns of this length in a round, at least one.
    pub(crate) fn turns(&self, length: Duration) -> usize {
        let turns = self.seconds().as_millis() / length.as_millis().max(1);
        usize::try_from(turns).unwrap_or(1).max(1)
    }
}
