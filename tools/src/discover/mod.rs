//! `headwater discover`: which SELECTs of an app are feeds, the settings section for each, and the obstacles of the rest.
//!
//! Statements come from the server's digests (`digests`), or are observed while relayed (`relay_listener`). `classification` reads the
//! tables that they name and asks [`headwater_feed::feed_proposal`] about each. `feed_groups` groups the proposals and checks them as
//! `headwater check` does. Nothing is changed.

mod classification;
mod digests;
mod feed_groups;
mod flags;
mod relay_listener;
mod report;
mod request_file;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::check::{self, CheckError, ProposedFeedCheck};
use futures_util::future::LocalBoxFuture;
use headwater_feed::digest;
use headwater_feed::tally::StatementStats;
use headwater_server::config::ServeSettings;
use headwater_server::server::ServeError;

pub use flags::{DiscoverFlags, StatementSource};
use report::DiscoverReport;

/// Why discovery failed.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// No service account is set.
    #[error(
        "the server is asked by the service account: name it (--service-user, HEADWATER_SERVICE_USER, service.user); `headwater check` \
         prints the statements that make one"
    )]
    NoAccount,
    /// The server cannot be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The server refuses a query.
    #[error("the server refuses a question of the service account: {0}")]
    Refused(String),
    /// The server counts no statements.
    #[error(
        "the server counts no statements: performance_schema is OFF. Set performance_schema = ON in the server's own settings file and \
         restart it; or have your app connect to Headwater for a while: headwater discover --listen 127.0.0.1:3307"
    )]
    Off,
    /// The account may not read the server's digests.
    #[error(
        "the service account may not read which statements there are: GRANT SELECT ON performance_schema.* TO {account}; or have your \
         app connect to Headwater for a while: headwater discover --listen 127.0.0.1:3307"
    )]
    Denied {
        /// As in a GRANT.
        account: String,
    },
    /// The listener cannot be opened.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The request cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Signals cannot be received.
    #[error("cannot wait for Ctrl-C")]
    Signal(#[source] std::io::Error),
}

/// Statements, with notes on their source.
#[derive(Debug)]
struct StatementSurvey {
    /// What was read, and what was not: a line each.
    notes: Vec<String>,
    /// By total time, descending.
    statements: Vec<DiscoveredStatement>,
}

/// A statement as observed.
#[derive(Debug)]
struct DiscoveredStatement {
    seen: StatementStats,
    /// The text is a digest's, whose names must be resolved.
    is_digest: bool,
}

impl DiscoveredStatement {
    /// Words that are the same literal each time: of a digest, nothing is known.
    fn constants(&self) -> BTreeSet<usize> {
        match self.is_digest {
            true => BTreeSet::new(),
            false => self.seen.constants(),
        }
    }

    /// The text to classify, given its database's tables.
    fn text(&self, tables: &[String]) -> Option<String> {
        match self.is_digest {
            true => digest::statement(&self.seen.text, tables),
            false => Some(self.seen.text.clone()),
        }
    }
}

/// Discovers feeds, and writes the findings to `text`.
///
/// # Errors
/// When the server cannot be queried, or no client can connect.
///
/// Boxed, so that no other package compiles it again.
pub fn run<'r>(
    settings: &'r ServeSettings,
    source: StatementSource,
    request_file: Option<&'r Path>,
    text: &'r mut String,
) -> LocalBoxFuture<'r, Result<(), DiscoverError>> {
    Box::pin(discover_feeds(settings, source, request_file, text))
}

async fn discover_feeds(
    settings: &ServeSettings,
    source: StatementSource,
    request_file: Option<&Path>,
    text: &mut String,
) -> Result<(), DiscoverError> {
    let service = settings.service.as_ref().ok_or(DiscoverError::NoAccount)?;
    let settings = &check::primary_settings(settings).await?;
    // Before listening, so that errors show at once.
    let mut server = ProposedFeedCheck::connect(settings, service).await?;
    let statements = match source {
        StatementSource::Digests => digests::read(&mut server).await?,
        StatementSource::Listen { seconds } => {
            let listened = relay_listener::count_selects(settings, seconds).await?;
            // The old connection may have been idle for too long.
            server = ProposedFeedCheck::connect(settings, service).await?;
            listened
        }
    };
    // Only who listens has a file to write.
    let mut seen: Vec<StatementStats> = Vec::new();
    if request_file.is_some() {
        let each = statements.statements.iter();
        seen.extend(each.map(|statement| statement.seen.clone()));
    }
    let summary =
        classification::classify_statements(&mut server, settings, statements.statements).await?;
    let mut report = DiscoverReport::new(text);
    report.write(settings, &server, &statements.notes, &summary);
    if let Some(path) = request_file {
        let lines = summary.feeds.iter().find_map(|feed| {
            let database = feed.databases.first()?;
            request_file::request_lines(&feed.definition, database, &seen)
        });
        let written = match lines {
            Some(lines) => std::fs::write(path, lines.join("\n") + "\n").map(|()| true),
            None => Ok(false),
        };
        let written = written.map_err(|source| DiscoverError::Write {
            path: path.to_owned(),
            source,
        })?;
        report.request(path, written);
    }
    Ok(())
}
