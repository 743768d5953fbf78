//! A machine that other software shares: it has its own programs, option files, environment variables and used ports. A test runs there in
//! a separate process.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Variables that servers, clients and scripts obey unless the caller clears them.
const VARIABLES: &[(&str, &str)] = &[
    ("MYSQL_PWD", "theirs"),
    ("MYSQL_HOST", "192.0.2.1"),
    ("MYSQL_TCP_PORT", "1"),
    ("MYSQL_UNIX_PORT", "/dev/null/theirs"),
    ("MYSQL_GROUP_SUFFIX", "_theirs"),
    ("MARIADB_TLS_DISABLE_PEER_VERIFICATION", "1"),
    ("WSREP_SST_OPT_AUTH", "theirs:theirs"),
    ("INNODB_DATA_HOME_DIR", "/dev/null/theirs"),
    ("INNODB_LOG_GROUP_HOME", "/dev/null/theirs"),
    ("HEADWATER_UPSTREAM", "192.0.2.1:1"),
    ("HEADWATER_CONFIG", "/dev/null/theirs"),
    ("HEADWATER_LOG_FORMAT", "json"),
    ("TZ", "America/St_Johns"),
];
/// Option files of a user who stores passwords in them.
const OPTIONS: &str = "[client]\npassword = theirs\nhost = 192.0.2.1\nport = 1\n[mysqld]\nport = 1\ndatadir = /dev/null\n\
                       [sst]\nencrypt = 4\n";
/// The usual ports of MySQL, its X protocol, Galera (three), Redis, the web, Headwater and its admin port.
const PORTS: &[u16] = &[3306, 33060, 4444, 4567, 4568, 6379, 8080, 3307, 9307];

/// The shared machine, until drop.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
    variables: Vec<(String, PathBuf)>,
    _services: Vec<TcpListener>,
}

impl Machine {
    /// Sets up the machine with programs that print who they are, and fail.
    pub(crate) fn of_others(programs: &[&str]) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir_all(folder.path().join("bin")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join(".my.cnf"), OPTIONS).unwrap();
        std::fs::write(home.join("my.cnf"), OPTIONS).unwrap();
        // The cache is shared, so that the test does not make its content again.
        if let Some(own) = std::env::var_os("HOME") {
            symlink(Path::new(&own).join(".cache"), home.join(".cache")).unwrap();
        }
        let listen = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).ok();
        let machine = Machine {
            variables: vec![
                ("HOME".to_owned(), home.clone()),
                ("MYSQL_HOME".to_owned(), home.clone()),
                ("MARIADB_HOME".to_owned(), home),
            ],
            _services: PORTS.iter().filter_map(listen).collect(),
            folder,
        };
        for program in programs {
            write_program(&machine.folder.path().join("bin").join(program), "theirs");
        }
        machine
    }

    /// Adds an environment variable.
    pub(crate) fn with(mut self, name: &str, path: &Path) -> Machine {
        self.variables.push((name.to_owned(), path.to_owned()));
        self
    }

    /// Runs a test of this program there, by its full name.
    pub(crate) fn tells(&self, story: &str) -> Output {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.folder.path().join("bin");
        let folders = [own].into_iter().chain(std::env::split_paths(&path));
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", story, "--nocapture", "--test-threads", "1"])
            .envs(VARIABLES.iter().copied())
            .envs(self.variables.iter().map(|(name, path)| (name, path)))
            .env("PATH", std::env::join_paths(folders).unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

/// Writes a program that prints this text to standard error, and fails.
pub(crate) fn write_program(path: &Path, says: &str) {
    std::fs::write(path, format!("#!/bin/sh\necho {says} >&2\nexit 255\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The output of a process that ran exactly one test, from both streams.
#[track_caller]
pub(crate) fn said(output: &Output) -> String {
    let both = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let said = both.join("\n");
    assert!(said.contains("running 1 test"), "no such story: {said}");
    said
}
