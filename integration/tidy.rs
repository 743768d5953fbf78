//! The project's structure: imports point inward, the inner ring does no IO, files stay small.

use std::fs;
use std::path::{Path, PathBuf};

const MAX_LINES: usize = 800;

/// Packages under `crates/`, each with its allowed imports.
const PURE: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("sql", &[]),
    ("timeline", &["sql"]),
    ("rows", &["timeline", "wire"]),
    ("feed", &["rows", "sql", "timeline"]),
    ("cluster", &["timeline"]),
    ("log", &["sql", "timeline", "wire"]),
    ("statement", &["sql", "timeline", "wire"]),
    ("lookup", &["sql", "statement", "timeline", "wire"]),
    (
        "session",
        &[
            "feed",
            "lookup",
            "rows",
            "sql",
            "statement",
            "timeline",
            "wire",
        ],
    ),
];

/// Crates that do IO or wait.
const IO_CRATES: &[&str] = &[
    "tokio",
    "mio",
    "nix",
    "rustix",
    "socket2",
    "rustls",
    "mysql_async",
    "libc",
    "futures",
    "hyper",
];

/// Modules of ring 0 and of ring 1; all others are ring 2. The longest matching prefix of a path decides.
const RINGS: &[(&str, u8)] = &[
    ("wire", 0),
    ("sql", 0),
    ("statement", 0),
    ("timeline", 0),
    ("limits", 0),
    ("latency", 0),
    ("feed", 0),
    ("feeds", 1),
    ("lookup", 0),
    ("session", 1),
    ("link", 1),
    ("tls", 1),
    ("backend", 1),
    ("account", 1),
    ("catalogue", 1),
    ("binlog", 1),
    ("log", 0),
    ("logging", 1),
    ("shadow", 1),
    ("size", 0),
    ("sync", 0),
    ("spread", 1),
    ("cluster", 0),
    ("clock", 1),
    ("drain", 1),
    ("reachability", 1),
    ("upstreams", 1),
];

/// Names that a ring without sockets and clocks must not use.
const IO: &[&str] = &["tokio", "std::net", "Instant", "SystemTime"];

fn ring(module: &str) -> u8 {
    RINGS
        .iter()
        .filter(|(name, _)| module == *name || module.starts_with(&format!("{name}::")))
        .max_by_key(|(name, _)| name.len())
        .map_or(2, |(_, ring)| *ring)
}

/// The violations in a source file, given its module's path (`session::driver`) and text.
fn faults(module: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let own = ring(module);
    // Tests may import anything; they are at the end of a file.
    let code = text.split("#[cfg(test)]").next().unwrap();
    for (number, line) in code.lines().enumerate() {
        let line = line.split("//").next().unwrap();
        for imported in paths(module, line) {
            if ring(&imported) > own {
                faults.push(format!("line {}: {module} imports {imported}", number + 1));
            }
        }
        for io in IO.iter().filter(|io| own == 0 && line.contains(**io)) {
            faults.push(format!(
                "line {}: {module} is pure and names {io}",
                number + 1
            ));
        }
    }
    if text.lines().count() > MAX_LINES {
        faults.push(format!("{module} has more than {MAX_LINES} lines"));
    }
    faults
}

/// Full paths of this crate's modules that a line names.
fn paths(module: &str, line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for root in ["crate::", "headwater::", "super::"] {
        for (at, _) in line.match_indices(root) {
            let before = line[..at].chars().next_back();
            if before
                .is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':')
            {
                continue;
            }
            let mut rest = &line[at..];
            let mut base: Vec<&str> = Vec::new();
            if root == "super::" {
                base = module.split("::").collect();
                while let Some(outer) = rest.strip_prefix("super::") {
                    base.pop();
                    rest = outer;
                }
            } else {
                rest = &rest[root.len()..];
            }
            found.extend(leaves(rest).into_iter().map(|leaf| {
                base.iter()
                    .copied()
                    .chain([leaf.as_str()])
                    .collect::<Vec<_>>()
                    .join("::")
            }));
        }
    }
    found
}

/// `a::b` of `a::b::C`, and each path of `a::{b, c}`.
fn leaves(path: &str) -> Vec<String> {
    let end = path.find(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter)));
    let (stem, behind) = path.split_at(end.unwrap_or(path.len()));
    match behind.strip_prefix('{') {
        Some(group) => {
            let group = group.split('}').next().unwrap();
            group
                .split(',')
                .map(|leaf| format!("{stem}{}", leaf.trim()))
                .collect()
        }
        None => vec![stem.to_owned()],
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the project, tracked by git or not.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if [".git", "target", "Cargo.lock"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn texts() -> Vec<(String, String)> {
    let mut found = Vec::new();
    files(root(), &mut found);
    let name = |path: &Path| {
        path.strip_prefix(root())
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    found
        .iter()
        .filter_map(|path| Some((name(path), fs::read_to_string(path).ok()?)))
        .collect()
}

/// `session::driver` for `src/session/driver.rs`; `session` for its `mod.rs`.
fn module_of(file: &str) -> Option<String> {
    let path = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    Some(path.trim_end_matches("/mod").replace('/', "::"))
}

#[test]
fn imports_point_inward_and_the_inner_ring_is_pure() {
    let mut found = Vec::new();
    let mut seen = 0;
    for (file, text) in texts() {
        if file.ends_with("/tests.rs") || file.contains("/tests/") || file == "src/lib.rs" {
            continue;
        }
        if let Some(module) = module_of(&file) {
            seen += 1;
            found.extend(faults(&module, &text));
        }
    }
    assert!(seen > 40, "only {seen} files");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn pure_packages_name_nothing_that_does_io_and_import_those_above_them() {
    let mut seen = Vec::new();
    for (file, text) in texts() {
        let Some(name) = file
            .strip_prefix("crates/")
            .and_then(|rest| rest.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let known = PURE.iter().find(|(package, _)| *package == name);
        let (_, imports) = known.unwrap_or_else(|| panic!("{file} is not in PURE"));
        let named = text.split("[dev-dependencies]").next().unwrap();
        for line in named.lines() {
            let dependency = line.split(['.', ' ', '=']).next().unwrap();
            assert!(
                !IO_CRATES.contains(&dependency),
                "{file} names {dependency}"
            );
            if let Some(own) = dependency.strip_prefix("headwater-") {
                assert!(imports.contains(&own), "{file} imports {own}");
            }
        }
        seen.push(name.to_owned());
    }
    assert_eq!(seen.len(), PURE.len(), "{seen:?}");
}

/// Simulated time requires that all code reads one clock.
#[test]
fn the_clock_is_looked_at_in_one_place() {
    for (file, text) in texts() {
        let Some(module) = module_of(&file) else {
            continue;
        };
        let elsewhere = ["clock", "lab", "main"];
        if elsewhere.contains(&module.split("::").next().unwrap()) || module.ends_with("tests") {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (at, line) in code.lines().enumerate() {
            let looks = line.contains("Instant::now") && !line.contains("tokio::time::Instant");
            assert!(!looks, "{file}:{}: crate::clock tells the time", at + 1);
        }
    }
}

/// A session's fields belong to its driver: code that decides about a session gets the state it needs as arguments.
#[test]
fn nobody_outside_its_folder_implements_a_session() {
    for (file, text) in texts() {
        let stands = text.lines().any(|line| line.starts_with("impl Session {"));
        assert!(
            !stands || file.starts_with("src/session/"),
            "{file} holds a part of the session"
        );
    }
}

#[test]
fn an_import_that_points_outward_is_found() {
    for (module, line) in [
        ("binlog::stream", "use crate::server::Server;"),
        ("session::driver", "use crate::config::Settings;"),
        (
            "session::driver",
            "    let x = super::super::server::Server::bind();",
        ),
        ("binlog::load", "use crate::{check, wire};"),
        ("limits", "use std::time::Instant;"),
    ] {
        assert_eq!(faults(module, line).len(), 1, "{module}: {line}");
    }
    for (module, line) in [
        ("binlog::stream", "use crate::{wire, lookup};"),
        (
            "session::driver",
            "use super::machine::Machine; use std::time::Instant;",
        ),
        ("server", "use crate::lab::x; // and crate::main"),
        ("limits", "/// See crate::server, which uses tokio."),
        ("limits", "#[cfg(test)]\nmod tests { use crate::lab::x; }"),
    ] {
        assert_eq!(
            faults(module, line),
            Vec::<String>::new(),
            "{module}: {line}"
        );
    }
}

/// A path counts only if it is absolute: not after a name, as in `$prefix/lib`.
fn holds(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !(word.starts_with('/')
            && before.is_some_and(|letter| letter.is_alphanumeric() || letter == '}'))
    })
}

#[test]
fn no_file_is_too_long_and_none_knows_the_machine_it_was_written_on() {
    // In two parts, so that this file does not contain them.
    let forbidden = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
        concat!("/wo", "rk/"),
        concat!("crates", ".io"),
        concat!("docs", ".rs"),
        concat!("deb.deb", "ian.org"),
        concat!("index.cra", "tes"),
    ];
    let mut found = Vec::new();
    for (file, text) in texts() {
        if file.ends_with(".rs") && text.lines().count() > MAX_LINES {
            found.push(format!("{file} has more than {MAX_LINES} lines"));
        }
        for (number, line) in text.lines().enumerate() {
            for word in forbidden.iter().filter(|word| holds(line, word)) {
                found.push(format!("{file}:{} holds {word}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Otherwise a change of the code could leave `make faults` with faults that cannot be planted.
#[test]
fn each_line_that_a_fault_is_planted_in_stands_once() {
    let list: toml::Table = fs::read_to_string("world/faults.toml")
        .unwrap()
        .parse()
        .unwrap();
    let faults = list["fault"].as_array().unwrap();
    assert!(faults.len() >= 30, "{}", faults.len());
    for fault in faults {
        let of = |key: &str| fault[key].as_str().unwrap();
        let text = fs::read_to_string(of("file")).unwrap();
        let count = text.matches(of("line")).count();
        assert_eq!(count, 1, "{} in {}", of("name"), of("file"));
    }
}
