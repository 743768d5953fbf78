//! The book: its table of contents has every page, every link resolves, and each alert has its runbook.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// `docs/*.md`, and the pages outside that folder.
fn pages() -> Vec<String> {
    let mut pages = ["README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"]
        .map(|name| format!("{name}.md"))
        .to_vec();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            pages.push(format!("docs/{name}"));
        }
    }
    pages
}

/// Lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// Link targets: the text in `](here)`.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        for (at, _) in line.match_indices("](") {
            let link = line[at + 2..].split(')').next().unwrap();
            links.push(link.to_owned());
        }
    }
    links
}

/// The anchor of each heading of a page: its letters, digits, `-` and `_`, and a number if it is not the first.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |letter: char| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
            _ => None,
        };
        let anchor: String = title.chars().filter_map(kept).collect();
        let taken = (1..).find(|number| !anchors.contains(&numbered(&anchor, *number)));
        anchors.insert(numbered(&anchor, taken.unwrap()));
    }
    anchors
}

fn numbered(anchor: &str, number: usize) -> String {
    match number {
        1 => anchor.to_owned(),
        number => format!("{anchor}-{}", number - 1),
    }
}

/// The path of a link's target from the root.
fn followed(page: &str, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    let folder = Path::new(page).parent().unwrap();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path
}

/// The broken links of a page.
fn dead(page: &str, text: &str) -> Vec<String> {
    let mut dead = Vec::new();
    for link in links(text) {
        if link.contains("://") {
            continue;
        }
        let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = match path {
            "" => PathBuf::from(page),
            path => followed(page, path),
        };
        let is_there = root().join(&target).exists();
        let heading_is_there = anchor.is_empty()
            || is_there && anchors(&read(target.to_str().unwrap())).contains(anchor);
        if !is_there || !heading_is_there {
            dead.push(format!("{page}: {link}"));
        }
    }
    dead
}

#[test]
fn its_table_of_contents_has_every_page_once() {
    let listed = links(&read("docs/SUMMARY.md"));
    let listed: Vec<String> = listed
        .iter()
        .map(|link| {
            followed("docs/SUMMARY.md", link)
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    for page in pages() {
        let times = listed.iter().filter(|listed| **listed == page).count();
        let expected = usize::from(page != "docs/SUMMARY.md");
        assert_eq!(times, expected, "{page} in docs/SUMMARY.md");
    }
}

/// The program's source files.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// References to the documentation in the program's texts: `[page](page.md#heading)`, which is printed as `docs/page.md#heading`, and the
/// latter itself.
fn named(line: &str) -> Vec<String> {
    let mut named = Vec::new();
    let text = line.split_once("//").map_or(line, |(code, _)| code);
    for (at, _) in text.match_indices("](") {
        named.extend(text[at + 2..].split(')').next().map(str::to_owned));
    }
    for (at, _) in text.match_indices("docs/") {
        let ends = |letter: char| !letter.is_ascii_alphanumeric() && !"-_.#".contains(letter);
        let link = text[at + 5..].split(ends).next().unwrap();
        named.push(link.trim_end_matches('.').to_owned());
    }
    named.retain(|link| link.contains(".md") || link.starts_with('#'));
    named
}

/// A reader of a log line has no page open, so a heading alone leads nowhere.
#[test]
fn every_page_that_the_program_names_is_there() {
    let mut files = Vec::new();
    for folder in ["src", "crates", "proxy", "server", "tools", "lab"] {
        sources(&root().join(folder), &mut files);
    }
    let (mut all, mut lost) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // Texts of tests may name pages that do not exist.
        let code = text.split("#[cfg(test)]").next().unwrap();
        for link in code.lines().flat_map(named) {
            all += 1;
            let is_there = !link.starts_with('#')
                && dead("docs/README.md", &format!("[a]({link})")).is_empty();
            if !is_there {
                lost.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    assert!(all > 10, "{all}");
    assert_eq!(
        named("\"see [which](#which-statements)\", // [a](b.md)"),
        ["#which-statements"]
    );
    assert_eq!(
        named("\"docs/security.md#a-b, docs/rows.md.\""),
        ["security.md#a-b", "rows.md"]
    );
}

#[test]
fn every_link_leads_somewhere() {
    let dead: Vec<String> = pages()
        .iter()
        .flat_map(|page| dead(page, &read(page)))
        .collect();
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    for text in [
        "[a](no-such-page.md)",
        "see [a](security.md#no-such-heading)",
        "[a](#nor-here)\n# But here",
    ] {
        assert_eq!(self::dead("docs/README.md", text).len(), 1, "{text}");
    }
    let well = "[a](../README.md#what-you-gain) [b](security.md)\n```\n[c](no.md)\n```\n[d](https://example.org)";
    assert_eq!(self::dead("docs/README.md", well), Vec::<String>::new());
}

#[test]
fn every_alert_has_a_runbook_and_leads_to_it() {
    let alerts = read("ops/alerts.yaml");
    let lines: Vec<&str> = alerts.lines().map(str::trim).collect();
    let all = |key: &str| -> Vec<&str> {
        lines
            .iter()
            .filter_map(|line| line.strip_prefix(key))
            .collect()
    };
    let names = all("- alert: ");
    let runbooks = read("docs/runbooks.md");
    let headings: Vec<&str> = prose(&runbooks)
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    assert_eq!(
        names, headings,
        "each alert has a section of docs/runbooks.md, in the same order"
    );
    let addresses = names.iter().map(|name| {
        let anchor = name.to_lowercase();
        format!("file:///usr/share/doc/headwater/docs/runbooks.md#{anchor}")
    });
    assert_eq!(all("runbook_url: "), addresses.collect::<Vec<_>>());
    let parts = ["**Meaning.**", "**Look.**", "**Do.**"];
    for section in runbooks.split("\n## ").skip(1) {
        for part in parts {
            assert!(section.contains(part), "no {part} in {section}");
        }
    }
}
