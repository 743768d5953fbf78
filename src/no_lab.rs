//! Replaces the laboratory in a build without the cargo feature `lab`, and explains how to get it.

use std::ffi::OsString;

/// Known by name only, so that whoever types one is told more than that there is no such subcommand.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum LabCommand {
    /// The demo, which is not in this build.
    #[command(hide = true, disable_help_flag = true)]
    Demo(Ignored),
    /// The bench, which is not in this build.
    #[command(hide = true, disable_help_flag = true)]
    Bench(Ignored),
    /// What writes the manual, which is not in this build.
    #[command(hide = true, disable_help_flag = true)]
    Manual(Ignored),
}

/// Whatever flags were given.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Ignored {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

/// There is no laboratory.
#[derive(Debug, thiserror::Error)]
#[error(
    "this build has no `{0}`: it was made without the cargo feature `lab`; build Headwater with its default features (`cargo build --release`)"
)]
pub(crate) struct LabError(&'static str);

/// Fails: the subcommand is not in this build.
///
/// # Errors
/// Always.
pub(crate) async fn run(command: LabCommand, _: clap::Command) -> Result<(), LabError> {
    Err(LabError(match command {
        LabCommand::Demo(_) => "demo",
        LabCommand::Bench(_) => "bench",
        LabCommand::Manual(_) => "manual",
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(subcommand)]
        command: LabCommand,
    }

    #[tokio::test]
    async fn a_build_without_laboratory_says_how_to_get_one() {
        for (arguments, name) in [
            (&["headwater", "demo", "--users", "10"][..], "demo"),
            (&["headwater", "bench", "--help"], "bench"),
            (&["headwater", "bench", "--", "x"], "bench"),
            (&["headwater", "manual", "x"], "manual"),
        ] {
            let command = Arguments::try_parse_from(arguments).unwrap().command;
            let said = run(command, clap::Command::new("headwater"))
                .await
                .unwrap_err()
                .to_string();
            assert!(said.contains(&format!("no `{name}`")), "{said}");
            assert!(said.contains("--release"), "{said}");
        }
    }

    #[test]
    fn and_its_help_names_none() {
        let help = Arguments::try_parse_from(["headwater", "--help"])
            .err()
            .unwrap()
            .to_string();
        assert!(!help.contains("demo") && !help.contains("bench"), "{help}");
    }
}
