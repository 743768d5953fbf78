//! The flags of `headwater bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{Args, Subcommand};

use super::depth::PageDepth;
use super::simulate::SimulateFlags;
use super::strategies::StrategiesFlags;
use headwater_server::config::ServiceFlags;

/// Benches with flags of their own.
#[derive(Clone, Debug, Subcommand)]
pub enum BenchCommand {
    /// Every way to have timelines, side by side on servers of its own: pull, push into tables and into Redis, and what lies between
    ///
    /// Starts MariaDB, MySQL and Redis on free ports, fills them with the same users, follows and messages, and has each strategy read pages
    /// and take messages, follows, unfollows and deletes. Pages are compared with the procedure's. All of it is gone at the end.
    ///
    /// `make servers` and `setup/redis.sh` get the servers.
    Strategies(StrategiesFlags),
}

/// Flags of `headwater bench`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchFlags {
    /// Another bench.
    #[command(subcommand)]
    pub command: Option<BenchCommand>,
    /// Address of the MySQL or MariaDB server that holds the data
    #[arg(
        long,
        env = "HEADWATER_UPSTREAM",
        value_name = "ADDR",
        default_value = "127.0.0.1:3306"
    )]
    pub upstream: String,
    /// Account that asks; it needs SELECT, EXECUTE and what the procedures need
    #[arg(long, value_name = "USER", required_unless_present_any = ["spider", "simulate"],
          default_value_if("spider", ArgPredicate::IsPresent, "root"), default_value_if("simulate", ArgPredicate::IsPresent, "nobody"))]
    pub user: Option<String>,
    /// Its password. Prefer the environment: flags are visible to others
    #[arg(
        long,
        env = "HEADWATER_BENCH_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true,
        default_value = "",
        hide_default_value = true
    )]
    pub password: String,
    /// Database with the tables `follower` and `message` and the two procedures
    #[arg(long, value_name = "NAME", default_value = crate::demo::DATABASE)]
    pub database: String,
    /// Time for each way of asking, at each page and number of connections, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    pub seconds: Duration,
    /// Numbers of connections, with commas between
    #[arg(long, value_name = "LIST", default_value = "1,4,8", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub connections: Vec<u16>,
    /// Pages of the timeline, with commas between; 1 is the newest, `random` are pages that begin anywhere
    #[arg(
        long,
        value_name = "LIST",
        default_value = "1,10,500",
        value_delimiter = ','
    )]
    pub pages: Vec<PageDepth>,
    /// Readers whose timelines are asked for, at each page
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub readers: usize,
    /// Which readers: the same number gives the same readers on the same data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Sessions to open for the memory figure, as far as the server and the limit on open files let; 0: leave it out
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub idle_sessions: usize,
    /// Measure inserts too. THIS WRITES to the table `message`: up to 200,000 marked rows, removed again at the end
    ///
    /// Some connections insert messages while others read timelines: as fast as they can, and at 1,000 a second. The
    /// account needs INSERT and DELETE. The rows are removed when the bench ends, fails, or is stopped by SIGINT,
    /// SIGTERM or SIGHUP; only SIGKILL leaves them, with a mark that was printed before. The table's next
    /// AUTO_INCREMENT number stays where it got to, and everything goes into the binary log.
    #[arg(long)]
    pub writes: bool,
    /// Measure SELECTs of feeds: those of the feed NAME of the settings file (--config), alone; without NAME, the classic pages too
    ///
    /// Each is asked directly and through Headwater, in turn, and each answer is compared. With NAME, the newest page of many readers
    /// is asked for: by a join with the feed's follows, or by a list of authors where it has none, or as --statement says. Without
    /// NAME, the same pages as by the procedure are asked for by a join, by IN (SELECT ...), by EXISTS, and by a list. The
    /// Headwater that the bench starts gets the feed; one that runs already (--proxy) has to have it.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub feed: Option<String>,
    /// With --feed NAME: the statement to ask for, with {reader} where a reader's number goes, {authors} where those do whom he follows
    #[arg(long, value_name = "SELECT", requires = "feed")]
    pub statement: Option<String>,
    /// With --feed NAME or --request: the settings file of `serve` that has the feed, and the service account if no flag names one
    #[arg(long, env = "HEADWATER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Measure a whole request of an app: the statements of this file, in turn, directly and through Headwater; each answer is compared
    ///
    /// A line holds one statement, as the app sends it, or the word `connect`: log in anew, as PHP does. {reader} stands for a reader,
    /// {page} for the number of rows before the page (0; 20 for page 2 of --pages), and {ids} for the ids of the page: the first
    /// column of the nearest statement with LIMIT above ({ids:2}: the second). `readers SELECT ...` says who reads; without it, those of
    /// the feed's follows in the settings file (--config). Without such a feed, Headwater finds feeds itself (feeds.auto). A line that
    /// ends with a backslash goes on in the next; # begins a comment. Each line's time and its share of the request are printed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["feed", "shapes", "push", "writes", "reconnect", "spider", "admin", "simulate"])]
    pub request: Option<PathBuf>,
    /// Connect and log in anew for each page, as apps do that keep no connection: counted with its time, directly and through Headwater
    #[arg(long)]
    pub reconnect: bool,
    /// Measure SELECTs of feeds in every shape. THIS WRITES: it makes a database `headwater_bench_shapes`, and drops it at the end
    ///
    /// The data set in it has so many messages (1,000,000 if left out), a hundred a user, with a time, a kind and 42.9 follows a user.
    /// Asked are a join, IN (SELECT ...), EXISTS, lists of authors short and long, by id and by time, with filters that many or few
    /// messages pass, and a statement that is no feed; directly and through Headwater, in turn, each answer compared. At the end messages
    /// are inserted beside a join. The account needs all rights on that database, and the service account the same as on any other.
    #[arg(long, value_name = "MESSAGES", num_args = 0..=1, default_missing_value = "1000000",
          value_parser = clap::value_parser!(u32).range(10_000..=10_000_000))]
    pub shapes: Option<u32>,
    /// Compare with the push model too. THIS WRITES: it makes a database `headwater_bench_push`, and drops it at the end
    ///
    /// The data set in it has so many users (400 if left out), each with 100 messages and 42.9 follows on average, and
    /// a mailbox table for the same follows, of roughly 10,000 rows a user. The account needs all rights on that
    /// database, and the service account the same as on any other. A database of this name that is there already is
    /// left alone, and the bench refuses. It is dropped when the bench ends, fails, or is stopped by SIGINT, SIGTERM or
    /// SIGHUP; SIGKILL leaves it. Everything goes into the binary log.
    #[arg(long, value_name = "USERS", num_args = 0..=1, default_missing_value = "400",
          value_parser = clap::value_parser!(u32).range(50..=10_000))]
    pub push: Option<u32>,
    /// Measure what it costs that somebody looks in: timelines from memory while the admin port is asked for /metrics ten times a second, and
    /// for what the page shows, by timelines while it is not. Needs a service account
    #[arg(long, requires = "service_user", conflicts_with = "proxy")]
    pub admin: bool,
    /// Measure a private MariaDB whose engine Spider spreads the messages over so many data nodes, on this machine: --upstream is not asked
    ///
    /// The data set is the classic one, of 10,000 users with 42.9 follows each. The pages are asked for as on any other server: by the
    /// procedure on the Spider node and through Headwater, which answers by lookups there, and from memory with `--service-user root`.
    /// `setup/spider.sh` gets Spider.
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u8).range(1..=16),
          conflicts_with_all = ["proxy", "push", "shapes", "feed", "writes"])]
    pub spider: Option<u8>,
    /// With --spider: messages of the data set
    #[arg(long, value_name = "N", requires = "spider", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub spread_messages: u32,
    /// Simulation, without a server.
    #[command(flatten)]
    pub simulate: SimulateFlags,
    /// The server's process, where it runs on this machine: what it spends on each answer is measured too
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Write every figure to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a chart of the first page's rates to this file, as SVG
    #[arg(long, value_name = "FILE.svg")]
    pub chart: Option<PathBuf>,
    /// Measure the Headwater that runs there; without it, the bench starts its own on free ports, and stops them
    #[arg(long, value_name = "ADDR")]
    pub proxy: Option<String>,
    /// The service account of the Headwater that the bench starts
    #[command(flatten)]
    pub service: ServiceFlags,
}

impl BenchFlags {
    /// The account that queries.
    #[must_use]
    pub fn user(&self) -> &str {
        self.user.as_deref().unwrap_or_default()
    }

    /// The largest number of connections.
    #[must_use]
    pub fn most_connections(&self) -> usize {
        self.connections
            .iter()
            .copied()
            .max()
            .map_or(1, usize::from)
    }

    /// True if the classic pages are also requested by feed SELECTs.
    #[must_use]
    pub fn classic_feed(&self) -> bool {
        self.feed.as_deref() == Some("")
    }

    /// The feed of the settings file that is measured alone.
    #[must_use]
    pub fn named_feed(&self) -> Option<&str> {
        self.feed.as_deref().filter(|name| !name.is_empty())
    }
}

/// Parses a duration in seconds.
///
/// # Errors
/// The error text says what to write instead.
pub fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "write a number of seconds above 0, such as 3 or 0.5".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct BenchCommandLine {
        #[command(flatten)]
        flags: BenchFlags,
    }

    #[test]
    fn lists_and_fractions_of_seconds_are_understood() {
        let words = "bench --user u --connections 1,2 --pages 3,random --seconds 0.5";
        let BenchCommandLine { flags } =
            BenchCommandLine::try_parse_from(words.split(' ')).unwrap();
        assert_eq!(flags.connections, [1, 2]);
        assert_eq!(flags.pages, [PageDepth::Page(3), PageDepth::Random]);
        assert_eq!(flags.seconds, Duration::from_millis(500));
    }

    #[test]
    fn writes_need_a_flag_and_push_has_a_default_size() {
        let flags = |words: &str| {
            BenchCommandLine::try_parse_from(words.split(' '))
                .unwrap()
                .flags
        };
        let plain = flags("bench --user u");
        assert_eq!((plain.writes, plain.push), (false, None));
        assert_eq!(flags("bench --user u --push --writes").push, Some(400));
        assert_eq!(flags("bench --push 200 --user u").push, Some(200));
    }

    #[test]
    fn a_feed_may_be_named() {
        let flags = |words: &str| {
            BenchCommandLine::try_parse_from(words.split(' '))
                .unwrap()
                .flags
        };
        let plain = flags("bench --user u");
        assert!(!plain.classic_feed() && plain.named_feed().is_none());
        assert!(flags("bench --feed --user u").classic_feed());
        let named = flags("bench --user u --feed home --config a.toml");
        assert_eq!(
            (named.classic_feed(), named.named_feed()),
            (false, Some("home"))
        );
    }

    #[test]
    fn no_connections_and_no_time_are_refused() {
        for words in [
            "bench --user u --connections 0",
            "bench --user u --pages 0",
            "bench --user u --push 0",
            "bench --user u --seconds 0",
            "bench --user u --seconds -1",
            "bench",
        ] {
            assert!(
                BenchCommandLine::try_parse_from(words.split(' ')).is_err(),
                "{words}"
            );
        }
    }
}
