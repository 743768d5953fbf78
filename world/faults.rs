//! The test of the test: mutations are planted in a copy of the sources, and the worlds have to find each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde::Deserialize;

use crate::workers;

/// The environment variable with the active fault, for a program that contains all of them.
pub(crate) const CHOICE: &str = "HEADWATER_FAULT";
/// The mark of a failed world in the program's output.
const FAILED: &str = " ... FAILED";

#[derive(Debug, Deserialize)]
struct FaultList {
    fault: Vec<PlantedFault>,
}

/// A mutation of one line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlantedFault {
    name: String,
    file: PathBuf,
    /// The original line, which occurs exactly once.
    line: String,
    /// The mutated line, in which `FAULT` is true if the fault is active.
    planted: String,
    /// The expected symptom.
    shows: String,
}

/// How a fault was found.
struct FaultFinding {
    worlds: u64,
    text: String,
}

fn faults() -> Vec<PlantedFault> {
    let list: FaultList = toml::from_str(include_str!("faults.toml")).expect("a list of faults");
    list.fault
}

/// Runs up to so many worlds with each fault, or with those whose names contain one of these, and prints a table.
pub(crate) fn find_all(names: &[String], most: u64) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = root.join("target/planted");
    let source = target.join("source");
    let program = match plant(root, &source).and_then(|()| build(&source, &target)) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("the faults cannot be planted: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut faults = faults();
    let is_named = |fault: &PlantedFault| names.iter().any(|name| fault.name.contains(name));
    faults.retain(|fault| names.is_empty() || is_named(fault));
    let count = faults.len();
    println!("| fault | what becomes of it | worlds until it is found | as |");
    println!("|---|---|---|---|");
    let found = AtomicUsize::new(0);
    let begun = Instant::now();
    workers::share_out(count as u64, workers::processors(), |number| {
        let fault = &faults[number as usize];
        let (worlds, text) = match find(&program, &fault.name, most) {
            Some(finding) => {
                found.fetch_add(1, Ordering::Relaxed);
                (finding.worlds.to_string(), finding.text)
            }
            None => (format!("not in {most}"), String::new()),
        };
        println!("| {} | {} | {worlds} | {text} |", fault.name, fault.shows);
        true
    });
    let found = found.into_inner();
    let seconds = begun.elapsed().as_secs();
    println!("\n{found} of {count} faults found, in {seconds} s");
    match found == count {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The file with the definition of `FAULT` in the copy: every package with a fault imports this one.
const SWITCH: &str = "crates/timeline/src/lib.rs";
const SWITCH_TEXT: &str = "
extern crate self as headwater_timeline;

pub mod planted {
    static CHOICE: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var(\"HEADWATER_FAULT\").ok());

    pub fn is(name: &str) -> bool {
        CHOICE.as_deref() == Some(name)
    }
}
";

/// Copies the sources with all faults.
fn plant(root: &Path, source: &Path) -> io::Result<()> {
    let faults = faults();
    copy(root, source, &|path, text| {
        let path = path.strip_prefix(root).unwrap_or(path);
        let mut text = text;
        for fault in faults.iter().filter(|fault| fault.file == path) {
            if text.matches(&fault.line).count() != 1 {
                let problem = format!(
                    "the line of {} does not stand once in {}: see world/faults.toml",
                    fault.name,
                    path.display()
                );
                return Err(io::Error::other(problem));
            }
            let is = format!("headwater_timeline::planted::is({:?})", fault.name);
            text = text.replacen(&fault.line, &fault.planted.replace("FAULT", &is), 1);
        }
        if path == Path::new(SWITCH) {
            text.push_str(SWITCH_TEXT);
        }
        Ok(text)
    })
}

/// Copies the source files, transformed by this function. Unchanged files are not rewritten.
fn copy(
    from: &Path,
    to: &Path,
    transform: &dyn Fn(&Path, String) -> io::Result<String>,
) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let name = entry.file_name();
        if name == "target" || name.to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            self::copy(&path, &copy, transform)?;
            continue;
        }
        let bytes = fs::read(&path)?;
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => transform(&path, text)?.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        if fs::read(&copy).ok().as_ref() != Some(&bytes) {
            fs::write(&copy, &bytes)?;
        }
    }
    Ok(())
}

/// Builds the world's program with all faults.
fn build(source: &Path, target: &Path) -> io::Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo)
        .current_dir(source)
        .env("CARGO_TARGET_DIR", target)
        // Faults may leave something unused.
        .env("RUSTFLAGS", "--cap-lints allow")
        .args(["test", "--locked", "--no-run", "--test", "world"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()?;
    let messages = String::from_utf8_lossy(&built.stdout);
    let mut programs = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_world = message["target"]["name"] == "world";
        let program = message["executable"].as_str()?;
        is_world.then(|| PathBuf::from(program))
    });
    let program = programs.next_back().filter(|_| built.status.success());
    program.ok_or_else(|| io::Error::other("they do not build"))
}

fn find(program: &Path, name: &str, most: u64) -> Option<FaultFinding> {
    let run = Command::new(program)
        .env(CHOICE, name)
        .env("RUST_BACKTRACE", "0")
        .args(["--seeds", &most.to_string()])
        .output()
        .ok()?;
    if run.status.success() {
        return None;
    }
    let output = String::from_utf8_lossy(&run.stdout);
    let mut lines = output.lines().skip_while(|line| !line.ends_with(FAILED));
    let seed = lines.next()?.strip_prefix("world ")?.strip_suffix(FAILED)?;
    let text = lines.next().unwrap_or_default();
    let text = text.split(": ").next().unwrap_or_default();
    Some(FaultFinding {
        worlds: u64::from_str_radix(seed, 16).ok()? + 1,
        text: text.to_owned(),
    })
}
