//! Reports for people: plain text, a heading for each part, and errors with their causes.

use std::error::Error;
use std::fmt::Write as _;

/// What failed, and why: an error and those that led to it, with colons between.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// What a report is written with.
pub(crate) trait Report {
    /// All that was written so far.
    fn text(&mut self) -> &mut String;

    /// The server that was looked at: what every report begins with.
    fn server(&mut self, named: &str, upstream: &str) {
        self.line("Server");
        self.item(&format!("{named} at {upstream}"));
    }

    /// Begins a part.
    fn part(&mut self, heading: &str) {
        self.line("");
        self.line(heading);
    }

    /// A line within a part.
    fn item(&mut self, text: &str) {
        self.line(&format!("    {text}"));
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text(), "{text}");
    }
}
