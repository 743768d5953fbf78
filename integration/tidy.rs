//! The project's structure: imports point one way, pure packages do no IO, files stay small.

use std::collections::{BTreeMap, BTreeSet};
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

/// Packages that do IO, each with those of them that it imports.
const IO_PACKAGES: &[(&str, &[&str])] = &[
    ("proxy", &[]),
    ("server", &["proxy"]),
    ("tools", &["proxy", "server"]),
    ("lab", &["proxy", "server", "tools"]),
];

/// The other modules of its package that a source file names.
fn imported_modules(text: &str) -> BTreeSet<String> {
    // Tests may import anything; they are at the end of a file.
    let code = text.split("#[cfg(test)]").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    lines.flat_map(paths).collect()
}

/// The first step of each path from the package's root that a line names.
fn paths(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, root) in line.match_indices("crate::") {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            continue;
        }
        let rest = &line[at + root.len()..];
        let group = rest.strip_prefix('{').map(|group| group.split('}').next());
        let leaves = match group.flatten() {
            Some(group) => group.split(',').map(str::trim).collect(),
            None => vec![rest],
        };
        let first = |leaf: &str| {
            let end = leaf.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            leaf[..end.unwrap_or(leaf.len())].to_owned()
        };
        found.extend(leaves.into_iter().map(first));
    }
    found
}

/// Modules that import each other in a circle, as a path that begins and ends with the same.
fn circle(imports: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit(
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
        imports: &BTreeMap<String, BTreeSet<String>>,
    ) -> bool {
        let module = path.last().unwrap().clone();
        if path.iter().filter(|step| **step == module).count() > 1 {
            return true;
        }
        if done.contains(&module) {
            return false;
        }
        for next in imports.get(&module).into_iter().flatten() {
            if *next == module {
                continue;
            }
            path.push(next.clone());
            if visit(path, done, imports) {
                return true;
            }
            path.pop();
        }
        done.insert(module);
        false
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|module| {
        let mut path = vec![module.clone()];
        visit(&mut path, &mut done, imports).then_some(path)
    })
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

/// The module of a package with IO that a source file belongs to: `session` for `proxy/src/session/driver.rs`.
fn module_of<'a>(package: &str, file: &'a str) -> Option<&'a str> {
    let path = file.strip_prefix(package)?.strip_prefix("/src/")?;
    let path = path.strip_suffix(".rs")?;
    path.split('/').next().filter(|module| *module != "lib")
}

#[test]
fn modules_of_a_package_do_not_import_each_other_in_a_circle() {
    let texts = texts();
    for (package, _) in IO_PACKAGES {
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (file, text) in &texts {
            if file.ends_with("/tests.rs") || file.contains("/tests/") {
                continue;
            }
            if let Some(module) = module_of(package, file) {
                let of_module = imports.entry(module.to_owned()).or_default();
                of_module.extend(imported_modules(text));
            }
        }
        assert!(imports.len() >= 3, "{package}: {imports:?}");
        assert_eq!(circle(&imports), None, "in {package}");
    }
}

#[test]
fn a_circle_of_imports_is_found() {
    let imports = |modules: &[(&str, &str)]| {
        let modules = modules.iter();
        let named = |(module, text): &(&str, &str)| ((*module).to_owned(), imported_modules(text));
        modules.map(named).collect::<BTreeMap<_, _>>()
    };
    let found = circle(&imports(&[
        ("admin", "use crate::{config, server::Server};"),
        ("config", "    let x = crate::admin::X; // crate::server"),
        ("server", "use crate::config::Settings;"),
    ]));
    let path: Vec<String> = found.unwrap();
    assert_eq!(path, ["admin", "config", "admin"]);
    let none = imports(&[
        ("admin", "use crate::config; use crate::admin::page;"),
        ("config", "#[cfg(test)]\nmod tests { use crate::admin; }"),
    ]);
    assert_eq!(circle(&none), None);
}

/// Cargo forbids circles of packages; this says which way the arrows point.
#[test]
fn packages_with_io_import_those_below_them() {
    for (package, imports) in IO_PACKAGES {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        for line in manifest.lines() {
            let dependency = line.split(['.', ' ', '=']).next().unwrap();
            let Some(own) = dependency.strip_prefix("headwater-") else {
                continue;
            };
            let is_pure = PURE.iter().any(|(pure, _)| *pure == own);
            assert!(is_pure || imports.contains(&own), "{package} imports {own}");
        }
    }
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
        let packages = ["proxy", "server", "tools"];
        let module = packages
            .iter()
            .find_map(|package| module_of(package, &file));
        let is_test = file.ends_with("tests.rs");
        if module.is_none_or(|module| module == "clock") || is_test {
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
            !stands || file.starts_with("proxy/src/session/"),
            "{file} holds a part of the session"
        );
    }
}

/// A stored function concerns every session of its server, so a story that creates one has a server of its own, or is alone by the lock of
/// `sessions::others`.
#[test]
fn functions_are_created_on_servers_of_their_own() {
    let create = ["CREATE", "FUNCTION"].join(" ");
    for (file, text) in texts() {
        let creates = file.starts_with("integration/") && text.contains(&create);
        let is_alone = ["on_servers_of_its_own", "FUNCTIONS.lock()"];
        assert!(
            !creates || is_alone.iter().any(|word| text.contains(word)),
            "{file} creates a stored function on servers that all stories share"
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
