//! `headwater discover`: which SELECTs of an app are feeds, the section of the settings that has each be narrowed, and what stands in
//! the way of the rest.
//!
//! Statements come from the server's digests (`digests`), or are seen as they go by (`listen`). `judge` looks at the tables that they
//! name and asks [`crate::feed::feed_proposal`] about each; what is proposed is put together (`grouped`) and checked as `headwater check`
//! does. Nothing is changed.

mod classification;
mod digests;
mod feed_groups;
mod flags;
mod relay_listener;
mod report;

use crate::check::{self, CheckError, ProposedFeedCheck};
use crate::config::ServeSettings;
use crate::feed::digest;
use crate::feed::tally::StatementStats;
use crate::server::ServeError;

pub use flags::{DiscoverFlags, StatementSource};
use report::DiscoverReport;

/// Why feeds cannot be looked for.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// There is nobody to ask with.
    #[error(
        "the server is asked by the service account: name it (--service-user, HEADWATER_SERVICE_USER, service.user); `headwater check` \
         prints the statements that make one"
    )]
    NoAccount,
    /// The server cannot be looked at.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The server refuses a question.
    #[error("the server refuses a question of the service account: {0}")]
    Refused(String),
    /// The server counts no statements.
    #[error(
        "the server counts no statements: performance_schema is OFF. Set performance_schema = ON in the server's own settings file and \
         restart it; or have your app connect to Headwater for a while: headwater discover --listen 127.0.0.1:3307"
    )]
    Off,
    /// The account may not read what the server counts.
    #[error(
        "the service account may not read which statements there are: GRANT SELECT ON performance_schema.* TO {account}; or have your \
         app connect to Headwater for a while: headwater discover --listen 127.0.0.1:3307"
    )]
    Denied {
        /// As in a GRANT.
        account: String,
    },
    /// No client can be taken.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Signals cannot be heard.
    #[error("cannot wait for Ctrl-C")]
    Signal(#[source] std::io::Error),
}

/// Statements that were found, and where.
#[derive(Debug)]
struct StatementSurvey {
    /// What was looked at, and what was not: a line each.
    notes: Vec<String>,
    /// The most time first.
    statements: Vec<DiscoveredStatement>,
}

/// A statement as it was found.
#[derive(Debug)]
struct DiscoveredStatement {
    seen: StatementStats,
    /// The text is that of a digest, whose names have to be looked up.
    is_digest: bool,
}

impl DiscoveredStatement {
    /// The text that can be judged, where its database has these tables.
    fn text(&self, tables: &[String]) -> Option<String> {
        match self.is_digest {
            true => digest::statement(&self.seen.text, tables),
            false => Some(self.seen.text.clone()),
        }
    }
}

/// Looks for feeds, and writes what is found to `text`.
///
/// # Errors
/// When the server cannot be asked, or no client can be taken.
pub async fn run(
    settings: &ServeSettings,
    source: StatementSource,
    text: &mut String,
) -> Result<(), DiscoverError> {
    let service = settings.service.as_ref().ok_or(DiscoverError::NoAccount)?;
    let settings = &check::primary_settings(settings).await?;
    // Before the time of listening: what is wrong is known at once.
    let mut server = ProposedFeedCheck::connect(settings, service).await?;
    let statements = match source {
        StatementSource::Digests => digests::read(&mut server).await?,
        StatementSource::Listen { seconds } => {
            let heard = relay_listener::count_selects(settings, seconds).await?;
            // The connection may have been idle for longer than the server likes.
            server = ProposedFeedCheck::connect(settings, service).await?;
            heard
        }
    };
    let judged =
        classification::classify_statements(&mut server, settings, statements.statements).await?;
    DiscoverReport::new(text).write(settings, &server, &statements.notes, &judged);
    Ok(())
}
