//! Every scenario of a file has a test, and every file has a module.

use std::fs;
use std::path::PathBuf;

use super::transcripts::{folder, names, path};

/// The files, each with the scenarios that have a test.
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

#[test]
fn each_story_has_its_test_and_each_test_its_story() {
    for (file, tests) in FILES {
        let mut names = names(file);
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
