//! The flags of `headwater verify`: those of `serve`, and what is compared, how fast, and as whom.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use headwater_proxy::feeds::FeedDiscoveryMode;
use headwater_proxy::link::is_path;
use headwater_server::config::{ConfigError, ServeFlags, ServeSettings, ServiceSection, secret};

/// Flags of `headwater verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyFlags {
    #[command(flatten)]
    #[allow(missing_docs)]
    serve: ServeFlags,
    /// Address where Headwater takes clients, or the path of its socket [default: that of `listen`]
    #[arg(long, value_name = "ADDR", help_heading = HEADING)]
    headwater: Option<String>,
    /// Account that asks through Headwater [default: the service account]
    #[arg(long, env = "HEADWATER_VERIFY_USER", value_name = "USER", help_heading = HEADING)]
    user: Option<String>,
    /// Its password; may be empty. Prefer the environment: flags are visible to others
    #[arg(
        long,
        env = "HEADWATER_VERIFY_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true,
        num_args = 0..=1,
        default_missing_value = "",
        requires = "user",
        help_heading = HEADING
    )]
    password: Option<String>,
    /// File with that password
    #[arg(
        long,
        env = "HEADWATER_VERIFY_PASSWORD_FILE",
        value_name = "FILE",
        conflicts_with = "password",
        requires = "user",
        help_heading = HEADING
    )]
    password_file: Option<PathBuf>,
    /// Whose pages: 1000: of so many readers, from the lowest id to the highest; 5%: of that share; 7,8,9: of these (one alone
    /// with a comma behind it: 7,) [default: of all]
    #[arg(long, value_name = "N|N%|LIST", help_heading = HEADING, allow_hyphen_values = true)]
    readers: Option<ReaderSelection>,
    /// Only the definitions and feeds of these names
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = HEADING)]
    only: Vec<String>,
    /// Answers that are compared in a second, at most
    #[arg(
        long,
        value_name = "PER_SECOND",
        default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..=100_000),
        help_heading = HEADING
    )]
    rate: u32,
    /// Stop when the server takes so many times as long as it took at first; 0: never
    #[arg(
        long,
        value_name = "TIMES",
        default_value_t = 4.0,
        value_parser = parse_times,
        help_heading = HEADING
    )]
    stop_when_slower: f64,
}

const HEADING: &str = "What is compared";

/// Options of `verify`, beside the settings of `serve`.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    pub(super) headwater: String,
    /// The account to log in with there; `None`: the service account.
    pub(super) user: Option<ServiceSection>,
    pub(super) readers: ReaderSelection,
    /// Names of definitions and feeds; empty: all of them.
    pub(super) only: Vec<String>,
    pub(super) rate: u32,
    /// `None`: never stop for a slower server.
    pub(super) max_slowdown: Option<f64>,
}

/// The readers whose pages are compared.
#[derive(Clone, Debug, PartialEq)]
pub enum ReaderSelection {
    /// All readers.
    All,
    /// This many, spread over all.
    Count(u64),
    /// This share of them, from 0 to 1.
    Share(f64),
    /// These readers.
    List(Vec<i128>),
}

impl FromStr for ReaderSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is neither a number of readers (1000), nor a share of them (5%), nor a list of their ids (7,8,9; one alone: 7,)"
            )
        };
        if let Some(share) = text.strip_suffix('%') {
            let share: f64 = share.trim().parse().map_err(|_| wrong())?;
            return match share > 0.0 && share <= 100.0 {
                true => Ok(ReaderSelection::Share(share / 100.0)),
                false => Err(wrong()),
            };
        }
        if text.contains(',') {
            let ids = text
                .split(',')
                .map(str::trim)
                .filter(|id| !id.is_empty())
                .map(|id| id.parse().map_err(|_| wrong()));
            let ids: Vec<i128> = ids.collect::<Result<_, _>>()?;
            return match ids.is_empty() {
                true => Err(wrong()),
                false => Ok(ReaderSelection::List(ids)),
            };
        }
        match text.trim().parse() {
            Ok(count) if count > 0 => Ok(ReaderSelection::Count(count)),
            _ => Err(wrong()),
        }
    }
}

fn parse_times(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times == 0.0 || (times > 1.0 && times.is_finite()) => Ok(times),
        _ => Err("a number above 1, or 0".to_owned()),
    }
}

impl VerifyFlags {
    /// The settings of `serve`, and what is compared.
    ///
    /// # Errors
    /// As [`headwater_server::config::ServeSettings::load`]; when the password file cannot be read, or `--only` names nothing known.
    pub fn settings(&self) -> Result<(ServeSettings, VerifyOptions), ConfigError> {
        let settings = ServeSettings::load(&self.serve)?;
        let (password, path) = (self.password.clone(), self.password_file.clone());
        let password = secret("password-file", password, path)?;
        // Discovered feeds get their names later.
        let known = match settings.narrow.auto {
            FeedDiscoveryMode::On => &[][..],
            FeedDiscoveryMode::Off | FeedDiscoveryMode::Suggest => &self.only[..],
        };
        for name in known {
            let definition = settings.definitions.iter().any(|it| it.name == *name);
            let feed = settings.feeds.iter().any(|it| it.name == *name);
            if !definition && !feed {
                return Err(ConfigError::NoSuch { name: name.clone() });
            }
        }
        let headwater = self.headwater.clone();
        let headwater = headwater.unwrap_or_else(|| reachable(&settings.listen));
        let port = headwater.rsplit_once(':').map(|(_, port)| port);
        let has_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if !has_port && !is_path(&headwater) {
            return Err(ConfigError::Address {
                setting: "--headwater",
                value: headwater,
            });
        }
        let options = VerifyOptions {
            headwater,
            user: self.user.clone().map(|user| ServiceSection {
                user,
                password: password.unwrap_or_default(),
            }),
            readers: self.readers.clone().unwrap_or(ReaderSelection::All),
            only: self.only.clone(),
            rate: self.rate,
            max_slowdown: (self.stop_when_slower > 0.0).then_some(self.stop_when_slower),
        };
        Ok((settings, options))
    }
}

impl VerifyOptions {
    /// True if a definition or feed of this name is included.
    pub(super) fn includes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|included| included == name)
    }
}

/// A wildcard address is reached at this machine's loopback address.
fn reachable(listen: &str) -> String {
    match listen.rsplit_once(':') {
        Some(("0.0.0.0" | "*" | "", port)) => format!("127.0.0.1:{port}"),
        Some(("[::]", port)) => format!("[::1]:{port}"),
        _ => listen.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_a_number_a_share_or_a_list() {
        let read = |text: &str| text.parse::<ReaderSelection>();
        assert_eq!(read("1000"), Ok(ReaderSelection::Count(1_000)));
        assert_eq!(read("5%"), Ok(ReaderSelection::Share(0.05)));
        assert_eq!(read("7,"), Ok(ReaderSelection::List(vec![7])));
        assert_eq!(read("7, -8"), Ok(ReaderSelection::List(vec![7, -8])));
        for wrong in ["", "0", "-1", "x", "0%", "101%", ",", "7,x", "1.5", "NaN%"] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("7,8,9"), "{wrong}: {error}");
        }
    }

    #[test]
    fn it_is_reached_where_it_listens() {
        assert_eq!(reachable("0.0.0.0:3307"), "127.0.0.1:3307");
        assert_eq!(reachable("[::]:3307"), "[::1]:3307");
        assert_eq!(reachable("10.0.0.1:3307"), "10.0.0.1:3307");
    }

    #[test]
    fn slower_is_more_than_once_or_never() {
        assert_eq!(parse_times("0"), Ok(0.0));
        assert_eq!(parse_times("2.5"), Ok(2.5));
        for wrong in ["1", "0.5", "-2", "x", "inf", "NaN"] {
            assert!(parse_times(wrong).is_err(), "{wrong}");
        }
    }
}
