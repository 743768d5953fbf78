//! The settings file.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::admin::AdminSection;
use super::error::ConfigError;
use super::memory::MemorySection;
use super::sections::{
    FeedsSection, LogSection, PrivilegesSection, ProxyProtocolSection, RedirectPolicy,
    ServiceSection, ShadowSection, TakeoverSection,
};
use super::upstream::{ListenerSection, UpstreamList};
use headwater_feed::FeedDefinition;
use headwater_proxy::binlog::{BinlogSection, FreshnessSection, IndexSection, RowsSection};
use headwater_proxy::limits::ProcessLimits;
use headwater_proxy::tls::{TlsSection, UpstreamTlsSection};
use headwater_proxy::upstreams::FailoverSection;
use headwater_session::compression_frames::CompressionPolicy;
use headwater_timeline::definition::TimelineDefinition;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConfigFile {
    pub(super) listen: Option<String>,
    pub(super) socket: Option<PathBuf>,
    pub(super) upstream: Option<UpstreamList>,
    pub(super) failover: FailoverSection,
    pub(super) listener: Vec<ListenerSection>,
    pub(super) accelerate: Option<bool>,
    pub(super) threads: Option<usize>,
    pub(super) service: Option<ServiceSection>,
    pub(super) log: LogSection,
    pub(super) proxy_protocol: ProxyProtocolSection,
    pub(super) tls: TlsSection,
    pub(super) upstream_tls: UpstreamTlsSection,
    pub(super) redirect_url: RedirectPolicy,
    pub(super) compression: CompressionPolicy,
    pub(super) limits: ProcessLimits,
    pub(super) memory: MemorySection,
    pub(super) index: IndexSection,
    pub(super) rows: RowsSection,
    pub(super) freshness: FreshnessSection,
    pub(super) binlog: BinlogSection,
    pub(super) feed: FeedSections,
    pub(super) feeds: FeedsSection,
    pub(super) privileges: PrivilegesSection,
    pub(super) shadow: ShadowSection,
    pub(super) admin: AdminSection,
    pub(super) takeover: TakeoverSection,
    pub(super) definition: Vec<TimelineDefinition>,
}

/// Every `[[feed]]`. The section `[feed]` once held the settings of the binary log; it yields an error that says what to write.
#[derive(Debug, Default)]
pub(super) struct FeedSections(pub(super) Vec<FeedDefinition>);

impl<'de> Deserialize<'de> for FeedSections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FeedSections, D::Error> {
        deserializer.deserialize_any(FeedSectionsVisitor)
    }
}

struct FeedSectionsVisitor;

impl<'de> Visitor<'de> for FeedSectionsVisitor {
    type Value = FeedSections;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sections [[feed]]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sections: A) -> Result<FeedSections, A::Error> {
        let mut feeds = Vec::new();
        while let Some(feed) = sections.next_element()? {
            feeds.push(feed);
        }
        Ok(FeedSections(feeds))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<FeedSections, A::Error> {
        Err(A::Error::custom(
            "a feed is written [[feed]], with two brackets; the section about the server's binary log is called binlog now: write \
             [binlog] in place of [feed], its keys are the same",
        ))
    }
}

pub(super) fn read(path: &Path) -> Result<ConfigFile, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| parse_error(path, &text, &error))
}

/// The parser's own text takes several lines and shows the value, which may be a password.
fn parse_error(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count();
    let on_line = text.lines().nth(line).unwrap_or_default().trim();
    let section_of = |line: &str| line.trim().trim_matches(['[', ']']).to_owned();
    let setting = if on_line.starts_with('[') {
        section_of(on_line)
    } else {
        let key = on_line.split('=').next().unwrap_or_default().trim();
        match text
            .lines()
            .take(line)
            .filter(|line| line.trim().starts_with('['))
            .last()
        {
            Some(section) => format!("{}.{key}", section_of(section)),
            None => key.to_owned(),
        }
    };
    let constant = CONSTANTS.iter().find(|(name, _)| *name == setting);
    ConfigError::Parse {
        path: path.to_owned(),
        line: line + 1,
        setting,
        message: match constant {
            Some((_, value)) => format!("it is {value}, and no setting any more: remove the line"),
            None => in_plain_words(&error.message().replace('\n', " ")),
        },
    }
}

/// What once was a setting, with its value.
const CONSTANTS: [(&str, &str); 5] = [
    (
        "listen_backlog",
        "as long as the system allows (net.core.somaxconn)",
    ),
    ("limits.in_flight", "64"),
    ("limits.statements", "1000"),
    ("limits.authors", "65536"),
    ("limits.follow_edges", "1000000"),
];

/// The parser names types in Rust's words.
const PLAIN_WORDS: [(&str, &str); 11] = [
    ("expected usize", "expected a whole number from 0"),
    ("expected u64", "expected a whole number from 0"),
    ("expected u32", "expected a whole number from 0"),
    ("expected u16", "expected a whole number from 0"),
    ("expected u8", "expected a whole number from 0"),
    ("expected f64", "expected a number"),
    ("expected a boolean", "expected true or false"),
    // For a setting with a fixed set of words.
    (
        "wanted string or table",
        "expected one of its words, in quotes (headwater.example.toml lists them)",
    ),
    ("expected a sequence", "expected a list in brackets"),
    ("expected path string", "expected a path in quotes"),
    ("expected a string", "expected text in quotes"),
];

fn in_plain_words(message: &str) -> String {
    let translation = PLAIN_WORDS
        .iter()
        .find(|(types, _)| message.ends_with(types));
    let Some((types, plain)) = translation else {
        // "expected struct Limits", "expected struct Limits with 13 elements"
        return match message.split_once("expected struct ") {
            Some((front, _)) => format!("{front}expected a section"),
            None => message.to_owned(),
        };
    };
    let front = message.strip_suffix(types).unwrap_or(message);
    format!("{front}{plain}")
}
