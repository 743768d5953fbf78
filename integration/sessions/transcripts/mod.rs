//! Stories that are transcripts: files under `fixtures/stories`, played on twins. Its README describes their form.
//!
//! A line is a statement, for both sides, whose replies must be equal packet by packet. A line that begins with a colon
//! says something else to do. [`lines`] finds what stands below what, [`story`] unrolls the cases, [`deed`] reads one
//! line, and [`player`] does what it says. A file that is wrong anywhere fails each of its stories.

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

/// A test for each of these stories of a file.
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

/// The files, each with the stories that have a test.
const FILES: &[(&str, &[&str])] = &[
    ("accounts", super::accounts::STORIES),
    ("between", super::between::STORIES),
    ("definitions", super::definitions::STORIES),
    ("leftovers", super::leftovers::STORIES),
    ("prepared", super::prepared::STORIES),
    ("settings", super::settings::STORIES),
    ("several", super::several::STORIES),
    ("spellings", super::spellings::STORIES),
    ("tables", super::tables::STORIES),
    ("transactions", super::transactions::STORIES),
    ("variables", super::variables::STORIES),
];

/// Plays a story of a file on each stage.
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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stories")
}

fn path(file: &str) -> PathBuf {
    folder().join(file).with_extension("txt")
}

#[test]
fn each_story_has_its_test_and_each_test_its_story() {
    for (file, tests) in FILES {
        let stories = read(file);
        let mut names: Vec<&str> = stories.iter().map(|story| story.name.as_str()).collect();
        let mut tests = tests.to_vec();
        names.sort_unstable();
        tests.sort_unstable();
        assert_eq!(names, tests, "{file}");
    }
    let mut texts: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("README.md"))
        .collect();
    let mut files: Vec<PathBuf> = FILES.iter().map(|(file, _)| path(file)).collect();
    texts.sort_unstable();
    files.sort_unstable();
    assert_eq!(texts, files);
}
