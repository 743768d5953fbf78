//! `headwater check`: its findings, its report and its exit status.

mod feeds;
mod machine;
mod rights;
mod server;
mod settings;
mod timelines;

use std::net::SocketAddr;

use crate::kit::proxy::{headwater, settings_file};

/// A parsed report.
#[derive(Debug)]
pub(crate) struct Checked {
    status: i32,
    pub(crate) report: String,
    said: String,
}

/// Runs `check` on this server with a settings file and further flags.
#[track_caller]
pub(crate) fn check(server: SocketAddr, settings: &str, flags: &[&str]) -> Checked {
    let (_folder, path) = settings_file(settings);
    let output = headwater(&[])
        .args([
            "check",
            "--upstream",
            &server.to_string(),
            "--config",
            &path,
        ])
        .args(flags)
        // Any free port: another process may listen on the default one.
        .args(if flags.contains(&"--listen") {
            &[][..]
        } else {
            &["--listen", "127.0.0.1:0"]
        })
        .output()
        .unwrap();
    let checked = Checked {
        status: output.status.code().unwrap(),
        report: String::from_utf8(output.stdout).unwrap(),
        said: String::from_utf8(output.stderr).unwrap(),
    };
    // Visible only if the test fails.
    eprintln!("{}{}", checked.report, checked.said);
    checked
}

/// Settings of the classic timeline in one database only.
fn only_in(database: &str) -> String {
    format!("[[definition]]\ndatabase = \"{database}\"\n")
}

impl Checked {
    /// The lines under the heading with this prefix.
    #[track_caller]
    fn part(&self, heading: &str) -> Vec<&str> {
        let mut lines = self.report.lines();
        assert!(
            lines.any(|line| line.starts_with(heading)),
            "no {heading:?} in:\n{}",
            self.report
        );
        lines
            .take_while(|line| !line.is_empty())
            .map(str::trim)
            .collect()
    }

    /// The GRANT statements without the text after them.
    #[track_caller]
    fn grants(&self) -> Vec<String> {
        let lines = self.part("Grants that the service account");
        let statement = |line: &str| line.split(';').next().unwrap().to_owned();
        lines.into_iter().map(statement).collect()
    }

    /// The marked statements.
    #[track_caller]
    fn missing(&self) -> Vec<String> {
        let lines = self.part("Grants that the service account");
        let missing = lines.into_iter().filter(|line| line.contains("-- missing"));
        missing
            .map(|line| line.split(';').next().unwrap().to_owned())
            .collect()
    }

    /// One word for each call.
    #[track_caller]
    fn words(&self) -> Vec<&str> {
        let lines = self.part("Timelines");
        let calls = lines.into_iter().filter(|line| line.starts_with("CALL "));
        calls
            .map(|line| line.split_whitespace().nth(2).unwrap())
            .collect()
    }

    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        assert!(
            self.report.contains(text),
            "no {text:?} in:\n{}",
            self.report
        );
    }
}
