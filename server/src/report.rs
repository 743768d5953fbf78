//! Reports for people: plain text with a heading for each part, and errors with their causes.

use std::error::Error;
use std::fmt::Write as _;

use headwater_sql::escape_hidden;

/// An error and its causes, joined by colons. A cause that the text contains already is not repeated.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        cause = error.source();
    }
    text
}

/// Writes a report.
pub trait ReportWriter {
    /// The text written so far.
    fn text(&mut self) -> &mut String;

    /// The server: every report begins with it.
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

    /// Writes one line; escapes hidden characters in it.
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text(), "{}", escape_hidden(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain(String);

    impl ReportWriter for Plain {
        fn text(&mut self) -> &mut String {
            &mut self.0
        }
    }

    #[test]
    fn no_text_forges_a_line_of_a_report() {
        let mut report = Plain(String::new());
        let name = "app\nFORGED\r\u{1b}[31m\u{9b}\u{202e}";
        report.part(name);
        report.item(name);
        let escaped = r"app\nFORGED\r\u{1b}[31m\u{9b}\u{202e}";
        assert_eq!(report.0, format!("\n{escaped}\n    {escaped}\n"));
    }
}
