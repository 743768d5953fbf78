//! Scenarios as transcripts: files under `fixtures/stories`, played on twins. Their README describes the form.
//!
//! A line is a statement for both sides, whose replies must be equal packet by packet. A line that begins with a colon
//! is another action. [`lines`] nests the lines by indentation, [`story`] unrolls the cases, [`deed`] parses one
//! line, and [`player`] executes it. A file with any error fails each of its scenarios.

mod deed;
mod lines;
mod player;
mod story;
#[cfg(test)]
mod tests;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use self::story::{Story, parse};
use super::stage::on_each_stage;

/// Defines a test for each of these scenarios of a file.
macro_rules! stories {
    ($file:literal: $($name:ident),+ $(,)?) => {
        pub(super) const STORIES: &[&str] = &[$(stringify!($name)),+];
        $(
            #[test]
            fn $name() {
                crate::sessions::transcripts::tell($file, stringify!($name));
            }
        )+
    };
}
pub(super) use stories;

/// Plays a scenario of a file on each stage.
#[track_caller]
pub(super) fn tell(file: &str, name: &str) {
    let stories = read(file);
    let found = stories.iter().find(|story| story.name == name);
    let story = found.unwrap_or_else(|| panic!("no story {name} in {file}.txt"));
    on_each_stage(|stage| player::play(stage, file, story));
}

#[track_caller]
fn read(file: &str) -> Vec<Story> {
    let text = fs::read_to_string(path(file)).unwrap();
    parse(&text).unwrap_or_else(|fault| panic!("fixtures/stories/{file}.txt:{fault}"))
}

/// The names of a file's scenarios.
#[track_caller]
pub(super) fn names(file: &str) -> Vec<String> {
    let stories = read(file).into_iter();
    stories.map(|story| story.name).collect()
}

/// The folder of the files.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stories")
}

/// The path of a file.
pub(super) fn path(file: &str) -> PathBuf {
    folder().join(file).with_extension("txt")
}
