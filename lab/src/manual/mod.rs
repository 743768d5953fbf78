//! `headwater manual FOLDER`: writes the files that a package ships with the program, and the book's page of settings, from the code, so
//! that they agree with the program.
//!
//! A hidden subcommand of the feature `lab`: a program in production does not need it.

mod settings;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand as _;
use clap_complete::Shell;
use clap_mangen::Man;

use headwater_server::version;

/// The manual's section of administrators' programs.
const SECTION: &str = "8";

/// Flags of `headwater manual`.
#[derive(Debug, Clone, clap::Args)]
pub struct ManualFlags {
    /// Folder to write into: manual pages into `man`, completions into `completions`, and settings.md
    folder: PathBuf,
}

/// Why the manual was not written.
#[derive(Debug, thiserror::Error)]
pub enum ManualError {
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The command line has no `serve` to take flags from.
    #[error("the command line has no `serve`")]
    NoServe,
}

/// Writes all files.
///
/// # Errors
/// A file cannot be written.
pub fn write(flags: &ManualFlags, program: &clap::Command) -> Result<(), ManualError> {
    let program = production_command(program);
    let (man, completions) = (flags.folder.join("man"), flags.folder.join("completions"));
    for folder in [&man, &completions] {
        fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    }
    pages(&man, &program)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut program.clone(), "headwater", &completions)
            .map_err(|source| failed(&completions, source))?;
    }
    let serve = program.find_subcommand("serve");
    let serve = serve.ok_or(ManualError::NoServe)?;
    save(
        &flags.folder.join("settings.md"),
        settings::page(serve).as_bytes(),
    )
}

/// The command line without the laboratory's subcommands.
fn production_command(program: &clap::Command) -> clap::Command {
    let lab = super::LabCommand::augment_subcommands(clap::Command::new("lab"));
    let mut shown = clap::Command::new("headwater").version(version::NUMBER);
    if let Some(about) = program.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(about) = program.get_long_about() {
        shown = shown.long_about(about.clone());
    }
    let subcommands = program.get_subcommands();
    let subcommands =
        subcommands.filter(|command| lab.find_subcommand(command.get_name()).is_none());
    shown.subcommands(subcommands.cloned())
}

/// Writes `headwater.8`, and a page for each subcommand.
fn pages(folder: &Path, program: &clap::Command) -> Result<(), ManualError> {
    let mut program = program.clone().disable_help_subcommand(true);
    program.build();
    let subcommands = program.get_subcommands().cloned();
    for command in std::iter::once(program.clone()).chain(subcommands) {
        let name = command
            .get_display_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let page = Man::new(command.version(version::NUMBER))
            .section(SECTION)
            .source(format!("Headwater {}", version::NUMBER))
            .manual("Headwater");
        let path = folder.join(format!("{name}.{SECTION}"));
        let mut text = Vec::new();
        page.render(&mut text)
            .map_err(|source| failed(&path, source))?;
        save(&path, &text)?;
    }
    Ok(())
}

fn save(path: &Path, text: &[u8]) -> Result<(), ManualError> {
    fs::write(path, text).map_err(|source| failed(path, source))
}

fn failed(path: &Path, source: io::Error) -> ManualError {
    ManualError::Write {
        path: path.to_owned(),
        source,
    }
}
