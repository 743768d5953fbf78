//! Which build this is: `--version`, the log and the metrics agree, and a build names the commit that it was made from.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use headwater_server::version;

use crate::kit::proxy::{Proxy, headwater};
use crate::kit::servers::mariadb;

#[test]
fn the_command_line_and_the_log_say_which_build_it_is() {
    let told = headwater(&[]).arg("--version").output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let (number, commit, build) = (version::NUMBER, version::COMMIT, version::BUILD);
    assert_eq!(told, format!("headwater {number} ({commit}, {build})\n"));
    assert!(build.ends_with("-linux-gnu"), "{build}");
    let proxy = Proxy::start(mariadb().addr(), &[]);
    proxy.wait_for_log(&format!(" INFO {told}"));
    let first = proxy.log().lines().next().unwrap().to_owned();
    assert!(first.ends_with(told.trim_end()), "{first}");
}

/// The package's build script, and a folder to run it in.
struct Build {
    script: PathBuf,
    folder: tempfile::TempDir,
}

impl Build {
    fn new() -> Build {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        let compiled = Command::new("rustc")
            .args(["--edition", "2024", "server/build.rs", "-o"])
            .arg(&script)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(compiled.success());
        Build { script, folder }
    }

    /// Creates a package to build, in a folder of this name.
    fn package(&self, name: &str) -> PathBuf {
        let package = self.folder.path().join(name);
        std::fs::create_dir_all(package.join("src")).unwrap();
        std::fs::create_dir_all(package.join("server")).unwrap();
        std::fs::write(package.join("server/build.rs"), "").unwrap();
        std::fs::write(package.join("src/main.rs"), "fn main() {}").unwrap();
        package
    }

    /// The commit that a build in this folder reports, and the files whose change makes it report again.
    fn told(&self, package: &Path, profile: &str, named: &str) -> (String, Vec<PathBuf>) {
        let ran = Command::new(&self.script)
            .current_dir(package.join("server"))
            .env("PROFILE", profile)
            .env("TARGET", "x86_64-unknown-linux-gnu")
            .env("HEADWATER_COMMIT", named)
            .env("GIT_CEILING_DIRECTORIES", self.folder.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let text = String::from_utf8(ran.stdout).unwrap();
        let all = |key: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(key));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let commit = all("cargo::rustc-env=HEADWATER_BUILD_COMMIT=").remove(0);
        let watched = all("cargo::rerun-if-changed=");
        (
            commit,
            watched
                .iter()
                .map(|path| package.join("server").join(path))
                .collect(),
        )
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let ran = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// The state of the files that a build watches: a commit must change it, so that the build reports again.
fn state(watched: &[PathBuf]) -> Vec<(std::time::SystemTime, u64)> {
    let seen = |path: &PathBuf| {
        let seen = std::fs::metadata(path).unwrap_or_else(|_| panic!("{path:?} is not there"));
        (seen.modified().unwrap(), seen.len())
    };
    watched.iter().map(seen).collect()
}

#[test]
fn a_build_without_git_says_what_it_is_told_or_that_it_does_not_know() {
    let build = Build::new();
    let package = build.package("archive");
    assert_eq!(build.told(&package, "release", "").0, "unknown commit");
    let named = build.told(&package, "debug", " abc1234\n2026-11-25 ").0;
    assert_eq!(named, "abc1234 2026-11-25");
}

#[test]
fn a_build_says_its_commit_in_a_repository_and_in_a_worktree() {
    let build = Build::new();
    let package = build.package("package");
    git(&package, &["init", "--quiet"]);
    // Not yet part of the repository, like an archive unpacked in it.
    assert_eq!(build.told(&package, "release", "").0, "unknown commit");
    let commit = |folder: &Path| {
        git(folder, &["add", "."]);
        git(folder, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
        git(folder, &["show", "--no-patch", "--format=%h %cs"])
    };
    let first = commit(&package);
    git(&package, &["worktree", "add", "--quiet", "../worktree"]);
    for folder in [package.clone(), build.folder.path().join("worktree")] {
        let (told, watched) = build.told(&folder, "release", "");
        assert_eq!(told, first);
        let before = state(&watched);
        std::fs::write(folder.join("src/main.rs"), "fn main() { () }").unwrap();
        let changed = build.told(&folder, "release", "").0;
        assert_eq!(changed, format!("{first} modified"));
        // File times may be as coarse as the clock's ticks.
        std::thread::sleep(Duration::from_millis(20));
        let second = commit(&folder);
        assert_ne!(second, first);
        assert_eq!(build.told(&folder, "release", "").0, second);
        let after = state(&watched);
        let anew = before.iter().zip(&after).filter(|(was, is)| was != is);
        // HEAD's log and the branch have changed, besides the source itself.
        assert!(anew.count() >= 2, "{watched:?}");
        assert_eq!(build.told(&folder, "debug", "").0, "unknown commit");
        assert_eq!(build.told(&folder, "release", "v1").0, "v1");
    }
}
