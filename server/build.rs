//! Has the program say what it was built from: `headwater --version`, the first line of its log, `headwater_build_info`.
//!
//! Git is asked for builds with optimisation alone: in others each commit would have the whole package compiled again.
//! `HEADWATER_COMMIT` goes before git, for builds from a source archive: `HEADWATER_COMMIT="abc1234 2026-11-25"`.

use std::path::Path;
use std::process::Command;

/// What the program is made of: a change here that is in no commit is told.
const SOURCES: &[&str] = &[
    "../src",
    "../crates",
    "../proxy",
    "../server",
    "../tools",
    "../lab",
    "../Cargo.toml",
    "../Cargo.lock",
];
const UNKNOWN: &str = "unknown commit";

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HEADWATER_COMMIT");
    let profile = match variable("PROFILE").as_str() {
        "release" => "release",
        _ => "debug",
    };
    let named = variable("HEADWATER_COMMIT");
    let commit = match named.trim() {
        "" if profile == "release" => {
            watch();
            from_git().unwrap_or_else(|| UNKNOWN.to_owned())
        }
        "" => UNKNOWN.to_owned(),
        // It becomes a part of one line.
        named => named.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    println!("cargo::rustc-env=HEADWATER_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=HEADWATER_BUILD_PROFILE={profile}");
    println!(
        "cargo::rustc-env=HEADWATER_BUILD_TARGET={}",
        variable("TARGET")
    );
}

/// The commit and its day, and whether the sources are others by now.
fn from_git() -> Option<String> {
    // A source archive that was unpacked within somebody else's repository is not of that repository's commit.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["show", "--no-patch", "--format=%h %cs", "HEAD"])?;
    let as_committed = git(&[&["diff", "--quiet", "HEAD", "--"], SOURCES].concat()).is_some();
    Some(match as_committed {
        true => commit,
        false => format!("{commit} modified"),
    })
}

/// What changes with a commit, in a repository of its own or in a worktree: where HEAD leads to, and the log of where it led.
fn watch() {
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    let places = ["HEAD", "logs/HEAD", "packed-refs", &branch];
    let places = places.iter().filter(|place| !place.is_empty());
    let places = places.filter_map(|place| git(&["rev-parse", "--git-path", place]));
    for place in places.chain(SOURCES.iter().map(|&source| source.to_owned())) {
        // A path that does not exist would have the build begin anew each time.
        if Path::new(&place).exists() {
            println!("cargo::rerun-if-changed={place}");
        }
    }
}

/// What git says, where it is there and does not fail.
fn git(arguments: &[&str]) -> Option<String> {
    let told = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(told.stdout).ok()?;
    told.status.success().then(|| text.trim().to_owned())
}
