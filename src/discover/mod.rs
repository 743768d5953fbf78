//! `headwater discover`: which SELECTs of an app are feeds, the section of the settings that has each be narrowed, and what stands in
//! the way of the rest.
//!
//! Statements come from the server's digests (`digests`), or are seen as they go by (`listen`). `judge` looks at the tables that they
//! name and asks [`crate::feed::propose`] about each; what is proposed is put together (`grouped`) and checked as `headwater check`
//! does. Nothing is changed.

mod digests;
mod flags;
mod grouped;
mod judge;
mod listen;
mod report;

use crate::check::{self, CheckError, Proposed};
use crate::config::Settings;
use crate::feed::digest;
use crate::feed::tally::Seen;
use crate::server::ServeError;

pub use flags::{DiscoverFlags, Source};
use report::Findings;

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
struct Statements {
    /// What was looked at, and what was not: a line each.
    about: Vec<String>,
    /// The most time first.
    seen: Vec<Statement>,
}

/// A statement as it was found.
#[derive(Debug)]
struct Statement {
    seen: Seen,
    /// The text is that of a digest, whose names have to be looked up.
    digest: bool,
}

impl Statement {
    /// The text that can be judged, where its database has these tables.
    fn text(&self, tables: &[String]) -> Option<String> {
        match self.digest {
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
    settings: &Settings,
    source: Source,
    text: &mut String,
) -> Result<(), DiscoverError> {
    let service = settings.service.as_ref().ok_or(DiscoverError::NoAccount)?;
    let settings = &check::of_primary(settings).await?;
    // Before the time of listening: what is wrong is known at once.
    let mut server = Proposed::connect(settings, service).await?;
    let statements = match source {
        Source::Digests => digests::read(&mut server).await?,
        Source::Listen { seconds } => {
            let heard = listen::hear(settings, seconds).await?;
            // The connection may have been idle for longer than the server likes.
            server = Proposed::connect(settings, service).await?;
            heard
        }
    };
    let judged = judge::judge(&mut server, settings, statements.seen).await?;
    Findings::new(text).write(settings, &server, &statements.about, &judged);
    Ok(())
}
