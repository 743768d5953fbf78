//! The package: installed into its own folder, started, upgraded, removed and purged. This machine stays unchanged.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::kit::proxy::{Proxy, headwater};
use crate::kit::servers::mariadb;
use crate::kit::wire_client::Login;

const SETTINGS: &str = "etc/headwater/headwater.toml";
const PASSWORD: &str = "etc/headwater/service-password";

#[track_caller]
fn ran(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (said, wrong) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{command:?}: {said}{wrong}");
    said.into_owned()
}

/// Packages the program that the tests run.
fn packed(folder: &Path) -> PathBuf {
    let program = PathBuf::from(headwater(&[]).get_program());
    let built = program.parent().unwrap();
    ran(headwater(&[]).arg("manual").arg(built.join("manual")));
    let profile = match built.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        profile => profile,
    };
    let package = folder.join("first.deb");
    let mut deb = Command::new("cargo");
    deb.args([
        "deb",
        "--no-build",
        "--fast",
        "--no-strip",
        "--quiet",
        "--profile",
    ]);
    deb.arg(profile).arg("--output").arg(&package);
    deb.current_dir(env!("CARGO_MANIFEST_DIR"));
    let said = deb.output().unwrap();
    assert!(
        said.status.success(),
        "cargo-deb is there (make test-package gets it), and packs: {}",
        String::from_utf8_lossy(&said.stderr)
    );
    package
}

/// The same package with a higher version and another file of settings.
fn next(package: &Path, folder: &Path) -> PathBuf {
    let tree = folder.join("next");
    ran(Command::new("dpkg-deb").arg("-R").args([package, &tree]));
    let control = tree.join("DEBIAN/control");
    let text = std::fs::read_to_string(&control).unwrap();
    let text = text.replacen("Version: ", "Version: 1:", 1);
    std::fs::write(control, text).unwrap();
    let settings = tree.join(SETTINGS);
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(settings, text + "\n# Of the next version.\n").unwrap();
    let upgrade = folder.join("next.deb");
    let mut pack = Command::new("dpkg-deb");
    ran(pack
        .args(["-Zgzip", "-z1", "--root-owner-group", "-b"])
        .args([&tree, &upgrade]));
    upgrade
}

/// A folder that represents a system.
struct System(PathBuf);

impl System {
    fn new(folder: &Path) -> System {
        let root = folder.join("system");
        for part in [
            "etc",
            "run",
            "var/log",
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
        ] {
            std::fs::create_dir_all(root.join(part)).unwrap();
        }
        std::fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
        // A process that changes its user must still reach the folder.
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
        System(root)
    }

    /// The folder has none of the package's dependencies; the package's scripts use DPKG_ROOT, and do not run in a chroot.
    fn dpkg(&self, arguments: &[&str]) -> String {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", self.0.display()));
        dpkg.args([
            "--force-script-chrootless",
            "--force-depends",
            "--force-bad-path",
        ]);
        dpkg.env("DEBIAN_FRONTEND", "noninteractive");
        ran(dpkg.args(arguments))
    }

    /// dpkg's record of the package.
    fn state(&self) -> String {
        let mut query = Command::new("dpkg-query");
        query.arg(format!("--admindir={}/var/lib/dpkg", self.0.display()));
        let told = query
            .args(["-W", "-f", "${db:Status-Abbrev}", "headwater"])
            .output();
        String::from_utf8(told.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The permissions and group of a path.
    fn mode(&self, path: &str) -> (u32, u32) {
        let seen =
            std::fs::metadata(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(seen.uid(), 0, "{path}");
        (seen.mode() & 0o7777, seen.gid())
    }

    /// The numeric user and group of the package's account.
    fn user(&self) -> Option<(u32, u32)> {
        let users = std::fs::read_to_string(self.path("etc/passwd")).ok()?;
        let line = users.lines().find(|line| line.starts_with("headwater:"))?;
        assert!(line.ends_with("/nologin"), "{line}");
        let numbers: Vec<u32> = line
            .split(':')
            .filter_map(|part| part.parse().ok())
            .collect();
        Some((numbers[0], numbers[1]))
    }
}

/// Starts it as the unit does: as its user, with its arguments, the password from a file of the service manager.
fn started(system: &System, upstream: &str) -> Proxy {
    let (user, group) = system.user().unwrap();
    let unit = system.text("usr/lib/systemd/system/headwater.service");
    let begun = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=headwater "));
    assert_eq!(
        begun,
        Some("serve --config /etc/headwater/headwater.toml"),
        "{unit}"
    );
    assert!(unit.contains("LoadCredential=service-password:/etc/headwater/service-password"));
    let credential = system.path("run/service-password");
    std::fs::copy(system.path(PASSWORD), &credential).unwrap();
    std::os::unix::fs::chown(&credential, Some(user), Some(group)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--clear-groups", "--no-new-privs"]);
    command.args([format!("--reuid={user}"), format!("--regid={group}")]);
    command.arg(system.path("usr/bin/headwater"));
    let settings = system.path(SETTINGS);
    command.env("HEADWATER_SERVICE_PASSWORD_FILE", credential);
    let flags = ["--config", settings.to_str().unwrap()];
    let proxy = Proxy::of(command, &flags);
    proxy.wait_for_log(&format!(" at {upstream}"));
    proxy.login(&Login::default()).ok("DO 1");
    proxy
}

#[test]
fn it_is_installed_started_upgraded_removed_and_purged() {
    if !nix::unistd::geteuid().is_root() {
        assert!(
            std::env::var_os("CI").is_none(),
            "the package's story needs root"
        );
        eprintln!("left out: the package is installed by root only");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = packed(folder.path());
    let system = System::new(folder.path());

    system.dpkg(&["-i", first.to_str().unwrap()]);
    assert_eq!(system.state(), "ii");
    let (_, group) = system.user().expect("the package makes its user");
    assert_eq!(system.mode(SETTINGS), (0o640, group));
    assert_eq!(system.mode(PASSWORD), (0o600, 0));
    assert_eq!(system.mode("usr/bin/headwater"), (0o755, 0));
    for file in [
        "usr/share/headwater/alerts.yaml",
        "usr/share/headwater/haproxy.cfg",
        "usr/share/headwater/grafana.json",
        // `make package` compresses them first.
        "usr/share/man/man8/headwater-serve.8",
        "usr/share/bash-completion/completions/headwater",
        "usr/share/zsh/vendor-completions/_headwater",
        "usr/share/fish/vendor_completions.d/headwater.fish",
        "usr/share/doc/headwater/docs/settings.md",
        "usr/share/doc/headwater/headwater.example.toml",
    ] {
        assert_eq!(system.mode(file), (0o644, 0), "{file}");
    }

    let upstream = mariadb().addr().to_string();
    let settings = system.text(SETTINGS);
    assert!(
        settings.contains("upstream = \"127.0.0.1:3306\""),
        "{settings}"
    );
    let set = settings.replace("127.0.0.1:3306", &upstream);
    std::fs::write(system.path(SETTINGS), &set).unwrap();
    let running = started(&system, &upstream);

    // Both have changed the file: the operator's version stays, and the package's is stored beside it.
    let next = next(&first, folder.path());
    system.dpkg(&["-i", "--force-confold", next.to_str().unwrap()]);
    assert_eq!(system.state(), "ii");
    assert_eq!(system.text(SETTINGS), set);
    let beside = system.text(&format!("{SETTINGS}.dpkg-dist"));
    assert!(beside.ends_with("# Of the next version.\n"), "{beside}");
    assert_eq!(system.mode(SETTINGS), (0o640, group));
    // The old program still serves its clients.
    running.login(&Login::default()).ok("DO 1");
    drop(running);
    started(&system, &upstream);

    std::fs::write(system.path(PASSWORD), "s3cret\n").unwrap();
    system.dpkg(&["--remove", "headwater"]);
    assert_eq!(system.state(), "rc");
    assert!(!system.path("usr/bin/headwater").exists());
    assert_eq!(system.text(SETTINGS), set);
    assert_eq!(system.text(PASSWORD), "s3cret\n");

    system.dpkg(&["--purge", "headwater"]);
    assert!(!system.path("etc/headwater").exists());
    assert!(system.user().is_some(), "files may still be its own");
}
